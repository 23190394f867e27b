"""Whatever the agents say, the orchestrator keeps the order, and never completes what fails."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from acp_core.model.errors import Refused
from acp_core.protocols.cycle import state as states
from acp_core.protocols.cycle.conduct import results, steps
from acp_core.protocols.cycle.conduct.results import Facts, open_questions
from acp_core.protocols.cycle.conduct.steps import Kind, route
from acp_core.protocols.cycle.read.progress import PhaseResult, Value
from acp_core.protocols.cycle.schema import AGENTS, DEPENDS, Decision, Object, decoder_of, objects
from acp_core.protocols.cycle.write import changes, layout
from acp_core.protocols.cycle.write.store import first_state
from tests.protocols.cycle.making import ID

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
BLOCKERS = st.lists(
    st.sampled_from(
        ["RA: which delimiter?", "EP: a task is missing", "USER: large? | Stream | Refuse",
         "FR-003 unclear", "nobody knows", "CD: a bug"]
    ),
    max_size=2,
)  # fmt: skip
WORDS = ["status", "agents", "coordination", "iterations", "plan", "tasks", "current_iteration",
         "max_iterations", "test_results", "failed_tests", "total_tests", "changes", "feedback_log",
         "pending_decisions", "blockers", "run", "../../x", "running", "waiting", "completed",
         "made", "open", "id", "kind", "limit", "target", "ra", "ep", "cd", "vas", "version",
         "iteration_markers", "options", "chosen_option", "agent", "requests", "outbox"]  # fmt: skip
SAID = st.tuples(
    st.sampled_from(["success", "success", "success", "partial", "failed", "done", ""]),
    st.one_of(st.just([]), BLOCKERS),
    st.integers(0, 3),  # failing tests
    st.sampled_from([0, 10, 10, 10]),  # tests in all
    st.booleans(),  # whether tasks are done
)


def result(agent: str, said: tuple[str, list[str], int, int, bool]) -> tuple[PhaseResult, Facts]:
    status, blockers, failing, total, finished = said
    names = [f"test {number}" for number in range(failing)]
    fields: dict[str, Value] = {"phase": agent, "status": status, "summary": "Said"}
    fields |= {"blockers": blockers, "issues": []}
    if agent == "cd":
        fields["tasks_completed"] = ["T1", "T2"] if finished else ["T1"]
    summary = {"total": total, "passed": max(0, total - failing), "failed": failing}
    tests: Object = {"summary": summary, "failed_tests": list(names)}
    plan: Object = {"tasks": [{"id": "T1"}, {"id": "T2", "depends_on": ["T1"]}]}
    facts = Facts(
        plan=plan if agent == "ep" else {},
        tests=tests if agent == "vas" and total else {},
    )
    return PhaseResult(fields), facts


def answer(state: Object, now: datetime, number: int) -> None:
    """A person decides whatever waits."""
    for each in list(changes.open_decisions(state)):
        offered = decoder_of().decode(Decision, each).options
        choice = str(number % len(offered) + 1) if offered else "as you like"
        changes.decide(state, now, str(each["id"]), choice)
    if state["status"] == "paused":
        changes.resume(state, now)


def check(state: Object, before: Object) -> None:
    """What must hold after every step."""
    at_work = [name for name in AGENTS if steps.status(state, name) == "running"]
    assert len(at_work) <= 1
    for name in at_work:
        needs = DEPENDS[name]
        assert not needs or steps.status(state, needs) == "completed"
    for key in ("feedback_log", "pending_decisions", "blockers"):
        held, earlier = (objects(s["coordination"][key]) for s in (state, before))  # type: ignore[index]
        ids = [str(each["id"]) for each in held]
        assert len(set(ids)) == len(ids)
        assert ids[: len(earlier)] == [each["id"] for each in earlier], "the state only grows"
    iterations = objects(state["iterations"])
    assert [each["number"] for each in iterations] == list(range(1, len(iterations) + 1))
    assert int(str(state["current_iteration"])) <= int(str(state["max_iterations"]))
    for name in AGENTS:
        old, new = (str(changes.agent_of(s, name).get("version", "")) for s in (before, state))
        assert layout.parts(new) >= layout.parts(old), "versions never go down"


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(SAID, min_size=4, max_size=40), st.integers(0, 5), st.integers(1, 3))
def test_any_course_of_things_keeps_the_rules(
    said: list[tuple[str, list[str], int, int, bool]], choice: int, limit: int
) -> None:
    now = NOW
    state = first_state(ID, now, "Export", "", limit)
    steps.begin_cycle(state, now)
    waiting = iter(said)
    for _ in range(400):
        now += timedelta(seconds=1)
        before = copy.deepcopy(state)
        steps.pick_up(state, now)
        steps.apply_decisions(state, now)
        todo = steps.next_step(state)
        if todo.kind is Kind.OVER:
            break
        if todo.kind is Kind.WAIT:
            answer(state, now, choice)
        elif todo.kind is Kind.PREPARE:
            stay = tuple(n for n in AGENTS if steps.status(state, n) == "completed")
            steps.prepared(state, now, steps.next_version(state), stay)
        elif todo.kind is Kind.EVALUATE:
            results.evaluate(state, now)
        elif todo.kind is Kind.STUCK:
            raise AssertionError(todo.note)
        else:
            (name,) = todo.agents
            if steps.status(state, name) == "running":
                then = next(waiting, ("success", [], 0, 10, True))
                results.ended_run(state, now, name, *result(name, then), 2)
            else:
                steps.begin_run(state, now, name)
        check(state, before)
    else:
        raise AssertionError(f"it never ends: {todo}")
    assert state["status"] in ("completed", "failed")
    chosen = {str(e.get("chosen_option")) for e in objects(state["coordination"]["pending_decisions"])}  # type: ignore[index]  # fmt: skip
    if state["status"] == "completed" and steps.ACCEPT not in chosen:
        tests = states.Tests(dict(state["test_results"]))  # type: ignore[call-overload]
        assert tests.proven
        assert not tests.failed
        assert {each["status"] for each in objects(state["plan"]["tasks"])} <= {"completed"}  # type: ignore[index]
    if state["status"] == "failed":
        assert steps.STOP in chosen


ACTS = st.sampled_from(["decide", "resolve", "feedback", "extend", "pause", "resume", "stop",
                        "rerun", "limit", "accept"])  # fmt: skip


@given(st.lists(st.tuples(ACTS, st.integers(0, 8), st.text(max_size=8)), max_size=25))
@example([("decide", 1, "both\nof them"), ("decide", 1, "none")])
def test_whatever_people_do_is_done_or_refused(acts: list[tuple[str, int, str]]) -> None:
    state = first_state(ID, NOW, "Export")
    steps.begin_cycle(state, NOW)
    steps.escalate(state, NOW, "blocker", "Large?", ("Stream", "Refuse"), agent="cd")
    for act, number, text in acts:
        before = copy.deepcopy(state)
        try:
            if act == "decide":
                changes.decide(state, NOW, f"DEC-{number:03}", text or str(number))
            elif act == "resolve":
                changes.resolve(state, NOW, f"BLK-{number:03}", text)
            elif act == "feedback":
                changes.feedback(state, NOW, AGENTS[number % 4], text, "clarification")
            elif act == "extend":
                changes.extend(state, NOW, text, number or None)
            elif act == "rerun":
                changes.rerun(state, NOW, AGENTS[number % 4], text)
            elif act == "limit":
                changes.raise_limit(state, NOW, number)
            elif act == "stop":
                changes.stop(state, NOW, text)
            elif act == "accept":
                changes.accept(state, NOW, text)
                assert state["status"] == "completed"
            else:
                {"pause": changes.pause, "resume": changes.resume}[act](state, NOW)
        except Refused as error:
            assert "\n" not in str(error)
            state = before  # what is refused is never written
            continue
        requests = objects(state["coordination"]["requests"])  # type: ignore[index]
        assert requests[-1]["action"] == act
        over = act == "limit" and state["status"] in ("failed", "completed")
        assert bool(requests[-1].get("picked_up_at")) == (act == "accept" or over)
        assert state["status"] in ("running", "paused", "failed", "completed")


def test_who_can_answer_is_told_or_guessed() -> None:
    assert route("RA: which one?", "cd") == ("ra", "which one?", ())
    assert route("USER: large? | Stream | Refuse", "cd").options == ("Stream", "Refuse")
    assert route("FR-003 is unclear", "cd").owner == "ra"
    assert route("the plan lacks a task", "cd").owner == "ep"
    assert route("the network is down", "cd").owner == "user"
    assert route("EP: after me", "ra").owner == "user", "only those before can answer"
    assert route("which requirement?", "ra").owner == "user"


def test_open_questions_are_those_that_are_not_ticked_off() -> None:
    text = """# Issues
