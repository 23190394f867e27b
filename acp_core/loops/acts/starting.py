"""Acts that start loops: chosen ones, again, with another program, for everybody, or in a folder that is being made.

Each shows beforehand what exactly will be run, and says afterwards whether that is so. What starts
programs in a new folder is handed in to the protocols' acts that make folders
(`acp_core.protocols.kit.starting.Starter`).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from acp_core.agents import presets, registry
from acp_core.agents.failures import FailureClass
from acp_core.agents.loop_directory import place
from acp_core.agents.presets import ANY, Preset, PresetError
from acp_core.agents.state import RunnerState
from acp_core.files.secrets import mask_command
from acp_core.loops import launch, wording
from acp_core.loops.acts import table
from acp_core.loops.acts.about import (
    BEFORE,
    LIKE,
    About,
    Chosen,
    all_presets,
    installed,
    installed_first,
    missing,
    one_of,
    renewed,
    spec_of,
)
from acp_core.loops.launch import LaunchError, Plan, Spec
from acp_core.model import Action, Change, Outcome, OutcomeState, Participant, Preview
from acp_core.model.action_spec import ActionSpec
from acp_core.model.errors import Refused
from acp_core.model.text import clean, clean_line
from acp_core.person.paths import key_of
from acp_core.protocols.kit.binding import Context, Narrowed, bound, words_of
from acp_core.protocols.kit.diagnosis import safe_id
from acp_core.protocols.kit.values import Values


class Versions:
    """Plans, for which each program is asked only once which version it is: a person types meanwhile."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, tuple[str, ...]], str] = {}

    def plan(self, spec: Spec, preset: Preset, *, again: bool) -> Plan:
        """Work out what would be started for one participant; see `launch.plan`."""
        plan = launch.plan(spec, preset, ask_version=False, again=again)
        asked = (plan.spec.program, preset.version_args)
        if plan.refused and asked not in self._known:
            return plan
        if asked not in self._known:
            plan = launch.plan(spec, preset, again=again)
            self._known[asked] = plan.spec.version
            return plan
        return launch.plan_with(plan, preset, self._known[asked])


def preview_of(plans: Sequence[Plan], command: tuple[str, ...]) -> Preview:
    """Every program that would be started: version, working folder, the whole command.

    Args:
        plans: what would be started.
        command: does the same on a command line.
    """
    refused = [f"{_who(plan)}: {plan.refused}" for plan in plans if plan.refused]
    return Preview(
        f"Starts {', '.join(map(_who, plans))} in the background.",
        tuple(map(_change, plans)),
        command,
        tuple(dict.fromkeys(clean_line(each) for plan in plans for each in plan.warnings)),
        clean_line("; ".join(refused), 1_000),
        data={"loops": [_facts(plan, plan.refused) for plan in plans]},
    )


def carry_out(plans: Sequence[Plan], *, again: bool) -> Outcome:
    """Start them; what cannot be started keeps none of the others from it."""
    loops, started, failed = [], [], []
    for plan in plans:
        pid, problem = _start(plan, again=again)
        loops.append(_facts(plan, problem, pid))
        if problem:
            failed.append(f"{_who(plan)}: {clean_line(problem)}")
        else:
            started.append(f"{_who(plan)} (process {pid})")
    words = f"Started {', '.join(started)}." if started else "No loop was started."
    words += f" Not started: {'; '.join(failed)}." if failed else ""
    some = OutcomeState.UNKNOWN if failed else OutcomeState.DONE
    state = some if started else OutcomeState.REFUSED
    return Outcome(state, words, done=Preview(words, data={"loops": loops}))


def _start(plan: Plan, *, again: bool) -> tuple[int, str]:
    """Start a loop: its process id, or why not."""
    if plan.refused:
        return 0, plan.refused
    try:
        state = launch.restart(plan) if again else launch.start(plan.spec)
    except LaunchError as error:
        return 0, str(error)
    return state.pid, ""


def _who(plan: Plan) -> str:
    return safe_id(plan.spec.participant)


