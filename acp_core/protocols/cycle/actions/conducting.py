"""The orchestrator of a cycle that there is: started in the background, or followed in this terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.cycle import matters, state
from acp_core.protocols.cycle.actions import programs
from acp_core.protocols.cycle.actions.table import SCHEMA
from acp_core.protocols.cycle.actions.table_conducting import RUNNING
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.read import orchestrator_spec
from acp_core.protocols.cycle.read.orchestrator_spec import Spec
from acp_core.protocols.cycle.read.selected import (
    OpenProject,
    is_damaged,
    open_folder,
    open_project,
)
from acp_core.protocols.cycle.schema import AGENTS, EXTEND_ACT, RESUME_ACT, RUN_ACT, text
from acp_core.protocols.cycle.write.store import Store
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.command_line import say
from acp_core.protocols.kit.guard import check
from acp_core.protocols.kit.parser import say_object
from acp_core.protocols.kit.values import Values

_AGAIN = "Restart the orchestrator: it resumes and repeats nothing."
_FIRST = "Run the cycle with acp from now on."


def conducting(context: Context, now: datetime) -> Action:
    """Start an orchestrator, where none runs: with the programs of before, or ones to choose."""
    opened = open_project(context, now)
    shown, root = opened.selected, str(opened.root)
    before = orchestrator_spec.load(root, shown.id)
    known = programs.known()
    narrowed = {"program": {"form": False}, "command": {"form": False}}
    narrowed = narrowed if before else {"program": programs.narrowed(known)["program"]}

    def preview(values: Values) -> Preview:
        spec = _spec(opened, values, known)
        return _preview(spec, is_again=orchestrator_spec.load(root, spec.cycle) is not None)

    def perform(values: Values) -> Outcome:
        spec = _spec(opened, values, known)
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


def _preview(spec: Spec, is_again: bool) -> Preview:
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


def _spec(opened: OpenProject, values: Values, known: programs.Presets) -> Spec:
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
    spec = programs.spec_of(values, known, usual, before is not None)
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
    programs.join_words(values)
    if values.dry_run or not values.foreground:
        return None
    spec = _spec(open_folder(values.folder), values, programs.known())
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
