"""The names of the actions, by which needs, causes and questions name them."""

from __future__ import annotations

CREATE = "create"

APPEND = "append"

REPAIR = "repair"

CONTINUE = "continue"

BLOCK = "block"

SETTLE_QUESTIONS = "settle_questions"

CHECK_GATES = "check_gates"

ANSWER_QUESTION = "answer_question"

SYNC = "sync"
