"""What goes wrong in a cycle goes to whoever can mend it: with real programs."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from acp_core.cli.main import run as acp_main
from acp_core.protocols.cycle.conduct import process
from tests.agents.support import is_gone, wait_for
from tests.protocols.cycle import conducting, making
from tests.protocols.cycle.conducting import ID, acp, calls, done, path, progress, state

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def conduct(root: Path, *words: str, expect: int = 0, **behaviour: list[str]) -> dict[str, Any]:
    """A whole cycle in this process, until it is over or a person is wanted; its state then."""
    conducting.behave(root, **behaviour)
    code, out, err = acp(
        "start", conducting.WHAT, "--folder", str(root), "--cycle", ID, "--command",
        conducting.AGENT, "--foreground", "--leave", *words,
    )  # fmt: skip
    assert code == expect, (code, out, err)
    return state(root)


def told(*words: str) -> str:
    """What `acp` says, with every space once."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        acp_main(words, lambda paths, settings: 99)
    return " ".join(out.getvalue().split())


def go_on(root: Path, expect: int = 0) -> dict[str, Any]:
    code, out, err = acp("run", "--folder", str(root), "--foreground", "--leave")
    assert code == expect, (out, err)
    return state(root)


def test_a_plan_that_does_not_fit_goes_to_ep_and_comes_back(tmp_path: Path) -> None:
    ended = conduct(tmp_path, cd=["ask ep"])
    assert calls(tmp_path) == ["ra work", "ep work", "cd ask ep", "ep work", "cd work", "vas work"]
    assert ended["plan"]["version"] == "1.1.0"
    assert ended["agents"]["cd"]["version"] == "1.0.0"
    assert ended["coordination"]["blockers"][0]["resolution"] == "Two tasks (plan.json v1.1.0)"
    assert (progress(tmp_path) / "ep/history/plan-v1.0.0.json").exists()
    told = (tmp_path / "prompt-ep-2.txt").read_text()
    assert "1. Answer: BLK-001: the plan has no task for the header row" in told


@pytest.mark.slow
def test_a_question_in_issues_md_goes_to_ra(tmp_path: Path) -> None:
    ended = conduct(tmp_path, cd=["question"])
    assert calls(tmp_path)[2:5] == ["cd question", "ra work", "cd work"]
    assert ended["coordination"]["blockers"][0]["description"] == "Which delimiter?"


@pytest.mark.slow
def test_what_was_answered_and_is_asked_again_goes_to_a_person(tmp_path: Path) -> None:
    asked = conduct(tmp_path, cd=["ask ra", "ask ra"], expect=4)
    first, second = asked["coordination"]["blockers"]
    assert (first["routed_to"], second["routed_to"]) == ("ra", "user")
    done(tmp_path, "resolve", second["id"], "A comma", "--workaround")
    wait_for(lambda: state(tmp_path)["status"] == "completed", "the end")
    ended = state(tmp_path)
    assert ended["coordination"]["blockers"][1]["status"] == "workaround"
    assert "Decided: A comma" in (tmp_path / "prompt-cd-3.txt").read_text()


@pytest.mark.slow
def test_a_program_that_fails_is_tried_again_then_a_person_is_asked(tmp_path: Path) -> None:
    asked = conduct(tmp_path, ep=["crash", "silent"], expect=4)
    assert asked["agents"]["ep"]["status"] == "failed"
    assert [each["phase"] for each in asked["phase_errors"]] == ["ep", "ep"]
    assert "exit code 3: not logged in" in asked["phase_errors"][0]["error"]
    assert asked["phase_errors"][1]["error"] == "the run ended without PHASE_RESULT"
    told = (tmp_path / "prompt-ep-2.txt").read_text()
    assert "# The run before this one failed\n\nexit code 3: not logged in" in told
    (decision,) = asked["coordination"]["pending_decisions"]
    assert decision["options"] == ["Run it again", "Stop the cycle"]
    code, out, _ = acp("decide", "DEC-001", "1", "--folder", str(tmp_path), "--dry-run")
    assert code == 0
    assert '+        "chosen_option": "Run it again"' in out
    assert state(tmp_path) == asked, "a dry run writes nothing"
    done(tmp_path, "decide", "DEC-001", "1")
    wait_for(lambda: state(tmp_path)["status"] == "completed", "the end")


