"""Whoever orchestrates is killed at any moment and begins again: no finished work is repeated."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from acp_core.agents import registry
from acp_core.files.atomic import is_leftover
from acp_core.files.transaction import interrupted
from acp_core.model.clock import utc_now
from acp_core.protocols.workspaces.conduct import agent as conduct_agent
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.read import manifest as manifest_module
from acp_core.protocols.workspaces.read.manifest import layout, read_manifest
from acp_core.protocols.workspaces.schema import ORCHESTRATOR, Layout
from acp_core.protocols.workspaces.write import dispatch
from acp_core.protocols.workspaces.write.step import (
    carry_out_act,
    change_entry,
    commit_step,
    locked,
)
from tests.agents.support import ROOT, wait_for
from tests.faults.shim import KILLED, Faults, Run
from tests.protocols.governed.killing import killed_at
from tests.protocols.workspaces.making import agent as agent_that_ended
from tests.protocols.workspaces.running import acp, begun, log, now, prepare, program, states, told

COORD = "agent-workspaces/.coord"
CHANGING = ("open", "write", "replace", "rename", "link", "unlink", "mkdir")


@pytest.fixture(scope="module")
def faults() -> Iterator[Faults]:
    server = Faults()
    yield server
    server.close()


def dispatched(root: Path, own: Path, how: str) -> None:
    """One agent, dispatched as it is written down, and nobody who watches it."""
    prepare(root, "ann")
    teams.save_team(teams.team_of(root, words=program(own, ann=how)))
    place = layout(root)
    manifest = read_manifest(place)
    with locked(place) as transaction:
        run = manifest_module.read_run(place, utc_now())
        commit_step(transaction, dispatch.begin_attempt(manifest, "ann", run, utc_now()))


def watched(faults: Faults, root: Path, at: int, agent: str = "ann") -> Run:
    """A watcher that is killed before its operation ``at`` (0: not at all)."""
    kind = "kill" if at else "count"
    words = ("watch an agent", str(root), agent, "1")
    return faults.run(*words, kind=kind, at=at, env=dict(os.environ))


def check_watcher(faults: Faults, tmp_path: Path, at: int, how: str) -> None:
    root, own = tmp_path / f"{how}-{at}" / "run", tmp_path / f"{how}-{at}" / "own"
    root.parent.mkdir()
    dispatched(root, own, how)
    ended = watched(faults, root, at)
    assert ended.code == KILLED, (at, ended)
    again = acp("dispatch", root)
    assert states(root) == {"ann": "success" if how != "lost" else "missing"}, (at, again)
    assert begun(own) == ["ann"], at
    kept = root / COORD / "returns/ann-compare-queues.json"
    assert json.loads(kept.read_text())["status"] == "success", at
    assert {f.code for f in now(root).findings} <= {"B29"}, at


def test_a_killed_watcher_is_replaced_and_nothing_is_repeated(
    faults: Faults, tmp_path: Path
) -> None:
    check_watcher(faults, tmp_path, 20, "success")


@pytest.mark.slow
@pytest.mark.parametrize(("how", "step"), [("success", 1), ("lost", 4)])
def test_a_watcher_is_killed_at_every_operation(
    faults: Faults, tmp_path: Path, how: str, step: int
) -> None:
    count = 0
    for whole in (
        "first",
        "second",
    ):  # the first makes the folders of the state, which then are there
        (tmp_path / whole).mkdir()
        dispatched(tmp_path / whole / "run", tmp_path / whole / "own", how)
        count = watched(faults, tmp_path / whole / "run", 0).calls
    assert count > 30
    for at in range(1, count + 1, step):
        check_watcher(faults, tmp_path, at, how)


def sabotage(faults: Faults, root: Path, *words: str) -> Iterator[int]:
    """A command is run in a fresh copy of the run, killed one operation later each time."""
    kept = root.with_name("kept")
    shutil.copytree(root, kept, copy_function=shutil.copy2)
    whole = faults.run("workspaces", *words, kind="count", env=dict(os.environ))
    assert whole.code == 0, whole
    chosen = [n for n, name in enumerate(whole.names, 1) if name in CHANGING]
    assert chosen
    for at in chosen:
        shutil.rmtree(root)
        shutil.rmtree(os.environ["ACP_STATE"], ignore_errors=True)  # as it was for the first
        shutil.copytree(kept, root, copy_function=shutil.copy2)
        run = faults.run("workspaces", *words, kind="kill", at=at, env=dict(os.environ))
        assert run.code == KILLED, (at, run)
        yield at


@pytest.mark.slow
def test_a_killed_init_is_finished_by_running_it_again(faults: Faults, tmp_path: Path) -> None:
    root = tmp_path / "run"
    root.mkdir()
    words = ["init", str(root), "--task", "queues", "-a", "ann=Look", "-a", "ben=See"]
    for at in sabotage(faults, root, *words):
        again = acp(*words)
        assert again.code == 0 or "already contains a run" in again.text, (at, again)
        assert states(root) == {"ann": "not dispatched", "ben": "not dispatched"}, at
        assert (root / "agent-workspaces/shared/task-spec.json").is_file()


def through(root: Path) -> Path:
    """Two agents that are through, one of them with a part, and their manifest."""
    prepare(root, "ann", "ben")
    agent_that_ended(root, "ann")
    agent_that_ended(root, "ben", "partial")
    return root


@pytest.mark.slow
def test_killed_decisions_are_made_by_running_them_again(faults: Faults, tmp_path: Path) -> None:
    root = through(tmp_path / "run")
    words = ["triage", str(root), "ben", "accept", "--reason", "enough"]
    for at in sabotage(faults, root, *words):
        assert acp(*words).code == 0, at
        assert states(root) == {"ann": "success", "ben": "partial (accept)"}, at
    words = ["conflicts", str(root), "--find"]
    shutil.rmtree(root.with_name("kept"))
    for at in sabotage(faults, root, *words):
        assert acp(*words).code == 0, at
        assert told("conflicts", root)["hints"] == [], at


@pytest.mark.slow
def test_a_killed_finish_leaves_all_or_is_finished(faults: Faults, tmp_path: Path) -> None:
    root = through(tmp_path / "run")
    assert acp("triage", root, "ben", "skip", "--reason", "too little").code == 0
    assert acp("conflicts", root, "--find").code == 0
    words = ["integrate", str(root), "--draft"]
    for at in sabotage(faults, root, *words):
        again = acp(*words)
        assert again.code == 0 or "already exists" in again.text, (at, again)
        draft = (root / COORD / "draft/final-output.md").read_text()
        assert draft.rstrip().endswith("The rest is missing."), at
    shutil.rmtree(root.with_name("kept"))
    words = ["integrate", str(root), "--finish"]
    for at in sabotage(faults, root, *words):
        final = root / "integration/final-output.md"
        assert not final.exists() or "## Integration metadata" in final.read_text(), at
        assert acp(*words).code == 0, at
        assert now(root).headline.startswith("integrated with gaps"), at


@pytest.mark.slow
def test_who_watches_a_synthesis_is_killed_and_it_is_written_once(
    faults: Faults, tmp_path: Path
) -> None:
    root, own = tmp_path / "run", tmp_path / "own"
    through(root)
    assert acp("triage", root, "ben", "skip", "--reason", "too little").code == 0
    assert acp("conflicts", root, "--find").code == 0
    place, words = layout(root), program(own)
    draft = root / COORD / "draft/final-output.md"
    for at in range(4, 44, 3):
        log(own).unlink(missing_ok=True)
        choice = teams.program_choice("", words, str(root))
        assert choice is not None
        teams.save_team(teams.merged_team(root, own={ORCHESTRATOR: choice}))
        carry_out_act(place, "synthesise", lambda: conduct_agent.plan_synthesis(place))
        watched(faults, root, at, ORCHESTRATOR)
        again = acp("integrate", root, "--synthesise")
        assert again.code == 0, (at, again)
        assert draft.read_text().startswith("# All"), at
        assert log(own).read_text().splitlines() == ["integrates"], at


def is_worked_on(root: Path) -> bool:
    """Whether anything that was started for a run goes on, registered already or not."""
    if any(runner.alive or runner.program_alive for runner in registry.runners()):
        return True
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and str(root) in process.cmdline():
                return True
    return False


@pytest.mark.slow
def test_a_dispatch_is_killed_at_every_operation(faults: Faults, tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann", "ben")
    words = ["dispatch", str(root), "--detach", "--", *program(tmp_path / "own")]
    kept = tmp_path / "kept"
    shutil.copytree(root, kept)
    whole = faults.run("workspaces", *words, kind="count", env=dict(os.environ))
    chosen = [n for n, name in enumerate(whole.names, 1) if name in CHANGING]
    for at in [0, *chosen[::2]]:
        wait_for(lambda: not is_worked_on(root), "the end")
        shutil.rmtree(root)
        shutil.copytree(kept, root)
        log(tmp_path / "own").unlink(missing_ok=True)
        shutil.rmtree(os.environ["ACP_STATE"], ignore_errors=True)
        if at:
            faults.run("workspaces", *words, kind="kill", at=at, env=dict(os.environ))
        again = acp("dispatch", root, "--", *program(tmp_path / "own"))
        assert again.code == 0, (at, again)
        assert sorted(begun(tmp_path / "own")) == ["ann", "ben"], at


@pytest.mark.slow
def test_a_rerun_is_killed_at_every_operation(faults: Faults, tmp_path: Path) -> None:
    root, own = prepare(tmp_path / "run", "ann"), tmp_path / "own"
    words = ["dispatch", str(root), "--detach", "--", *program(own, ann=["partial", "success"])]
    assert acp("dispatch", root, "--", *words[4:]).code == 1
    assert acp("triage", root, "ann", "rerun", "--reason", "more").code == 0
    shutil.copytree(root, tmp_path / "kept", copy_function=shutil.copy2)
    shutil.copytree(os.environ["ACP_STATE"], tmp_path / "state")
    said = log(own).read_text()
    whole = faults.run("workspaces", *words, kind="count", env=dict(os.environ))
    for at in [n for n, name in enumerate(whole.names, 1) if name in CHANGING]:
        wait_for(lambda: not is_worked_on(root), "the end")
        for place, copy in (
            (root, tmp_path / "kept"),
            (Path(os.environ["ACP_STATE"]), tmp_path / "state"),
        ):
            shutil.rmtree(place)
            shutil.copytree(copy, place, copy_function=shutil.copy2)
        log(own).write_text(said)
        faults.run("workspaces", *words, kind="kill", at=at, env=dict(os.environ))
        assert acp("dispatch", root).code == 0, at
        assert begun(own) == ["ann", "ann"], at
        history = sorted(path.name for path in (root / COORD / "history/ann/1").iterdir())
        assert history == ["return-ann-compare-queues.json", "status.json"], at
        assert states(root) == {"ann": "success"}, at


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_everybody_is_killed_at_random_again_and_again(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    root = prepare(tmp_path / "run", "ann", "ben", "cat", "dan", after="dan=cat")
    own = tmp_path / "own"
    words = program(own, ann="slow", ben="success", cat="slow", dan="success")
    command = [sys.executable, "-m", "acp_tui", "workspaces", "dispatch", str(root), "--limit", "3"]
    for _ in range(8):
        process = subprocess.Popen(
            [*command, "--", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT
        )
        time.sleep(chance.uniform(0.2, 1.2))
        process.kill()
        process.wait()
        for each in registry.runners():
            if each.alive and chance.random() < 0.8:
                psutil.Process(each.pid).kill()
    ended = acp("dispatch", root, "--", *words)
    assert states(root) == dict.fromkeys(("ann", "ben", "cat", "dan"), "success"), ended
    assert sorted(begun(own)) == ["ann", "ben", "cat", "dan"]
    returns = [each.name for each in (root / COORD / "returns").iterdir()]
    assert len([name for name in returns if not is_leftover(name)]) == 4  # a kill leaves others


@pytest.mark.slow
def test_what_an_agent_wrote_before_is_put_away_with_its_new_dispatch_or_not_at_all(
    tmp_path: Path,
) -> None:
    """Killed in between, the next command finishes it: no attempt is left without its files."""
    number, finished = 1, 0
    while True:
        root = tmp_path / str(number) / "run"
        prepare(root, "ann")
        place = layout(root)
        agent_that_ended(root, "ann", "partial")
        dispatch.decide(place, "ann", "rerun", "once more")
        before = {path.name for path in place.workspace("ann").iterdir()}

        def again(place: Layout = place) -> None:
            with locked(place) as transaction:
                run, manifest = (
                    manifest_module.read_run(place, utc_now()),
                    read_manifest(place),
                )
                commit_step(transaction, dispatch.begin_attempt(manifest, "ann", run, utc_now()))

        if not killed_at(number, root, again):
            break
        left = interrupted(root, COORD)
        change_entry(place, "ann", lambda entry: None)
        history = place.coord / "history/ann/1"
        moved = {path.name for path in history.iterdir()} if history.is_dir() else set()
        attempt = read_manifest(place).entries["ann"]["attempt"]
        assert (attempt, bool(moved)) == ((2, True) if left or moved else (1, False)), number
        assert {path.name for path in place.workspace("ann").iterdir()} | moved == before, number
        assert interrupted(root, COORD) is None
        finished += left is not None
        number += 1
    assert finished > 5
