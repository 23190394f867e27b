"""A resync that is killed at every step: the next command finds all workstreams past, or none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from acp_core.protocols.governed.read import own_writes
from tests.protocols.governed import making, multi
from tests.protocols.governed.acting import coordinator, open_folder, step
from tests.protocols.governed.killing import killed_at
from tests.protocols.governed.multi import NOW, approve, begin, ledger, state


def phases(root: Path, names: tuple[str, ...]) -> set[str]:
    return {state(root, name)["phase"] for name in names}


def lines(root: Path, name: str) -> list[str]:
    log = root / name / ".agentxchain/decision-ledger.jsonl"
    return [json.loads(line).get("type", "decision") for line in log.read_text().splitlines()]


def killed_everywhere(tmp_path: Path, names: tuple[str, ...], every: int) -> set[str]:
    """Approve, killed before every operation on files (every so manieth): what was seen then."""
    whole = begin(tmp_path / "whole", names)
    multi.all_ask(whole, names)
    step(whole)
    number, seen = 1, set()
    while True:
        root = tmp_path / str(number)
        shutil.copytree(whole, root, symlinks=True)
        if not killed_at(number, root, lambda root=root: approve(root)):
            break
        left = own_writes.interrupted(root, own_writes.COORDINATOR_HOME)
        snapshot = open_folder(root).refresh(NOW)
        codes = {finding.code for finding in snapshot.findings}
        if left:
            seen.add(f"{left.done} of {left.total}")
            assert "approve plan-sync" in left.what or "note" in left.what
            assert "INTERRUPTED" in codes and "BARRIER_CROSSED" not in codes
        else:
            assert len(phases(root, names)) == 1 and "BARRIER_CROSSED" not in codes
        step(root)
        after = phases(root, names)
        assert len(after) == 1, (number, after)
        approved = state(root)["barriers"]["plan-sync"]["status"] == "approved"
        assert after == ({"implementation"} if approved else {"planning"})
        kinds = [line["type"] for line in ledger(root)]
        assert kinds.count("barrier_approved") == kinds.count("resync") == int(approved)
        for name in names:
            assert lines(root, name).count("gate_approved") == int(approved)
        assert own_writes.interrupted(root, own_writes.COORDINATOR_HOME) is None
        shutil.rmtree(root)
        number += every
    assert number > 20
    return seen


@pytest.mark.slow
def test_a_killed_resync_is_completed_or_was_not_begun(tmp_path: Path) -> None:
    assert killed_everywhere(tmp_path, ("auth", "web"), every=7)


@pytest.mark.slow
def test_a_resync_is_killed_before_each_operation(tmp_path: Path) -> None:
    seen = killed_everywhere(tmp_path, multi.NAMES, every=1)
    assert {each.split()[0] for each in seen} >= {str(n) for n in range(10)}


@pytest.mark.slow
def test_a_start_is_killed_before_each_operation(tmp_path: Path) -> None:
    for name in ("auth", "web"):
        multi.repository(tmp_path / "whole" / name)
    making.write(tmp_path / "whole/agentxchain-multi.json", multi.configuration(("auth", "web")))
    number = 1
    while True:
        root = tmp_path / str(number)
        shutil.copytree(tmp_path / "whole", root, symlinks=True)

        def start(root: Path = root) -> int:
            return coordinator(["init", str(root), "--as", "Ann", "--yes", "--json"])

        if not killed_at(number, root, start):
            break
        left = own_writes.interrupted(root, own_writes.COORDINATOR_HOME)
        begun = (root / ".coordinator/state.json").exists() and not left
        assert start() == (2 if begun else 0)
        step(root)
        assert [line["type"] for line in ledger(root)] == [
            "initiative_started", *["workstream_linked"] * 2
        ]  # fmt: skip
        assert {state(root, name)["super_run_id"] for name in ("auth", "web")} == {multi.SUPER}
        shutil.rmtree(root)
        number += 1
    assert number > 15
