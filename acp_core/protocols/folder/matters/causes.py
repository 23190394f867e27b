"""How a folder collaboration gets stuck, and what stands in the way of writes: told from its own files.

Causes are small functions of what was read and of a `DiagnosisContext`; what lies in participants' loops is
found elsewhere, before, and is in ``case.found``. The view puts obstacles into its Snapshot;
writes refuse the same under the log's lock: what cannot be read in `write.opened`, a log beyond
mending by `rules.unrecoverable_log.check`. What a repair would do is handed in as `Repairs`.
Group A: the log or the state file is broken, which blocks everybody: of what the validator finds, many
findings have one reason and one remedy, and only what has lasted long enough to be an alarm counts.
Source: folder protocol specification, "Files", "Events", "Phases", "Review Format", "Readiness
Gate", "Final Conclusion" and "Validation".
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from acp_core.model import Finding, Matter, Severity, Status, Turn
from acp_core.model.errors import Refused
from acp_core.model.format import dated
from acp_core.model.matter import OWNER, TIME, About, damage, verdicts
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.folder.matters import gates as matters_gates
from acp_core.protocols.folder.read.current_state import event_of_turn, required, steps
from acp_core.protocols.folder.read.facts import (
    INFERRED,
    MISSING,
    TOLERANCE,
    Facts,
    KeptText,
    trusted_after,
)
from acp_core.protocols.folder.read.log import NEWLINES
from acp_core.protocols.folder.rules import unrecoverable_log
from acp_core.protocols.folder.rules.unrecoverable_log import full, hopeless
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import REPAIR, SYNC
from acp_core.protocols.kit import guard
from acp_core.protocols.kit.diagnosis import DiagnosisContext, mark

if TYPE_CHECKING:
    from acp_core.agents.state import RunnerState

_LONG = 1_000
_FOLLOWS = "add participants first, then repair the other fields"
_DOUBTFUL = ("A8", "C2")  # what a repair mends only where the other files say enough


class Damage(NamedTuple):
    """What a repair finds: the names of the files that it mends, and what has no fix, in words."""

    mended: frozenset[str]
    hopeless: tuple[str, ...]


Diagnose = Callable[[str, datetime], Damage]
"""Looks for damage in a folder. Raises `Refused` or `OSError` where that cannot be read."""


class Repairs(NamedTuple):
    """What a repair would do; asked only where one may be a remedy, since most folders need none.

    Attributes:
        planned: the names of the files that a repair would mend, by what was read.
        diagnose: the same, and what has no fix, by what stands in the folder now.
    """

    planned: Callable[[Facts, datetime], Collection[str]]
    diagnose: Diagnose


def causes(facts: Facts, repairs: Repairs, case: DiagnosisContext) -> Iterator[Matter]:
    """Every cause, group by group.

    Args:
        facts: What the files hold.
        repairs: What a repair would do.
        case: What else is known.
    """
    if facts.unsettled:
        return  # a file is being written just now
    for group in (log_causes, half_done_causes):
        for cause in group(facts, case):
            doubtful = cause.remedy == REPAIR and (
                cause.code in _DOUBTFUL or not facts.participants
            )
            yield _as_far_as_it_goes(facts, repairs, case, cause) if doubtful else cause
    if facts.lines.broken is None:  # else nothing that a gate asks for leads on
        yield from matters_gates.acceptance_causes(facts, case)
        yield from matters_gates.gate_causes(facts, case)
    yield from conflict_causes(facts, case)
    yield from matters_gates.human_causes(facts, case)


def _as_far_as_it_goes(
    facts: Facts, repairs: Repairs, case: DiagnosisContext, cause: Matter
) -> Matter:
    """The cause with a repair as its remedy only where that mends the file.

    That nobody takes part is a cause of its own, which says what mends it.
    """
    now = case.snapshot.as_of
    try:
        if cause.about.document in repairs.planned(facts, now):
            return cause
        seen = repairs.diagnose(facts.folder, now)
    except (Refused, OSError) as error:
        return cause._replace(instruction=clean_line(str(error), _LONG), verdicts=())
    if not facts.participants and cause.about.document == records.PROTOCOL_FILE:
        return cause._replace(instruction=_FOLLOWS, verdicts=())
    advice = "; ".join(seen.hopeless) or f"restore {cause.about.document} from a copy"
    return cause._replace(instruction=clean_line(advice, _LONG), verdicts=())


MENDING = frozenset({"repair"})
_SENTENCE = 300  # characters of what was observed


def obstacles(
    facts: Facts, diagnose: Diagnose, now: datetime, continued: str = ""
) -> tuple[Matter, ...]:
    """All that stands in the way of writes, as far as it was read.

    Args:
        facts: the collaboration, as it was read last.
        diagnose: looks for damage, where a file cannot be read.
        now: the time.
        continued: the folder in which it goes on already, "" for none.
    """
    if facts.unsettled or not Path(facts.folder).is_dir():
        return ()  # it is being written just now, or there is nothing to write to
    found: Sequence[Matter | None]
    if facts.protocol_problem or facts.log_problem:
        found = (_unreadable(facts, diagnose, now),)
    elif facts.dialect == records.UNKNOWN_DIALECT:
        found = (_unknown(facts),)
    else:
        found = (_nobody(facts), _torn(facts), _beyond(facts, continued))
    disk = guard.disk(Path(facts.folder))
    return tuple(each for each in (*found, disk) if each is not None)


def _beyond(facts: Facts, continued: str) -> Matter | None:
    """A log that only a new folder leads out of."""
    if facts.takes_no_more:
        return full(facts.folder, facts.lines, continued)
    return None if continued else hopeless(facts.folder, facts.lines)


def _unknown(facts: Facts) -> Matter:
    version = clean_line(repr((facts.protocol or {}).get("schemaVersion")), 40)
    sentence = f"unknown schemaVersion {version}: acp shows the folder read-only"
    return damage(
        "A7", sentence, "use a newer acp", document=records.PROTOCOL_FILE, key="dialect:unknown"
    )


def _nobody(facts: Facts) -> Matter | None:
    """Nobody can append, and a new folder has nobody to go on; a repair mends other files."""
    if facts.participants:
        return None
    cure = "add the participants to protocol.json by hand"
    sentence = "protocol.json names no participants"
    return damage("A0", sentence, cure, MENDING, document=records.PROTOCOL_FILE, key="A0:ACP114")


def _torn(facts: Facts) -> Matter | None:
    """The log's last line lacks its end: nobody can append."""
    if not (facts.tail_error or facts.tail_counts or facts.bare_returns):
        return None
    if facts.bare_returns:
        sentence = "the lines of events.jsonl end in carriage returns only"
        return damage("A1", sentence, NEWLINES, document=records.LOG_FILE, key="A1:returns")
    what = "is an incomplete event" if facts.tail_error else "has no newline at its end"
    sentence = f"the last line of events.jsonl {what}: no event can be appended"
    return _mended("A1", sentence, facts, facts.tail_error, records.LOG_FILE, facts.tail_line)


