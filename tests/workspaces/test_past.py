"""A run that is over can be gone through again: what was kept of it, and where its time went."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.cli.support import Acp
from tests.workspaces.making import NOW, agent, integrate, read, run, write
from tests.workspaces.making import open_workspaces as open_run

COORD = "agent-workspaces/.coord"
OWN = "agent-workspaces/ann"


def planned(root: Path) -> Path:
    """A run whose orchestrator wrote down when it dispatched whom."""
    entries = [
        {"agent": name, "task_id": f"{name}-part", "dispatched_at": "2026-03-01T09:50:00.500Z"}
        for name in ("ann", "ben")
    ]
    write(run(root), f"{COORD}/manifest.json", {"agents": entries})
    return root


def test_a_recording_keeps_what_tells_of_the_run(tmp_path: Path) -> None:
    root = planned(tmp_path)
    write(root, f"{OWN}/scratch/x.txt", "x")
    write(root, "README.md", "x")
    os.symlink("/etc/passwd", root / OWN / "link.md")
    opened = open_run(str(root))
    assert opened.kept() == ()
    snapshot = opened.refresh(NOW)
    kept = {each.name: each for each in opened.kept()}
    for name in (f"{OWN}/status.json", f"{OWN}/output.md", f"{COORD}/manifest.json"):
        assert kept[name].path == str(root / name)
        assert snapshot.document(kept[name].document) is not None
    assert not any("scratch" in name or "link" in name or "README" in name for name in kept)


def test_a_run_is_replayed_and_its_time_is_told(tmp_path: Path) -> None:
    acp, root = Acp(tmp_path), planned(tmp_path / "queues")
    (root / OWN / "status.json").unlink()
    assert acp("record", "--once", str(root)).returncode == 0
    agent(root, "ann", "partial")
    integrate(root)
    assert acp("record", "--once", str(root)).returncode == 0
    told = json.loads(acp("replay", str(root), "--json").stdout)
    names = [each["name"] for each in told["moments"] if each["kind"] == "event"]
    assert "partial:ann" in names and "integrated:final-output.md" in names
    then = acp("replay", str(root), "--at", "dispatched:ann-part", "--json")
    assert then.returncode == 0, then.stderr
    stats = acp("stats", str(root), "--json")
    assert stats.returncode == 0, stats.stderr
    assert "attempts" in stats.stdout
    assert acp("report", str(root)).returncode == 0


def test_whoever_was_dispatched_had_a_turn(tmp_path: Path) -> None:
    opened = open_run(str(planned(tmp_path)))
    opened.refresh(NOW)
    turns = {turn.participant: turn for turn in opened.story().turns}
    assert (turns["ann"].ended, turns["ann"].kind) == (turns["ben"].ended, "success")
    ids = [event.id for event in read(tmp_path).events]
    assert turns["ann"].since_event in ids and turns["ann"].event in ids
    write(tmp_path, "prompts/ann-part.md", "AGENT NAME: ann\n", 5)
    write(tmp_path, f"{COORD}/prompts/ann-part.md", "AGENT NAME: ann\n", 5)
    ids = [event.id for event in read(tmp_path).events]
    assert len(ids) == len(set(ids))
