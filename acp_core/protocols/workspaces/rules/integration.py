"""Rules on what was integrated.

Source: agent workspaces specification, "Integration Step Protocol" and "Conflict Resolution
Protocol".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from acp_core.files.records import File
from acp_core.model import Finding
from acp_core.protocols.kit.findings import error, warning
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.read import trespasses
from acp_core.protocols.workspaces.schema import Run

_RECORD = re.compile(
    r"Conflict between ([^\n]+?) and ([^\n]+?) on ([^\n]+?)\. Resolved by ([^\n]+?)\."
)
_ANY = re.compile(r"Conflict between [^\n]+")
_RULES = {
    "factual": ("factual", "specific", "sourced", "consistent", "authorit", "source"),
    "coverage": ("coverage", "merg", "detailed"),
    "format": ("format", "structure"),
}
Findings = Iterator[Finding]


def b60(run: Run) -> Findings:
    """Nothing is integrated before every agent ended and was decided on."""
    for agent in run.agents if run.finals else ():
        if state.undecided(agent, run):
            message = f"the final output is there and {agent.name} ({agent.outcome}) is undecided"
            yield error("B60", message, _final(run))
        elif not state.finished(agent, run):
            yield error(
                "B60", f"the final output is there and {agent.name} has no result", _final(run)
            )


def b61(run: Run) -> Findings:
    """The final output is newer than what went into it."""
    if run.finals and state.older_than_inputs(run):
        yield warning("B61", "the final output is older than an output it uses", _final(run))


def b62(run: Run) -> Findings:
    """A final output comes with an integration status."""
    if run.finals and run.integration is None:
        yield warning("B62", "there is no integration status", _final(run))


def b63(run: Run) -> Findings:
    """Every agent was integrated or skipped, as it was decided."""
    if run.integration is None:
        return
    covered = {*run.integrated.integrated, *run.integrated.skipped}
    for agent in run.agents:
        if agent.name not in covered:
            message = f"{agent.name} is listed neither as integrated nor as skipped"
            yield warning("B63", message, run.integration.file)
        elif agent.decision in ("skip", "gap") and agent.name in run.integrated.integrated:
            message = f"{agent.name} was integrated despite the decision to skip it"
            yield warning("B63", message, run.integration.file)


def b64(run: Run) -> Findings:
    """What a skipped or failed agent leaves open is a gap."""
    if run.integration is None:
        return
    for agent in run.agents:
        left = agent.name in run.integrated.skipped or agent.outcome == schema.FAILURE
        if left and not any(agent.name in gap for gap in run.integrated.gaps):
            message = f"{agent.name} is not among the gaps"
            yield warning("B64", message, run.integration.file)


def b65(run: Run) -> Findings:
    """Each conflict has its record sentence."""
    for found in _ANY.findall(run.final_text):
        if not _RECORD.match(found):
            yield warning("B65", f"no resolution: {found}", _final(run))
    if run.finals:
        for conflict in state.open_conflicts(run):
            topic = conflict.topic or "?"
            yield warning("B65", f"the conflict on {topic} has no resolution", _final(run))


def b66(run: Run) -> Findings:
    """The rule is one for the conflict's category."""
    for conflict in run.recorded.conflicts:
        category = conflict.category
        found = _RECORD.search(conflict.sentence)
        rule = (found[4] if found else conflict.rule).lower()
        if rule and category in _RULES and not any(word in rule for word in _RULES[category]):
            message = f"the rule “{rule}” does not fit a {category} conflict"
            yield warning("B66", message, _final(run))


def b67(run: Run) -> Findings:
    """There is one final output."""
    if len(run.finals) > 1:
        yield warning("B67", f"there are {len(run.finals)} final outputs", _final(run))


def b68(run: Run) -> Findings:
    """Only the orchestrator writes into integration/."""
    for trespass in run.trespasses:
        if trespass.file in run.planted:
            who = trespasses.who([trespass])
            yield error("B68", f"{who} wrote {trespass.file.name}", trespass.file)
    for agent in run.agents:
        listed = (*agent.outputs, *(agent.returned.listed if agent.returned else ()))
        for each in listed:
            is_planted = each.file in run.planted
            if each.path and each.path.is_relative_to(run.root / "integration") and not is_planted:
                file = agent.status.file if agent.status else None
                yield error("B68", f"{agent.name} wrote {each.written}", file)
                break


def _final(run: Run) -> File | None:
    return run.finals[0] if run.finals else None


RULES = (b60, b61, b62, b63, b64, b65, b66, b67, b68)
