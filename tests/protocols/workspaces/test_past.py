"""A run that is over can be gone through again: what was kept of it, and where its time went."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from acp_core.history.past import Past
from acp_core.model.past import Evidence
from acp_core.protocols import registry
from acp_core.protocols.discovery import identify
from acp_core.protocols.workspaces.past import WorkspacesDerivation
from tests.cli.support import Acp
from tests.protocols.workspaces.making import (
    NOW,
    agent,
    integrate,
    read,
    returned,
    run,
    status,
    write,
)
from tests.protocols.workspaces.making import open_workspaces as open_run

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
    assert opened.tracked_files() == ()
    snapshot = opened.refresh(NOW)
    kept = {each.name: each for each in opened.tracked_files()}
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


def at(root: Path, *moments: str) -> list[dict[str, Any]]:
    """How the run stood at these events: its headline, its doubt and its agents' states."""
    found = identify(root, registry.installed())
    assert found is not None
    past, then = Past(found, NOW), []
    try:
        for name in moments:
            place = past.index(name)
            assert place is not None, (name, [each.name for each in past.moments])
            snapshot = past.at(place).snapshot
            rows = snapshot.panels[0].rows
            states = {row.cells[0]: row.cells[1] for row in rows if not row.depth}
            then.append({"headline": snapshot.headline, "doubt": snapshot.doubt, **states})
    finally:
        past.close()
    return then


def stamp(minute: int, second: int = 0) -> str:
    return f"2026-03-01T10:{minute:02}:{second:02}Z"


def ago(minute: int, second: int = 0) -> float:
    return NOW.timestamp() - datetime(2026, 3, 1, 10, minute, second, tzinfo=UTC).timestamp()


def unrecorded(root: Path, attempt: int = 1) -> Path:
    """A run that nobody recorded: ann succeeded; ben was partial, which was accepted."""
    write(root, "agent-workspaces/shared/task-spec.json", {"scope": "queues"}, ago(0))
    entries = []
    for name, minute, word in (("ann", 10, "success"), ("ben", 20, "partial")):
        own, file = f"agent-workspaces/{name}", f"{name}-part"
        write(root, f"{COORD}/prompts/{file}.md", f"AGENT NAME: {name}\n", ago(1))
        write(root, f"{own}/output.md", f"# {name}\n\n- Price: {minute}\n", ago(minute))
        ended = status(name, word, completed_at=stamp(minute))
        write(root, f"{own}/status.json", ended, ago(minute))
        write(root, f"{COORD}/returns/{file}.json", returned(name, word), ago(minute, 1))
        entries.append({"agent": name, "task_id": file, "attempt": 1, "dispatched_at": stamp(1),
                        "ended_at": stamp(minute, 1), "exit": "exit code 0"})  # fmt: skip
    if attempt > 1:  # ann was run once more, after ben was through
        history = f"{COORD}/history/ann/1"
        failed = status("ann", "failure", outputs=[], completed_at=stamp(10))
        write(root, f"{history}/status.json", failed, ago(10))
        write(
            root,
            f"{history}/return-ann-part.json",
            returned("ann", "failure", files_written=[]),
            ago(10, 1),
        )
        (root / f"{COORD}/returns/ann-part.json").unlink()
        again = "ann-output-20260301-1030.md"
        os.rename(root / OWN / "output.md", root / OWN / again)
        os.utime(root / OWN / again, (NOW.timestamp() - ago(35),) * 2)
        ended = status("ann", file=again, completed_at=stamp(35))
        write(root, f"{OWN}/status.json", ended, ago(35))
        entries[0] |= {"attempt": attempt, "stamp": "20260301-1030",
                       "dispatched_at": stamp(30), "ended_at": stamp(35, 1)}  # fmt: skip
        write(root, f"{COORD}/prompts/ann-part-20260301-1030.md", "AGENT NAME: ann\n", ago(30))
    decided = {"task_id": "ben-part", "decision": "accept", "reason": "enough", "at": stamp(25)}
    write(root, f"{COORD}/triage.json", {"decisions": [decided]}, ago(25))
    found = {"id": "c1", "agents": ["ann", "ben"], "topic": "price", "category": "factual",
             "at": stamp(40), "sentence": "Resolved.", "resolved_at": stamp(50)}  # fmt: skip
    write(root, f"{COORD}/conflicts.json", {"looked_at": stamp(40), "conflicts": [found]}, ago(50))
    kept = {"created_at": stamp(0), "task": "queues", "agents": entries}
    write(root, f"{COORD}/manifest.json", kept, ago(45))
    return root


def test_a_past_that_nobody_recorded_is_told_from_what_bears_its_time(tmp_path: Path) -> None:
    root = unrecorded(tmp_path)
    began, one, both, decided, resolved = at(
        root, "dispatched:ann-part", "success:ann", "partial:ben", "decided:0", "resolved:0"
    )
    assert (began["ann"], began["ben"]) == ("dispatched", "dispatched")
    assert (one["ann"], one["ben"]) == ("success", "dispatched")
    assert (both["ann"], both["ben"]) == ("success", "partial")
    assert decided["ben"] == "partial (accept)"
    assert decided["headline"].startswith("ready to integrate")
    assert "conflict" not in decided["headline"]
    assert resolved["doubt"] == ""
    assert "agent-workspaces/ben/output.md" in began["doubt"], "nobody knows how it was then"
    assert "status.json" not in began["doubt"] + one["doubt"]


def test_what_a_rerun_moved_away_stood_in_its_place(tmp_path: Path) -> None:
    root = unrecorded(tmp_path, attempt=2)
    failed, again, done = at(root, "partial:ben", "dispatched:ann-part-20260301-1030", "resolved:0")
    assert (failed["ann"], failed["ben"]) == ("failure", "partial")
    assert again["ann"] == "dispatched"
    assert done["ann"] == "success"


def test_what_is_not_written_down_is_said_not_to_be_known(tmp_path: Path) -> None:
    root = unrecorded(tmp_path, attempt=3)
    assert "manifest.json" in at(root, "partial:ben")[0]["doubt"]


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(
    st.sampled_from(["agents", "agent", "attempt", "dispatched_at", "decisions", "conflicts",
                     "at", "created_at", "stamp", "looked_at"]), x), max_leaves=8))  # fmt: skip
def test_whatever_the_files_hold_the_past_is_told(value: object) -> None:
    data = json.dumps(value).encode()
    known = {f"{COORD}/{name}.json": data for name in ("manifest", "triage", "conflicts")}
    made = WorkspacesDerivation().derive(
        Evidence(NOW, b"", {**known, "other": data, "x": b"\xff"}, {})
    )
    assert all(
        each is None or isinstance(json.loads(each or b"0"), object) for each in made.values()
    )
