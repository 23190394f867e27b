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
from acp_core.protocols.folder.actions.table_share import (
    ASKING,
    JOINING,
    SHARING,
    SYNCING,
    UNSHARING,
)
from acp_core.protocols.folder.actions.table_share import HOSTS as HOSTS_QUERY
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
    SHARING,
    SYNCING,
    ASKING,
    UNSHARING,
    table_agents.APPEND,
)
"""What can be asked for by name."""
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
SHARE, JOIN, SYNC, UNSHARE = (
    Commands(each.command, each.sentence, (each,), "acp.share/1")
    for each in (SHARING, JOINING, SYNCING, UNSHARING)
)
ASK = Commands("ask", ASKING.sentence, (ASKING,), "acp.ask/1")
HOSTS = Commands("hosts", HOSTS_QUERY.sentence, (HOSTS_QUERY,), "acp.hosts/1")
COMMANDS = (
    NEW,
    INIT,
    APPEND,
    NEXT,
    WAIT,
    VALIDATE,
    REPAIR,
    CONTINUE,
    SKILL,
    SHARE,
    JOIN,
    SYNC,
    UNSHARE,
    HOSTS,
    ASK,
)
MANUAL = {words: page for each in COMMANDS for words, page in each.manual.items()}
"""Examples and exit codes, by the words of their command."""
