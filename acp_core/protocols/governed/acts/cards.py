"""What a human decides, as cards: in a run a staged result, a gate that waits, a block.

In an initiative over several repositories: a cross-repo gate, what keeps workstreams from crossing
it, and scripts that wait for your trust. Source: governed protocol specification, "Phase model"
(gates are human-only checkpoints), "Overview" (mandatory objections, structured evidence) and
"Gates and resync".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.action import Change
from acp_core.model.card import Card, CardDocument, CardSection, CardVerdict
from acp_core.model.errors import Refused
from acp_core.model.snapshot import Document, Row, Target, Tone
from acp_core.protocols.governed import prompts, schema
from acp_core.protocols.governed.acts.common import Whole, open_whole
from acp_core.protocols.governed.read import existing_program, repository
from acp_core.protocols.governed.read import initiative as read_initiative
from acp_core.protocols.governed.read import run as read_run
from acp_core.protocols.governed.read.initiative import PlannedBarrier, Workstream
from acp_core.protocols.governed.read.run import ActiveTurn, Objection, Pending, Run
from acp_core.protocols.governed.rules import initiatives, results
from acp_core.protocols.governed.rules.initiatives import CROSSED, RESYNC_FAILED, left
from acp_core.protocols.governed.schema import (
    Object,
    blocked_by,
    exit_gate,
    gate_called,
    items,
    moment,
    obj,
    objects,
    status_called,
    strings,
    text,
)
from acp_core.protocols.governed.state import Predicate, Request, pending
from acp_core.protocols.governed.write import hooks, initiative_decide, turns
from acp_core.protocols.governed.write.initiative_opened import OpenedInitiative
from acp_core.protocols.governed.write.opened import Opened, read_unlocked
from acp_core.protocols.governed.write.turns import Judged
from acp_core.protocols.kit.wording import difference, safe

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
        judged = turns.judge(opened, id)
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
    how = read_run.how_it_ended(opened.root, turn)
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
    return read_run.predicates(opened.root, opened.config, gate, verification) if gate else ()


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
    verification = read_run.latest_verification(opened.run)
    demanded = read_run.predicates(opened.root, opened.config, request.gate, verification)
    role = text(asked, "role", 80)
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
        safe(f"{role or 'The run'} asks to {request.aim} ({gate_called(request.gate)})"),
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
    if opened.state.get("status") != "blocked" or opened.run.record.barrier:
        return None  # it waits for others of its initiative: an approval there opens the way
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


MOST_WORKSTREAMS = 6
"""Workstreams that have a verdict of their own; the others are named in the form."""
_SCRIPT = 1 << 16  # bytes of a script that are shown


def initiative_cards(folder: str) -> tuple[Card, ...]:
    """What waits for a human's decision in an initiative now, the most urgent first.

    Args:
        folder: the initiative.
    """
    whole = open_whole(Path(folder))
    found = [_failure_card(whole.opened) if whole.opened else None, _barrier_card(whole)]
    if whole.opened is not None:
        found.append(_hooks_card(whole.opened))
    return tuple(card for card in found if card is not None)


# --- a cross-repo gate ------------------------------------------------------------------------


def _barrier_card(whole: Whole) -> Card | None:
    initiative = whole.initiative
    pending = initiative.pending
    if pending is None or initiative.status.startswith("blocked"):
        return None
    if left(initiative, pending.gate):
        return None
    opened = whole.opened
    if opened is None and (whole.its_own or not existing_program.is_there()):
        return None
    streams = initiative.workstreams
    planned = opened.plan.barrier(pending.gate) if opened else None
    blocking = initiative_decide.resync_problems(opened, planned) if opened and planned else []
    readable = [each for each in streams if each.readable]
    gate = _of_each("Gate", readable, lambda run: _predicates(run, pending.phase))
    files = _of_each("Files", readable, lambda run: _files(_asking(run)))
    sections = (
        CardSection("Obstacles", tuple(map(_problem, blocking))),
        CardSection("Workstreams", tuple(_stream(each, pending) for each in streams[:MOST])),
        gate,
        _of_each("Objections", readable, lambda run: open_rows(run.objections)),
        _of_each("Decisions", readable, lambda run: decision_rows(_asking(run))),
        _of_each("Tests", readable, lambda run: test_rows(_asking(run))),
        besides(files, gate),
    )
    at = len([each for each in streams if each.status == "blocked:barrier"])
    every = {1: "The workstream asks", 2: "Both workstreams ask"}.get(
        at, f"All {at} workstreams ask"
    )
    who = every if at == len(streams) else "The initiative asks"
    return Card(
        f"gate:{pending.gate}:{pending.since}",
        safe(f"{who} to leave {pending.phase} ({gate_called(pending.gate)})"),
        safe(planned.description if planned else ""),
        since=pending.since,
        sections=tuple(each for each in sections if each.rows),
        verdicts=_gate_verdicts(whole, pending, streams),
    )


def _gate_verdicts(
    whole: Whole, pending: Pending, streams: tuple[Workstream, ...]
) -> tuple[CardVerdict, ...]:
    """Approved at once, or sent back: all of them, or one alone."""
    if not whole.its_own:
        return (CardVerdict("Approve", schema.APPROVE_BARRIER),)
    which, asks = ("barrier", pending.gate), ("comment",)
    back = [CardVerdict("Send all back, with a reason", schema.REJECT_BARRIER, (which,), asks)]
    if len(streams) > 1:
        back += [
            CardVerdict(
                safe(f"Send {each.name} back"),
                schema.REJECT_BARRIER,
                (which, ("workstream", each.name)),
                asks,
            )
            for each in streams[:MOST_WORKSTREAMS]
        ]
    return (CardVerdict("Approve", schema.APPROVE_BARRIER, (which,)), *back)


def _stream(stream: Workstream, pending: Pending) -> Row:
    """Whether a workstream is there, and what it says of its work."""
    run = stream.run
    there = run is not None and read_initiative.held_at(run.state.value) == pending.gate
    said = text(_asking(run), "summary", 2_000) if run else ""
    cells = (
        safe(stream.name),
        safe(said),
        "" if there else safe(f"is {status_called(stream.status)}"),
    )
    return Row(cells, checked=there, tone=Tone.PASS if there else Tone.REVISE)


def _asking(run: Run) -> Object:
    """The accepted turn that asked to leave the phase, else the latest one."""
    asked = read_initiative.barrier_request(run)
    lines = [line.value for line in run.history.lines]
    wanted = asked.turn if asked else ""
    found = (each for each in reversed(lines) if each.get("turn_id") == wanted)
    return next(found, lines[-1] if lines else {})


def _predicates(run: Run, phase: str) -> Iterator[Row]:
    """What the run's own gate demands besides the approval; it does not keep the barrier shut."""
    for each in read_run.gates_of_run(run, phase):
        if not each.label.endswith(read_run.BY_A_HUMAN):
            tone = Tone.PASS if each.met else Tone.REVISE
            reason = "" if each.met else each.evidence
            yield Row((each.label, reason), checked=each.met, tone=tone)


