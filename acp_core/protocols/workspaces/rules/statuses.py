"""Rules on status files.

Source: agent workspaces specification, "Status File Schema".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from acp_core.files.records import File
from acp_core.model import Finding
from acp_core.protocols.kit.findings import advice, error, warning
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.schema import Agent, Listed, Run

_KEYS = frozenset({"agent", "task_id", "status", "completed_at", "outputs"})
_OURS = frozenset({"errors", "notes", "summary", "started_at", "attempt"})
_SLACK = timedelta(seconds=schema.TORN_SECONDS)
Findings = Iterator[Finding]


def b01(run: Run) -> Findings:
    """A status file is a JSON object; one that is still being written is let be."""
    for agent in run.agents:
        for record in agent.records:
            young = run.now - record.file.changed < _SLACK
            if record.value is None and not young:
                yield error("B01", f"the status file {record.problem}", record.file)


def b02(run: Run) -> Findings:
    """The required keys stand in it."""
    for agent, file in _read(run):
        for key in ("agent", "status"):
            if key not in agent.value:
                yield error("B02", f"the status file lacks {key}", file)
        for key in ("task_id", "completed_at", "outputs"):
            if key not in agent.value:
                yield warning("B02", f"the status file lacks {key}", file)


def b03(run: Run) -> Findings:
    """The status is success, partial or failure."""
    for agent, file in _read(run):
        word = agent.value.get("status")
        if word is None:
            continue
        if not agent.outcome:
            yield error("B03", f"the status {word!r} is not success, partial or failure", file)
        elif word != agent.outcome:
            yield warning("B03", f"the status {word!r} is read as {agent.outcome}", file)


def b04(run: Run) -> Findings:
    """The agent is the one whose workspace it is."""
    for agent, file in _read(run):
        said = agent.value.get("agent")
        if agent.report.agent in {each.name for each in run.agents} - {agent.name}:
            yield error(
                "B04", f"{said} wrote its status file into the workspace of {agent.name}", file
            )
        elif said is not None and said != agent.name:
            yield error(
                "B04", f"it names the agent {said!r} in the workspace of {agent.name}", file
            )


def b05(run: Run) -> Findings:
    """The time is ISO 8601 with an offset, and not in the future."""
    for agent, file in _read(run):
        said = agent.value.get("completed_at")
        if said is None:
            continue
        at = agent.report.completed_at
        if at is None:
            yield warning("B05", f"completed_at {said!r} is not an ISO 8601 time", file)
        elif not re.search(r"(Z|[+-]\d\d:?\d\d)$", str(said)):
            yield warning("B05", f"completed_at {said!r} has no offset from UTC", file)
        elif at > run.now + timedelta(minutes=1):
            yield warning("B05", f"completed_at {said!r} is in the future", file)


def b06(run: Run) -> Findings:
    """Listed outputs are there."""
    make = {schema.SUCCESS: error, schema.PARTIAL: warning, schema.FAILURE: advice}
    for agent, file, listed in _outputs(run):
        if listed.file is None and agent.outcome:
            message = f"{agent.outcome}, but the output {listed.written} does not exist"
            yield make[agent.outcome]("B06", message, file)


def b07(run: Run) -> Findings:
    """Output paths are absolute."""
    for _, file, listed in _outputs(run):
        if listed.relative:
            yield warning("B07", f"the output {listed.written!r} is not an absolute path", file)


def b08(run: Run) -> Findings:
    """Outputs lie in the agent's own workspace."""
    for agent, file, listed in _outputs(run):
        if listed.owner == agent.name or not listed.written:
            continue
        if listed.path is None and listed.file is None and not listed.relative:
            yield error("B08", f"the output {listed.written} is outside the run", file)
        elif listed.owner:
            yield error(
                "B08", f"the output {listed.written} is in the workspace of {listed.owner}", file
            )
        else:
            yield error(
                "B08", f"the output {listed.written} is outside the agent's workspace", file
            )
    yield from _seen_outside(run)