def test_a_program_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    asked = conduct(tmp_path, "--timeout", "0.5", "--attempts", "1", ra=["sleep 60"], expect=4)
    assert "exceeded its time limit" in asked["agents"]["ra"]["error"]
    assert asked["coordination"]["pending_decisions"][0]["agent"] == "ra"


@pytest.mark.slow
def test_without_tests_that_ran_nothing_is_complete(tmp_path: Path) -> None:
    asked = conduct(tmp_path, vas=["no tests"], expect=4)
    assert asked["status"] == "paused"
    (decision,) = asked["coordination"]["pending_decisions"]
    assert decision["kind"] == "unproven"
    done(tmp_path, "decide", "DEC-001", "1")
    wait_for(lambda: state(tmp_path)["status"] == "completed", "the end")
    assert calls(tmp_path)[-1] == "vas work"


def test_tasks_that_are_not_done_are_fed_back(tmp_path: Path) -> None:
    ended = conduct(tmp_path, cd=["half"])
    assert ended["current_iteration"] == 2
    assert "1 planned tasks not done: TASK-002" in ended["iterations"][0]["issues_found"]
    assert "- [ ] TASK-002 is done" in (tmp_path / "prompt-cd-2.txt").read_text()


QUESTION = "Which delimiter? A person must decide"


@pytest.mark.parametrize("agent", ["ra", "ep", "cd", "vas"])
def test_an_agent_that_has_not_finished_completes_no_cycle_by_itself(
    tmp_path: Path, agent: str
) -> None:
    asked = conduct(tmp_path, expect=4, **{agent: [f"partial {QUESTION}"]})
    assert (asked["status"], asked["agents"][agent]["status"]) == ("paused", "waiting")
    assert asked["iterations"][-1]["agent_results"][agent]["issues"] == [QUESTION]
    ran = ["ra", "ep", "cd", "vas"][: {"ra": 1, "ep": 2}.get(agent, 4)]
    assert [each.split()[0] for each in calls(tmp_path)] == ran
    _, shown = conducting.diagnosed(tmp_path)
    (need,) = shown.needs
    assert QUESTION in need.sentence and need.remedy == "decide"
    assert "answer with the number of an option, or in words" in shown.headline
    assert f"{agent} has not finished (DEC-001)" in told("card", str(tmp_path))
    for command in ("card", "why", "status", "show"):
        assert QUESTION in told(command, str(tmp_path)), command
    done(tmp_path, "decide", "DEC-001", "A semicolon")
    wait_for(lambda: state(tmp_path)["status"] == "completed", "the end")
    assert calls(tmp_path).count(f"{agent} work") == 1
    again = (tmp_path / f"prompt-{agent}-2.txt").read_text()
    assert f"{QUESTION} Decided: A semicolon" in " ".join(again.split())
    assert calls(tmp_path)[-1] == "vas work"


def test_what_an_agent_did_not_finish_can_be_taken_as_it_is(tmp_path: Path) -> None:
    asked = conduct(tmp_path, expect=4, cd=["partial"], vas=["partial Not run in a browser"])
    (decision,) = asked["coordination"]["pending_decisions"]
    assert decision["options"] == ["Run it again", "Continue anyway", "Stop the cycle"]
    assert decision["description"] == "CD has not finished: Built"
    done(tmp_path, "decide", "DEC-001", "2")
    wait_for(lambda: len(state(tmp_path)["coordination"]["pending_decisions"]) == 2, "VAS's")
    asked = state(tmp_path)
    assert asked["status"] == "paused"
    assert asked["coordination"]["pending_decisions"][1]["description"].endswith("in a browser")
    done(tmp_path, "decide", "DEC-002", "2")
    wait_for(lambda: state(tmp_path)["status"] == "completed", "the end")
    assert calls(tmp_path) == ["ra work", "ep work", "cd partial", "vas partial"]


