"""How a run's files contradict each other: what was decided or accepted, and did not come about.

These are the ways in which runs of the existing program were lost without a word. Source: governed
protocol specification, "Files" (the state, the log of accepted turns and the ledger belong
together) and "Phase model".
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_core import model
from acp_core.model.format import sentence_case
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.rules import foreign_steps, guard
from acp_core.protocols.governed.rules.finding import Trouble
from acp_core.protocols.governed.schema import act_names, obj, text
from acp_core.protocols.governed.schema.fields import decode
from acp_core.protocols.governed.schema.records import RunEvent

_WARNING = model.Severity.WARNING


def check_contradictions(run: Run) -> list[Trouble]:
    """Everything that the files say against each other."""
    found = [*_elsewhere(run), *_accepted(run), *_turns(run)]
    return [*found, *_queued(run), *_approved(run), *_session(run)]


def _elsewhere(run: Run) -> Iterator[Trouble]:
    """What the existing program did in a run of acp's own, lawfully."""
    found = foreign_steps.recognised(run) if guard.changed(run) else None
    if found is not None:
        message = f"{sentence_case(found.sentence)}; acp seals the run again with its next step."
        yield Trouble("SEALED_ANEW", model.Severity.ADVICE, message, document=schema.HISTORY)


def _accepted(run: Run) -> Iterator[Trouble]:
    """Turns that were accepted and are lost, or that are still under way."""
    known = {t for line in run.history.lines if isinstance(t := line.value.get("turn_id"), str)}
    last = run.state.value.get("last_completed_turn_id")
    if isinstance(last, str) and last not in known and not run.history.problems:
        message = f"The turn {_safe(last)} was accepted, but the history does not record it."
        remedy = "Restore the history from version control or a backup; its work may be lost."
        yield Trouble("ACCEPTED_LOST", _WARNING, message, remedy, schema.HISTORY, group="A2")
    for turn in run.turns:
        id = turn.raw.get("turn_id")
        if isinstance(id, str) and id in known:
            message = (
                f"The turn {turn.id} of {turn.role} was accepted but is still listed as active."
            )
            remedy = "Remove it from active_turns: its result is in the history."
            yield Trouble("ACCEPTED_ACTIVE", _WARNING, message, remedy, schema.STATE, group="A2")


def _turns(run: Run) -> Iterator[Trouble]:
    """Turns of another run."""
    wanted = run.state.value.get("run_id")
    for turn in run.turns:
        recorded = turn.raw.get("run_id")
        if isinstance(recorded, str) and isinstance(wanted, str) and recorded != wanted:
            message = (
                f"The turn {turn.id} belongs to the run {_safe(recorded)}, not to {_safe(wanted)}."
            )
            remedy = "Reject the turn, and reassign it in this run."
            yield Trouble(
                "TURN_OF_OTHER", _WARNING, message, remedy, schema.STATE, group="A4",
                participant=turn.role or None, action=act_names.REJECT,
            )  # fmt: skip


def _queued(run: Run) -> Iterator[Trouble]:
    """Requests that waited for other turns, which are over: nothing looks at them again."""
    if run.status != "active" or run.turns:
        return
    for key, what in (
        ("queued_phase_transition", "to leave the phase"),
        ("queued_run_completion", "to complete the run"),
    ):
        if obj(run.state.value, key):
            message = f"A turn's request {what} is queued, but no turn is active."
            remedy = "Let a new turn request it again."
            yield Trouble(
                "REQUEST_QUEUED",
                _WARNING,
                message,
                remedy,
                schema.STATE,
                group="D2",
                action=act_names.STEP,
            )


def _approved(run: Run) -> Iterator[Trouble]:
    """A human opened the gate, and the run stayed where it was."""
    for line in reversed(run.events.lines[-500:]):
        event = decode(RunEvent, line.value)
        if event.kind in ("phase_entered", "gate_rejected", "run_started", "run_initialized"):
            return
        if event.kind == "gate_approved" and event.origin and event.to:
            if run.phase == event.origin and run.status in ("active", "paused"):
                message = f"The gate {event.gate} to {event.to} was approved, but the run is still "
                message += f"in {run.phase}."
                remedy = "Check who wrote the state last; let a turn request the gate again."
                yield Trouble(
                    "APPROVED_NOT_MOVED", _WARNING, message, remedy, schema.EVENTS, line.number,
                    "D6", event.at, action=act_names.STEP,
                )  # fmt: skip
            return


def _session(run: Run) -> Iterator[Trouble]:
    """The existing program's checkpoint tells of something else than the state."""
    state, session = run.state.value, run.session
    if session.reason and not session.missing:
        message = f"{schema.SESSION} cannot be read: {schema.why(session.reason)}"
        yield Trouble("SESSION_DRIFT", _WARNING, message, document=schema.SESSION)
        return
    other = text(session.value, "run_id", 80)
    if other and other != text(state, "run_id", 80) and state.get("run_id"):
        message = f"The session's checkpoint belongs to another run ({other})."
        yield Trouble("SESSION_DRIFT", _WARNING, message, document=schema.SESSION)
        return
    recorded = text(session.value, "run_status", 40)
    at_odds = ("paused", "blocked", "completed")
    if recorded in at_odds and run.status == "active":
        message = f"The session's checkpoint says {recorded} while the run is active."
        yield Trouble("SESSION_DRIFT", _WARNING, message, document=schema.SESSION)


def _safe(name: str) -> str:
    return clean_line(name, 80)
