"""The state machine of a folder collaboration, a function of its event log, and the rules about its lines as they come (`LogCheck`).

Source: folder protocol specification, "Events", "Phases" and "Readiness Gate". An event
that is not legal is reported and still moves the state as if it were, because that is what
every other tool does with such a log. Standard library only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from acp_core.model.light import Any, NamedTuple
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import (
    ADVICE,
    DELIVERABLE_EVENTS,
    ERROR,
    LOG_FILE,
    SHOWN,
    V2,
    BadLine,
    Entry,
    Finding,
    list_in,
)

ACTIONS = {
    "proposal_submitted": "proposal submission",
    "review_submitted": "review submission",
    "proposal_revised": "proposal revision",
    "decision_proposed": "decision proposal",
    "question_classified": "question classification",
    "decision_accepted": "decision acceptance",
    "readiness_passed": "readiness pass",
    "completed": "completion",
    "deliverable_drafted": "deliverable draft",
    "deliverable_revised": "deliverable revision",
    "deliverable_frozen": "deliverable freeze",
}

ALLOWED_FROM = {
    "proposal_submitted": ("drafting", "revising"),
    "review_submitted": ("reviewing",),
    "proposal_revised": ("revising",),
    "decision_proposed": ("revising", "decision_review"),
    "question_classified": ("decision_review",),
    "decision_accepted": ("decision_review",),
    "readiness_passed": ("readiness_check",),
    "completed": ("readiness_check",),
    "deliverable_drafted": ("drafting", "revising", "decision_review"),
    "deliverable_revised": ("revising", "decision_review"),
    "deliverable_frozen": ("readiness_check",),
}

# Those that need little but the right phase and the right author.
_PLAIN = frozenset(
    ("proposal_submitted", "review_submitted", "proposal_revised", "decision_proposed", "question_classified")
)  # fmt: skip


class Illegal(NamedTuple):
    """A rule of the state machine that an event breaks; ``text`` is the whole message."""

    code: str
    text: str


class Stay(NamedTuple):
    """One stay in a phase: the seq and time (as written) of the events that began and ended it."""

    phase: str
    round: int
    seq: int | None
    at: str
    left_seq: int | None = None
    left_at: str = ""


class Wait(NamedTuple):
    """Since which event a participant has been waited for."""

    seq: int | None
    at: str


class Core(NamedTuple):
    """What decides which events are legal next, and what they lead to."""

    phase: str
    owner: str | None
    waiting: tuple[str, ...]
    to_review: frozenset[str]
    to_accept: frozenset[str]
    accepted: tuple[str, ...]
    accepted_ever: bool
    classified: bool
    passed: bool
    drafted: bool
    frozen: bool


class Machine:
    """The state that a log leads to. Feed it events in order; read its attributes.

    Attributes:
        phase: the current phase ("" before the first event).
        owner: the author of ``initialized``, or None.
        waiting: who is waited for, sorted.
        waits: for each of those, since when.
        began: phase -> the time, as written, at which the latest stay in it began.
        round: how many proposals were submitted for review.
        accepted: participants who accepted since the latest classification, in order.
        classified: whether questions were classified after the latest proposal or decision.
        passed, drafted, frozen: whether readiness was passed, the primary deliverable drafted, frozen.
        accepted_ever: whether any ``decision_accepted`` was seen.
        illegal: seq labels of events that were not legal.
        last: seq of the latest event of each kind.
        count: how many events were fed.
    """

    def __init__(self, participants: Sequence[str], dialect: str) -> None:
        self.participants = tuple(participants)
        self.dialect = dialect
        self._earlier: Callable[[], Machine] | None = None
        self.phase = ""
        self.owner: str | None = None
        self.waiting: list[str] = []
        self.waits: dict[str, Wait] = {}
        self._starts: list[tuple[str, int, int | None, str]] = []
        self.began: dict[str, str] = {}
        self.round = 0
        self._reviews: dict[int, str] = {}
        self.accepted: list[str] = []
        self.classified = False
        self.passed = False
        self.drafted = False
        self.frozen = False
        self.accepted_ever = False
        self.illegal: list[str] = []
        self.last: dict[str, int] = {}
        self.count = 0
        self._reviewers = sorted(self.participants)
        self._to_review: set[str] = set()  # whose review is still to come
        self._to_accept: set[str] = set()  # whose acceptance is still to come

    @property
    def starts(self) -> list[tuple[str, int, int | None, str]]:
        """When each stay in a phase began: phase, round, seq and time as written."""
        self._derive()
        return self._starts

    @property
    def reviews(self) -> dict[int, str]:
        """Seq of each ``review_submitted`` -> its author."""
        self._derive()
        return self._reviews

    def follow(self, earlier: Callable[[], Machine]) -> None:
        """Go on where the machine that is given stands; it is asked only for stays and reviews."""
        self._earlier = earlier

    def _derive(self) -> None:
        if self._earlier is not None:
            first = self._earlier()
            self._starts = [*first.starts, *self._starts]
            self._reviews = {**first.reviews, **self._reviews}
            self._earlier = None

    def noted(self) -> tuple[list[tuple[str, int, int | None, str]], dict[int, str]]:
        """Where to note the stays and reviews of events that are followed elsewhere."""
        return self._starts, self._reviews

    @property
    def stays(self) -> list[Stay]:
        """The stays in phases, oldest first; the last one lasts."""
        ends = [*((seq, at) for _, _, seq, at in self.starts[1:]), (None, "")]
        return [Stay(*start, *end) for start, end in zip(self.starts, ends, strict=False)]

    @property
    def ending(self) -> str:
        """How it ended: ``completed`` or ``blocked``, "" where it goes on.

        Nothing follows ``completed``: an event that does so all the same does not undo it.
        """
        if "completed" in self.last:
            return "completed"
        return "blocked" if self.phase == "blocked" else ""

    @property
    def has_reviewers(self) -> bool:
        """Whether anybody but the owner takes part."""
        return any(name != self.owner for name in self.participants)

    @property
    def accepting(self) -> bool:
        """Whether decisions can be accepted now, as far as the log says."""
        return self.classified and self.phase == "decision_review"

    def copy(self) -> Machine:
        """An independent machine in the same state."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        for name in (
            "waiting", "waits", "_starts", "began", "_reviews", "accepted", "illegal", "last"
        ):  # fmt: skip
            setattr(other, name, getattr(self, name).copy())
        other._to_review = set(self._to_review)
        other._to_accept = set(self._to_accept)
        return other

    def core(self) -> Core:
        """What decides about the next events."""
        return Core(
            self.phase,
            self.owner,
            tuple(self.waiting),
            frozenset(self._to_review),
            frozenset(self._to_accept),
            tuple(self.accepted),
            self.accepted_ever,
            self.classified,
            self.passed,
            self.drafted,
            self.frozen,
        )

    def stand(self, core: Core) -> None:
        """Stand where another machine of the same participants stood."""
        if core.owner != self.owner:
            self._reviewers = sorted(name for name in self.participants if name != core.owner)
        self.phase, self.owner = core.phase, core.owner
        self.waiting, self.accepted = list(core.waiting), list(core.accepted)
        self._to_review, self._to_accept = set(core.to_review), set(core.to_accept)
        self.accepted_ever, self.classified = core.accepted_ever, core.classified
        self.passed, self.drafted, self.frozen = core.passed, core.drafted, core.frozen

    def went(self, core: Core, events: int, rounds: int, since: Wait | None) -> None:
        """Stand where legal events have led that were followed elsewhere.

        Args:
            core: what decides about the next events.
            events: how many there were.
            rounds: how many proposals were submitted for review, from the first event on.
            since: since when those who are waited for now are; None where one of them answered
                and the others are waited for as before.
        """
        self.stand(core)
        self.count += events
        self.round = rounds
        if since is not None:
            self.waits = dict.fromkeys(core.waiting, since)
        else:
            self.waits = {name: self.waits[name] for name in core.waiting}

    def problems(self, entry: Entry) -> list[Illegal]:
        """The rules that ``entry`` would break as the next event; empty when it is legal."""
        event = entry.event
        if event in _PLAIN and self._is_plainly_legal(event, entry.sender):
            return []
        if event == "initialized":
            return self._initialized_problems(entry)
        if not self.count and self.owner is None:
            text = f"seq {entry.name}: {event} is not allowed from phase none"
            return [Illegal("ACP401", text)]
        if event not in ALLOWED_FROM or self._keeps_state(entry):
            return []
        phase = self.phase or "none"
        if phase not in ALLOWED_FROM[event]:
            text = f"seq {entry.name}: {event} is not allowed from phase {phase}"
            found = [Illegal("ACP401", text)]
        else:
            found = self._actor_problems(entry)
        found.extend(self._order_problems(entry))
        return found

    def _is_plainly_legal(self, event: str, sender: str) -> bool:
        if self.phase not in ALLOWED_FROM[event]:
            return False
        if event == "review_submitted":
            return sender in self._to_review
        if event == "proposal_submitted" and not (
            self._reviewers and (self.drafted or self.dialect != V2)
        ):
            return False
        return sender == self.owner

    def _keeps_state(self, entry: Entry) -> bool:
        """Whether the event is about a deliverable that the state does not depend on."""
        return entry.event in DELIVERABLE_EVENTS and (
            entry.role == "supporting" or self.dialect != V2
        )

    def _initialized_problems(self, entry: Entry) -> list[Illegal]:
        found = []
        if entry.seq != 1 or self.count:
            found.append(Illegal("ACP403", "initialized must be seq 1"))
        if entry.sender not in self.participants:
            text = f"seq {entry.name}: initialized participant is not listed in protocol.json"
            found.append(Illegal("ACP404", text))
        return found

    def _actor_problems(self, entry: Entry) -> list[Illegal]:
        if entry.event == "review_submitted":
            allowed = sorted(self._to_review)
        elif entry.event == "decision_accepted":
            if not self.classified:
                return []  # the order is what is wrong; nobody is being waited for yet
            allowed = sorted(self._to_accept)
        else:
            allowed = self._owners()
        if entry.sender in allowed:
            return []
        names = ", ".join(allowed) or "no participant"
        action = ACTIONS[entry.event]
        text = f"seq {entry.name}: {action} is reserved for {names}; got {entry.sender}"
        return [Illegal("ACP402", text)]

    def _order_problems(self, entry: Entry) -> list[Illegal]:
        event, n = entry.event, entry.name
        found: list[Illegal] = []
        if event == "proposal_submitted":
            if not self._reviewers:
                text = f"seq {n}: proposal_submitted requires at least one reviewer"
                found.append(Illegal("ACP405", text))
            if self.dialect == V2 and not self.drafted:
                text = f"seq {n}: proposal_submitted requires prior primary deliverable_drafted"
                found.append(Illegal("ACP409", text))
        elif event == "decision_accepted" and not self.classified:
            text = (
                f"seq {n}: decision_accepted requires question_classified "
                "after the latest proposal or decision"
            )
            found.append(Illegal("ACP406", text))
        elif event == "readiness_passed" and self.dialect == V2 and not self.frozen:
            text = f"seq {n}: readiness_passed requires primary deliverable_frozen"
            found.append(Illegal("ACP410", text))
        elif event == "completed":
            if not self.passed:
                text = f"seq {n}: completed requires a prior readiness_passed event"
                found.append(Illegal("ACP407", text))
            if entry.doc != "conclusion.md":
                text = f"seq {n}: completed must reference conclusion.md"
                found.append(Illegal("ACP408", text))
        elif event == "deliverable_revised" and self.frozen:
            text = f"seq {n}: deliverable_revised is not allowed after deliverable_frozen"
            found.append(Illegal("ACP411", text))
        elif event == "deliverable_frozen" and self.frozen:
            text = f"seq {n}: primary deliverable can be frozen only once"
            found.append(Illegal("ACP412", text))
        return found

    def feed(self, entry: Entry) -> list[Illegal]:
        """Take ``entry`` as the next event and return the rules that it breaks."""
        event, seq, before = entry.event, entry.seq, self.phase
        if event in _PLAIN and self._is_plainly_legal(event, entry.sender):
            found: list[Illegal] = []
        else:
            found = self.problems(entry)
            if found:
                self.illegal.append(entry.name)
        self.count += 1
        move = _MOVES.get(event)
        if move is not None:
            move(self, entry)
        if seq is not None:
            self.last[event] = seq
        phase = self.phase
        if phase != before:
            self._starts.append((phase, self.round or 1, seq, entry.at))
            self.began[phase] = entry.at
        return found

    def _initialized(self, entry: Entry) -> None:
        self._own(entry.sender)
        self._enter(entry, "drafting", self._owners())

    def _own(self, name: str) -> None:
        self.owner = name
        self._reviewers = sorted(each for each in self.participants if each != name)

    def _proposal_submitted(self, entry: Entry) -> None:
        self.round += 1
        if entry.sender != self.owner and entry.sender in self.participants:
            self._own(entry.sender)  # not legal, but what other tools derive from such a log
        self._enter(entry, "reviewing", self._reviewers)
        self._to_review = set(self._reviewers)
        self._unclassify()

    def _review_submitted(self, entry: Entry) -> None:
        if entry.seq is not None:
            self._reviews[entry.seq] = entry.sender
        self._answered(entry, self._to_review, "reviewing", "revising")

    def _revised(self, entry: Entry) -> None:
        self._enter(entry, "decision_review", self._owners())
        self._unclassify()

    def _question_classified(self, entry: Entry) -> None:
        self._enter(entry, "decision_review", sorted(self.participants))
        self.classified = True
        self.accepted = []
        self._to_accept = set(self.participants)

    def _decision_accepted(self, entry: Entry) -> None:
        self.accepted_ever = True
        if entry.sender not in self.accepted:
            self.accepted.append(entry.sender)
        self._answered(entry, self._to_accept, "decision_review", "readiness_check")

    def _readiness_passed(self, entry: Entry) -> None:
        self.passed = True
        self._enter(entry, "readiness_check", self._owners())

    def _ended(self, entry: Entry) -> None:
        self._enter(entry, entry.event, [])

    def _deliverable(self, entry: Entry) -> None:
        if not self._keeps_state(entry):
            self.drafted = self.drafted or entry.event == "deliverable_drafted"
            self.frozen = self.frozen or entry.event == "deliverable_frozen"

    def _enter(self, entry: Entry, phase: str, waiting: list[str]) -> None:
        self.phase = phase
        self.waiting = waiting.copy()
        since = tuple.__new__(Wait, (entry.seq, entry.at))  # as Wait(...), at half the cost
        self.waits = dict.fromkeys(waiting, since)
        if phase != "reviewing" and self._to_review:
            self._to_review = set()

    def _unclassify(self) -> None:
        """A new proposal or decision: what was accepted before no longer counts."""
        if self.classified or self.accepted or self._to_accept:
            self.classified = False
            self.accepted = []
            self._to_accept = set()

    def _answered(self, entry: Entry, pending: set[str], phase: str, then: str) -> None:
        """One of several has answered: the rest is waited for, or the owner takes over."""
        pending.discard(entry.sender)
        if not pending:
            self._enter(entry, then, self._owners())
            return
        self.phase = phase
        self.waiting = sorted(pending)
        since = Wait(entry.seq, entry.at)  # only where the event was not legal
        self.waits = {name: self.waits.get(name, since) for name in self.waiting}

    def _owners(self) -> list[str]:
        return [] if self.owner is None else [self.owner]


