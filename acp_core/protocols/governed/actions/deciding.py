"""Blocks, objections, words and interrupted commands: what else a human decides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from acp_core.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.protocols.governed.act import Refused, decide, shown
from acp_core.protocols.governed.act.accept import reserved_changed
from acp_core.protocols.governed.act.journal import interrupted
from acp_core.protocols.governed.act.opened import Opened, look, refuse_agents
from acp_core.protocols.governed.act.writes import Write
from acp_core.protocols.governed.actions.doing import (
    BY,
    LINES,
    acting,
    comment,
    named,
    now,
    refusal,
    safe,
)
from acp_core.protocols.governed.schema import objects, text
from acp_core.protocols.governed.state import Move, format_time
from acp_core.protocols.governed.state.blocks import escalated


class Nothing(BaseModel):
    """Nothing is asked."""


def unblock(opened: Opened) -> Action | None:
    """Let a blocked run go on, None where it is not blocked or waits at a gate or a barrier."""
    on = text(opened.state, "blocked_on", 200)
    try:
        decide.unblocking(opened, "you", "", now())
    except (Refused, OSError):
        return None
    root = str(opened.root)
    turns = bool(objects(opened.state.get("active_turns")))
    fields = BY | {"comment": comment("How it was resolved", "Recorded in the ledger.")}
    if turns:
        about = "Give the turn up; the next step assigns another."
        fields |= {"drop_turn": (bool, Field(False, title="Give the turn up", description=about))}

    def plan(fresh: Opened, given: Any) -> tuple[Move, Sequence[Write]]:
        drop = getattr(given, "drop_turn", False)
        return decide.unblocking(fresh, given.by, given.comment, now(), drop_turn=drop)

    def perform(given: Any) -> str:
        drop = getattr(given, "drop_turn", False)
        state = decide.unblock(root, given.by, given.comment, now(), drop_turn=drop)
        return f"Unblocked: {state.get('phase')} is {state.get('status')}."

    return acting(
        opened,
        "unblock",
        "unblock",
        "Let the run go on",
        f"What blocked it ({on}) is resolved.",
        fields,
        plan,
        perform,
        told=lambda fresh, given: (f"Resolve {text(fresh.state, 'blocked_on', 200)}.", ()),
        defaults=named(),
    )


def escalate(opened: Opened) -> Action | None:
    """Stop the run, None where it is not active."""
    if opened.state.get("status") != "active":
        return None
    root = str(opened.root)
    fields = BY | {
        "reason": (str, Field(title="Reason", description="In a few words.", min_length=1)),
        "detail": comment("Detail", "More about it."),
    }

    def plan(fresh: Opened, given: Any) -> tuple[Move, Sequence[Write]]:
        at = format_time(now())
        return escalated(fresh.state, given.reason, given.detail, given.by, at), ()

    def perform(given: Any) -> str:
        state = decide.escalate(root, given.reason, given.detail, given.by, now())
        return f"Stopped: {text(state, 'blocked_on', 200)}."

    return acting(
        opened,
        "escalate",
        "escalate",
        "Stop the run",
        "Block the run until somebody has resolved the reason.",
        fields,
        plan,
        perform,
        told=lambda fresh, given: ("Stop the run until somebody lets it go on.", ()),
        words=lambda given: {"reason": given.reason},
        defaults=named(),
        risky=True,
    )


def mark_objection(opened: Opened) -> Action | None:
    """Say what became of an objection, None where none is open."""
    waiting = [each for each in opened.run.objections if each.open]
    if not waiting:
        return None
    root, by_id = str(opened.root), {each.id: each for each in waiting}
    ids: Any = Literal[tuple(by_id)]
    marks: Any = Literal[decide.MARKS]
    about = "; ".join(f"{o.id} ({o.severity}): {o.statement}" for o in waiting[:10])
    fields = BY | {
        "objection": (ids, Field(waiting[0].id, title="Objection", description=safe(about))),
        "status": (
            marks,
            Field("resolved_by_human", title="Becomes", description="What became of it."),
        ),
        "comment": comment("Comment", "How, or why; recorded in the ledger."),
    }

    def plan(fresh: Opened, given: Any) -> tuple[Move, Sequence[Write]]:
        id, status = given.objection, given.status
        return decide.marking(fresh, id, status, given.by, given.comment, now()), ()

    def perform(given: Any) -> str:
        id, status = given.objection, given.status
        decide.mark_objection(root, id, status, given.by, given.comment, now())
        return f"{id} is {status}."

    def told(fresh: Opened, given: Any) -> tuple[str, tuple[str, ...]]:
        stated = by_id[given.objection]
        return f"{stated.id} of {stated.raised_by} becomes {given.status}: {stated.statement}", ()

    return acting(
        opened,
        "objection",
        "mark_objection",
        "Settle an objection",
        "Say what became of an objection: acknowledged, resolved or escalated.",
        fields,
        plan,
        perform,
        told=told,
        defaults=named(),
    )


def talk(opened: Opened) -> Action:
    """Write into TALK.md."""
    root = str(opened.root)
    words = Field(title="Words", description="The next agents are shown them.", min_length=1,
                  json_schema_extra=LINES)  # fmt: skip

    def plan(fresh: Opened, given: Any) -> tuple[None, Sequence[Write]]:
        return None, [decide.talking(fresh, given.words, given.by, now())]

    def perform(given: Any) -> str:
        decide.talk(root, given.words, given.by, now())
        return "Written into TALK.md."

    return acting(
        opened,
        "talk",
        "talk",
        "Write into TALK.md",
        "Say something to the agents and humans of this run.",
        BY | {"words": (str, words)},
        plan,
        perform,
        told=lambda fresh, given: ("Add your words to TALK.md.", ()),
        defaults=named(),
    )


def recover(root: str) -> Action:
    """Finish what a killed command had begun."""

    def preview(given: Any) -> Preview:
        left = interrupted(Path(root))
        if left is None:
            return Preview("", refused="nothing was interrupted")
        told = f"Finish “{left.what}”: {left.done} of {left.total} files are written."
        return Preview(safe(told))

    def perform(given: Any) -> Outcome:
        try:
            became = decide.recover(root)
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, refusal(error))
        if became is None:
            return Outcome(OutcomeState.DONE, "Nothing was interrupted.")
        how = "Finished" if became.completed else f"Taken back ({became.reason})"
        return Outcome(OutcomeState.DONE, safe(f"{how}: {became.what}."))

    return Action(
        "recover",
        "Finish what was interrupted",
        "A command was killed while it wrote; finish it, or take it back.",
        Nothing,
        preview,
        perform,
    )


def take_files(opened: Opened) -> Action | None:
    """Take the run's own files as they are, although somebody but acp wrote them."""
    if not reserved_changed(opened):
        return None
    root = str(opened.root)

    def preview(given: Any) -> Preview:
        try:
            refuse_agents()
            names = reserved_changed(look(root))
        except (Refused, OSError) as error:
            return Preview("", refused=refusal(error))
        if not names:
            return Preview("", refused="nobody but acp wrote the run's files")
        changes = tuple(
            Change(safe(name), "replace", shown.since_sealed(opened.root, name)) for name in names
        )
        return Preview("Take these files with what others changed in them.", changes)

    def perform(given: Any) -> Outcome:
        try:
            decide.recover(root, forget=True)
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, refusal(error))
        return Outcome(OutcomeState.DONE, "The files are taken as they are.")

    return Action(
        "take_files",
        "Take the files as they are",
        "Somebody but acp wrote the run's own files, and you have looked at what changed.",
        Nothing,
        preview,
        perform,
        risky=True,
    )


def bring_back(opened: Opened) -> Action | None:
    """Put the state back as acp wrote it last, where somebody else changed it since."""
    try:
        decide.bringing_back(opened)
    except Refused:
        return None
    root = str(opened.root)

    def preview(given: Any) -> Preview:
        try:
            refuse_agents()
            fresh = look(root)
            changes = shown.changes(fresh, None, [decide.bringing_back(fresh)])
        except (Refused, OSError) as error:
            return Preview("", refused=refusal(error))
        return Preview("Put the state back as acp wrote it last.", changes)

    def perform(given: Any) -> Outcome:
        try:
            decide.bring_back(root)
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, refusal(error))
        return Outcome(OutcomeState.DONE, "The state is as acp wrote it last.")

    return Action(
        "bring_back",
        "Bring the state back",
        "Somebody but acp changed the run's state; undo that.",
        Nothing,
        preview,
        perform,
        risky=True,
    )