def _change(plan: Plan) -> Change:
    """A program that would be started, as a preview shows it."""
    spec = plan.spec
    name = " ".join(filter(None, (spec.name, clean_line(spec.version), clean_line(spec.model))))
    redirected = " < <prompt>" if plan.stdin else ""
    lines = [
        f"program  {clean_line(spec.program, 4_096) or 'not found'}",
        f"runs in  {clean_line(spec.workdir, 4_096)}",
    ]
    if plan.command:
        lines.append(f"command  {clean_line(shlex.join(plan.command), 20_000)}{redirected}")
    if live := live_of(plan):
        lines.append(f"live     {live}")
    if plan.refused:
        lines.append(f"refused  {clean_line(plan.refused)}")
    return Change(f"{_who(plan)}: {name}", "start", clean("\n".join(lines)))


def live_of(plan: Plan) -> str:
    """The live session that its turns are taken in, or why in none; "" where none is possible."""
    return clean_line(shlex.join(plan.live), 4_096) if plan.live else plan.not_live


def _facts(plan: Plan, problem: str, pid: int = 0) -> dict[str, Any]:
    """A loop that would be started, or was, for programs."""
    spec = plan.spec
    return {
        "participant": spec.participant,
        "preset": spec.name,
        "program": spec.program,
        "version": spec.version,
        "model": spec.model,
        "workdir": spec.workdir,
        "command": list(plan.command),
        "prompt_on_stdin": plan.stdin,
        "live": live_of(plan) or None,
        "warnings": list(plan.warnings),
        "problem": problem or None,
        "pid": pid or None,
    }


class _Wanted(NamedTuple):
    """A participant that shall have a loop, and with which program; "" for the usual one."""

    name: str
    program: str


def bind_launch(context: Context, now: datetime) -> Action:
    """Start loops, with a program for each participant."""
    about, versions = About.of(context), Versions()
    known = all_presets()
    people = [each for each in about.snapshot.participants if each.kind != "human"]
    people = people or list(about.snapshot.participants)

    def resolved(each: _Wanted, values: Values) -> tuple[Spec, Preset]:
        name, program = each
        if not program or program == BEFORE:
            if program or about.programs.before(name):
                return about.programs.again(name, values.model)
            program = about.programs.default()
        if not program:
            raise Refused(f"choose an agent: {name}=PRESET")
        if program.startswith(LIKE):
            return about.programs.like(name, program)
        preset = (
            presets.named(program, known)
            if program != ANY
            else presets.typed_command(values.command, known[ANY])
        )
        return spec_of(about.key, about.programs.raw(name), preset, Chosen.of(values))

    def plans(values: Values) -> list[Plan]:
        found = [resolved(each, values) for each in _wanted(about, values)]
        return [versions.plan(*each, again=values.again) for each in found]

    def preview(values: Values) -> Preview:
        made = plans(values)
        if not made:
            raise Refused("every participant already has a loop (see `acp ps`)")
        return preview_of(made, _launch_command(about.key, values))

    def perform(values: Values) -> Outcome:
        return carry_out(plans(values), again=values.again)

    return bound(
        table.LAUNCH,
        about,
        preview,
        perform,
        narrowed={"participant": _participants(about, people, known)},
        offered=bool(about.without()),
    )


def _participants(
    about: About, people: Iterable[Participant], known: Iterable[str]
) -> dict[str, object]:
    """Who can be given which program here and now.

    It begins with those whose loop ended, with what they had, and those who are waited for, with a
    program that is installed.
    """
    waited = {turn.participant for turn in about.snapshot.turns}
    names, labels, default = [], about.programs.labels(), []
    choices = tuple(dict.fromkeys((*about.programs.names(), *known)))
    usual = about.programs.default()
    for person in people:
        loop = about.loops.get(person.id)
        who = f"{person.id} ({person.role})" if person.role else person.id
        facts = ("has the turn" if person.id in waited else "", wording.activity(loop))
        names.append(person.id)
        labels[f"{person.id}="] = f"{who}: {', '.join(filter(None, facts))}"
        if loop is not None and not loop.alive and loop.shown.program in choices:
            program = loop.shown.program
            default.append(f"{person.id}={BEFORE if program == ANY else program}")
        elif loop is None and usual and person.id in waited:
            default.append(f"{person.id}={usual}")
    return {
        "help": "Choose an agent for each participant.",
        "names": tuple(names),
        "choices": choices,
        "labels": labels,
        "default": tuple(default),
        "bare": usual or None,
    }