_MOVES: dict[str, Callable[[Machine, Entry], None]] = {
    "initialized": Machine._initialized,
    "proposal_submitted": Machine._proposal_submitted,
    "review_submitted": Machine._review_submitted,
    "proposal_revised": Machine._revised,
    "decision_proposed": Machine._revised,
    "question_classified": Machine._question_classified,
    "decision_accepted": Machine._decision_accepted,
    "readiness_passed": Machine._readiness_passed,
    "completed": Machine._ended,
    "blocked": Machine._ended,
    **dict.fromkeys(DELIVERABLE_EVENTS, Machine._deliverable),
}


def derive(
    entries: Iterable[Entry], participants: Sequence[str], dialect: str
) -> tuple[Machine, list[tuple[Entry, Illegal]]]:
    """The state that a log leads to, and the rules that its events break, in order."""
    machine = Machine(participants, dialect)
    found = [(entry, problem) for entry in entries for problem in machine.feed(entry)]
    return machine, found


def fields_after(
    protocol: dict[str, Any],
    machine: Machine,
    first: Entry | None,
    last: Entry | None,
    frozen: set[str | None],
) -> dict[str, Any]:
    """protocol.json as it must be after a log of these events.

    Args:
        protocol: as it is; every key that is not derived is kept.
        machine: the state that the log leads to.
        first, last: its first and last event.
        frozen: the supporting deliverables that were frozen.
    """
    fields = dict(protocol)
    fields["currentPhase"] = machine.phase or "drafting"
    fields["proposalOwner"] = machine.owner or next(iter(machine.participants), "")
    fields["waitingFor"] = list(machine.waiting)
    if first is not None and last is not None:
        fields["updatedAt"] = last.at
        fields.setdefault("createdAt", first.at)
    if frozen and isinstance(fields.get("deliverables"), dict):
        fields["deliverables"] = _with_frozen_marked(fields, frozen)
    return fields


