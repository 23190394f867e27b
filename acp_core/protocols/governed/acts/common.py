"""What the acts of runs and initiatives have in common, and which of them can be done now.

An act is previewed as its writes and done under the locks, or handed to the existing program where
that made the run or wrote the initiative: it alone knows how its barriers and gates are written.
Where it is not on the PATH, acp only reads such an initiative.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

from acp_core.agents import program
from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import ActionSpec
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.format import sentence_case
from acp_core.model.text import clean_line
from acp_core.protocols.governed.acts import table
from acp_core.protocols.governed.acts.table import RECOVERY, TAKING_FILES
from acp_core.protocols.governed.read import existing_program, own_writes
from acp_core.protocols.governed.read.existing_program import NAME
from acp_core.protocols.governed.read.initiative import OWN, Initiative, read_initiative
from acp_core.protocols.governed.schema import APPROVE_GATE, Object, obj
from acp_core.protocols.governed.write import opened as write_opened
from acp_core.protocols.governed.write.hooks import carry_out
from acp_core.protocols.governed.write.initiative_decide import StepOutcome, carry_out_in_initiative
from acp_core.protocols.governed.write.initiative_opened import (
    InitiativePlan,
    OpenedInitiative,
    open_initiative,
    permitted_initiative,
)
from acp_core.protocols.governed.write.opened import (
    Opened,
    RunPlan,
    permitted,
    read_unlocked,
    refuse_agents,
    who,
)
from acp_core.protocols.kit.binding import Context, Location, Narrowed, bind_all, bind_named, bound
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe

if TYPE_CHECKING:
    from acp_core.model.action import Action


class Done(NamedTuple):
    """How an act ended: a sentence, the run's state after it, and more for programs."""

    sentence: str
    state: Object | None = None
    data: Mapping[str, object] = {}


def open_run(context: Context) -> Opened:
    """The run that an act is bound to; read where nobody did.

    Raises:
        Refused: there is no run, its files cannot be read, or a command was interrupted.
    """
    return context if isinstance(context, Opened) else read_unlocked(context.key)


def is_possible(plan: Callable[[], object]) -> bool:
    """Whether a plan can be made now."""
    try:
        plan()
    except (Refused, OSError):
        return False
    return True


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
    spec: ActionSpec,
    opened: Opened,
    plan: Callable[[Opened, Values], RunPlan],
    perform: Callable[[Values], Done] | None = None,
    *,
    human: bool = True,
    **otherwise: Unpack[Otherwise],
) -> Action:
    """An act of a run, as it can be done now.

    Args:
        spec: its description.
        opened: the run as it was looked at.
        plan: what it does, of the run as it is then.
        perform: does it, where more is to be done than is planned.
        human: whether an agent at work is refused it.
        otherwise: what is otherwise than in the description now.
    """
    root, act = opened.root, _base(spec)

    def looked_at(values: Values) -> tuple[Opened, RunPlan]:
        if human:
            refuse_agents()
        fresh = permitted(read_unlocked(root, act), act, **_narrower(values))
        return fresh, plan(fresh, values)

    def preview(values: Values) -> Preview:
        fresh, made = looked_at(values)
        if made.words:
            warnings = (*made.warnings, *_lost(values))
            return handed_preview(spec, fresh.key, made.sentence, made.words, warnings)
        if made.refusal:
            raise made.refusal
        more = run_summary(made.move.state) if made.move else {}
        data = facts(spec, fresh.key, dry_run=True, **(more | dict(made.before)))
        changes = write_opened.changes_of_move(fresh, made.move, made.writes)
        return Preview(safe(made.sentence), changes, (), tuple(map(safe, made.warnings)), data=data)

    def carried_out(values: Values) -> Done:
        made = carry_out(
            root, act, lambda held: plan(held, values), human=human, **_narrower(values)
        )
        return Done(made.done, made.move.state if made.move else None, made.after)

    def performed(values: Values) -> Outcome:
        if existing_program.program(opened.run) is not None:
            _, made = looked_at(values)
            if made.words:
                return hand_over(spec, root, made.words)
        sentence, state, data = (perform or carried_out)(values)
        return done(spec, opened.key, sentence, **(run_summary(state) if state else {}), **data)

    return bound_now(spec, opened, preview, performed, **otherwise)


