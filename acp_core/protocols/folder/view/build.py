"""Puts a Snapshot together; parts that did not change stay the same objects.

For the inbox also what reviewers ask, and what readiness.md has not settled.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from acp_core.model import (
    Finding,
    Gate,
    Link,
    Matter,
    Severity,
    Snapshot,
    Source,
    SourceState,
    Status,
    Turn,
    Verdict,
)
from acp_core.model.light import TYPE_CHECKING
from acp_core.model.matter import OWNER, Move, Mover, decision, question, remark
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.folder.matters import causes
from acp_core.protocols.folder.read import current_state
from acp_core.protocols.folder.read.current_state import (
    continued_in,
    current_phase,
    lineage,
    progress,
)
from acp_core.protocols.folder.read.facts import MISSING, Facts
from acp_core.protocols.folder.read.log import Entries, History
from acp_core.protocols.folder.rules import checks
from acp_core.protocols.folder.rules.checks import is_behind, nearest
from acp_core.protocols.folder.rules.unrecoverable_log import remedy
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.documents import OVER, READY, Asked, Item, Readiness, Review
from acp_core.protocols.folder.schema.records import (
    ANSWER_QUESTION,
    INVALID,
    LOG_FILE,
    SETTLE_QUESTIONS,
    UNKNOWN_DIALECT,
    V2,
    Report,
    is_shared,
    text_in,
)
from acp_core.protocols.folder.schema.records import Finding as RuleFinding
from acp_core.protocols.folder.view import timeline
from acp_core.protocols.folder.view.story import ReviewPoints
from acp_core.protocols.folder.view.timeline import ID, EventLog, Rail
from acp_core.protocols.kit.snapshots import with_parts_of

if TYPE_CHECKING:
    from acp_core.stores.engine import Acting

_OBJECTIVE = 2_000

_STATUS = {"completed": Status.COMPLETED, "blocked": Status.BLOCKED, "": Status.UNKNOWN}


class Builder:
    """Makes one Snapshot after the other of one folder.

    Args:
        folder: The folder's absolute path, as it is.
        humans: Ids of participants that are people, beside those that protocol.json names.
        diagnose: Looks for damage that a repair mends; asked where a file cannot be read.
    """

    def __init__(self, folder: str, humans: frozenset[str], diagnose: causes.Diagnose) -> None:
        self._folder = folder
        self._diagnose = diagnose
        self._humans = humans
        self._rail = Rail()
        self._trouble = Trouble()
        self._points = ReviewPoints()
        self._events = EventLog(Entries(), {}, {})
        self._events_of: History | None = None
        self._review: Review | None = None
        self._headings: dict[int, int] = {}
        self._lineage: tuple[Link, ...] = ()
        self._lineage_for: object = None
        self._last: Snapshot | None = None

    def snapshot(self, facts: Facts, now: datetime) -> Snapshot:
        """The Snapshot of what was read; the very last one where nothing changed."""
        last = self._last
        if last is not None and facts.unsettled:
            made = replace(
                last,
                source=Source(SourceState.STALE, clean_line(facts.unsettled)),
                recheck_at=timeline.moment(facts.recheck),
            )
        else:
            made = self._build(facts, now)
        self._last = made if last is None else with_parts_of(last, made)
        return self._last

    def _build(self, facts: Facts, now: datetime) -> Snapshot:
        machine = facts.history.machine
        seconds = now.timestamp()
        self._trouble.judge(facts, seconds)
        events = self._event_log(facts)
        kinds = timeline.kinds(facts, self._humans)
        links = self._links(facts)
        continued = continued_in(links)
        left = bool(continued) and facts.takes_no_more  # nobody can act here any more
        turns = () if left else timeline.turns(facts, now)
        documents = timeline.documents(facts)
        times = [records.parse_time(entry.at) for entry in facts.history.entries[:1]]
        last = facts.history.last
        began = machine.starts[-1][3] if machine.starts else ""
        rechecks = [at for at in (facts.recheck, self._trouble.recheck) if at is not None]
        protocol = facts.protocol or {}
        return Snapshot(
            key=self._folder,
            protocol="folder",
            dialect=facts.dialect if facts.protocol is not None else "unknown",
            name=clean_line(os.path.basename(self._folder) or self._folder, 200),
            objective=clean_line(text_in(protocol, "objective"), _OBJECTIVE),
            location=clean_line(self._folder, 4_096),
            as_of=now,
            headline=_headline(facts, continued if left else ""),
            summary=_summary(facts),
            status=_STATUS.get(machine.phase, Status.BLOCKED if left else Status.ACTIVE),
            phase=machine.phase,
            source=_source(facts),
            verdict=Verdict.UNKNOWN if facts.unsettled else self._trouble.verdict,
            progress=progress(machine),
            round=machine.round or None,
            doubt=_doubt(facts),
            phases=self._rail.phases(machine),
            participants=timeline.participants(facts, kinds, facts.history.latest, events),
            turns=turns,
            next_actions=timeline.next_actions(facts, now),
            events=events,
            documents=documents,
            outcome=timeline.OUTCOME,
            gates=gates(facts),
            panels=() if facts.dialect == UNKNOWN_DIALECT else self._points.panels(facts),
            findings=self._trouble.findings(facts, events),
            needs=self._needs(facts, kinds, turns, links, seconds),
            questions=questions(facts),
            obstacles=causes.obstacles(facts, self._diagnose, now, continued),
            notices=(*_rewritten(facts), *timeline.notices(documents)),
            lineage=links,
            since=records.parse_time(began) if began else None,
            started=times[0] if times else None,
            changed=records.parse_time(last.at) if last else None,
            recheck_at=timeline.moment(min(rechecks)) if rechecks else None,
            run_id=_run_id(facts),
            hosts=_hosts(self._folder, turns),
        )

    def _event_log(self, facts: Facts) -> EventLog:
        """The events; a new object only where events, or headings of reviews, were added."""
        history, review = facts.history, facts.review
        moved = review is not self._review
        if moved:
            self._review = review
            self._headings = {h.seq: h.line for h in review.headings.values()} if review else {}
        if moved or history is not self._events_of or len(history.entries) != len(self._events):
            before = self._events if history is self._events_of else None
            self._events = EventLog(history.entries, history.problems, self._headings, before)
            self._events_of = history
        return self._events

    def _links(self, facts: Facts) -> tuple[Link, ...]:
        if facts.protocol is not self._lineage_for:
            self._lineage = lineage(facts.protocol, self._folder)
            self._lineage_for = facts.protocol
        return self._lineage

    def _needs(
        self,
        facts: Facts,
        kinds: dict[str, str],
        turns: tuple[Turn, ...],
        links: tuple[Link, ...],
        now: float,
    ) -> tuple[Matter, ...]:
        if facts.unsettled or facts.dialect == UNKNOWN_DIALECT:
            return ()
        humans = frozenset(
            clean_name(name, timeline.ID) for name, kind in kinds.items() if kind == "human"
        )
        return (
            *blocked_need(facts, links),
            *(() if continued_in(links) else self._trouble.needs(facts, now)),
            *turn_needs(turns, humans, current_state.event_of_turn(facts)),
        )


def _source(facts: Facts) -> Source:
    if not os.path.isdir(facts.folder):
        return Source(SourceState.UNREACHABLE, "the folder is gone")
    if facts.unsettled:
        return Source(SourceState.STALE, clean_line(facts.unsettled))
    problems = []
    if facts.protocol_problem:
        problems.append(f"protocol.json: {facts.protocol_problem}")
    if facts.log_problem:
        problems.append(f"events.jsonl: {facts.log_problem}")
    if facts.newer_share:
        problems.append(facts.newer_share)
    if facts.strange_share:
        problems.append(facts.strange_share)
    if problems:
        return Source(SourceState.STALE, clean_line("; ".join(problems)))
    over = facts.history.machine.phase == "completed"  # nothing more comes
    if not over and records.is_shared(facts.folder):
        from acp_core.protocols.folder.matters import store  # late: most folders are not shared

        if late := store.note(facts.folder):
            return Source(SourceState.STALE, late)
    return Source()


def _hosts(folder: str, turns: tuple[Turn, ...]) -> tuple[str, ...]:
    """The hosts on which participants act, where the folder is shared."""
    if not is_shared(folder):
        return ()
    from acp_core.stores.base import read_leases
    from acp_core.stores.engine import Acting

    leases = read_leases(folder).values()
    return hosts_of([Acting(each.participant, each.host, each.account) for each in leases], turns)


def _run_id(facts: Facts) -> str:
    """What tells this log from others that stood at the same place: when it was begun."""
    first = next(iter(facts.history.entries), None)
    return clean_line(first.at, 100) if first and first.event == "initialized" else ""


def _doubt(facts: Facts) -> str:
    illegal = facts.history.machine.illegal
    if facts.dialect == UNKNOWN_DIALECT:
        return "unknown schemaVersion"
    if facts.protocol is None:
        return "protocol.json cannot be read: the participants are taken from the log"
    if illegal:
        more = f" (and {len(illegal) - 1} more)" if len(illegal) > 1 else ""
        return f"seq {clean_line(illegal[0], 40)} is illegal{more}"
    if facts.history.check.bad_lines:
        return "the log contains lines that are not events"
    return ""


def _headline(facts: Facts, left_for: str = "") -> str:
    """One plain sentence; how long it has lasted is left to the screens.

    Args:
        facts: the collaboration.
        left_for: the folder in which it goes on where nobody can act here, "" elsewhere.
    """
    machine = facts.history.machine
    if facts.dialect == UNKNOWN_DIALECT:
        version = clean_line(repr((facts.protocol or {}).get("schemaVersion")), 40)
        return f"unknown schemaVersion {version}: shown as far as acp can read it."
    if facts.protocol is None and facts.protocol_problem and not machine.phase:
        why = "is missing" if facts.protocol_problem == MISSING else "cannot be read"
        return f"protocol.json {why}."
    if machine.phase == "completed":
        outcomes = facts.conclusion.outcomes if facts.conclusion else ()
        return (
            f"completed: {outcomes[0][0].replace('_', ' ')}."
            if len(outcomes) == 1
            else "completed."
        )
    if machine.phase == "blocked":
        return _blocked(facts)
    if not machine.phase:
        return "no events yet."
    if left_for:
        return f"{_summary(facts)}; continued in {clean_line(left_for, 300)}."
    shown = tuple(clean_name(name, 60) for name in machine.waiting)
    return f"{_summary(facts)}. Waiting for {timeline.names(shown)}."


def _summary(facts: Facts) -> str:
    """Phase and round, where the headline says more than that."""
    machine = facts.history.machine
    known = facts.dialect != UNKNOWN_DIALECT and machine.phase
    if not known or machine.phase == "completed":
        return ""
    number = f", round {machine.round}" if machine.round > 1 else ""
    return machine.phase.replace("_", " ") + number


def _blocked(facts: Facts) -> str:
    blockers = facts.history.blockers
    if not blockers:
        return "blocked."
    entry, more = blockers[0], f" (and {len(blockers) - 1} more)" if len(blockers) > 1 else ""
    phase = current_phase(facts.history.machine).replace("_", " ")
    where = f" in {phase}" if phase else ""
    return (
        f"blocked{where} by {clean_name(entry.sender, 60)}: {clean_line(entry.summary, 200)}{more}"
    )


def _rewritten(facts: Facts) -> tuple[Matter, ...]:
    if not facts.rewritten:
        return ()
    at, reason = facts.rewritten[-1]
    text = f"events.jsonl was {reason}: recorded history has changed"
    return (remark("rewritten", text, records.LOG_FILE, datetime.fromtimestamp(at, UTC)),)


SETTLE = 2.0

REWRITTEN = "ACP921"

_LAG = frozenset({"ACP150", "ACP151", "ACP920"})

_REPAIRABLE = frozenset(
    {"ACP101", "ACP110", "ACP111", "ACP112", "ACP118", "ACP119", "ACP150", "ACP151",
     "ACP205", "ACP207", "ACP301", "ACP906", "ACP920"}
)  # fmt: skip

_VERDICTS = (Verdict.VALID, Verdict.WARNINGS, Verdict.INVALID)

_MESSAGE = 1_000


class Trouble:
    """Findings, verdict and needs of one collaboration, with the clock in mind.

    Attributes:
        report: what the rules say, without a lag that is younger than `SETTLE`.
        recheck: when to look again although nothing changes, in seconds since 1970, or None.
    """

    def __init__(self) -> None:
        self.report = Report(())
        self.recheck: float | None = None
        self._first = True
        self._lag_since: float | None = None
        self._invalid_since: float | None = None

    def judge(self, facts: Facts, now: float) -> None:
        """Let the rules speak about what was read."""
        self.recheck = None
        report = checks.judge(facts)
        began = _newest(facts, now) if self._first else now
        self._first = False
        findings: tuple[RuleFinding, ...] = report.findings
        if any(f.code in _LAG for f in findings) and is_behind(facts):
            self._lag_since = self._lag_since if self._lag_since is not None else began
            if self._too_young(self._lag_since, now):
                report = Report(f for f in findings if f.code not in _LAG)
        else:
            self._lag_since = None
        if report.verdict == INVALID:
            if self._invalid_since is None:
                lags = self._lag_since is not None and self._only_lags(report)
                self._invalid_since = self._lag_since if lags else began
            if facts.lines.broken is None:  # what is wrong with a whole line stays wrong
                self._too_young(self._invalid_since or began, now)
        else:
            self._invalid_since = None
        self.report = report

    def _too_young(self, since: float, now: float) -> bool:
        until = since + SETTLE
        if now < until:
            self.recheck = until if self.recheck is None else min(self.recheck, until)
            return True
        return False

    @property
    def verdict(self) -> Verdict:
        """The verdict in the Snapshot's words."""
        return _VERDICTS[self.report.verdict]

    @staticmethod
    def _only_lags(report: Report) -> bool:
        return all(finding.code in _LAG for finding in report.errors)

    def findings(self, facts: Facts, events: EventLog) -> tuple[Finding, ...]:
        """What the rules say, and what happened to the log since it was opened."""
        session = [
            Finding(
                REWRITTEN,
                Severity.ADVICE,
                f"events.jsonl was {reason} after it was read: recorded history has changed",
                LOG_FILE,
                explanation=_about(REWRITTEN)[0],
                remedy=_about(REWRITTEN)[1],
            )
            for _, reason in facts.rewritten[-3:]
        ]
        return (*(_as_finding(finding, events) for finding in self.report.findings), *session)

    def needs(self, facts: Facts, now: float) -> tuple[Matter, ...]:
        """A need for a folder that is invalid, or whose protocol.json lags, for too long."""
        since, broken = self._invalid_since, facts.lines.broken is not None
        if since is None or (now < since + SETTLE and not broken):
            return ()
        errors = self.report.errors
        moment = datetime.fromtimestamp(since, UTC)
        if self._only_lags(self.report) and self._lag_since is not None:
            last = facts.history.last
            return (
                decision(
                    key=f"lagging:{clean_line(last.name) if last else ''}",
                    code="lagging",
                    sentence="protocol.json is out of date with the event log: agents may wait for the wrong participant",
                    since=moment,
                    act="repair",
                ),
            )
        from acp_core.protocols.kit.diagnosis import mark  # late: most folders are valid

        codes = sorted({finding.code for finding in errors})
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        about = mark(f"{each.code} {each.message}" for each in errors)
        return (
            decision(
                key=f"invalid:{','.join(codes)}:{about}",
                code="invalid",
                sentence=f"invalid: {clean_line(errors[0].message, 200)}{more}",
                since=moment,
                act=_way_out(facts, codes),
            ),
        )


