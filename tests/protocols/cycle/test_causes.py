"""Why a cycle does not go on is said with its remedy, and nothing is said of one that does."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from acp_core.agents import presets
from acp_core.agents.processes import Identity, identify
from acp_core.agents.state import RunnerState, Saved
from acp_core.diagnosis.engine import Diagnosis
from acp_core.model import Matter
from acp_core.model.matter import Kind
from acp_core.protocols.cycle.collaboration import Cycles
from acp_core.protocols.cycle.conduct import process as conduct_process
from acp_core.protocols.cycle.read import orchestrator_spec
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext, Patience
from tests.protocols.cycle import conducting
from tests.protocols.cycle.conducting import done
from tests.protocols.cycle.making import (
    ID,
    NOW,
    PROGRESS,
    STATE,
    agent,
    agents,
    blocker,
    coordination,
    cycle,
    decision,
    state,
    write,
)

FAILING = {"pass_rate": 90, "failed_tests": ["a", "b"], "total_tests": 20}
DONE = agents(cd=agent(), vas=agent())
LATER = NOW + timedelta(minutes=5)


def causes(root: Path, *loops: RunnerState, now: Any = LATER) -> list[Matter]:
    """What is found of a project at a moment, `LATER` by default."""
    cycles = Cycles(str(root))
    snapshot = cycles.refresh(now)
    case = DiagnosisContext(snapshot, Clock(now), loops=loops)
    return list(cycles.causes(case))


def codes(root: Path, *loops: RunnerState, now: Any = LATER) -> list[tuple[str, str | None]]:
    return [(each.code, each.remedy) for each in causes(root, *loops, now=now)]


def orchestrator(root: Path, alive: bool) -> RunnerState:
    """The project's orchestrator, which lives or was killed; its spec is kept."""
    preset = presets.any_command(["true"])
    conduct_process.save(orchestrator_spec.Spec(str(root), ID, orchestrator_spec.with_presets(dict.fromkeys(
        ("ra", "ep", "cd", "vas"), (preset, "")))))  # fmt: skip
    mine = identify(os.getpid())
    assert mine is not None
    process = mine if alive else Identity(2**22 + 1, 0.0)
    saved = Saved(str(root), "orchestrator", process, NOW)
    return RunnerState(str(root), "orchestrator", saved, alive, False, "", "")


def test_a_cycle_that_goes_on_has_no_causes(tmp_path: Path) -> None:
    cycle(tmp_path)
    assert codes(tmp_path) == []
    assert codes(tmp_path, orchestrator(tmp_path, alive=True)) == []


def test_a_cycle_that_failed_has_no_causes(tmp_path: Path) -> None:
    left = coordination(pending_decisions=[decision()], blockers=[blocker()])
    cycle(tmp_path, "failed", coordination=left)
    assert codes(tmp_path) == []


def test_what_is_completed_and_not_good_is_told_with_what_can_be_done(tmp_path: Path) -> None:
    cycle(tmp_path, "completed")
    assert codes(tmp_path) == []
    cycle(tmp_path, "completed", coordination=coordination(pending_decisions=[decision()]))
    (cause,) = causes(tmp_path)
    assert (cause.remedy, cause.others) == ("decide", ())
    failing = {"total_tests": 10, "failed_tests": ["quoting"], "pass_rate": 90}
    cycle(tmp_path, "completed", test_results=failing, max_iterations=1)
    (cause,) = causes(tmp_path)
    assert (cause.code, cause.sentence) == ("E8", "Marked completed, but 1 test fails")
    assert (cause.remedy, cause.others, cause.evidence) == ("extend", ("accept",), ("quoting",))
    (need,) = Cycles(str(tmp_path)).refresh(NOW).needs
    assert cause.explains == (need.key,), "the same need is counted once"
    cycle(tmp_path, "completed", test_results={"total_tests": 0})
    (cause,) = causes(tmp_path)
    assert (cause.code, cause.sentence) == ("E7", "Marked completed, but no tests ran")
    (need,) = Cycles(str(tmp_path)).refresh(NOW).needs
    assert cause.explains == (need.key,)
    assert done(tmp_path, "accept", "--reason", "A spike")["state"] == "done"
    assert causes(tmp_path) == [] and Cycles(str(tmp_path)).refresh(NOW).needs == ()
    assert "already accepted" in conducting.refused(tmp_path, "accept")


