"""docs/codes.md: every code that a validator reports, and every code of a problem, made from their tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from acp_core.model.matter import Matter
from acp_core.protocols.cycle.rules.checks import CODES as CYCLE
from acp_core.protocols.folder.rules.codes import CODES as FOLDER
from acp_core.protocols.governed.rules.findings import CODES as GOVERNED
from acp_core.protocols.kit.kinds import PLACES, kind_of
from acp_core.protocols.wire.rules import RULES as WIRE
from acp_core.protocols.workspaces.rules import CODES as WORKSPACES
from tests.hygiene.problem_codes import ROOMS
from tests.hygiene.sources import ROOT

_PROTOCOLS = {
    "Participants and their agents, in every protocol": "",
    "Shared folders": "folder",
    "Agent workspaces": "workspaces",
    "Agents on the network": "wire",
    "Governed runs and initiatives": "governed",
    "Development cycles": "cycle",
}
"""By heading: the protocol's name in the code."""

PAGE = ROOT / "docs" / "codes.md"
TABLES: dict[str, Mapping[str, Iterable[str]]] = {
    "Shared folders": FOLDER,
    "Agent workspaces": WORKSPACES,
    "Agents on the network": {code: rule[1:] for code, rule in WIRE.items()},
    "Governed runs and initiatives": GOVERNED,
    "Development cycles": CYCLE,
}
"""By heading: what each code means, and what to do."""
_INTRODUCTION = """\
# Codes

<!-- made by python -m tests.hygiene.references -->

acp reports two kinds of codes: findings and problems.

## Findings

`acp validate FOLDER` checks a collaboration, and lists each finding with its severity, its code and its file. For shared folders it
prints the lines of the specification's script, which have no codes; `acp validate FOLDER --json`, `acp show FOLDER` and the dashboard
name the code, the file and the line of the same findings.

| severity | meaning | exit code of `acp validate` |
|---|---|---|
| error | the collaboration is invalid | 2 |
| warning | something is wrong, but the collaboration is valid | 1 |
| advice | something is unusual | 0; 1 with `--strict` |

A code never changes its meaning. The tables below say what a rule is for, and what to do if the finding itself does not
say it.

## Problems

`acp why FOLDER` explains why a collaboration is stuck. Each problem has a code, too: a letter and a number, or a name that
begins with `wire-`. The problem itself says what acp saw, and which command fixes it.

| code | what the problem is about |
|---|---|
| A0, A1, ... | damaged files, interrupted writes, a disk that cannot be written |
| B1, B2, ... | the participant whose turn it is: its agent or its loop |
| C1, C2, ... | a turn that is half done, or failed |
| D1, D2, ... | a gate or a barrier that is not met |
| E1, E2, ... | a decision of a person, or something outside the collaboration |
| `wire-...` | a connection, a peer or a task of an agent on the network |

`acp why`, `acp status`, `acp show`, `acp card` and the dashboard tell problems in one order: what refuses writes (0), what a person must
decide (1), other damage (2), what failed (3), what does not run (4), and remarks (5); of equals the oldest one first. A problem that
cannot be solved before another one is listed after it, as "follows from". `--json` of these commands has the same list as `matters`.

The same code can mean something else in another protocol: see [all problems](#all-problems) below.
"""


def page() -> str:
    """The text of the page."""
    return "\n".join([_INTRODUCTION, "## All findings\n", *_findings(), *_problems()])


def _findings() -> Iterator[str]:
    for heading, codes in TABLES.items():
        yield _table(heading, "why", sorted(codes.items()))


def _problems() -> Iterator[str]:
    yield "## All problems\n"
    for heading, room in ROOMS.items():
        rows = [
            (code, (*texts, *_urgency(_PROTOCOLS[heading], code)))
            for code, texts in room.codes.items()
        ]
        title = f"Problems: {heading[:1].lower()}{heading[1:]}"
        yield _table(title, "problem", rows, ("kind", "order"))


def _urgency(protocol: str, code: str) -> tuple[str, str]:
    """Which kind of matter a problem is, and its place in the order."""
    kind = kind_of(protocol, Matter(code, ""))
    return kind.value, str(PLACES[kind])


def _table(
    heading: str, what: str, rows: Iterable[tuple[str, Iterable[str]]], more: tuple[str, ...] = ()
) -> str:
    titles = ("code", what, "what to do", *more)
    lines = [f"### {heading}\n\n| {' | '.join(titles)} |\n{'|---' * len(titles)}|"]
    for code, texts in rows:
        cells = [text.replace("|", r"\|") for text in texts]
        lines.append(f"| {code} | {' | '.join(cells)} |")
    return "\n".join((*lines, ""))
