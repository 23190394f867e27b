"""An agent in the common words: peers, messages, tasks, what waits for a person."""

from __future__ import annotations

from datetime import UTC, datetime

from acp_core.files.text import clean_line
from acp_core.format import dated
from acp_core.model import (
    Need,
    Panel,
    Participant,
    Row,
    Snapshot,
    Status,
    Target,
    Tone,
    Turn,
)
from acp_core.protocols.wire import rules
from acp_core.protocols.wire.parts import shown_text
from acp_core.protocols.wire.reading import Reading
from acp_core.protocols.wire.schema import Json, time_of
from acp_core.protocols.wire.state import TERMINAL
from acp_core.protocols.wire.store.peers import PeerRow
from acp_core.protocols.wire.timeline import events

ANSWER, CANCEL = "answer", "cancel"
_OVER = {state.value for state in TERMINAL}
_LONG = 200
_TONES = {
    "input_required": Tone.BLOCKED,
    "failed": Tone.BLOCKED,
    "completed": Tone.DONE,
    "working": Tone.START,
}


def snapshot(reading: Reading, key: str, now: datetime, recheck: datetime | None) -> Snapshot:
    """The Snapshot of one reading."""
    names = {peer.id: peer.name for peer in reading.peers}
    told = events(reading.entries, names, reading.name)
    findings = rules.check(reading)
    needs = tuple(_need(task, names) for task in reading.tasks if asks_us(task))
    name = clean_line(reading.name, 64)
    return Snapshot(
        key=key,
        protocol="wire",
        dialect="ACP v0.8",
        name=name,
        objective=clean_line(str(reading.card.get("description") or "")),
        location=clean_line(key, 4096),
        as_of=now,
        headline=_headline(reading, needs),
        status=_status(reading),
        phase="running" if reading.running else "stopped",
        participants=_participants(reading, told[-1].at if told else None),
        turns=_turns(reading, names),
        events=told,
        findings=findings,
        verdict=rules.verdict(findings),
        needs=needs,
        panels=(_peers(reading), _tasks(reading, names), _artifacts(reading), _card(reading)),
        since=needs[0].since if needs else None,
        started=told[0].at if told else None,
        changed=told[-1].at if told else None,
        recheck_at=recheck,
    )


def _status(reading: Reading) -> Status:
    """A stopped agent is done with, unless something waits for it to come back."""
    if reading.running:
        return Status.ACTIVE
    waits = reading.queues or any(map(is_open, reading.tasks))
    return Status.BLOCKED if waits else Status.COMPLETED


def asks_us(task: Json) -> bool:
    """Whether a task waits for an answer of the person here."""
    return task.get("status") == "input_required" and task.get("direction") != "received"


def is_open(task: Json) -> bool:
    """Whether something can still follow."""
    return task.get("status") not in _OVER


def about(task: Json) -> str:
    """What a task is about, safe to show."""
    asked = task.get("input")
    return clean_line(shown_text(asked.get("parts")) if isinstance(asked, dict) else "", _LONG)


def id_of(task: Json) -> str:
    """A task's id, safe to show."""
    return clean_line(str(task.get("id")), 300)


def here(peer: PeerRow, reading: Reading) -> bool:
    """Whether there is a connection with a peer, as far as the store tells."""
    on, off = peer.connected_at, peer.disconnected_at
    return reading.running is not None and on is not None and (off is None or on > off)


def _headline(reading: Reading, needs: tuple[Need, ...]) -> str:
    if reading.running is None:
        waiting = sum(count for count, _ in reading.queues.values())
        return "the agent is stopped" + (
            f"; {_count(waiting, 'frame')} still to be sent" if waiting else ""
        )
    connected = sum(here(peer, reading) for peer in reading.peers)
    at_work = sum(map(is_open, reading.tasks))
    said = [f"{connected} of {_count(len(reading.peers), 'peer')} connected"]
    if at_work:
        said.append(f"{_count(at_work, 'task')} open")
    if needs:
        said.append(needs[0].text)
    return "; ".join(said)


def _participants(reading: Reading, last: datetime | None) -> tuple[Participant, ...]:
    own = Participant(clean_line(reading.name, 64), "agent", "this agent", last_seen=last)
    others = []
    for peer in reading.peers:
        on, off = time_of(peer.connected_at), time_of(peer.disconnected_at)
        connected = here(peer, reading)
        role = "connected" if connected else ("away" if on else "never connected")
        others.append(
            Participant(_called(peer, reading), "agent", role, last_seen=on if connected else off)
        )
    return (own, *others)


