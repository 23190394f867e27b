"""A governed run within one repository, as its files tell it.

Source: governed protocol specification, "Repo-local governed run". The open objections are
computed: no file holds them, an objection stands where the latest mention of its id left it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from acp_core.model.text import clean_name
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import existing_program, turn_files
from acp_core.protocols.governed.read.existing_program import Transaction
from acp_core.protocols.governed.read.turn_files import ProgramState
from acp_core.protocols.governed.schema import (
    AcceptedTurn,
    Config,
    Loaded,
    Log,
    ObjectionChange,
    Raised,
    RunState,
    TurnState,
    decode,
)

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


@dataclass(frozen=True, slots=True)
class ActiveTurn(TurnState):
    """A turn that is under way, and what stands in its folders.

    ``staged`` says that its result waits for acceptance, ``bundle`` that it was dispatched,
    ``running`` that its program is at work on this machine, ``lost`` that it was started here and
    is gone.
    """

    id: str = ""
    staged: bool = False
    bundle: bool = False
    running: bool = False
    lost: bool = False


class Pending(NamedTuple):
    """A gate that waits for a human: ``to`` is "" for the run's completion."""

    gate: str
    phase: str
    to: str
    turn: str
    since: datetime | None


@dataclass(frozen=True)
class Run:
    """What was read of a run; ``unfinished`` is what the existing program left half written."""

    root: Path
    config: Loaded
    state: Loaded
    history: Log
    ledger: Log
    events: Log
    session: Loaded
    turns: tuple[ActiveTurn, ...]
    unfinished: tuple[Transaction, ...] = ()

    @cached_property
    def accepted(self) -> tuple[AcceptedTurn, ...]:
        """The turns that were accepted, as the lines of the history tell."""
        return tuple(decode(AcceptedTurn, line.value) for line in self.history.lines)

    @cached_property
    def objections(self) -> tuple[Objection, ...]:
        """Every objection, in the order in which they were raised."""
        return objections(self.accepted, self.ledger)

    @cached_property
    def record(self) -> RunState:
        """What its state file holds."""
        return decode(RunState, self.state.value)

    @cached_property
    def settings(self) -> Config:
        """What its configuration holds."""
        return decode(Config, self.config.value)

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases in order: the keys of the configuration's routing."""
        return schema.phases(self.config.value) or schema.PHASES

    @property
    def phase(self) -> str:
        """The current phase, "" where the state does not tell."""
        return self.record.phase

    @property
    def status(self) -> str:
        """The run's status as its file tells it, "unreadable" where it cannot."""
        return schema.status(self.state)

    @property
    def pending(self) -> Pending | None:
        """The gate that waits for a human, or None."""
        asked = self.record.transition
        request = asked if asked.raw else self.record.completion
        if self.status not in ("paused", "blocked") or not request.raw:
            return None
        by = next((e for e in reversed(self.accepted) if e.turn_id == request.turn), None)
        since = request.since or (by.at if by else None)
        return Pending(request.gate, asked.phase or self.phase, asked.to, request.turn, since)

    @property
    def by_acp(self) -> bool:
        """Whether acp made this run, so that the specification's own rules hold in it."""
        return self.record.created_by == "acp"


def read_run(root: Path, config: str = schema.CONFIG) -> Run:
    """Read a run's files; never raises for what they hold."""
    state = schema.read_object(root / schema.STATE)
    return Run(
        root,
        schema.read_object(root / config),
        state,
        schema.read_log(root / schema.HISTORY),
        schema.read_log(root / schema.LEDGER),
        schema.read_log(root / schema.EVENTS),
        schema.read_object(root / schema.SESSION),
        tuple(_turns(root, decode(RunState, state.value))),
        existing_program.unfinished_transactions(root),
    )


def _turns(root: Path, state: RunState) -> Iterator[ActiveTurn]:
    legacy = state.current_turn
    active = state.active_turns or ({str(legacy.get("turn_id", "")): legacy} if legacy else {})
    for name, raw in list(active.items())[:50]:
        bundle = schema.inside(root, f".agentxchain/dispatch/turns/{name}")
        staged = schema.inside(root, f".agentxchain/staging/{name}/turn-result.json")
        program = turn_files.program_state(root, name)
        yield replace(
            decode(ActiveTurn, raw),
            id=clean_name(name, 80),
            staged=bool(staged and staged.is_file()),
            bundle=bool(bundle and bundle.is_dir()),
            running=program is ProgramState.RUNS,
            lost=program is ProgramState.LOST,
        )


def objections(accepted: Sequence[AcceptedTurn], ledger: Log) -> tuple[Objection, ...]:
    """Every objection, in the order in which they were raised."""
    mentions: list[tuple[float, Objection]] = []
    last = 0.0
    for turn in accepted:
        last = turn.at.timestamp() if turn.at else last
        mentions += [(last, _mention(each, turn.role, turn.at)) for each in turn.objections]
    for line in ledger.lines:
        if line.value.get("type") != "objection_status":
            continue
        change = decode(ObjectionChange, line.value)
        when = change.at.timestamp() if change.at else last
        mentions.append((when, _mention(change, change.by, change.at)))
    found: dict[str, Objection] = {}
    for _, each in sorted(mentions, key=lambda mention: mention[0]):
        first = found.get(each.id, each)
        found[each.id] = first._replace(
            status=each.status, changed_by=each.changed_by, changed_at=each.changed_at
        )
    found.pop("", None)
    return tuple(found.values())


def _mention(raised: Raised, by: str, at: datetime | None) -> Objection:
    status = raised.status or "raised"
    return Objection(raised.id, raised.severity, raised.statement, status, by, at, by, at)


def detect(folder_path: Path | str) -> bool:
    """Whether a governed run or an initiative stands in this folder.

    The name of the configuration decides nothing alone: it must hold what only such a
    configuration holds, or the program's own folder must stand beside it.
    """
    root = Path(folder_path)
    for name, keys, homes in (
        (schema.MULTI_CONFIG, ("workstreams", "repos"), (".coordinator", ".agentxchain/multirepo")),
        (schema.CONFIG, ("roles", "runtimes", "agents"), (".agentxchain",)),
    ):
        path = root / name
        if not path.is_file():
            continue
        loaded = schema.read_object(path)
        if any(key in loaded.value for key in keys):
            return True
        if any((root / home).is_dir() for home in homes):
            return True
    return False
