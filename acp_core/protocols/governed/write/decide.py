"""What a human decides in a run: gates, rejected turns, escalations, objections, words in TALK.md.

And the state that was lost or changed by others, which is put back or taken. Source: governed
protocol specification, "Commands": gates are human-only checkpoints.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files.transaction import APPEND, REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import prompts, schema
from acp_core.protocols.governed.read import existing_program, own_writes, repository
from acp_core.protocols.governed.read.own_writes import JOURNAL, RUN_HOME, interrupted
from acp_core.protocols.governed.read.run import (
    bundle_folder,
    is_program_running,
    latest_verification,
    predicates,
    unknown,
)
from acp_core.protocols.governed.rules import guard
from acp_core.protocols.governed.schema import Object, blocked_by, obj, objects, plain, text
from acp_core.protocols.governed.state import (
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
from acp_core.protocols.governed.write import restore
from acp_core.protocols.governed.write.opened import (
    Opened,
    Recovered,
    RunPlan,
    content,
    locked,
    refuse_agents,
    removing,
    reserved_changed,
    take_as_they_are,
    who,
    write,
)
from acp_core.protocols.governed.write.restore import Restored, restored
from acp_core.protocols.governed.write.turns import judge


def unmet(opened: Opened, request: Request) -> tuple[str, ...]:
    """The predicates of a gate that do not hold at this moment, each with its reason.

    Raises:
        Refused: whether they hold cannot be found out now.
    """
    verification = latest_verification(opened.run)
    found = predicates(opened.root, opened.config, request.gate, verification)
    if doubt := unknown(found):
        raise Refused(doubt)
    return tuple(f"{p.name}: {p.reason}" for p in found if not p.met)


def evidence(opened: Opened, request: Request) -> tuple[str, tuple[str, ...]]:
    """Who asks with which words and which verification; and what speaks against it."""
    said = f"Gate {request.gate}"
    by = next(
        (turn for turn in reversed(opened.run.accepted) if turn.turn_id == request.turn), None
    )
    if by is not None:
        said += f", requested by {by.role} ({request.turn}): “{clean_line(by.summary, 400)}”"
    verification = latest_verification(opened.run)
    if verification:
        said += f" Verification: {verification}."
    demanded = predicates(opened.root, opened.config, request.gate, verification)
    met = [each.name for each in demanded if each.met]
    if met:
        said += f" Met: {', '.join(met)}."
    against = [f"not met: {each}" for each in unmet(opened, request)]
    against += [
        f"open objection {o.id} ({o.severity}) of {o.raised_by}: {o.statement}"
        for o in opened.run.objections
        if o.open
    ]
    return said, tuple(against)


def approving(opened: Opened, kind: str, by: str, comment: str, now: datetime) -> RunPlan:
    """Open the gate that waits.

    Args:
        opened: the run.
        kind: "phase_transition" or "run_completion"; "" for whichever waits.
        by: who approves, "" for the user.
        comment: why, or what to heed.
        now: the time.

    Raises:
        Refused: none waits.
    """
    request = pending(opened.state, kind)
    said, against = evidence(opened, request)
    verb = "approve-transition" if request.to else "approve-completion"
    sentence = f"Approve and {request.aim}. {said}"
    if words := existing_program.words(opened.run, verb):
        return RunPlan("", sentence, warnings=against, words=words)
    move = approved(
        opened.state, request, who(by), comment, unmet(opened, request), format_time(now)
    )
    begins = f"{move.state.get('phase')} begins"
    if move.state.get("status") == "completed":
        begins = "the run is completed"
    about: Object = {"gate_type": request.kind, "gate": request.gate, "turn_id": request.turn}
    about |= {"current_phase": request.phase, "target_phase": request.to or None}
    what = f"approve ({kind or 'gate'})"
    done = f"Approved {request.gate}: {begins}."
    return RunPlan(what, sentence, done, move, warnings=against, asked=about)


def rejecting_gate(opened: Opened, by: str, comment: str, now: datetime) -> RunPlan:
    """Send the phase back to work. Raises as `approving`.

    It is not done behind the back of the existing program, which knows no rejection.
    """
    request = pending(opened.state)
    if existing_program.program(opened.run) is not None:
        raise Refused(
            f"{existing_program.NAME} cannot reject a gate: escalate, or let the role take"
            " another turn"
        )
    said, against = evidence(opened, request)
    lines = (line.value for line in reversed(opened.run.history.lines))
    role = next((text(v, "role", 80) for v in lines if v.get("turn_id") == request.turn), "")
    role = role if role in objects(opened.config.get("roles")) else ""
    move = rejected_gate(opened.state, request, who(by), comment, role, format_time(now))
    done = f"Rejected {request.gate}: work on {move.state.get('phase')} resumes."
    sentence = f"Send {request.phase} back to work. {said}"
    return RunPlan("reject (gate)", sentence, done, move, warnings=against)


def rejecting_turn(
    opened: Opened, turn_id: str | None, by: str, reason: str, now: datetime
) -> RunPlan:
    """Send a turn back, or block the run where its attempts are used up.

    Raises:
        Refused: no turn is under way, or its program still runs.
    """
    turn = active_turn(opened.state, turn_id)
    id, role = turn["turn_id"], text(turn, "assigned_role", 80)
    if is_program_running(opened.root, id):
        raise Refused(f"the program of {role} is still running: stop it first")
    stage, errors = "", tuple[str, ...]()
    more: list[Write] = []
    data = content(opened.root, prompts.staged(id))
    if data is not None:
        verdict = judge(opened, id).verdict
        stage, errors = verdict.stage, verdict.errors
        stamp = re.sub(r"[:.]", "-", format_time(now))
        copy = f".agentxchain/dispatch/rejected/{id}-attempt-{turn.get('attempt')}-{stamp}.json"
        more = [
            Write(opened.root / copy, REPLACE, data),
            *removing(opened.root, f"{prompts.STAGING}/{id}"),
        ]
    move = rejected(opened.config, opened.state, id, reason, who(by), stage, errors, now)
    sentence = f"Reject the turn of {role} and reassign it."
    done = "Rejected; the turn waits to be reassigned."
    if move.state.get("status") == "blocked":
        sentence = f"Reject the turn of {role}: no attempts are left, so the run blocks."
        done = f"Rejected; the run is blocked: {blocked_by(move.state)}."
    words = existing_program.words(opened.run, "reject-turn", turn=turn_id or "", reason=reason)
    move = ended(move, id, repository.observe(opened.root, obj(turn, "baseline")))
    return RunPlan(
        "reject-turn", sentence, done, move, more, words=words, told=_escalation(move.state)
    )


def escalating(opened: Opened, reason: str, detail: str, by: str, now: datetime) -> RunPlan:
    """Stop the run until a human resolves it. Raises as `approving`."""
    sentence = "Block the run until a human unblocks it."
    if words := existing_program.words(opened.run, "escalate", reason=reason):
        return RunPlan("", sentence, words=words)
    move = escalated(opened.state, reason, detail, who(by), format_time(now))
    done = f"Stopped: {blocked_by(move.state)}."
    return RunPlan("escalate", sentence, done, move, told=_escalation(move.state))


def _escalation(state: Object) -> tuple[tuple[str, Object], ...]:
    """What the hooks are told where the run is blocked."""
    if state.get("status") != "blocked":
        return ()
    payload = {"blocked_on": state.get("blocked_on"), "escalation": state.get("escalation")}
    return (("on_escalation", payload),)


def unblocking(
    opened: Opened, by: str, comment: str, now: datetime, *, drop_turn: bool = False
) -> RunPlan:
    """Let the run go on, without the turn under way where it is dropped. Raises as `approving`."""
    sentence = f"You confirm that this is resolved: {blocked_by(opened.state)}."
    if words := existing_program.words(opened.run, "unblock"):
        return RunPlan("", sentence, words=words)
    move = unblocked(opened.state, who(by), comment, format_time(now), drop_turn=drop_turn)
    more: list[Write] = []
    for id in turns_of(opened.state) if drop_turn else ():
        if is_program_running(opened.root, id):
            raise Refused(f"the program of the turn {id} is still running: stop it first")
        more += removing(opened.root, f"{prompts.STAGING}/{id}")
        more += removing(opened.root, bundle_folder(id))
    done = f"Unblocked: {move.state.get('phase')} is {move.state.get('status')}."
    return RunPlan("unblock", sentence, done, move, more)


def marking(opened: Opened, id: str, status: str, by: str, comment: str, now: datetime) -> RunPlan:
    """Say what became of an objection. Raises as `approving`."""
    if status not in schema.MARKS:
        raise Refused(f"an objection can be marked: {', '.join(schema.MARKS)}")
    move = objection_marked(opened.state, opened.objections, id, status, who(by), comment, now)
    stated = next((each for each in opened.run.objections if each.id == id), None)
    sentence = f"Mark {id} as {status}."
    if stated is not None:
        sentence = f"Mark {id} of {stated.raised_by} as {status}: {stated.statement}"
    return RunPlan(f"objection ({id})", sentence, f"{id} is {plain(status)}.", move)


def talking(opened: Opened, words: str, by: str, now: datetime) -> RunPlan:
    """Write into TALK.md, which the next agents are shown.

    Raises:
        Refused: there are no words.
    """
    if not words.strip():
        raise Refused("the message is empty")
    at = now.strftime("%Y-%m-%d %H:%M UTC")
    text = f"\n## {' '.join(who(by).split())} — {at}\n\n{words.strip()}\n\n---\n"
    line = Write(opened.root / schema.TALK, APPEND, text.encode(errors="replace"))
    sentence, done = "Add your message to TALK.md.", "Added to TALK.md."
    return RunPlan("talk", sentence, done, writes=[line], after={"written": True})


def bringing_back(opened: Opened, now: datetime) -> RunPlan:
    """Put the state back as acp wrote it last, where it was lost, or changed by somebody else.

    Raises:
        Refused: it is as acp wrote it, or that is not known any more.
    """
    if not guard.lost(opened.run) and schema.STATE not in reserved_changed(opened):
        raise Refused(f"{schema.STATE} is unchanged since acp wrote it")
    data = own_writes.last_sealed(opened.root)
    if data is None:
        raise Refused(f"acp no longer has a record of what it wrote into {schema.STATE}")
    damaged = restore.set_apart(opened.root, opened.run, now) if opened.run.state.reason else ()
    return RunPlan(
        "restore the state",
        "Restore the state that acp wrote last.",
        "Restored the state that acp wrote last.",
        writes=[*damaged, Write(opened.root / schema.STATE, REPLACE, data)],
        after={"brought_back": True},
    )


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
