"""Acts that start loops: chosen ones, again, with another program, for everybody."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from acp_core.agents import presets
from acp_core.agents.failures import FailureClass
from acp_core.agents.presets import ANY, Preset
from acp_core.agents.state import RunnerState
from acp_core.files.secrets import mask_command
from acp_core.loops import wording
from acp_core.loops.acts import table
from acp_core.loops.acts.about import About, one_of
from acp_core.loops.acts.options import Chosen, all_presets, spec_of
from acp_core.loops.acts.plans import Versions, carry_out, preview_of
from acp_core.loops.acts.programs import BEFORE, LIKE
from acp_core.loops.launch import Plan
from acp_core.loops.spec import Spec
from acp_core.model import Action, Outcome, Participant, Preview
from acp_core.model.action_spec import ActionSpec
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.kit.binding import Context, Narrowed, bound, words_of
from acp_core.protocols.kit.values import Values


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
