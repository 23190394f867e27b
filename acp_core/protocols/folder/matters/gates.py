"""Group D: what must be so before the next event is accepted, and is not.

An open gate is ordinary work for the one whose turn it is. It is a cause only where that one is
stuck anyway; and it is the reason for that where its event was refused for it.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from acp_core.files.markdown import CheckBox, normalise
from acp_core.files.reading import Stamp, Unreadable, read_bounded, stamp
from acp_core.model import Matter, Status, Turn
from acp_core.model.format import dated
from acp_core.model.matter import OWNER, TIME, About, verdicts
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.folder.read.current_state import continued_in
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.rules.checks import nearest, unfinished
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.documents import READY, Item, Readiness
from acp_core.protocols.folder.schema.records import CHECK_GATES, SETTLE_QUESTIONS, V2, Entry
from acp_core.protocols.kit.diagnosis import DiagnosisContext, mark

READINESS, CONCLUSION = "readiness.md", "conclusion.md"

_SHOWN = 5

_LONG = 200

_MANY_ROUNDS = 3


class Unmet(NamedTuple):
    """Something that keeps an event from being accepted.

    Attributes:
        code: of the cause.
        refusal: words of the refusal that it leads to.
        headline: what is the matter.
        advice: what to do.
        evidence: a line each.
        document, line: where.
        remedy, given: the action for it, with its inputs.
        message: what a nudge would say.
    """

    code: str
    refusal: str
    headline: str
    advice: str
    evidence: tuple[str, ...]
    document: str | None = None
    line: int | None = None
    remedy: str | None = None
    message: str = ""
    given: tuple[tuple[str, str], ...] = ()


def gate_fields(protocol: dict[str, Any]) -> dict[str, str]:
    """The gates by the names that they have as inputs of the action `check_gates`."""
    texts = enumerate(records.gate_texts(protocol), 1)
    return {"ready": READY} | {f"gate_{number}": text for number, text in texts}


def gate_causes(facts: Facts, case: DiagnosisContext) -> Iterator[Matter]:
    """Every gate that keeps somebody who is stuck from going on; and who is late."""
    if case.snapshot.status is not Status.ACTIVE:
        return
    found = [obstacle for test in _TESTS for obstacle in test(facts)]
    for turn in case.agents_waited_for():
        if case.caused(turn.participant):
            for obstacle in found:
                yield _cause(case, turn, obstacle)
    yield from _late(facts, case)
    yield from _ping_pong(facts, case)


def _cause(case: DiagnosisContext, turn: Turn, obstacle: Unmet) -> Matter:
    of_turn = [each for each in case.found if each.about.participant == turn.participant]
    outside = case.is_kept_outside(turn.participant)
    message = obstacle.message or f"{obstacle.headline}. Fix this, then append your event."
    remedy, given = obstacle.remedy, obstacle.given
    loop = case.loop(turn.participant)
    others = () if outside or loop is None else ("nudge",)
    if remedy is None:
        remedy = "nudge" if loop is not None and loop.alive and not outside else None
        given = (("participant", turn.participant), ("message", message)) if remedy else ()
    return Matter(
        obstacle.code,
        obstacle.headline,
        instruction=obstacle.advice,
        move=OWNER if any(each.wanted for each in of_turn) and not outside else TIME,
        evidence=obstacle.evidence,
        verdicts=verdicts(remedy, given, () if remedy == "nudge" else others),
        about=About(participant=turn.participant, document=obstacle.document, line=obstacle.line),
        since=turn.since,
        key=":".join(_identity(turn, obstacle)),
        root=was_refused_for(case, turn, obstacle.refusal),
    )


def _identity(turn: Turn, obstacle: Unmet) -> Iterator[str]:
    """What makes the obstacle this one and no other: also which gate it is."""
    yield from (obstacle.code, turn.participant, str(turn.since_event))
    yield mark((*obstacle.evidence, *(f"{name}={value}" for name, value in obstacle.given)))


def was_refused_for(case: DiagnosisContext, turn: Turn, words: str) -> bool:
    """Whether the participant's event was refused for this."""
    loop = case.loop(turn.participant)
    if loop is None:
        return False
    said = (*(loop.run.refusals if loop.run else ()), loop.shown.note)
    return any(words in text for text in said)


