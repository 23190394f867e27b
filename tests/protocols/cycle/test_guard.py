"""A state that is lost or damaged, and a disk that takes nothing: refused, told and mended alike."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from acp_core.diagnosis import actions as offered
from acp_core.model import Severity, Snapshot
from acp_core.model.errors import Refused
from acp_core.protocols.cycle.collaboration import Cycles
from acp_core.protocols.cycle.write.store import Store
from tests.protocols.cycle import conducting, making
from tests.protocols.cycle.conducting import ID, acp, done, path, progress, refused, state

DAMAGED: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "torn": (lambda held: json.dumps(held)[:200], "is not valid JSON"),
    "a list": (lambda held: "[]", "does not contain a JSON object"),
    "without agents": (lambda held: held.pop("agents"), "has no agents"),
    "without CD": (lambda held: held["agents"].pop("cd"), "does not hold the agent cd"),
    "another status": (lambda held: held.update(status="great"), "has the unknown status 'great'"),
    "no status": (lambda held: held.pop("status"), "has no status"),
    "iterations": (lambda held: held.update(current_iteration="two"), "not a whole number"),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("acp_core.protocols.cycle.write.store._PATIENCE", 0.1)
    yield
    conducting.end_all()


def begun(root: Path) -> dict[str, Any]:
    """A cycle of ours, and what its state holds."""
    done(root, "start", conducting.WHAT, "--cycle", ID, "--no-run")
    return state(root)


def damage(root: Path, how: str) -> str:
    """Damage the state a while ago; what it lacks then."""
    alter, told = DAMAGED[how]
    held = state(root)
    made = alter(held)
    path(root).write_text(made if how in ("torn", "a list") else json.dumps(held))  # type: ignore[arg-type]
    os.utime(path(root), (path(root).stat().st_mtime - 60,) * 2)
    return told


def diagnosed(root: Path) -> Snapshot:
    return conducting.diagnosed(root)[1]


@pytest.mark.slow
@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_state_is_refused_told_and_mended_alike(tmp_path: Path, how: str) -> None:
    held = begun(tmp_path)
    told = damage(tmp_path, how)
    snapshot = diagnosed(tmp_path)
    first = snapshot.causes[0]
    assert (first.code, first.remedy) == ("A5", "rebuild")
    assert told in first.sentence and told in refused(tmp_path, "pause")
    assert first.sentence in snapshot.headline
    assert any(each.severity is Severity.ERROR for each in snapshot.findings)
    own = {
        each.name for each in offered.actions(Cycles(str(tmp_path)), snapshot) if not each.personal
    }
    assert own <= {"rebuild", "select"}
    for act in ("pause", "stop", "run", "accept", "limit 9", "decide DEC-001 1"):
        assert first.instruction in refused(tmp_path, *act.split())
    program, group, *words = shlex.split(first.instruction)
    assert (program, group) == ("acp", "cycle")
    assert acp(*words)[0] == 0
    mended = state(tmp_path)
    assert {k: mended[k] for k in ("title", "description", "task_history", "agents", "status")} == {
        k: held[k] for k in ("title", "description", "task_history", "agents", "status")
    }
    assert not [each for each in diagnosed(tmp_path).causes if each.code == "A5"]


def test_what_acp_wrote_last_is_put_back_and_what_stood_there_is_kept(tmp_path: Path) -> None:
    begun(tmp_path)
    done(tmp_path, "feedback", "cd", "Quote fields with commas")
    held = state(tmp_path)
    damage(tmp_path, "torn")
    torn = path(tmp_path).read_text()
    code, out, _ = acp("rebuild", "--folder", str(tmp_path))
    assert code == 0
    assert "Restored the state that acp wrote last" in out
    assert state(tmp_path)["coordination"]["feedback_log"] == held["coordination"]["feedback_log"]
    (kept,) = path(tmp_path).parent.glob("*.before-rebuild-*")
    assert kept.read_text() == torn


def test_of_what_nothing_is_left_acp_says_what_to_choose(tmp_path: Path) -> None:
    begun(tmp_path)
    conducting.forget(tmp_path)
    damage(tmp_path, "torn")
    (cause,) = diagnosed(tmp_path).causes
    assert cause.remedy == ""
    assert "from your own copy" in cause.instruction
    assert cause.instruction in refused(tmp_path, "pause")
    assert cause.instruction in refused(tmp_path, "rebuild")


def test_a_state_that_is_gone_is_told_too(tmp_path: Path) -> None:
    begun(tmp_path)
    path(tmp_path).unlink()
    first = diagnosed(tmp_path).causes[0]
    assert "is missing; only its progress folder is there" in first.sentence
    assert acp(*shlex.split(first.instruction)[2:])[0] == 0
    assert state(tmp_path)["description"] == conducting.WHAT


@pytest.mark.parametrize("how", ["wreck", "remove", "strange"])
def test_a_state_that_an_agent_wrecks_is_put_back_and_the_cycle_goes_on(
    tmp_path: Path, how: str
) -> None:
    conducting.behave(tmp_path, ep=[how])
    code, out, err = acp(
        "start", conducting.WHAT, "--folder", str(tmp_path), "--cycle", ID, "--command",
        conducting.AGENT, "--foreground", "--leave",
    )  # fmt: skip
    ended = state(tmp_path)
    assert code == 0, (out, err)
    assert (ended["description"], ended["task_history"]) == (conducting.WHAT, [conducting.WHAT])
    assert conducting.calls(tmp_path) == ["ra work", f"ep {how}", "cd work", "vas work"]
    assert "acp restored what it wrote last" in out
    timeline = (progress(tmp_path) / "coordination/timeline.md").read_text()
    assert timeline.count("acp restored what it wrote last") == 1
    kept = list(path(tmp_path).parent.glob("*.damaged-*"))
    assert len(kept) == (how != "remove")


def test_a_link_in_place_of_the_state_is_left_alone(tmp_path: Path) -> None:
    begun(tmp_path)
    elsewhere = tmp_path / "elsewhere.json"
    path(tmp_path).rename(elsewhere)
    path(tmp_path).symlink_to(elsewhere)
    (cause,) = diagnosed(tmp_path).causes
    assert cause.remedy == ""
    assert cause.instruction.startswith("replace ")
    for act in ("pause", "rebuild"):
        assert cause.instruction in refused(tmp_path, act, "--cycle", ID)
    store = Store(tmp_path, ID)  # as one that looked before the link was made
    with pytest.raises(Refused, match="replace "):
        store.rewrite(json.loads(elsewhere.read_bytes()), datetime.now(UTC))
    assert path(tmp_path).is_symlink()


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A cycle on a disk that takes nothing more."""
    mount: list[Any] = ["mount", "-t", "tmpfs", "tmpfs", tmp_path]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        begun(tmp_path)
        subprocess.run(["mount", "-o", "remount,ro", tmp_path], check=True)
        yield tmp_path
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_disk_that_takes_nothing_is_named_by_all(closed: Path) -> None:
    snapshot = diagnosed(closed)
    assert "E20" in [each.code for each in snapshot.causes]
    for act in ("pause", "stop", "run", "rebuild"):
        assert "read-only file system" in refused(closed, act)
    assert "read-only file system" in refused(closed, "start", "More", "--no-run")
    own = {
        each.name for each in offered.actions(Cycles(str(closed)), snapshot) if not each.personal
    }
    assert own <= {"select"}


