"""Names by which acts are named below the rooms that describe them: of acts, and of agents' commands and scripts."""

from __future__ import annotations

from typing import NamedTuple

CREATE = "create"

APPEND = "append"

REPAIR = "repair"

CONTINUE = "continue"

BLOCK = "block"

SETTLE_QUESTIONS = "settle_questions"

CHECK_GATES = "check_gates"

ANSWER_QUESTION = "answer_question"

SYNC = "sync"


class Script(NamedTuple):
    """A script: the command of acp that it is, that command's function, and what it does."""

    name: str
    command: str
    function: str
    summary: str


SCRIPTS = (
    Script("init_collaboration.py", "init", "init", "Start a collaboration in a folder"),
    Script("append_event.py", "append", "append", "Append an event to a collaboration's log"),
    Script("next_action.py", "next", "next_action", "Show what a participant should do now"),
    Script("wait_for_turn.py", "wait", "wait", "Wait until it is a participant's turn"),
    Script("validate_collaboration.py", "validate", "validate", "Check a collaboration"),
)