# what each event needs


def _needs_settled(facts: Facts) -> bool:
    """Whether open questions stand in the way: of the next event, or of what was accepted."""
    machine = facts.history.machine
    accepting = machine.phase == "decision_review" and machine.classified
    return accepting or machine.phase == "readiness_check" or machine.accepted_ever


def unresolved(facts: Facts) -> Iterator[Unmet]:
    """A question is not classified for good."""
    items = facts.readiness.unresolved if facts.readiness and _needs_settled(facts) else ()
    if items:
        hidden = any(item.word != "unresolved" for item in items)
        yield _of_items(
            "D2",
            "unresolved readiness questions",
            "readiness.md contains unresolved questions"
            + (" (one contains TBD)" if hidden else ""),
            "resolve them here, or send the owner a message",
            items,
        )


def unreasoned(facts: Facts) -> Iterator[Unmet]:
    """A question was put off without a reason."""
    items = facts.readiness.unreasoned if facts.readiness and _needs_settled(facts) else ()
    if items:
        yield _of_items(
            "D3",
            "deferred_nonblocking readiness items",
            "readiness.md defers a question without a reason",
            "add `Reason: ...` to its line",
            items,
        )


def blocking(facts: Facts) -> Iterator[Unmet]:
    """Something blocks."""
    items = facts.readiness.blocking if facts.readiness and _needs_settled(facts) else ()
    if items:
        yield _of_items(
            "D4",
            "blocking readiness items",
            "readiness.md contains a blocking item",
            "decide it here, or send the owner a message",
            items,
        )


def _of_items(
    code: str, refusal: str, headline: str, advice: str, items: tuple[Item, ...]
) -> Unmet:
    lines = [f"{READINESS}:{i.line}: [{i.word}] {clean_line(i.text, _LONG)}" for i in items]
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return Unmet(
        code,
        refusal,
        headline,
        advice,
        (*lines[:_SHOWN], *more),
        READINESS,
        items[0].line,
        SETTLE_QUESTIONS,
    )


def _ready(facts: Facts) -> Iterator[Unmet]:
    """ "Ready to implement" is not checked."""
    readiness = facts.readiness
    if facts.history.machine.phase != "readiness_check" or readiness is None:
        return
    if readiness.ready is None:
        yield _box(facts, READY, f"readiness.md must check '{READY}'")


def _unmet(facts: Facts) -> Iterator[Unmet]:
    """A completion gate is not checked, or not in its exact words."""
    readiness, machine = facts.readiness, facts.history.machine
    if machine.phase != "readiness_check" or not machine.passed or readiness is None:
        return
    unmet = [g for g in records.gate_texts(facts.protocol or {}) if g not in readiness.checked]
    if unmet:
        refusal = "completion gates must be checked"
        obstacle = _box(facts, unmet[0], refusal)
        more = f" (and {len(unmet) - 1} more)" if len(unmet) > 1 else ""
        yield obstacle._replace(headline=obstacle.headline + more)


def _box(facts: Facts, gate: str, refusal: str) -> Unmet:
    """A box that must be checked, beside the line that comes nearest to it."""
    assert facts.readiness is not None
    label = clean_line(gate, _LONG)
    fields = gate_fields(facts.protocol or {})
    near = nearest_line(gate, facts.readiness, fields.values())
    expected = f"expected: - [x] {label}"
    given = tuple((name, "true") for name, text in fields.items() if text == gate)[:1]
    if near is None:
        return Unmet(
            "D5",
            refusal,
            f"the gate “{label}” is missing from readiness.md",
            "add its line, if the gate is met",
            (expected, "no similar line"),
            READINESS,
            None,
            CHECK_GATES,
            given=given,
        )
    mark = "x" if near.checked else " "
    found = f"closest, line {near.line}: - [{mark}] {clean_line(near.text, _LONG)}"
    if near.text == gate:
        headline, advice = f"the gate “{label}” is not checked", "check it, if the gate is met"
        differs: tuple[str, ...] = ()
    else:
        headline = f"the gate “{label}” is worded differently in readiness.md"
        advice = "write its exact words, if the gate is met"
        differs = (f"differs in: {difference(gate, near.text)}",)
    return Unmet(
        "D5",
        refusal,
        headline,
        advice,
        (expected, found, *differs),
        READINESS,
        near.line,
        CHECK_GATES,
        given=given,
    )


