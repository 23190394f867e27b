"""States of governed runs and of initiatives over several repositories."""

from __future__ import annotations

from tests.golden.builders import governed_runs, governed_wholes
from tests.golden.state import State

OFTEN = ("escalate", "mark_objection", "talk")
"""What can be done nearly always, and writes the same: performed in these states only."""
THERE = ("run-implementation", "files-turn-at-work", "workstream-held")


def _once(state: State) -> State:
    if state.name in THERE:
        return state
    elsewhere = tuple((name, f"performed in {THERE[0]}") for name in OFTEN)
    return state._replace(unperformed=state.unperformed + elsewhere)


STATES = tuple(map(_once, (*governed_runs.STATES, *governed_wholes.STATES)))