def _wanted(about: About, values: Values) -> list[_Wanted]:
    """Who shall have a loop.

    Raises:
        Refused: the words do not say who, or how.
    """
    chosen = "participant" in values.said
    usual = next((each for each in reversed(values.agent) if "=" not in each), "")
    words = list(values.participant) if chosen else []  # nothing preselected starts unseen
    words += [each for each in values.agent if "=" in each]
    if values.command and usual not in ("", ANY):
        raise Refused("give either --agent PRESET or a command after --")
    usual = usual or (ANY if values.command else "")
    if words:
        return [_named(word, usual) for word in words]
    if chosen:
        raise Refused("choose an agent for at least one participant")
    if usual == ANY:
        raise Refused("name the participant for the command after --")
    running = () if values.again else about.alive()
    if usual:
        return [_Wanted(name, usual) for name in about.agents if name not in running]
    if not about.loops:
        raise Refused("no loop was started here before: use PARTICIPANT=PRESET or --agent PRESET")
    return [_Wanted(name, BEFORE) for name in about.loops if name not in running]


def _named(word: str, usual: str) -> _Wanted:
    participant, equals, program = word.partition("=")
    if not participant:
        raise Refused(f"{word!r} is not a participant")
    return _Wanted(participant, program if equals else usual)


def _launch_command(key: str, values: Values) -> tuple[str, ...]:
    """The same as a command; what stands after ``--`` is masked where it looks like a secret."""
    words = ["acp", "launch", key]
    names = [
        each.removesuffix(f"={ANY}") if values.command else each for each in values.participant
    ]
    for field in table.LAUNCH.fields:
        value = names if field.name == "participant" else getattr(values, field.name)
        if field.name == "participant":
            words += names
        elif field.name == "agent":
            words += words_of(field, [each for each in value if each != ANY])
        elif field.name != "command":
            words += words_of(field, value)
    if values.command:
        words += ["--", *mask_command(map(clean_line, shlex.split(values.command)))]
    return tuple(clean_line(word, 4_096) for word in words)


# --- the same for one, or for everybody --------------------------------------------------------


def bind_relaunch(context: Context, now: datetime) -> Action:
    """Start a loop again, with the program that it had."""
    about, versions = About.of(context), Versions()
    names = [name for name in about.loops if about.programs.before(name)]

    def plans(values: Values) -> list[Plan]:
        loop = about.loops.get(values.participant)
        if loop is not None and not values.model:
            _check_model(loop)
        chosen = about.programs.again(values.participant, values.model)
        return [versions.plan(*chosen, again=True)]

    def command(values: Values) -> tuple[str, ...]:
        model = ("--model", clean_line(values.model)) if values.model else ()
        return ("acp", "launch", about.key, values.participant, "--again", *model)

    narrowed = {"participant": one_of(names)}
    return _starter(table.RELAUNCH, about, plans, command, narrowed, offered=bool(names))


def _check_model(loop: RunnerState) -> None:
    """Refuse to start again what fails again unless its model is another one.

    Raises:
        Refused: another model must be chosen.
    """
    shown, why = loop.shown, _WRONG_MODEL.get(loop.shown.failure)
    if why:
        model = f"the model {shown.model}" if shown.model else f"{shown.program}'s default model"
        raise Refused(f"{model} {why}: choose another model (--model NAME)")


_WRONG_MODEL = {
    FailureClass.MODEL.value: "is not available",
    FailureClass.CONTEXT.value: "ran out of context",
}


def bind_hand_over(context: Context, now: datetime) -> Action:
    """Let another program take a participant's turns."""
    about, versions = About.of(context), Versions()
    names = [name for name in about.agents if name in about.loops]

    def plans(values: Values) -> list[Plan]:
        program, command, model = values.program, values.command, values.model
        chosen = about.programs.chosen(values.participant, program, command, model)
        return [versions.plan(*chosen, again=True)]

    narrowed = {
        "participant": one_of(names),
        "program": one_of(about.programs.names(), about.programs.default()),
    }
    return _starter(table.HAND_OVER, about, plans, None, narrowed, offered=bool(names))


def bind_launch_all(context: Context, now: datetime) -> Action:
    """Start a loop for everybody who has none."""
    about, versions = About.of(context), Versions()
    names = about.without()
    choices = [name for name in about.programs.names() if name != ANY]

    def plans(values: Values) -> list[Plan]:
        found = [about.programs.usual(name, values.program or BEFORE) for name in names]
        return [versions.plan(*each, again=True) for each in found]

    narrowed = {"program": one_of(choices, about.programs.default())}
    return _starter(table.LAUNCH_ALL, about, plans, None, narrowed, offered=len(names) > 1)