def test_failing_tests_begin_the_next_iteration_before_anybody_is_asked(tmp_path: Path) -> None:
    ended = conduct(tmp_path, cd=["half"], vas=["partial Half of it is missing"])
    assert (ended["status"], ended["current_iteration"]) == ("completed", 2)
    assert ended["coordination"]["pending_decisions"] == []


def test_without_an_orchestrator_nobody_is_said_to_run(tmp_path: Path) -> None:
    conducting.start(tmp_path, ra=["hold"])
    wait_for(lambda: calls(tmp_path) == ["ra hold"], "ra to begin")
    status = told_by_cycle(tmp_path)
    assert f"{ID} {conducting.WHAT} Running; iteration 1" in status and " ra running for" in status
    kill_orchestrator(tmp_path)
    status = told_by_cycle(tmp_path)
    assert f"{ID} {conducting.WHAT} Marked running" in status and " ra marked running" in status
    assert "orchestrator: none running" in status


def told_by_cycle(root: Path) -> str:
    code, out, err = acp("status", "--folder", str(root))
    assert code == 0, err
    return " ".join(out.split())


def kill_orchestrator(root: Path) -> None:
    running = process.running(str(root))
    assert running is not None
    os.kill(running.pid, signal.SIGKILL)
    wait_for(lambda: is_gone(running.pid), "the orchestrator to be gone")


@pytest.mark.slow
def test_a_log_that_shrinks_is_said(tmp_path: Path) -> None:
    ended = conduct(tmp_path, cd=["ask ra", "shrink"])
    (error,) = [each for each in ended["phase_errors"] if "shrank" in each["error"]]
    assert error["phase"] == "cd"
    assert error["error"].startswith("cd/changes.log shrank from ")
    timeline = (progress(tmp_path) / "coordination/timeline.md").read_text()
    assert "cd/changes.log shrank" in timeline


@pytest.mark.slow
def test_ep_begins_beside_ra_only_where_asked(tmp_path: Path) -> None:
    conduct(tmp_path, "--overlap", ra=["sleep 1.5"], ep=[""])
    lines = (tmp_path / "calls.log").read_text().splitlines()
    calls = [line.split()[:2] for line in lines]
    assert calls.index(["start", "ep"]) < calls.index(["end", "ra"])


def test_an_agent_may_write_its_own_fields_and_no_others(tmp_path: Path) -> None:
    conducting.start(tmp_path, ep=["hold"])
    wait_for(lambda: len(calls(tmp_path)) == 2, "ep to begin")
    held = state(tmp_path)
    held["requirements"] = {"version": "1.0.0", "specification": "written by RA itself"}
    held["max_iterations"] = 99
    held["from_elsewhere"] = {"kept": True}
    path(tmp_path).write_text(json.dumps(held))
    wait_for(lambda: state(tmp_path)["max_iterations"] == 5, "the limit to be put back")
    (tmp_path / "go").touch()
    now = state(tmp_path)
    assert now["requirements"]["specification"] == "written by RA itself"
    assert now["from_elsewhere"] == {"kept": True}
    ended = conducting.wait_for_end(tmp_path)
    assert (ended["status"], ended["max_iterations"]) == ("completed", 5)
    timeline = (progress(tmp_path) / "coordination/timeline.md").read_text()
    assert "acp undid a change of max_iterations by another program" in timeline
    assert "took over requirements, which an agent changed itself" in timeline