SUPPORTING_FROZEN = ("deliverable_frozen", "supporting")


def _with_frozen_marked(protocol: dict[str, Any], frozen: set[str | None]) -> dict[str, Any]:
    """The deliverables, with those marked frozen that were frozen by an event."""
    from acp_core.protocols.folder.schema import deliverables

    block = dict(protocol["deliverables"])
    items = [*list_in(block, "supporting")]
    declared = iter(deliverables.declare(protocol).supporting)
    for position, item in enumerate(items[: deliverables.MAX_DELIVERABLES]):
        if isinstance(item, dict) and next(declared).reference in frozen:
            items[position] = item | {"frozen": True}
    return block | {"supporting": items}


_ADVISED = ("ACP901", "ACP902", "ACP954")  # faults of a line that every other reader accepts

_TO_LOOK_AT = frozenset(
    {"initialized", "readiness_passed", "completed", *records.DELIVERABLE_EVENTS}
)

_NAMED = (*records.DOCUMENTS, records.PROTOCOL_FILE, "")

_PLAIN_DOCUMENTS = frozenset({*_NAMED[:-1], None})


class LogCheck:
    """Checks each line of a log by itself and against the ones before it.

    Of each code only the first findings are kept; `left_out` counts the rest.

    Attributes:
        findings: in the order of the lines.
        bad_lines: the lines that are no events.
        regular: whether the events bear the seqs 1, 2, 3 and so on, without a bad line.
        unread: the bad lines since the last event.
        expected: the seq that comes next, None where that cannot be said.
        last_at: the time of the last event, in the one form that sorts as text, else "".
        plain_events: the events of which the state machine says all there is to say.
        plain_documents: likewise, documents as a line names them.
    """

    plain_documents = frozenset(name.encode() for name in _NAMED)

    def __init__(self, participants: Sequence[str], dialect: str) -> None:
        self.findings: list[Finding] = []
        self.bad_lines: list[BadLine] = []
        self.regular = True
        self.unread = 0
        self.count = 0
        self.left_out: Counter[str] = Counter()
        self._kept: Counter[str] = Counter()
        self._participants = frozenset(participants)
        self._events = frozenset(records.events_of(dialect))
        self._delivers = dialect == records.V2
        self.plain_events = self._events - _TO_LOOK_AT
        self.expected: int | None = 1
        self._ended = False  # whether something was completed: whatever follows is odd
        self._seen: set[int] | None = None  # only once the seqs are irregular
        self.last_at = ""
        self._last_time: datetime | None = None

    def copy(self) -> LogCheck:
        """An independent check in the same state."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        for name in ("findings", "bad_lines", "left_out", "_kept", "_seen"):
            value = getattr(self, name)
            setattr(other, name, None if value is None else value.copy())
        return other

    @property
    def broken(self) -> Finding | None:
        """The first line that can never be right again, since earlier events are not rewritten."""
        return next((each for each in self.findings if each.severity == ERROR), None)

    @property
    def is_usual(self) -> bool:
        """Whether of a usual next line (see `lines`) nothing may have to be said."""
        return self.regular and not self._ended and bool(self.last_at)

    def took(self, events: int, at: str) -> None:
        """So many usual events were taken, the last one at this time: nothing is said of them."""
        assert self.expected is not None
        self.expected += events
        self.count += events
        self.last_at = at

    def stand(self, events: int, at: str, ended: bool) -> None:
        """Stand where so many events have led of which nothing is to be said.

        Args:
            events: how many.
            at: the time of the last one.
            ended: whether one of them was ``completed``.
        """
        self.took(events, at)
        self._ended = ended

    def is_plain(self, entry: Entry) -> bool:
        """Take an event of which nothing is to be said; False leaves it to `take`."""
        _, seq, sender, event, at, summary, doc, reply_to, _, _, _, faults, _ = entry
        if (
            seq is None
            or seq != self.expected
            or faults
            or reply_to is None
            or reply_to >= seq
            or not self.regular
            or self._ended
            or event not in self.plain_events
            or sender not in self._participants
            or doc not in _PLAIN_DOCUMENTS
            or len(summary) > records.MAX_SUMMARY
            or not summary.strip()
            or not _is_canonical(at)
            or not self.last_at
            or at < self.last_at
        ):
            return False
        self.expected = seq + 1
        self.last_at = at
        self.count += 1
        return True

    def take_bad_line(self, bad: BadLine) -> None:
        """Take a line that is no event."""
        if len(self.bad_lines) < 10 * SHOWN:
            self.bad_lines.append(bad)
        self._add(bad.code, bad.text, bad.line, None)
        self.unread += 1
        self.expected = None
        self._become_irregular()

    def take_illegal(self, entry: Entry, illegal: Sequence[Illegal]) -> str:
        """Note the rules of the state machine that an event breaks; returns them as one text."""
        for rule in illegal:
            self._add(rule.code, rule.text, entry.line, entry.seq)
        return "; ".join(rule.text for rule in illegal)

    def take_owner(self, entry: Entry, before: str) -> None:
        """Note that an event of somebody else made its author the proposal's owner."""
        text = f"seq {entry.name}: {entry.sender!r} owns the proposal from here on, no longer {before!r}"
        self._add("ACP953", text, entry.line, entry.seq, ADVICE)

    def take(self, entry: Entry, before: Machine) -> str:
        """Take an event, ``before`` being the state before it; returns what is wrong with it."""
        wrong = [
            *self._wrong_fields(entry),
            *self._wrong_seq(entry),
            *self._wrong_reply(entry),
            *self._wrong_time(entry),
            *self._wrong_deliverable(entry),
        ]
        for code, text in wrong:
            self._add(code, text, entry.line, entry.seq)
        for code, text in _advice(entry, before):
            self._add(code, text, entry.line, entry.seq, ADVICE)
        self.count += 1
        self.unread = 0
        self._ended = self._ended or entry.event == "completed"
        if self._seen is not None and entry.seq is not None:
            self._seen.add(entry.seq)
        return "; ".join(text for _, text in wrong)

    def _add(self, code: str, text: str, line: int, seq: int | None, severity: str = ERROR) -> None:
        if self._kept[code] >= SHOWN:
            self.left_out[code] += 1
            return
        self._kept[code] += 1
        self.findings.append(Finding(code, text, severity, LOG_FILE, line, seq))

    def _wrong_fields(self, entry: Entry) -> Iterator[tuple[str, str]]:
        name = entry.name
        for fault in entry.faults:
            if fault.code not in _ADVISED:
                yield fault.code, f"seq {name}: {fault.text}"
        if entry.event not in self._events and not _is_said(entry, "ACP211", "event"):
            yield "ACP211", f"seq {name}: unknown event {entry.event!r}"
        unlisted = entry.sender not in self._participants
        if entry.event == "initialized":
            unlisted = False  # the state machine says so
        if unlisted and not _is_said(entry, "ACP212", "from"):
            text = f"participant {entry.sender!r} is not listed in protocol.json"
            yield "ACP212", f"seq {name}: {text}"

    def _wrong_seq(self, entry: Entry) -> Iterator[tuple[str, str]]:
        expected, seq = self.expected, entry.seq
        missing = seq is None and not entry.label
        if expected is not None and seq != expected:
            self._become_irregular()
            if not missing:  # a missing one has been said
                yield "ACP215", f"{LOG_FILE}: expected seq {expected}, found {entry.name}"
        elif expected is None and seq is None and not missing:
            yield "ACP215", f"{LOG_FILE}: found seq {entry.name}"
        if seq is not None:
            self.expected = seq + 1
        elif expected is not None:
            self.expected = expected + 1

    def _become_irregular(self) -> None:
        if self.regular:
            self.regular = False
            self._seen = set(range(1, self.count + 1))

    def _wrong_reply(self, entry: Entry) -> Iterator[tuple[str, str]]:
        reply_to, seq, name = entry.reply_to, entry.seq, entry.name
        if reply_to is None:
            said = _is_said(entry, "ACP213", "reply_to")
            if entry.event != "initialized" and not said:
                yield "ACP216", f"seq {name}: reply_to is required after initialized"
            return
        if self._seen is None:
            exists = seq is not None and reply_to < seq
        else:
            exists = reply_to in self._seen and reply_to != seq
        if not exists:
            yield "ACP213", f"seq {name}: reply_to must point to an earlier event"

    def _wrong_time(self, entry: Entry) -> Iterator[tuple[str, str]]:
        if _is_said(entry, "ACP214", "at"):
            return
        moment = records.parse_time(entry.at)
        if moment is None or not _has_zone(entry.at):
            yield "ACP214", f"seq {entry.name}: at must be an ISO-8601 timestamp"
            return
        last = records.parse_time(self.last_at) if self.last_at else self._last_time
        if last is not None and moment < last:
            yield "ACP217", f"seq {entry.name}: at must not be earlier than the previous event"
        self.last_at = entry.at if _is_canonical(entry.at) else ""
        self._last_time = moment

    def _wrong_deliverable(self, entry: Entry) -> Iterator[tuple[str, str]]:
        """A deliverable's event that does not say of which, in which role, or frozen as what."""
        if not self._delivers or entry.event not in records.DELIVERABLE_EVENTS:
            return
        name = entry.name
        if entry.role not in ("primary", "supporting"):
            yield "ACP501", f"seq {name}: deliverable events require role"
        if not entry.doc:
            yield "ACP502", f"seq {name}: deliverable events require doc"
        if entry.event == "deliverable_frozen" and not records.is_digest(entry.sha256):
            yield "ACP503", f"seq {name}: deliverable_frozen requires sha256"