def _way_out(facts: Facts, codes: list[str]) -> str | None:
    """The action that helps."""
    if facts.takes_no_more or facts.lines.broken is not None:
        return remedy(facts.lines, takes_no_more=facts.takes_no_more) or None
    return None if _REPAIRABLE.isdisjoint(codes) else "repair"


def blocked_need(facts: Facts, links: tuple[Link, ...]) -> tuple[Matter, ...]:
    """A need for a blocked collaboration, until it was continued elsewhere."""
    machine = facts.history.machine
    if machine.phase != "blocked" or any(link.relation == "continued_by" for link in links):
        return ()
    blockers = facts.history.blockers
    if not blockers:
        return ()
    entry, more = blockers[0], f" (and {len(blockers) - 1} more)" if len(blockers) > 1 else ""
    who, why = clean_name(entry.sender, 100), clean_line(entry.summary, 300) + more
    return (
        decision(
            key=f"blocked:{clean_line(blockers[-1].name)}",
            code="blocked",
            sentence=f"blocked by {who}: {why}",
            participant=who,
            since=records.parse_time(entry.at),
            act="continue",
        ),
    )


def turn_needs(turns: tuple[Turn, ...], humans: frozenset[str], action: str) -> tuple[Matter, ...]:
    """A need for each person whose turn it is; ``humans`` are ids as they are shown."""
    return tuple(
        decision(
            key=f"turn:{turn.participant}:{turn.since_event}",
            code="turn",
            sentence=f"{turn.participant} must {turn.what}",
            participant=turn.participant,
            since=turn.since,
            act=action or None,
        )
        for turn in turns
        if turn.participant in humans
    )