def _unreadable(facts: Facts, diagnose: Diagnose, now: datetime) -> Matter:
    """protocol.json or the log cannot be read: what a repair would do, or what it cannot."""
    name, code = records.LOG_FILE, "A8" if facts.log_problem == MISSING else "A9"
    reason = facts.log_problem
    if facts.protocol_problem:
        name, code, reason = records.PROTOCOL_FILE, "A5", facts.protocol_problem
    sentence = clean_line(f"{name} cannot be read ({reason})", _SENTENCE)
    try:
        seen = diagnose(facts.folder, now)
        if name in seen.mended:
            return _mended(code, sentence, facts, reason, name)
        cure = clean_line("; ".join(seen.hopeless), 1_000)
    except (Refused, OSError) as error:
        cure = clean_line(str(error), _SENTENCE)
    cure = cure or f"make {name} a regular file that you can read"
    return damage(code, sentence, cure, MENDING, document=name, key=f"{code}:{name}")


def _mended(
    code: str, sentence: str, facts: Facts, reason: str, name: str, line: int | None = None
) -> Matter:
    folder = shlex.quote(clean_line(facts.folder, 4_096))
    return damage(
        code,
        sentence,
        f"run `acp repair {folder} --yes`",
        MENDING,
        remedy="repair",
        evidence=(clean_line(reason, _SENTENCE),) if reason else (),
        document=name,
        line=line,
        key=f"{code}:{name}",
    )


