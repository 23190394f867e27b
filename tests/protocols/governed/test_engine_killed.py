"""A command that is killed at any moment: the next one finds all of it done, or nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.model.errors import Refused
from acp_core.protocols.governed.read.own_writes import interrupted
from tests.protocols.governed.acting import (
    accept,
    approve_gate,
    dispatch,
    escalate,
    initialise,
    recover,
    reject_gate,
    reject_turn,
    seen,
    start,
    state,
    unblock,
)
from tests.protocols.governed.killing import killed_at

NOW = datetime.now(UTC)
Shape = tuple[object, ...]


def shape(root: Path) -> Shape:
    """What of a run must belong together, whatever the ids and times are."""
    home, at = root / ".agentxchain", state(root)

    def lines(name: str) -> int:
        path = home / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return sum(1 for line in text.splitlines() if json.loads(line))

    return (
        at["status"], at["phase"], at["turn_sequence"],
        [(turn["status"], turn["attempt"]) for turn in at["active_turns"].values()],
        lines("history.jsonl"), lines("decision-ledger.jsonl"), lines("events.jsonl"),
        (root / "TALK.md").read_text(encoding="utf-8").count("## Turn"),
        sum(1 for p in (home / "staging").rglob("*") if p.is_file()),
        sum(1 for p in (home / "dispatch").rglob("*") if p.is_file()),
    )  # fmt: skip


def survives(tmp_path: Path, root: Path, work: Callable[[Path], object]) -> None:
    """Kill ``work`` before each of its operations on files, and look at what the next one finds."""
    before, whole = shape(root), tmp_path / "whole"
    shutil.copytree(root, whole)
    work(whole)
    after = shape(whole)
    assert after != before
    outcomes = set()
    for number in range(1, 400):
        one = tmp_path / f"one-{number}"
        shutil.copytree(root, one)
        killed = killed_at(number, one, lambda one=one: work(one))  # type: ignore[misc]
        left = interrupted(one)
        seen(one, NOW)  # reading it in between is no trouble
        recover(one, NOW)
        found = shape(one)
        assert found in (before, after), f"killed before operation {number}"
        assert interrupted(one) is None
        if left is not None:
            assert found == after  # what the journal holds is done
        outcomes.add(found == after)
        shutil.rmtree(one)
        if not killed:
            assert outcomes == {True, False}
            return
    raise AssertionError("it never ends")


def accepted(tmp_path: Path) -> Path:
    """A run whose first gate waits."""
    root = start(tmp_path / "lamp")
    given = dispatch(root, now=NOW)
    from acp_core.protocols.governed.conduct.taking import take

    assert take(root, given.turn_id).staged
    accept(root, now=NOW)
    return root


@pytest.mark.slow
def test_approving_a_gate(tmp_path: Path) -> None:
    root = accepted(tmp_path)
    survives(
        tmp_path, root, lambda one: approve_gate(one, "phase_transition", "olga", "Good.", NOW)
    )


@pytest.mark.slow
def test_a_step(tmp_path: Path) -> None:
    survives(tmp_path, start(tmp_path / "lamp"), lambda one: dispatch(one, now=NOW))


@pytest.mark.slow
def test_accepting_and_rejecting_a_turn(tmp_path: Path, root: Path) -> None:
    given = dispatch(root, now=NOW)
    from acp_core.protocols.governed.conduct.taking import take

    assert take(root, given.turn_id).staged
    (tmp_path / "a").mkdir()
    survives(tmp_path / "a", root, lambda one: accept(one, now=NOW))
    (tmp_path / "b").mkdir()
    survives(tmp_path / "b", root, lambda one: reject_turn(one, "Dull", by="olga", now=NOW))


@pytest.mark.slow
def test_rejecting_a_gate_escalating_and_unblocking(tmp_path: Path) -> None:
    root = accepted(tmp_path)
    (tmp_path / "a").mkdir()
    survives(tmp_path / "a", root, lambda one: reject_gate(one, "No switch.", "olga", NOW))
    reject_gate(root, "No switch.", "olga", NOW)
    (tmp_path / "b").mkdir()
    survives(tmp_path / "b", root, lambda one: escalate(one, "Legal", by="olga", now=NOW))
    escalate(root, "Legal", by="olga", now=NOW)
    (tmp_path / "c").mkdir()
    survives(tmp_path / "c", root, lambda one: unblock(one, "olga", "Settled.", NOW))


@pytest.mark.slow
def test_starting_a_run(tmp_path: Path) -> None:
    for number in range(1, 400):
        root = tmp_path / f"one-{number}"
        root.mkdir()

        def work(root: Path = root) -> object:
            return initialise(root, "", now=NOW)

        killed = killed_at(number, root, work)
        try:
            work()
        except Refused as error:
            assert "already contains" in str(error)  # it was done before it was killed
        assert interrupted(root) is None
        assert state(root)["status"] == "idle"
        assert not seen(root, NOW).findings
        dispatch(root, now=NOW)
        if not killed:
            return
    raise AssertionError("it never ends")
