"""The coordinator's lost state is made again from its ledger, and proves no approval that was none."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.protocols.governed import making, multi
from tests.protocols.governed.acting import (
    acted,
    coordinator,
    initiative_actions,
    open_folder,
    refused,
    reject_barrier,
    seen,
    step,
)
from tests.protocols.governed.making import Object
from tests.protocols.governed.multi import NAMES, NOW, approve, asks, begin, ledger, state

YES = ("--by", "Ann", "--yes")


def lose(root: Path, content: str | None = "{") -> Object:
    """The coordinator's state is lost; returns what it was."""
    before = state(root)
    place = root / ".coordinator/state.json"
    place.unlink()
    if content is not None:
        place.write_text(content)
    return before


def without_times(value: Object) -> Object:
    return {key: each for key, each in value.items() if key != "updated_at"}


def nothing(root: Path) -> None:
    begin(root)
    step(root)


def one_there(root: Path) -> None:
    begin(root)
    asks(root, "auth")
    step(root)


def gate_open(root: Path) -> None:
    begin(root)
    multi.all_ask(root)
    step(root)


def crossed(root: Path) -> None:
    gate_open(root)
    assert not approve(root).failed


def rejected(root: Path) -> None:
    gate_open(root)
    reject_barrier(root, "No test", ["web"])


def resync_failed(root: Path) -> None:
    gate_open(root)
    place = root / "web/.agentxchain/state.json"
    good = place.read_bytes()
    place.unlink()
    assert approve(root).failed
    place.write_bytes(good)
    step(root)


def completed(root: Path) -> None:
    crossed(root)
    for name in NAMES:
        moved = state(root, name) | {"phase": "verification"}
        making.write(root / name / ".agentxchain/state.json", moved)
    multi.all_ask(root)
    assert not approve(root).failed


@pytest.mark.parametrize("lost", [None, "{", "", "[]"])
@pytest.mark.parametrize(
    "make", [nothing, one_there, gate_open, crossed, rejected, resync_failed, completed]
)
def test_what_the_ledger_tells_is_the_state_again(
    tmp_path: Path, make: Any, lost: str | None
) -> None:
    make(tmp_path)
    before, lines = lose(tmp_path, lost), len(ledger(tmp_path))
    acted("coordinator", "mend-state", tmp_path, *YES)
    assert without_times(state(tmp_path)) == without_times(before)
    assert [line["type"] for line in ledger(tmp_path)][lines:] == ["coordinator_mended"]
    kept = list((tmp_path / ".coordinator").glob("state.json.damaged-*"))
    assert [path.read_text() for path in kept] == ([] if lost is None else [lost])


def test_the_cure_is_offered_by_why_and_by_refusals_and_is_done_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crossed(tmp_path)
    lose(tmp_path)
    opened = open_folder(tmp_path)
    snapshot = opened.refresh(NOW)
    cause = next(c for c in opened.causes(DiagnosisContext(snapshot, Clock(NOW))) if c.code == "A1")
    assert cause.remedy == "mend_state" in {each.name for each in initiative_actions(tmp_path)}
    (obstacle,) = snapshot.obstacles  # and no crossing that only the lost state could deny
    assert obstacle.key == cause.key and "mend-state" in obstacle.instruction
    assert "mend_state" in obstacle.refuses
    assert coordinator(["step", str(tmp_path)]) == 2
    refused = capsys.readouterr().err
    assert "acp governed coordinator mend-state" in refused
    words = shlex.split(refused.rpartition("acp governed coordinator ")[2])
    assert coordinator([*words, *YES]) == 0
    assert coordinator(["step", str(tmp_path)]) == 0
    assert coordinator(["mend-state", str(tmp_path), *YES]) == 2
    assert "it can be read" in capsys.readouterr().err
    assert "mend_state" not in {each.name for each in initiative_actions(tmp_path)}


def test_a_lost_state_starts_no_second_initiative(tmp_path: Path) -> None:
    begin(tmp_path)
    lose(tmp_path, None)
    snapshot = seen(tmp_path, NOW)
    assert snapshot.headline == "its state is lost." and snapshot.turns == ()
    told = acted("coordinator", "status", tmp_path)
    assert ": lost\n  error: .coordinator/state.json is lost: acp governed coordinator" in told
    assert "  barrier " not in told
    assert "its state is lost" in refused("coordinator", "init", tmp_path, *YES)
    assert not (tmp_path / ".coordinator/state.json").exists()


def test_an_approval_that_the_ledger_does_not_tell_of_is_none(tmp_path: Path) -> None:
    """A workstream's state may be anybody's writing; only the ledger proves what a human said."""
    crossed(tmp_path)
    lose(tmp_path)
    place = tmp_path / ".coordinator/ledger.jsonl"
    lines = [line for line in place.read_text().splitlines(keepends=True)
             if '"barrier_approved"' not in line and '"resync"' not in line]  # fmt: skip
    place.write_text("".join(lines))
    acted("coordinator", "mend-state", tmp_path, *YES)
    assert state(tmp_path)["status"] == "blocked:barrier_crossed"
    assert state(tmp_path)["barriers"]["plan-sync"]["approved_at"] is None


def test_a_damaged_ledger_makes_no_state(tmp_path: Path) -> None:
    begin(tmp_path)
    lose(tmp_path)
    with (tmp_path / ".coordinator/ledger.jsonl").open("a") as log:
        log.write("{\n")
    assert "its ledger, line" in refused("coordinator", "mend-state", tmp_path, *YES)


@pytest.mark.parametrize(
    ("phase", "barrier"),
    [("planning", "plan-sync"), ("implementation", "ship-sync"), ("verification", "ship-sync")],
)
def test_a_failure_names_the_barrier_that_waits_for_it(
    tmp_path: Path, phase: str, barrier: str
) -> None:
    crossed(tmp_path) if phase != "planning" else begin(tmp_path)
    failed = state(tmp_path, "web") | {
        "phase": phase, "status": "blocked", "blocked_on": "human:no bulb",
        "blocked_reason": {"category": "needs_human"},
    }  # fmt: skip
    making.write(tmp_path / "web/.agentxchain/state.json", failed)
    step(tmp_path)
    [line] = [each for each in ledger(tmp_path) if each["type"] == "workstream_failed"]
    assert line["barrier"] == barrier