def _is_said(entry: Entry, code: str, field: str) -> bool:
    """Whether reading the line has found the field missing or of a wrong type."""
    missing = f"missing required field {field}"
    return any(fault.code == code or fault.text == missing for fault in entry.faults)


def _is_canonical(at: str) -> bool:
    """Whether a time has the form that every tool writes, in which order is that of text."""
    if len(at) != 20 or at[4::3] != "--T::Z":  # YYYY-MM-DDTHH:MM:SSZ
        return False
    try:
        datetime.fromisoformat(at)
    except ValueError:
        return False
    return True


def _advice(entry: Entry, before: Machine) -> Iterator[tuple[str, str]]:
    """What every other reader accepts, but is a sign of trouble."""
    name = entry.name
    for fault in entry.faults:
        if fault.code in _ADVISED:
            yield fault.code, f"seq {name}: {fault.text}"
    if len(entry.summary) > records.MAX_SUMMARY:
        yield "ACP903", f"seq {name}: the summary is longer than {records.MAX_SUMMARY} characters"
    elif not entry.summary.strip() and not _is_said(entry, "ACP902", "summary"):
        yield "ACP903", f"seq {name}: the summary is empty"
    if entry.doc is not None and leads_out(entry.doc):
        yield "ACP904", f"seq {name}: doc {entry.doc!r} points outside the folder"
    readable = records.parse_time(entry.at) is not None and _has_zone(entry.at)
    if readable and not _is_canonical(entry.at):
        yield "ACP905", f"seq {name}: at {entry.at!r} is not UTC with whole seconds and Z"
    if "completed" in before.last:
        yield "ACP907", f"seq {name}: {entry.event} after completed"
    elif entry.event == "readiness_passed" and before.passed:
        yield "ACP908", f"seq {name}: readiness was passed before"


def leads_out(doc: str) -> bool:
    """Whether a ``doc`` names something outside the collaboration's folder."""
    if doc.startswith("external:"):
        return ".." in doc.removeprefix("external:").replace("\\", "/").split("/")
    parts = doc.replace("\\", "/").split("/")
    return doc.startswith(("/", "\\", "~")) or ".." in parts or "\0" in doc or doc[1:2] == ":"


def _has_zone(at: str) -> bool:
    """Whether a time that can be read names its offset from UTC."""
    return at.endswith("Z") or datetime.fromisoformat(at).tzinfo is not None
