"""An agent in the common words: peers, messages, tasks, what waits for a person."""

from __future__ import annotations

from datetime import UTC, datetime

from acp_core.model import (
    Need,
    NextAction,
    Participant,
    Snapshot,
    Source,
    SourceState,
    Status,
    Turn,
    Verdict,
)
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.wire import rules
from acp_core.protocols.wire.read import log_entries
from acp_core.protocols.wire.read.folder import NOT_KNOWN, RUNNING, Reach, Reading
from acp_core.protocols.wire.schema.basics import ANSWER, time_of
from acp_core.protocols.wire.schema.people import PeerSeen
from acp_core.protocols.wire.schema.tasks import Task
from acp_core.protocols.wire.view import panels
from acp_core.protocols.wire.view.timeline import Recorded, Timeline

_EVER = datetime.max.replace(tzinfo=UTC)


def snapshot(reading: Reading, key: str, now: datetime, recheck: datetime | None) -> Snapshot:
    """The Snapshot of one reading."""
    names = {peer.id: clean_name(peer.name, 64) for peer in reading.peers}
    about = (reading.entries, names, reading.name, reading.written, reading.tasks)
    told = Recorded(*about, lines=reading.lines) if reading.lines else Timeline(*about)
    findings = rules.check(reading)
    # A peer cannot answer for the agent's owner: what it asks is no need of whoever looks.
    # Nor is there one in what is long past.
    ours = (reading.reach is None or reading.reach.owner) and reading.then != NOT_KNOWN
    asked = log_entries.questions(reading.tasks, reading.entries) if ours else {}
    needs = tuple(
        _need(task, names, asked, reading.reach)
        for task in reading.tasks
        if ours and task.asks_us and not task.is_orphan(reading.met)
    )
    name, turns = clean_name(reading.name, 64), _turns(reading, names)
    return Snapshot(
        key=key,
        protocol="wire",
        dialect="ACP v0.8",
        name=name,
        objective=clean_line(str(reading.card.get("description") or "")),
        location=clean_line(key, 4096),
        as_of=(reading.heard or now) if reading.away else now,
        headline=_headline(reading, needs),
        summary=_headline(reading, ()),
        status=_status(reading),
        phase=_phase(reading),
        source=_source(reading),
        participants=_participants(reading, told[-1].at if told else None),
        turns=turns,
        next_actions=_next(turns),
        events=told,
        findings=findings,
        verdict=Verdict.UNKNOWN if _unheard(reading) else rules.verdict(findings),
        needs=needs,
        panels=panels.panels(reading, names),
        outcome=("artifacts", "tasks"),
        since=needs[0].since if needs else None,
        started=reading.begun or (told[0].at if told else None),
        run_id=clean_line(str(reading.card.get("instance_id") or ""), 100) if reading.begun else "",
        changed=told[-1].at if told else None,
        recheck_at=recheck,
        doubt=reading.unknown,
    )


def _unheard(reading: Reading) -> bool:
    """Whether nothing is known of it yet."""
    return reading.remote and reading.reach is None and not reading.card


def _source(reading: Reading) -> Source:
    """Stale is what was heard once; an agent of which nothing was heard is unreachable."""
    if not reading.away:
        return Source()
    return Source(SourceState.STALE if reading.heard else SourceState.UNREACHABLE, reading.away)


def _phase(reading: Reading) -> str:
    if reading.then:
        return reading.then
    if reading.reach:
        return "running"
    return "unreachable" if reading.remote else "stopped"


def _status(reading: Reading) -> Status:
    """A stopped agent is done with, unless something waits for it to come back."""
    if reading.reach or reading.then == RUNNING:
        return Status.ACTIVE
    if reading.remote or reading.then:
        return Status.UNKNOWN
    waits = reading.queues or any(task.is_open for task in reading.tasks)
    return Status.BLOCKED if waits else Status.COMPLETED