BROKEN = ("invalid", "lagging")  # the needs that a broken folder has
_SHOWN = 4  # findings that are quoted for one cause
_ROOM = 1 << 20  # bytes without which nothing can be written
_CONFLICT = re.compile(r"conflicted copy|\.sync-conflict-|\(conflict", re.IGNORECASE)


class _Kind(NamedTuple):
    """What findings of some codes mean together: the cause's code and headline, and what to do."""

    codes: str
    code: str
    headline: str
    advice: str = ""
    remedy: str | None = None


_TORN = _Kind(
    "ACP207", "A1",
    "the last line of events.jsonl is an incomplete event: no event can be appended",
    "remove the incomplete line (acp keeps a copy); its author appends the event again", REPAIR,
)  # fmt: skip
_UNENDED = _Kind(
    "ACP906", "A1",
    "the last line of events.jsonl has no newline at its end: no event can be appended",
    "let acp add the newline", REPAIR,
)  # fmt: skip
_CORRUPT = _Kind("ACP201 ACP202 ACP203 ACP204", "A2",
                 "a line of events.jsonl before the last one cannot be read")  # fmt: skip
_NUMBERS = _Kind("ACP215", "A3", "event sequence numbers have a gap or a duplicate")
_LAG = _Kind(
    "ACP150 ACP151 ACP920", "A4",
    "protocol.json is out of date with the event log: agents may wait for the wrong participant",
    "rebuild protocol.json from the log", REPAIR,
)  # fmt: skip
_UNREADABLE = _Kind("ACP110 ACP111 ACP112 ACP118 ACP119", "A5", "protocol.json cannot be used",
                    "rebuild it from acp's copy and the log", REPAIR)  # fmt: skip
_TIMES = _Kind("ACP217", "A6", "the times of the events go backward")
_ILLEGAL = _Kind(
    "ACP210 ACP211 ACP212 ACP213 ACP214 ACP216 ACP401 ACP402 ACP403 ACP404 ACP405 ACP406 ACP407 "
    "ACP408 ACP409 ACP410 ACP411 ACP412",
    "A7", "the log contains an event that was not allowed at that point",
)  # fmt: skip
_UNKNOWN = _Kind("ACP131", "A7", "the folder has an unknown schemaVersion: acp shows it read-only",
                 "use a newer acp")  # fmt: skip
_MISSING = _Kind("ACP101 ACP205", "A8", "a file of the protocol is missing",
                 "create the missing file", REPAIR)  # fmt: skip
_OBSOLETE = _Kind("ACP102", "A8", "the folder contains a file that the protocol does not allow",
                  "move it out of the folder")  # fmt: skip
_TOO_LARGE = _Kind("ACP208", "A9", unrecoverable_log.TOO_LARGE)
_NO_ACCESS = _Kind("ACP103 ACP206", "A9", "a file of the collaboration cannot be read",
                   "make it a regular file that you can read")  # fmt: skip
_ALL = (_TORN, _UNENDED, _CORRUPT, _NUMBERS, _LAG, _UNREADABLE, _TIMES, _ILLEGAL, _UNKNOWN, _MISSING,
        _OBSOLETE, _TOO_LARGE, _NO_ACCESS)  # fmt: skip
_KINDS = {code: kind for kind in _ALL for code in kind.codes.split()}
_HOPELESS = (_CORRUPT, _NUMBERS, _TIMES, _ILLEGAL)

OTHERS = frozenset(
    [
        "ACP301",
        "ACP302",
        "ACP303",
        "ACP304",
        "ACP310",
        "ACP311",
        "ACP312",
        "ACP313",
        "ACP314",
        "ACP320",
        "ACP321",
        "ACP322",
        "ACP323",
        "ACP504",
        "ACP507",
    ]
)
"""Findings that other groups gather."""


def log_causes(facts: Facts, case: DiagnosisContext) -> Iterator[Matter]:
    """Everything that is broken."""
    broken = is_broken(case)
    grouped: dict[_Kind, list[Finding]] = {}
    rest: list[Finding] = []
    for finding in case.snapshot.findings:
        kind = _KINDS.get(finding.code)
        alarming = finding.severity is Severity.ERROR and broken
        if kind is not None and (alarming or kind in (_UNENDED, _UNKNOWN)):
            grouped.setdefault(kind, []).append(finding)
        elif kind is None and alarming and finding.code not in OTHERS:
            rest.append(finding)
    for kind, findings in _gathered(facts, grouped).items():
        made = _cause(case, kind, findings)
        if kind in _HOPELESS:
            made = _beyond_mending(facts, made)
        yield made
    if rest:
        yield _residual(case, rest)
    for test in (_clock, _copies, _disk):
        cause = test(facts, case)
        if cause:
            yield cause