def nearest_line(gate: str, readiness: Readiness, gates: Collection[str]) -> CheckBox | None:
    """The check box that comes nearest to a gate and is not that of another one."""
    others = set(gates) - {gate}
    return nearest(gate, tuple(box for box in readiness.boxes if box.text not in others))


def difference(wanted: str, found: str) -> str:
    """The words in which two lines differ: ``[-not wanted-] {+missing+}``."""
    a, b = found.split(), wanted.split()
    parts: list[str] = []
    for tag, i, i_end, j, j_end in difflib.SequenceMatcher(None, a, b, False).get_opcodes():
        if tag == "equal":
            continue
        if i_end > i:
            parts.append(f"[-{' '.join(a[i:i_end])}-]")
        if j_end > j:
            parts.append(f"{{+{' '.join(b[j:j_end])}+}}")
    return clean_line(" ".join(parts), _LONG) or "white space"


def _conclusion(facts: Facts) -> Iterator[Unmet]:
    """conclusion.md is not yet a conclusion."""
    machine = facts.history.machine
    if machine.phase != "readiness_check" or not machine.passed or facts.conclusion is None:
        return
    lacking = list(unfinished(facts.conclusion, facts.dialect))
    if lacking:
        first = lacking[0]
        lines = tuple(
            f"{CONCLUSION}{f':{f.line}' if f.line else ''}: {clean_line(f.message, _LONG)}"
            for f in lacking[:_SHOWN]
        )
        placeholders = tuple(
            f"{CONCLUSION}:{line}: placeholder {clean_line(word, 40)}"
            for word, line in facts.conclusion.placeholders[:_SHOWN]
        )
        yield Unmet(
            "D6",
            "conclusion.md",
            clean_line(first.message, _LONG),
            "send the owner a message that names what is missing, or write the conclusion yourself",
            lines + placeholders,
            CONCLUSION,
            first.line,
        )


def _unclassified(facts: Facts) -> Iterator[Unmet]:
    """Nobody can accept before the owner has classified the questions."""
    machine = facts.history.machine
    if machine.phase == "decision_review" and not machine.classified:
        yield Unmet(
            "D7",
            "question_classified",
            "open questions must be classified before decisions can be accepted",
            "send the owner a message: classify readiness.md and append question_classified",
            ("no question_classified since the latest proposal or decision",),
            READINESS,
            message="Classify every open question in readiness.md, then append question_classified.",
        )


def _unfrozen(facts: Facts) -> Iterator[Unmet]:
    """The deliverable must be frozen before readiness can be passed."""
    machine = facts.history.machine
    if facts.dialect == V2 and machine.phase == "readiness_check" and not machine.frozen:
        yield Unmet(
            "D8",
            "deliverable_frozen",
            "the primary deliverable must be frozen before readiness can be passed",
            "send the owner a message: freeze the deliverable first",
            ("no deliverable_frozen event for the primary deliverable",),
            facts.primary.item.reference if facts.primary else None,
            message="Set `Status: Frozen` in the primary deliverable and append "
            "deliverable_frozen; only then append readiness_passed.",
        )


_TESTS: tuple[Callable[[Facts], Iterator[Unmet]], ...] = (
    _ready,
    _unmet,
    _conclusion,
    _unclassified,
    _unfrozen,
)


# who is late, and who goes round in circles


def _late(facts: Facts, case: DiagnosisContext) -> Iterator[Matter]:
    """Several were asked, some have answered: who keeps the others waiting."""
    machine = facts.history.machine
    accepting = machine.phase == "decision_review" and machine.classified
    if not accepting and machine.phase != "reviewing":
        return
    asked = len(machine.participants) - (not accepting)
    waiting = list(case.snapshot.turns)
    late = [turn for turn in waiting if case.caused(turn.participant)]
    if not late or asked < 2 or len(waiting) == asked:
        return
    names = ", ".join(turn.participant for turn in late)
    yield Matter(
        "D1",
        f"{asked - len(waiting)} of {asked} have answered; still waiting for {names}",
        instruction=f"help only {names}: the others are idle",
        move=TIME,
        evidence=tuple(f"{turn.participant} must {turn.what}" for turn in late),
        about=About(participant=late[0].participant),
        since=late[0].since,
        key=f"D1:{names}:{late[0].since_event}",
    )


