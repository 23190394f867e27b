"""What an agent left in its folder, read once its run has ended."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.read import board, state_file
from acp_core.protocols.cycle.schema import Object
from acp_core.protocols.cycle.write import layout

_HEADING = re.compile(r"^#{1,4} +Questions for (RA|EP)\b", re.IGNORECASE)
_ITEM = re.compile(r"^\s*[-*] +(?:\[ \] +)?(.+?)\s*$")
_SPARE = timedelta(seconds=3)  # clocks of file systems tick coarsely


@dataclass(frozen=True, slots=True)
class Facts:
    """What stands in an agent's folder.

    Attributes:
        version: the highest version that its documents name, "" for none.
        files: all of them, as the state lists them.
        plan: EP's plan.json.
        tests: VAS's test-results.json, {} where it was not written in this run.
        stale: VAS's results are there, but older than the run.
        questions: CD's open questions, each begun with whom it asks.
        blocking: discoveries of the shared board that block, and who told each.
    """

    version: str = ""
    files: tuple[str, ...] = ()
    plan: Object = field(default_factory=dict)
    tests: Object = field(default_factory=dict)
    stale: bool = False
    questions: tuple[str, ...] = ()
    blocking: tuple[tuple[str, str], ...] = ()


def read(progress: Path, agent: str, started: datetime | None) -> Facts:
    """Look into an agent's folder.

    Args:
        progress: the cycle's progress folder.
        agent: whose folder.
        started: when its run began; results of before do not count.
    """
    plan: Object = {}
    tests: Object = {}
    stale, questions = False, []
    if agent == "ep":
        plan = layout.read_json(progress / "ep" / "plan.json")
    elif agent == "cd":
        questions = open_questions(layout.read(progress / "cd" / "issues.md"))
    elif agent == "vas":
        path = progress / "vas" / "test-results.json"
        tests = layout.read_json(path)
        if tests and started and state_file.is_regular(path):
            stale = path.stat().st_mtime < (started - _SPARE).timestamp()
        tests = {} if stale else tests
    return Facts(
        layout.version_of_agent(progress, agent),
        tuple(layout.listed(progress, agent)),
        plan,
        tests,
        stale,
        tuple(questions),
        blocking(layout.read(progress / board.BOARD)),
    )


def blocking(text: str) -> tuple[tuple[str, str], ...]:
    """The discoveries of a board that block: who told each, and what it is."""
    found = [each for each in board.distinct(board.read(text)) if board.blocks(each)]
    return tuple((each.agent, schema.text(each.data.get("issue"))) for each in found)[:50]


def open_questions(issues: str) -> list[str]:
    """The questions of issues.md that are not ticked off, as "RA: question"."""
    found, whom = [], ""
    for line in issues.splitlines()[:5_000]:
        heading = _HEADING.match(line)
        if heading:
            whom = heading[1].upper()
        elif line.startswith("#"):
            whom = ""
        elif whom and (item := _ITEM.match(line)):
            said = item[1]
            if not said.startswith(("[x]", "[X]", "~~", "\u2713")) and said.lower() != "none":
                found.append(f"{whom}: {said}")
    return found[:50]
