"""Tasks of the plan that CD works on at the same time: each in a run of its own, then CD's own run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.agents import registry
from acp_core.protocols.cycle.schema import Task
from acp_core.protocols.cycle.state import independent_tasks, startable
from tests.agents.live import commands
from tests.agents.support import is_gone, wait_for
from tests.protocols.cycle.conducting import (
    diagnosed,
    done,
    end_all,
    progress,
    refused,
    runs,
    start,
    state,
    wait_for_end,
    wait_for_status,
)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    end_all()


def lines(root: Path) -> list[tuple[str, str]]:
    """What began and ended in CD's work, in order, as ("start", "TASK-001")."""
    file = root / "calls.log"
    found = (line.split(" ")[:2] for line in file.read_text().splitlines()) if file.exists() else ()
    return [(what, who) for what, who in found if who.startswith("TASK-") or who == "cd"]


def tasks(root: Path) -> dict[str, str]:
    return {each["id"]: each["status"] for each in state(root)["plan"]["tasks"]}


def prompt_of_cd(root: Path) -> str:
    return (root / "prompt-cd-1.txt").read_text()


def test_tasks_that_are_independent_are_worked_on_at_the_same_time(project: Path) -> None:
    behaviour = {"TASK-001": ["meet TASK-002"], "TASK-002": ["meet TASK-001"]}
    start(project, "--jobs", "2", ep=["apart"], **behaviour)  # each waits for the other one
    assert wait_for_end(project)["status"] == "completed"
    seen = lines(project)
    assert {who for what, who in seen[:2]} == {"TASK-001", "TASK-002"}
    assert seen.index(("end", "TASK-001")) < seen.index(("start", "TASK-004"))  # the same file
    for before in ("TASK-001", "TASK-002"):
        assert seen.index(("end", before)) < seen.index(("start", "TASK-003"))
    assert seen[-2:] == [("start", "cd"), ("end", "cd")]
    assert set(tasks(project).values()) == {"completed"}
    told = prompt_of_cd(project)
    assert "- TASK-001: done: Built TASK-001 (files: TASK-001.txt)" in told
    changed = {each["file"] for each in state(project)["changes"]["changes"]}
    assert {"TASK-001.txt", "TASK-004.txt", "product.txt"} <= changed
    names = {each.participant for each in registry.runners(str(project))}
    assert {"cd", "cd-1", "cd-2", "cd-3", "cd-4"} <= names
    of_one = (project / "prompt-TASK-001.txt").read_text()
    assert "Do not change their files" in of_one and "- TASK-002: Button" in of_one


@pytest.mark.slow
def test_a_task_that_fails_is_left_to_the_run_of_cd_with_what_depends_on_it(project: Path) -> None:
    start(project, "--jobs", "4", ep=["apart"], **{"TASK-002": ["fail"]}, cd=["half"])
    wait_for(lambda: ("end", "cd") in lines(project), "CD's own run")
    wait_for(lambda: state(project)["agents"]["cd"]["status"] == "completed", "CD's report")
    assert ("start", "TASK-003") not in lines(project)
    told = prompt_of_cd(project)
    assert "- TASK-002: not done: no such table" in told
    assert "- TASK-003: not begun, because a task that it depends on is not done" in told
    found = tasks(project)
    assert (found["TASK-001"], found["TASK-002"], found["TASK-003"]) == (
        "completed", "pending", "pending",
    )  # fmt: skip


@pytest.mark.slow
def test_runs_of_tasks_outlive_a_killed_orchestrator_and_none_is_repeated(project: Path) -> None:
    start(project, "--jobs", "2", ep=["apart"], **{"TASK-001": ["hold"], "TASK-002": ["hold"]})
    wait_for(lambda: len(lines(project)) == 2, "two tasks at work")
    wait_for(lambda: list(tasks(project).values()).count("in_progress") == 2, "what the plan says")
    conductor = registry.find(str(project), "orchestrator")
    assert conductor is not None
    os.kill(conductor.pid, signal.SIGKILL)
    wait_for(lambda: is_gone(conductor.pid), "its end")
    (project / "go").touch()
    done(project, "run")
    assert wait_for_end(project)["status"] == "completed"
    assert len(set(runs(project))) == len(runs(project))
    assert lines(project).count(("start", "TASK-001")) == 1
    results = sorted(
        each.name for each in (progress(project) / "coordination/task-results").iterdir()
    )
    assert results == [f"1-cd-task-{number}.txt" for number in (1, 2, 3, 4)]