def _as_finding(finding: RuleFinding, events: EventLog) -> Finding:
    event = None
    if finding.file == LOG_FILE and finding.line is not None:
        event = events.id_at_line(finding.line)
    elif finding.seq is not None and events.find(str(finding.seq)) is not None:
        event = str(finding.seq)
    explanation, remedy = _about(finding.code)
    return Finding(
        code=finding.code,
        severity=Severity(finding.severity),
        message=clean_line(finding.message, _MESSAGE),
        document=clean_line(finding.file, 300) if finding.file else None,
        line=finding.line,
        event=event,
        explanation=explanation,
        remedy=remedy,
        action="repair" if finding.code in _REPAIRABLE else None,
    )


def _about(code: str) -> tuple[str, str]:
    from acp_core.protocols.folder.rules.codes import about

    return about(code)


def _newest(facts: Facts, now: float) -> float:
    """When a file last changed: since then the folder is as it is."""
    times = [file.modified for file in (*facts.files.values(), *facts.others.values())]
    return min(now, max((time for time in times if time is not None), default=now))


READINESS = "readiness.md"

REVIEW = "review.md"

RECENT = 2_000  # events among which a review's time is looked for

_TEXT = 500

_NAME = 160  # characters of a question in its name


def questions(facts: Facts) -> tuple[Matter, ...]:
    """Blocking items first, then unresolved ones, then what the latest reviews ask.

    A review's questions are open until they are answered, or the proposal is revised after it.
    """
    machine = facts.history.machine
    if facts.dialect == UNKNOWN_DIALECT or machine.phase in OVER:
        return ()
    return (*_unsettled(facts), *_asked(facts))