def _gathered(facts: Facts, grouped: dict[_Kind, list[Finding]]) -> dict[_Kind, list[Finding]]:
    """With all that makes the log hopeless as one kind, the obstacle's: one way leads out of it."""
    beyond = [kind for kind in grouped if kind in _HOPELESS]
    if not beyond or (len(beyond) == 1 and not facts.takes_no_more):
        return grouped
    if facts.takes_no_more:
        first = _TOO_LARGE
    else:
        broken = facts.lines.broken
        code = unrecoverable_log.code_of(broken.code) if broken else ""
        first = next((kind for kind in beyond if kind.code == code), beyond[0])
    findings = grouped.get(first, []) + [
        finding for kind in beyond if kind is not first for finding in grouped[kind]
    ]
    rest = {kind: found for kind, found in grouped.items() if kind not in (first, *beyond)}
    return {first: findings, **rest}


def is_broken(case: DiagnosisContext) -> bool:
    """Whether the folder has been invalid, or lagging, for long enough."""
    return any(need.code in BROKEN for need in case.snapshot.needs)


def explained(case: DiagnosisContext) -> tuple[str, ...]:
    """The keys of the needs that say that the folder is broken."""
    return tuple(need.key for need in case.snapshot.needs if need.code in BROKEN)


def since_broken(case: DiagnosisContext) -> datetime | None:
    """Since when the folder is broken."""
    return next((need.since for need in case.snapshot.needs if need.code in BROKEN), None)


def mark_of(findings: Sequence[Finding]) -> str:
    """What tells these findings from others of the same codes."""
    return mark(f"{each.code} {each.document} {each.event} {each.message}" for each in findings)


def quoted(findings: Sequence[Finding]) -> tuple[str, ...]:
    """What the validator says, as evidence, with its place."""
    lines = []
    for finding in findings[:_SHOWN]:
        line = f":{finding.line}" if finding.line else ""
        place = f"{finding.document}{line}: " if finding.document else ""
        lines.append(f"{finding.code} {place}{finding.message}")
    if len(findings) > _SHOWN:
        lines.append(f"and {len(findings) - _SHOWN} more")
    return tuple(lines)


def _cause(case: DiagnosisContext, kind: _Kind, findings: Sequence[Finding]) -> Matter:
    """A cause for findings of one kind; it is the obstacle that they are, if they are one."""
    first, documents = findings[0], {each.document for each in findings}
    obstacle = next(
        (each for each in case.snapshot.obstacles
         if each.code == kind.code and each.about.document in documents),
        None,
    )  # fmt: skip
    lag = next((need.key for need in case.snapshot.needs if need.code == "lagging"), "")
    return Matter(
        kind.code,
        kind.headline,
        instruction=obstacle.instruction if obstacle else kind.advice,
        move=OWNER if kind is not _UNKNOWN else TIME,
        evidence=quoted(findings),
        verdicts=verdicts((obstacle.remedy or None) if obstacle else kind.remedy),
        about=About(document=first.document, line=first.line, event=first.event),
        since=since_broken(case),
        key=(lag if kind is _LAG else obstacle.key if obstacle else "")
        or f"{kind.code}:{first.code}:{mark_of(findings)}",
        explains=explained(case),
    )


def _beyond_mending(facts: Facts, cause: Matter) -> Matter:
    """A cause that only a new folder leads out of."""
    remedy = unrecoverable_log.remedy(facts.lines)
    given = (("reason", unrecoverable_log.ANSWER),) if remedy == "block" else ()
    return cause._replace(
        instruction=unrecoverable_log.way_out(facts.folder, facts.lines),
        verdicts=verdicts(remedy, given, cause.others),
        key=cause.key if cause.key.startswith("log:") else f"{cause.key}:{remedy}",
    )


