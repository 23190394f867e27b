"""A loop keeps the history although nobody watches: no dashboard, no recorder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from acp_core.agents.state import Phase
from acp_core.history.store import Store, open_recording
from tests.agents.support import wait_for
from tests.loops.support import append, command, log, make, start, wait_for_phase


def recorded(folder: Path) -> Store:
    store = open_recording(str(folder))
    assert store is not None
    return store


def test_what_a_loop_writes_and_what_it_sees_of_others_is_kept(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    first = (folder / "proposal.md").read_bytes()
    start(folder, "server", command(tmp_path))
    wait_for_phase(folder, "server", Phase.WAITING)
    written = (folder / "proposal.md").read_bytes()
    assert written != first
    append(folder, "reader", "review_submitted", 2)

    def kept() -> bool:
        store = recorded(folder)
        digests = {version.whole for version in store.versions("review.md")}
        store.close()
        return hashlib.sha256((folder / "review.md").read_bytes()).digest() in digests

    wait_for(kept, "the review to be recorded")
    store = recorded(folder)
    wholes = {store.content(v.id) for v in store.versions("proposal.md") if v.present}
    assert {first, written} <= wholes
    assert {span.program for span in store.spans()} == {"loop"}
    phases = [json.loads(change.content)["phase"] for change in store.loops()]
    assert "running" in phases and "waiting" in phases
    store.close()


def test_nothing_is_recorded_where_that_is_turned_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "settings"
    config.mkdir()
    (config / "config.toml").write_text("[recording]\non = false\n")
    monkeypatch.setenv("ACP_CONFIG", str(config))
    folder = make(tmp_path / "c")
    start(folder, "server", command(tmp_path))
    wait_for_phase(folder, "server", Phase.WAITING)
    assert open_recording(str(folder)) is None
    assert "not recorded" not in log(folder, "server")
