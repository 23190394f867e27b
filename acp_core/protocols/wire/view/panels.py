"""What an agent's page shows beyond the timeline: peers, tasks, artifacts, contexts, signatures."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from acp_core.model import Panel, Row, Target, Tone
from acp_core.model.format import dated
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.wire.read import log_entries
from acp_core.protocols.wire.read.folder import NOT_KNOWN, Queue, Reading, moment
from acp_core.protocols.wire.schema.basics import ANSWER, CANCEL, time_of
from acp_core.protocols.wire.schema.untrusted_json import fields_of, objects

_TONES = {
    "input_required": Tone.BLOCKED,
    "failed": Tone.BLOCKED,
    "completed": Tone.DONE,
    "working": Tone.START,
}
_ORDER = ("input_required", "working", "submitted", "failed", "completed", "canceled")
_LISTED = 200  # contexts, and senders


def panels(reading: Reading, names: dict[str, str]) -> tuple[Panel, ...]:
    """All panels; ``names`` maps peers' ids to what they are called."""
    return (
        _peers(reading),
        _tasks(reading, names),
        _artifacts(reading),
        *_messages(reading),
        _card(reading),
    )


def _peers(reading: Reading) -> Panel:
    rows = []
    for peer in reading.peers:
        since = time_of(peer.connected_at if peer.connected else peer.disconnected_at)
        state = "connected" if peer.connected else "away"
        if reading.remote and reading.reach is None:
            state = f"was {state}"
        cells = (
            clean_line(peer.id, 64),
            clean_name(peer.name, 64),
            state,
            dated(since) if since else "never",
            str(peer.sent),
            str(peer.received),
            NOT_KNOWN if reading.then else _waits(reading.queues.get(peer.id)),
            NOT_KNOWN if reading.then else ("Ed25519" if peer.signs else "-"),
            clean_line(peer.trouble, 120) or "-",
        )
        good = peer.connected and (reading.reach is not None or bool(reading.then))
        stuck = peer.id in reading.queues or bool(peer.trouble)
        usual = Tone.BLOCKED if stuck else Tone.OTHER
        rows.append(Row(cells, tone=Tone.DONE if good else usual))
    columns = (
        "id", "name", "state", "since", "sent", "received", "waiting", "identity", "trouble",
    )  # fmt: skip
    return Panel("peers", "Peers", "table", columns, tuple(rows), _nothing(reading, "peer"))


def _waits(queue: Queue | None) -> str:
    if queue is None:
        return "-"
    since = moment(queue.since)
    return f"{queue.waiting} since {dated(since)}" if since else str(queue.waiting)


def _tasks(reading: Reading, names: dict[str, str]) -> Panel:
    """By state: what waits for somebody is on top; in each, the latest first."""
    places = {state: place for place, state in enumerate(_ORDER)}
    ordered = sorted(reading.tasks, key=lambda task: places.get(task.status, len(places)))
    rows = []
    for task in ordered:
        peer = clean_line(names.get(task.peer_id, "-"), 64)
        action = ANSWER if task.asks_us else (CANCEL if task.is_open else None)
        able = reading.reach is not None and task.is_whole
        able = able and not (action == ANSWER and task.is_orphan(reading.met))
        action = action if able else None
        target = Target(action=action, given=(("task", task.id),)) if action else Target()
        cells = (
            task.id, task.status, task.about, task.direction or "-", peer, clean_line(task.error, 200) or "-"
        )  # fmt: skip
        rows.append(Row(cells, tone=_TONES.get(task.status, Tone.OTHER), target=target))
    columns = ("id", "state", "about", "direction", "peer", "error")
    return Panel("tasks", "Tasks", "table", columns, tuple(rows), _nothing(reading, "task"))


def _artifacts(reading: Reading) -> Panel:
    rows = []
    for task in reading.tasks:
        if task.artifact is not None:
            text = clean_line(task.artifact.text, 2000)
            rows.append(Row((task.id, task.about, text), tone=Tone.ACCEPT))
    columns = ("task", "about", "artifact")
    empty = _nothing(reading, "artifact")
    return Panel("artifacts", "Artifacts", "table", columns, tuple(rows), empty)