def _residual(case: DiagnosisContext, findings: Sequence[Finding]) -> Matter:
    """What no other cause speaks of makes it invalid."""
    codes = ",".join(sorted({finding.code for finding in findings}))
    key = "A0:ACP114" if codes == "ACP114" else f"A0:{codes}:{mark_of(findings)}"
    obstacle = next((each for each in case.snapshot.obstacles if each.key == key), None)
    first = findings[0]
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return Matter(
        "A0",
        obstacle.sentence if obstacle else f"invalid: {clean_line(first.message, 200)}{more}",
        instruction=obstacle.instruction if obstacle else first.remedy.rstrip("."),
        evidence=quoted(findings),
        verdicts=verdicts(
            "repair" if any(finding.action == "repair" for finding in findings) else None
        ),
        about=About(document=first.document, line=first.line, event=first.event),
        since=since_broken(case),
        key=key,
        explains=explained(case),
    )


def _clock(facts: Facts, case: DiagnosisContext) -> Matter | None:
    """The last event comes from a clock that is ahead of this one."""
    last = facts.history.last
    at = records.parse_time(last.at) if last else None
    read = case.snapshot.as_of
    if last is None or at is None or (at - read).total_seconds() <= records.CLOCKS_DIFFER:
        return None
    return Matter(
        "A6",
        f"the last event has a time in the future ({clean_line(last.at, 40)}): a clock is wrong",
        instruction=f"set the clock of {clean_name(last.sender, 60)}'s machine, or of this one",
        move=TIME,
        evidence=(
            f"seq {clean_line(last.name, 40)} from {clean_name(last.sender, 60)}",
            f"this machine's clock showed {records.format_time(read)} when acp read the event",
        ),
        certain=False,
        about=About(participant=clean_name(last.sender, 200), document=records.LOG_FILE),
        key=f"A6:{clean_line(last.name, 40)}",
    )


def _copies(facts: Facts, case: DiagnosisContext) -> Matter | None:
    """A program that keeps folders in step met two versions of a file."""
    try:
        names = os.listdir(facts.folder)
    except OSError:
        return None
    known = tuple(name.partition(".")[0] for name in records.REQUIRED_FILES)
    copies = sorted(
        name for name in names if _CONFLICT.search(name) and name.lower().startswith(known)
    )
    if not copies:
        return None
    return Matter(
        "A9",
        "a sync program left two versions of a file: participants may see different content",
        instruction="compare the versions, keep the right one under the original name, and remove the copies",
        evidence=tuple(f"copy: {clean_line(name, 200)}" for name in copies[:_SHOWN]),
        certain=False,
        key=f"A9:{','.join(clean_line(name, 60) for name in copies[:_SHOWN])}",
    )


def _disk(facts: Facts, case: DiagnosisContext) -> Matter | None:
    """Nothing can be written any more."""
    if case.snapshot.status is not Status.ACTIVE:
        return None
    try:
        found = os.statvfs(facts.folder)
        writable = os.access(facts.folder, os.W_OK)
    except (OSError, AttributeError):
        return None
    if found.f_bavail * found.f_frsize >= _ROOM and writable:
        return None
    full = writable
    return Matter(
        "A9",
        "the disk is full: no event can be appended"
        if full
        else "you do not have write access to this folder",
        instruction="free some disk space"
        if full
        else "participants that run under your account cannot append either",
        move=OWNER if full else TIME,
        evidence=(f"folder: {clean_line(facts.folder, 4_096)}",),
        key=f"A9:{'disk' if full else 'access'}",
    )


_HEADING = ("ACP301", "ACP304")
_NO_EVENT = ("ACP302", "ACP303")
_FROZEN = ("ACP504", "ACP507")


def half_done_causes(facts: Facts, case: DiagnosisContext) -> Iterator[Matter]:
    """Every half-done turn."""
    if case.snapshot.status is Status.ACTIVE:
        for turn in case.agents_waited_for():
            cause = _written(facts, case, turn)
            if cause:
                yield cause
    if is_broken(case):
        errors = [f for f in case.snapshot.findings if f.severity is Severity.ERROR]
        for gather in (_headings, _unannounced, _thawed):
            cause = gather(case, errors)
            if cause:
                yield cause
    yield from _out_of_turn(facts, case)