def _starter(
    spec: ActionSpec,
    about: About,
    plans: Callable[[Values], Sequence[Plan]],
    command: Callable[[Values], tuple[str, ...]] | None,
    narrowed: Narrowed,
    *,
    offered: bool,
) -> Action:
    """An act that starts loops in the place of those that there are."""

    def same(values: Values) -> tuple[str, ...]:
        named = (
            word for each in spec.fields for word in words_of(each, getattr(values, each.name))
        )
        return ("acp", "act", about.key, spec.name, *map(clean_line, named))

    def preview(values: Values) -> Preview:
        made = plans(values)
        shown = preview_of(made, (command or same)(values))
        ends = [
            f"its loop (process {loop.pid}) and its agent are stopped first"
            for plan in made
            if (loop := _running(about, plan)) is not None
        ]
        return replace(shown, warnings=(*ends, *shown.warnings))

    return bound(
        spec,
        about,
        preview,
        lambda values: carry_out(plans(values), again=True),
        narrowed=narrowed,
        offered=offered,
    )


def _running(about: About, plan: Plan) -> RunnerState | None:
    alive = (loop for loop in about.loops.values() if loop.alive)
    return next((loop for loop in alive if loop.participant == plan.spec.participant), None)


Wanted = list[tuple[Spec, Preset]]
_USUAL = Chosen(
    "", "", False, False, None, launch.Restart.ON_FAILURE.value, None, None, None, None, []
)


class NewFolderStarter:
    """Starts programs for the participants of a new folder."""

    def choices(self) -> Mapping[str, Any]:
        """The programs to choose from, those that are installed first; the first is the usual one.

        Raises:
            Refused: the person's settings cannot be read.
        """
        known = {name: each for name, each in all_presets().items() if name != ANY}
        return {
            "choices": tuple(installed_first(known)),
            "labels": missing(known),
            "bare": next(iter(installed(known)), None),
        }

    def preview(self, folder: str, programs: Mapping[str, str]) -> Preview:
        """What would be started in a folder that does not exist yet, by participant.

        Raises:
            Refused: there is no such program.
        """
        return _preview_of_new_folder(_chosen(folder, programs))

    def start(self, folder: str, programs: Mapping[str, str]) -> Outcome:
        """Start them.

        Raises:
            Refused: there is no such program.
        """
        return _start_in_new_folder(_chosen(folder, programs))

    def ran(self, folder: str) -> Sequence[str]:
        """The participants whose programs ran in a folder."""
        return [safe_id(spec.participant) for spec, _ in _ran(folder, folder)]

    def preview_same(self, before: str, folder: str) -> Preview:
        """What would be started in a folder that does not exist yet: what ran in another."""
        return _preview_of_new_folder(_ran(before, folder))

    def start_same(self, before: str, folder: str) -> Outcome:
        """Start what ran in another folder."""
        return _start_in_new_folder(_ran(before, folder))


NEW_FOLDER_STARTER = NewFolderStarter()


def _chosen(folder: str, programs: Mapping[str, str]) -> Wanted:
    known = all_presets()
    return [
        spec_of(folder, name, presets.named(program, known), _USUAL)
        for name, program in programs.items()
    ]


def _ran(before: str, folder: str) -> Wanted:
    """What this account's loops of one folder would be asked to do in another."""
    old, new, found = key_of(before), key_of(folder), []
    for loop in registry.runners(old):
        spec = launch.load_spec(place(old, loop.participant))
        if spec is None:
            continue
        workdir = new if spec.workdir == spec.folder else spec.workdir
        spec = replace(renewed(spec, loop), folder=new, workdir=workdir)
        try:
            found.append((spec, spec.resolved()))
        except PresetError:  # a preset of another version of acp: it is started by hand
            continue
    return found


def _preview_of_new_folder(wanted: Wanted) -> Preview:
    plans = [launch.plan(*each, ask_version=False, exists=False) for each in wanted]
    return preview_of(plans, ())


def _start_in_new_folder(wanted: Wanted) -> Outcome:
    return carry_out([launch.plan(*each) for each in wanted], again=False)