def _unsettled(facts: Facts) -> tuple[Matter, ...]:
    readiness = facts.readiness
    if readiness is None:
        return ()
    machine = facts.history.machine
    due = machine.phase in ("decision_review", "readiness_check")
    return (
        *(_item(item, "blocking", facts) for item in readiness.blocking),
        *(
            _item(item, "unresolved", facts)
            for item in readiness.unresolved
            if item.text and readiness.awaits(item, due=due)
        ),
    )


def _to_answer(facts: Facts) -> Move:
    """Whose move an open question is: the owner's, who revises and classifies."""
    owner = facts.history.machine.owner
    return Move(Mover.PARTICIPANT, clean_name(owner, timeline.ID)) if owner else OWNER


def _item(item: Item, code: str, facts: Facts) -> Matter:
    return question(
        key=f"{code}:{_digest(item.text)}",
        code=code,
        sentence=clean_line(item.text, _TEXT),
        document=READINESS,
        line=item.line,
        act=SETTLE_QUESTIONS,
        move=_to_answer(facts),
    )


def _asked(facts: Facts) -> tuple[Matter, ...]:
    review, machine = facts.review, facts.history.machine
    if review is None or not review.questions:
        return ()
    revised = machine.last.get("proposal_revised") or 0
    happened = {
        entry.seq: entry
        for entry in facts.history.entries[-RECENT:]
        if entry.event == "review_submitted"
    }
    shown = []
    for asked in review.questions:
        entry = happened.get(asked.seq)
        if entry is None or asked.seq <= revised or asked.answered:
            continue
        shown.append(
            question(
                key=f"question:{asked.seq}:{_digest(asked.text)}",
                code="question",
                sentence=clean_line(asked.text, _TEXT),
                participant=clean_name(entry.sender, timeline.ID),
                since=records.parse_time(entry.at),
                document=REVIEW,
                line=asked.line,
                event=str(asked.seq),
                act=ANSWER_QUESTION,
                given=(("question", named(asked)),),
                move=_to_answer(facts),
            )
        )
    return tuple(shown)


