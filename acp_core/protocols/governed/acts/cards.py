"""What a human decides in a run, as cards: a staged result, a gate that waits, a block.

Source: governed protocol specification, "Phase model" (gates are human-only checkpoints) and "Overview"
(mandatory objections, structured evidence).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acp_core.model.action import Change
from acp_core.model.card import Card, CardDocument, CardSection, CardVerdict
from acp_core.model.errors import Refused
from acp_core.model.snapshot import Document, Row, Target, Tone
from acp_core.protocols.governed import prompts, schema
from acp_core.protocols.governed.read import gates, repository, turn_files
from acp_core.protocols.governed.read.run import ActiveTurn, Objection
from acp_core.protocols.governed.rules import results
from acp_core.protocols.governed.schema import (
    Object,
    blocked_by,
    exit_gate,
    gate_called,
    items,
    moment,
    obj,
    objects,
    strings,
    text,
)
from acp_core.protocols.governed.state import Predicate, Request, pending
from acp_core.protocols.governed.write import accept
from acp_core.protocols.governed.write.accept import Judged
from acp_core.protocols.governed.write.opened import Opened, read_unlocked
from acp_core.protocols.kit.wording import safe

MOST = 50

"""Rows of a section: a person reads no more, and the documents hold the rest."""

SHOWN = 20

"""Files whose differences are on a card."""

_ALONE = 3  # objections that have a verdict each


def run_cards(folder: str, documents: Sequence[Document]) -> tuple[Card, ...]:
    """What waits for a human's decision in a run now.

    Args:
        folder: Its repository.
        documents: Those of its latest Snapshot, to which rows may point.
    """
    try:
        opened = read_unlocked(folder)
    except (Refused, OSError):  # nothing can be decided before that is repaired
        return ()
    known = {each.id: each for each in documents}
    found = [_gate_card(opened, known)]
    if opened.state.get("status") == "active":
        found += [_turn_card(opened, turn, known) for turn in opened.run.turns if turn.staged]
    if not any(found):
        found.append(_block_card(opened))
    return tuple(card for card in found if card is not None)


# --- a staged result -------------------------------------------------------------------------


def _turn_card(opened: Opened, turn: ActiveTurn, known: dict[str, Document]) -> Card | None:
    id = str(turn.raw.get("turn_id"))
    try:
        judged = accept.judge(opened, id)
    except (Refused, OSError):
        return None
    result = judged.result if isinstance(judged.result, dict) else {}
    staged = prompts.staged(id)
    gate = _gate_asked(opened, result)
    summary, asked = text(result, "summary", 2_000), text(result, "needs_human_reason", 2_000)
    sections = (
        CardSection("Summary", (Row((safe(summary),)),) if asked and summary else ()),
        CardSection("Program", _program_rows(opened, id)),
        CardSection("Check", _check_rows(judged, staged if staged in known else None)),
        CardSection("Objections", _objection_rows(result, opened.run.objections)),
        CardSection("Decisions", decision_rows(result)),
        CardSection("Gate", _predicate_rows(_demanded(opened, gate, result), known)),
        CardSection("Tests", test_rows(result)),
        CardSection("Files", _file_rows(opened, judged, result, known)),
    )
    return Card(
        f"turn:{id}:{turn.attempt}",
        safe(f"{turn.role} {_asks(result)}"),
        safe(asked or summary),  # what is asked of a person first
        turn.role,
        turn.since,
        _filled(sections),
        (*_turn_verdicts(judged, id), *_about_objections(opened)),
        (*_judged_documents((staged,), known), *map(CardDocument._make, judged.observed.markers)),
        _changes(opened, judged),
        replaces=(schema.ACCEPT, schema.CORRECT, schema.REJECT),
    )


def _program_rows(opened: Opened, turn: str) -> tuple[Row, ...]:
    """How the turn's program ended, where it failed although it staged a result."""
    how = turn_files.how_it_ended(opened.root, turn)
    return (Row((safe(how),), tone=Tone.REVISE),) if how else ()


def _turn_verdicts(judged: Judged, turn: str) -> Iterable[CardVerdict]:
    """How a staged result can be decided, as its check stands."""
    verdict, which = judged.verdict, (("turn", turn),)
    if verdict.ok:
        yield CardVerdict("Accept", schema.ACCEPT, which)
    elif verdict.corrections:
        yield CardVerdict("Apply the corrections", schema.CORRECT, which)
    if verdict.stage == results.OBSERVED:
        yield CardVerdict("Accept without some files", schema.ACCEPT, which, ("exclude",))
    yield CardVerdict("Reject, with a reason", schema.REJECT, which, ("reason",))


def _asks(result: Object) -> str:
    to = text(result, "phase_transition_request", 80)
    if to:
        return f"finished its turn and asks to enter {to}"
    if result.get("run_completion_request") is True:
        return "finished its turn and asks to complete the run"
    status = text(result, "status", 40)
    ended = {"blocked": "is blocked", "needs_human": "needs you", "failed": "failed at its turn"}
    return ended.get(status, "finished its turn")


