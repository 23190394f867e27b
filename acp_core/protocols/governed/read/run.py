"""A governed run within one repository, as its files tell it.

Source: governed protocol specification, "Repo-local governed run". The open objections are
computed: no file holds them, an objection stands where the latest mention of its id left it.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files.text import clean_name
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.conduct import processes
from acp_core.protocols.governed.read import unfinished as transactions
from acp_core.protocols.governed.read.unfinished import Transaction
from acp_core.protocols.governed.schema import Loaded, Log, Object, obj, objects, text

AT_WORK = ("assigned", "dispatched", "starting", "running", "retrying", "reissued", "")


class Objection(NamedTuple):
    """An objection from its first mention to its latest."""

    id: str
    severity: str
    statement: str
    status: str
    raised_by: str
    raised_at: datetime | None
    changed_by: str
    changed_at: datetime | None

    @property
    def open(self) -> bool:
        """Whether it still stands."""
        return self.status not in schema.RESOLVED


class ActiveTurn(NamedTuple):
    """A turn that is under way.

    ``staged`` says that its result waits for acceptance, ``running`` that its program is at work
    on this machine, ``lost`` that it was started here and is gone.
    """

    id: str
    role: str
    status: str
    attempt: int
    since: datetime | None
    deadline: datetime | None
    staged: bool
    bundle: bool
    runtime: str
    raw: Object
    running: bool = False
    lost: bool = False


class Pending(NamedTuple):
    """A gate that waits for a human: ``to`` is "" for the run's completion."""

    gate: str
    phase: str
    to: str
    turn: str
    since: datetime | None


class Run(NamedTuple):
    """What was read of a run; ``unfinished`` is what the existing program left half written."""

    root: Path
    config: Loaded
    state: Loaded
    history: Log
    ledger: Log
    events: Log
    session: Loaded
    turns: tuple[ActiveTurn, ...]
    objections: tuple[Objection, ...]
    unfinished: tuple[Transaction, ...] = ()

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases in order: the keys of the configuration's routing."""
        return schema.phases(self.config.value) or schema.PHASES

    @property
    def phase(self) -> str:
        """The current phase, "" where the state does not tell."""
        return text(self.state.value, "phase", 80)

    @property
    def status(self) -> str:
        """The run's status as its file tells it, "unreadable" where it cannot."""
        return schema.status(self.state)

    @property
    def pending(self) -> Pending | None:
        """The gate that waits for a human, or None."""
        state = self.state.value
        if self.status not in ("paused", "blocked"):
            return None
        asked = obj(state, "pending_phase_transition")
        done = obj(state, "pending_run_completion")
        asked_of = asked or done
        if not asked_of:
            return None
        since = schema.moment(asked_of, "requested_at") or self._accepted(asked_of)
        phase = text(asked, "from", 80) or self.phase
        to = text(asked, "to", 80)
        return Pending(
            text(asked_of, "gate", 120), phase, to, text(asked_of, "requested_by_turn", 80), since
        )

    def _accepted(self, asked: Object) -> datetime | None:
        turn = asked.get("requested_by_turn")
        for line in reversed(self.history.lines):
            if line.value.get("turn_id") == turn:
                return schema.moment(line.value, "accepted_at")
        return None

    @property
    def barrier(self) -> str:
        """The barrier of its initiative at which it waits for others, "" where at none."""
        on = text(self.state.value, "blocked_on", 200)
        return on.removeprefix("barrier:") if on.startswith("barrier:") else ""

    @property
    def gate(self) -> str:
        """The exit gate of the current phase, "" where none is configured."""
        return self.gate_of(self.phase)

    def gate_of(self, phase: str) -> str:
        """The exit gate of a phase, "" where none is configured."""
        raw = objects(obj(self.config.value, "routing")).get(phase, {})
        return text(raw, "exit_gate", 120)

    @property
    def by_acp(self) -> bool:
        """Whether acp made this run, so that the specification's own rules hold in it."""
        return obj(self.state.value, "provenance").get("created_by") == "acp"


def read_run(root: Path, config: str = schema.CONFIG) -> Run:
    """Read a run's files; never raises for what they hold."""
    state = schema.read_object(root / schema.STATE)
    history, ledger = schema.read_log(root / schema.HISTORY), schema.read_log(root / schema.LEDGER)
    return Run(
        root,
        schema.read_object(root / config),
        state,
        history,
        ledger,
        schema.read_log(root / schema.EVENTS),
        schema.read_object(root / schema.SESSION),
        tuple(_turns(root, state.value)),
        objections(history, ledger),
        transactions.unfinished(root),
    )


def _turns(root: Path, state: Object) -> list[ActiveTurn]:
    found = []
    active = objects(state.get("active_turns"))
    legacy = obj(state, "current_turn")
    if legacy and not active:
        active = {str(legacy.get("turn_id", "")): legacy}
    for name, raw in list(active.items())[:50]:
        bundle = schema.inside(root, f".agentxchain/dispatch/turns/{name}")
        staged = schema.inside(root, f".agentxchain/staging/{name}/turn-result.json")
        found.append(
            ActiveTurn(
                clean_name(name, 80),
                text(raw, "assigned_role", 80) or text(raw, "role", 80),
                text(raw, "status", 40),
                schema.number(raw, "attempt") or 1,
                schema.moment(raw, "dispatched_at", "started_at", "assigned_at"),
                schema.moment(raw, "deadline_at"),
                bool(staged and staged.is_file()),
                bool(bundle and bundle.is_dir()),
                text(raw, "runtime_id", 80),
                raw,
                processes.runs(root, str(name)),
                processes.is_lost(root, str(name)),
            )
        )
    return found


def objections(history: Log, ledger: Log) -> tuple[Objection, ...]:
    """Every objection, in the order in which they were raised."""
    mentions: list[tuple[float, str, Object, str, datetime | None]] = []
    last = 0.0
    for line in history.lines:
        by, at = text(line.value, "role", 80), schema.moment(line.value, "accepted_at")
        last = at.timestamp() if at else last
        for raw in schema.items(line.value, "objections"):
            mentions.append((last, text(raw, "id", 40), raw, by, at))
    for line in ledger.lines:
        if line.value.get("type") != "objection_status":
            continue
        by, at = text(line.value, "by", 80), schema.moment(line.value, "at")
        when = at.timestamp() if at else last
        mentions.append((when, text(line.value, "objection_id", 40), line.value, by, at))
    found: dict[str, Objection] = {}
    for _, id, raw, by, at in sorted(mentions, key=lambda each: each[0]):
        _mention(found, id, raw, by, at)
    return tuple(found.values())


def _mention(
    found: dict[str, Objection], id: str, raw: Object, by: str, at: datetime | None
) -> None:
    if not id:
        return
    status = text(raw, "status", 40) or "raised"
    before = found.get(id)
    if before is None:
        severity, statement = text(raw, "severity", 40), text(raw, "statement")
        found[id] = Objection(id, severity, statement, status, by, at, by, at)
    else:
        found[id] = before._replace(status=status, changed_by=by, changed_at=at)