@pytest.mark.slow
def test_paused_it_waits_and_stopped_it_ends_with_its_agent(tmp_path: Path) -> None:
    conducting.start(tmp_path, ra=["hold"], ep=["sleep 60"])
    wait_for(lambda: calls(tmp_path) == ["ra hold"], "ra to begin")
    assert done(tmp_path, "pause")["state"] == "requested"
    (tmp_path / "go").touch()
    wait_for(lambda: state(tmp_path)["agents"]["ra"]["status"] == "completed", "ra to end")
    time.sleep(0.8)
    assert calls(tmp_path) == ["ra hold"]
    assert state(tmp_path)["status"] == "paused"
    done(tmp_path, "resume")
    wait_for(lambda: len(calls(tmp_path)) == 2, "ep to begin")
    done(tmp_path, "stop", "--reason", "Not wanted any more")
    ended = conducting.wait_for_end(tmp_path)
    assert (ended["status"], ended["failure_reason"]) == ("failed", "Not wanted any more")
    assert ended["agents"]["ep"]["status"] == "idle"
    told = done(tmp_path, "status")
    assert told["orchestrator"] is None
    assert "is failed" in conducting.refused(tmp_path, "run")
    done(tmp_path, "resume")
    assert conducting.wait_for_end(tmp_path)["status"] == "completed"
    assert calls(tmp_path)[1:] == ["ep sleep 60", "ep work", "cd work", "vas work"]


@pytest.mark.slow
def test_a_completed_cycle_is_extended_and_every_agent_has_its_turn(tmp_path: Path) -> None:
    first = conduct(tmp_path)
    assert first["current_iteration"] == 1
    done(tmp_path, "extend", "Also as JSON")
    wait_for(
        lambda: state(tmp_path)["status"] == "completed" and len(calls(tmp_path)) == 8, "the end"
    )
    ended = state(tmp_path)
    assert ended["current_iteration"] == 2
    assert ended["description"].endswith("\n\n--- ITERATION 2 ---\nAlso as JSON")
    assert ended["task_history"] == [conducting.WHAT, "Also as JSON"]
    assert ended["iterations"][1]["extension"] == "Also as JSON"
    assert calls(tmp_path)[4:] == ["ra work", "ep work", "cd work", "vas work"]
    assert "1. Take up: Also as JSON" in (tmp_path / "prompt-ra-2.txt").read_text()
    assert {each["version"] for each in ended["agents"].values()} == {"1.1.0"}


@pytest.mark.slow
def test_an_agent_is_run_again_with_those_after_it(tmp_path: Path) -> None:
    conduct(tmp_path, cd=["ask user"], expect=4)
    assert "decide it" in conducting.refused(tmp_path, "resume")
    done(tmp_path, "rerun", "ep", "--reason", "Plan it smaller")
    done(tmp_path, "decide", "DEC-001", "2")
    wait_for(lambda: state(tmp_path)["status"] == "completed", "the end")
    assert calls(tmp_path)[2:] == ["cd ask user", "ep work", "cd work", "vas work"]
    assert "1. Do again: Plan it smaller" in (tmp_path / "prompt-ep-2.txt").read_text()
    assert "Decided: Refuse" in (tmp_path / "prompt-cd-2.txt").read_text()


def test_a_cycle_that_another_conducted_is_taken_over(tmp_path: Path) -> None:
    """Its agent at work begins anew, with the feedback that it had; its escalation is one thing."""
    entry = {"timestamp": "2026-03-02T18:45:00+08:00", "source": "vas", "target": "cd",
             "content": "Quote newlines", "type": "bug_report"}  # fmt: skip
    old = entry | {"target": "ra", "content": "Long ago", "type": "clarification"}
    told = making.coordination(
        feedback_log=[old, entry], pending_decisions=[making.decision()],
        blockers=[making.blocker()],
    )  # fmt: skip
    work = making.agents(ra=making.agent(), ep=making.agent(), cd=making.agent("running"))
    making.cycle(tmp_path, "paused", agents=work, coordination=told, cycle_id="../../elsewhere")
    done(tmp_path, "decide", "DEC-001", "1")
    assert state(tmp_path)["coordination"]["blockers"][0]["resolution"] == "DEC-001: Stream"
    code, _, err = acp(
        "run", "--folder", str(tmp_path), "--command", conducting.AGENT, "--foreground", "--leave",
    )  # fmt: skip
    assert code == 0, err
    assert calls(tmp_path) == ["cd work", "vas work"]
    prompt = (tmp_path / "prompt-cd-1.txt").read_text()
    assert "1. Fix: Quote newlines" in prompt
    assert "Decided: Stream" in prompt
    assert "Long ago" not in prompt
    assert "elsewhere" not in prompt, "the file's name counts, not what stands in it"
