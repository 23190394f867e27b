"""Rules on prep-package.json: what the project was prepared with before its cycles.

A package that fails one of the six checks is ignored by the published skill without a word.

Source: development cycle specification, "Shared State"; the checks are those of its later form.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from acp_core.model import Finding
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import Object, Project
from acp_core.protocols.kit.findings import warning

_BEST_BEFORE = timedelta(hours=24)
_QUALITY = 6
ITERATIONS = 1_000  # at most, as in every cycle
_PHASES = ("zero_to_one", "one_to_hundred")
_REQUIRED = (
    "prep_status",
    "generated_at",
    "environment.project_root",
    "task.refined",
    "task.quality_score",
    "auto_iteration.max_iterations",
    "auto_iteration.convergence.test_pass_rate",
    "auto_iteration.convergence.coverage",
)
Findings = Iterator[Finding]


def _at(value: Object, path: str) -> object:
    found: object = value
    for key in path.split("."):
        found = schema.obj(found).get(key)
    return found


def _package(project: Project) -> Object:
    return (project.prep.value if project.prep else None) or {}


def a90(project: Project) -> Findings:
    """The package is ready."""
    said = schema.text(_package(project).get("prep_status"))
    if project.prep and said and said != "ready":
        yield warning("A90", f"prep_status is {said!r}: package ignored", project.prep.file)


def a91(project: Project) -> Findings:
    """It is for this project."""
    said = schema.text(_at(_package(project), "environment.project_root"))
    here = str(project.root).replace("\\", "/").rstrip("/")
    if project.prep and said and said.replace("\\", "/").rstrip("/") != here:
        message = f"The package is for {said}: package ignored"
        yield warning("A91", message, project.prep.file)


def a92(project: Project) -> Findings:
    """The task is described well enough."""
    score = schema.number(_at(_package(project), "task.quality_score"))
    if project.prep and score is not None and score < _QUALITY:
        message = f"quality_score is {score:g}, below the minimum {_QUALITY}: package ignored"
        yield warning("A92", message, project.prep.file)


def a93(project: Project) -> Findings:
    """It was not older than a day when a cycle was started with it."""
    made = schema.moment(_package(project).get("generated_at"))
    if project.prep is None or made is None:
        return
    started = [each.at(each.value.get("created_at")) for each in project.cycles]
    used = min((at for at in started if at and at >= made), default=project.now)
    if used - made > _BEST_BEFORE:
        message = "The package is older than 24 hours: package ignored"
        yield warning("A93", message, project.prep.file)


def _limits(project: Project) -> Findings:
    """Its limit and its phases are numbers of iterations."""
    if project.prep is None:
        return
    said = _at(_package(project), "auto_iteration.max_iterations")
    if said not in (None, "") and not 1 <= (schema.count(said) or 0) <= ITERATIONS:
        message = f"max_iterations is not a number from 1 to {ITERATIONS}: package ignored"
        yield warning("A94", message, project.prep.file)
    gates = _at(_package(project), "auto_iteration.phase_gates")
    if gates is not None and not isinstance(gates, dict):
        yield warning("A94", "phase_gates is not an object: package ignored", project.prep.file)
    for phase in _PHASES:
        gate = schema.obj(gates).get(phase)
        numbers = schema.obj(gate).get("iterations", [])
        good = isinstance(numbers, list) and all(schema.count(each) for each in numbers)
        if gate is not None and not (isinstance(gate, dict) and good):
            message = f"phase_gates: {phase} has no list of iterations: package ignored"
            yield warning("A94", message, project.prep.file)


def a94(project: Project) -> Findings:
    """It can be read, and has what it needs."""
    if project.prep is None:
        return
    if project.prep.problem:
        message = f"The package {project.prep.problem}: package ignored"
        yield warning("A94", message, project.prep.file)
        return
    missing = [path for path in _REQUIRED if _at(_package(project), path) in (None, "")]
    if missing:
        message = f"The package has no {', '.join(missing)}: package ignored"
        yield warning("A94", message, project.prep.file)
    yield from _limits(project)


def a95(project: Project) -> Findings:
    """What is wanted of the tests is a percentage above 0."""
    if project.prep is None:
        return
    for key in ("test_pass_rate", "coverage"):
        said = _at(_package(project), f"auto_iteration.convergence.{key}")
        number = schema.number(said)
        if said not in (None, "") and (number is None or not 0 < number <= 100):
            message = f"convergence: {key} is not a percentage above 0: package ignored"
            yield warning("A95", message, project.prep.file)
    bugs = _at(_package(project), "auto_iteration.convergence.max_critical_bugs")
    if bugs is not None and schema.count(bugs) is None:
        message = "convergence: max_critical_bugs is not a number: package ignored"
        yield warning("A95", message, project.prep.file)


PREPARATION_RULES = (a90, a91, a92, a93, a94, a95)