def _files(turn: Object) -> Iterator[Row]:
    return (Row((safe(name),)) for name in strings(turn, "files_changed"))


def _of_each(
    title: str, streams: Iterable[Workstream], rows_of: Callable[[Run], Iterable[Row]]
) -> CardSection:
    """Rows of all workstreams, each behind the name of its own."""
    rows = [
        replace(row, cells=(safe(each.name), *row.cells))
        for each in streams
        if each.run is not None
        for row in rows_of(each.run)
    ]
    return CardSection(title, tuple(rows[:MOST]))


# --- what keeps workstreams from crossing ------------------------------------------------------


def _failure_card(opened: OpenedInitiative) -> Card | None:
    """What failed at a barrier, with what mends it."""
    status = opened.initiative.status
    if status not in (RESYNC_FAILED, CROSSED):
        return None
    barrier = initiative_decide.owed_barrier(opened)
    found = initiative_decide.resync_problems(opened, barrier) if barrier else []
    mendable = initiative_decide.mendable(opened)
    at = gate_called(barrier.name) if barrier else "the barrier"
    title = f"{at} is approved, but no workstream crossed it"
    if status == CROSSED:
        title = "A workstream crossed an unapproved barrier"
    verdicts = [
        CardVerdict(
            safe(f"{'Bring back' if status == CROSSED else 'Repair'} {name}"),
            schema.MEND,
            (("workstream", name),),
        )
        for name in mendable[:MOST_WORKSTREAMS]
    ]
    if status == RESYNC_FAILED:
        again = CardVerdict("Let all cross" if not found else "Try again", schema.RESYNC)
        verdicts = [again, *verdicts] if not found else [*verdicts, again]
    sections = (
        CardSection("Obstacles", tuple(map(_problem, found))),
        CardSection("Workstreams", tuple(map(_stream_row, opened.initiative.workstreams))),
        CardSection("Approved", tuple(_approval(opened, barrier)) if barrier else ()),
    )
    state = opened.initiative.state.value
    return Card(
        f"failed:{status}:{barrier.name if barrier else ''}",
        safe(title),
        since=schema.moment(state, "updated_at"),
        sections=tuple(each for each in sections if each.rows),
        verdicts=tuple(verdicts),
    )


def _problem(found: initiatives.ResyncProblem) -> Row:
    cells = tuple(filter(None, (safe(found.workstream), safe(found.reason))))
    return Row(cells, checked=False, tone=Tone.REVISE)


def _stream_row(stream: Workstream) -> Row:
    return Row((safe(stream.name), safe(stream.phase), safe(status_called(stream.status))))


def _approval(opened: OpenedInitiative, barrier: PlannedBarrier) -> Iterator[Row]:
    """Who approved the barrier, with which comment."""
    kept = obj(obj(opened.initiative.state.value, "barriers"), barrier.name)
    by = text(kept, "approved_by", 80)
    if by:
        yield Row((safe(f"by {by}"), safe(text(kept, "comment", 2_000))), tone=Tone.ACCEPT)


# --- scripts ------------------------------------------------------------------------------------


def _hooks_card(opened: OpenedInitiative) -> Card | None:
    """Scripts that the configuration names, and nobody let run as they stand."""
    root = opened.root
    paths = tuple(dict.fromkeys(each.path for each in opened.plan.hooks))
    if all(hooks.is_script_trusted(root, each) for each in paths):
        return None
    rows: list[Row] = []
    changes: list[Change] = []
    for hook in opened.plan.hooks:
        seen, path = hooks.script_digest(root, hook.path), safe(hook.path)
        said = f"sha256 {seen[:16]}" if seen else "is missing"
        trusted = hooks.is_script_trusted(root, hook.path)
        note = "already allowed" if trusted else ""
        target = Target(change=path) if seen else Target()
        rows.append(Row((safe(hook.name), path, said, note), target=target))
        if seen and all(each.path != path for each in changes):
            changes.append(Change(path, "script", _script(root, hook.path)))
    return Card(
        "hooks",
        "The configuration names scripts that you have not allowed",
        sections=(CardSection("Scripts", tuple(rows)),),
        verdicts=(CardVerdict("Allow these scripts", schema.TRUST_HOOKS),),
        changes=tuple(changes),
    )


def _script(root: Path, path: str) -> str:
    inside = schema.inside(root, path)
    try:
        return difference(b"", read_bounded(inside, _SCRIPT)) if inside else ""
    except Unreadable as error:
        return error.reason
