"""Every loop of a test keeps its state in the test's own folder, and none outlives the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.support import end_what_runs
from tests.loops.support import stop_all


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path / "config"))
    yield
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))  # whatever the test has made of it
    stop_all()
    end_what_runs(tmp_path)