def _ping_pong(facts: Facts, case: DiagnosisContext) -> Iterator[Matter]:
    """Round after round, and as much must change as before."""
    machine = facts.history.machine
    if machine.round < _MANY_ROUNDS or machine.phase not in ("reviewing", "revising"):
        return
    rounds = required(facts)
    latest, before = next(rounds, 0), next(rounds, 0)
    if latest == 0 or latest < before:
        return
    counts = [*reversed([latest, before, *rounds])]
    if len(counts) < _MANY_ROUNDS:
        return
    listed = ", ".join(str(count) for count in counts[-5:])
    owner = clean_name(machine.owner or "", 200)
    loop = case.loop(owner)
    yield Matter(
        "D9",
        f"{len(counts)} review rounds without progress",
        instruction="send a message that says which changes matter, or decide yourself",
        evidence=(f"required changes per round: {listed}",),
        certain=False,
        verdicts=verdicts(
            "nudge" if loop is not None and loop.alive else None,
            (("participant", owner),),
            ("block",),
        ),
        about=About(participant=owner or None, document="review.md"),
        key=f"D9:{len(counts)}",
    )


_REQUIRED = re.compile(r"^(?:#{3,6} +|\*{0,2})Required Changes\b", re.IGNORECASE)

_TITLE = re.compile(r"^(?:#{3,6} +\S|\*{0,2}[A-Z][\w /-]{2,60}:\*{0,2}\s*$)")

_SEQ = re.compile(r"seq ([0-9]{1,15})\s*$")

_BULLET = re.compile(r"^ {0,3}(?:[-*+]|\d{1,3}[.)]) +(.+)$")

_NOTHING = re.compile(r"(?:none|nothing|n/a|no )\b|[-–—.]*$", re.IGNORECASE)


# Level 2 begins a review, with its title; level 1 ends one.
_HEADING = re.compile(r"^#(?: [^\n]*|# ([^\n]*))$", re.MULTILINE)

_LOOKED = 2_000  # events from the end that are looked at


def required(facts: Facts) -> Iterator[int]:
    """How many changes each of the latest full rounds required, newest first.

    No more of the log is looked at than is asked for.
    """
    history = facts.history
    entries = history.entries
    start = max(0, len(entries) - _LOOKED)
    if history.check.regular:
        first = start + 1
    else:
        first = min((e.seq for e in entries[start:] if e.seq is not None), default=0)
    review = facts.path("review.md")
    asked = _asked(review, stamp(review), first - first % _LOOKED)
    named: list[int] = []
    for index in range(len(entries) - 1, start - 1, -1):
        entry = entries[index]
        if entry.event == "review_submitted" and entry.seq in asked:
            named.append(asked[entry.seq])
        elif entry.event == "proposal_submitted":
            if named:
                yield sum(named)
            named = []


@lru_cache(maxsize=64)
def _asked(path: str, of: Stamp | None, least: int) -> dict[int, int]:
    """`required_changes` of a file, worked out again only when the file changed."""
    try:
        data = read_bounded(path, records.MAX_DOCUMENT)
    except Unreadable:
        return {}
    return required_changes(_latest(normalise(data.decode(errors="replace")), least), least)


def _latest(text: str, least: int) -> str:
    """The reviews after the last one below ``least``: they are written down in their order."""
    at = len(text)
    while (at := text.rfind("\n## ", 0, at)) >= 0:
        end = text.find("\n", at + 4)
        numbered = _SEQ.search(text[at + 4 : end if end >= 0 else len(text)])
        if numbered and int(numbered[1]) < least:
            return text[at + 1 :]
    return text


