"""The commands of `acp` that hold for every protocol: a table, so that none is imported to list it.

What a protocol adds stands in its own `acp_core.protocols.registry.Protocol`.
"""

from __future__ import annotations

from acp_core.model.light import NamedTuple

HEADINGS = ("Watch", "Past", "Agents", "Orchestrate", "Mend", "More")
"""The headings of ``acp --help`` in their order; others follow as they come."""


class CommandEntry(NamedTuple):
    """A command: ``target`` is ``module:name`` of a click command, ``group`` its heading."""

    name: str
    target: str
    summary: str
    group: str


ENTRIES = (
    CommandEntry("dashboard", "acp_core.cli.dashboard:dashboard", "Live dashboard of the collaborations under a path", "Watch"),
    CommandEntry("serve", "acp_core.cli.serve:serve", "The dashboard in a web browser", "Watch"),
    CommandEntry("demo", "acp_core.cli.demo:demo", "A collaboration that carries itself out, to watch", "Watch"),
    CommandEntry("status", "acp_core.cli.status:status", "The fleet as a table: who needs you, what is live, what is done", "Watch"),
    CommandEntry("watch", "acp_core.cli.watch:watch", "One line for every change, until all is over", "Watch"),
    CommandEntry("show", "acp_core.cli.show:show", "One collaboration as plain text", "Watch"),
    CommandEntry("why", "acp_core.cli.why:why", "Why a collaboration does not go on, and what to do", "Watch"),
    CommandEntry("find", "acp_core.cli.find:find", "Search objectives, decisions and conclusions", "Watch"),
    CommandEntry("record", "acp_core.cli.record:record", "Keep every version of what changes, until interrupted", "Past"),
    CommandEntry("recordings", "acp_core.cli.recordings:recordings", "What was recorded, and its size; throw some away", "Past"),
    CommandEntry("replay", "acp_core.cli.replay:replay", "What happened, moment by moment; how it stood at one of them", "Past"),
    CommandEntry("diff", "acp_core.cli.diff:diff", "What became of a document between two moments", "Past"),
    CommandEntry("stats", "acp_core.cli.stats:stats", "Where the time went: phases, turns, waits, rounds, cost", "Past"),
    CommandEntry("chart", "acp_core.cli.chart:chart", "Who did what when, drawn: phases, turns, hand-overs, waits", "Past"),
    CommandEntry("report", "acp_core.cli.report:report", "A report for others: HTML, Markdown, JSON, CSV, trace", "Past"),
    CommandEntry("export", "acp_core.cli.archives:export", "One file of a collaboration and its recording", "Past"),
    CommandEntry("import", "acp_core.cli.archives:import_", "Unpack such a file here", "Past"),
    CommandEntry("loop", "acp_core.cli.loop:loop", "Take a participant's turns with a program, in this terminal", "Agents"),
    CommandEntry("launch", "acp_core.cli.launch:launch", "Start participants' loops in the background", "Agents"),
    CommandEntry("ps", "acp_core.cli.processes:ps", "List the loops: what they do, tries, tokens, cost", "Agents"),
    CommandEntry("logs", "acp_core.cli.processes:logs", "Show what loops did and what their programs printed", "Agents"),
    CommandEntry("stop", "acp_core.cli.processes:stop", "Stop loops, with the programs that they run", "Agents"),
    CommandEntry("nudge", "acp_core.cli.processes:nudge", "Ask a loop to begin its turn anew, with a message", "Agents"),
    CommandEntry("act", "acp_core.cli.act:act", "List what you can do in a collaboration, or do it", "Mend"),
    CommandEntry("ack", "acp_core.cli.notes:ack", "Acknowledge that a collaboration needs you", "Mend"),
    CommandEntry("archive", "acp_core.cli.notes:archive", "Leave a collaboration out of the fleet", "Mend"),
    CommandEntry("unarchive", "acp_core.cli.notes:unarchive", "Bring it back", "Mend"),
    CommandEntry("doctor", "acp_core.cli.doctor:doctor", "Versions, folders, terminal, and what is missing", "More"),
    CommandEntry("completion", "acp_core.cli.completion:completion", "Print the completion script of a shell", "More"),
)  # fmt: skip


GONE = {
    "bench": "the measurements are no longer part of the program: "
    "run `python -m tests.bench` in a checkout of acp",
}
"""Commands that acp had before, and what takes their place."""


def entry(name: str) -> CommandEntry | None:
    """The entry of this name, or None."""
    return next((known for known in ENTRIES if known.name == name), None)