## Open Issues
- not this
## Questions for RA
- Q1: header row?
- [x] done
- [ ] Q2: delimiter?
- None
## Questions for EP
* who tests?
## Else
- not this
"""
    assert open_questions(text) == ["RA: Q1: header row?", "RA: Q2: delimiter?", "EP: who tests?"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10) | st.text(max_size=5) | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=25,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(WORDS), JSON, max_size=8), st.sampled_from(AGENTS), SAID)
def test_whatever_stands_in_a_state_it_is_conducted_or_asked_about(
    state: dict[str, object], name: str, said: tuple[str, list[str], int, int, bool]
) -> None:
    steps.adopt(state, NOW)
    steps.begin_cycle(state, NOW)
    steps.pick_up(state, NOW)
    steps.apply_decisions(state, NOW)
    state["status"] = "running"
    for each in steps.next_step(state).agents:
        assert each in AGENTS
    key = steps.begin_run(state, NOW, name)
    assert key.split("-")[1] == name
    assert "/" not in key
    results.ended_run(state, NOW, name, *result(name, said), 2)
    steps.prepared(state, NOW, steps.next_version(state), AGENTS)
    results.evaluate(state, NOW)
    assert state["status"] in ("running", "paused", "completed", "failed")


def test_a_limit_waits_for_an_orchestrator_only_where_one_conducts() -> None:
    for status, waits in (("running", 1), ("paused", 1), ("completed", 0), ("failed", 0)):
        state = first_state(ID, NOW, "Export") | {"status": status}
        changes.raise_limit(state, NOW, 7)
        assert state["max_iterations"] == 7
        assert len(changes.unheard(state)) == waits, status
