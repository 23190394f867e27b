"""Commands that `acp why`, `status`, `show` and `card` print: each names all that must be said.

The goldens' states are looked at as their commands look at them, in this process.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.cli.act import spec_of
from acp_core.cli.matters import verdict_command
from acp_core.cli.output import act_command, fitting
from acp_core.diagnosis import actions, cards
from acp_core.fleet import Fleet
from acp_core.model import Snapshot
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.kit.command import placeholder
from acp_core.protocols.locations import find
from tests.cli.support import Acp
from tests.golden.states import all_states
from tests.protocols.folder.support import make_v1

STATES = all_states()
STORIES = (
    "folder/blocked",
    "folder/human-reviews",
    "governed/run-turn-given-out",
    "governed/run-gate-waits",
    "governed/initiative-gate-open",
    "workspaces/partial",
    "cycle/decision_open",
)
"""States in which an act is offered that needs words of a person."""


def printed(fleet: Fleet, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """The acts that are printed for a collaboration, each with its command."""
    for cause in snapshot.causes:
        if cause.remedy:
            yield cause.remedy, act_command(snapshot, cause.remedy, cause.given)
        for other in cause.others:
            yield other, act_command(snapshot, other, fitting(snapshot, other, cause.given))
    for need in snapshot.needs:
        if need.remedy:
            yield need.remedy, act_command(snapshot, need.remedy, need.given)
    now = utc_now()
    for card in fleet.call_sync(snapshot.key, lambda opened: cards.cards(opened, snapshot, now)):
        for number, verdict in enumerate(card.verdicts):
            yield verdict.action, verdict_command(card, number, snapshot)


def wrong(fleet: Fleet, snapshot: Snapshot, name: str, line: str) -> list[str]:
    """What the command of an act leaves out, or asks for although it has a default."""
    try:
        action = fleet.call_sync(
            snapshot.key, lambda opened: actions.action(opened, snapshot, name)
        )
    except Refused:
        return []  # it says by itself what comes first
    words, found = shlex.split(line), []
    for field in spec_of(action).fields if action else ():
        needed = field.required and field.default in (None, "", [], ())
        at = words.index(field.option) + 1 if field.option in words else 0
        value = words[at] if 0 < at < len(words) else ""
        asked = value == placeholder(field) and value.isupper()
        if needed and (not value or value.startswith("--")):
            found.append(f"{field.option} is missing: {line}")
        if asked and field.required and not needed:
            found.append(f"{field.option} has a default: {line}")
    return found


def wrong_in(root: Path) -> list[str]:
    """What is wrong in all commands that are printed for what stands there."""
    fleet, found = Fleet([root], discover=False), []
    try:
        for snapshot in fleet.read():
            for name, line in list(printed(fleet, snapshot)) if find(snapshot.key) else ():
                found += wrong(fleet, snapshot, name, line)
    finally:
        asyncio.run(fleet.close())
    return found


@pytest.mark.parametrize(
    "state",
    [
        *STORIES,
        *(pytest.param(each, marks=pytest.mark.slow) for each in STATES if each not in STORIES),
    ],
)
def test_a_printed_command_names_all_that_its_act_needs(tmp_path: Path, state: str) -> None:
    place = tmp_path / "work"
    place.mkdir()
    assert wrong_in(STATES[state].build(place)) == []


def test_why_says_what_to_write_where_a_blocked_folder_is_continued(acp: Acp) -> None:
    make_v1(acp.home / "cache", "reviewing", blocked="No access to the sandbox")
    lines = [line.strip() for line in acp("why", "cache").stdout.splitlines()]
    at = lines.index("acp act cache continue --answer TEXT")
    assert lines[at + 1] == "you choose TEXT: add --help to see what is possible"
    done = acp("act", "cache", "continue", "--answer", "Use the shared account", "--yes")
    assert done.returncode == 0, done.stderr
    assert (acp.home / "cache-2" / "protocol.json").exists()
