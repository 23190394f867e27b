"""What another process writes as one while it is read is seen whole: as before the write, or after it."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from acp_core.model import Snapshot
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.cycle.acts.table import COMMANDS as CYCLE
from acp_core.protocols.cycle.collaboration import open_cycles
from acp_core.protocols.cycle.read import scan as cycle_scan
from acp_core.protocols.kit.snapshots import READINGS, steadily
from acp_core.protocols.workspaces.acts.table import COMMANDS as WORKSPACES
from acp_core.protocols.workspaces.collaboration import open_workspaces
from acp_core.protocols.workspaces.read import scan as workspaces_scan
from tests.golden.states import all_states

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def told(snapshot: Snapshot) -> dict[str, Any]:
    """What is told of it, but for how it compares with an earlier reading."""
    return {
        name: getattr(snapshot, name)
        for name in ("headline", "status", "needs", "findings", "turns", "panels", "events")
    }


def test_workspaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = all_states()["workspaces/partial"].build(tmp_path)
    words = ["triage", str(root), "ben", "accept", "--reason", "Enough"]
    check(open_workspaces, root, monkeypatch, workspaces_scan, "read_record", WORKSPACES, words)


def test_cycles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = all_states()["cycle/decision_open"].build(tmp_path)
    words = ["decide", "DEC-001", "1", "--folder", str(root)]
    check(open_cycles, root, monkeypatch, cycle_scan, "filled", CYCLE, words)


def check(
    open_: Callable[[str], Collaboration],
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    commands: Any,
    words: list[str],
) -> None:
    """A command writes while the first file is read."""
    real, calls = getattr(module, name), []

    def reading(*given: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            assert commands.main(words) == 0
        return real(*given)

    before = told(open_(os.fspath(root)).refresh(NOW))
    monkeypatch.setattr(module, name, reading)
    seen = told(open_(os.fspath(root)).refresh(NOW))
    monkeypatch.undo()
    after = told(open_(os.fspath(root)).refresh(NOW))
    assert before != after
    assert seen == after


def test_a_writer_that_never_rests_is_not_waited_for() -> None:
    looks, readings = iter(range(100)), iter(range(100))
    assert steadily(lambda: next(readings), lambda: next(looks)) == READINGS - 1
    assert steadily(lambda: "once", lambda: 0) == "once"
