"""What does not go together in a run, as findings: each rule a small function with its code."""

from __future__ import annotations

from dataclasses import replace

from acp_core.model import Finding
from acp_core.protocols.workspaces.rules import integration, prompts, returns, runs, statuses
from acp_core.protocols.workspaces.rules.codes import ACTIONS, CODES
from acp_core.protocols.workspaces.schema import Run

RULES = (*statuses.RULES, *returns.RULES, *runs.RULES, *prompts.RULES, *integration.RULES)


def check(run: Run) -> tuple[Finding, ...]:
    """Every finding of a run, in the order of the rules, with its reason and remedy."""
    return tuple(_whole(finding) for rule in RULES for finding in rule(run))


def _whole(finding: Finding) -> Finding:
    explanation, remedy = CODES[finding.code]
    action = ACTIONS.get(finding.code)
    return replace(finding, explanation=explanation, remedy=remedy, action=action)