class _Context:
    """One conversation (core specification, section 6.3)."""

    def __init__(self) -> None:
        self.count = 0
        self.who: dict[str, None] = {}
        self.seq = 0
        self.at: datetime | None = None
        self.text = ""


def _messages(reading: Reading) -> tuple[Panel, Panel]:
    """Conversations, and whose messages were signed how."""
    contexts: dict[str, _Context] = {}
    senders: dict[str, Counter[str]] = {}
    people = log_entries.people_of(reading)
    for entry in reading.entries:
        message = log_entries.message_of(entry, people)
        if message is None:
            continue
        if message.arrived and (message.who in senders or len(senders) < _LISTED):
            senders.setdefault(message.who, Counter())[message.signed] += 1
        if not message.context:
            continue
        context = contexts.pop(message.context, None) or _Context()
        if len(contexts) == _LISTED:
            del contexts[next(iter(contexts))]  # in which nothing was said for longest
        contexts[message.context] = context
        context.count += 1
        context.who[message.who] = None
        context.at = log_entries.taken_down(entry, reading.written)
        context.seq, context.text = entry.seq, message.text
    return _contexts(reading, contexts), _signatures(reading, senders)


def _contexts(reading: Reading, contexts: dict[str, _Context]) -> Panel:
    rows = []
    for id, context in reversed(contexts.items()):
        cells = (
            clean_line(id, 64),
            str(context.count),
            clean_line(", ".join(context.who), 120),
            dated(context.at) if context.at else "-",
            context.text,
        )
        rows.append(Row(cells, target=Target(event=str(context.seq))))
    columns = ("context", "messages", "who", "latest", "said")
    empty = _nothing(reading, "context")
    return Panel("contexts", "Contexts", "table", columns, tuple(rows), empty)


def _signatures(reading: Reading, senders: dict[str, Counter[str]]) -> Panel:
    rows = []
    for who, counts in senders.items():
        cells = (who, *(str(counts[kind]) for kind in log_entries.KINDS))
        bad = counts[log_entries.WRONG]
        good = counts[log_entries.VERIFIED] and not (
            counts[log_entries.UNSIGNED] or counts[log_entries.OLD]
        )
        tone = Tone.BLOCKED if bad else (Tone.DONE if good else Tone.OTHER)
        rows.append(Row(cells, tone=tone))
    columns = ("messages of", *log_entries.KINDS)
    empty = _nothing(reading, "message that arrived")
    return Panel("signatures", "Signatures", "table", columns, tuple(rows), empty)


def _nothing(reading: Reading, what: str) -> str:
    if reading.reach is not None and not reading.reach.owner:
        return "visible only to its owner; see Card"
    return f"no {what}"


def _card(reading: Reading) -> Panel:
    if reading.then:
        said = (Row(("name", clean_name(reading.name))), Row(("the rest", NOT_KNOWN)))
        return Panel("card", "Card", "table", ("", ""), said)
    card = reading.card
    listed = [str(skill.get("id")) for skill in objects(card.get("skills"))]
    flags = [name for name, on in fields_of(card.get("capabilities")).items() if on is True]
    pairs = [
        ("name", reading.name),
        ("description", card.get("description") or "-"),
        ("skills", ", ".join(listed) or "-"),
        ("HTTP", reading.reach.url if reading.reach else _where(reading)),
        ("protocol", f"ACP v{card['acp_version']}" if "acp_version" in card else "-"),
        ("trust", fields_of(card.get("trust")).get("scheme", "-")),
        ("identity", "Ed25519" if card.get("identity") else "none"),
        ("capabilities", ", ".join(flags) or "-"),
        ("rights", _rights(reading)),
    ]
    rows = tuple(Row((label, clean_line(str(value)))) for label, value in pairs)
    return Panel("card", "Card", "table", ("", ""), rows)


def _where(reading: Reading) -> str:
    return "not reachable" if reading.remote else "stopped"


def _rights(reading: Reading) -> str:
    if reading.reach is None:
        return "-"
    if reading.reach.owner:
        return "owner: full access"
    return "peer: set the owner's token in config.toml or ACP_WIRE_TOKEN to see more"
