"""The acts on cycles as a whole: begin one, run its orchestrator, choose which is shown, rebuild a lost state.

An orchestrator is started in the background, or followed in this terminal. Which programs its agents
run: forms ask for a program of all agents, and another one for some; commands name presets, or give
commands word by word. Choosing writes nothing into the project. Source: development cycle
specification, "Orchestrator", "Shared State" and "Progress Markdown Files".
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.agents import presets
from acp_core.agents.budgets import caps_of
from acp_core.agents.presets import Preset
from acp_core.files import atomic
from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person.settings import load as load_settings
from acp_core.protocols.cycle import matters, schema, state
from acp_core.protocols.cycle.acts.steering import run_command, state_change
from acp_core.protocols.cycle.acts.table import REBUILDING, RUNNING, SCHEMA, SELECTION, STARTING
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.read import orchestrator_spec, scan
from acp_core.protocols.cycle.read.orchestrator_spec import AT_MOST, Spec
from acp_core.protocols.cycle.read.scan import (
    OpenProject,
    is_damaged,
    open_folder,
    open_project,
    read_state_file,
)
from acp_core.protocols.cycle.rules import preparation
from acp_core.protocols.cycle.rules.preparation import Preparation
from acp_core.protocols.cycle.schema import (
    AGENTS,
    EXTEND_ACT,
    REBUILD_ACT,
    RESUME_ACT,
    RUN_ACT,
    Cycle,
    Object,
    encoded,
    text,
)
from acp_core.protocols.cycle.write import changes
from acp_core.protocols.cycle.write import store as write_store
from acp_core.protocols.cycle.write.layout import note
from acp_core.protocols.cycle.write.store import Store, rebuilt_state
from acp_core.protocols.kit.binding import Context, Location, bound, planned
from acp_core.protocols.kit.command_line import say
from acp_core.protocols.kit.guard import check
from acp_core.protocols.kit.parser import say_object
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import difference, safe

_AGAIN = "Restart the orchestrator: it resumes and repeats nothing."

_FIRST = "Run the cycle with acp from now on."


def conducting(context: Context, now: datetime) -> Action:
    """Start an orchestrator, where none runs: with the programs of before, or ones to choose."""
    opened = open_project(context, now)
    shown, root = opened.selected, str(opened.root)
    before = orchestrator_spec.load(root, shown.id)
    known = known_presets()
    narrowed = {"program": {"form": False}, "command": {"form": False}}
    narrowed = narrowed if before else {"program": preset_fields(known)["program"]}

    def preview(values: Values) -> Preview:
        spec = _next_spec(opened, values, known)
        return _conducting_preview(
            spec, is_again=orchestrator_spec.load(root, spec.cycle) is not None
        )

    def perform(values: Values) -> Outcome:
        spec = _next_spec(opened, values, known)
        sentence = f"The orchestrator runs as process {process.start(spec).pid}."
        facts = {"cycle": spec.cycle, "state": "requested"}
        return Outcome(OutcomeState.DONE, sentence, done=Preview(sentence, data=facts))

    waits = state.is_to_be_conducted(shown) and not is_damaged(shown)
    return bound(
        RUNNING,
        opened,
        preview,
        perform,
        narrowed={**narrowed, "cycle": {"default": shown.id}},
        sentence=_AGAIN if before else _FIRST,
        offered=waits and not process.conductor(root).is_held(),
    )


def _conducting_preview(spec: Spec, is_again: bool) -> Preview:
    chosen = ", ".join(f"{name} {spec.preset(name)[0].name}" for name in AGENTS)
    caution = (
        "stop the orchestrator of any other program first: two would overwrite each other's work"
    )
    return Preview(
        _AGAIN if is_again else _FIRST,
        warnings=() if is_again else (caution,),
        notes=(f"runs {clean_line(chosen)}",),
        data={"cycle": spec.cycle, "state": "dry-run"},
    )


def _next_spec(opened: OpenProject, values: Values, known: Presets) -> Spec:
    """What the orchestrator is asked to do; what is not given is as it was before in this project.

    Raises:
        Refused: it cannot run, or the cycle is over.
        PresetError: a preset is not what it should be.
    """
    root, cycle = str(opened.root), opened.find(values.cycle)
    status = text(Store(root, cycle.id).read().get("status"))
    check(matters.of_state(opened.root, cycle.id), RUN_ACT)
    process.refuse_second(root)
    before = orchestrator_spec.load(root)
    usual = replace(before, cycle=cycle.id) if before else Spec(root, cycle.id)
    spec = spec_of(values, known, usual, before is not None)
    process.check(spec)
    if status in ("completed", "failed"):
        how = EXTEND_ACT if status == "completed" else RESUME_ACT
        raise Refused(f"{cycle.id} is {status}: continue with `acp cycle {how}`")
    return spec


def conduct_here(values: Values) -> int | None:
    """``acp cycle run --foreground``: conduct it in this terminal.

    Returns:
        The exit code; None where it is started as any other act.

    Raises:
        Refused: it cannot run.
    """
    join_words(values)
    if values.dry_run or not values.foreground:
        return None
    spec = _next_spec(open_folder(values.folder), values, known_presets())
    return follow(spec, "run", values)


def follow(spec: Spec, verb: str, values: Values, remarks: Sequence[str] = ()) -> int:
    """Conduct a cycle in this terminal until its orchestrator ends; its exit code.

    Args:
        spec: what it is asked to do.
        verb: the command.
        values: what was given: whether to print JSON.
        remarks: what is said before.
    """
    for each in () if values.json else remarks:
        say(each)
    code = process.conduct(spec, echo=None if values.json else say)
    sentence = f"The orchestrator exited with {code}."
    if values.json:
        facts = {"cycle": spec.cycle, "state": "ended", "notes": list(remarks)}
        say_object(SCHEMA, verb, done=code == 0, sentence=sentence, **facts)
    else:
        say(sentence)
    return code


Presets = Mapping[str, Preset]

Chosen = dict[str, tuple[Preset, str]]

"""By agent: how its program is run, and with which model."""

_LONGEST = 7 * 86_400.0  # seconds of one run

_MOST = 100  # attempts


def known_presets() -> dict[str, Preset]:
    """Every preset by name.

    Raises:
        PresetError: an own preset is not what it should be.
    """
    return presets.load(load_settings().presets)


def preset_fields(offered: Presets) -> dict[str, dict[str, Any]]:
    """What a form offers: the first preset for all agents, or another one for each."""
    others = tuple(name for name in offered if name != presets.ANY)
    found: dict[str, dict[str, Any]] = {f"{name}_program": {"choices": others} for name in AGENTS}
    return found | {"program": {"choices": tuple(offered), "default": next(iter(offered))}}


def join_words(values: Values) -> None:
    """Take the words after ``--`` for the command of all agents."""
    if values.words:
        values.command = shlex.join(values.words)


def spec_of(values: Values, offered: Presets, spec: Spec, before: bool = False) -> Spec:
    """What the orchestrator is asked to do; what is not given is as in ``spec``.

    Args:
        values: what was given.
        offered: every preset by name.
        spec: what there is: as it usually is, or as it was before.
        before: whether that names programs.

    Raises:
        Refused: an agent has no program, or a limit is out of bounds.
        PresetError: a preset is not what it should be.
    """
    if values.timeout is not None:
        spec = replace(spec, timeout=values.timeout)
    spec = replace(
        spec,
        leave=values.leave,
        attempts=_attempts(values, spec.attempts),
        overlap=values.overlap or spec.overlap,
        jobs=spec.jobs if values.jobs is None else values.jobs,
        once=values.once,
        permissions=values.permissions or spec.permissions,
        budget=tuple(str(cap) for cap in caps_of({}, values.budget)) or spec.budget,
    )
    if not 0 < spec.timeout <= _LONGEST or not 1 <= spec.attempts <= _MOST:
        raise Refused(
            f"--timeout must be above 0 and at most 7d, and --retries from 0 to {_MOST - 1}"
        )
    if not 1 <= spec.jobs <= AT_MOST:
        raise Refused(f"--jobs must be from 1 to {AT_MOST}")
    chosen = {name: spec.preset(name) for name in AGENTS} if before else {}
    chosen |= _chosen(values, offered)
    missing = ", ".join(name for name in AGENTS if name not in chosen)
    if missing:
        message = f"no program for {missing}: name one with --agent, or give a command after `--`"
        raise Refused(message + (", or use --no-run" if hasattr(values, "begin") else ""))
    return replace(spec, agents=orchestrator_spec.with_presets(chosen))


def _attempts(values: Values, usual: int) -> int:
    if values.retries is not None:
        return int(values.retries) + 1
    return usual if values.attempts is None else int(values.attempts)


def _chosen(values: Values, offered: Presets) -> Chosen:
    """The programs that were given: for all agents, and then for single ones."""
    own = _own(values, offered)
    usual = None if len(own) == len(AGENTS) else _usual(values, offered)
    common = dict.fromkeys(AGENTS, usual) if usual else {}
    return {name: (preset, values.model) for name, preset in (common | own).items()}


def _usual(values: Values, offered: Presets) -> Preset | None:
    """The program of all agents for whom no other one is named."""
    unnamed = [each for each in values.presets if "=" not in each]
    name = unnamed[-1] if unnamed else values.program
    if values.command and name in ("", presets.ANY):
        return _command(values.command)
    if name == presets.ANY and not unnamed:
        return presets.any_command(())
    return _named(name, offered) if name else None


def _own(values: Values, offered: Presets) -> dict[str, Preset]:
    """The programs of single agents."""
    asked = {name: getattr(values, f"{name}_program", None) for name in AGENTS}
    own = {name: _named(preset, offered) for name, preset in asked.items() if preset}
    named = [each for each in values.presets if "=" in each]
    own |= {name: _named(word, offered) for name, word in _pairs(named, "--agent")}
    return own | {name: _command(word) for name, word in _pairs(values.commands, "--agent-command")}


def _pairs(words: list[str], option: str) -> list[tuple[str, str]]:
    found = []
    for each in words:
        name, sign, said = each.partition("=")
        if name not in AGENTS or not sign or not said.strip():
            raise Refused(
                f"{option} takes NAME=..., with NAME one of {', '.join(AGENTS)}: {each!r}"
            )
        found.append((name, said))
    return found


def _named(name: str, offered: Presets) -> Preset:
    if name not in offered or name == presets.ANY:
        names = ", ".join(each for each in offered if each != presets.ANY)
        raise Refused(f"no preset {name!r} (presets: {names})")
    return offered[name]


def _command(words: str) -> Preset:
    try:
        return presets.command_here(shlex.split(words))
    except ValueError as error:
        raise Refused(f"invalid command: {error} ({words!r})") from None


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
    root, known = Path(context.key).resolve(), known_presets()
    usual = preparation.limit(preparation.read(root, now), None, write_store.ITERATIONS)
    new_id = write_store.new_id(now)
    narrowed = {
        **preset_fields(known),
        "iterations": {"default": usual, "least": 1, "most": changes.LIMIT},
        "cycle": {"default": new_id},
    }

    def plan(values: Values) -> Beginning:
        values.cycle = values.cycle or new_id
        return _planned_beginning(root, values, known)

    def perform(values: Values) -> Outcome:
        beginning = plan(values)
        atomic.shared_folder(root)
        return _begin(beginning)

    return bound(
        STARTING, context, lambda v: _beginning_preview(plan(v)), perform, narrowed=narrowed
    )


def _planned_beginning(root: Path, values: Values, known: Presets) -> Beginning:
    """What would begin.

    Raises:
        Refused: it cannot.
        PresetError: a preset is not what it should be.
    """
    now = utc_now()
    given = values.iterations if "iterations" in values.said else None
    prepared = preparation.read(root, now) if values.prep else None
    remarks = preparation.describe(prepared, given)
    most = preparation.limit(prepared, given, write_store.ITERATIONS)
    fields = prepared.fields if prepared else {}
    state = write_store.first_state(
        values.cycle, now, values.objective, values.title, most, fields, remarks
    )
    spec = _first_spec(root, values, known) if values.begin else None
    return Beginning(root, state, spec, prepared, remarks)


def _first_spec(root: Path, values: Values, known: Presets) -> Spec:
    process.refuse_second(str(root))
    spec = spec_of(values, known, Spec(str(root), values.cycle))
    if root.is_dir():
        process.check(spec)
    return spec


def _beginning_preview(beginning: Beginning, sentence: str = "", word: str = "dry-run") -> Preview:
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
    write_store.create_cycle(root, beginning.state)
    if spec is None:
        word, how = "done", f"run it with `{run_command(root)}`."
    else:
        pid = process.start(spec).pid
        word, how = (
            "requested",
            f"process {pid} runs it; see `acp cycle status {shlex.quote(str(root))}`.",
        )
    sentence = f"Started: {beginning.id}; {how}"
    return Outcome(
        OutcomeState.DONE, sentence, str(root), _beginning_preview(beginning, sentence, word)
    )


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
    join_words(values)
    if values.dry_run or not values.foreground or not values.begin:
        return None
    values.cycle = values.cycle or write_store.new_id(utc_now())
    beginning = _planned_beginning(root, values, known_presets())
    assert beginning.spec is not None  # it begins at once
    write_store.create_cycle(root, beginning.state)
    return follow(beginning.spec, "start", values, beginning.remarks)


GOES_ON = "the active cycle"

_MOST_OFFERED = 50  # cycles that are offered, the latest ones


def selection(context: Context, now: datetime) -> Action:
    """Choose which cycle is shown, where there are several."""
    opened = open_project(context, now)
    shown = opened.selected
    others = [each for each in opened.project.cycles if each.id != shown.id][::-1][:_MOST_OFFERED]
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
    return planned(
        REBUILDING,
        opened,
        lambda values: _made(opened, values.cycle),
        _shown_rebuilding,
        _rewritten,
        narrowed={"cycle": {"default": selected.id}} if selected and damaged else {},
        offered=damaged,
    )


class _Made(NamedTuple):
    """A state made anew: whose, what stands there now, what becomes of it, in words too, and whether it has."""

    store: Store
    before: Object
    after: Object
    sentence: str
    is_done: bool = False


def _shown_rebuilding(made: _Made) -> Preview:
    sentence, word = (made.sentence, "done") if made.is_done else (REBUILDING.sentence, "dry-run")
    changes = (state_change(made.store, made.before, made.after),)
    return Preview(sentence, changes, data={"cycle": made.store.id, "state": word})


def _rewritten(make: Callable[[], _Made]) -> _Made:
    made = make()
    made.store.rewrite(made.after, utc_now())
    return made._replace(is_done=True)


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
    last = scan.last_whole_state(store.root, store.id) if found.problem else None
    if last is not None:
        note(last, utc_now(), "user", "the state that acp wrote last was restored")
        return _Made(store, found.state, last, f"{_RESTORED}; {_ASIDE}")
    after = rebuilt_state(store.progress, store.id, utc_now(), found.state)
    return _Made(store, found.state, after, f"{_REBUILT}; {_ASIDE}")
