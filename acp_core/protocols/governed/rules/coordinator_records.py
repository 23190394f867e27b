"""The rules for what the coordinator keeps: its state and its ledger, in the specification's layout.

Source: governed protocol specification, "File layout" (coordinator state, coordinator decision
ledger); which words there are is fixed by `acp_core.protocols.governed.rules.initiative_reconcile`.
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_core import model
from acp_core.model.text import clean_line
from acp_core.protocols.governed.read.initiative import OWN, Initiative, folder
from acp_core.protocols.governed.rules import initiative_reconcile
from acp_core.protocols.governed.rules.finding import Trouble
from acp_core.protocols.governed.schema import text

_STATE, _LEDGER = f"{folder(OWN)}/state.json", f"{folder(OWN)}/ledger.jsonl"
_STATUSES = (
    initiative_reconcile.ACTIVE,
    initiative_reconcile.COMPLETED,
    initiative_reconcile.RESYNC_FAILED,
    initiative_reconcile.CROSSED,
)
_BARRIERS = (
    initiative_reconcile.PENDING,
    initiative_reconcile.REACHED,
    initiative_reconcile.APPROVED,
    initiative_reconcile.REJECTED,
)
_MOST = 50  # findings of the ledger


def check_coordinator(initiative: Initiative) -> list[Trouble]:
    """Everything that is wrong with the coordinator's state and ledger."""
    if initiative.layout != OWN:
        return []
    found = [] if initiative.state.reason else list(_state(initiative))
    return found + list(_ledger(initiative))[:_MOST]


def _state(initiative: Initiative) -> Iterator[Trouble]:
    state, wanted = initiative.record, initiative.settings.super_run_id
    if state.status not in _STATUSES:
        yield _wrong(f"Unknown initiative status “{state.status}”.")
    if wanted and state.super_run_id != wanted:
        given = state.super_run_id
        yield _wrong(
            f"The coordinator's state belongs to “{given}”, the configuration to “{wanted}”."
        )
    names = {stream.name for stream in initiative.workstreams}
    if lost := sorted(names - {clean_line(name, 80) for name in state.workstreams}):
        yield _wrong(f"The coordinator's state lacks {', '.join(lost[:5])}.")
    for barrier in initiative.barriers:
        record = state.barriers.get(barrier.name)
        if record is None:
            yield _wrong(f"The coordinator's state lacks the barrier {barrier.name}.")
            continue
        if record.status not in _BARRIERS:
            known = ", ".join(_BARRIERS)
            yield _wrong(f"The barrier {barrier.name} must be one of: {known}.")
        if record.status == initiative_reconcile.APPROVED:
            lacking = [k for k in ("approved_at", "approved_by") if not text(record.raw, k)]
            if lacking:
                yield _wrong(f"The approved barrier {barrier.name} lacks {', '.join(lacking)}.")
        if unknown := sorted({*record.reached_by} - names):
            named = clean_line(", ".join(unknown), 120)
            yield _wrong(
                f"The barrier {barrier.name} was reached by {named}, an unknown workstream."
            )


def _ledger(initiative: Initiative) -> Iterator[Trouble]:
    wanted = initiative.record.super_run_id
    for line in initiative.ledger.lines:
        lacking = [key for key in ("type", "at", "super_run_id") if not text(line.value, key)]
        message = f"the line lacks {', '.join(lacking)}" if lacking else ""
        recorded = text(line.value, "super_run_id", 120)
        if not lacking and wanted and recorded != wanted:
            message = f"the line belongs to the initiative “{recorded}”"
        if message:
            yield Trouble(
                "RECORD", model.Severity.WARNING, f"{_LEDGER}, line {line.number}: {message}.",
                "Check who wrote it; acp never rewrites an append-only log.", _LEDGER, line.number,
            )  # fmt: skip


def _wrong(message: str) -> Trouble:
    remedy = "Correct the file, or step the coordinator, which records what it finds."
    return Trouble("COORDINATOR_STATE", model.Severity.WARNING, message, remedy, _STATE)
