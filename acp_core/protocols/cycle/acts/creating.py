"""The acts that begin a cycle in a project's folder, choose which one is shown, and make a lost state anew.

Choosing writes nothing into the project. Source: development cycle specification, "Shared State"
and "Progress Markdown Files".
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files import atomic
from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.cycle import matters, schema, state
from acp_core.protocols.cycle.acts import conducting
from acp_core.protocols.cycle.acts.conducting import follow
from acp_core.protocols.cycle.acts.steering import state_change
from acp_core.protocols.cycle.acts.table import REBUILDING, SELECTION, STARTING
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.read import scan, state_file
from acp_core.protocols.cycle.read.orchestrator_spec import Spec
from acp_core.protocols.cycle.read.scan import OpenProject, is_damaged, open_project
from acp_core.protocols.cycle.read.state_file import read_state_file
from acp_core.protocols.cycle.rules import preparation
from acp_core.protocols.cycle.rules.preparation import Preparation
from acp_core.protocols.cycle.schema import AGENTS, REBUILD_ACT, Cycle, Object, encoded
from acp_core.protocols.cycle.write import changes, creating
from acp_core.protocols.cycle.write.creating import rebuilt
from acp_core.protocols.cycle.write.layout import note
from acp_core.protocols.cycle.write.store import Store
from acp_core.protocols.kit.binding import Context, Location, bound
from acp_core.protocols.kit.guard import check
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
    root, known = Path(context.key).resolve(), conducting.known_presets()
    usual = preparation.limit(preparation.read(root, now), None, creating.ITERATIONS)
    new_id = creating.new_id(now)
    narrowed = {
        **conducting.preset_fields(known),
        "iterations": {"default": usual, "least": 1, "most": changes.LIMIT},
        "cycle": {"default": new_id},
    }

    def plan(values: Values) -> Beginning:
        values.cycle = values.cycle or new_id
        return _plan(root, values, known)

    def perform(values: Values) -> Outcome:
        beginning = plan(values)
        atomic.shared_folder(root)
        return _begin(beginning)

    return bound(STARTING, context, lambda v: _preview(plan(v)), perform, narrowed=narrowed)


def _plan(root: Path, values: Values, known: conducting.Presets) -> Beginning:
    """What would begin.

    Raises:
        Refused: it cannot.
        PresetError: a preset is not what it should be.
    """
    now = utc_now()
    given = values.iterations if "iterations" in values.said else None
    prepared = preparation.read(root, now) if values.prep else None
    remarks = preparation.describe(prepared, given)
    most = preparation.limit(prepared, given, creating.ITERATIONS)
    fields = prepared.fields if prepared else {}
    state = creating.first_state(
        values.cycle, now, values.objective, values.title, most, fields, remarks
    )
    spec = _spec(root, values, known) if values.begin else None
    return Beginning(root, state, spec, prepared, remarks)


def _spec(root: Path, values: Values, known: conducting.Presets) -> Spec:
    process.refuse_second(str(root))
    spec = conducting.spec_of(values, known, Spec(str(root), values.cycle))
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
    creating.create(root, beginning.state)
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
    conducting.join_words(values)
    if values.dry_run or not values.foreground or not values.begin:
        return None
    values.cycle = values.cycle or creating.new_id(utc_now())
    beginning = _plan(root, values, conducting.known_presets())
    assert beginning.spec is not None  # it begins at once
    creating.create(root, beginning.state)
    return follow(beginning.spec, "start", values, beginning.remarks)


GOES_ON = "the active cycle"
_MOST = 50  # cycles that are offered, the latest ones


def selection(context: Context, now: datetime) -> Action:
    """Choose which cycle is shown, where there are several."""
    opened = open_project(context, now)
    shown = opened.selected
    others = [each for each in opened.project.cycles if each.id != shown.id][::-1][:_MOST]
    ids = (*(each.id for each in others), GOES_ON)
    first = next((each.id for each in others if each.status in schema.OPEN), ids[0])
    about = clean_line(" · ".join(map(_described, others[:8])))

    def chosen(values: Values) -> str:
        return GOES_ON if values.cycle == GOES_ON else opened.find(values.cycle).id

    def preview(values: Values) -> Preview:
        return Preview(f"Show {safe(chosen(values))} from now on, and apply all actions to it.")

    def perform(values: Values) -> Outcome:
        id = chosen(values)
        scan.choose(opened.root, "" if id == GOES_ON else id)
        return Outcome(OutcomeState.DONE, f"Showing {safe(id)}.")

    return bound(
        SELECTION,
        opened,
        preview,
        perform,
        narrowed={"cycle": {"choices": ids, "default": first, "help": about}},
        sentence=f"Showing {shown.id}. Choose another cycle of this project.",
        offered=bool(others),
    )


def _described(cycle: Cycle) -> str:
    title = schema.text(cycle.value.get("title")) or "no title"
    return f"{cycle.id[-8:]}: {title}, {cycle.status or 'unreadable'}, {state.verdict(cycle)}"


_RESTORED = "Restored the state that acp wrote last"
_REBUILT = "Rebuilt from the agents' documents, and paused"
_ASIDE = "the old file is kept beside it."


def rebuilding(context: Context, now: datetime) -> Action:
    """Make the state anew: of the cycle that is shown, where it is damaged."""
    opened = open_project(context, now)
    selected = opened.project.selected
    damaged = selected is not None and matters.can_rebuild(opened.root, selected)

    def preview(values: Values) -> Preview:
        made = _made(opened, values.cycle)
        return _preview_of(made, REBUILDING.sentence, "dry-run")

    def perform(values: Values) -> Outcome:
        made = _made(opened, values.cycle)
        made.store.rewrite(made.after, utc_now())
        return Outcome(
            OutcomeState.DONE, made.sentence, done=_preview_of(made, made.sentence, "done")
        )

    narrowed = {"cycle": {"default": selected.id}} if selected and damaged else {}
    return bound(REBUILDING, opened, preview, perform, narrowed=narrowed, offered=damaged)


class _Made(NamedTuple):
    """A state made anew: whose, what stands there now, and what becomes of it, in words too."""

    store: Store
    before: Object
    after: Object
    sentence: str


def _preview_of(made: _Made, sentence: str, word: str) -> Preview:
    changes = (state_change(made.store, made.before, made.after),)
    return Preview(sentence, changes, data={"cycle": made.store.id, "state": word})


def _meant(opened: OpenProject, id: str) -> str:
    """The cycle that is named; without a name the only one that is lost or damaged.

    Raises:
        Refused: there is none, or there are several.
    """
    if id:
        return id.removesuffix(".json")
    project = opened.project
    broken = [each.id for each in project.cycles if is_damaged(each)]
    candidates = [*broken, *project.orphans] or [each.id for each in project.cycles]
    if len(candidates) != 1:
        names = ", ".join(candidates[-5:]) or "none"
        raise Refused(f"name the cycle with --cycle (cycles: {names})")
    return candidates[0]


def _made(opened: OpenProject, id: str) -> _Made:
    """The state that would take the place of what stands there.

    What acp wrote last, where that is kept and nothing else can be read; else what the documents
    tell, and what can still be read of the old one.

    Raises:
        Refused: nothing is damaged while an orchestrator runs, something else stands in the way,
            or there is nothing to make it of.
    """
    store = Store(opened.root, _meant(opened, id))
    found = read_state_file(store.path)
    if not found.problem and process.running(str(opened.root)):
        raise Refused("an orchestrator is running in this project: stop it first (acp stop)")
    check(matters.of_state(store.root, store.id), REBUILD_ACT)
    last = state_file.last_whole_state(store.root, store.id) if found.problem else None
    if last is not None:
        note(last, utc_now(), "user", "the state that acp wrote last was restored")
        return _Made(store, found.state, last, f"{_RESTORED}; {_ASIDE}")
    after = rebuilt(store.progress, store.id, utc_now(), found.state)
    return _Made(store, found.state, after, f"{_REBUILT}; {_ASIDE}")
