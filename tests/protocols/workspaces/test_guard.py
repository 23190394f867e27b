"""Nothing is written over damage that was seen; what is printed as its cure mends it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acp_core.diagnosis import actions as acts
from acp_core.files.transaction import JOURNAL, interrupted
from acp_core.model import Matter, Snapshot
from acp_core.model.clock import utc_now
from acp_core.protocols.workspaces.collaboration import open_workspaces
from acp_core.protocols.workspaces.read.manifest import layout
from acp_core.protocols.workspaces.schema import Layout
from acp_core.protocols.workspaces.write import dispatch
from tests.protocols.governed.killing import killed_at
from tests.protocols.workspaces.making import agent as agent_that_ended
from tests.protocols.workspaces.making import status, write
from tests.protocols.workspaces.running import acp, entries, now, prepare, program, states, told
from tests.protocols.workspaces.test_causes import causes

COORD = "agent-workspaces/.coord"
MANIFEST = f"{COORD}/manifest.json"
WRITES = (
    ("triage", "ben", "accept", "--reason", "enough"),
    ("compare",),
    ("dispute", "price", "--between", "ann,ben", "--category", "factual"),
    ("add", "--agent", "dan", "--task", "Do the rest."),
    ("order", "--order", "ben,ann"),
    ("draft",),
    ("finish",),
    ("rerun", "ben"),
    ("dispatch",),
)


def through(tmp_path: Path) -> Path:
    """Ann succeeded, ben is partial, cat waits for both."""
    root = prepare(tmp_path / "run", "ann", "ben", "cat", after="cat=ann")
    ended = acp("dispatch", root, "--", *program(tmp_path / "own", ben="partial", cat="success"))
    assert ended.code == 1, ended.text
    path = root / MANIFEST
    value = json.loads(path.read_text())
    value["agents"][2] |= {"after": ["ann", "ben"]}
    path.write_text(json.dumps(value))
    return old(path) and root


def old(path: Path) -> Path:
    """A file that is no longer being written."""
    at = path.stat().st_mtime - 60
    os.utime(path, (at, at))
    return path


def torn(root: Path) -> None:
    path = root / MANIFEST
    path.write_text(path.read_text()[:300])
    old(path)


def gone(root: Path) -> None:
    (root / MANIFEST).unlink()


def twice(root: Path) -> None:
    value = json.loads((root / MANIFEST).read_text())
    value["agents"].append(value["agents"][0] | {"task": "Something else."})
    old(write(root, MANIFEST, value))


def undecided(root: Path) -> None:
    old(write(root, f"{COORD}/triage.json", "{"))


def no_list(root: Path) -> None:
    old(write(root, f"{COORD}/conflicts.json", {"conflicts": {"c1": {}}}))


def no_journal(root: Path) -> None:
    old(write(root, f"{COORD}/{JOURNAL}", '{"writes": [{"path": "../x"}]}'))


DAMAGE = [torn, gone, twice, undecided, no_list, no_journal]


def seen(root: Path) -> Snapshot:
    return open_workspaces(str(root)).refresh(utc_now())


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE)
def test_every_write_is_refused_and_everybody_says_the_same(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    root = through(tmp_path)
    damage(root)
    (obstacle,) = seen(root).obstacles
    before = contents(root)
    for words in WRITES:
        ended = acp(words[0], root, *words[1:])
        assert ended.code == 2, words
        assert ended.text == f"error: {obstacle.sentence}: {obstacle.instruction}\n", words
        assert acp(words[0], root, *words[1:], "--dry-run").code == 2, words
    assert contents(root) == before
    found: Matter = causes(root, at=utc_now())[0]
    assert (found.sentence, found.instruction, found.remedy) == (
        obstacle.sentence,
        obstacle.instruction,
        "repair",
    )
    opened = open_workspaces(str(root))
    snapshot = opened.refresh(utc_now())
    offered = (each for each in acts.actions(opened, snapshot) if not each.personal)
    assert {each.name for each in offered} <= {"repair", "stop"}
    if damage is not no_journal:
        (finding,) = (each for each in snapshot.findings if each.action == "repair")
        assert finding.severity.value == "error"


def contents(root: Path) -> dict[str, bytes]:
    """All but claims, whose holders may end meanwhile."""
    paths = [p for p in root.rglob("*") if p.is_file() and ".acp" not in p.parts]
    return {str(p): p.read_bytes() for p in paths}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE)
def test_the_cure_that_is_printed_mends_it(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    root = through(tmp_path)
    damage(root)
    (obstacle,) = seen(root).obstacles
    words = shlex.split(obstacle.instruction)
    assert words[:2] == ["acp", "workspaces"]
    assert acp(*words[2:], "--dry-run").code == 0
    assert seen(root).obstacles == (obstacle,)
    assert acp(*words[2:]).code == 0
    assert seen(root).obstacles == ()
    assert acp("repair", root).code == 2  # nothing is left to be mended
    assert acp("triage", root, "ben", "accept", "--reason", "enough").code == 0
    assert states(root)["ben"] == "partial (accept)"


@pytest.mark.slow
def test_a_lost_manifest_is_made_anew_of_prompts_and_workspaces(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann", "ben", "cat", after="ben=ann")
    acp("dispatch", root, "--", *program(tmp_path / "own", ben=["lost", "success"]))
    was = entries(root)
    gone(root)
    new = acp("init", root, "--task", "Another", "--agent", "zoe=Do it.")
    assert new.code == 2 and "is missing" in new.text
    assert acp("repair", root).code == 0
    made = entries(root)
    for name, entry in was.items():
        assert made[name]["task"] == entry["task"]
        assert made[name]["after"] == entry["after"]
        assert made[name]["task_id"] == entry["task_id"]
    assert acp("rerun", root, "ben").code == 0
    assert acp("dispatch", root).code == 0
    assert states(root) == {"ann": "success", "ben": "success", "cat": "success"}


def test_a_lost_manifest_is_missed_although_another_writing_was_interrupted(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann")
    agent_that_ended(root, "ann", "partial")
    gone(root)
    write(root, f"{COORD}/{JOURNAL}", json.dumps({"what": "decide", "writes": []}))
    old(root / COORD / JOURNAL)
    for words in WRITES:
        refused = acp(words[0], root, *words[1:])
        assert refused.code == 2 and f"{MANIFEST} is missing" in refused.text, words
    assert f"{MANIFEST} is missing" in causes(root, at=utc_now())[0].sentence
    assert acp("repair", root).code == 0
    assert entries(root)["ann"] and not now(root).obstacles


@pytest.mark.slow
def test_a_manifest_that_was_torn_just_now_is_mended_once_nobody_can_be_writing_it(
    tmp_path: Path,
) -> None:
    root = prepare(tmp_path / "run", "ann")
    manifest = root / "agent-workspaces/.coord/manifest.json"
    whole = manifest.read_bytes()
    manifest.write_bytes(whole[:40])
    assert acp("repair", root).code == 0
    assert manifest.read_bytes() != whole[:40] and entries(root)["ann"]
    manifest.write_bytes(whole[:40])
    ahead = time.time() + 3600  # a clock that is wrong: it stays young
    os.utime(manifest, (ahead, ahead))
    ended = acp("repair", root)
    assert ended.code == 2
    assert "manifest.json may still be being written: repair again in a moment" in ended.text
    assert "nothing is to be mended" not in ended.text


def test_the_task_of_who_was_never_dispatched_is_asked_for(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann")
    gone(root)
    warned = told("repair", root, "--dry-run")
    assert "the task of ann is lost" in str(warned["warnings"])


@pytest.mark.slow
def test_a_task_specification_that_is_gone_holds_only_dispatching_up(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann", "ben", after="ben=ann")
    (root / "agent-workspaces/shared/task-spec.json").unlink()
    refused = acp("dispatch", root, "--", *program(tmp_path / "own"))
    assert refused.code == 2
    assert "task-spec.json is missing" in refused.text
    assert acp("order", root, "--order", "ben,ann").code == 0
    assert acp("repair", root).code == 0
    spec = json.loads((root / "agent-workspaces/shared/task-spec.json").read_text())
    assert spec["task"] == "a comparison of queues"
    assert acp("dispatch", root, "--", *program(tmp_path / "own")).code == 0


def test_a_torn_file_that_is_young_is_let_be(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann")
    (root / MANIFEST).write_text("{")
    snapshot = seen(root)
    assert snapshot.obstacles == ()
    assert snapshot.recheck_at is not None
    assert acp("order", root, "--order", "ann").code == 2


def decided_and_killed(tmp_path: Path) -> Path:
    """An act that writes two files, killed after the first."""
    number = 1
    while True:
        root = tmp_path / str(number) / "run"
        prepare(root, "ann")
        agent_that_ended(root, "ann", "partial")
        place = layout(root)

        def again(place: Layout = place) -> None:
            dispatch.rerun(place, "ann", "More.")

        assert killed_at(number, root, again)
        left = interrupted(root, COORD)
        if left is not None and left.done == 1:
            return root
        number += 1


def test_a_writing_that_was_interrupted_is_told_of_and_finished_by_the_next(
    tmp_path: Path,
) -> None:
    root = decided_and_killed(tmp_path)
    early = [each.code for each in causes(root, at=utc_now())]
    assert "A6" not in early  # somebody may be at it
    old(root / COORD / JOURNAL)
    what = "a write was interrupted: Decide on ann (attempt 1): rerun"
    assert what in acp("status", root).text
    assert any(each.code == "B38" for each in now(root).findings)
    found = next(each for each in causes(root, at=utc_now()) if each.code == "A6")
    assert (found.code, found.sentence, found.remedy) == ("A6", what, "repair")
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    old(copy / COORD / JOURNAL)
    assert acp("repair", copy).code == 0
    assert acp("order", root, "--order", "ann").code == 0
    for each in (root, copy):
        assert interrupted(each, COORD) is None
        assert "interrupted" not in acp("status", each).text
        assert states(each)["ann"] == "partial (rerun)"


@pytest.fixture
def disk(tmp_path: Path) -> Any:
    """A disk that can be made read-only."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def remount(folder: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(folder)], check=True)