def _written(facts: Facts, case: DiagnosisContext, turn: Turn) -> Matter | None:
    """A document was written in this turn, its event never came, and nobody is at it any more."""
    name = next((n for n in facts.participants if clean_line(n, 200) == turn.participant), None)
    found = required(steps(facts, name)) if name else ()
    if not found or turn.since is None:
        return None
    step = found[0]
    changed = _changed_since(facts, step.needs, turn.since)
    if not changed:
        return None
    document, at = changed[-1]
    if not case.caused(turn.participant):
        loop = case.loop(turn.participant)
        working = loop is not None and (loop.alive or loop.program_alive)
        if working or not case.stalled(turn.participant, at, 2 * case.patience.quiet):
            return None
    wanted = [each.wanted for each in case.found if each.about.participant == turn.participant]
    return Matter(
        "C1",
        f"{turn.participant} wrote {document}, but appended no event",
        instruction=f"append {step.event} on its behalf, or ask it to append only the event",
        move=OWNER
        if (any(wanted) or not wanted) and not case.is_kept_outside(turn.participant)
        else TIME,
        evidence=(
            f"{document} changed {dated(at)} (by its file time)",
            f"{turn.participant} has had the turn since {dated(turn.since)}; no event from it since",
        ),
        certain=False,
        verdicts=verdicts(
            event_of_turn(facts) or None,
            (("participant", turn.participant),),
            ("nudge", "relaunch") if case.loop(turn.participant) is not None else (),
        ),
        about=About(participant=turn.participant, document=document),
        since=at,
        key=f"C1:{turn.participant}:{turn.since_event}",
    )


def _changed_since(
    facts: Facts, paths: tuple[str, ...], since: datetime
) -> list[tuple[str, datetime]]:
    """The documents at these paths that changed after a moment, the latest last."""
    last = facts.history.last
    trust = trusted_after(facts, records.parse_time(last.at) if last else None)
    found = []
    files = (*facts.files.values(), *(declared.file for declared in facts.deliverables))
    for file in files:
        modified = file.modified
        if file.path not in paths or modified is None or modified <= trust:
            continue
        at = datetime.fromtimestamp(modified, since.tzinfo)
        if at - since > timedelta(seconds=TOLERANCE):
            found.append((clean_line(file.name, 300), at))
    return sorted(found, key=lambda each: each[1])


def _gathered_findings(
    case: DiagnosisContext,
    code: str,
    findings: list[Finding],
    sentence: str,
    instruction: str,
    remedy: str | None,
    given: tuple[tuple[str, str], ...] = (),
    stage: str = "",
) -> Matter:
    first = findings[0]
    return Matter(
        code,
        sentence,
        instruction,
        evidence=quoted(findings),
        verdicts=verdicts(remedy, given),
        about=About(document=first.document, line=first.line, event=first.event),
        since=since_broken(case),
        key=f"{code}:{first.code}:{mark_of(findings)}" + (f":{stage}" if stage else ""),
        explains=explained(case),
        root=any("validate must pass" in text for loop in case.loops for text in _reasons(loop)),
    )


def _reasons(loop: RunnerState) -> tuple[str, ...]:
    """What a loop's program was refused with, and why its loop does not go on."""
    return (*(loop.run.refusals if loop.run else ()), loop.shown.note)


def _headings(case: DiagnosisContext, errors: list[Finding]) -> Matter | None:
    findings = [finding for finding in errors if finding.code in _HEADING]
    if not findings:
        return None
    lacking = [finding for finding in findings if finding.code == "ACP301"]
    return _gathered_findings(
        case,
        "C2",
        lacking or findings,
        "the log has a review that has no heading in review.md"
        if lacking
        else "a heading in review.md names a different participant than its event",
        "add the heading; then the validator passes"
        if lacking
        else "correct the name in the heading",
        remedy="repair" if lacking else None,
    )


def _unannounced(case: DiagnosisContext, errors: list[Finding]) -> Matter | None:
    findings = [finding for finding in errors if finding.code in _NO_EVENT]
    if not findings:
        return None
    can = any(turn.what.startswith("review") for turn in case.snapshot.turns)
    return _gathered_findings(
        case,
        "C3",
        findings,
        "review.md contains a review without an event",
        "ask its author to append review_submitted, or correct the number in the heading",
        remedy="review_submitted" if can else None,
    )


