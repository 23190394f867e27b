"""From what was read to the Snapshot of an agent: its timeline, its panels, and its story."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, overload

from acp_core.files.decode import text
from acp_core.model import (
    Event,
    Matter,
    NextAction,
    Panel,
    Participant,
    Row,
    Snapshot,
    Source,
    SourceState,
    Status,
    Target,
    Tone,
    Turn,
    Verdict,
)
from acp_core.model.format import dated, exact
from acp_core.model.matter import decision
from acp_core.model.past import Count, PastTurn, Story
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.kit import findings as kit_findings
from acp_core.protocols.wire import rules
from acp_core.protocols.wire.read import folder
from acp_core.protocols.wire.read.folder import (
    FAR,
    MESSAGE_KINDS,
    NOT_KNOWN,
    OLD,
    RUNNING,
    Queue,
    Reach,
    Reading,
    body_of,
    moment,
    signature_problem,
    signature_state,
)
from acp_core.protocols.wire.schema import basics, observed
from acp_core.protocols.wire.schema.basics import (
    ANSWER,
    CANCEL,
    TERMINAL,
    Json,
    LogEntry,
    fields_of,
    objects,
    time_of,
)
from acp_core.protocols.wire.schema.bodies import in_line, shown_text
from acp_core.protocols.wire.schema.observed import Content, PeerSeen, People, Sender, Task

if TYPE_CHECKING:
    from acp_core.protocols.wire.read.folder import Placed

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
    asked = folder.questions(reading.tasks, reading.entries) if ours else {}
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
        verdict=Verdict.UNKNOWN if _unheard(reading) else kit_findings.verdict_of(findings),
        needs=needs,
        panels=panels(reading, names),
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


def _headline(reading: Reading, needs: tuple[Matter, ...]) -> str:
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
        said.append(needs[0].sentence)
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


def _need(task: Task, names: dict[str, str], asked: dict[str, str], reach: Reach | None) -> Matter:
    """What a peer asks for; it can be answered only while the agent runs."""
    who = names.get(task.peer_id)
    asking = f"{clean_name(who, 64)} needs input" if who else "input needed"
    question = asked.get(task.id, "")
    question = f"{question} ({task.about})" if question and task.about else question
    return decision(
        key=f"input:{task.id}:{clean_line(task.updated_at, 64)}",
        code="input_required",
        sentence=clean_line(f"{asking}: {question or task.about or task.id}"),
        participant=clean_name(who, 64) if who else None,
        since=task.since,
        act=ANSWER if reach is not None else None,
        given=(("task", task.id),) if reach is not None else (),
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


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
    people = folder.people_of(reading)
    for entry in reading.entries:
        message = folder.message_of(entry, people)
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
        context.at = folder.taken_down(entry, reading.written)
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
        cells = (who, *(str(counts[kind]) for kind in folder.KINDS))
        bad = counts[folder.WRONG]
        good = counts[folder.VERIFIED] and not (counts[folder.UNSIGNED] or counts[folder.OLD])
        tone = Tone.BLOCKED if bad else (Tone.DONE if good else Tone.OTHER)
        rows.append(Row(cells, tone=tone))
    columns = ("messages of", *folder.KINDS)
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


_STATES = {
    "submitted": Tone.START,
    "working": Tone.REVIEW,
    "completed": Tone.DONE,
    "failed": Tone.BLOCKED,
    "input_required": Tone.BLOCKED,
    "canceled": Tone.PASS,
}


class Timeline(Sequence[Event]):
    """The events of a log, each made when it is asked for.

    Args:
        entries: of the log.
        names: maps peers' ids to their names.
        own: the agent's name.
        written: when entries were written into the log, as far as that is known apart from what
            they say themselves.
        tasks: those that entries speak of, as far as they are known: who works on them, and what
            they are about.
    """

    def __init__(
        self,
        entries: tuple[LogEntry, ...],
        names: dict[str, str],
        own: str,
        written: Mapping[int, Placed] | None = None,
        tasks: Iterable[Task] = (),
    ) -> None:
        self._entries = entries
        self._names = tuple(sorted(names.items()))
        self._people = observed.people(own, names)
        self._written = written or {}
        self._tasks = {task.id: task for task in tasks}
        self._subjects: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        if isinstance(index, slice):
            return tuple(map(self._event, self._entries[index]))
        return self._event(self._entries[index])

    def _event(self, entry: LogEntry) -> Event:
        task, worker, about = self._tasks.get(entry.task_id or ""), "", ""
        if task is not None:
            worker = task.peer_id if task.direction == "delegated" else ""
            about = self._subjects.get(task.id) or self._subjects.setdefault(task.id, task.about)
        written = self._written.get(entry.seq)
        return _event(entry, self._names, self._people, written, worker, about)


class Recorded(Timeline):
    """The events of a log of which a recording knows the file.

    Args:
        lines: the line of that file, from 1, up to which each entry and what followed from it stand.
    """

    def __init__(
        self,
        entries: tuple[LogEntry, ...],
        names: dict[str, str],
        own: str,
        written: Mapping[int, Placed] | None = None,
        tasks: Iterable[Task] = (),
        *,
        lines: Sequence[int],
    ) -> None:
        super().__init__(entries, names, own, written, tasks)
        self._lines = lines

    def line_of(self, index: int) -> int:
        """See the class."""
        return self._lines[index]


def _claim(sender: Sender) -> str:
    """The name that a message bears and that is not its sender's, in words; "" where it bears none."""
    return f"says it is {clean_name(sender.claimed, 64)}" if sender.claimed else ""


