"""When a cycle is good enough: the criteria and the phase gates that its state holds.

Source: development cycle specification, "Shared State"; both are of its later form, and come from
prep-package.json. Decisions where it is silent:

* Whoever reaches the criteria in any iteration is done; a task of the plan that is not done keeps
  a cycle from it whatever its tests say.
* The gate of ``zero_to_one`` does not end a cycle. It is what its last iteration must reach before
  the next phase begins: CD has not failed, and some test passes. A person is asked where it is
  missed. The gate of ``one_to_hundred`` is the criteria themselves.
* ``max_open_issues`` and ``exit_criteria`` are not judged: what they count stands in words only.
"""

from __future__ import annotations

from typing import NamedTuple

from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import Object
from acp_core.protocols.cycle.schema.state_file import iteration

RATE, COVERAGE, CRITICAL = "test_pass_rate", "coverage", "max_critical_bugs"


class Criteria(NamedTuple):
    """What is wanted: percentages of tests that pass and of lines that are covered.

    None where the state says nothing that can be used; then every test has to pass, and coverage
    is not looked at. ``critical`` issues may be left, none unless the state says else.
    """

    rate: float | None = None
    coverage: float | None = None
    critical: int = 0


def criteria(state: Object) -> Criteria:
    """What is wanted of a cycle."""
    held = schema.obj(state.get("convergence"))
    return Criteria(
        _percentage(held.get(RATE)),
        _percentage(held.get(COVERAGE)),
        schema.count(held.get(CRITICAL)) or 0,
    )


def goal(state: Object) -> str:
    """When a cycle is done, as its state says; "" where it says nothing."""
    found = criteria(state)
    parts = []
    if found.rate is not None:
        parts.append(f"{found.rate:g} % of the tests pass")
    if found.coverage is not None:
        parts.append(f"{found.coverage:g} % of the lines are covered")
    if not parts:
        return ""
    return f"done when {', '.join(parts)}, no more than {found.critical} critical issues are left"


def _percentage(value: object) -> float | None:
    found = schema.percent(value)
    return found if found is not None and 0 < found <= 100 else None


def phase(state: Object) -> str:
    """The phase of the current iteration: zero_to_one, one_to_hundred, or "" for none."""
    current = iteration(state)
    for name in ("zero_to_one", "one_to_hundred"):
        if current in iterations_of(state, name):
            return name
    return ""


def iterations_of(state: Object, name: str) -> tuple[int, ...]:
    """The iterations of a phase."""
    held = schema.obj(schema.obj(state.get("phase_gates")).get(name)).get("iterations")
    counted = (schema.count(each) for each in (held if isinstance(held, list) else [])[:1_000])
    return tuple(each for each in counted if each)


def leaves_first_phase(state: Object) -> bool:
    """Whether the current iteration is the last one of zero_to_one."""
    current = iteration(state)
    return current > 0 and current == max(iterations_of(state, "zero_to_one"), default=0)
