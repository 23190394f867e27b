"""What does not go together in a cycle, as findings: each rule a small function with its code."""

from __future__ import annotations

from acp_core.model import Finding
from acp_core.protocols.cycle.rules import files, human, plan, states
from acp_core.protocols.cycle.schema import Project

RULES = (*states.RULES, *human.RULES, *plan.RULES, *files.RULES)


def check(project: Project) -> tuple[Finding, ...]:
    """Every finding: all rules on the cycle that is shown, the file's own rules on the others."""
    found: list[Finding] = []
    for cycle in project.cycles:
        if project.shown is None or cycle.id != project.shown.id:
            found += (finding for rule in states.READING for finding in rule(cycle))
    if project.shown:
        shown = project.shown
        found += (finding for rule in states.READING for finding in rule(shown))
        if shown.value:
            found += (finding for rule in RULES for finding in rule(shown))
    return tuple(found)
