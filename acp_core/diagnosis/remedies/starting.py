"""Actions that start loops: again, for the first time, with another program, for everybody."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

from pydantic import Field

from acp_core.agents import presets, registry
from acp_core.diagnosis.names import HAND_OVER, LAUNCH, LAUNCH_ALL, RELAUNCH
from acp_core.diagnosis.remedies.fields import About, model_of, one_of, refuse, who
from acp_core.files.text import clean_line, clean_name
from acp_core.loops import launch as launching
from acp_core.loops.launch import LaunchError, Plan
from acp_core.model import Action, Outcome, OutcomeState, Preview


def _planned(plan: Plan, what: str, *same: str) -> Preview:
    """What starting a loop would run; ``same`` is the command that starts it, too."""
    if plan.refused:
        return Preview("", refused=clean_line(plan.refused))
    spec = plan.spec
    program = " ".join(filter(None, (spec.name, spec.version, spec.model)))
    where = clean_line(spec.workdir, 4_096)
    prompt = " < <prompt>" if plan.stdin else ""
    runs = shlex.join(clean_line(word, 2_000) for word in plan.command)
    return Preview(
        f"{what} {clean_name(spec.participant, 200)} with {clean_line(program)}, in {where}.",
        command=tuple(clean_line(word, 4_096) for word in same),
        warnings=tuple(clean_line(warning) for warning in plan.warnings),
        notes=(f"It runs: {runs}{prompt}",),
    )


def _started(plan: Plan) -> Outcome:
    """Start it, and look whether it runs."""
    if plan.refused:
        return refuse(plan.refused)
    spec = plan.spec
    name = clean_name(spec.participant, 200)
    try:
        launching.restart(plan)
    except LaunchError as error:
        return refuse(str(error))
    state = registry.find(spec.folder, spec.participant)
    if state is None or not state.alive:
        return Outcome(
            OutcomeState.UNKNOWN, f"Not fixed: {name}'s loop ended at once; see its log."
        )
    return Outcome(OutcomeState.DONE, f"{name}'s loop runs (process {state.pid}).")


def relaunch(about: About) -> Action | None:
    names = [name for name in about.loops if about.programs.before(name)]
    if not names:
        return None

    def plan(answers: Any, ask: bool) -> Plan:
        spec, preset = about.programs.again(answers.participant)
        return launching.plan(spec, preset, again=True, ask_version=ask)

    def preview(answers: Any) -> Preview:
        same = ("acp", "launch", about.key, answers.participant, "--again")
        made = _planned(plan(answers, True), "Start again:", *same)
        loop = about.loops[answers.participant]
        if loop.alive and not made.refused:
            ends = f"its loop (process {loop.pid}) and its program are stopped before"
            return replace(made, warnings=(ends, *made.warnings))
        return made

    return Action(
        name=RELAUNCH,
        label="Start again",
        sentence="Start a participant's loop again, with the program that it had.",
        inputs=model_of(RELAUNCH, participant=who(names)),
        preview=preview,
        perform=lambda answers: _started(plan(answers, False)),
    )


def _program_fields(about: About, names: list[str]) -> dict[str, Any]:
    choices = about.programs.names()
    return {
        "participant": who(names, "Whose turns it takes; the id stays the same."),
        "program": one_of(
            choices, "Program", "A preset, or the same as another one's.", about.programs.default()
        ),
        "command": (
            str,
            Field("", title="Command", description="With `command` above: its words."),
        ),
        "model": (str, Field("", title="Model", description="Blank: the program's own choice.")),
    }


def _launcher(about: About, name: str, label: str, sentence: str, names: list[str]) -> Action:
    def plan(answers: Any, ask: bool) -> Plan | str:
        try:
            spec, preset = about.programs.chosen(
                answers.participant, answers.program, answers.command, answers.model
            )
        except presets.PresetError as error:
            return str(error)
        return launching.plan(spec, preset, again=True, ask_version=ask)

    def preview(answers: Any) -> Preview:
        found = plan(answers, True)
        if isinstance(found, str):
            return Preview("", refused=clean_line(found))
        same = ["acp", "act", about.key, name, "--participant", answers.participant]
        same += ["--program", answers.program]
        for option, value in (("--command", answers.command), ("--model", answers.model)):
            same += [option, value] if value.strip() else []
        return _planned(found, "Start", *same)

    def perform(answers: Any) -> Outcome:
        found = plan(answers, False)
        return refuse(found) if isinstance(found, str) else _started(found)

    return Action(
        name=name,
        label=label,
        sentence=sentence,
        inputs=model_of(name, **_program_fields(about, names)),
        preview=preview,
        perform=perform,
    )


def launch(about: About) -> Action | None:
    names = about.without()
    if not names:
        return None
    sentence = "Start a loop for a participant: it takes the turns with a program."
    return _launcher(about, LAUNCH, "Launch a participant", sentence, names)


def hand_over(about: About) -> Action | None:
    names = [name for name in about.agents if name in about.loops]
    if not names:
        return None
    sentence = "Let another program take a participant's turns, under the same id."
    return _launcher(about, HAND_OVER, "Hand the role to another program", sentence, names)


def launch_all(about: About) -> Action | None:
    names = about.without()
    if len(names) < 2:
        return None

    def plans(answers: Any, ask: bool) -> list[Plan]:
        found = []
        for name in names:
            spec, preset = about.programs.usual(name, answers.program)
            found.append(launching.plan(spec, preset, again=True, ask_version=ask))
        return found

    def preview(answers: Any) -> Preview:
        made = [_planned(plan, "Start") for plan in plans(answers, True)]
        refused = "; ".join(each.refused for each in made if each.refused)
        return Preview(
            " ".join(each.sentence for each in made),
            command=("acp", "act", about.key, LAUNCH_ALL, "--program", answers.program),
            warnings=tuple(dict.fromkeys(text for each in made for text in each.warnings)),
            notes=tuple(text for each in made for text in each.notes),
            refused=refused,
        )

    def perform(answers: Any) -> Outcome:
        outcomes = [_started(plan) for plan in plans(answers, False)]
        worst = next((o.state for o in outcomes if o.state is not OutcomeState.DONE), None)
        text = " ".join(outcome.sentence for outcome in outcomes)
        return Outcome(worst or OutcomeState.DONE, text)

    about_program = "For those who had none before; the others run with what they had."
    choices = [name for name in about.programs.names() if name != presets.ANY]
    field = one_of(choices, "Program", about_program, about.programs.default())
    return Action(
        name=LAUNCH_ALL,
        label="Launch everybody",
        sentence="Start a loop for every participant who has none.",
        inputs=model_of(LAUNCH_ALL, program=field),
        preview=preview,
        perform=perform,
    )
