"""A cycle that is recorded can be looked at as it stood at any moment."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from acp_core.history.store import open_recording
from acp_core.model.clock import utc_now
from tests.agents.support import ROOT, wait_for
from tests.protocols.cycle import conducting
from tests.protocols.cycle.conducting import ID, done

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def versions(root: Path, name: str) -> list[bytes]:
    store = open_recording(str(root))
    if store is None:
        return []
    try:
        return [store.content(each.id) or b"" for each in store.versions(name) if each.present]
    finally:
        store.close()


@pytest.mark.slow
def test_a_recorded_cycle_is_replayed_as_it_stood(tmp_path: Path) -> None:
    name = f".workflow/.cycle/{ID}.json"
    done(tmp_path, "start", conducting.WHAT, "--cycle", ID, "--no-run")
    command = [sys.executable, "-m", "acp_tui", "record", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as recorder:
        try:
            wait_for(lambda: versions(tmp_path, name), "a recording")
            conducting.behave(tmp_path, cd=["ask user"], ra=["sleep 1"], vas=["sleep 1"])
            done(tmp_path, "run", "--command", conducting.AGENT)
            conducting.wait_for_status(tmp_path, "paused")
            wait_for(
                lambda: json.loads(versions(tmp_path, name)[-1])["status"] == "paused",
                "the escalation to be recorded",
            )
            asked = utc_now().isoformat()
            time.sleep(1)  # so that the moment lies clearly before what follows
            done(tmp_path, "decide", "DEC-001", "1")
            conducting.wait_for_end(tmp_path)
            wait_for(
                lambda: json.loads(versions(tmp_path, name)[-1])["status"] == "completed",
                "the end to be recorded",
            )
        finally:
            recorder.terminate()
    seen = [json.loads(each)["status"] for each in versions(tmp_path, name)]
    assert seen[0] == "running"
    assert seen[-1] == "completed"
    assert "paused" in seen
    timeline = f".workflow/.cycle/{ID}.progress/coordination/timeline.md"
    kept = versions(tmp_path, timeline)
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(kept))
    assert "orchestrator: escalated" in replay(tmp_path)
    then = replay(tmp_path, "--at", asked)
    assert "paused, a decision is open" in then
    assert "completed;" not in then and "marked completed" not in then


def replay(root: Path, *words: str) -> str:
    command = [sys.executable, "-m", "acp_tui", "replay", str(root), *words]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
