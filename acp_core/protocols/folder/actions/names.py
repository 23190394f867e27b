"""The names of the actions that change documents, by which causes and questions name them."""

from __future__ import annotations

SETTLE = "settle_questions"
CHECK = "check_gates"
ANSWERING = "answer_question"
