"""Two changes within one tick of a file system's clock leave the same stamp; both are seen."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from acp_core.files import reading
from acp_core.files.reading import Stamp, stamp_of
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.cycle.collaboration import open_cycles
from acp_core.protocols.governed.collaboration import open_folder as open_governed
from acp_core.protocols.kit import findings
from acp_core.protocols.workspaces.collaboration import open_workspaces
from tests.protocols.cycle import making as cycles
from tests.protocols.governed import making as governed
from tests.protocols.workspaces import making as workspaces

NOW = datetime.now(UTC)
PLAN = f"{cycles.PROGRESS}/ep/plan.json"


class Story(NamedTuple):
    """A collaboration, one of its files, and a word in it that the Snapshot tells."""

    make: Callable[[Path], object]
    open: Callable[[str], Collaboration]
    file: str
    word: bytes
    other: bytes


def a_cycle(root: Path) -> None:
    cycles.cycle(root)


def a_cycle_with_a_plan(root: Path) -> None:
    cycles.cycle(root)
    cycles.write(root, PLAN, {"version": "1.0.0", "tasks": [cycles.task("T1")]})


STORIES = {
    "the state of a cycle": Story(a_cycle, open_cycles, cycles.STATE, b"Export", b"Import"),
    "a file of a cycle that is kept between readings": Story(
        a_cycle_with_a_plan, open_cycles, PLAN, b"T1", b"T9"
    ),
    "a status of an agent with a workspace": Story(
        workspaces.run, open_workspaces, "agent-workspaces/ann/status.json", b"success", b"failure"
    ),
    "the configuration of a governed run": Story(
        governed.make_run, open_governed, "agentxchain.json", b"Light", b"Paint"
    ),
    "the description of an initiative": Story(
        lambda root: governed.make_initiative(root, core=governed.state()),
        open_governed, "agentxchain-multi.json", b"Light", b"Paint",
    ),
}  # fmt: skip


def coarse(found: os.stat_result) -> Stamp:
    """A file's stamp where no clock tells two writes apart."""
    return stamp_of(found)._replace(changed=0)


@pytest.fixture(autouse=True)
def one_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "stamp_of", coarse)
    monkeypatch.setattr(findings, "stamp_of", coarse)


def rewrite(path: Path, old: bytes, new: bytes, at: int) -> None:
    """Change a file in place; its size and its time stay."""
    data = path.read_bytes()
    assert old in data and len(old) == len(new)
    with path.open("r+b") as opened:
        opened.write(data.replace(old, new))
    os.utime(path, ns=(at, at))


@pytest.mark.parametrize("name", STORIES)
def test_both_changes_are_seen(tmp_path: Path, name: str) -> None:
    story = STORIES[name]
    story.make(tmp_path)
    path, at = tmp_path / story.file, time.time_ns() + 60 * 10**9  # just now, however slow it is
    os.utime(path, ns=(at, at))
    opened = story.open(str(tmp_path))
    opened.refresh(NOW)  # what it tells of other files is looked at from the second one on
    first = opened.refresh(NOW)
    rewrite(path, story.word, story.other, at)
    second = opened.refresh(NOW + timedelta(seconds=1))
    assert second != first and story.other.decode() in repr(second)


@pytest.mark.parametrize("name", STORIES)
def test_a_file_that_stays_as_it_was_leaves_the_snapshot(tmp_path: Path, name: str) -> None:
    story = STORIES[name]
    story.make(tmp_path)
    path, at = tmp_path / story.file, time.time_ns() + 60 * 10**9
    os.utime(path, ns=(at, at))
    opened = story.open(str(tmp_path))
    first = opened.refresh(NOW)
    assert opened.refresh(NOW) is first


def test_text_that_nobody_sees_is_found_in_both(tmp_path: Path) -> None:
    a_cycle(tmp_path)
    path, at = tmp_path / cycles.STATE, time.time_ns() + 60 * 10**9
    rewrite(path, b"Add CSV", b"Add CSV", at)
    opened = open_cycles(str(tmp_path))
    assert "A24" not in {each.code for each in opened.refresh(NOW).findings}
    rewrite(path, b"Add CSV", "Add\u200bC".encode(), at)
    found = opened.refresh(NOW + timedelta(seconds=1)).findings
    assert any("cannot see" in each.message for each in found)
