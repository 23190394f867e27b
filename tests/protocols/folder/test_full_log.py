"""A log that has reached the limit: everybody says so, and continuing in a new folder leads on."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.diagnosis import actions
from acp_core.diagnosis.engine import diagnose, with_standing
from acp_core.model import Snapshot
from acp_core.protocols.folder.rules.checks import validate
from acp_core.protocols.folder.schema import records
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.protocols.folder.acting import (
    FolderCollaboration,
    acp,
    append,
    block,
    files,
    open_folder,
)
from tests.protocols.folder.support import age, extend, make_v1, read_protocol

Fill = Callable[[Path, pytest.MonkeyPatch], None]
REACHED = "events.jsonl has reached acp's limit"


def last_line(folder: Path, limits: pytest.MonkeyPatch) -> None:
    """The last line that is read is taken."""
    limits.setattr(records, "MAX_LINES", 2)


def too_many_lines(folder: Path, limits: pytest.MonkeyPatch) -> None:
    """A program wrote lines that are no events, and more of them than are read."""
    limits.setattr(records, "MAX_LINES", 1_000)
    extend(folder, b"\n" * 2_000)


def no_room(folder: Path, limits: pytest.MonkeyPatch) -> None:
    """The longest line that may be appended has no room any more."""
    limits.setattr(records, "MAX_LINE", 1_000)
    limits.setattr(records, "MAX_LOG", (folder / "events.jsonl").stat().st_size + 999)


def too_large(folder: Path, limits: pytest.MonkeyPatch) -> None:
    """Somebody writes without end, and not even lines."""
    limits.setattr(records, "MAX_LOG", 3_000_000)
    with (folder / "events.jsonl").open("ab") as log:
        log.truncate(4_000_000)


FULL: tuple[Fill, ...] = (last_line, too_many_lines, no_room, too_large)


@pytest.fixture(params=FULL, ids=lambda fill: fill.__name__)
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collaboration in its first review, whose log takes no more."""
    made = make_v1(tmp_path / "run", "reviewing")
    request.param(made, monkeypatch)
    age(made)
    return made


def read(folder: Path) -> tuple[FolderCollaboration, Snapshot]:
    now = datetime.now(UTC)
    opened = open_folder(folder)
    seen = opened.refresh(now)
    return opened, with_standing(seen, diagnose(opened, DiagnosisContext(seen, Clock(now))), None)


def test_everybody_says_that_no_event_can_follow(folder: Path) -> None:
    opened, seen = read(folder)
    (obstacle,) = seen.obstacles
    assert obstacle.sentence.startswith(REACHED)
    (first, *others) = [cause for cause in seen.causes if cause.wanted]
    assert (first.key, first.remedy) == (
        obstacle.key,
        "continue",
    ) and first.instruction == obstacle.instruction
    assert not [each for each in others if each.about.document == "events.jsonl"], others
    offered = {each.name for each in actions.actions(opened, seen) if not each.personal}
    assert "continue" in offered <= {"continue", "launch", "launch_all"}

    before = files(folder)
    for ran in (append(folder, "reader", "review_submitted", 2), block(folder)):
        assert ran.code == 2 and ran.err.startswith(f"error: {REACHED}"), ran
    assert "run `acp continue" in ran.err
    assert f"cannot be repaired: {REACHED}" in acp("repair", folder, "--yes").out
    assert files(folder) == before
    said = acp("next", "--folder", folder, "--participant", "reader").out.splitlines()[-1]
    assert said.startswith(f"next action: stop: {REACHED}")
    turn = opened.turn("reader", datetime.now(UTC))
    assert not turn.waited and REACHED in turn.trouble


def test_the_command_that_it_prints_leads_on(folder: Path, tmp_path: Path) -> None:
    _, seen = read(folder)
    command = seen.obstacles[0].instruction.split("`")[1]
    ran = acp(*shlex.split(command)[1:])
    new = tmp_path / "run-2"
    assert ran.code == 0 and ran.out == f"Continued in {new}\n", ran
    assert validate(new).lines() == ["ACP validation passed"]
    assert read_protocol(new)["continues"]["phase"] == "reviewing"
    proposal = (new / "proposal.md").read_text()
    assert "had reached the limit of acp" in proposal and "Push, then poll." in proposal

    opened, seen = read(folder)
    assert not any(cause.wanted for cause in seen.causes), seen.causes
    assert str(new) in seen.obstacles[0].instruction
    assert not opened.turn("reader", datetime.now(UTC)).waited
    again = acp("continue", folder)
    assert again.code == 0 and str(new) in again.out


def test_one_that_was_blocked_asks_for_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_v1(tmp_path / "run", "reviewing", blocked="Nobody knows the budget.")
    no_room(folder, monkeypatch)
    _, seen = read(folder)
    assert "--answer TEXT" in seen.obstacles[0].instruction
    assert acp("continue", folder).code == 2
    assert acp("continue", folder, "--answer", "20 days.").code == 0


def test_one_that_is_complete_lacks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_v1(tmp_path / "run", "completed")
    no_room(folder, monkeypatch)
    _, seen = read(folder)
    assert not seen.obstacles and not any(cause.wanted for cause in seen.causes)
    assert block(folder).err.endswith("is not allowed from phase completed\n")