def named(asked: Asked) -> str:
    """What a question is called where one is chosen among several."""
    return f"{asked.seq}: {clean_line(asked.text, _NAME)}"


def _digest(text: str) -> str:
    return f"{zlib.crc32(text.encode(errors='replace')):08x}"


_MANY = 200  # gates that are shown

_LABEL = 300


def gates(facts: Facts) -> tuple[Gate, ...]:
    """Completion gates first, each with the line where it is met or the nearest one."""
    readiness = facts.readiness
    texts = records.gate_texts(facts.protocol or {})[:_MANY]
    shown = [_completion(text, readiness) for text in texts]
    shown += _readiness(readiness)
    if facts.dialect == V2 and facts.primary is not None:
        reference = clean_line(facts.primary.item.reference, _LABEL)
        frozen = facts.history.machine.frozen
        shown.append(Gate(f"{reference} is frozen", frozen, reference))
    return tuple(shown)


def _completion(text: str, readiness: Readiness | None) -> Gate:
    label = clean_line(text, _LABEL)
    if readiness is None:
        return Gate(label, None, READINESS, evidence="readiness.md cannot be read")
    line = readiness.checked.get(text)
    if line is not None:
        return Gate(label, True, READINESS, line)
    box = nearest(text, readiness.boxes)
    if box is None:
        return Gate(label, False, READINESS, evidence="not in readiness.md")
    if box.text == text and not box.checked:
        return Gate(label, False, READINESS, box.line)
    evidence = f"nearest: {clean_line(box.text, _LABEL)}"
    return Gate(label, False, READINESS, box.line, evidence)