def test_a_disk_that_becomes_closed_is_seen_without_a_change_of_any_file(closed: Path) -> None:
    subprocess.run(["mount", "-o", "remount,rw", closed], check=True)
    cycles = Cycles(str(closed))
    assert cycles.refresh(making.NOW).obstacles == ()
    subprocess.run(["mount", "-o", "remount,ro", closed], check=True)
    assert cycles.refresh(making.NOW + timedelta(seconds=1)).obstacles != ()


def test_what_can_still_be_read_of_a_damaged_state_stays(tmp_path: Path) -> None:
    making.cycle(tmp_path, "completed")
    held = state(tmp_path)
    path(tmp_path).write_text(json.dumps(held | {"status": "great"}))
    done(tmp_path, "rebuild")
    mended = state(tmp_path)
    assert mended["status"] == "paused"
    for name, agent in held["agents"].items():
        assert mended["agents"][name].items() >= agent.items()
    assert mended["plan"] == held["plan"]


def test_the_status_of_a_state_that_cannot_be_read_claims_nothing(tmp_path: Path) -> None:
    begun(tmp_path)
    damage(tmp_path, "torn")
    code, out, _ = conducting.acp("status", str(tmp_path))
    first, second, obstacle, *_ = out.splitlines()
    assert (code, first, second) == (0, ID, "orchestrator: none running")
    assert obstacle.startswith(f"! The state file {ID}.json is not valid JSON")
    assert "claimed" not in out and "tests" not in out and "idle" not in out
    assert done(tmp_path, "status")["claimed"] == "unknown"
    path(tmp_path).write_text(path(tmp_path).read_text())  # just now
    told = conducting.acp("status", str(tmp_path))[1].splitlines()[1]
    assert told == "its state file is not valid JSON: another program may be writing it now"
