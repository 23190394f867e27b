"""What a cycle takes from the project's prep-package.json when it begins.

The published skill ignores a package with a fault without a word; here it is ignored too, and
every fault is said. What is taken stands in the state from then on: a package that changes later
changes no cycle. Source: development cycle specification, "Shared State", its later form.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from acp_core.files.records import File, moment, read_record
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.read import scan
from acp_core.protocols.cycle.read.progress import LIMIT
from acp_core.protocols.cycle.rules import prep
from acp_core.protocols.cycle.schema import AGENTS, Object, Project

NAME = "prep-package.json"
_PHASES = ("zero_to_one", "one_to_hundred")
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
    faults = [found.message for rule in prep.PREPARATION_RULES for found in rule(project)]
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
