"""Rules on what agents returned.

Source: agent workspaces specification, "Return Value Contract".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from acp_core.files.records import File
from acp_core.model import Finding
from acp_core.protocols.kit.findings import error, warning
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.schema import Agent, Returned, Run, coord
from acp_core.protocols.workspaces.schema.coord import Report

_REQUIRED = ("status", "agent", "task_id", "files_written", "summary", "errors")
_SENTENCE = re.compile(r"[.!?](?=\s|$)")
Findings = Iterator[Finding]
Value = dict[str, object]


def b20(run: Run) -> Findings:
    """An object with a status can be found in it."""
    for returned in run.returns:
        if returned.value is None:
            yield error("B20", f"the return {returned.problem}", returned.file)


def b21(run: Run) -> Findings:
    """The required keys stand in it."""
    for value, returned in _read(run):
        for key in _REQUIRED:
            if key not in value:
                yield error("B21", f"the return lacks {key}", returned.file)


def b22(run: Run) -> Findings:
    """The status is a known word."""
    for value, returned in _read(run):
        if not schema.outcome(value["status"]):
            yield error("B22", f"the status {value['status']!r} is unknown", returned.file)


def b23(run: Run) -> Findings:
    """A partial or a failure says why."""
    for value, returned in _read(run):
        how = schema.outcome(value["status"])
        if how in schema.DECISIONS and not value.get("errors"):
            yield warning("B23", f"{how}, but errors gives no reason", returned.file)


def b24(run: Run) -> Findings:
    """A success has no errors."""
    for value, returned in _read(run):
        if schema.outcome(value["status"]) == schema.SUCCESS and value.get("errors"):
            yield warning("B24", "success, but errors is not empty", returned.file)


def b25(run: Run) -> Findings:
    """The summary has one to three sentences."""
    for value, returned in _read(run):
        if "summary" not in value:
            continue
        summary = coord.parse(Report, value).summary.strip()
        if not summary:
            yield warning("B25", "the summary is empty", returned.file)
        elif len(_SENTENCE.findall(summary)) > 3:
            yield warning("B25", "the summary has more than three sentences", returned.file)


def b26(run: Run) -> Findings:
    """It ended as the status file says."""
    for agent, value, file in _pairs(run):
        said = schema.outcome(value["status"])
        if said and agent.outcome and said != agent.outcome:
            yield error("B26", f"returned {said}, but the status file says {agent.outcome}", file)


def b27(run: Run) -> Findings:
    """Agent and task are those of the status file."""
    for agent, value, file in _pairs(run):
        for key in ("agent", "task_id"):
            here, there = value.get(key), agent.value.get(key)
            if here and there and here != there:
                yield error(
                    "B27", f"returned {key} {here!r}, but the status file says {there!r}", file
                )


def b28(run: Run) -> Findings:
    """The same files are listed in both, the status file aside."""
    for agent, _, file in _pairs(run):
        own = {record.file.path for record in agent.records}
        listed = agent.returned.listed if agent.returned else ()
        here = {each.path for each in listed if each.path} - own
        there = {each.path for each in agent.outputs if each.path} - own
        for path in sorted(there - here):
            yield warning(
                "B28", f"{path.name} is in the status file but not in files_written", file
            )
        for path in sorted(here - there):
            yield warning(
                "B28", f"{path.name} is in files_written but not in the status file", file
            )


def b29(run: Run) -> Findings:
    """What was written exists."""
    for _, returned in _read(run):
        for listed in returned.listed:
            if listed.file is None:
                yield error("B29", f"{listed.written} was not written", returned.file)


def b30(run: Run) -> Findings:
    """Paths are absolute."""
    for _, returned in _read(run):
        for listed in returned.listed:
            if listed.relative:
                yield warning("B30", f"{listed.written!r} is not an absolute path", returned.file)


def b31(run: Run) -> Findings:
    """The task is called by its role and a short description."""
    for value, returned in _read(run):
        task = coord.parse(Report, value).task_id
        if task and not re.fullmatch(r"[A-Za-z0-9_]+(-[A-Za-z0-9_.]+)+", task):
            yield warning("B31", f"the task_id {task!r} is not role-description", returned.file)


def b32(run: Run) -> Findings:
    """There is no prose around it."""
    for _, returned in _read(run):
        if returned.prose:
            yield warning("B32", "there is text around the returned object", returned.file)


def _read(run: Run) -> Iterator[tuple[Value, Returned]]:
    for returned in run.returns:
        if returned.value is not None:
            yield returned.value, returned


def _pairs(run: Run) -> Iterator[tuple[Agent, Value, File]]:
    for agent in run.agents:
        if agent.returned and agent.returned.value is not None and agent.value:
            yield agent, agent.returned.value, agent.returned.file


RULES = (b20, b21, b22, b23, b24, b25, b26, b27, b28, b29, b30, b31, b32)
