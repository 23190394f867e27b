"""The rules for what the coordinator keeps: its state and its ledger, in the specification's layout.

Source: governed protocol specification, "File layout" (coordinator state, coordinator decision
ledger); which words there are is fixed by `acp_core.protocols.governed.coordinator.reconcile`.
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_core import model
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.coordinator import reconcile
from acp_core.protocols.governed.read.initiative import OWN, Initiative, folder
from acp_core.protocols.governed.rules.finding import Trouble
from acp_core.protocols.governed.schema import objects, strings, text

_STATE, _LEDGER = f"{folder(OWN)}/state.json", f"{folder(OWN)}/ledger.jsonl"
_STATUSES = (reconcile.ACTIVE, reconcile.COMPLETED, reconcile.RESYNC_FAILED, reconcile.CROSSED)
_BARRIERS = (reconcile.PENDING, reconcile.REACHED, reconcile.APPROVED, reconcile.REJECTED)
_MOST = 50  # findings of the ledger


def check_coordinator(initiative: Initiative) -> list[Trouble]:
    """Everything that is wrong with the coordinator's state and ledger."""
    if initiative.layout != OWN:
        return []
    found = [] if initiative.state.reason else list(_state(initiative))
    return found + list(_ledger(initiative))[:_MOST]


def _state(initiative: Initiative) -> Iterator[Trouble]:
    state = initiative.state.value
    if state.get("status") not in _STATUSES:
        yield _wrong(f"The status “{text(state, 'status', 80)}” is none that an initiative has.")
    wanted = text(initiative.config.value, "super_run_id", 120)
    told = text(state, "super_run_id", 120)
    if wanted and told != wanted:
        yield _wrong(
            f"The coordinator's state is of “{told}”, and the configuration of “{wanted}”."
        )
    names = {stream.name for stream in initiative.workstreams}
    recorded = objects(state.get("workstreams"))
    if lost := sorted(names - {schema.text({"": name}, "", 80) for name in recorded}):
        yield _wrong(f"The coordinator's state knows nothing of {', '.join(lost[:5])}.")
    kept = objects(state.get("barriers"))
    for barrier in initiative.barriers:
        record = kept.get(barrier.name)
        if record is None:
            yield _wrong(f"The coordinator's state knows nothing of the barrier {barrier.name}.")
            continue
        if record.get("status") not in _BARRIERS:
            known = ", ".join(_BARRIERS)
            yield _wrong(f"The barrier {barrier.name} must be one of: {known}.")
        if record.get("status") == reconcile.APPROVED:
            lacking = [k for k in ("approved_at", "approved_by") if not text(record, k)]
            if lacking:
                yield _wrong(f"The approved barrier {barrier.name} lacks {', '.join(lacking)}.")
        if unknown := sorted({*strings(record, "reached_by")} - names):
            named = text({"": ", ".join(unknown)}, "", 120)
            yield _wrong(f"The barrier {barrier.name} was reached by {named}, which is none.")


def _ledger(initiative: Initiative) -> Iterator[Trouble]:
    wanted = text(initiative.state.value, "super_run_id", 120)
    for line in initiative.ledger.lines:
        lacking = [key for key in ("type", "at", "super_run_id") if not text(line.value, key)]
        message = f"the line lacks {', '.join(lacking)}" if lacking else ""
        told = text(line.value, "super_run_id", 120)
        if not lacking and wanted and told != wanted:
            message = f"the line is of the initiative “{told}”"
        if message:
            yield Trouble(
                "RECORD", model.Severity.WARNING, f"{_LEDGER}, line {line.number}: {message}.",
                "Look at who wrote it; acp rewrites no append-only log.", _LEDGER, line.number,
            )  # fmt: skip


def _wrong(message: str) -> Trouble:
    remedy = "Mend the file, or let the coordinator step: it writes down what it sees."
    return Trouble("COORDINATOR_STATE", model.Severity.WARNING, message, remedy, _STATE)
