"""A coordinator initiative over several repositories, as its files tell it, in both layouts.

Source: governed protocol specification, "Coordinator initiative" (``.coordinator/`` and a list
of workstreams). The existing program keeps ``.agentxchain/multirepo/`` and a table of
repositories instead; here, each such repository is a workstream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import Pending, Run, read_run
from acp_core.protocols.governed.schema import Loaded, Log, Object
from acp_core.protocols.governed.schema.coordinator import (
    BarrierRecord,
    CoordinatorConfig,
    CoordinatorState,
    StreamConfig,
    StreamRecord,
)
from acp_core.protocols.governed.schema.fields import decode

OWN, EXISTING = "coordinator", "multirepo"
_MOST = 100  # workstreams that are read


class Workstream(NamedTuple):
    """One repository's run; ``run`` is None where its path leads out of the initiative."""

    name: str
    path: str
    run: Run | None
    recorded: StreamRecord

    @property
    def phase(self) -> str:
        """Where it stands: as its own state tells it, else as the coordinator recorded it."""
        return (self.run.phase if self.run else "") or self.recorded.phase

    @property
    def status(self) -> str:
        """Its status; at a barrier it is ``blocked:barrier``."""
        if self.run is None:
            return "unreadable"
        return "blocked:barrier" if self.run.record.barrier else self.run.status


class Barrier(NamedTuple):
    """A synchronisation point: who must reach it and who has."""

    name: str
    phase: str
    kind: str
    status: str
    required: tuple[str, ...]
    reached: tuple[str, ...]
    approved_at: datetime | None
    comment: str


@dataclass(frozen=True)
class Initiative:
    """What was read of an initiative."""

    root: Path
    layout: str
    config: Loaded
    state: Loaded
    barriers_file: Loaded
    ledger: Log
    history: Log
    barrier_ledger: Log
    workstreams: tuple[Workstream, ...]
    barriers: tuple[Barrier, ...]

    @cached_property
    def record(self) -> CoordinatorState:
        """What the coordinator's state file holds."""
        return decode(CoordinatorState, self.state.value)

    @cached_property
    def settings(self) -> CoordinatorConfig:
        """What its configuration holds."""
        return decode(CoordinatorConfig, self.config.value)

    @property
    def status(self) -> str:
        """The coordinator's status as its file tells it."""
        return schema.status(self.state)

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases in order, as the configuration or else the first workstream has them."""
        named = schema.phases(self.config.value)
        if named:
            return named
        first = next((w.run for w in self.workstreams if w.run and w.run.config.value), None)
        return first.phases if first else schema.PHASES

    @property
    def phase(self) -> str:
        """The coordinator's phase, or that of the workstream that lags most."""
        if self.record.phase:
            return self.record.phase
        order = {name: place for place, name in enumerate(self.phases)}
        at = [w.phase for w in self.workstreams if w.phase in order]
        return min(at, key=lambda phase: order[phase], default="")

    @property
    def pending(self) -> Pending | None:
        """The cross-repo gate that waits for a human, or None."""
        if self.layout == OWN:
            reached = next((b for b in self.barriers if b.status == "reached"), None)
            if reached is None:
                return None
            since = self.record.barrier(reached.name).reached_at
            return Pending(reached.name, reached.phase, "", "", since)
        gate = self.record.pending_gate
        if not gate.raw:
            return None
        return Pending(gate.gate, gate.phase or self.phase, gate.to, "", gate.since)


def folder(layout: str) -> str:
    """The folder below the initiative's root in which the coordinator keeps its files."""
    return ".coordinator" if layout == OWN else ".agentxchain/multirepo"


def logs(initiative: Initiative) -> tuple[tuple[str, Log], ...]:
    """The coordinator's logs by their names, relative to the initiative's root."""
    home = folder(initiative.layout)
    if initiative.layout == OWN:
        return ((f"{home}/ledger.jsonl", initiative.ledger),)
    return (
        (f"{home}/decision-ledger.jsonl", initiative.ledger),
        (f"{home}/history.jsonl", initiative.history),
        (f"{home}/barrier-ledger.jsonl", initiative.barrier_ledger),
    )


