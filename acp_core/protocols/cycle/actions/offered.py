"""What a person can do to a cycle, described: forms and commands are made of it.

Loaded only when needed: the descriptions are pydantic models. Source: development cycle
specification, "Escalation Path". Whatever an action writes is only requested until the
orchestrator has picked it up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from acp_core.agents import presets
from acp_core.agents.presets import PresetError
from acp_core.files.text import clean_line
from acp_core.model import Action, Change, Outcome, OutcomeState, Preview
from acp_core.person.settings import load as load_settings
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.actions import perform as doing
from acp_core.protocols.cycle.actions import select
from acp_core.protocols.cycle.actions.init import create, program_fields, spec_of
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.conduct import spec as specs
from acp_core.protocols.cycle.conduct.spec import Spec
from acp_core.protocols.cycle.schema import AGENTS, Cycle, Object
from acp_core.protocols.cycle.view.panels import options
from acp_core.protocols.cycle.write import Refused, changes

__all__ = ["actions", "create"]

LINES: dict[str, Any] = {"format": "multiline"}
Fields = dict[str, tuple[Any, Any]]
_SHOWN = 300


def actions(
    cycle: Cycle, root: Path, now: datetime, others: Sequence[Cycle] = ()
) -> Sequence[Action]:
    """What a person can do now, most useful first.

    Names: ``decide``, ``resolve``, ``conduct``, ``resume``, ``feedback``, ``extend``, ``pause``,
    ``accept``, ``rerun``, ``limit``, ``stop``, ``show``; for a state that cannot be read ``rebuild``.

    Args:
        cycle: the cycle that is shown.
        root: the project's folder.
        now: as of when.
        others: the other cycles of the project.
    """
    show = select.show(cycle, root, others)
    if cycle.record.problem or not isinstance(cycle.value.get("agents"), dict):
        return tuple(filter(None, (_rebuild(cycle, root), show)))
    waiting = state.decisions(cycle)
    status, busy = cycle.status, bool(state.running(cycle))
    found = [
        _decide(cycle, root, waiting),
        _resolve(cycle, root),
        _conduct(cycle, root) if status == "running" else None,
        _resume(cycle, root) if status in ("paused", "failed", "created") and not waiting else None,
        _feedback(cycle, root) if status in ("created", "running", "paused") else None,
        _extend(cycle, root) if not waiting and not busy and status in _EXTENDED else None,
        _pause(cycle, root) if status == "running" else None,
        _accept(cycle, root) if _acceptable(cycle) and not waiting and not busy else None,
        _rerun(cycle, root) if status in ("running", "paused") else None,
        _limit(cycle, root),
        _stop(cycle, root) if status in ("created", "running", "paused") else None,
        show,
    ]
    return [each for each in found if each is not None]


_EXTENDED = ("completed", "failed", "running", "paused")


def _action(
    cycle: Cycle,
    root: Path,
    name: str,
    label: str,
    sentence: str,
    fields: Fields,
    edit: Callable[[Object, datetime, Any], None],
    *,
    risky: bool = False,
) -> Action:
    """An action that changes the state."""
    id = cycle.id

    def bound(answers: Any) -> doing.Edit:
        return lambda held, now: edit(held, now, answers)

    def preview(answers: Any) -> Preview:
        return doing.preview(root, id, bound(answers), sentence)

    def perform(answers: Any) -> Outcome:
        return doing.outcome(root, id, bound(answers))

    model: type[BaseModel] = create_model(name.capitalize(), **fields)  # type: ignore[call-overload]
    return Action(name, label, sentence, model, preview, perform, risky=risky)


def _ids(entries: Sequence[Object]) -> tuple[str, ...]:
    found = dict.fromkeys(schema.text(each.get("id")) for each in entries)
    return tuple(each for each in found if each)


def _decide(cycle: Cycle, root: Path, waiting: list[Object]) -> Action | None:
    ids = _ids(waiting)
    if not ids:
        return None
    told = " · ".join(_offer(each) for each in waiting)
    first = schema.text(waiting[0].get("id"))
    fields: Fields = {
        "decision": (Literal[ids], Field(first, title="Decision")),
        "choice": (
            str,
            Field(min_length=1, title="Option's number, or words", description=clean_line(told)),
        ),
        "rationale": (str, Field("", title="Why", description="Kept in the decision's record.")),
        "impact": (str, Field("", title="What it affects")),
    }
    said = clean_line(schema.text(waiting[0].get("description")), _SHOWN)
    sentence = f"Decide {clean_line(first)}: {said}"

    def edit(held: Object, now: datetime, given: Any) -> None:
        changes.decide(held, now, given.decision, given.choice, given.rationale, given.impact)

    return _action(cycle, root, "decide", "Decide", sentence, fields, edit)


def _offer(decision: Object) -> str:
    numbered = "  ".join(f"{n}. {each}" for n, each in enumerate(options(decision), 1))
    return f"{schema.text(decision.get('id'))}: {numbered or 'in words'}"


def _resolve(cycle: Cycle, root: Path) -> Action | None:
    ids = _ids(state.blockers(cycle))
    if not ids:
        return None
    told = " · ".join(
        f"{schema.text(each.get('id'))}: {schema.text(each.get('description'))}"
        for each in state.blockers(cycle)
    )
    fields: Fields = {
        "blocker": (Literal[ids], Field(ids[0], title="Blocker", description=clean_line(told))),
        "resolution": (
            str,
            Field(min_length=1, title="How it is resolved", json_schema_extra=LINES),
        ),
        "workaround": (bool, Field(False, title="Only worked around")),
    }

    def edit(held: Object, now: datetime, given: Any) -> None:
        changes.resolve(held, now, given.blocker, given.resolution, given.workaround)

    sentence = "Say how a blocker is gone; whoever reported it is told."
    return _action(cycle, root, "resolve", "Resolve a blocker", sentence, fields, edit)


def _feedback(cycle: Cycle, root: Path) -> Action:
    fields: Fields = {
        "agent": (Literal[AGENTS], Field("cd", title="Agent")),
        "text": (str, Field(min_length=1, title="What it is to know", json_schema_extra=LINES)),
        "kind": (Literal[changes.KINDS], Field("clarification", title="Kind")),
    }

    def edit(held: Object, now: datetime, given: Any) -> None:
        changes.feedback(held, now, given.agent, given.text, given.kind)

    sentence = "Tell an agent something: it is told it at the beginning of its next run."
    return _action(cycle, root, "feedback", "Feedback to an agent", sentence, fields, edit)


def _extend(cycle: Cycle, root: Path) -> Action:
    fields: Fields = {
        "text": (str, Field(min_length=1, title="What is to be added", json_schema_extra=LINES)),
        "limit": (int | None, Field(None, title="Iterations in all, at most", ge=1)),
    }

    def edit(held: Object, now: datetime, given: Any) -> None:
        changes.extend(held, now, given.text, given.limit)

    sentence = f"Begin iteration {cycle.iteration + 1} with something more to do."
    return _action(cycle, root, "extend", "Extend", sentence, fields, edit)


def _resume(cycle: Cycle, root: Path) -> Action:
    sentence = "Let it go on; an agent that failed begins anew."
    return _action(
        cycle, root, "resume", "Resume", sentence, {}, lambda s, n, _: changes.resume(s, n)
    )


def _pause(cycle: Cycle, root: Path) -> Action:
    sentence = "Have it wait: who is at work ends its run, and nobody else begins."
    return _action(cycle, root, "pause", "Pause", sentence, {}, lambda s, n, _: changes.pause(s, n))


def _stop(cycle: Cycle, root: Path) -> Action:
    fields: Fields = {"reason": (str, Field("", title="Why"))}

    def edit(held: Object, now: datetime, given: Any) -> None:
        changes.stop(held, now, given.reason)

    sentence = (
        "End it as failed: the run that is at work is lost. What is done stays, to be resumed."
    )
    return _action(cycle, root, "stop", "Stop", sentence, fields, edit, risky=True)


def _acceptable(cycle: Cycle) -> bool:
    """Something was done, and its tests do not show that it is good."""
    if not cycle.iteration or cycle.status not in ("running", "paused", "completed"):
        return False
    found = state.tests(cycle)
    good = found.proven and not found.failed and state.verdict(cycle) != state.UNPROVEN
    return not good and not state.accepted(cycle)


def _accept(cycle: Cycle, root: Path) -> Action:
    fields: Fields = {
        "reason": (str, Field("", title="Why", description="Kept in the decision's record."))
    }

    def edit(held: Object, now: datetime, given: Any) -> None:
        changes.accept(held, now, given.reason)

    sentence = f"Take it as it is ({state.tests(cycle)}): it is completed, what tests showed stays."
    return _action(cycle, root, "accept", "Accept as it is", sentence, fields, edit)


def _rerun(cycle: Cycle, root: Path) -> Action:
    fields: Fields = {
        "agent": (Literal[AGENTS], Field(state.current(cycle), title="Agent")),
        "reason": (str, Field("", title="What to do otherwise", json_schema_extra=LINES)),
    }

    def edit(held: Object, now: datetime, given: Any) -> None:
        changes.rerun(held, now, given.agent, given.reason)

    sentence = "Have an agent, and those that depend on it, do their work again."
    return _action(cycle, root, "rerun", "Run an agent again", sentence, fields, edit)


def _limit(cycle: Cycle, root: Path) -> Action:
    held = schema.count(cycle.value.get("max_iterations")) or cycle.iteration
    fields: Fields = {
        "iterations": (
            int,
            Field(min(held + 1, changes.LIMIT), title="Iterations", ge=1, le=changes.LIMIT),
        )
    }

    def edit(state: Object, now: datetime, given: Any) -> None:
        changes.raise_limit(state, now, given.iterations)

    sentence = f"Allow another number of iterations than {held}."
    return _action(cycle, root, "limit", "Change the limit", sentence, fields, edit)


def _conduct(cycle: Cycle, root: Path) -> Action | None:
    """Start an orchestrator, where none runs: with the programs of before, or ones to choose."""
    if process.running(str(root)) is not None:
        return None
    kept = specs.load(str(root), cycle.id)
    known = {} if kept else presets.load(load_settings().presets)
    fields = {} if kept else program_fields(known)
    again = "again: it goes on where it was, and repeats nothing"
    sentence = f"Start the orchestrator {again}." if kept else "Conduct it with acp from here on."
    command = ("acp", "cycle", "run", "--folder", clean_line(str(root)), "--cycle", cycle.id)

    def wanted(given: Any) -> Spec:
        spec = kept or spec_of(root, cycle.id, given, known)
        process.check(spec)
        return spec

    def preview(given: Any) -> Preview:
        try:
            spec = wanted(given)
        except (Refused, OSError) as error:
            return Preview("", refused=doing.reason_of(error))
        except PresetError as error:
            return Preview("", refused=clean_line(str(error)))
        programs = ", ".join(f"{name} {spec.preset(name)[0].name}" for name in AGENTS)
        notes = (f"runs {clean_line(programs)}",)
        if kept:
            return Preview(sentence, command=command, notes=notes)
        told = "end another program's orchestrator first: two would undo one another"
        return Preview(sentence, warnings=(told,), notes=notes)

    def perform(given: Any) -> Outcome:
        try:
            started = process.start(wanted(given))
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, doing.reason_of(error))
        except PresetError as error:
            return Outcome(OutcomeState.REFUSED, clean_line(str(error)))
        return Outcome(OutcomeState.DONE, f"The orchestrator runs as process {started.pid}.")

    model: type[BaseModel] = create_model("Conduct", **fields)
    return Action("conduct", "Start the orchestrator", sentence, model, preview, perform)


def _rebuild(cycle: Cycle, root: Path) -> Action:
    """Make a state that cannot be read anew from the agents' documents."""
    id = cycle.id
    sentence = "Make the state anew from the agents' documents; it is paused then."

    def preview(_: Any) -> Preview:
        try:
            store, before, after = doing.rebuilt(root, id)
        except (Refused, OSError) as error:
            return Preview("", refused=doing.reason_of(error))
        path = clean_line(str(store.path))
        return Preview(sentence, (Change(path, "replace", doing.difference(before, after)),))

    def perform(_: Any) -> Outcome:
        try:
            doing.rebuild(root, id)
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, doing.reason_of(error))
        return Outcome(
            OutcomeState.DONE, "Rebuilt, and paused; what stood there is kept beside it."
        )

    model: type[BaseModel] = create_model("Rebuild")
    return Action("rebuild", "Rebuild the state", sentence, model, preview, perform)