def _thawed(case: DiagnosisContext, errors: list[Finding]) -> Matter | None:
    findings = [finding for finding in errors if finding.code in _FROZEN]
    if not findings:
        return None
    status = case.snapshot.status
    remedy = {Status.ACTIVE: "block", Status.BLOCKED: "continue"}.get(status)
    if any(each.key.startswith("log:") for each in case.snapshot.obstacles):
        remedy = None  # the log is beyond mending: its own cause says what leads out of that
    return _gathered_findings(
        case,
        "C5",
        findings,
        "a frozen deliverable was changed",
        "restore the frozen version, or block and continue in a new folder",
        remedy=remedy,
        given=(("reason", "The frozen deliverable was changed."),) if remedy == "block" else (),
        stage=status.value,
    )


def _out_of_turn(facts: Facts, case: DiagnosisContext) -> Iterator[Matter]:
    """What is being reviewed changed meanwhile: reviewers read different versions."""
    if facts.history.machine.phase != "reviewing":
        return
    late = [document for document in case.snapshot.documents if document.late]
    if not late:
        return
    names = ", ".join(document.id for document in late)
    yield Matter(
        "C4",
        f"{names} changed during the review",
        instruction="ask the reviewers to read it again",
        move=TIME,
        evidence=tuple(f"{document.id} {document.late}" for document in late),
        certain=not any(INFERRED in document.late for document in late),
        verdicts=verdicts(
            "nudge" if any(loop.alive for loop in case.loops) else None,
            (("message", f"{names} changed since it was submitted: read it again."),),
        ),
        about=About(document=late[0].id),
        since=min((document.changed for document in late if document.changed), default=None),
        key=f"C4:{names}:{facts.history.machine.round}",
    )


_LONG_EVIDENCE = 300


def conflict_causes(facts: Facts, case: DiagnosisContext) -> Iterator[Matter]:
    """Every text that waits to be settled, and a store that only a newer acp can use."""
    if facts.newer_share:
        yield _newer(facts.newer_share)
    if facts.strange_share:
        yield _strange(facts.strange_share)
    over = case.snapshot.status is Status.COMPLETED  # nothing more comes
    if not (over or facts.newer_share or facts.strange_share) and records.is_shared(facts.folder):
        from acp_core.protocols.folder.matters import store  # late: most folders are not shared

        yield from store.causes(facts.folder)
    for each in facts.kept:
        yield _events(each) if each.document == records.LOG_FILE else _document(each)


def _newer(reason: str) -> Matter:
    return Matter(
        "C6",
        "this acp is too old for the store of this folder",
        instruction="update acp on this machine; until then, what is here is as it was when it was read last",
        evidence=(reason,),
        key="newer-share",
    )


def _strange(reason: str) -> Matter:
    return Matter(
        "C6",
        "another program changed what names the store of this folder",
        instruction="put it back with `acp join`, or end the sharing with `acp unshare`; find the program that changed it",
        evidence=(clean_line(reason, 1_000),),
        key="strange-share",
    )


def _document(kept: KeptText) -> Matter:
    name = clean_line(kept.document, _LONG_EVIDENCE)
    return Matter(
        "C6",
        f"{name} was changed here and on another host",
        instruction=f"take yours with `acp sync --mine {name}`, or keep the other with `acp sync --theirs {name}`",
        evidence=(
            f"{name} holds the text of the other host",
            f"the text of this host is in {clean_line(kept.file, _LONG_EVIDENCE)}",
        ),
        verdicts=verdicts(SYNC, (("mine", kept.document),)),
        about=About(document=name),
        key=f"gave-way:{clean_line(kept.file, _LONG_EVIDENCE)}",
    )


def _events(kept: KeptText) -> Matter:
    return Matter(
        "C6",
        "events that were appended here without acp are not in the store",
        instruction="append them again with `acp sync --again`, or drop them with `acp sync --theirs events.jsonl`",
        evidence=(f"they are in {clean_line(kept.file, _LONG_EVIDENCE)}",),
        verdicts=verdicts(SYNC, (("again", "true"),)),
        about=About(document=records.LOG_FILE),
        key=f"gave-way:{clean_line(kept.file, _LONG_EVIDENCE)}",
    )