def required_changes(text: str, least: int = 0) -> dict[int, int]:
    """Seq of each review from ``least`` on -> how many changes it requires, in bullets."""
    found: dict[int, int] = {}
    seq, start = None, 0
    for match in _HEADING.finditer(text):
        if seq is not None:
            found[seq] = _changes(text[start : match.start()])
        numbered = _SEQ.search(match.group(1) or "")
        seq, start = int(numbered[1]) if numbered else None, match.end()
        if seq is not None and seq < least:
            seq = None
    if seq is not None:
        found[seq] = _changes(text[start:])
    return found


def _changes(body: str) -> int:
    """The bullets below the titles that say what must change."""
    count, inside = 0, False
    for line in body.split("\n"):
        if _REQUIRED.match(line):
            inside = True
        elif _TITLE.match(line):
            inside = False
        elif inside and (bullet := _BULLET.match(line)) and not _NOTHING.match(bullet[1]):
            count += 1
    return count


_LONGEST_ANSWER = 1_000


def human_causes(facts: Facts, case: DiagnosisContext) -> Iterator[Matter]:
    """A participant stopped it with ``blocked``: only a person gets it going again."""
    blockers = facts.history.blockers
    if facts.history.machine.phase != "blocked" or not blockers:
        return
    first, last = blockers[0], blockers[-1]
    after = continued_in(case.snapshot.lineage)
    need = next((each for each in case.snapshot.needs if each.code == "blocked"), None)
    then = "" if facts.participants else ", after you add participants"
    if after:
        place = clean_line(after, _LONGEST_ANSWER)
        yield Matter(
            "E2",
            f"it was continued in {place}",
            instruction=f"see there: `acp why {shlex.quote(place)}`",
            move=TIME,
            evidence=_quoted(blockers),
            about=About(event=clean_line(last.name, 40)),
            key=f"continued:{place}",
        )
    elif need is not None:
        yield Matter(
            "E1",
            case.snapshot.headline.rstrip("."),
            instruction=f"answer the blocker and continue in a new folder{then}",
            evidence=_quoted(blockers),
            verdicts=verdicts("continue" if facts.participants else None),
            about=About(
                participant=clean_name(first.sender, 200), event=clean_line(first.name, 40)
            ),
            since=need.since,
            key=need.key,
        )


def _quoted(blockers: list[Entry]) -> tuple[str, ...]:
    """Who blocked it, when and why, the first one first."""
    lines = []
    for each in blockers[:_SHOWN]:
        at = dated(records.parse_time(each.at))
        lines.append(f"seq {clean_line(each.name, 40)} from {clean_name(each.sender, 200)}, {at}")
        lines.append(f"summary: {clean_line(each.summary, _LONGEST_ANSWER)}")
    more = len(blockers) - _SHOWN
    return (*lines, f"and {more} more") if more > 0 else tuple(lines)


def acceptance_causes(facts: Facts, case: DiagnosisContext) -> Iterator[Matter]:
    """What stops those who are to accept or to go on, as the matter of the one who can mend it.

    Nobody who is waited for can go on, so that it is a cause at once. A person is wanted, unless the
    owner is still to accept and its loop lives: it reads the same in its own turn.
    """
    if case.snapshot.status is not Status.ACTIVE:
        return
    machine, owner = facts.history.machine, clean_name(facts.history.machine.owner or "", 200)
    loop, turns = case.loop(owner), case.snapshot.turns
    alive = loop is not None and loop.alive
    obstacles = [each for test in (unresolved, unreasoned, blocking) for each in test(facts)]
    tried = any(was_refused_for(case, turn, each.refusal) for turn in turns for each in obstacles)
    since = min((turn.since for turn in turns if turn.since), default=None)
    accepting = machine.phase == "decision_review" and machine.classified
    so = "every acceptance is refused" if accepting else "nothing can be passed or completed"
    for each in obstacles:
        yield Matter(
            each.code,
            f"{each.headline}: {so}",
            instruction=each.advice,
            move=OWNER if tried or not (alive and machine.owner in machine.waiting) else TIME,
            evidence=each.evidence,
            verdicts=verdicts(each.remedy, others=("nudge",) if alive else ()),
            about=About(participant=owner or None, document=each.document, line=each.line),
            since=since,
            key=f"{each.code}:{machine.last.get('question_classified')}:{mark(each.evidence)}",
            root=True,
        )
