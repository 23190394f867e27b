"""Rules on a run as a whole.

Source: agent workspaces specification, "Conflict Prevention via Agent-Namespaced Paths" and
"File-Based Handoffs".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from acp_core.files.records import File
from acp_core.model import Finding
from acp_core.model.format import dated
from acp_core.protocols.kit.findings import advice, error, warning
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.read import scan
from acp_core.protocols.workspaces.schema import Run, coord
from acp_core.protocols.workspaces.schema.coord import Dispatch
from acp_core.protocols.workspaces.write import guard

_MANY = 0.2  # the share of partial and failed agents that tells of too many agents
_INPUT = re.compile(r"^[-*]\s*`?(/[^\n`]*?)`?(?:[:,;][ \t][^\n]*)?[ \t]*\(required\)", re.M | re.I)
_STAMPED = re.compile(r"-\d{8}-\d{4}\.")
Findings = Iterator[Finding]


def b36(run: Run) -> Findings:
    """The manifest says of each agent what it must say."""
    wrong = guard.unlawful(run)
    if wrong:
        yield error("B36", f"the manifest cannot be used: {wrong}", _file(run))


def b37(run: Run) -> Findings:
    """The manifest is there where a run was prepared."""
    if guard.is_lost(run):
        yield error("B37", "the manifest is missing, but its prompts exist")


def b38(run: Run) -> Findings:
    """No writing was interrupted."""
    fault = guard.unfollowable(run)
    left = guard.interrupted(run)
    if fault:
        yield error("B38", f"a write was interrupted, and cannot be finished: {fault}")
    elif left is not None:
        done = f"{left.done} of {left.total} files were written"
        yield warning("B38", f"a write was interrupted: {left.what} ({done})")


def b39(run: Run) -> Findings:
    """What the orchestrator keeps of the run can be read."""
    for record in run.coordination:
        problem = guard.unreadable(record, run)
        if problem:
            yield error("B39", f"{record.file.name} {problem}", record.file)


def b40(run: Run) -> Findings:
    """No two agents list one file."""
    owners: dict[Path, set[str]] = {}
    for agent in run.agents:
        for listed in agent.outputs:
            if listed.path:
                owners.setdefault(listed.path, set()).add(agent.name)
    for path, names in owners.items():
        if len(names) > 1:
            who = " and ".join(sorted(names))
            owner = {name for name in names if path.is_relative_to(run.base / name)}
            for agent in run.agents:
                if agent.name in names - owner and agent.status:
                    yield error("B40", f"{who} list the same file {path.name}", agent.status.file)


def b41(run: Run) -> Findings:
    """No two dispatches share an agent or an output path without a stamp."""
    items = [coord.parse(Dispatch, item) for item in dispatches(run)]
    for key in ("agent", "output"):
        counted = Counter(getattr(item, key) for item in items)
        for value, number in counted.items():
            same = [item for item in items if getattr(item, key) == value]
            stamped = sum(bool(_STAMPED.search(item.output)) for item in same)
            if value and number > 1 and (key == "output" or stamped < number - 1):
                yield error("B41", f"{number} dispatches share the {key} {value}", _file(run))


def b42(run: Run) -> Findings:
    """Each task has its own id."""
    counted = Counter(agent.task_id for agent in run.agents if agent.task_id)
    for task, number in counted.items():
        if number > 1:
            yield error("B42", f"{number} agents have the task_id {task}", _file(run))


def b43(run: Run) -> Findings:
    """The workspace is there before the agent is dispatched."""
    for agent in run.agents:
        if agent.folder is None and agent.plan.is_dispatched:
            yield warning("B43", f"{agent.name} was dispatched without a workspace", _file(run))


def b44(run: Run) -> Findings:
    """Whoever works writes now and then."""
    for agent in run.agents:
        if state.of_agent(agent, run) == "stalled" and agent.last_write:
            message = f"{agent.name} has no status file, last write {dated(agent.last_write)}"
            yield warning("B44", message, agent.files[-1])


def b45(run: Run) -> Findings:
    """No output lies beside the workspaces."""
    for file in run.stray:
        yield warning("B45", f"{file.name} is outside the workspaces", file)


def b46(run: Run) -> Findings:
    """The manifest and the workspaces name the same agents."""
    if run.manifest is None or run.manifest.value is None:
        return
    for agent in run.agents:
        if not agent.is_planned and agent.folder:
            yield advice("B46", f"{agent.name} is not in the manifest", run.manifest.file)
        if agent.is_planned and agent.folder is None and (run.finals or run.integration):
            yield error(
                "B46", f"{agent.name} is in the manifest but has no workspace", run.manifest.file
            )


def b47(run: Run) -> Findings:
    """Most agents succeed; where they do not, there are too many."""
    ended = [agent for agent in run.agents if agent.outcome]
    bad = [agent for agent in ended if agent.outcome != schema.SUCCESS]
    if ended and len(bad) / len(run.agents) > _MANY:
        yield warning("B47", f"{len(bad)} of {len(run.agents)} agents returned partial or failed")


def b48(run: Run) -> Findings:
    """Who works on another's output is dispatched after that one's status."""
    for agent in run.agents:
        at = agent.plan.dispatched_at
        if at is None or agent.prompt is None:
            continue
        for other in run.agents:
            if other is agent or f"/{run.base.name}/{other.name}/" not in agent.prompt.text:
                continue
            done = other.report.completed_at
            if done is None or done > at:
                message = f"{agent.name} was dispatched before {other.name} had a status"
                yield warning("B48", message, agent.prompt.file)


def b49(run: Run) -> Findings:
    """The required inputs of a prompt are there, where they are in the run."""
    files = {file.name: file for file in run.files}
    for prompt in run.prompts:
        for written in required_inputs(prompt.text):
            name = prompt.agent or schema.SHARED
            path = scan.resolve(written, name, run.root, run.base, files)
            if path and scan.relative_name(path, run.root) not in files:
                yield warning("B49", f"the required input {written} does not exist", prompt.file)


def required_inputs(text: str) -> list[str]:
    """The paths that a prompt lists as required inputs."""
    return [found.strip() for found in _INPUT.findall(text)]


def dispatches(run: Run) -> list[dict[str, object]]:
    """The dispatches of the manifest, [] where there is none."""
    agents = (run.manifest.value or {}).get("agents") if run.manifest else None
    return [i for i in agents if isinstance(i, dict)] if isinstance(agents, list) else []


def _file(run: Run) -> File | None:
    return run.manifest.file if run.manifest else None


RULES = (b36, b37, b38, b39, b40, b41, b42, b43, b44, b45, b46, b47, b48, b49)