@lru_cache(maxsize=20_000)
def _event(
    entry: LogEntry,
    names: tuple[tuple[str, str], ...],
    people: People,
    written: Placed | None,
    worker: str,
    about: str,
) -> Event:
    body, called = body_of(entry), dict(names)
    peer = called.get(str(body.get("peer_id") or body.get("_peer_id") or worker), "")
    kind, tone, actor, words = _described(entry, body, peer, people, about)
    wrong, sender = signature_problem(body), observed.sender(body, people)
    said = time_of(body.get("ts"))
    at, source = (said, "recorded" if said else "") if written is None else written[:2]
    if said and at and abs((said - at).total_seconds()) > FAR:
        words += (
            f" · dated {exact(said)} by its {'sender' if entry.kind in MESSAGE_KINDS else 'agent'}"
        )
    return Event(
        id=str(entry.seq),
        order=entry.seq,
        source="log",
        kind=clean_line(kind, 40),
        tone=tone,
        actor=clean_name(actor, 64),
        at=at,
        at_source=source,
        summary=clean_line(words),
        problem="; ".join(filter(None, (_claim(sender), wrong))) if wrong else "",
    )


def _described(
    entry: LogEntry, body: Json, peer: str, people: People, about: str
) -> tuple[str, Tone, str, str]:
    """Kind, tone, actor and words of an entry.

    Args:
        entry: of the log.
        body: its JSON object.
        peer: who it comes from, goes to or speaks of; "" where that is not known.
        people: who is known to the agent.
        about: what its task is about; "" where that is not known, and its id has to do.
    """
    own = people.own
    task = str(body.get("task_id") or "")
    subject = about or task
    if entry.kind == "acp.status":
        state = str(body.get("state"))
        words = f"{body['error']} [{subject}]" if body.get("error") else subject
        asked = state in ("submitted", "canceled")  # by who asks; the rest by who works
        theirs = body.get("direction") == ("received" if asked else "delegated")
        actor = peer if theirs and peer else own
        return f"task {state}", _STATES.get(state, Tone.OTHER), actor, words
    if entry.kind == "acp.artifact":
        artifact = basics.read_as(Content, body.get("artifact"))
        return "artifact", Tone.ACCEPT, peer or own, f"{artifact.text} [{subject}]"
    if entry.kind == "acp.peer":
        what = str(body.get("event"))
        name = str(body.get("name") or peer)
        if body.get("reason"):
            return what, Tone.BLOCKED, name, str(body["reason"])
        tone = Tone.START if what == "connected" else Tone.OTHER
        number = body.get("peer_count")
        return what, tone, name, f"{number} connected" if number is not None else name
    whom = peer if body.get("_direction") == "out" else own
    tone = Tone.SUBMIT if body.get("_direction") == "out" else Tone.REVISE
    what = "reply" if entry.kind == "acp.reply" else "message"
    what += f" to {whom}" if whom else ""
    words = in_line(shown_text(body.get("parts")))
    is_task = bool(about) and clean_line(words, len(about)) == about  # what was asked for
    if task and not is_task:
        words += f" [{subject}]"
    words += " · verified, but old" if signature_state(body) == OLD else ""
    sender = observed.sender(body, people)
    words = f"{_claim(sender)} · {words}" if sender.claimed else words
    return what, tone, sender.name, words