def _readiness(readiness: Readiness | None) -> list[Gate]:
    if readiness is None:
        labels = ("Every question is classified", "Nothing blocks", "Deferred items have a reason")
        return [Gate(label, None, READINESS) for label in (*labels, READY)]
    return [
        _none_of("Every question is classified", readiness.unresolved),
        _none_of("Nothing blocks", readiness.blocking),
        _none_of("Deferred items have a reason", readiness.unreasoned),
        _ready(readiness),
    ]


def _ready(readiness: Readiness) -> Gate:
    if readiness.ready is not None:
        return Gate(READY, True, READINESS, readiness.ready)
    box = nearest(READY, readiness.boxes)
    if box is None:
        return Gate(READY, False, READINESS, evidence="not in readiness.md")
    return Gate(READY, False, READINESS, box.line)


def _none_of(label: str, items: tuple[Item, ...]) -> Gate:
    if not items:
        return Gate(label, True, READINESS)
    more = f" and {len(items) - 1} more" if len(items) > 1 else ""
    evidence = f"[{items[0].word}] {clean_line(items[0].text, _LABEL)}{more}"
    return Gate(label, False, READINESS, items[0].line, evidence)


MOST_HOSTS = 8
"""How many hosts, and participants, are told of."""


def hosts_of(acting: Sequence[Acting], turns: Sequence[Turn]) -> tuple[str, ...]:
    """The hosts on which participants act, those of who is waited for first.

    Args:
        acting: who acts where.
        turns: who is waited for.
    """
    waited = {turn.participant for turn in turns}
    ordered = sorted(acting, key=lambda each: clean_name(each.participant, ID) not in waited)
    return tuple(dict.fromkeys(clean_line(each.host, 64) for each in ordered))[:MOST_HOSTS]
