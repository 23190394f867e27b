"""Each rule speaks where it should, and is silent in a cycle that is as it should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acp_core.protocols.cycle import rules
from acp_core.protocols.cycle.rules import states
from tests.cycle.making import (
    HOME,
    PROGRESS,
    STATE,
    agent,
    agents,
    blocker,
    codes,
    coordination,
    cycle,
    decision,
    state,
    task,
    write,
)

FAILING = {"pass_rate": 90, "coverage": 80, "failed_tests": ["a"], "total_tests": 10}


def plan(*tasks: dict[str, Any]) -> dict[str, Any]:
    return {"version": "1.0.0", "tasks": list(tasks)}


CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("A02 error", "running", {"agents": []}),
    ("A03 error", "running", {"cycle_id": "cycle-v1-20260101T000000-other"}),
    ("A05 error", "in-progress", {}),
    ("A06 error", "running", {"current_iteration": -1}),
    ("A07 warning", "running", {"current_iteration": 6}),
    ("A08 error", "running", {"agents": {"ra": agent(), "ep": agent(), "cd": agent()}}),
    ("A08 advice", "running", {"agents": agents(qa=agent())}),
    ("A09 warning", "running", {"agents": agents(ra=agent("done"))}),
    ("A09 error", "running", {"agents": agents(ra=agent("sleeping"))}),
    ("A10 error", "running", {"created_at": "yesterday"}),
    ("A10z advice", "running", {"updated_at": "2026-03-02T19:59:00Z"}),
    (
        "A12 error",
        "running",
        {"agents": agents(ra=agent(completed_at="2026-03-02T18:04:00+08:00"))},
    ),
    ("A14 warning", "completed", {"completed_at": None}),
    ("A15 advice", "running", {"agents": agents(ra=agent(output_files=["ra\\x.md"]))}),
    ("A16 warning", "completed", {"current_phase": "vas"}),
    ("A17 warning", "running", {"agents": agents(ra=agent(output_files=["ra/x.md"]))}),
    ("A17 error", "running", {"agents": agents(ra=agent(output_files=["../../../x"]))}),
    ("A17 error", "running", {"agents": agents(ra=agent(output_files=["/etc/passwd"]))}),
    ("A23 error", "completed", {"agents": agents()}),
    ("A23 warning", "paused", {}),
    ("A30 warning", "completed", {"coordination": coordination(pending_decisions=[decision()])}),
    ("A30 advice", "running", {"coordination": coordination(pending_decisions=[decision()])}),
    ("A31 warning", "completed", {"coordination": coordination(blockers=[blocker()])}),
    (
        "A31 error",
        "running",
        {
            "agents": agents(cd=agent("waiting")),
            "coordination": coordination(blockers=[blocker()]),
        },
    ),
    ("A32 warning", "completed", {"plan": plan(task("T1", "pending"))}),
    ("A33 warning", "completed", {"test_results": None}),
    ("A34 error", "completed", {"test_results": FAILING}),
    (
        "A35 warning",
        "running",
        {"coordination": coordination(pending_decisions=[decision(status="made")])},
    ),
    (
        "A35 advice",
        "running",
        {
            "coordination": coordination(
                pending_decisions=[decision(status="made", chosen_option="Wait")]
            )
        },
    ),
    (
        "A36 warning",
        "running",
        {"coordination": coordination(blockers=[blocker(status="resolved")])},
    ),
    (
        "A37 warning",
        "running",
        {"coordination": coordination(feedback_log=[{"source": "vas", "target": "qa"}])},
    ),
    ("A42 warning", "running", {"iterations": [{"number": 1}, {"number": 1}]}),
    ("A50 error", "running", {"plan": plan(task("T1", "pending", "T9"))}),
    ("A51 warning", "running", {"plan": plan(task("T1", "pending"), task("T2", "done", "T1"))}),
    (
        "A52 error",
        "running",
        {"plan": plan(task("T1", "pending", "T2"), task("T2", "pending", "T1"))},
    ),
]


@pytest.mark.parametrize("word", ["running", "completed"])
def test_a_cycle_that_is_as_it_should_be_has_no_findings(tmp_path: Path, word: str) -> None:
    assert codes(cycle(tmp_path, word)) == set()


@pytest.mark.parametrize(("code", "word", "changed"), CASES)
def test_a_rule_on_the_state_speaks(
    tmp_path: Path, code: str, word: str, changed: dict[str, Any]
) -> None:
    assert code in codes(cycle(tmp_path, word, **changed))


def test_a_state_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, STATE, '{"cycle_id": "cyc')
    assert codes(tmp_path) == {"A01 error"}


def test_another_form_of_id_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path, f"{HOME}/cycle-local-1.json", state(cycle_id="cycle-local-1"))
    assert codes(tmp_path) == {"A04 warning"}


def test_rules_on_the_files_speak(tmp_path: Path) -> None:
    cycle(tmp_path)
    write(tmp_path, f"{PROGRESS}/ep/plan.json", {"total_tasks": 8, "tasks": [task("T1")]})
    write(tmp_path, f"{PROGRESS}/vas/test-results.json", "{")
    write(tmp_path, f"{PROGRESS}/cd/debug-log.ndjson", '{"a": 1}\nbroken\n{"a": 2}\n')
    (tmp_path / PROGRESS / "cd/issues.md").symlink_to("/etc/hostname")
    assert codes(tmp_path) == {"A53 warning", "A98 warning", "A80 warning", "A97 warning"}


def test_the_last_line_of_a_log_may_be_unfinished(tmp_path: Path) -> None:
    cycle(tmp_path)
    write(tmp_path, f"{PROGRESS}/cd/debug-log.ndjson", '{"a": 1}\n{"a"')
    assert codes(tmp_path) == {"A80 advice"}


def test_listed_files_that_are_there_are_no_finding(tmp_path: Path) -> None:
    names = [f"{PROGRESS}/ra/requirements.md", f"/elsewhere/{PROGRESS}/ra/edge-cases.md"]
    cycle(tmp_path, agents=agents(ra=agent(output_files=names)))
    write(tmp_path, f"{PROGRESS}/ra/requirements.md", "# R\n")
    write(tmp_path, f"{PROGRESS}/ra/edge-cases.md", "# E\n")
    assert codes(tmp_path) == set()


def test_an_agent_that_runs_again_may_have_completed_before(tmp_path: Path) -> None:
    again = agent("running", completed_at="2026-03-02T18:01:00+08:00")
    assert codes(cycle(tmp_path, agents=agents(cd=again))) == set()


def test_every_rule_is_tried() -> None:
    tried = {code.split()[0].removesuffix("z").lower() for code, _, _ in CASES}
    tried |= {"a01", "a04", "a53", "a80", "a97", "a98"}
    assert {rule.__name__ for rule in (*states.READING, *rules.RULES)} == tried
