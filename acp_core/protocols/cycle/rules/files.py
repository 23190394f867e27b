"""Rules on the files of the progress folder.

Source: development cycle specification, "Directory Structure".
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from acp_core.model import Finding
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.schema import AGENTS, Cycle
from acp_core.protocols.kit.findings import advice, error, warning

Findings = Iterator[Finding]


def _listed(cycle: Cycle) -> Iterator[tuple[str, str, str]]:
    """Each path that is listed: by whom, as written, and inside the progress folder ("" if out).

    A path may lead from the root of another machine; what counts is what follows the folder.
    """
    folder = f"{cycle.id}.progress/"
    for name in AGENTS:
        for written in _written(cycle, name)[:500]:
            path = written.replace("\\", "/")
            at = path.find(folder)
            tail = path[at + len(folder) :] if at >= 0 else path
            inside = posixpath.normpath(tail)
            out = inside.startswith(("/", "../")) or inside == ".."
            yield name, written, "" if out else inside


def _written(cycle: Cycle, name: str) -> list[str]:
    """The paths that an agent lists, and those that stand for the parts that are told by it."""
    agent = cycle.agent(name).raw
    found = [*schema.words(agent.get("output_files")), schema.text(agent.get("output_file"))]
    for part, inside in state.DOCUMENTS.items():
        held = schema.obj(cycle.value.get(part))
        several = held.get("output_files")
        named = list(several.values()) if isinstance(several, dict) else several
        if inside.startswith(f"{name}/"):
            found += [*schema.words(named), schema.text(held.get("output_file"))]
    return list(dict.fromkeys(filter(None, found)))


def a15(cycle: Cycle) -> Findings:
    """Paths have forward slashes."""
    if any("\\" in written for _, written, _ in _listed(cycle)):
        yield advice("A15", "Output files are listed with backslashes", cycle.record.file)


def a17(cycle: Cycle) -> Findings:
    """Listed files are there, in the progress folder."""
    there = {file.name.removeprefix(cycle.progress) for file in cycle.files}
    missing = []
    for name, written, inside in _listed(cycle):
        if not inside:
            message = f"{name} lists {written!r}, outside the progress folder"
            yield error("A17", message, cycle.record.file)
        elif inside not in there and f"{name}/{inside}" not in there:
            missing.append(inside)
    if missing:
        message = f"{len(missing)} listed output files are missing: {', '.join(missing[:5])}"
        yield warning("A17", message, cycle.record.file)


def a97(cycle: Cycle) -> Findings:
    """Links are not followed."""
    for file in cycle.files:
        if file.link:
            yield warning("A97", f"{file.path.name} is not a regular file: not read", file)


def a98(cycle: Cycle) -> Findings:
    """The plan and the test results can be read."""
    for record in (cycle.plan_file, cycle.tests_file):
        if record and record.problem:
            yield warning("A98", f"{record.file.path.name} {record.problem}", record.file)


RULES = (a15, a17, a97, a98)
