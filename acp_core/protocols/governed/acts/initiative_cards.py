"""What a human decides in an initiative over several repositories, as cards: a cross-repo gate, what keeps
workstreams from crossing it, and scripts that wait for your trust.

Source: governed protocol specification, "Gates and resync".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.action import Change
from acp_core.model.card import Card, CardSection, CardVerdict
from acp_core.model.snapshot import Row, Target, Tone
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.acts import cards
from acp_core.protocols.governed.acts.initiative_common import Whole, open_whole
from acp_core.protocols.governed.read import existing_program, gates
from acp_core.protocols.governed.read import initiative as read_initiative
from acp_core.protocols.governed.read.initiative import PlannedBarrier, Workstream
from acp_core.protocols.governed.read.run import Pending, Run
from acp_core.protocols.governed.rules import initiative_reconcile
from acp_core.protocols.governed.rules.initiative_reconcile import CROSSED, RESYNC_FAILED, left
from acp_core.protocols.governed.schema import (
    Object,
    gate_called,
    obj,
    status_called,
    strings,
    text,
)
from acp_core.protocols.governed.write import initiative_repair, initiative_resync, initiative_trust
from acp_core.protocols.governed.write.initiative_opened import Opened
from acp_core.protocols.kit.wording import difference, safe

ALONE = 6

"""Workstreams that have a verdict of their own; the others are named in the form."""

_SCRIPT = 1 << 16  # bytes of a script that are shown


def initiative_cards(folder: str) -> tuple[Card, ...]:
    """What waits for a human's decision in an initiative now, the most urgent first.

    Args:
        folder: the initiative.
    """
    whole = open_whole(Path(folder))
    found = [_failure_card(whole.opened) if whole.opened else None, _gate_card(whole)]
    if whole.opened is not None:
        found.append(_hooks_card(whole.opened))
    return tuple(card for card in found if card is not None)


# --- a cross-repo gate ------------------------------------------------------------------------


def _gate_card(whole: Whole) -> Card | None:
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
    blocking = initiative_resync.problems(opened, planned) if opened and planned else []
    readable = [each for each in streams if each.run and not each.run.state.reason]
    gate = _of_each("Gate", readable, lambda run: _predicates(run, pending.phase))
    files = _of_each("Files", readable, lambda run: _files(_asking(run)))
    sections = (
        CardSection("Obstacles", tuple(map(_problem, blocking))),
        CardSection("Workstreams", tuple(_stream(each, pending) for each in streams[: cards.MOST])),
        gate,
        _of_each("Objections", readable, lambda run: cards.open_rows(run.objections)),
        _of_each("Decisions", readable, lambda run: cards.decision_rows(_asking(run))),
        _of_each("Tests", readable, lambda run: cards.test_rows(_asking(run))),
        cards.besides(files, gate),
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
            for each in streams[:ALONE]
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
    for each in gates.gates(run, phase):
        if not each.label.endswith(gates.BY_A_HUMAN):
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
    return CardSection(title, tuple(rows[: cards.MOST]))


# --- what keeps workstreams from crossing ------------------------------------------------------


def _failure_card(opened: Opened) -> Card | None:
    """What failed at a barrier, with what mends it."""
    status = opened.initiative.status
    if status not in (RESYNC_FAILED, CROSSED):
        return None
    barrier = initiative_resync.owed(opened)
    found = initiative_resync.problems(opened, barrier) if barrier else []
    mendable = initiative_repair.mendable(opened)
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
        for name in mendable[:ALONE]
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


def _problem(found: initiative_reconcile.ResyncProblem) -> Row:
    cells = tuple(filter(None, (safe(found.workstream), safe(found.reason))))
    return Row(cells, checked=False, tone=Tone.REVISE)


def _stream_row(stream: Workstream) -> Row:
    return Row((safe(stream.name), safe(stream.phase), safe(status_called(stream.status))))


def _approval(opened: Opened, barrier: PlannedBarrier) -> Iterator[Row]:
    """Who approved the barrier, with which comment."""
    kept = obj(obj(opened.initiative.state.value, "barriers"), barrier.name)
    by = text(kept, "approved_by", 80)
    if by:
        yield Row((safe(f"by {by}"), safe(text(kept, "comment", 2_000))), tone=Tone.ACCEPT)


# --- scripts ------------------------------------------------------------------------------------


def _hooks_card(opened: Opened) -> Card | None:
    """Scripts that the configuration names, and nobody let run as they stand."""
    root = opened.root
    paths = tuple(dict.fromkeys(each.path for each in opened.plan.hooks))
    if all(initiative_trust.is_trusted(root, each) for each in paths):
        return None
    rows: list[Row] = []
    changes: list[Change] = []
    for hook in opened.plan.hooks:
        seen, path = initiative_trust.digest(root, hook.path), safe(hook.path)
        said = f"sha256 {seen[:16]}" if seen else "is missing"
        trusted = initiative_trust.is_trusted(root, hook.path)
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
