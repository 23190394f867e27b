"""Blocks, objections and words: what else a human decides."""

from __future__ import annotations

from datetime import datetime

from acp_core.model.action import Action
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.governed.acts import table_deciding
from acp_core.protocols.governed.acts.common import Done, Planned, Steps, of_run, open_run
from acp_core.protocols.governed.read import existing_program
from acp_core.protocols.governed.schema import blocked_by, objects, plain
from acp_core.protocols.governed.state import escalated, format_time
from acp_core.protocols.governed.write import decide
from acp_core.protocols.governed.write.opened import Opened, who
from acp_core.protocols.kit.binding import Context
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe


def unblocking(context: Context, now: datetime) -> Action:
    """Let a blocked run go on; offered unless it waits at a gate or a barrier."""
    opened = open_run(context)
    turns = bool(objects(opened.state.get("active_turns")))

    def plan(fresh: Opened, values: Values) -> Planned:
        return decide.unblocking(
            fresh, who(values.by), values.comment, utc_now(), drop_turn=values.drop_turn
        )

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        return f"You confirm that this is resolved: {blocked_by(fresh.state)}.", ()

    def perform(values: Values) -> Done:
        state = decide.unblock(
            opened.root, values.by, values.comment, utc_now(), drop_turn=values.drop_turn
        )
        return Done(f"Unblocked: {state.get('phase')} is {state.get('status')}.", state)

    def words(fresh: Opened, values: Values) -> list[str]:
        return existing_program.words(fresh.run, "unblock")

    return of_run(
        table_deciding.UNBLOCKING, opened, Steps(plan, describe, perform, words),
        narrowed={"drop_turn": {"form": turns}},
        sentence=f"Confirm that this is resolved: {blocked_by(opened.state)}.",
        offered=_can_go_on(opened),
    )  # fmt: skip


def _can_go_on(opened: Opened) -> bool:
    try:
        decide.unblocking(opened, "you", "", utc_now())
    except (Refused, OSError):
        return False
    return True


def escalation(context: Context, now: datetime) -> Action:
    """Stop the run; offered while it is active."""
    opened = open_run(context)

    def plan(fresh: Opened, values: Values) -> Planned:
        at, by = format_time(utc_now()), who(values.by)
        return escalated(fresh.state, values.reason, values.detail, by, at), ()

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        return "Block the run until a human unblocks it.", ()

    def perform(values: Values) -> Done:
        state = decide.escalate(opened.root, values.reason, values.detail, values.by, utc_now())
        return Done(f"Stopped: {blocked_by(state)}.", state)

    def words(fresh: Opened, values: Values) -> list[str]:
        return existing_program.words(fresh.run, "escalate", reason=values.reason)

    return of_run(
        table_deciding.ESCALATION, opened, Steps(plan, describe, perform, words),
        offered=opened.state.get("status") == "active",
    )  # fmt: skip


def objection(context: Context, now: datetime) -> Action:
    """Say what became of an objection; offered while one is open."""
    opened = open_run(context)
    waiting = [each for each in opened.run.objections if each.open]
    about = "; ".join(f"{o.id} ({o.severity}): {o.statement}" for o in waiting[:10])
    choice = {
        "choices": tuple(each.id for each in waiting),
        "default": waiting[0].id if waiting else None,
        "required": False,
        "help": safe(about),
    }

    def plan(fresh: Opened, values: Values) -> Planned:
        by, id = who(values.by), values.objection
        return decide.marking(fresh, id, values.status, by, values.comment, utc_now()), ()

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        stated = next((each for each in fresh.run.objections if each.id == values.objection), None)
        if stated is None:
            return f"Mark {values.objection} as {values.status}.", ()
        return f"Mark {stated.id} of {stated.raised_by} as {values.status}: {stated.statement}", ()

    def perform(values: Values) -> Done:
        id, status = values.objection, values.status
        state = decide.mark_objection(opened.root, id, status, values.by, values.comment, utc_now())
        return Done(f"{id} is {plain(status)}.", state)

    return of_run(
        table_deciding.OBJECTION, opened, Steps(plan, describe, perform),
        narrowed={"objection": choice}, offered=bool(waiting),
    )  # fmt: skip


def talking(context: Context, now: datetime) -> Action:
    """Write into TALK.md."""
    opened = open_run(context)

    def plan(fresh: Opened, values: Values) -> Planned:
        return None, [decide.talking(fresh, values.text, who(values.by), utc_now())]

    def perform(values: Values) -> Done:
        decide.talk(opened.root, values.text, values.by, utc_now())
        return Done("Added to TALK.md.", data={"written": True})

    return of_run(
        table_deciding.TALKING, opened,
        Steps(plan, lambda fresh, values: ("Add your message to TALK.md.", ()), perform, human=False),
    )  # fmt: skip