def _gate_asked(opened: Opened, result: Object) -> str:
    """The gate that accepting the result would ask for; "" where it asks for none."""
    asks = result.get("phase_transition_request") or result.get("run_completion_request") is True
    return exit_gate(opened.config, str(opened.state.get("phase"))) if asks else ""


def _demanded(opened: Opened, gate: str, result: Object) -> tuple[Predicate, ...]:
    verification = text(obj(result, "verification"), "status", 40)
    return gates.predicates(opened.root, opened.config, gate, verification) if gate else ()


def _check_rows(judged: Judged, document: str | None) -> tuple[Row, ...]:
    """What the check of the result says: errors first; one line where all is well."""
    verdict, target = judged.verdict, Target(document=document)
    rows = [
        Row((safe(each),), checked=False, tone=Tone.REVISE, target=target)
        for each in verdict.errors
    ]
    rows += [Row((safe(each),), tone=Tone.REVIEW, target=target) for each in verdict.warnings]
    if verdict.ok and not rows:
        rows.append(
            Row(
                ("The result is complete and agrees with the repository.",),
                checked=True,
                tone=Tone.PASS,
            )
        )
    for each in verdict.corrections:
        rows.append(
            Row((safe(f"proposed correction of {each.field}: {each.reason}"),), target=target)
        )
    return tuple(rows[:MOST])


def _objection_rows(result: Object, known: Iterable[Objection]) -> tuple[Row, ...]:
    """Objections that the result raises, then those that were open before."""
    raised = [
        Row(
            (
                safe(text(each, "id", 40)),
                safe(text(each, "severity", 40)),
                safe(text(each, "statement", 2_000)),
            ),
            tone=Tone.REVIEW,
        )
        for each in items(result, "objections")
    ]
    mentioned = {row.cells[0] for row in raised}
    before = [row for row in open_rows(known) if row.cells[0] not in mentioned]
    return tuple((raised + before)[:MOST])


def open_rows(known: Iterable[Objection]) -> list[Row]:
    """The objections that still stand."""
    return [
        Row(
            (
                safe(each.id),
                safe(each.severity),
                safe(f"{each.statement} ({each.raised_by}, open)"),
            ),
            tone=Tone.REVIEW,
        )
        for each in known
        if each.open
    ]


def decision_rows(result: Object) -> tuple[Row, ...]:
    """What a turn decided, and why."""
    return tuple(
        Row(
            (
                safe(text(each, "id", 40)),
                safe(text(each, "statement", 2_000)),
                safe(f"because {why}" if (why := text(each, "rationale", 2_000)) else ""),
            ),
            tone=Tone.DECIDE,
        )
        for each in items(result, "decisions")[:MOST]
    )


def _predicate_rows(demanded: Iterable[Predicate], known: dict[str, Document]) -> tuple[Row, ...]:
    return tuple(
        Row(
            (safe(each.name), safe("" if each.met and each.kind == "file" else each.reason)),
            checked=None if each.unknown else each.met,
            tone=Tone.PASS if each.met else Tone.REVISE,
            target=_document(each.name, known),
        )
        for each in demanded
    )


def test_rows(result: Object) -> tuple[Row, ...]:
    """What was verified: the claim, then each command with its exit code."""
    said = obj(result, "verification")
    status = text(said, "status", 40)
    rows = []
    if status:
        passed = {"pass": True, "attested_pass": True, "fail": False}.get(status)
        summary = safe(text(said, "evidence_summary", 2_000))
        rows.append(
            Row((safe(status.replace("_", " ")), summary), checked=passed, tone=_tone(passed))
        )
    for each in items(said, "machine_evidence")[:MOST]:
        code = each.get("exit_code")
        passed = code == 0 if isinstance(code, int) else None
        cells = (
            safe(text(each, "command", 400)),
            safe("" if code is None else f"exit code {code}"),
        )
        rows.append(Row(cells, checked=passed, tone=_tone(passed)))
    return tuple(rows)


def _tone(passed: bool | None) -> Tone:
    return {True: Tone.PASS, False: Tone.REVISE, None: Tone.OTHER}[passed]


def _file_rows(
    opened: Opened, judged: Judged, result: Object, known: dict[str, Document]
) -> tuple[Row, ...]:
    """Every file that changed or is said to have, with lines added and removed."""
    declared = strings(result, "files_changed")
    observed = judged.observed
    counts = repository.line_counts(opened.root, observed)
    rows = []
    for name in (*observed.files, *(each for each in declared if each not in observed.files)):
        note = ""
        if observed.known and name not in declared:
            note = "not declared"
        elif observed.known and name not in observed.files:
            note = "declared, unchanged"
        target = (
            Target(change=safe(name)) if name in observed.files[:SHOWN] else _document(name, known)
        )
        cells = (safe(name), _counted(counts.get(name)), note)
        rows.append(Row(cells, tone=Tone.REVISE if note else Tone.OTHER, target=target))
    return tuple(rows[:MOST])


def _changes(opened: Opened, judged: Judged) -> tuple[Change, ...]:
    """What changed in the repository since the turn was assigned."""
    observed = judged.observed
    found = repository.differences(opened.root, observed, observed.files[:SHOWN])
    return tuple(Change(safe(name), "change", diff) for name, diff in found.items() if diff)