def _headline(reading: Reading, needs: tuple[Need, ...]) -> str:
    if reading.remote and reading.reach is None:
        known = f"; known: {_count(len(reading.peers), 'peer')}" if reading.peers else ""
        at_work = sum(task.is_open for task in reading.tasks)
        return f"not reachable{known}" + (f", {_count(at_work, 'task')} open" if at_work else "")
    if reading.reach is None and not reading.then:
        return "the agent is not running"  # the problem says what waits for it
    if reading.reach is not None and not reading.reach.owner:
        return "the link gives a peer's rights: only the owner sees everything"
    connected = sum(peer.connected for peer in reading.peers)
    at_work = sum(task.is_open for task in reading.tasks)
    said = [f"{connected} of {_count(len(reading.peers), 'peer')} connected"]
    if at_work:
        said.append(f"{_count(at_work, 'task')} open")
    if needs:
        said.append(needs[0].text)
    if reading.pause:
        said.append(f"asked every {reading.pause:g} s: it answers one request at a time")
    return "; ".join(said)


def _participants(reading: Reading, last: datetime | None) -> tuple[Participant, ...]:
    own = Participant(clean_name(reading.name, 64), "agent", "this agent", last_seen=last)
    others = []
    for peer in reading.peers:
        on, off = time_of(peer.connected_at), time_of(peer.disconnected_at)
        role = "connected" if peer.connected else ("away" if on else "never connected")
        role = "unknown" if reading.remote and reading.reach is None else role
        seen = on if peer.connected else off
        others.append(Participant(called(peer, reading), "agent", role, last_seen=seen))
    return (own, *others)


def called(peer: PeerSeen, reading: Reading) -> str:
    """A peer's name, with its id where another one is called so too."""
    same = [each for each in reading.peers if each.name == peer.name]
    alone = len(same) == 1 and peer.name != reading.name
    name = clean_name(peer.name, 80)
    return name if alone else clean_line(f"{name} ({peer.id})", 80)


def _turns(reading: Reading, names: dict[str, str]) -> tuple[Turn, ...]:
    turns = []
    peers = {peer.id: called(peer, reading) for peer in reading.peers}
    own = clean_name(reading.name, 64)
    for task in reading.tasks:
        if not task.is_open:
            continue
        peer = peers.get(task.peer_id, "")
        asking, received = task.status == "input_required", task.direction == "received"
        if asking and not received:
            continue  # a need of the person's
        who = (peer if asking else own) if received else (peer or own)
        what = f"{'answer' if asking else 'work on'} {task.id}: {task.about}"
        turns.append(Turn(who or "somebody", clean_line(what), task.since))
    return tuple(turns)


def _next(turns: tuple[Turn, ...]) -> tuple[NextAction, ...]:
    """For each who is waited for the task of longest ago, and how many more there are."""
    whose: dict[str, list[Turn]] = {}
    for turn in turns:
        whose.setdefault(turn.participant, []).append(turn)
    made = []
    for who, several in whose.items():
        first = min(several, key=lambda turn: turn.since or _EVER)
        more = f" (and {len(several) - 1} more)" if several[1:] else ""
        made.append(NextAction(who, first.what + more, waited=True))
    return tuple(made)


def _need(task: Task, names: dict[str, str], asked: dict[str, str], reach: Reach | None) -> Need:
    """What a peer asks for; it can be answered only while the agent runs."""
    who = names.get(task.peer_id)
    asking = f"{clean_name(who, 64)} needs input" if who else "input needed"
    question = asked.get(task.id, "")
    question = f"{question} ({task.about})" if question and task.about else question
    return Need(
        key=f"input:{task.id}:{clean_line(task.updated_at, 64)}",
        code="input_required",
        text=clean_line(f"{asking}: {question or task.about or task.id}"),
        participant=clean_name(who, 64) if who else None,
        since=task.since,
        action=ANSWER if reach is not None else None,
        given=(("task", task.id),) if reach is not None else (),
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
