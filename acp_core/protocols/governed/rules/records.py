"""The rules for what a run's logs and dispatch bundles hold, line by line and file by file.

Source: governed protocol specification, "Files"; which fields a line has follows the shapes that
the existing program writes. Kinds of lines that are not known are left in peace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from acp_core import model
from acp_core.model.format import sentence_case
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import bundle
from acp_core.protocols.governed.read.run import AT_WORK, ActiveTurn, Run
from acp_core.protocols.governed.rules.finding import Trouble
from acp_core.protocols.governed.schema import Line, number, text

_ERROR, _WARNING = model.Severity.ERROR, model.Severity.WARNING
_MOST = 50  # findings of one log
_NEEDED = ("turn_id", "run_id", "role", "phase", "status", "summary", "accepted_at")
_DECISION = ("turn_id", "role", "phase", "category", "statement")
_DEC = re.compile(r"DEC-(?:COORD-)?[0-9]+\Z")
_OWN_KINDS = {
    "objection_raised": ("objection_id", "by"),
    "objection_status": ("objection_id", "status", "by"),
    "gate_approved": ("gate_id", "by"),
    "gate_rejected": ("gate_id", "by", "comment"),
    "turn_rejected": ("turn_id", "role"),
}


def check_records(run: Run) -> list[Trouble]:
    """What is wrong within the history, the ledger and the events, at most a few of each."""
    found = []
    for lines in (_history(run), _ledger(run), _events(run)):
        found += list(lines)[:_MOST]
    return found


def _history(run: Run) -> Iterator[Trouble]:
    seen: dict[str, int] = {}
    last = 0
    for line in run.history.lines:
        value = line.value
        lacking = [name for name in _NEEDED if not text(value, name)]
        if lacking:
            yield _of(schema.HISTORY, line, f"an accepted turn lacks {', '.join(lacking)}")
        turn = text(value, "turn_id", 80)
        if turn and turn in seen:
            yield _of(schema.HISTORY, line, f"{turn} was already accepted in line {seen[turn]}")
        seen[turn] = line.number
        sequence = number(value, "accepted_sequence")
        if sequence is not None and value.get("run_id") == run.state.value.get("run_id"):
            if sequence <= last:
                yield _of(schema.HISTORY, line, f"accepted_sequence {sequence} follows {last}")
            last = sequence


def _ledger(run: Run) -> Iterator[Trouble]:
    for line in run.ledger.lines:
        value = line.value
        kind = value.get("type")
        if kind is None and "decision" not in value:
            lacking = [name for name in _DECISION if not text(value, name)]
            id = value.get("id")
            if not isinstance(id, str) or not _DEC.match(id):
                lacking.insert(0, "an id like DEC-001")
            if lacking:
                yield _of(schema.LEDGER, line, f"a decision lacks {', '.join(lacking)}")
        for name in _OWN_KINDS.get(kind, ()) if isinstance(kind, str) else ():
            if not text(value, name):
                yield _of(schema.LEDGER, line, f"a line of type {kind} lacks {name}")
        if isinstance(kind, str) and "id" in value:
            message = f"a line of type {text(value, 'type', 60)} has an id, so readers take it for a decision"
            yield _of(schema.LEDGER, line, message)


def _events(run: Run) -> Iterator[Trouble]:
    for line in run.events.lines:
        lacking = [name for name in ("event_type", "timestamp") if not text(line.value, name)]
        if lacking:
            yield _of(schema.EVENTS, line, f"an event lacks {', '.join(lacking)}")


def _of(document: str, line: Line, message: str) -> Trouble:
    recorded = f"{document}, line {line.number}: {message}."
    remedy = "Check who wrote it; acp never rewrites an append-only log."
    return Trouble("RECORD", _WARNING, recorded, remedy, document, line.number)


def check_bundles(run: Run) -> list[Trouble]:
    """What of a turn's bundle does not belong to the turn, or was changed since it was written."""
    return [
        trouble
        for turn in run.turns
        if turn.bundle and turn.status in AT_WORK
        for trouble in (*_assignment(run, turn), *_manifest(run, turn))
    ]


def _assignment(run: Run, turn: ActiveTurn) -> Iterator[Trouble]:
    name = f"{bundle.folder(turn.id)}/ASSIGNMENT.json"
    path = schema.inside(run.root, name)
    if path is None:
        return
    loaded = schema.read_object(path)
    if loaded.reason:
        message = (
            f"The assignment of {turn.role} ({turn.id}) cannot be read: {schema.why(loaded.reason)}"
        )
        yield Trouble("BUNDLE", _ERROR, message, "Reassign the turn.", name)
        return
    wanted = (
        ("run_id", run.state.value.get("run_id")),
        ("turn_id", turn.raw.get("turn_id")),
        ("role", turn.raw.get("assigned_role")),
    )
    for key, value in wanted:
        recorded = loaded.value.get(key)
        if recorded is not None and value is not None and recorded != value:
            message = f"The assignment of {turn.role} is of {key} “{text(loaded.value, key, 80)}”."
            yield Trouble("BUNDLE", _ERROR, message, "Reassign the turn.", name)


def _manifest(run: Run, turn: ActiveTurn) -> Iterator[Trouble]:
    """Files of the bundle that are not as the manifest says."""
    home = bundle.folder(turn.id)
    manifest = bundle.read_manifest(run.root, turn.id)
    document = f"{home}/{bundle.MANIFEST}"
    if manifest.reason and not manifest.missing:
        message = f"The manifest of {turn.id} cannot be read: {schema.why(manifest.reason)}"
        yield Trouble("BUNDLE", _WARNING, message, document=document)
        return
    remedy = "Reassign the turn: its prompt has changed."
    for each in bundle.differences(run.root, turn.id, turn.raw.get(bundle.MARK)):
        outside = each.what == bundle.OUTSIDE
        said = each.sentence(home)
        yield Trouble(
            "BUNDLE", _ERROR if outside else _WARNING, f"{sentence_case(said)}.", remedy,
            document if outside else f"{home}/{each.name}",
        )  # fmt: skip