def existing_streams(config: Object) -> dict[str, StreamConfig]:
    """The workstreams of the existing program's layout, by their names."""
    streams = schema.objects(config.get("workstreams"))
    return {name: decode(StreamConfig, raw) for name, raw in streams.items()}


def context_folder(config: Object) -> str:
    """Where the documents are that agents are told of the other workstreams, relative to the root."""
    if not isinstance(config.get("workstreams"), list):
        return f"{folder(EXISTING)}/context"
    return decode(CoordinatorConfig, config).context_folder


def read_initiative(root: Path, instead: Loaded | None = None) -> Initiative:
    """Read an initiative and its workstreams; never raises for what the files hold.

    Args:
        root: the initiative.
        instead: the coordinator's state, where its file is not to be read.
    """
    config = schema.read_object(root / schema.MULTI_CONFIG)
    layout = _layout(root, config.value)
    own = layout == OWN
    home = root / folder(layout)
    state = schema.read_object(home / "state.json") if instead is None else instead
    barriers_file = Loaded({}, missing=True) if own else schema.read_object(home / "barriers.json")
    read = Initiative(
        root,
        layout,
        config,
        state,
        barriers_file,
        schema.read_log(home / ("ledger.jsonl" if own else "decision-ledger.jsonl")),
        Log(()) if own else schema.read_log(home / "history.jsonl"),
        Log(()) if own else schema.read_log(home / "barrier-ledger.jsonl"),
        (),
        (),
    )
    read = replace(read, workstreams=tuple(_workstreams(read)))
    barriers = _own_barriers(read) if own else _existing_barriers(read)
    return replace(read, barriers=tuple(barriers)[:_MOST])


def _layout(root: Path, config: Object) -> str:
    if isinstance(config.get("workstreams"), list):
        return OWN
    if "repos" in config:
        return EXISTING
    return OWN if (root / ".coordinator").is_dir() else EXISTING


def _workstreams(read: Initiative) -> Iterator[Workstream]:
    record, settings = read.record, read.settings
    if read.layout == OWN:
        for each in settings.workstreams[:_MOST]:
            known = record.workstreams.get(each.name) or StreamRecord()
            if each.name:
                yield _workstream(read.root, each.name, known.path or each.name, each.config, known)
        return
    for name, each in list(settings.repos.items())[:_MOST]:
        relative = name if each.path is None else each.path
        known = record.repo_runs.get(name) or StreamRecord()
        yield _workstream(read.root, name, relative, schema.CONFIG, known)


def _workstream(
    root: Path, name: str, relative: str, config: str, recorded: StreamRecord
) -> Workstream:
    path = schema.inside(root, relative)
    if path is not None and path != root:
        within = schema.inside(path, config)
        if within is not None:
            home = within.parent  # a configuration deeper down has its run beside it
            run = read_run(home, within.name)
            return Workstream(clean_name(name, 80), str(home), run, recorded)
    return Workstream(clean_name(name, 80), clean_line(relative, 200), None, recorded)


def _own_barriers(read: Initiative) -> Iterator[Barrier]:
    required = tuple(stream.name for stream in read.workstreams)
    for each in read.settings.barriers:
        held = read.record.barrier(each.name)
        status = held.status or "pending"
        yield Barrier(
            each.name, each.phase, "cross-repo gate", status, required,
            tuple(clean_name(name, 80) for name in held.reached_by),
            held.approved_at, held.comment,
        )  # fmt: skip


def _existing_barriers(read: Initiative) -> Iterator[Barrier]:
    streams = existing_streams(read.config.value)
    for name, raw in schema.objects(read.barriers_file.value).items():
        held = decode(BarrierRecord, raw)
        phase = (streams.get(held.workstream) or StreamConfig()).phase
        status = held.status or "pending"
        yield Barrier(
            clean_name(name, 80), phase, held.type, status, held.required, held.reached_by,
            held.approved_at, "",
        )  # fmt: skip
