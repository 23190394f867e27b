"""The changes that a person makes to a cycle, bound to it.

Source: development cycle specification, "Escalation Path".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from acp_core.model.action import Action, Outcome, Preview
from acp_core.model.action_spec import ActionSpec
from acp_core.model.text import clean_line
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.actions import perform as writing
from acp_core.protocols.cycle.actions.table_steering import (
    ACCEPTANCE,
    DECISION,
    EXTENSION,
    LIMITING,
    MESSAGE,
    PAUSING,
    REPEAT,
    RESOLUTION,
    RESUMPTION,
    STOPPING,
)
from acp_core.protocols.cycle.read.selected import OpenProject, is_damaged, open_project
from acp_core.protocols.cycle.schema import AGENTS, Blocker, Cycle, Decision
from acp_core.protocols.cycle.write import changes
from acp_core.protocols.kit.binding import Context, Narrowed, bound
from acp_core.protocols.kit.values import Values

_LONG = 300  # characters of a decision's text in a sentence
_EXTENDED = ("completed", "failed", "running", "paused")


def _bound(
    spec: ActionSpec,
    opened: OpenProject,
    *,
    offered: bool,
    narrowed: Narrowed | None = None,
    sentence: Callable[[Cycle], str] | None = None,
) -> Action:
    """An act that changes the state of the cycle that is shown, or of the one that is named.

    Args:
        spec: its description.
        opened: the project.
        offered: whether it can be done to the cycle that is shown.
        narrowed: what is otherwise than in the description.
        sentence: what it does to a cycle, where that depends on it.
    """
    shown = opened.selected
    describe = sentence or (lambda _: spec.sentence)

    def preview(values: Values) -> Preview:
        cycle = opened.find(values.cycle)
        return writing.preview(opened.root, cycle.id, spec.name, values, describe(cycle))

    def perform(values: Values) -> Outcome:
        cycle = opened.find(values.cycle)
        return writing.carry_out(opened.root, cycle.id, spec.name, values)

    return bound(
        spec,
        opened,
        preview,
        perform,
        narrowed={**(narrowed or {}), "cycle": {"default": shown.id}},
        sentence=describe(shown),
        offered=offered and not is_damaged(shown),
    )


def _ids(entries: Sequence[Decision | Blocker]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.id for each in entries if each.id))


def decide(context: Context, now: datetime) -> Action:
    """Make a decision that waits."""
    opened = open_project(context, now)
    waiting = state.decisions(opened.selected)
    ids = _ids(waiting)
    first = waiting[0].id if waiting else None
    offers = clean_line(" · ".join(_offer(each) for each in waiting))
    narrowed: Narrowed = {
        "decision": {"choices": ids, "default": first},
        "choice": {"help": offers},
    }

    return _bound(
        DECISION,
        opened,
        offered=bool(ids),
        narrowed=narrowed,
        sentence=_decision_sentence,
    )


def _decision_sentence(cycle: Cycle) -> str:
    """Which decision waits first."""
    waiting = state.decisions(cycle)
    if not waiting:
        return DECISION.sentence
    said = clean_line(waiting[0].description, _LONG)
    return f"Decide {clean_line(waiting[0].id)}: {said}"


def _offer(decision: Decision) -> str:
    numbered = "  ".join(f"{n}. {each}" for n, each in enumerate(decision.options, 1))
    return f"{decision.id}: {numbered or 'in words'}"


def resolve(context: Context, now: datetime) -> Action:
    """Say how a blocker is gone."""
    opened = open_project(context, now)
    waiting = state.blockers(opened.selected)
    ids = _ids(waiting)
    texts = " · ".join(f"{each.id}: {each.description}" for each in waiting)
    first = ids[0] if ids else None
    narrowed = {"blocker": {"choices": ids, "default": first, "help": clean_line(texts)}}

    return _bound(RESOLUTION, opened, offered=bool(ids), narrowed=narrowed)


def feedback(context: Context, now: datetime) -> Action:
    """Tell an agent something."""
    opened = open_project(context, now)

    offered = opened.selected.status in schema.OPEN
    narrowed = {"agent": {"default": "cd"}}
    return _bound(MESSAGE, opened, offered=offered, narrowed=narrowed)


def extend(context: Context, now: datetime) -> Action:
    """Begin another iteration."""
    opened = open_project(context, now)
    shown = opened.selected
    waits = state.decisions(shown) or _at_work(shown)

    allowed = shown.state.max_iterations
    above = allowed and shown.iteration + 1 > allowed
    narrowed = {"limit": {"default": shown.iteration + 1}} if above else {}
    raised = f" and raise the limit, which is {allowed}" if above else ""
    return _bound(
        EXTENSION,
        opened,
        narrowed=narrowed,
        offered=shown.status in _EXTENDED and not waits,
        sentence=lambda cycle: f"Start iteration {cycle.iteration + 1} with a new task{raised}.",
    )


def pause(context: Context, now: datetime) -> Action:
    """Have it wait."""
    opened = open_project(context, now)
    offered = opened.selected.status == "running"
    return _bound(PAUSING, opened, offered=offered)


def resume(context: Context, now: datetime) -> Action:
    """Let it go on."""
    opened = open_project(context, now)
    shown = opened.selected
    offered = shown.status in ("paused", "failed", "created") and not state.decisions(shown)
    return _bound(RESUMPTION, opened, offered=offered)


def stop(context: Context, now: datetime) -> Action:
    """End it as failed."""
    opened = open_project(context, now)

    return _bound(STOPPING, opened, offered=opened.selected.status in schema.OPEN)


def accept(context: Context, now: datetime) -> Action:
    """Take it as it is."""
    opened = open_project(context, now)
    shown = opened.selected

    waits = state.decisions(shown) or _at_work(shown)
    return _bound(
        ACCEPTANCE,
        opened,
        offered=_is_acceptable(shown) and not waits,
        sentence=lambda cycle: (
            f"Accept the cycle as it is ({state.tests(cycle)}) and complete it; the test results are kept."
        ),
    )


def _at_work(cycle: Cycle) -> list[str]:
    """The agents at work; in a cycle that is over none is, whatever it is said to do."""
    return state.running(cycle) if cycle.status in schema.OPEN else []


def _is_acceptable(cycle: Cycle) -> bool:
    """Something was done, and its tests do not show that it is good."""
    if not cycle.iteration or cycle.status not in ("running", "paused", "completed"):
        return False
    found = state.tests(cycle)
    good = found.proven and not found.failed and state.verdict(cycle) != state.UNPROVEN
    return not good and not state.accepted(cycle)


def rerun(context: Context, now: datetime) -> Action:
    """Have an agent do its work again."""
    opened = open_project(context, now)

    free = _repeatable(opened.selected)
    offered = opened.selected.status in ("running", "paused") and bool(free)
    current = state.current(opened.selected)
    narrowed = {"agent": {"default": current if current in free or not free else free[0]}}
    return _bound(REPEAT, opened, offered=offered, narrowed=narrowed)


def _repeatable(cycle: Cycle) -> list[str]:
    """The agents that can be run again: neither they nor any that depends on them is at work."""
    at_work = set(state.running(cycle))
    return [name for n, name in enumerate(AGENTS) if not at_work & set(AGENTS[n:])]


def limit(context: Context, now: datetime) -> Action:
    """Change the maximum number of iterations."""
    opened = open_project(context, now)
    allowed = _allowed(opened.selected)
    bounds = {"default": min(allowed + 1, changes.LIMIT), "least": 1, "most": changes.LIMIT}

    return _bound(
        LIMITING,
        opened,
        offered=True,
        narrowed={"iterations": bounds},
        sentence=lambda cycle: f"Change the iteration limit (now {_allowed(cycle)}).",
    )


def _allowed(cycle: Cycle) -> int:
    return cycle.state.max_iterations or cycle.iteration
