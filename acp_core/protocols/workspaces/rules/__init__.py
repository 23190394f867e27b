"""What does not go together in a run, as findings: each rule a small function with its code."""

from __future__ import annotations

from dataclasses import replace

from acp_core.model import Finding
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.workspaces.rules import integration, prompts, returns, runs, statuses
from acp_core.protocols.workspaces.rules.codes import ACTIONS, CODES
from acp_core.protocols.workspaces.schema import Run

RULES = (*statuses.RULES, *returns.RULES, *runs.RULES, *prompts.RULES, *integration.RULES)


def check(run: Run) -> tuple[Finding, ...]:
    """Every finding of a run, in the order of the rules, with its reason and remedy."""
    return tuple(_whole(finding, run) for rule in RULES for finding in rule(run))


def _whole(finding: Finding, run: Run) -> Finding:
    explanation, remedy = CODES[finding.code]
    action = ACTIONS.get(finding.code)
    whose = about(finding, run) if action else ""
    given = (("agent", whose),) if whose else ()
    return replace(finding, explanation=explanation, remedy=remedy, action=action, given=given)


def about(finding: Finding, run: Run) -> str:
    """The agent of whose workspace, or return, a finding speaks, as forms offer it; "" for none."""
    for agent in run.agents:
        own = clean_line(f"{run.base.name}/{agent.name}/")
        back = clean_line(agent.returned.file.name) if agent.returned else None
        if (finding.document or "").startswith(own) or (back and finding.document == back):
            return clean_name(agent.name, 200)
    return ""
