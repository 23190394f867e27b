"""What does not go together in a cycle, as findings: each rule a small function with its code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from acp_core.model import Finding, Severity
from acp_core.protocols.cycle.rules import of_files, of_state, preparation
from acp_core.protocols.cycle.rules.codes import CODES
from acp_core.protocols.cycle.schema import Cycle, Project
from acp_core.protocols.kit.findings import advice

RULES = (
    *of_state.STATE_RULES, *of_state.TIME_RULES, *of_state.ORDER_RULES, *of_state.HUMAN_RULES, *of_state.ITERATION_RULES,
    *of_files.PLAN_RULES, *of_files.RESULT_RULES, *of_files.REPORT_RULES, *of_files.FILE_RULES, *of_files.LOG_RULES,
)  # fmt: skip

SHOWN = 5  # findings of one kind that are listed for one cycle; the rest is counted


def check(project: Project) -> tuple[Finding, ...]:
    """Every finding of every cycle, that which is shown first; no more of a kind than `SHOWN`.

    Of a cycle that is not shown advice is left out.
    """
    selected = project.selected
    found = [*_limited(_of(project, selected))] if selected else []
    for cycle in project.cycles:
        if selected is None or cycle.id != selected.id:
            serious = (each for each in _of(project, cycle) if each.severity is not Severity.ADVICE)
            found += _limited(serious)
    found += (finding for rule in preparation.PREPARATION_RULES for finding in rule(project))
    found += _lost(project)
    return tuple(_explained(finding) for finding in found)


def _explained(finding: Finding) -> Finding:
    explanation, remedy = CODES[finding.code]
    return replace(finding, explanation=explanation, remedy=remedy)


def _of(project: Project, cycle: Cycle) -> Iterator[Finding]:
    for rule in of_state.READING:
        yield from rule(cycle)
    if cycle.value:
        for rule in RULES:
            yield from rule(cycle)
    yield from project.violations.get(cycle.id, ())


def _limited(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The first findings of each code and severity, and how many more there are."""
    kinds: Counter[tuple[str, Severity]] = Counter()
    last: dict[tuple[str, Severity], Finding] = {}
    for finding in findings:
        kind = finding.code, finding.severity
        kinds[kind] += 1
        last[kind] = finding
        if kinds[kind] <= SHOWN:
            yield finding
    for kind, count in kinds.items():
        if count > SHOWN:
            message = f"{count - SHOWN} more findings {kind[0]} not listed"
            yield replace(last[kind], message=message, line=None)


def _lost(project: Project) -> Iterator[Finding]:
    if project.orphans:
        names = ", ".join(project.orphans[:SHOWN])
        message = f"{len(project.orphans)} progress folders have no state file: {names}"
        yield advice("A99", message)
