"""The command `acp governed step`: the turn is given out, and its program is waited for."""

from __future__ import annotations

import os

from acp_core.agents.budgets import caps_of
from acp_core.agents.processes import identify
from acp_core.model.clock import utc_now
from acp_core.protocols.governed.acts import table
from acp_core.protocols.governed.acts.table import SCHEMA
from acp_core.protocols.governed.conduct import adapters
from acp_core.protocols.governed.conduct.task import TakenTurn
from acp_core.protocols.governed.read import existing_program
from acp_core.protocols.governed.write import dispatch
from acp_core.protocols.governed.write.dispatch import Dispatched
from acp_core.protocols.governed.write.opened import read_unlocked
from acp_core.protocols.kit.command import perform
from acp_core.protocols.kit.command_line import say, warn
from acp_core.protocols.kit.parser import say_object
from acp_core.protocols.kit.values import Values


def run(values: Values) -> int:
    """Give the turn out and have it taken; the exit code."""
    if values.dry_run or existing_program.program(read_unlocked(values.folder).run) is not None:
        return perform(SCHEMA, "step", table.STEPPING, values)
    caps_of({}, values.budget)
    taker = None if values.no_run else identify(os.getpid())
    turn = dispatch.dispatch(values.folder, values.role or None, utc_now(), taker)
    adapters.choose_budget(values.folder, values.budget)
    for each in turn.warnings:
        warn(each)
    if not values.json:
        _say_dispatched(turn)
    if values.no_run:
        if values.json:
            _say_object(values, turn, staged=False)
        return 0
    return _say_taken(values, turn, adapters.take(values.folder, turn.turn_id, warn))


def _say_dispatched(turn: Dispatched) -> None:
    again = f" again (attempt {turn.attempt})" if turn.again else ""
    say(f"dispatched {turn.turn_id} to {turn.role}{again} ({turn.runtime}, {turn.adapter})")
    say(f"bundle: {turn.bundle}")


def _say_taken(values: Values, turn: Dispatched, came: TakenTurn) -> int:
    if values.json:
        _say_object(values, turn, staged=came.staged, waits=came.waits, reason=came.reason)
    elif came.staged:
        say(f"staged: {turn.staging}")
        if came.reason:
            say(f"note: {came.reason}")
        say(f"next: acp governed accept-turn {values.folder}")
    elif came.waits:
        say(
            f"{turn.role} takes the turn manually: read {turn.bundle}/PROMPT.md, write {turn.staging}"
        )
    else:
        say(f"not staged: {came.reason}; retry with `acp governed step {values.folder}`")
    return 0 if came.staged or came.waits else 1


def _say_object(values: Values, turn: Dispatched, **more: object) -> None:
    outcome = {"verb": "step", "folder": values.folder, **turn._asdict(), **more}
    say_object(SCHEMA, "step", done=True, **outcome)
