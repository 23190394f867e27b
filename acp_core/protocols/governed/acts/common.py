"""What the acts of a run have in common: the run, what they show, and who carries them out.

An act is previewed as its writes and done under the lock, or handed to the existing program where
that made the run.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypedDict, Unpack

from acp_core.files.transaction import Write
from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import ActionSpec
from acp_core.model.errors import Refused
from acp_core.protocols.governed.conduct import handing_over
from acp_core.protocols.governed.read import existing_program
from acp_core.protocols.governed.schema import APPROVE_GATE, Object, obj
from acp_core.protocols.governed.state import Move
from acp_core.protocols.governed.write import changes as differences
from acp_core.protocols.governed.write.opened import (
    Opened,
    permitted,
    read_unlocked,
    refuse_agents,
    who,
)
from acp_core.protocols.kit.binding import Context, Narrowed, bound
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe

Planned = tuple[Move | None, Sequence[Write]]

"""What an act writes: the run's next state and lines, and other files."""


class Done(NamedTuple):
    """How an act ended: a sentence, the run's state after it, and more for programs."""

    sentence: str
    state: Object | None = None
    data: Mapping[str, object] = {}


class Steps(NamedTuple):
    """How an act of a run is carried out; each may raise `Refused` and OSError.

    Attributes:
        plan: what it would write, of the run as it is then.
        describe: the sentence of its preview, and its warnings.
        perform: does it, under the lock.
        words: what the existing program is told so that it does it; nothing where it cannot.
        human: whether an agent at work is refused it.
        data: what its preview tells programs besides.
    """

    plan: Callable[[Opened, Values], Planned]
    describe: Callable[[Opened, Values], tuple[str, tuple[str, ...]]]
    perform: Callable[[Values], Done]
    words: Callable[[Opened, Values], list[str]] = lambda opened, values: []
    human: bool = True
    data: Callable[[Opened, Values], Mapping[str, object]] = lambda opened, values: {}


def open_run(context: Context) -> Opened:
    """The run that an act is bound to; read where nobody did.

    Raises:
        Refused: there is no run, its files cannot be read, or a command was interrupted.
    """
    return context if isinstance(context, Opened) else read_unlocked(context.key)


class Otherwise(TypedDict, total=False):
    """What of an act is otherwise now than in its description."""

    narrowed: Narrowed
    label: str
    sentence: str
    offered: bool


def bound_now(
    spec: ActionSpec,
    context: Context,
    preview: Callable[[Values], Preview],
    perform: Callable[[Values], Outcome],
    **otherwise: Unpack[Otherwise],
) -> Action:
    """An act as it can be done now: of a run, or of an initiative."""
    action = bound(
        spec, context, preview, perform,
        narrowed=decider(spec) | dict(otherwise.get("narrowed", {})),
        sentence=otherwise.get("sentence", ""), offered=otherwise.get("offered", True),
    )  # fmt: skip
    return replace(action, label=safe(otherwise.get("label") or spec.label))


def of_run(
    spec: ActionSpec, opened: Opened, steps: Steps, **otherwise: Unpack[Otherwise]
) -> Action:
    """An act of a run, as it can be done now.

    Args:
        spec: its description.
        opened: the run as it was looked at.
        steps: how it is carried out.
        otherwise: what is otherwise than in the description now.
    """
    root = opened.root
    act = _base(spec)

    def preview(values: Values) -> Preview:
        fresh = _fresh(root, steps, act, values)
        said, warnings = steps.describe(fresh, values)
        words = words_for(fresh, values, steps)
        if words:
            return handed_preview(spec, fresh.key, said, words, (*warnings, *_lost(values)))
        move, writes = steps.plan(fresh, values)
        more = run_summary(move.state) if move else {}
        data = facts(spec, fresh.key, dry_run=True, **(more | dict(steps.data(fresh, values))))
        changes = differences.changes(fresh, move, writes)
        return Preview(safe(said), changes, (), tuple(map(safe, warnings)), data=data)

    def perform(values: Values) -> Outcome:
        fresh = _fresh(root, steps, act, values)
        words = words_for(fresh, values, steps)
        if words:
            return hand_over(spec, root, words)
        sentence, state, data = steps.perform(values)
        return done(spec, fresh.key, sentence, **(run_summary(state) if state else {}), **data)

    return bound_now(spec, opened, preview, perform, **otherwise)


def _fresh(root: Any, steps: Steps, act: str, values: Values) -> Opened:
    """The run as it is now.

    Raises:
        Refused: an agent at work may not do the act, or something stands in its way.
    """
    if steps.human:
        refuse_agents()
    role, excluded = getattr(values, "role", "") or "", getattr(values, "exclude", ())
    return permitted(read_unlocked(root, act), act, role=role, excluded=excluded)


def _base(spec: ActionSpec) -> str:
    """The name by which obstacles know an act: of a narrower one that of the wider."""
    return APPROVE_GATE if spec.name.startswith("approve_") else spec.name


def words_for(opened: Opened, values: Values, steps: Steps) -> list[str]:
    """What the existing program is told, where it made the run; nothing where acp acts itself."""
    if existing_program.program(opened.run) is None:
        return []
    return steps.words(opened, values)


def _lost(values: Values) -> tuple[str, ...]:
    if getattr(values, "comment", ""):
        return (f"{existing_program.NAME} stores no comments: your comment will be lost",)
    return ()


# --- what is done by the existing program ----------------------------------------------------


def handed_preview(
    spec: ActionSpec, place: str, sentence: str, words: Sequence[str], warnings: Sequence[str] = ()
) -> Preview:
    """What is shown of an act that the existing program does."""
    command = (existing_program.NAME, *words)
    return Preview(
        safe(sentence),
        (),
        command,
        tuple(map(safe, warnings)),
        notes=(safe(f"runs: {shlex.join(command)}"),),
        data=facts(spec, place, dry_run=True, runs=list(command)),
    )


def hand_over(spec: ActionSpec, root: Any, words: Sequence[str]) -> Outcome:
    """Have the existing program do an act."""
    ran = handing_over.hand_over(root, words)
    said = safe(f"{existing_program.NAME}: {ran.output}")
    if not ran.ok:
        return Outcome(OutcomeState.REFUSED, said)
    return done(spec, str(root), said, ran=[existing_program.NAME, *words], said=ran.output)


# --- what programs read ----------------------------------------------------------------------


def facts(spec: ActionSpec, place: str, **more: object) -> dict[str, object]:
    """What JSON says of an act besides its sentence."""
    return {"verb": spec.command.split()[-1], "folder": place, **more}


def done(spec: ActionSpec, place: str, sentence: str, **more: object) -> Outcome:
    """An act that was done."""
    preview = Preview(safe(sentence), data=facts(spec, place, **more))
    return Outcome(OutcomeState.DONE, preview.sentence, done=preview)


def run_summary(state: Object) -> dict[str, object]:
    """Where a run stands, for JSON."""
    waits = obj(state, "pending_phase_transition") or obj(state, "pending_run_completion")
    return {
        "run_id": state.get("run_id"),
        "status": state.get("status"),
        "phase": state.get("phase"),
        "gate": waits.get("gate"),
        "blocked_on": state.get("blocked_on"),
        "active_turns": list(obj(state, "active_turns")),
    }


def decider(spec: ActionSpec) -> dict[str, dict[str, object]]:
    """Who decides, in a form: the user, unless somebody else is named."""
    if not any(each.name == "by" and each.form for each in spec.fields):
        return {}
    try:
        return {"by": {"required": True, "default": who()}}
    except Refused:
        return {"by": {"required": True}}
