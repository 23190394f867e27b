"""What a cycle's state means, without an orchestrator: who can begin, what the tests tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_core.protocols.cycle import state as states
from acp_core.protocols.cycle.read.scan import open_folder
from acp_core.protocols.cycle.schema import Cycle
from acp_core.protocols.cycle.write.store import finish
from tests.protocols.cycle import making
from tests.protocols.cycle.making import NOW, PROGRESS, agent, agents, write


def cycle(root: Path, word: str = "running", **changed: object) -> Cycle:
    making.cycle(root, word, **changed)
    found = open_folder(str(root)).selected
    assert found is not None
    return found


@pytest.mark.parametrize("status", ["idle", "waiting"])
def test_an_agent_begins_once_the_one_before_it_is_done_and_the_cycle_goes_on(
    tmp_path: Path, status: str
) -> None:
    done = agents(cd=agent("completed"), vas=agent(status))
    assert states.can_start(cycle(tmp_path / "goes", agents=done), "vas")
    assert not states.can_start(cycle(tmp_path / "rests", "paused", agents=done), "vas")
    assert not states.can_start(cycle(tmp_path / "works"), "vas")
    ended = agents(cd=agent("completed"), vas=agent("completed"))
    assert not states.can_start(cycle(tmp_path / "over", agents=ended), "vas")


def test_what_is_derived_is_written_as_it_is() -> None:
    held = making.state(agents=agents(cd=agent("completed"), vas=agent("idle")))
    finish(held, NOW)
    assert held["revision"] == 1
    assert [held["agents"][name]["can_start"] for name in ("ra", "ep", "cd", "vas")] == [
        False, False, False, True,
    ]  # fmt: skip
    finish(held, NOW)
    assert held["revision"] == 2


def test_the_worse_of_two_results_counts_and_tests_that_did_not_run_prove_nothing(
    tmp_path: Path,
) -> None:
    found = cycle(tmp_path, "completed")
    file = f"{PROGRESS}/vas/test-results.json"
    assert states.tests(found).proven and not states.tests(found).failed
    write(tmp_path, file, {"total_tests": 20, "failed_tests": ["quoting", "empty"]})
    worse = open_folder(str(tmp_path)).selected
    assert worse and states.tests(worse).failed == 2
    write(tmp_path, file, {"total_tests": 20, "failed_tests": [], "executed": False})
    skipped = open_folder(str(tmp_path)).selected
    assert skipped and not states.tests(skipped).executed
    assert str(states.tests(skipped)) == "no tests ran"
    write(tmp_path, file, {"total_tests": 20, "failed_tests": [], "executed": True})
    again = open_folder(str(tmp_path)).selected
    assert again and states.tests(again).proven


def test_failed_tests_are_named_by_their_list_or_by_their_rows() -> None:
    rows = {"tests": [{"name": "empty", "status": "failed"}, {"name": "wide", "status": "passed"}]}
    assert list(states.Tests({"failed_tests": ["quoting"], **rows}).names) == ["quoting"]
    named = states.Tests({"failed_tests": ["quoting"]})
    assert list(named.names) == ["quoting"] and named.failed == 1


def test_the_last_iteration_of_the_first_phase_leaves_it() -> None:
    gates = {"zero_to_one": {"iterations": [1, 2]}, "one_to_hundred": {"iterations": [3]}}
    leaves = [
        states.leaves_first_phase({"current_iteration": n, "phase_gates": gates}) for n in range(4)
    ]
    assert leaves == [False, False, True, False]
    assert not states.leaves_first_phase({"current_iteration": 1})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"agents": None}, "has no agents"),
        ({"agents": {"ra": {}}}, "does not hold the agent ep"),
        ({"status": ""}, "has no status"),
        ({"status": "dancing"}, "has the unknown status 'dancing'"),
        ({"current_iteration": "two"}, "has an iteration count that is not a whole number"),
        ({"current_iteration": None}, ""),
        ({"current_iteration": 0}, ""),
    ],
)
def test_what_a_state_lacks_is_said(changed: dict[str, object], said: str) -> None:
    assert states.what_is_lacking(making.state() | changed) == said


def test_an_iteration_that_a_person_took_as_it_is_is_accepted_and_no_other(
    tmp_path: Path,
) -> None:
    taken = making.decision(kind=states.ACCEPTED, iteration=1, status="implemented")
    kept = making.coordination(pending_decisions=[taken])
    assert states.accepted(cycle(tmp_path / "one", coordination=kept))
    assert not states.accepted(cycle(tmp_path / "two", coordination=kept, current_iteration=2))
    other = making.coordination(pending_decisions=[taken | {"kind": "question"}])
    assert not states.accepted(cycle(tmp_path / "asked", coordination=other))
