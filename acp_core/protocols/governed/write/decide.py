"""What a human decides: gates, rejected turns, escalations, objections, words in TALK.md.

Source: governed protocol specification, "Commands": gates are human-only checkpoints.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files.transaction import APPEND, REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.protocols.governed import prompts, schema
from acp_core.protocols.governed.read import own_writes, repository, run
from acp_core.protocols.governed.read.own_writes import JOURNAL, RUN_HOME, interrupted
from acp_core.protocols.governed.rules import guard
from acp_core.protocols.governed.schema import Object, obj, objects, text
from acp_core.protocols.governed.state import (
    Move,
    Request,
    active_turn,
    approved,
    ended,
    escalated,
    format_time,
    objection_marked,
    pending,
    rejected,
    rejected_gate,
    turns_of,
    unblocked,
)
from acp_core.protocols.governed.write import hooks, restore
from acp_core.protocols.governed.write.opened import (
    Opened,
    Recovered,
    commit,
    content,
    locked,
    permitted,
    read_unlocked,
    refuse_agents,
    removing,
    who,
    write,
)
from acp_core.protocols.governed.write.restore import Restored, restored
from acp_core.protocols.governed.write.turns import judge, reserved_changed, take_as_they_are


def unmet(opened: Opened, request: Request) -> tuple[str, ...]:
    """The predicates of a gate that do not hold at this moment, each with its reason.

    Raises:
        Refused: whether they hold cannot be found out now.
    """
    verification = run.latest_verification(opened.run)
    found = run.predicates(opened.root, opened.config, request.gate, verification)
    if doubt := run.unknown(found):
        raise Refused(doubt)
    return tuple(f"{p.name}: {p.reason}" for p in found if not p.met)


def approve(root: str | Path, kind: str, by: str, comment: str, now: datetime) -> Object:
    """Open the gate that waits; returns the state after it.

    Args:
        root: the repository.
        kind: "phase_transition" or "run_completion"; "" for whichever waits.
        by: who approves, "" for the user.
        comment: why, or what to heed.
        now: the time.

    Raises:
        Refused: none waits, or an agent asks. Nothing was written.
    """
    refuse_agents()
    _ask(root, kind)
    with locked(root, schema.APPROVE_GATE) as opened:
        move = approving(opened, kind, who(by), comment, now)
        commit(opened, f"approve ({kind or 'gate'})", move)
        return move.state


def _ask(root: str | Path, kind: str) -> None:
    """Ask the hooks that may stop a gate from being opened. Raises as `asked_hooks.ask`."""
    opened = read_unlocked(root)
    if schema.asked_before(opened.config, schema.APPROVE_GATE):
        request = pending(permitted(opened, schema.APPROVE_GATE).state, kind)
        about: Object = {"gate_type": request.kind, "gate": request.gate, "turn_id": request.turn}
        about |= {"current_phase": request.phase, "target_phase": request.to or None}
        hooks.ask_hooks(root, schema.APPROVE_GATE, about)


def approving(opened: Opened, kind: str, by: str, comment: str, now: datetime) -> Move:
    """What approving writes. Writes nothing. Raises as `approve`."""
    request = pending(opened.state, kind)
    return approved(opened.state, request, by, comment, unmet(opened, request), format_time(now))


def reject_gate(root: str | Path, by: str, comment: str, now: datetime) -> Object:
    """Send the phase back to work; returns the state after it. Raises as `approve`."""
    refuse_agents()
    with locked(root, schema.REJECT_GATE) as opened:
        move = rejecting_gate(opened, who(by), comment, now)
        commit(opened, "reject (gate)", move)
        return move.state


def rejecting_gate(opened: Opened, by: str, comment: str, now: datetime) -> Move:
    """What rejecting a gate writes. Writes nothing. Raises as `approve`."""
    request = pending(opened.state)
    role = ""
    for line in reversed(opened.run.history.lines):
        if line.value.get("turn_id") == request.turn:
            role = text(line.value, "role", 80)
            break
    role = role if role in objects(opened.config.get("roles")) else ""
    return rejected_gate(opened.state, request, by, comment, role, format_time(now))


def reject_turn(
    root: str | Path, turn_id: str | None, by: str, reason: str, now: datetime
) -> Object:
    """Send a turn back, or escalate it; returns the state after it.

    Raises:
        Refused: no turn is under way, or its program still runs. Nothing was written.
    """
    refuse_agents()
    with locked(root, schema.REJECT) as opened:
        move, more = rejecting_turn(opened, turn_id, who(by), reason, now)
        commit(opened, "reject-turn", move, more)
    _stopped(root, move.state)
    return move.state


def rejecting_turn(
    opened: Opened, turn_id: str | None, by: str, reason: str, now: datetime
) -> tuple[Move, list[Write]]:
    """What rejecting a turn writes. Writes nothing. Raises as `reject_turn`."""
    turn = active_turn(opened.state, turn_id)
    id = turn["turn_id"]
    if run.is_program_running(opened.root, id):
        raise Refused(
            f"the program of {text(turn, 'assigned_role', 80)} is still running: stop it first"
        )
    stage, errors = "", tuple[str, ...]()
    more: list[Write] = []
    name = prompts.staged(id)
    data = content(opened.root, name)
    if data is not None:
        verdict = judge(opened, id).verdict
        stage, errors = verdict.stage, verdict.errors
        stamp = re.sub(r"[:.]", "-", format_time(now))
        copy = f".agentxchain/dispatch/rejected/{id}-attempt-{turn.get('attempt')}-{stamp}.json"
        more = [
            Write(opened.root / copy, REPLACE, data),
            *removing(opened.root, f"{prompts.STAGING}/{id}"),
        ]
    move = rejected(opened.config, opened.state, id, reason, by, stage, errors, now)
    seen = repository.observe(opened.root, obj(turn, "baseline"))
    return ended(move, id, seen), more


def escalate(root: str | Path, reason: str, detail: str, by: str, now: datetime) -> Object:
    """Stop the run until a human resolves it; returns the state after it. Raises as `approve`."""
    with locked(root, schema.ESCALATE) as opened:
        move = escalated(opened.state, reason, detail, who(by), format_time(now))
        commit(opened, "escalate", move)
    _stopped(root, move.state)
    return move.state


def _stopped(root: str | Path, state: Object) -> None:
    """Tell the hooks that the run is blocked."""
    if state.get("status") == "blocked":
        payload = {"blocked_on": state.get("blocked_on"), "escalation": state.get("escalation")}
        hooks.fire(root, "on_escalation", payload)


def unblock(
    root: str | Path, by: str, comment: str, now: datetime, *, drop_turn: bool = False
) -> Object:
    """Let the run go on; returns the state after it. Raises as `approve`."""
    refuse_agents()
    with locked(root, schema.UNBLOCK) as opened:
        move, more = unblocking(opened, who(by), comment, now, drop_turn=drop_turn)
        commit(opened, "unblock", move, more)
        return move.state


def unblocking(
    opened: Opened, by: str, comment: str, now: datetime, *, drop_turn: bool = False
) -> tuple[Move, list[Write]]:
    """What unblocking writes. Writes nothing. Raises as `approve`."""
    move = unblocked(opened.state, by, comment, format_time(now), drop_turn=drop_turn)
    more: list[Write] = []
    if drop_turn:
        for id in turns_of(opened.state):
            if run.is_program_running(opened.root, id):
                raise Refused(f"the program of the turn {id} is still running: stop it first")
            more += removing(opened.root, f"{prompts.STAGING}/{id}")
            more += removing(opened.root, run.bundle_folder(id))
    return move, more


def mark_objection(
    root: str | Path, id: str, status: str, by: str, comment: str, now: datetime
) -> Object:
    """Say what became of an objection; returns the state. Raises as `approve`."""
    refuse_agents()
    with locked(root, schema.OBJECTION) as opened:
        move = marking(opened, id, status, who(by), comment, now)
        commit(opened, f"objection ({id})", move)
        return move.state


def marking(opened: Opened, id: str, status: str, by: str, comment: str, now: datetime) -> Move:
    """What marking an objection writes. Writes nothing. Raises as `approve`."""
    if status not in schema.MARKS:
        raise Refused(f"an objection can be marked: {', '.join(schema.MARKS)}")
    return objection_marked(opened.state, opened.objections, id, status, by, comment, now)


def talk(root: str | Path, words: str, by: str, now: datetime) -> None:
    """Write into TALK.md, which the next agents are shown.

    Raises:
        Refused: there are no words, or there is no run.
    """
    with locked(root, schema.LEAVE_MESSAGE) as opened:
        write(opened, "talk", [talking(opened, words, who(by), now)])


def talking(opened: Opened, words: str, by: str, now: datetime) -> Write:
    """What writing into TALK.md writes. Raises as `talk`."""
    if not words.strip():
        raise Refused("the message is empty")
    at = now.strftime("%Y-%m-%d %H:%M UTC")
    text = f"\n## {' '.join(by.split())} — {at}\n\n{words.strip()}\n\n---\n"
    return Write(opened.root / schema.TALK, APPEND, text.encode(errors="replace"))


def bring_back(root: str | Path, now: datetime) -> None:
    """Put the state back as acp wrote it last, where it was lost, or changed by somebody else.

    Raises:
        Refused: it is as acp wrote it, that is not known any more, or an agent asks.
    """
    refuse_agents()
    with locked(root, schema.BRING_BACK) as opened:
        write(opened, "restore the state", bringing_back(opened, now))


def bringing_back(opened: Opened, now: datetime) -> list[Write]:
    """What `bring_back` writes. Writes nothing. Raises as it does."""
    if not guard.lost(opened.run) and schema.STATE not in reserved_changed(opened):
        raise Refused(f"{schema.STATE} is unchanged since acp wrote it")
    data = own_writes.last_sealed(opened.root)
    if data is None:
        raise Refused(f"acp no longer has a record of what it wrote into {schema.STATE}")
    damaged = restore.set_apart(opened.root, opened.run, now) if opened.run.state.reason else ()
    return [*damaged, Write(opened.root / schema.STATE, REPLACE, data)]


class Recovery(NamedTuple):
    """What recovering did: the writing that was interrupted, and the state that was lost."""

    finished: Recovered | None
    restored: Restored | None


def recover(root: str | Path, now: datetime) -> Recovery:
    """Finish what a killed command had begun, and bring a lost state back.

    Raises:
        Refused: there is no run, or one of the two cannot be done.
    """
    with locked(root, schema.RECOVER) as opened:
        if not guard.lost(opened.run):
            return Recovery(opened.recovered, None)
        refuse_agents()
        found = restored(opened, now)
        write(opened, found.how, found.writes)
        return Recovery(opened.recovered, found)


def take_files(root: str | Path) -> Recovered | None:
    """Leave the run's own files as they are; returns what was left, None where nothing was.

    What was interrupted and cannot be finished is dropped; where nothing was, changes that
    somebody else made are taken.

    Raises:
        Refused: there is no run, or an agent asks.
    """
    refuse_agents()
    place = Path(os.path.abspath(root))
    left = interrupted(place)
    if left is None:
        with locked(root, schema.TAKE_FILES) as opened:
            changed = reserved_changed(opened)
            if not changed:
                return None
            take_as_they_are(opened, changed)
        return Recovered(f"changes of {', '.join(changed)}", False, "accepted as they are")
    (place / RUN_HOME / JOURNAL).unlink(missing_ok=True)
    return Recovered(left.what, False, "dropped; the files are unchanged")