def _document(name: str, known: dict[str, Document]) -> Target:
    return Target(document=name if name in known else None)


def _counted(lines: tuple[int, int] | None) -> str:
    if lines is None:
        return ""
    added, removed = lines
    return " ".join(filter(None, (f"+{added}" if added else "", f"−{removed}" if removed else "")))


# --- a gate that waits -----------------------------------------------------------------------


def _gate_card(opened: Opened, known: dict[str, Document]) -> Card | None:
    try:
        request = pending(opened.state)
    except Refused:
        return None
    asked = _asking_line(opened, request)
    since = opened.run.pending.since if opened.run.pending else None
    verification = gates.latest_verification(opened.run)
    demanded = gates.predicates(opened.root, opened.config, request.gate, verification)
    role = text(asked, "role", 80)
    to = f"enter {request.to}" if request.to else "complete the run"
    gate = CardSection("Gate", _predicate_rows(demanded, known))
    sections = (
        gate,
        CardSection("Objections", tuple(open_rows(opened.run.objections)[:MOST])),
        CardSection("Decisions", decision_rows(asked)),
        CardSection("Tests", test_rows(asked)),
        besides(CardSection("Files", _named_files(asked, known)), gate),
    )
    return Card(
        f"gate:{request.kind}:{request.gate}:{request.turn}",
        safe(f"{role or 'The run'} asks to {to} ({gate_called(request.gate)})"),
        safe(text(asked, "summary", 2_000)),
        role,
        since,
        _filled(sections),
        (
            CardVerdict("Approve", schema.APPROVE_GATE),
            CardVerdict("Reject, with a reason", schema.REJECT_GATE, asks=("comment",)),
            *_about_objections(opened),
        ),
        tuple(_judged_documents((p.name for p in demanded if p.kind == "file"), known)),
    )


def _asking_line(opened: Opened, request: Request) -> Object:
    """The accepted turn that asked for the gate, as the history has it."""
    lines = (line.value for line in reversed(opened.run.history.lines))
    return next((each for each in lines if each.get("turn_id") == request.turn), {})


def _named_files(asked: Object, known: dict[str, Document]) -> tuple[Row, ...]:
    return tuple(
        Row((safe(name),), target=_document(name, known))
        for name in strings(asked, "files_changed")[:MOST]
    )


def besides(files: CardSection, gate: CardSection) -> CardSection:
    """The files without those that rows of the gate name already: each stands once on a card."""
    named = {each.cells[:length] for each in gate.rows for length in (1, 2)}
    others = tuple(each for each in files.rows if each.cells not in named)
    return CardSection("Files" if len(others) == len(files.rows) else "Other files", others)


# --- a block ---------------------------------------------------------------------------------


def _block_card(opened: Opened) -> Card | None:
    """What blocks the run, and what says that it is resolved."""
    if opened.state.get("status") != "blocked":
        return None
    reason = obj(opened.state, "blocked_reason")
    blocked_on = text(opened.state, "blocked_on", 200)
    kind, _, question = blocked_on.partition(":")
    detail = safe(text(obj(reason, "recovery"), "detail", 2_000))
    asks = kind == "human" and bool(question)
    said = "The run needs a human" if asks else f"The run is blocked: {blocked_by(opened.state)}"
    answer = CardVerdict("Answer", schema.UNBLOCK, asks=("comment",))
    verdicts = [answer if asks else CardVerdict("Unblock", schema.UNBLOCK)]
    if objects(opened.state.get("active_turns")):
        dropping = (("drop_turn", "true"),)
        verdicts.append(CardVerdict("Unblock and drop the turn", schema.UNBLOCK, dropping))
    objections = CardSection("Objections", tuple(open_rows(opened.run.objections)[:MOST]))
    return Card(
        f"block:{blocked_on}",
        safe(said),
        detail or safe(question),
        since=moment(reason, "blocked_at"),
        sections=_filled((objections,)),
        verdicts=(*verdicts, *_about_objections(opened)),
    )


# --- shared ----------------------------------------------------------------------------------


def _about_objections(opened: Opened) -> tuple[CardVerdict, ...]:
    """The verdicts on the objections that are open: one each, or one for many.

    The ledger is the audit trail (specification, "Decision ledger"): it says how each was resolved.
    """
    waiting = [each.id for each in opened.run.objections if each.open]
    if len(waiting) > _ALONE:
        return (
            CardVerdict("Resolve an objection", schema.OBJECTION, asks=("objection", "comment")),
        )
    return tuple(
        CardVerdict(safe(f"Resolve {id}"), schema.OBJECTION, (("objection", id),), ("comment",))
        for id in waiting
    )


def _filled(sections: Iterable[CardSection]) -> tuple[CardSection, ...]:
    return tuple(each for each in sections if each.rows)


def _judged_documents(wanted: Iterable[str], known: dict[str, Document]) -> Iterable[CardDocument]:
    for name in dict.fromkeys(wanted):
        if name in known:
            yield CardDocument(name, known[name].version)
