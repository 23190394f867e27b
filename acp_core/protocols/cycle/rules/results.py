"""Rules on test results: those of the state and those of VAS's own file.

Source: development cycle specification, "Conflict Resolution", test failure.
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_core.files.records import File
from acp_core.model import Finding
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.schema import Cycle, Object
from acp_core.protocols.kit.findings import advice, error, warning

MINIMUM = {"test_pass_rate": 90.0, "coverage": 80.0}  # percent
_LABELS = {"test_pass_rate": "pass rate", "coverage": "coverage"}
Findings = Iterator[Finding]


def _sources(cycle: Cycle) -> Iterator[tuple[Object, File]]:
    own = cycle.state.test_results
    if own:
        yield own, cycle.record.file
    if cycle.tests_file and cycle.tests_file.value:
        yield cycle.tests_file.value, cycle.tests_file.file


def a41(cycle: Cycle) -> Findings:
    """Rates are percentages from 0 to 100."""
    for value, file in _sources(cycle):
        held = value.get("coverage")
        covered = held.get("lines") if isinstance(held, dict) else held
        for key, said in (("pass_rate", value.get("pass_rate")), ("coverage", covered)):
            if said in (None, ""):
                continue
            number = schema.percent(said)
            if number is None or not 0 <= number <= 100:
                yield error("A41", f"{key} is not a percentage from 0 to 100", file)
    fractions = [file for value, file in _sources(cycle) if state.Tests(value).fraction]
    if fractions:
        message = "pass_rate looks like a fraction: acp reads it as a share of 1"
        yield advice("A41", message, fractions[0])


def a60(cycle: Cycle) -> Findings:
    """What passed, failed and was skipped adds up to all."""
    for value, file in _sources(cycle):
        found = state.Tests(value)
        parts = (found.passed, found.failed, found.skipped or 0)
        if found.total is None or found.passed is None or found.failed is None:
            continue
        if sum(part or 0 for part in parts) != found.total:
            message = f"{found.passed} passed, {found.failed} failed and {parts[2]} skipped"
            yield error("A60", f"{message} do not add up to {found.total}", file)


def a61(cycle: Cycle) -> Findings:
    """The state tells the results that VAS's file holds."""
    own = cycle.state.test_results
    kept = (cycle.tests_file.value if cycle.tests_file else None) or {}
    if not own or not kept:
        return
    reported, held = state.Tests(own), state.Tests(kept)
    pairs = {
        "tests": (reported.total, held.total, 0.0),
        "failed": (reported.failed, held.failed, 0.0),
        "pass rate": (reported.rate, held.rate, 1.0),
    }
    differ = [
        f"{name} {said:g} and {kept:g}"
        for name, (said, kept, by) in pairs.items()
        if said is not None and kept is not None and abs(said - kept) > by
    ]
    if differ:
        sentence = f"State and vas/test-results.json differ: {', '.join(differ)}"
        yield warning("A61", sentence, cycle.record.file)


def a62(cycle: Cycle) -> Findings:
    """When VAS is done, the results reach the minimum, and what the cycle wants besides."""
    found = state.tests(cycle)
    over = cycle.status == "completed" or state.agent_status(cycle, "vas") == "completed"
    if not over or not found.proven or _first_steps(cycle):
        return
    wanted = schema.obj(cycle.value.get("convergence"))
    low = []
    for key, reached in (("test_pass_rate", found.rate), ("coverage", found.coverage)):
        least = schema.percent(wanted.get(key)) or MINIMUM[key]
        if reached is not None and reached < least:
            low.append(f"{_LABELS[key]} {reached:.0f} % of {least:.0f} %")
    critical = schema.count(cycle.state.test_results.get("critical_issues")) or 0
    if critical > (schema.count(wanted.get("max_critical_bugs")) or 0):
        low.append(f"{critical} critical issues")
    if low:
        yield advice("A62", f"Below the required minimum: {', '.join(low)}", cycle.record.file)


def _first_steps(cycle: Cycle) -> bool:
    """Whether the iteration is one of those in which it is enough that some test passes."""
    first = schema.obj(schema.obj(cycle.value.get("phase_gates")).get("zero_to_one"))
    numbers = first.get("iterations")
    return isinstance(numbers, list) and cycle.iteration in numbers


RULES = (a41, a60, a61, a62)