@pytest.mark.slow
def test_a_stop_ends_the_runs_of_all_tasks(project: Path) -> None:
    start(project, "--jobs", "2", ep=["apart"], **{"TASK-001": ["hold"], "TASK-002": ["hold"]})
    wait_for(lambda: len(lines(project)) == 2, "two tasks at work")
    _, shown = diagnosed(project)
    assert [each.sentence for each in shown.causes if each.wanted] == []
    pids = [
        each.run.process.pid
        for each in registry.runners(str(project))
        if each.participant in ("cd-1", "cd-2") and each.run
    ]
    done(project, "stop")
    assert wait_for_end(project)["status"] == "failed"
    assert len(pids) == 2 and all(map(is_gone, pids))
    assert ("start", "cd") not in lines(project)
    assert "in_progress" not in tasks(project).values()


@pytest.mark.slow
def test_after_a_cancelled_task_none_is_begun_until_a_person_decides(project: Path) -> None:
    start(project, "--jobs", "2", ep=["apart"], **{"TASK-001": ["hold"], "TASK-002": ["hold"]})
    wait_for(lambda: len(lines(project)) == 2, "two tasks at work")
    cancelled = commands.acp("cancel", project, "cd-1")
    assert cancelled.returncode == 0, cancelled.stderr
    (project / "go").touch()
    wait_for_status(project, "paused")
    (asked,) = state(project)["coordination"]["pending_decisions"]
    assert "CD: run 1-cd was cancelled by" in asked["description"]
    assert {who for what, who in lines(project)} == {"TASK-001", "TASK-002"}
    assert (tasks(project)["TASK-001"], tasks(project)["TASK-002"]) == ("pending", "completed")
    done(project, "decide", asked["id"], "1")
    assert wait_for_end(project)["status"] == "completed"
    assert lines(project).count(("start", "TASK-002")) == 1


def test_a_number_of_jobs_that_makes_no_sense_is_refused(project: Path) -> None:
    said = refused(project, "start", "Export", "--command", "true", "--jobs", "0")
    assert "--jobs must be from 1 to 32" in said


def task(id: str, *needs: str, files: tuple[str, ...] = (), status: str = "pending") -> Task:
    return Task(id=id, depends_on=needs, files=files, status=status)


def ids(found: object) -> list[str]:
    return [each.id for each in found]  # type: ignore[attr-defined]


A, B = task("A"), task("B")


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        pytest.param([A, B], ["A", "B"], id="independent"),
        pytest.param([A, task("B", "A")], [], id="one-after-the-other"),
        pytest.param([A, task("B", "A"), task("C", "A")], ["A", "B", "C"], id="two-after-one"),
        pytest.param([A, task("B", "A"), task("C", "B"), task("D")], ["A", "B", "C", "D"], id="beside-a-chain"),
        pytest.param([A], [], id="one"),
        pytest.param([], [], id="none"),
        pytest.param([A, task("B", status="completed")], [], id="one-left"),
        pytest.param([A, task("B", "C"), task("C", status="done")], ["A", "B"], id="after-one-that-is-done"),
        pytest.param([A, B, task("C", "A", "B")], ["A", "B", "C"], id="after-all-others"),
        pytest.param([A, B, task("C", "lost"), task("D", "C")], ["A", "B"], id="after-no-task"),
        pytest.param([A, B, task("C", "D"), task("D", "C")], ["A", "B"], id="in-a-circle"),
        pytest.param([task("A", files=("x.py",)), task("B", files=("./x.py",))], [], id="the-same-file"),
        pytest.param([task("A", files=("src",)), task("B", files=("src/x.py",))], [], id="a-folder-and-its-file"),
        pytest.param([task("A", files=("x.py",)), task("B", files=("x.pyi",))], ["A", "B"], id="like-named-files"),
        pytest.param([A, task("A")], [], id="one-id-twice"),
        pytest.param([task(""), task("")], [], id="without-ids"),
    ],
)  # fmt: skip
def test_which_tasks_of_a_plan_can_be_given_out(plan: list[Task], expected: list[str]) -> None:
    assert ids(independent_tasks(plan)) == expected


def test_what_can_begin_beside_what_is_at_work() -> None:
    rows, more = task("A", files=("rows.py",)), task("B", files=("rows.py",))
    later = task("C", "A")
    assert ids(startable([rows, more, later], set(), [])) == ["A"]
    assert ids(startable([more, later], {"A"}, [rows])) == ["C"]
    assert ids(startable([more, later], {"A"}, [])) == ["B", "C"]
