"""What the acts of an initiative have in common: previewed as their writes, done under the locks.

In the existing program's layout they are handed to that program: it alone knows how its barriers and
gates are written. Where it is not on the PATH, acp only reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Unpack

from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import ActionSpec
from acp_core.model.errors import Refused
from acp_core.model.format import sentence_case
from acp_core.protocols.governed.acts.common import (
    Otherwise,
    bound_now,
    facts,
    hand_over,
    handed_preview,
)
from acp_core.protocols.governed.read import existing_program, own_writes
from acp_core.protocols.governed.read.initiative import OWN, Initiative, read_initiative
from acp_core.protocols.governed.write import changes as written
from acp_core.protocols.governed.write.initiative_decide import Done
from acp_core.protocols.governed.write.initiative_opened import (
    Opened,
    Prepared,
    open_initiative,
    permitted,
)
from acp_core.protocols.governed.write.opened import refuse_agents
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe


class Whole(NamedTuple):
    """An initiative as it stands when its acts are bound to it.

    ``opened`` is None where it cannot be acted on; ``refused`` then says why.
    """

    root: Path
    initiative: Initiative
    opened: Opened | None
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


class Steps(NamedTuple):
    """How an act is carried out: ``prepare`` makes its writes, ``perform`` does it under the locks.

    Both may raise `Refused` and OSError. ``crosses``: where it fails nothing of it was done.
    """

    prepare: Callable[[Opened, Values], Prepared]
    perform: Callable[[Values], Done]
    human: bool = True
    crosses: bool = False


def of_initiative(
    spec: ActionSpec, context: Whole, steps: Steps, **otherwise: Unpack[Otherwise]
) -> Action:
    """An act of an initiative, as it can be done now.

    Args:
        spec: its description.
        context: the initiative.
        steps: how it is carried out.
        otherwise: what is otherwise than in the description now.
    """
    root, said = context.root, otherwise.get("sentence") or spec.sentence

    def preview(values: Values) -> Preview:
        if steps.human:
            refuse_agents()
        left = own_writes.interrupted(root, own_writes.COORDINATOR_HOME)
        if left is not None:
            data = facts(spec, context.key, dry_run=True, would=[f"finish {left.what}"])
            return Preview(safe(f"First, finish the interrupted write: {left.what}. Then: {said}"),
                           data=data)  # fmt: skip
        return preview_of(spec, root, steps.prepare(permitted(root, spec.name), values))

    def perform(values: Values) -> Outcome:
        if steps.human:
            refuse_agents()
        return ended(spec, root, steps.perform(values), crosses=steps.crosses)

    return bound_now(spec, context, preview, perform, **otherwise)


def preview_of(spec: ActionSpec, root: Path, prepared: Prepared) -> Preview:
    """What an act would do."""
    changes = written.of_writes(root, prepared.writes)
    data = facts(spec, str(root), dry_run=True, would=prepared.preview)
    warnings = tuple(map(safe, prepared.warnings))
    return Preview(_sentence(prepared.preview), changes, (), warnings, data=data)


def ended(spec: ActionSpec, root: Path, done: Done, *, crosses: bool = False) -> Outcome:
    """How an act ended; ``crosses``: where it fails nothing of it was done."""
    failed = tuple(map(safe, done.failed))
    messages = (*done.messages, *(f"failed: {each}" for each in done.failed), *done.warnings)
    state = OutcomeState.REFUSED if failed and crosses else OutcomeState.DONE
    initiative = read_initiative(root).state.value
    summary = {key: initiative.get(key) for key in ("status", "barriers", "workstreams")}
    data = facts(spec, str(root), steps=done.messages, failed=done.failed, warnings=done.warnings,
                 **summary)  # fmt: skip
    preview = Preview(_sentence(messages), data=data)
    return Outcome(state, preview.sentence, done=preview, failed=failed)


def _sentence(messages: tuple[str, ...]) -> str:
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
