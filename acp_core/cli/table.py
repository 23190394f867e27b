"""The commands of `acp` that hold for every protocol: a table, so that none is imported to list it.

What a protocol adds stands in its own `acp_core.protocols.registry.Protocol`. The examples and exit
codes below a command's help stand in the descriptions of its acts and queries.
"""

from __future__ import annotations

from collections.abc import Sequence

from acp_core.protocols import registry
from acp_core.protocols.kit.parser import Page, page_of
from acp_core.protocols.registry import Command, group

HEADINGS = ("Watch", "History", "Agents", "Orchestrate", "Share", "Fix", "More")
"""The headings of ``acp --help`` in their order; others follow as they come."""

ENTRIES = (
    group("dashboard", "Open the live dashboard", "acp_core.cli.specs:DASHBOARD", "Watch"),
    group("serve", "Open the dashboard in a web browser", "acp_core.cli.specs:SERVE", "Watch"),
    group("demo", "Run a scripted demo collaboration", "acp_core.cli.specs:DEMO", "Watch"),
    group("status", "List collaborations: what needs you, active, done", "acp_core.cli.specs:STATUS", "Watch"),
    group("watch", "Stream changes, one per line, until all have finished", "acp_core.cli.specs:WATCH", "Watch"),
    group("show", "Show a collaboration as plain text", "acp_core.cli.specs:SHOW", "Watch"),
    group("why", "Explain why a collaboration is stuck and how to fix it", "acp_core.cli.specs:WHY", "Watch"),
    group("card", "Show the decisions that wait for you", "acp_core.cli.specs:CARD", "Watch"),
    group("find", "Search collaborations by words", "acp_core.cli.specs:FIND", "Watch"),
    group("record", "Record every version of the files", "acp_core.cli.specs:RECORD", "History"),
    group("recordings", "List or delete recordings", "acp_core.cli.specs:RECORDINGS", "History"),
    group("replay", "Show the history, or one point in time", "acp_core.cli.specs:REPLAY", "History"),
    group("diff", "Compare two versions of a document", "acp_core.cli.specs:DIFF", "History"),
    group("stats", "Show durations, waits, rounds and cost", "acp_core.cli.specs:STATS", "History"),
    group("chart", "Draw a timeline chart", "acp_core.cli.specs:CHART", "History"),
    group("report", "Write a report: HTML, Markdown, JSON, CSV, trace", "acp_core.cli.specs:REPORT", "History"),
    group("export", "Export a collaboration and its recording", "acp_core.cli.specs:EXPORT", "History"),
    group("import", "Import an exported collaboration", "acp_core.cli.specs:IMPORT", "History"),
    group("loop", "Run an agent for a participant's turns, in this terminal", "acp_core.cli.specs:LOOP", "Agents"),
    group("launch", "Start loops in the background", "acp_core.cli.specs:LAUNCH", "Agents"),
    group("ps", "List loops: state, attempts, tokens, cost", "acp_core.cli.specs:PS", "Agents"),
    group("logs", "Show the logs of loops and agents", "acp_core.cli.specs:LOGS", "Agents"),
    group("stop", "Stop loops and the agents that they run", "acp_core.cli.specs:STOP", "Agents"),
    group("answer", "Answer an agent's permission request", "acp_core.cli.specs:ANSWER", "Agents"),
    group("cancel", "Cancel what an agent is doing", "acp_core.cli.specs:CANCEL", "Agents"),
    group("nudge", "Send a message to an agent, for its turn", "acp_core.cli.specs:NUDGE", "Agents"),
    group("mcp", "Serve a participant's tools to its agent (MCP)", "acp_core.cli.specs:MCP", "Agents"),
    group("act", "List or run the actions of a collaboration", "acp_core.cli.act:ACT", "Fix"),
    group("ack", "Acknowledge an attention item", "acp_core.cli.specs:ACK", "Fix"),
    group("unack", "Withdraw an acknowledgement", "acp_core.cli.specs:UNACK", "Fix"),
    group("archive", "Hide a collaboration from the fleet", "acp_core.cli.specs:ARCHIVE", "Fix"),
    group("unarchive", "Show an archived collaboration again", "acp_core.cli.specs:UNARCHIVE", "Fix"),
    group("store", "Prepare and list stores of shared collaborations", "acp_core.cli.specs:STORE", "Share"),
    group("doctor", "Check the installation and the terminal", "acp_core.cli.specs:DOCTOR", "More"),
    group("completion", "Print a shell completion script", "acp_core.cli.specs:COMPLETION", "More"),
)  # fmt: skip

GONE = {
    "bench": "acp bench was removed: run `python -m tests.bench` in a checkout of acp",
}
"""Commands that acp had before, and what takes their place."""


def entry_named(name: str) -> Command | None:
    """The entry of this name, or None."""
    return next((known for known in ENTRIES if known.name == name), None)


HELP = ("-h", "--help")


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Whether the arguments of `acp` ask for help."""
    before = list(arguments)[: arguments.index("--")] if "--" in arguments else list(arguments)
    return any(word in HELP for word in before)


def manual_page(arguments: Sequence[str]) -> Page | None:
    """The page of the command that these arguments of `acp` begin with."""
    words: list[str] = []
    for word in arguments:
        if word.startswith("-"):
            break
        words.append(word)
    if not words:
        return None
    entry = entry_named(words[0])
    if entry is not None:
        return page_of(tuple(words), registry.load(f"{entry.parser.rpartition('.')[0]}.manual"))
    for protocol in registry.installed():
        if protocol.manual and any(each.name == words[0] for each in protocol.commands):
            return page_of(tuple(words), registry.load(protocol.manual))
    return None
