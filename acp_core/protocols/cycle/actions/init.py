"""Beginning a cycle in a project's folder.

Source: development cycle specification, "Shared State".
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files import modes
from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.actions import programs
from acp_core.protocols.cycle.actions.conducting import follow
from acp_core.protocols.cycle.actions.table_conducting import STARTING
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.read.orchestrator_spec import Spec
from acp_core.protocols.cycle.rules import preparation
from acp_core.protocols.cycle.rules.preparation import Preparation
from acp_core.protocols.cycle.schema import AGENTS, Object, encoded
from acp_core.protocols.cycle.write import changes, init
from acp_core.protocols.kit.binding import Context, Location, bound
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import difference, safe


class Beginning(NamedTuple):
    """A cycle that is about to begin.

    Attributes:
        root: the project's folder.
        state: the cycle's first state.
        spec: what its orchestrator is asked to do; None where none is started.
        prepared: the project's package, where it has one that may be used.
        remarks: what is said of that.
    """

    root: Path
    state: Object
    spec: Spec | None
    prepared: Preparation | None
    remarks: tuple[str, ...]

    @property
    def id(self) -> str:
        """The cycle's name."""
        return schema.text(self.state["cycle_id"])


def create(folder: Path | str) -> Action:
    """The action that begins a cycle in the project ``folder``, which is made if need be."""
    return starting(Location(os.path.abspath(os.path.expanduser(folder))), utc_now())


def starting(context: Context, now: datetime) -> Action:
    """Begin a cycle, with a name that is the same in the preview and in what is done."""
    root, known = Path(context.key).resolve(), programs.known()
    usual = preparation.limit(preparation.read(root, now), None, init.ITERATIONS)
    new_id = init.new_id(now)
    narrowed = {
        **programs.narrowed(known),
        "iterations": {"default": usual, "least": 1, "most": changes.LIMIT},
        "cycle": {"default": new_id},
    }

    def plan(values: Values) -> Beginning:
        values.cycle = values.cycle or new_id
        return _plan(root, values, known)

    def perform(values: Values) -> Outcome:
        beginning = plan(values)
        modes.shared_folder(root)
        return _begin(beginning)

    return bound(STARTING, context, lambda v: _preview(plan(v)), perform, narrowed=narrowed)


def _plan(root: Path, values: Values, known: programs.Presets) -> Beginning:
    """What would begin.

    Raises:
        Refused: it cannot.
        PresetError: a preset is not what it should be.
    """
    now = utc_now()
    given = values.iterations if "iterations" in values.said else None
    prepared = preparation.read(root, now) if values.prep else None
    remarks = preparation.describe(prepared, given)
    most = preparation.limit(prepared, given, init.ITERATIONS)
    fields = prepared.fields if prepared else {}
    state = init.first_state(
        values.cycle, now, values.objective, values.title, most, fields, remarks
    )
    spec = _spec(root, values, known) if values.begin else None
    return Beginning(root, state, spec, prepared, remarks)


def _spec(root: Path, values: Values, known: programs.Presets) -> Spec:
    process.refuse_second(str(root))
    spec = programs.spec_of(values, known, Spec(str(root), values.cycle))
    if root.is_dir():
        process.check(spec)
    return spec


def _preview(beginning: Beginning, sentence: str = "", word: str = "dry-run") -> Preview:
    """What would begin, or began: its files and programs, and what is said of them."""
    root, spec, prepared = beginning.root, beginning.spec, beginning.prepared
    path = root.joinpath(*schema.HOME, f"{beginning.id}.json")
    made = [Change(safe(str(path)), "create", difference(b"", encoded(beginning.state)))]
    if spec:
        made.append(Change(f"the orchestrator, with {_programs(spec)}", "start"))
    remarks = tuple(map(clean_line, beginning.remarks))
    taken = prepared is not None and prepared.used
    return Preview(
        sentence or f"Start a cycle in {safe(str(root))}.",
        tuple(made),
        warnings=(*_cautions(spec), *(() if taken else remarks)),
        notes=remarks if taken else (),
        data={"cycle": beginning.id, "state": word},
    )


def _cautions(spec: Spec | None) -> tuple[str, ...]:
    """What a person should know of the programs before they are started."""
    used = [spec.preset(name)[0] for name in AGENTS] if spec else []
    return tuple(dict.fromkeys(f"{each.title} {each.caution}" for each in used if each.caution))


def _programs(spec: Spec) -> str:
    """Which programs the agents run."""
    names = [spec.preset(name)[0].name for name in AGENTS]
    if len(set(names)) == 1:
        return f"{names[0]} as all four agents"
    return ", ".join(f"{name} as {agent}" for agent, name in zip(AGENTS, names, strict=True))


def _begin(beginning: Beginning) -> Outcome:
    """Write the cycle's files, and start its orchestrator in the background."""
    root, spec = beginning.root, beginning.spec
    if spec:
        process.check(spec)
    init.create(root, beginning.state)
    if spec is None:
        word, how = "done", "run it with `acp cycle run`."
    else:
        pid = process.start(spec).pid
        word, how = "requested", f"process {pid} runs it; see `acp cycle status`."
    sentence = f"Started: {beginning.id}; {how}"
    return Outcome(OutcomeState.DONE, sentence, str(root), _preview(beginning, sentence, word))


def start_here(values: Values) -> int | None:
    """``acp cycle start --foreground``: begin it, and conduct it in this terminal.

    Returns:
        The exit code; None where it is begun as any other act.

    Raises:
        Refused: the project is no folder, or it cannot begin.
    """
    root = Path(os.path.expanduser(values.folder)).resolve()
    if not root.is_dir():
        raise Refused(f"{root}: no such folder")
    programs.join_words(values)
    if values.dry_run or not values.foreground or not values.begin:
        return None
    values.cycle = values.cycle or init.new_id(utc_now())
    beginning = _plan(root, values, programs.known())
    assert beginning.spec is not None  # it begins at once
    init.create(root, beginning.state)
    return follow(beginning.spec, "start", values, beginning.remarks)
