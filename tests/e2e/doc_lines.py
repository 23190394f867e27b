"""Where the command lines of README.md and docs run: for each, a state of a collaboration, and how it ends.

`ways` finds the first `Way` whose pattern a line begins with. A line that cannot run here is in `NOT_RUN`, with
its reason.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from tests.hygiene.commands import commands
from tests.hygiene.pages import PAGES, block_lines, lines

MADE_UP = (
    "architecture.md",
    "bench.md",
    "contributing.md",
    "faults.md",
    "guarantees.md",
    "codes.md",
)
"""Pages that name commands in sentences only."""


class Way(NamedTuple):
    """How lines run.

    Attributes:
        pattern: how the lines begin, behind ``acp ``.
        world: the name of what is there before (`tests.e2e.test_doc_lines.WORLDS`).
        codes: exit codes that are right.
        until: "" where the command ends by itself; "line": it goes on, and is interrupted after its first line of
            output; "screen": it draws the dashboard, which is left by a key.
        adds: what stands for a person's answer to its question, or for "...".
    """

    pattern: str
    world: str = "reviewing"
    codes: tuple[int, ...] = (0, 1)
    until: str = ""
    adds: tuple[str, ...] = ()


WAYS = (
    # the dashboard
    Way(r"demo --stuck list", codes=(2,)),  # it names them all
    Way(r"demo --stuck idle$|demo$", "empty", until="screen"),
    Way(r"demo --headless", "empty", until="line"),
    Way(r"serve ", until="line"),
    Way(r"~/work", until="screen"),
    Way(r"card ~/work/lamp", "governed/run-gate-waits"),
    Way(r"card queues", "workspaces/partial"),
    Way(r"card \.", "cycle/decision_open"),
    # one collaboration, or all
    Way(r"why "),
    Way(r"watch ", "finished"),
    Way(r"(find|replay|diff|stats|chart|report|export|archive) ", "finished"),
    Way(r"import ", "exported", (0,)),
    Way(r"record ", until="line"),
    Way(r"repair |act checkout repair", "torn", (0,), adds=("--yes",)),
    Way(r"continue ", "blocked", (0,)),
    Way(r"act checkout block", adds=("--reason", "No access")),
    Way(r"ack |unack "),
    Way(r"launch ", "reviewing", (0,)),
    Way(r"new ", "empty", (0,)),
    Way(r"init --folder checkout --participant writer", "empty", (0,)),
    Way(r"append --folder checkout --participant writer", "drafting", (0,)),
    Way(r"append |wait |next ", "reviewing", (0,)),
    Way(r"skill install --for", "reviewing", (0,), adds=("--yes",)),
    Way(r"skill remove", "equipped", (0,), adds=("--yes",)),
    Way(r"skill install ", "empty", (0,)),
    Way(r"mcp ", until="input"),
    # sub-agents
    Way(r"workspaces init ", "empty", (0,)),
    Way(r"workspaces dispatch queues --agent", "workspaces/fresh", (0,), adds=("--detach",)),
    Way(
        r"workspaces dispatch ",
        "workspaces/decided",
        (0,),
        adds=("--agent", "claude", "--detach"),
    ),
    Way(r"workspaces triage ", "workspaces/partial", (0,)),
    Way(r"workspaces compare ", "workspaces/succeeded", (0,)),
    Way(r"workspaces resolve ", "workspaces/conflicts_open", (0,)),
    Way(r"workspaces edit ", "workspaces/conflicts_resolved", (0,)),
    Way(r"workspaces finish ", "workspaces/drafted"),
    # cycles
    Way(r"cycle start ", "project", (0,)),
    Way(r"cycle extend ", "cycle/completed", (0,)),
    Way(r"cycle ", "cycle/decision_open", (0,)),
    # governed runs
    Way(r"governed init ", "project", (0,)),
    Way(r"governed (check|accept-turn)", "governed/run-turn-staged", (0,)),
    Way(r"governed approve-gate", "governed/run-gate-waits", adds=("--as", "me", "--yes")),
    Way(r"governed step", "governed/run-new"),
    Way(r"governed ", "empty", (0,)),
    # the network
    Way(r"agent ", until="line"),
    # all others
    Way(r"(card|show|status|watch|init --help|validate|act|doctor|completion|recordings|ps|COMMAND|--version)\b"),
)  # fmt: skip
"""The first pattern that fits decides."""

_ELSEWHERE = "needs another machine; tests/protocols/wire runs the command between agents on one"
_SHARED = "needs a store; tests/stores runs the command against git servers and PostgreSQL"
_SYSTEM = "changes what the system starts at boot; tests/loops/test_at_boot.py runs it in a place of its own"
_LOOP = "needs a loop with an agent at work; tests/loops runs the command with one"
_AGENTS = "needs agents that run; tests/protocols/wire runs the command with them"
_PEER = "needs ids that the agents choose; tests/protocols/wire runs the command with them"
NOT_RUN = {
    r"(share|join|sync|hosts|ask|unshare|store) ": _SHARED,
    r"launch checkout reader=claude|act lamp\b": _SHARED,
    r"(doctor|status) postgresql:|git@|show 'git": _SHARED,
    r"launch --at-boot": _SYSTEM,
    r"wire (answer|cancel|forget|move) ": _PEER,
    r"agent --name B --join": _ELSEWHERE,
    r"(http|acp)://": _ELSEWHERE,
    r"(status|show|watch|record) LINK": _ELSEWHERE,
    r"agent --host 0.0.0.0": "announces itself on the network of this machine",
    r"bridge \S+ --host": "listens on an address that this machine does not have",
    r"act \S+ (hand_over|launch|relaunch|stop)\b|launch checkout --again": _LOOP,
    r"(answer|cancel|logs|nudge|stop) ": _LOOP,
    r"wire (agents|peers|send|stream|tasks|token)\b": _AGENTS,
    r"act checkout raise_budget": "needs an agent that reports its cost; see tests/loops/test_budgets.py",
    r"status --view triage": "needs the view of that page; see tests/fleet/test_views.py",
    r"launch (--once|--permissions)": "an option in a sentence, without a folder",
    r"append --summary-file|init --resume|cycle run --leave": "an option in a sentence, without the other ones",
    r"agent --name B --stdio": "talks to the program that starts it; see tests/protocols/wire/test_bindings.py",
    r"agent --open-loopback|continue --start|(replay|show) --json|mcp --no-wait": "an option in a sentence, without a folder",
    r"cycle (phase-result|select) ": "needs what an agent wrote; tests/protocols/cycle runs the command with it",
    r"recordings --forget": "needs a recording; see tests/history/test_past_commands.py",
    r"\[GROUP\]|FOLDER$|\./status": "a form, not a command",
}
"""Lines that cannot run here (how they begin, behind ``acp ``), with the reason."""


_BARE = re.compile(r"~?[\w@%+=:,./-]*")
"""A word that needs no quotes."""


def found() -> list[str]:
    """The lines of all pages, each once, without remarks; of those in sentences, only what is more than a name."""
    pages = [place for place in PAGES if place[-1] not in MADE_UP]
    said = {_plain(line) for page in pages for line in block_lines(page)}
    named = {_plain(line) for page in pages for line in lines(page)}
    return sorted(said | {line for line in named if tuple(line.split()) not in commands()})


def _plain(line: str) -> str:
    """A line without remarks, and without what is the shell's; its words are quoted where they must be."""
    words = shlex.split(line, comments=True)[1:]
    for shell in (">", "&"):
        words = words[: words.index(shell)] if shell in words else words
    return " ".join(
        word if _BARE.fullmatch(word) else shlex.quote(word) for word in words if word != "..."
    )


def reason(line: str) -> str:
    """Why a line cannot run here; "" where it can."""
    return next((why for begin, why in NOT_RUN.items() if re.search(rf"^(?:{begin})", line)), "")


def way(line: str) -> Way:
    """How a line runs.

    Raises:
        StopIteration: nothing says so.
    """
    return next(each for each in WAYS if re.match(each.pattern, line))


def to_run() -> Iterator[str]:
    """The lines that run."""
    return (line for line in found() if not reason(line))