@pytest.mark.slow
def test_a_disk_that_cannot_be_written_is_named_by_all(tmp_path: Path, disk: Path) -> None:
    root = prepare(disk / "run", "ann", "ben")
    words = program(tmp_path / "own")
    opened = open_workspaces(str(root))
    assert opened.refresh(utc_now()).obstacles == ()
    remount(disk, "ro")
    refused = acp("dispatch", root, "--", *words)
    assert refused.code == 2
    assert "read-only file system" in refused.text
    assert "goes on" not in refused.text
    (obstacle,) = opened.refresh(utc_now()).obstacles
    assert "read-only" in obstacle.sentence
    assert causes(root, at=utc_now())[0].sentence == obstacle.sentence
    remount(disk, "rw")
    assert opened.refresh(utc_now()).obstacles == ()
    assert acp("dispatch", root, "--", *words).code == 0


def test_a_symbolic_link_in_place_of_a_folder_is_named(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann")
    (tmp_path / "elsewhere").mkdir()
    (root / "integration").symlink_to(tmp_path / "elsewhere")
    (obstacle,) = seen(root).obstacles
    assert obstacle.sentence.endswith("integration is a symbolic link: acp does not write there")
    assert acp("order", root, "--order", "ann").code == 2


def test_what_another_orchestrator_wrote_is_no_damage(tmp_path: Path) -> None:
    write(tmp_path, "agent-workspaces/shared/task-spec.json", {"scope": "x"})
    write(tmp_path, "agent-workspaces/ann/status.json", status("ann"))
    assert seen(tmp_path).obstacles == ()
    assert acp("repair", tmp_path).code == 2


@pytest.mark.parametrize(
    ("name", "key"), [("triage.json", "decisions"), ("conflicts.json", "conflicts")]
)
def test_a_file_whose_list_is_none_is_damage(tmp_path: Path, name: str, key: str) -> None:
    root = prepare(tmp_path / "run", "ann")
    path = root / COORD / name
    path.write_text(json.dumps({key: {"ann": "skip"}}))
    old(path)
    (obstacle,) = seen(root).obstacles
    assert obstacle.sentence.endswith(f"has no list of {key}"), obstacle.sentence
    assert obstacle.remedy == "repair"
