"""Blocks, objections and words: what else a human decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from acp_core.files.transaction import Write
from acp_core.model.action import Action
from acp_core.protocols.governed.actions.build import (
    BY,
    LINES,
    Fields,
    acting,
    comment,
    named,
    now,
    safe,
)
from acp_core.protocols.governed.schema import objects
from acp_core.protocols.governed.state import Move, format_time
from acp_core.protocols.governed.state.blocks import escalated
from acp_core.protocols.governed.view.wording import blocked_by
from acp_core.protocols.governed.write import Refused, decide
from acp_core.protocols.governed.write.opened import Opened


def unblock(opened: Opened) -> Action | None:
    """Let a blocked run go on, None where it is not blocked or waits at a gate or a barrier."""
    try:
        decide.unblocking(opened, "you", "", now())
    except (Refused, OSError):
        return None
    root = str(opened.root)
    turns = bool(objects(opened.state.get("active_turns")))
    fields: Fields = {"comment": comment("How it was resolved", "Recorded in the ledger.")} | BY
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
        f"What blocked it is settled: {blocked_by(opened.state)}.",
        fields,
        plan,
        perform,
        told=lambda fresh, given: (f"You say that this is settled: {blocked_by(fresh.state)}.", ()),
        defaults=named(),
    )


def escalate(opened: Opened) -> Action | None:
    """Stop the run, None where it is not active."""
    if opened.state.get("status") != "active":
        return None
    root = str(opened.root)
    fields: Fields = {
        "reason": (str, Field(title="Reason", description="In a few words.", min_length=1)),
        "detail": comment("Detail", "More about it."),
    } | BY

    def plan(fresh: Opened, given: Any) -> tuple[Move, Sequence[Write]]:
        at = format_time(now())
        return escalated(fresh.state, given.reason, given.detail, given.by, at), ()

    def perform(given: Any) -> str:
        state = decide.escalate(root, given.reason, given.detail, given.by, now())
        return f"Stopped: {blocked_by(state)}."

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
    fields: Fields = {
        "objection": (ids, Field(waiting[0].id, title="Objection", description=safe(about))),
        "status": (
            marks,
            Field("resolved_by_human", title="Becomes", description="What became of it."),
        ),
        "comment": comment("Comment", "How, or why; recorded in the ledger."),
    } | BY

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
        {"words": (str, words)} | BY,
        plan,
        perform,
        told=lambda fresh, given: ("Add your words to TALK.md.", ()),
        defaults=named(),
    )