_WORK = ("submitted", "working")

_OVER = {state.value for state in TERMINAL}

_SOMEBODY = "somebody"


class _Open(NamedTuple):
    """Somebody is waited for."""

    who: str
    since: datetime | None
    event: str
    asking: bool  # input is waited for


def story(reading: Reading) -> Story:
    """The turns of a task are those of who works on it, and of who is asked for its input."""
    turns: list[PastTurn] = []
    waits: dict[str, _Open] = {}
    own = clean_name(reading.name, 64)
    names = {peer.id: called(peer, reading) for peer in reading.peers}
    for entry in reading.entries:
        body = folder.body_of(entry)
        task, state = text(body.get("task_id")), str(body.get("state"))
        if entry.kind != "acp.status" or task is None:
            continue
        at, event = time_of(body.get("ts")), str(entry.seq)
        wait = waits.get(task)
        asking = state == "input_required"
        if state not in _WORK and not asking and state not in _OVER:
            continue
        if wait is not None and (state in _OVER or wait.asking != asking):
            turns.append(_ended(wait, at, event, state))
            del waits[task]
        if task not in waits and state not in _OVER:
            waits[task] = _Open(_waited_for(body, asking, own, names), at, event, asking)
    turns += [_ended(wait, None, None, "") for wait in waits.values()]
    turns.sort(key=lambda turn: int(turn.since_event or 0))
    return Story(tuple(turns), _counts(reading))


def _ended(wait: _Open, at: datetime | None, event: str | None, state: str) -> PastTurn:
    canceled = state == "canceled"  # by who asked for the work: it ended without an event of theirs
    return PastTurn(
        wait.who, wait.since, wait.event, at, None if canceled else event,
        f"task {state}" if event and not canceled else "", "", 0,
    )  # fmt: skip


def _waited_for(body: Json, asking: bool, own: str, names: dict[str, str]) -> str:
    """Who works on a task, or, where it asks for input, who gave it."""
    peer = names.get(str(body.get("peer_id")), _SOMEBODY)
    direction = body.get("direction")
    if direction == "local":
        return own
    ours = (direction == "received") != asking
    return own if ours else peer


def _counts(reading: Reading) -> tuple[Count, ...]:
    """Messages of the entries that are read, and tasks by where they stand."""
    arrived = sent = wrong = 0
    for entry in reading.entries:
        message = folder.message_of(entry)
        if message is not None:
            arrived += message.arrived
            sent += not message.arrived
            wrong += message.arrived and message.signed == folder.WRONG
    tasks = Counter(task.status for task in reading.tasks)
    states = [
        Count(f"tasks {state.replace('_', ' ')}", number)
        for state, number in sorted(tasks.items())
        if state
    ]
    return (
        Count("messages sent", sent),
        Count("messages that arrived", arrived),
        Count("messages wrongly signed", wrong),
        Count("tasks", len(reading.tasks)),
        *states,
    )
