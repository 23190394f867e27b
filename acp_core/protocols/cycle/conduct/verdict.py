"""Whether an iteration is good, once every agent is through, and what follows.

Source: development cycle specification, "Conflict Resolution" (test failure). A cycle completes
only when its tests ran and pass, its tasks are done and no agent says that it has not finished
(then a person is asked); else the next iteration begins with what
failed, as long as the limit allows, and a person is asked beyond it. Where the state holds criteria
of convergence these say how many tests must pass. Pure functions of the state.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle import state as cycle_state
from acp_core.protocols.cycle.conduct import routing
from acp_core.protocols.cycle.conduct.escalation import (
    ACCEPT,
    AGAIN,
    MORE,
    ON,
    STOP,
    ask_unfinished,
    close_iteration,
    complete,
    escalate,
)
from acp_core.protocols.cycle.schema import AGENTS, Object, coordination_of, iteration_of, plan_of
from acp_core.protocols.cycle.state import Criteria, Tests
from acp_core.protocols.cycle.write import changes

_LISTED = 8


class Issue(NamedTuple):
    """What is not good: who mends it, in a sentence, and how one sees that it is mended."""

    agent: str
    text: str
    criteria: tuple[str, ...]


def evaluate(state: Object, now: datetime) -> None:
    """Judge the iteration: complete the cycle, begin the next one, or ask a person."""
    for each in coordination_of(state).open_blockers:
        reporter = each.reported_by.lower()
        asked = each.description or each.id
        escalate(state, now, "blocker", asked, (), agent=reporter, blocker=each.id)
        return
    tests = Tests(schema.obj(state.get("test_results")))
    if not tests.proven:
        asked = "VAS named no tests that ran: test-results.json is missing, old or empty"
        escalate(state, now, "unproven", asked, (AGAIN, ACCEPT, STOP), agent="vas")
        return
    found = issues(state)
    if not found and ask_unfinished(state, now, AGENTS):
        return
    if not found:
        complete(state, now, resolved=True, reached=_reached(state, tests))
        return
    close_iteration(state, now, _problems(state, found), resolved=False)
    current = iteration_of(state)
    limit = schema.count(state.get("max_iterations"))
    if limit is not None and current >= limit:
        asked = f"Iteration {current} of {limit} ended: {'; '.join(each.text for each in found)}"
        escalate(state, now, "limit", asked, (MORE, ACCEPT, STOP))
        return
    if _misses_gate(state, tests) and not _asked(state, current):
        asked = f"Iteration {current} ends zero_to_one, but no test passes"
        escalate(state, now, "gate", asked, (ON, ACCEPT, STOP))
        return
    feed_back(state, now, found)


def feed_back(state: Object, now: datetime, found: list[Issue]) -> None:
    """Begin the next iteration with what is not good."""
    first = min(AGENTS.index(each.agent) for each in found)
    source = "vas"
    for agent in AGENTS:
        own = [each for each in found if each.agent == agent]
        if own:
            criteria = [item for each in own for item in each.criteria]
            text = "; ".join(each.text for each in own)
            changes.add_feedback(state, now, source, agent, text, "bug_report", criteria=criteria)
    changes.begin_iteration(state, now, AGENTS[first:])


def issues(state: Object) -> list[Issue]:
    """What is not good, and who mends it: CD, or RA and EP where VAS says so."""
    found: list[Issue] = []
    tests = Tests(schema.obj(state.get("test_results")))
    wanted = cycle_state.criteria(state)
    if tests.failed and not _pass_enough(tests, wanted):
        names = ", ".join(tests.names[:_LISTED])
        more = f" and {len(tests.names) - _LISTED} more" if len(tests.names) > _LISTED else ""
        rate = f"; {wanted.rate:g} % must pass" if wanted.rate else ""
        said = f"{tests.failed} of {tests.total} tests fail{rate}: {names}{more}"
        found.append(Issue("cd", said, tuple(f"{name} passes" for name in tests.names[:50])))
    undone = [each.id for each in plan_of(state.get("plan")).tasks if each.is_undone]
    if undone:
        said = f"{len(undone)} planned tasks not done: {', '.join(undone[:_LISTED])}"
        found.append(Issue("cd", said, tuple(f"{id} is done" for id in undone[:50])))
    critical = schema.count(schema.obj(state.get("test_results")).get("critical_issues"))
    if critical and critical > wanted.critical:
        said = f"VAS found {critical} critical issues: see validation.md"
        left = f"no more than {wanted.critical} critical issues are left"
        criterion = left if wanted.critical else "no critical issues are left"
        found.append(Issue("cd", said, (criterion,)))
    found += _uncovered(tests, wanted)
    if found:  # remarks alone do not keep a cycle from completing
        for text in _remarks(state):
            asked = routing.route(text, "vas")
            if asked.owner in ("ra", "ep") and text.lower().startswith((f"{asked.owner}:",)):
                found.append(Issue(asked.owner, asked.question, ()))
    return found


def _pass_enough(tests: Tests, wanted: Criteria) -> bool:
    """Whether enough tests pass, though some fail."""
    return wanted.rate is not None and tests.rate is not None and tests.rate >= wanted.rate


def _uncovered(tests: Tests, wanted: Criteria) -> list[Issue]:
    """Too few lines are covered, or nobody knows how many: 0 is what is told then."""
    if wanted.coverage is None or (tests.coverage or 0) >= wanted.coverage:
        return []
    criterion = (f"{wanted.coverage:g} % of the lines are covered",)
    if not tests.coverage:
        said = f"coverage was not collected; required: {wanted.coverage:g} %"
        return [Issue("vas", said, ("test-results.json holds the coverage", *criterion))]
    said = f"{tests.coverage:g} % of the lines are covered; required: {wanted.coverage:g} %"
    return [Issue("cd", said, criterion)]


def _reached(state: Object, tests: Tests) -> str:
    """By how much a cycle is good, where not simply every test has to pass."""
    wanted = cycle_state.criteria(state)
    parts = []
    if wanted.rate is not None and tests.failed and tests.rate is not None:
        parts.append(f"{tests.rate:g} % of the tests pass; required: {wanted.rate:g} %")
    if wanted.coverage is not None and tests.coverage is not None:
        parts.append(f"{tests.coverage:g} % are covered; required: {wanted.coverage:g} %")
    return "; ".join(parts if tests.failed or not parts else ("all tests pass", *parts))


def _misses_gate(state: Object, tests: Tests) -> bool:
    """Whether zero_to_one ends with this iteration, and nothing works yet."""
    return cycle_state.leaves_first_phase(state) and not tests.rate


def _asked(state: Object, current: int) -> bool:
    """Whether a person was asked about this iteration's gate already."""
    asked = coordination_of(state).decisions
    return any(each.kind == "gate" and each.iteration == current for each in asked)


def _remarks(state: Object) -> list[str]:
    records = schema.objects(state.get("iterations"))
    return schema.words(records[-1].get("issues_found")) if records else []


def _problems(state: Object, found: list[Issue]) -> list[str]:
    return list(dict.fromkeys((*_remarks(state), *(each.text for each in found))))
