"""prep-package.json: what a project was prepared with, what a cycle takes from it, and the rules on it.

The published skill ignores a package that fails one of the six checks without a word; here it is
ignored too, and every fault is said. What is taken stands in the state from then on: a package that
changes later changes no cycle. Source: development cycle specification, "Shared State"; the checks
are those of its later form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from acp_core.files.records import File, moment, read_record
from acp_core.model import Finding
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.read import scan
from acp_core.protocols.cycle.read.progress import LIMIT
from acp_core.protocols.cycle.schema import AGENTS, Object, Project
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
NAME = "prep-package.json"
_LONG = 200


@dataclass(frozen=True, slots=True)
class Preparation:
    """What a package gives to a cycle.

    Attributes:
        iterations: how many there are at most; None where the package is not used.
        fields: the fields of the state that it fills.
        messages: what is taken from it, or why it is not used, each a sentence.
    """

    iterations: int | None = None
    fields: Object = field(default_factory=dict)
    messages: tuple[str, ...] = ()

    @property
    def used(self) -> bool:
        """Whether it has no fault."""
        return self.iterations is not None


def read(root: Path, now: datetime) -> Preparation | None:
    """The package of a project; None where there is none. Never raises for what it holds.

    Args:
        root: the project's real path.
        now: when the cycle begins, which the package may precede by a day.
    """
    base = scan.home(root)
    path = base / NAME if base else None
    if path is None:
        return None
    try:
        stat = path.lstat()
        link = path.is_symlink() or not path.is_file()
    except OSError:
        return None
    name = "/".join((*schema.HOME, NAME))
    file = File(name, path, stat.st_size, moment(stat.st_mtime), link)
    record = read_record(file, LIMIT)
    project = Project(root, now, None, prep=record)
    faults = [found.message for rule in PREPARATION_RULES for found in rule(project)]
    if faults:
        return Preparation(None, {}, tuple(f"{NAME}: {each}" for each in faults))
    return _taken(record.value or {})


def _taken(package: Object) -> Preparation:
    held = schema.obj(package.get("auto_iteration"))
    iterations = schema.count(held.get("max_iterations"))
    wanted = schema.obj(held.get("convergence"))
    keys = (state.RATE, state.COVERAGE, state.CRITICAL, "max_open_issues")
    fields: Object = {
        "convergence": {key: wanted[key] for key in keys if key in wanted},
        "phase_gates": _gates(schema.obj(held.get("phase_gates"))),
        "agent_focus": _focus(schema.obj(held.get("agent_focus"))),
        "source_refs": schema.objects(schema.obj(package.get("task")).get("source_refs"))[:100],
    }
    messages = [
        f"{NAME}: at most {iterations} iterations",
        f"{NAME}: {state.describe_goal(fields)}",
    ]
    first = state.iterations_of(fields, "zero_to_one")
    if first:
        numbers = ", ".join(map(str, first[:10]))
        messages.append(f"{NAME}: iterations of zero_to_one: {numbers}; its gate: some test passes")
    unused = [each for each in ("max_open_issues",) if each in wanted]
    if any(
        schema.obj(each).get("exit_criteria") for each in schema.obj(fields["phase_gates"]).values()
    ):
        unused.append("exit_criteria")
    if unused:
        messages.append(f"{NAME}: not judged: {', '.join(unused)}")
    return Preparation(iterations, fields, tuple(messages))


def _gates(held: Object) -> Object:
    return {name: schema.obj(held[name]) for name in _PHASES if schema.obj(held.get(name))}


def _focus(held: Object) -> Object:
    found: Object = {}
    for phase in _PHASES:
        of = schema.obj(held.get(phase))
        said = {name: schema.text(of.get(name))[:_LONG] for name in AGENTS if of.get(name)}
        if said:
            found[phase] = said
    return found


def limit(prepared: Preparation | None, given: int | None, otherwise: int) -> int:
    """How many iterations there are at most: as it was said, else the package's, else ``otherwise``."""
    if given is not None:
        return given
    taken = prepared.iterations if prepared else None
    return otherwise if taken is None else taken


def describe(prepared: Preparation | None, given: int | None = None) -> tuple[str, ...]:
    """What is said of a package where a cycle begins.

    Args:
        prepared: the package, if there is one.
        given: how many iterations a person wants, which takes the place of what it says.
    """
    if prepared is None:
        return ()
    if not prepared.used or given is None or given == prepared.iterations:
        return prepared.messages
    said = f"{NAME}: its limit of {prepared.iterations} iterations is overridden by {given}"
    return (said, *prepared.messages[1:])
