"""Every act and query of a folder collaboration: what a form offers, and the commands made of them."""

from __future__ import annotations

from acp_core.protocols.folder.actions import table_agents
from acp_core.protocols.folder.actions.table_files import (
    CONTINUATION,
    INSTALLATION,
    REMOVAL,
    REPAIRING,
)
from acp_core.protocols.folder.actions.table_new import NEW as NEW_SPEC
from acp_core.protocols.folder.actions.table_turns import (
    ANSWER_QUESTION,
    BLOCKING,
    CHECK_GATES,
    SETTLE_QUESTIONS,
    TURNS,
)
from acp_core.protocols.kit.command import Commands

ALL = (
    REPAIRING,
    CONTINUATION,
    *TURNS,
    CHECK_GATES,
    ANSWER_QUESTION,
    SETTLE_QUESTIONS,
    BLOCKING,
    table_agents.APPEND,
)
"""What can be asked for by name."""
ANSWERS = (ANSWER_QUESTION, SETTLE_QUESTIONS)
"""Acts without a command of their own that need words which only a person can write."""
INIT, APPEND, NEXT, WAIT, VALIDATE, NEW, REPAIR, CONTINUE = (
    Commands(each.command, each.sentence, (each,), f"acp.{each.command}/1")
    for each in (*table_agents.SPECS.values(), NEW_SPEC, REPAIRING, CONTINUATION)
)
SKILL = Commands(
    "skill",
    "Install the portable skill that agents load to take part in a collaboration.",
    (INSTALLATION, REMOVAL),
    "acp.skill/1",
)
COMMANDS = (NEW, INIT, APPEND, NEXT, WAIT, VALIDATE, REPAIR, CONTINUE, SKILL)
MANUAL = {words: page for each in COMMANDS for words, page in each.manual.items()}
"""Examples and exit codes, by the words of their command."""
