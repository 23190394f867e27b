"""The names of the actions, by which needs, causes and questions name them."""

from __future__ import annotations

CREATE = "create"
APPEND = "append"
REPAIR = "repair"
CONTINUE = "continue"
BLOCK = "block"
SETTLE = "settle_questions"
CHECK = "check_gates"
ANSWERING = "answer_question"
SYNC = "sync"
