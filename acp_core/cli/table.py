"""The commands of `acp` that hold for every protocol: a table, so that none is imported to list it.

What a protocol adds stands in its own `acp_core.protocols.registry.Protocol`.
"""

from __future__ import annotations

from acp_core.protocols.registry import Command, group

HEADINGS = ("Watch", "Past", "Agents", "Orchestrate", "Mend", "More")
"""The headings of ``acp --help`` in their order; others follow as they come."""
_SPECS = "acp_core.cli.specs"

ENTRIES = (
    group("dashboard", "Live dashboard of the collaborations under a path", f"{_SPECS}.watch:DASHBOARD", "Watch"),
    group("serve", "The dashboard in a web browser", f"{_SPECS}.watch:SERVE", "Watch"),
    group("demo", "A collaboration that carries itself out, to watch", f"{_SPECS}.watch:DEMO", "Watch"),
    group("status", "The fleet as a table: who needs you, what is live, what is done", f"{_SPECS}.watch:STATUS", "Watch"),
    group("watch", "One line for every change, until all is over", f"{_SPECS}.watch:WATCH", "Watch"),
    group("show", "One collaboration as plain text", f"{_SPECS}.watch:SHOW", "Watch"),
    group("why", "Why a collaboration does not go on, and what to do", f"{_SPECS}.watch:WHY", "Watch"),
    group("card", "Show the decisions that wait for you, with their facts", f"{_SPECS}.watch:CARD", "Watch"),
    group("find", "Search objectives, decisions and conclusions", f"{_SPECS}.watch:FIND", "Watch"),
    group("record", "Keep every version of what changes, until interrupted", f"{_SPECS}.past:RECORD", "Past"),
    group("recordings", "What was recorded, and its size; throw some away", f"{_SPECS}.past:RECORDINGS", "Past"),
    group("replay", "What happened, moment by moment; how it stood at one of them", f"{_SPECS}.past:REPLAY", "Past"),
    group("diff", "What became of a document between two moments", f"{_SPECS}.past:DIFF", "Past"),
    group("stats", "Where the time went: phases, turns, waits, rounds, cost", f"{_SPECS}.past:STATS", "Past"),
    group("chart", "Who did what when, drawn: phases, turns, hand-overs, waits", f"{_SPECS}.past:CHART", "Past"),
    group("report", "A report for others: HTML, Markdown, JSON, CSV, trace", f"{_SPECS}.past:REPORT", "Past"),
    group("export", "One file of a collaboration and its recording", f"{_SPECS}.past:EXPORT", "Past"),
    group("import", "Unpack such a file here", f"{_SPECS}.past:IMPORT", "Past"),
    group("loop", "Take a participant's turns with a program, in this terminal", f"{_SPECS}.agents:LOOP", "Agents"),
    group("launch", "Start participants' loops in the background", f"{_SPECS}.agents:LAUNCH", "Agents"),
    group("ps", "List the loops: what they do, tries, tokens, cost", f"{_SPECS}.agents:PS", "Agents"),
    group("logs", "Show what loops did and what their programs printed", f"{_SPECS}.agents:LOGS", "Agents"),
    group("stop", "Stop loops, with the programs that they run", f"{_SPECS}.agents:STOP", "Agents"),
    group("nudge", "Ask a loop to begin its turn anew, with a message", f"{_SPECS}.agents:NUDGE", "Agents"),
    group("act", "List what you can do in a collaboration, or do it", "acp_core.cli.act:ACT", "Mend"),
    group("ack", "Acknowledge that a collaboration needs you", f"{_SPECS}.mend:ACK", "Mend"),
    group("unack", "Take an acknowledgement back", f"{_SPECS}.mend:UNACK", "Mend"),
    group("archive", "Leave a collaboration out of the fleet", f"{_SPECS}.mend:ARCHIVE", "Mend"),
    group("unarchive", "Bring it back", f"{_SPECS}.mend:UNARCHIVE", "Mend"),
    group("doctor", "Versions, folders, terminal, and what is missing", f"{_SPECS}.mend:DOCTOR", "More"),
    group("completion", "Print the completion script of a shell", f"{_SPECS}.mend:COMPLETION", "More"),
)  # fmt: skip


GONE = {
    "bench": "the measurements are no longer part of the program: "
    "run `python -m tests.bench` in a checkout of acp",
}
"""Commands that acp had before, and what takes their place."""


def entry(name: str) -> Command | None:
    """The entry of this name, or None."""
    return next((known for known in ENTRIES if known.name == name), None)
