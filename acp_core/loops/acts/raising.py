"""The act that raises a budget, so that a loop, or an agent that no loop runs, may go on."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from acp_core.agents import budgets, caps, registry
from acp_core.agents.budgets import Cap, Use
from acp_core.agents.place import place
from acp_core.agents.state import RunnerState
from acp_core.loops import spec as specs
from acp_core.loops.acts.about import About, one_of
from acp_core.loops.acts.ending import PATIENCE, within
from acp_core.loops.acts.table import RAISE
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.values import Values


def bind_raise(context: Context, now: datetime) -> Action:
    """Raise a budget that a participant's agent has."""
    about = About.of(context)
    having = {name: loop for name, loop in about.loops.items() if loop.shown.budget}
    capped = [name for name, loop in having.items() if loop.shown.capped]

    def wish(values: Values) -> tuple[RunnerState, Use, Cap]:
        cap, loop = budgets.parse(values.budget), about.loop(values.participant)
        if loop.account:
            raise Refused(f"{loop.shown.note}; only {loop.account} can raise its budgets")
        wanted = (cap.scope, cap.unit)
        use = next((u for u in loop.shown.budget if (u.scope, u.unit) == wanted), None)
        if use is None:
            there = ", ".join(f"{u.scope} in {u.unit}" for u in loop.shown.budget) or "none"
            raise Refused(f"{values.participant} has no budget {cap.scope} in {cap.unit} ({there})")
        if cap.amount <= use.spent:
            raise Refused(f"{cap} is not enough: {use.figures} are used")
        return loop, use, cap

    def preview(values: Values) -> Preview:
        _, use, cap = wish(values)
        return Preview(f"Changes the budget {Cap(use.scope, use.unit, use.amount)} to {cap}.")

    def perform(values: Values) -> Outcome:
        loop, _, cap = wish(values)
        changed = [each for each in _sharing(loop, cap) if _raise(each, cap)]
        if not changed:
            raise Refused(f"{values.participant} has no budget {cap.scope} in {cap.unit}")
        told = f"The budget is now {cap}"
        if not loop.alive or loop.shown.ended is not None:
            return Outcome(OutcomeState.DONE, f"{told}; start {values.participant} again.")
        if within(lambda: not about.loop(values.participant).shown.capped, PATIENCE):
            return Outcome(OutcomeState.DONE, f"{told}; {values.participant} continues.")
        return Outcome(OutcomeState.REQUESTED, f"{told}; another budget may be used up.")

    return bound(
        RAISE,
        about,
        preview,
        perform,
        narrowed={
            "participant": one_of([*capped, *having]),
            "budget": {
                "default": next(
                    (budgets.raised(having[name].shown.budget) for name in capped), None
                )
            },
        },
        offered=bool(having),
    )


def _sharing(loop: RunnerState, cap: Cap) -> list[RunnerState]:
    """Whoever shares this budget."""
    if cap.scope == "day":
        return registry.runners()
    return registry.runners(loop.folder) if cap.scope == "collaboration" else [loop]


def _raise(loop: RunnerState, cap: Cap) -> bool:
    """Write the cap where it is read again: into a loop's spec, or with those of its run.

    Returns:
        Whether there was such a budget.
    """
    where = place(loop.folder, loop.participant)
    spec = specs.load(where)
    having = loop.shown.budget if spec is None else spec.caps
    if all((each.scope, each.unit) != (cap.scope, cap.unit) for each in having):
        return False
    try:
        if spec is None:
            run_id = loop.shown.run_id
            caps.raise_to(cap, loop.folder, loop.participant, run_id, utc_now())
        else:
            specs.save(replace(spec, caps=budgets.merged(spec.caps, (cap,))), where)
    except OSError as error:
        raise Refused(f"could not save the budget: {error.strerror or error}") from None
    return True