def _called(peer: PeerRow, reading: Reading) -> str:
    """A peer's name, with its id where another one is called so too."""
    same = [each for each in reading.peers if each.name == peer.name]
    alone = len(same) == 1 and peer.name != reading.name
    return clean_line(peer.name if alone else f"{peer.name} ({peer.id})", 80)


def _turns(reading: Reading, names: dict[str, str]) -> tuple[Turn, ...]:
    turns = []
    peers = {peer.id: _called(peer, reading) for peer in reading.peers}
    own = clean_line(reading.name, 64)
    for task in filter(is_open, reading.tasks):
        peer = peers.get(str(task.get("peer_id")), "")
        asking, received = (
            task.get("status") == "input_required",
            task.get("direction") == "received",
        )
        if asking and not received:
            continue  # a need of the person's
        who = (peer if asking else own) if received else (peer or own)
        what = f"{'answer' if asking else 'do'} {id_of(task)}: {about(task)}"
        turns.append(Turn(who or "somebody", clean_line(what), time_of(task.get("updated_at"))))
    return tuple(turns)


def _need(task: Json, names: dict[str, str]) -> Need:
    who = names.get(str(task.get("peer_id")))
    asking = f"{clean_line(who, 64)} needs input for" if who else "input is needed for"
    return Need(
        key=f"input:{id_of(task)}:{clean_line(str(task.get('updated_at')), 64)}",
        code="input_required",
        text=f"{asking} {id_of(task)}: {about(task)}",
        participant=clean_line(who, 64) if who else None,
        since=time_of(task.get("updated_at")),
        action=ANSWER,
        given=(("task", id_of(task)),),
    )


def _peers(reading: Reading) -> Panel:
    rows = []
    for peer in reading.peers:
        count, oldest = reading.queues.get(peer.id, (0, 0.0))
        connected = here(peer, reading)
        since = time_of(peer.connected_at if connected else peer.disconnected_at)
        waits = f"{count} since {dated(datetime.fromtimestamp(oldest, UTC))}" if count else "-"
        cells = (
            peer.id,
            clean_line(peer.name, 64),
            "connected" if connected else "away",
            dated(since) if since else "never",
            str(peer.sent),
            str(peer.received),
            waits,
            "Ed25519" if peer.public_key else "-",
        )
        rows.append(Row(cells, tone=Tone.DONE if connected else Tone.PASS))
    columns = ("id", "name", "state", "since", "sent", "received", "waiting", "identity")
    return Panel("peers", "Peers", "table", columns, tuple(rows), "no peer is known")


def _tasks(reading: Reading, names: dict[str, str]) -> Panel:
    rows = []
    for task in reading.tasks:
        status = clean_line(str(task.get("status")), 20)
        peer = clean_line(names.get(str(task.get("peer_id")), "-"), 64)
        action = ANSWER if asks_us(task) else (CANCEL if is_open(task) else None)
        target = Target(action=action, given=(("task", id_of(task)),)) if action else Target()
        cells = (id_of(task), status, clean_line(str(task.get("direction")), 20), peer, about(task))
        rows.append(Row(cells, tone=_TONES.get(status, Tone.OTHER), target=target))
    columns = ("id", "state", "direction", "peer", "about")
    return Panel("tasks", "Tasks", "table", columns, tuple(rows), "no task yet")


def _artifacts(reading: Reading) -> Panel:
    rows = []
    for task in reading.tasks:
        artifact = task.get("artifact")
        if isinstance(artifact, dict):
            said = clean_line(shown_text(artifact.get("parts")), 2000)
            rows.append(Row((id_of(task), said), tone=Tone.ACCEPT))
    return Panel(
        "artifacts", "Artifacts", "table", ("task", "artifact"), tuple(rows), "no artifact yet"
    )


def _card(reading: Reading) -> Panel:
    card = reading.card
    skills = card.get("skills")
    listed = (
        [str(s.get("id")) for s in skills if isinstance(s, dict)]
        if isinstance(skills, list)
        else []
    )
    trust = card.get("trust")
    pairs = [
        ("name", reading.name),
        ("description", card.get("description") or "-"),
        ("skills", ", ".join(listed) or "-"),
        ("HTTP", reading.running.http_url if reading.running else "stopped"),
        ("protocol", f"ACP v{card.get('acp_version')}"),
        ("trust", trust.get("scheme") if isinstance(trust, dict) else "-"),
        ("identity", "Ed25519" if card.get("identity") else "none"),
    ]
    rows = tuple(Row((label, clean_line(str(value)))) for label, value in pairs)
    return Panel("card", "Card", "table", ("", ""), rows)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
