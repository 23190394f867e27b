"""The commands of `acp` that hold for every protocol: a table, so that none is imported to list it.

What a protocol adds stands in its own `acp_core.protocols.registry.Protocol`.
"""

from __future__ import annotations

from acp_core.protocols.registry import Command, group

HEADINGS = ("Watch", "History", "Agents", "Orchestrate", "Share", "Fix", "More")
"""The headings of ``acp --help`` in their order; others follow as they come."""
_SPECS = "acp_core.cli.specs"

ENTRIES = (
    group("dashboard", "Open the live dashboard", f"{_SPECS}.watch:DASHBOARD", "Watch"),
    group("serve", "Open the dashboard in a web browser", f"{_SPECS}.watch:SERVE", "Watch"),
    group("demo", "Run a scripted demo collaboration", f"{_SPECS}.watch:DEMO", "Watch"),
    group("status", "List collaborations: what needs you, active, done", f"{_SPECS}.watch:STATUS", "Watch"),
    group("watch", "Stream changes, one per line, until all have finished", f"{_SPECS}.watch:WATCH", "Watch"),
    group("show", "Show a collaboration as plain text", f"{_SPECS}.watch:SHOW", "Watch"),
    group("why", "Explain why a collaboration is stuck and how to fix it", f"{_SPECS}.watch:WHY", "Watch"),
    group("card", "Show the decisions that wait for you", f"{_SPECS}.watch:CARD", "Watch"),
    group("find", "Search collaborations by words", f"{_SPECS}.watch:FIND", "Watch"),
    group("record", "Record every version of the files", f"{_SPECS}.past:RECORD", "History"),
    group("recordings", "List or delete recordings", f"{_SPECS}.past:RECORDINGS", "History"),
    group("replay", "Show the history, or one point in time", f"{_SPECS}.past:REPLAY", "History"),
    group("diff", "Compare two versions of a document", f"{_SPECS}.past:DIFF", "History"),
    group("stats", "Show durations, waits, rounds and cost", f"{_SPECS}.past:STATS", "History"),
    group("chart", "Draw a timeline chart", f"{_SPECS}.past:CHART", "History"),
    group("report", "Write a report: HTML, Markdown, JSON, CSV, trace", f"{_SPECS}.past:REPORT", "History"),
    group("export", "Export a collaboration and its recording", f"{_SPECS}.past:EXPORT", "History"),
    group("import", "Import an exported collaboration", f"{_SPECS}.past:IMPORT", "History"),
    group("loop", "Run an agent for a participant's turns, in this terminal", f"{_SPECS}.agents:LOOP", "Agents"),
    group("launch", "Start loops in the background", f"{_SPECS}.agents:LAUNCH", "Agents"),
    group("ps", "List loops: state, attempts, tokens, cost", f"{_SPECS}.agents:PS", "Agents"),
    group("logs", "Show the logs of loops and agents", f"{_SPECS}.agents:LOGS", "Agents"),
    group("stop", "Stop loops and the agents that they run", f"{_SPECS}.agents:STOP", "Agents"),
    group("answer", "Answer an agent's permission request", f"{_SPECS}.agents:ANSWER", "Agents"),
    group("cancel", "Cancel what an agent is doing", f"{_SPECS}.agents:CANCEL", "Agents"),
    group("nudge", "Send a message to an agent, for its turn", f"{_SPECS}.agents:NUDGE", "Agents"),
    group("mcp", "Serve a participant's tools to its agent (MCP)", f"{_SPECS}.agents:MCP", "Agents"),
    group("act", "List or run the actions of a collaboration", "acp_core.cli.act:ACT", "Fix"),
    group("ack", "Acknowledge an attention item", f"{_SPECS}.mend:ACK", "Fix"),
    group("unack", "Withdraw an acknowledgement", f"{_SPECS}.mend:UNACK", "Fix"),
    group("archive", "Hide a collaboration from the fleet", f"{_SPECS}.mend:ARCHIVE", "Fix"),
    group("unarchive", "Show an archived collaboration again", f"{_SPECS}.mend:UNARCHIVE", "Fix"),
    group("store", "Prepare and list stores of shared collaborations", f"{_SPECS}.stores:STORE", "Share"),
    group("doctor", "Check the installation and the terminal", f"{_SPECS}.mend:DOCTOR", "More"),
    group("completion", "Print a shell completion script", f"{_SPECS}.mend:COMPLETION", "More"),
)  # fmt: skip


GONE = {
    "bench": "acp bench was removed: run `python -m tests.bench` in a checkout of acp",
}
"""Commands that acp had before, and what takes their place."""


def entry(name: str) -> Command | None:
    """The entry of this name, or None."""
    return next((known for known in ENTRIES if known.name == name), None)