def _seen_outside(run: Run) -> Findings:
    """What changed outside an agent's workspace while it worked, as the orchestrator saw it.

    It is no more than a warning where others worked at the same time.
    """
    for agent in run.agents:
        others = agent.plan.outside_while
        tell = warning if others else error
        for name in agent.plan.outside[:50]:
            if name in {each.name for each in run.planted}:
                continue  # B68 speaks of it
            who = " or ".join([agent.name, *others])
            message = f"{name} changed outside its workspace while {who} worked"
            yield tell("B08", message, run.manifest.file if run.manifest else None)


def b09(run: Run) -> Findings:
    """The size estimate is small, medium or large."""
    for _, file, listed in _outputs(run):
        said = listed.item.size_estimate
        if said is not None and not re.search(r"\b(small|medium|large)\b", str(said).lower()):
            yield warning("B09", f"the size estimate {said!r} is not small, medium or large", file)


def b10(run: Run) -> Findings:
    """A success lists an output."""
    for agent, file in _read(run):
        if agent.outcome == schema.SUCCESS and agent.value.get("outputs") == []:
            yield error("B10", "success without any output", file)


def b11(run: Run) -> Findings:
    """The status file was written last."""
    for _, file, listed in _outputs(run):
        if listed.file and listed.file.changed > file.changed + _SLACK:
            yield warning("B11", f"{listed.file.name} changed after the status file", file)


def b12(run: Run) -> Findings:
    """There is one status file; two at least agree."""
    for agent in run.agents:
        plain = ("status.json", f"{agent.name}-status.json")
        both = [r for r in agent.records if r.file.path.name in plain]
        if len(both) == 2:
            same = both[0].value == both[1].value
            make = advice if same else error
            yield make(
                "B12", f"two status files that {'agree' if same else 'disagree'}", both[0].file
            )


def b13(run: Run) -> Findings:
    """A success has no empty output."""
    for agent, file, listed in _outputs(run):
        if agent.outcome == schema.SUCCESS and listed.file and listed.file.size == 0:
            yield warning("B13", f"success, but {listed.file.name} is empty", file)


def b14(run: Run) -> Findings:
    """Each output is described."""
    for _, file, listed in _outputs(run):
        if not listed.item.description.strip():
            yield warning("B14", f"the output {listed.written} has no description", file)


def b15(run: Run) -> Findings:
    """Nothing in scratch/ is listed: the orchestrator does not read it."""
    for agent, file, listed in _outputs(run):
        own = f"{run.base.name}/{agent.name}/{schema.SCRATCH}/"
        if listed.file and listed.file.name.startswith(own):
            yield advice("B15", f"the output {listed.file.name} is in the scratch folder", file)


def b16(run: Run) -> Findings:
    """Keys are known ones."""
    for agent, file in _read(run):
        for key in sorted(agent.value.keys() - _KEYS - _OURS):
            yield advice("B16", f"the status file has the unknown key {key!r}", file)


def b17(run: Run) -> Findings:
    """Outputs stand where they were written; a moved run's are found by their place in it."""
    moved = [(f, each) for _, f, each in _outputs(run) if each.relocated and each.file]
    for file, listed in moved[:1]:
        more = f", and {len(moved) - 1} more" if len(moved) > 1 else ""
        message = f"the run was moved: {listed.written} was found at its new path{more}"
        yield advice("B17", message, file)


def _read(run: Run) -> Iterator[tuple[Agent, File]]:
    for agent in run.agents:
        if agent.status and agent.status.value is not None and not state.unfinished(agent, run):
            yield agent, agent.status.file


def _outputs(run: Run) -> Iterator[tuple[Agent, File, Listed]]:
    for agent, file in _read(run):
        for listed in agent.outputs:
            yield agent, file, listed


RULES = (
    *(b01, b02, b03, b04, b05, b06, b07, b08),
    *(b09, b10, b11, b12, b13, b14, b15, b16, b17),
)