def _narrower(values: Values) -> dict[str, Any]:
    """Whose turn it is about, and what a human takes as it is: obstacles depend on both."""
    role, excluded = getattr(values, "role", "") or "", getattr(values, "exclude", ())
    return {"role": role, "excluded": excluded}


def _base(spec: ActionSpec) -> str:
    """The name by which obstacles know an act: of a narrower one that of the wider."""
    return APPROVE_GATE if spec.name.startswith("approve_") else spec.name


def _lost(values: Values) -> tuple[str, ...]:
    if getattr(values, "comment", ""):
        return (f"{existing_program.NAME} stores no comments: your comment will be lost",)
    return ()


# --- what is done by the existing program ----------------------------------------------------

EXISTING_PROGRAM_PATIENCE = 600.0  # seconds that the program may take


class Ran(NamedTuple):
    """How the program ended, and the last thing that it said."""

    code: int
    output: str

    @property
    def ok(self) -> bool:
        """Whether it did what it was asked."""
        return self.code == 0


def run_existing_program(root: Path, arguments: Sequence[str]) -> Ran:
    """Run the program in the folder ``root``. Never raises: what went wrong is said."""
    found = shutil.which(NAME)
    if found is None:
        return Ran(127, f"{NAME} is no longer installed")
    try:
        completed = subprocess.run(
            [found, *arguments],
            cwd=root,
            env=program.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=EXISTING_PROGRAM_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ran(
            124, f"{NAME} took longer than {EXISTING_PROGRAM_PATIENCE:.0f} seconds and was ended"
        )
    except (OSError, ValueError) as error:
        return Ran(126, clean_line(f"{NAME} cannot be run: {error}", 300))
    printed = (
        completed.stdout if completed.returncode == 0 else completed.stderr or completed.stdout
    )
    lines = [line for line in printed.decode("utf-8", "replace").splitlines() if line.strip()]
    output = clean_line(lines[-1].strip(), 300) if lines else ""
    return Ran(completed.returncode, output or f"{NAME} ended with code {completed.returncode}")


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
    ran = run_existing_program(root, words)
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


# --- the acts of an initiative: previewed as their writes, done under the locks


class Whole(NamedTuple):
    """An initiative as it stands when its acts are bound to it.

    ``opened`` is None where it cannot be acted on; ``refused`` then says why.
    """

    root: Path
    initiative: Initiative
    opened: OpenedInitiative | None
    refused: str

    @property
    def key(self) -> str:
        """The initiative's folder."""
        return str(self.root)

    @property
    def its_own(self) -> bool:
        """Whether acp acts here, and not the existing program."""
        return self.initiative.layout == OWN


def open_whole(root: Path) -> Whole:
    """The initiative in ``root`` with what can be known of it now."""
    initiative = read_initiative(root)
    try:
        return Whole(root, initiative, open_initiative(root), "")
    except (Refused, OSError) as error:
        return Whole(root, initiative, None, str(error))


def whole(context: Context) -> Whole:
    """The initiative that an act is bound to; read where nobody did."""
    return context if isinstance(context, Whole) else open_whole(Path(context.key))


def of_initiative(
    spec: ActionSpec,
    context: Whole,
    plan: Callable[[OpenedInitiative, Values], InitiativePlan],
    *,
    human: bool = True,
    crosses: bool = False,
    whole_or_nothing: bool = False,
    **otherwise: Unpack[Otherwise],
) -> Action:
    """An act of an initiative, as it can be done now.

    Args:
        spec: its description.
        context: the initiative.
        plan: what it does, of the initiative as it is then.
        human: whether an agent at work is refused it.
        crosses: the workstreams are to cross the barrier by it: else it has failed.
        whole_or_nothing: where it fails nothing of it was done: it counts as refused.
        otherwise: what is otherwise than in the description now.
    """
    root, said = context.root, otherwise.get("sentence") or spec.sentence

    def preview(values: Values) -> Preview:
        if human:
            refuse_agents()
        left = own_writes.interrupted(root, own_writes.COORDINATOR_HOME)
        if left is not None:
            data = facts(spec, context.key, dry_run=True, would=[f"finish {left.what}"])
            return Preview(safe(f"First, finish the interrupted write: {left.what}. Then: {said}"),
                           data=data)  # fmt: skip
        return preview_of(spec, root, plan(permitted_initiative(root, spec.name), values))

    def perform(values: Values) -> Outcome:
        if human:
            refuse_agents()
        outcome = carry_out_in_initiative(
            root, spec.name, lambda held: plan(held, values), utc_now(), crosses=crosses
        )
        return ended(spec, root, outcome, whole_or_nothing=whole_or_nothing)

    return bound_now(spec, context, preview, perform, **otherwise)


def preview_of(spec: ActionSpec, root: Path, prepared: InitiativePlan) -> Preview:
    """What an act would do."""
    changes = write_opened.changes_of_writes(root, prepared.writes)
    data = facts(spec, str(root), dry_run=True, would=prepared.preview)
    warnings = tuple(map(safe, prepared.warnings))
    return Preview(_joined(prepared.preview), changes, (), warnings, data=data)


def ended(
    spec: ActionSpec, root: Path, done: StepOutcome, *, whole_or_nothing: bool = False
) -> Outcome:
    """How an act ended; ``whole_or_nothing``: where it fails nothing of it was done."""
    failed = tuple(map(safe, done.failed))
    messages = (*done.messages, *(f"failed: {each}" for each in done.failed), *done.warnings)
    state = OutcomeState.REFUSED if failed and whole_or_nothing else OutcomeState.DONE
    initiative = read_initiative(root).state.value
    summary = {key: initiative.get(key) for key in ("status", "barriers", "workstreams")}
    data = facts(spec, str(root), steps=done.messages, failed=done.failed, warnings=done.warnings,
                 **summary)  # fmt: skip
    preview = Preview(_joined(messages), data=data)
    return Outcome(state, preview.sentence, done=preview, failed=failed)


def _joined(messages: tuple[str, ...]) -> str:
    said = "; ".join(messages)
    return safe(f"{sentence_case(said)}.")


# --- what the existing program does ----------------------------------------------------------


def handed(
    spec: ActionSpec, context: Whole, words: tuple[str, ...], *, asked: bool = True
) -> Action:
    """An act of an initiative in the existing program's layout.

    Args:
        spec: its description.
        context: the initiative.
        words: what that program is told.
        asked: whether there is something to be done.

    Raises:
        Refused: that program is not there, or the initiative cannot be read.
    """
    initiative = context.initiative
    if not existing_program.is_there() or initiative.state.reason:
        raise Refused(context.refused)

    def preview(values: Values) -> Preview:
        refuse_agents()
        return handed_preview(spec, context.key, spec.sentence, words)

    def perform(values: Values) -> Outcome:
        refuse_agents()
        return hand_over(spec, context.root, words)

    fields = {each.name: {"form": False} for each in spec.fields}
    offered = asked and initiative.status != "completed"
    return bound(spec, context, preview, perform, narrowed=fields, offered=offered)


# --- what can be done now


def run_actions(folder: str, now: datetime) -> Sequence[Action]:
    """What a human can do in a run now, most useful first.

    Args:
        folder: its repository.
        now: the time.
    """
    context: Context
    try:
        context = read_unlocked(folder)
    except (Refused, OSError):  # all that may be left is to finish what was interrupted, or drop it
        return bind_all((RECOVERY, TAKING_FILES), Location(folder), now)
    return bind_all(table.OF_RUN, context, now)


def initiative_actions(folder: str, now: datetime) -> Sequence[Action]:
    """What a human can do in an initiative now, most useful first.

    Args:
        folder: the initiative.
        now: the time.
    """
    return bind_all(table.OF_INITIATIVE, open_whole(Path(folder)), now)


def run_action(folder: str, name: str, now: datetime) -> Action | None:
    """One act of a run by its name, new or old, without the others; None where there is none.

    Raises:
        Refused: it cannot be done now.
        OSError: the run cannot be read.
    """
    return bind_named(table.OF_RUN, name, Location(folder), now)


def initiative_action(folder: str, name: str, now: datetime) -> Action | None:
    """One act of an initiative by its name; see `run_action`."""
    return bind_named(table.OF_INITIATIVE, name, Location(folder), now)