def test_the_limit_of_iterations_keeps_failing_tests_from_being_mended(tmp_path: Path) -> None:
    last = {"agents": DONE, "test_results": FAILING, "current_iteration": 5}
    cycle(tmp_path, **last)
    assert ("E8", "limit") in codes(tmp_path)
    cycle(tmp_path, **last | {"current_iteration": 4})
    assert ("E8", "limit") not in codes(tmp_path)
    cycle(tmp_path, agents=DONE, current_iteration=5)
    assert ("E8", "limit") not in codes(tmp_path), "all tests pass"
    asked = decision(kind="limit")
    cycle(tmp_path, "paused", coordination=coordination(pending_decisions=[asked]), **last)
    assert codes(tmp_path) == [("E8", "decide")]


def test_a_cycle_at_its_limit_waits_for_a_decision_and_for_nothing_else(tmp_path: Path) -> None:
    """It is not stalled, and no orchestrator is offered that would have nothing to do."""
    last = {"agents": DONE, "test_results": FAILING, "current_iteration": 5}
    cycle(tmp_path, **last)
    (found,) = (each for each in causes(tmp_path) if each.wanted)
    assert (found.remedy, found.kind) == ("limit", Kind.DECISION)
    opened, late = Cycles(str(tmp_path)), NOW + timedelta(days=1)
    snapshot = Diagnosis(Patience()).diagnose(opened, opened.refresh(late), (), (), late)
    assert [need.key for need in snapshot.needs] == [found.key]
    assert "stalled" not in snapshot.headline
    assert "iteration 5 of 5 ended with 2 failing tests" in snapshot.headline


def test_an_orchestrator_that_was_killed_is_started_again(tmp_path: Path) -> None:
    cycle(tmp_path)
    (cause,) = causes(tmp_path, orchestrator(tmp_path, alive=False))
    assert (cause.code, cause.remedy, cause.certain) == ("B2", "run", True)
    assert "killed, or the machine restarted" in cause.evidence[0]
    assert codes(tmp_path, orchestrator(tmp_path, alive=True)) == []
    cycle(tmp_path, "paused", agents=agents(cd=agent("waiting")))
    assert ("B2", "run") not in codes(tmp_path, orchestrator(tmp_path, alive=False))


def test_a_cycle_that_nobody_conducts_says_how(tmp_path: Path) -> None:
    done(tmp_path, "start", "Export", "--cycle", conducting.ID, "--no-run")
    (cause,) = causes(tmp_path)
    assert (cause.code, cause.remedy) == ("B1", "run")
    assert cause.remedy == "run" and "start one" in cause.instruction
    write(tmp_path, STATE, state(current_iteration=0, agents=agents(cd=agent("idle"))))
    assert codes(tmp_path) == [], "somebody else's may run elsewhere"


def test_where_nothing_is_written_any_more_that_is_inferred(tmp_path: Path) -> None:
    cycle(tmp_path)
    (cause,) = causes(tmp_path, now=NOW + timedelta(hours=1))
    assert (cause.code, cause.certain) == ("B14", False)
    assert "marked as working: cd" in cause.evidence
    assert codes(tmp_path, now=NOW + timedelta(minutes=20)) == []


def test_an_agent_that_waits_for_nobody_is_told_something(tmp_path: Path) -> None:
    waits = agents(cd=agent("waiting", last_message="Unclear"))
    cycle(tmp_path, agents=waits)
    (cause,) = causes(tmp_path)
    assert (cause.code, cause.remedy, dict(cause.given)) == ("E7", "feedback", {"agent": "cd"})
    told = [{"id": "FB-001", "source": "user", "target": "cd", "content": "so"}]
    cycle(tmp_path, agents=waits, coordination=coordination(feedback_log=told))
    assert codes(tmp_path) == []


def test_a_state_that_cannot_be_read_is_made_anew(tmp_path: Path) -> None:
    path = write(tmp_path, STATE, "{")
    (cause,) = causes(tmp_path)
    assert (cause.code, cause.remedy) == ("A5", "")
    assert cause.instruction.startswith("restore ") and "from your own copy" in cause.instruction
    assert list(Cycles(str(tmp_path)).actions(LATER)) == []
    write(tmp_path, f"{PROGRESS}/ra/requirements.md", "# Requirements - v1.0.0")
    assert codes(tmp_path) == [("A5", "rebuild")]
    (action,) = Cycles(str(tmp_path)).actions(LATER)
    assert action.name == "rebuild"
    assert not action.preview(action.inputs()).refused
    os.utime(path, (LATER.timestamp() - 0.5, LATER.timestamp() - 0.5))
    assert codes(tmp_path) == [], "it is just being written"


def test_what_extends_a_cycle_at_its_limit_raises_that_too(tmp_path: Path) -> None:
    cycle(tmp_path, "completed", test_results={"total_tests": 0}, max_iterations=1)
    (cause,) = causes(tmp_path)
    assert (cause.remedy, cause.given) == ("extend", (("limit", "2"),))
    done(tmp_path, "extend", "More", "--limit", "2")
    assert causes(tmp_path) == []
