"""Group C: a turn that was half taken: documents and events do not say the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from acp_core.model import Cause, Finding, Severity, Status, Turn
from acp_core.model.format import dated
from acp_core.model.text import clean_line
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.causes.log import explained, is_broken, mark_of, quoted, since_broken
from acp_core.protocols.folder.read.facts import INFERRED, TOLERANCE, Facts, trusted_after
from acp_core.protocols.folder.read.turn_steps import event_of_turn, required, steps
from acp_core.protocols.kit.diagnosis import Case

if TYPE_CHECKING:
    from acp_core.agents.state import RunnerState

_HEADING = ("ACP301", "ACP304")
_NO_EVENT = ("ACP302", "ACP303")
_FROZEN = ("ACP504", "ACP507")


def causes(facts: Facts, case: Case) -> Iterator[Cause]:
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


def _written(facts: Facts, case: Case, turn: Turn) -> Cause | None:
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
    wanted = [each.wanted for each in case.found if each.participant == turn.participant]
    return Cause(
        "C1",
        f"{turn.participant} wrote {document}, but appended no event",
        advice=f"append {step.event} on its behalf, or ask it to append only the event",
        evidence=(
            f"{document} changed {dated(at)} (by its file time)",
            f"{turn.participant} has had the turn since {dated(turn.since)}; no event from it since",
        ),
        certain=False,
        wanted=(any(wanted) or not wanted) and not case.is_kept_outside(turn.participant),
        remedy=event_of_turn(facts) or None,
        given=(("participant", turn.participant),),
        others=("nudge", "relaunch"),
        participant=turn.participant,
        since=at,
        key=f"C1:{turn.participant}:{turn.since_event}",
        document=document,
    )


def _changed_since(
    facts: Facts, paths: tuple[str, ...], since: datetime
) -> list[tuple[str, datetime]]:
    """The documents at these paths that changed after a moment, the latest last."""
    last = facts.history.last
    trust = trusted_after(facts, schema.parse_time(last.at) if last else None)
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


def _gathered(
    case: Case, code: str, findings: list[Finding], headline: str, advice: str, **more: object
) -> Cause:
    first = findings[0]
    fields: dict[str, object] = {
        "advice": advice,
        "evidence": quoted(findings),
        "since": since_broken(case),
        "key": f"{code}:{first.code}:{mark_of(findings)}",
        "explains": explained(case),
        "document": first.document,
        "line": first.line,
        "event": first.event,
        "root": any("validate must pass" in text for loop in case.loops for text in _reasons(loop)),
    }
    return Cause(code, headline, **(fields | more))  # type: ignore[arg-type]


def _reasons(loop: RunnerState) -> tuple[str, ...]:
    """What a loop's program was refused with, and why its loop does not go on."""
    return (*(loop.run.refusals if loop.run else ()), loop.shown.note)


def _headings(case: Case, errors: list[Finding]) -> Cause | None:
    findings = [finding for finding in errors if finding.code in _HEADING]
    if not findings:
        return None
    lacking = [finding for finding in findings if finding.code == "ACP301"]
    return _gathered(
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


def _unannounced(case: Case, errors: list[Finding]) -> Cause | None:
    findings = [finding for finding in errors if finding.code in _NO_EVENT]
    if not findings:
        return None
    can = any(turn.what.startswith("review") for turn in case.snapshot.turns)
    return _gathered(
        case,
        "C3",
        findings,
        "review.md contains a review without an event",
        "ask its author to append review_submitted, or correct the number in the heading",
        remedy="review_submitted" if can else None,
    )


def _thawed(case: Case, errors: list[Finding]) -> Cause | None:
    findings = [finding for finding in errors if finding.code in _FROZEN]
    if not findings:
        return None
    status = case.snapshot.status
    remedy = {Status.ACTIVE: "block", Status.BLOCKED: "continue"}.get(status)
    if any(each.key.startswith("log:") for each in case.snapshot.obstacles):
        remedy = None  # the log is beyond mending: its own cause says what leads out of that
    return _gathered(
        case,
        "C5",
        findings,
        "a frozen deliverable was changed",
        "restore the frozen version, or block and continue in a new folder",
        remedy=remedy,
        given=(("reason", "The frozen deliverable was changed."),) if remedy == "block" else (),
        key=f"C5:{findings[0].code}:{mark_of(findings)}:{status.value}",
    )


def _out_of_turn(facts: Facts, case: Case) -> Iterator[Cause]:
    """What is being reviewed changed meanwhile: reviewers read different versions."""
    if facts.history.machine.phase != "reviewing":
        return
    late = [document for document in case.snapshot.documents if document.late]
    if not late:
        return
    names = ", ".join(document.id for document in late)
    yield Cause(
        "C4",
        f"{names} changed during the review",
        advice="ask the reviewers to read it again",
        evidence=tuple(f"{document.id} {document.late}" for document in late),
        certain=not any(INFERRED in document.late for document in late),
        wanted=False,
        remedy="nudge" if any(loop.alive for loop in case.loops) else None,
        given=(("message", f"{names} changed since it was submitted: read it again."),),
        since=min((document.changed for document in late if document.changed), default=None),
        key=f"C4:{names}:{facts.history.machine.round}",
        document=late[0].id,
    )
