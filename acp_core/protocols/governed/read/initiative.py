"""A coordinator initiative over several repositories, as its files tell it, in both layouts.

Source: governed protocol specification, "Coordinator initiative" (``.coordinator/`` and a list
of workstreams). The existing program keeps ``.agentxchain/multirepo/`` and a table of
repositories instead; here, each such repository is a workstream.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files.text import clean_line, clean_name
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import Pending, Run, read_run
from acp_core.protocols.governed.schema import Loaded, Log, Object, obj, objects, text

OWN, EXISTING = "coordinator", "multirepo"
_MOST = 100  # workstreams that are read


class Workstream(NamedTuple):
    """One repository's run; ``run`` is None where its path leads out of the initiative."""

    name: str
    path: str
    run: Run | None
    recorded: Object

    @property
    def phase(self) -> str:
        """Where it stands: as its own state tells it, else as the coordinator recorded it."""
        return (self.run.phase if self.run else "") or text(self.recorded, "phase", 80)

    @property
    def status(self) -> str:
        """Its status; at a barrier it is ``blocked:barrier``."""
        if self.run is None:
            return "unreadable"
        on = text(self.run.state.value, "blocked_on", 200)
        return "blocked:barrier" if on.startswith("barrier:") else self.run.status


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


class Initiative(NamedTuple):
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
        told = text(self.state.value, "phase", 80)
        if told:
            return told
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
            since = schema.moment(
                objects(self.state.value.get("barriers")).get(reached.name, {}), "reached_at"
            )
            return Pending(reached.name, reached.phase, "", "", since)
        gate = obj(self.state.value, "pending_gate")
        if not gate:
            return None
        return Pending(
            text(gate, "gate", 200),
            text(gate, "from", 80) or self.phase,
            text(gate, "to", 80),
            "",
            schema.moment(gate, "requested_at"),
        )


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


def context_folder(config: Object) -> str:
    """Where the documents are that agents are told of the other workstreams, relative to the root."""
    if not isinstance(config.get("workstreams"), list):
        return f"{folder(EXISTING)}/context"
    given = obj(config, "context_generation").get("output_dir")
    return given if isinstance(given, str) and given else f"{folder(OWN)}/context"


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
    kept = Loaded({}, missing=True) if own else schema.read_object(home / "barriers.json")
    workstreams = tuple(_workstreams(root, layout, config.value, state.value))
    names = tuple(w.name for w in workstreams)
    barriers = (
        _own_barriers(config.value, state.value, names)
        if own
        else _existing_barriers(config.value, kept.value)
    )
    return Initiative(
        root,
        layout,
        config,
        state,
        kept,
        schema.read_log(home / ("ledger.jsonl" if own else "decision-ledger.jsonl")),
        Log(()) if own else schema.read_log(home / "history.jsonl"),
        Log(()) if own else schema.read_log(home / "barrier-ledger.jsonl"),
        workstreams,
        tuple(barriers[:_MOST]),
    )


def _layout(root: Path, config: Object) -> str:
    if isinstance(config.get("workstreams"), list):
        return OWN
    if "repos" in config:
        return EXISTING
    return OWN if (root / ".coordinator").is_dir() else EXISTING


def _workstreams(root: Path, layout: str, config: Object, state: Object) -> list[Workstream]:
    found = []
    if layout == OWN:
        recorded = objects(state.get("workstreams"))
        for raw in schema.items(config, "workstreams")[:_MOST]:
            name = raw.get("name")
            if not isinstance(name, str) or not name:
                continue
            relative = recorded.get(name, {}).get("path")
            relative = relative if isinstance(relative, str) and relative else name
            given = raw.get("config_path")
            given = given if isinstance(given, str) and given else schema.CONFIG
            found.append(_workstream(root, name, relative, given, recorded.get(name, {})))
        return found
    recorded = objects(state.get("repo_runs"))
    for name, raw in list(objects(config.get("repos")).items())[:_MOST]:
        relative = raw.get("path")
        relative = relative if isinstance(relative, str) else name
        found.append(_workstream(root, name, relative, schema.CONFIG, recorded.get(name, {})))
    return found


def _workstream(root: Path, name: str, relative: str, config: str, recorded: Object) -> Workstream:
    path = schema.inside(root, relative)
    if path is not None and path != root:
        within = schema.inside(path, config)
        if within is not None:
            home = within.parent  # a configuration deeper down has its run beside it
            run = read_run(home, within.name)
            return Workstream(clean_name(name, 80), str(home), run, recorded)
    return Workstream(clean_name(name, 80), clean_line(relative, 200), None, recorded)


def _own_barriers(config: Object, state: Object, names: tuple[str, ...]) -> list[Barrier]:
    kept = objects(state.get("barriers"))
    found = []
    for raw in schema.items(config, "barriers"):
        name = raw.get("name")
        record = kept.get(name, {}) if isinstance(name, str) else {}
        found.append(
            Barrier(
                text(raw, "name", 80),
                text(raw, "phase", 80),
                "cross-repo gate",
                text(record, "status", 40) or "pending",
                names,
                tuple(clean_name(name, 80) for name in schema.strings(record, "reached_by")),
                schema.moment(record, "approved_at"),
                text(record, "comment"),
            )
        )
    return found


def _existing_barriers(config: Object, kept: Object) -> list[Barrier]:
    streams = objects(config.get("workstreams"))
    return [
        Barrier(
            clean_name(name, 80),
            text(streams.get(str(raw.get("workstream_id")), {}), "phase", 80),
            text(raw, "type", 80),
            text(raw, "status", 40) or "pending",
            tuple(clean_line(repo, 80) for repo in schema.strings(raw, "required_repos")),
            tuple(clean_line(repo, 80) for repo in schema.strings(raw, "satisfied_repos")),
            schema.moment(raw, "approved_at"),
            "",
        )
        for name, raw in objects(kept).items()
    ]
