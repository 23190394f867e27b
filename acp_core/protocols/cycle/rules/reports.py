"""Rules on what agents report at their end: the block PHASE_RESULT.

It is in no file of its own by the specification; here are those that an orchestrator kept, in
``coordination/phase-results/``, named by iteration and agent.

Source: development cycle specification, "Phase Result Format".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from acp_core.files.records import File
from acp_core.model import Finding
from acp_core.protocols.cycle import state
from acp_core.protocols.cycle.read.reports import RESULT_STATUSES, PhaseResult, parse_result
from acp_core.protocols.cycle.schema import AGENTS, Cycle
from acp_core.protocols.kit.findings import advice, error, warning

_NAME = re.compile(r"(\d{1,6})-([a-z]+)(?:-(\d{1,6}))?(?:[.-].*)?", re.ASCII)
_FILES = ("files_written", "files_changed", "files_modified")
_REASONS = ("issues", "blockers", "failed_tests")
Findings = Iterator[Finding]


class _Report(NamedTuple):
    iteration: int
    run: int  # of the agent, in this iteration
    agent: str
    file: File
    result: PhaseResult | None


def _reports(cycle: Cycle) -> list[_Report]:
    """Each agent's last report of each iteration, oldest first: it replaces those before."""
    found = []
    for name, text in cycle.results.items():
        inside = name.removeprefix(cycle.progress)
        match = _NAME.match(inside.rpartition("/")[2])
        agent = match[2] if match and match[2] in AGENTS else ""
        file = cycle.file(inside)
        iteration, run = (int(match[1]), int(match[3] or 1)) if match else (0, 1)
        found.append(_Report(iteration, run, agent, file, parse_result(text)))
    found.sort(key=lambda report: report[:2])
    last = {(each.iteration, each.agent or each.file.name): each for each in found}
    return list(last.values())


def _read(cycle: Cycle) -> Iterator[tuple[_Report, PhaseResult]]:
    return ((each, each.result) for each in _reports(cycle) if each.result)


def a70(cycle: Cycle) -> Findings:
    """A report holds the block."""
    for report in _reports(cycle):
        if report.result is None:
            yield error("A70", f"{report.file.path.name} has no PHASE_RESULT", report.file)


def a71(cycle: Cycle) -> Findings:
    """It is of the agent that it is kept for."""
    for report, result in _read(cycle):
        if result.phase != (report.agent or result.phase) or result.phase not in AGENTS:
            message = f"PHASE_RESULT names phase {result.phase!r}, but is stored for {report.agent or 'no agent'}"
            yield error("A71", message, report.file)


def a72(cycle: Cycle) -> Findings:
    """Its status is a known word."""
    for report, result in _read(cycle):
        if result.status not in RESULT_STATUSES:
            yield error("A72", f"The status {result.status!r} is unknown", report.file)


def a73(cycle: Cycle) -> Findings:
    """It says which files were written, and sums up."""
    for report, result in _read(cycle):
        missing = [] if any(key in result.fields for key in _FILES) else ["files_written"]
        missing += [] if result.summary else ["summary"]
        if missing:
            message = f"PHASE_RESULT of {report.agent} has no {' and no '.join(missing)}"
            yield warning("A73", message, report.file)


def a74(cycle: Cycle) -> Findings:
    """The files that it lists are there; those of the project itself are not looked for."""
    there = {file.name.removeprefix(cycle.progress) for file in cycle.files}
    for report, result in _read(cycle):
        listed = [written.replace("\\", "/") for written in result.items("files_written")]
        missing = [name for name in listed if not _is_there(cycle, report.agent, name, there)]
        if missing:
            message = (
                f"PHASE_RESULT of {report.agent} lists missing files: {', '.join(missing[:5])}"
            )
            yield warning("A74", message, report.file)


def _is_there(cycle: Cycle, agent: str, name: str, there: set[str]) -> bool:
    _, inside, tail = name.partition(f"{cycle.id}.progress/")
    if inside:
        return tail in there
    if "/" in name and name.split("/")[0] not in (*AGENTS, "history", "coordination"):
        return True  # a file of the project
    if "." not in name and "/" not in name:
        return True  # a word such as "all", or a sentence
    return name in there or f"{agent}/{name}" in there


def a75(cycle: Cycle) -> Findings:
    """Where it is not a success, it says why."""
    for report, result in _read(cycle):
        why = [reason for key in _REASONS for reason in result.items(key)]
        if result.status in ("failed", "partial") and not why:
            message = (
                f"PHASE_RESULT of {report.agent} is {result.status} without issues or blockers"
            )
            yield warning("A75", message, report.file)


def a76(cycle: Cycle) -> Findings:
    """It stands there once; of several the last one counts."""
    for report, result in _read(cycle):
        if result.blocks > 1:
            message = f"{result.blocks} blocks PHASE_RESULT: the last one counts"
            yield advice("A76", message, report.file)


def a77(cycle: Cycle) -> Findings:
    """The state tells of an agent what its latest report says.

    Where VAS reports failure and the state tells of the tests that failed, both say the same.
    """
    latest = {report.agent: (report, result) for report, result in _read(cycle)}
    for name, (report, result) in latest.items():
        word = state.agent_status(cycle, name) if name else ""
        against = {("completed", "failed"), ("failed", "success")}
        if name == "vas" and word == "completed" and state.tests(cycle).failed:
            continue
        if report.iteration == cycle.iteration and (word, result.status) in against:
            message = f"{name} reported {result.status}, but the state says {word}"
            yield warning("A77", message, report.file)


RULES = (a70, a71, a72, a73, a74, a75, a76, a77)
