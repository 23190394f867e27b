"""A coordinator initiative over several repositories: as its files tell it, and as it is planned.

Read in both layouts. Source: governed protocol specification, "Coordinator initiative"
(``.coordinator/`` and a list of workstreams), "Coordinator config" and "Gates and resync". The
existing program keeps ``.agentxchain/multirepo/`` and a table of repositories instead; here, each
such repository is a workstream.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from acp_core.model.errors import Refused
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.own_writes import COORDINATOR_HOME, coordinators_above
from acp_core.protocols.governed.read.run import Pending, Run, read_run
from acp_core.protocols.governed.schema import (
    BarrierRecord,
    CoordinatorConfig,
    CoordinatorState,
    Loaded,
    Log,
    Object,
    StreamConfig,
    StreamRecord,
    decode,
    exit_gate,
    obj,
    objects,
    text,
)
from acp_core.protocols.governed.state import (
    Move,
    Request,
    approved,
    blocked,
    copied,
    format_time,
    rejected_gate,
)

OWN, EXISTING = "coordinator", "multirepo"
_MOST = 100  # workstreams that are read


class Workstream(NamedTuple):
    """One repository's run; ``run`` is None where its path leads out of the initiative."""

    name: str
    path: str
    run: Run | None
    recorded: StreamRecord

    @property
    def readable(self) -> Run | None:
        """Its run, where the state of that can be read."""
        return None if self.run is None or self.run.state.reason else self.run

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


# --- ``agentxchain-multi.json`` as something to act on: checked, with every path kept inside

HOOKS = (
    "on_barrier_reached",
    "on_barrier_approved",
    "on_super_run_completed",
    "on_workstream_failed",
)

TIMEOUT_MS = 30_000  # of a hook, where the configuration names none
CONTEXT_FOLDER = ".coordinator/context/"
MOST_STREAMS = 100  # workstreams, and barriers
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_BRANCH = re.compile(r"(?!-)(?!.*(?:\.\.|@\{|//))[A-Za-z0-9._/@+#-]{1,200}")
_RESERVED = ("coordinator-hooks", "agentxchain-multi.json")


class Stream(NamedTuple):
    """A workstream: ``config_path`` is relative to its repository."""

    name: str
    repo: str
    branch: str
    config_path: str

    @property
    def run(self) -> str:
        """The folder of its run, relative to its repository ("." where it is the same)."""
        return str(PurePosixPath(self.config_path).parent)


class PlannedBarrier(NamedTuple):
    """A synchronisation point: every workstream stops where it asks to leave ``phase``."""

    name: str
    phase: str
    description: str


class Hook(NamedTuple):
    """A script to run: ``path`` is relative to the initiative."""

    name: str
    path: str
    timeout_ms: int


class ContextRules(NamedTuple):
    """Whether and what is told across the workstreams (``context_generation``)."""

    enabled: bool
    folder: str
    decisions: bool
    objections: bool
    files: bool


class Plan(NamedTuple):
    """The whole configuration."""

    super_run_id: str
    description: str
    streams: tuple[Stream, ...]
    barriers: tuple[PlannedBarrier, ...]
    hooks: tuple[Hook, ...]
    context: ContextRules

    def barrier(self, name: str) -> PlannedBarrier | None:
        """The barrier of this name."""
        return next((each for each in self.barriers if each.name == name), None)

    def by_phase(self) -> dict[str, str]:
        """Phase -> the barrier that ends it."""
        return {each.phase: each.name for each in self.barriers}


def read_plan(root: Path) -> Plan:
    """The configuration of the initiative in ``root``.

    Raises:
        Refused: it cannot be read, or something in it must not be acted on: what, and where.
    """
    loaded = schema.read_object(root / schema.MULTI_CONFIG)
    if loaded.missing:
        raise Refused(f"{root} has no {schema.MULTI_CONFIG}: write the initiative's configuration")
    if loaded.reason:
        raise _wrong(loaded.reason)
    return plan_of(loaded.value)


def plan_of(config: Object) -> Plan:
    """The plan in a configuration. Raises as `read_plan`."""
    if not isinstance(config.get("workstreams"), list):
        raise _wrong(
            "“workstreams” must be a list; acp only reads the layout of the agentxchain program"
        )
    streams = tuple(_stream(raw, place) for place, raw in enumerate(config["workstreams"], 1))
    if not 0 < len(streams) <= MOST_STREAMS:
        raise _wrong(f"an initiative needs 1 to {MOST_STREAMS} workstreams")
    raw_barriers = config.get("barriers", [])
    if not isinstance(raw_barriers, list) or len(raw_barriers) > MOST_STREAMS:
        raise _wrong(f"“barriers” must be a list of at most {MOST_STREAMS}")
    barriers = tuple(_barrier(raw, place) for place, raw in enumerate(raw_barriers, 1))
    _once("workstream", [each.name.casefold() for each in streams])
    _once("barrier", [each.name for each in barriers])
    _once("barrier of phase", [each.phase for each in barriers])
    run_id = config.get("super_run_id", "")
    if not isinstance(run_id, str) or (run_id and not _NAME.fullmatch(run_id)):
        raise _wrong("“super_run_id” must be letters, digits, dots, dashes and underscores")
    description = config.get("description", "")
    return Plan(
        run_id,
        description if isinstance(description, str) else "",
        streams,
        barriers,
        tuple(_hooks(config)),
        _context(obj(config, "context_generation")),
    )


def _wrong(what: str) -> Refused:
    return Refused(f"{schema.MULTI_CONFIG}: {clean_line(what, 400)}")


def _once(what: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise _wrong(f"{what} {', '.join(twice)} is named twice")


def _stream(raw: object, place: int) -> Stream:
    if not isinstance(raw, dict):
        raise _wrong(f"workstream {place} is not an object")
    name, repo = raw.get("name"), raw.get("repo", "")
    branch, config = raw.get("branch", ""), raw.get("config_path", schema.CONFIG)
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.casefold() in _RESERVED:
        raise _wrong(f"workstream {place} needs a name of letters, digits, dots and dashes")
    if not isinstance(repo, str) or "\0" in repo or "\n" in repo or len(repo) > 1000:
        raise _wrong(f"workstream {name}: “repo” must be an address or a folder")
    if not isinstance(branch, str) or (branch and not _BRANCH.fullmatch(branch)):
        raise _wrong(f"workstream {name}: “branch” is not a valid branch name")
    if not isinstance(config, str) or not _is_inside(config):
        raise _wrong(f"workstream {name}: “config_path” must stay inside the repository")
    return Stream(name, repo, branch, config)


def _barrier(raw: object, place: int) -> PlannedBarrier:
    if not isinstance(raw, dict):
        raise _wrong(f"barrier {place} is not an object")
    name, phase, description = raw.get("name"), raw.get("phase"), raw.get("description", "")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _wrong(f"barrier {place} needs a name of letters, digits, dots and dashes")
    if not isinstance(phase, str) or not phase:
        raise _wrong(f"barrier {name} names no phase")
    return PlannedBarrier(name, phase, description if isinstance(description, str) else "")


def _hooks(config: Object) -> list[Hook]:
    found = []
    for name, raw in obj(config, "hooks").items():
        if name not in HOOKS:
            raise _wrong(f"unknown hook {name} (hooks: {', '.join(HOOKS)})")
        path, timeout = raw, TIMEOUT_MS
        if isinstance(raw, dict):
            path, timeout = raw.get("path"), raw.get("timeout_ms", TIMEOUT_MS)
        if not isinstance(path, str) or not _is_inside(path):
            raise _wrong(f"hook {name} must name a script inside the initiative")
        whole = isinstance(timeout, int) and not isinstance(timeout, bool)
        if not whole or not 100 <= timeout <= 600_000:
            raise _wrong(f"hook {name}: “timeout_ms” must be from 100 to 600000")
        found.append(Hook(name, path, timeout))
    return found


def _context(raw: Object) -> ContextRules:
    def on(key: str) -> bool:
        return raw.get(key, True) is True

    folder = raw.get("output_dir", CONTEXT_FOLDER)
    if not isinstance(folder, str) or not _is_inside(folder):
        raise _wrong("“context_generation.output_dir” must stay inside the initiative")
    return ContextRules(
        on("enabled"),
        folder,
        on("include_decisions"),
        on("include_objections"),
        on("include_file_summaries"),
    )


def _is_inside(path: str) -> bool:
    """Whether a relative path stays where it is; links are looked at when it is used."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and "\0" not in path


# --- what a barrier makes of a workstream's run: it holds it, lets it cross, or sends it back
# Pure functions of a run's state. A workstream reaches a barrier when its work in the barrier's phase
# is accepted and it asks to leave that phase (in the last phase: to complete).

HELD_AT_BARRIER = "barrier:"
APPROVE_ACTION = "Approve the barrier with acp governed coordinator approve-barrier"


def held_at(state: Object) -> str:
    """The barrier at which a run is held, "" where at none."""
    on = state.get("blocked_on")
    if (
        state.get("status") != "blocked"
        or not isinstance(on, str)
        or not on.startswith(HELD_AT_BARRIER)
    ):
        return ""
    return on.removeprefix(HELD_AT_BARRIER)


def barrier_request(run: Run) -> Request | None:
    """What a run asks for, held at a barrier or (before it is held) at its own gate."""
    state = run.state.value
    if held_at(state):
        raw = obj(state, "barrier_request")
        return _request_of(run, raw, raw.get("to"))
    asked, done = obj(state, "pending_phase_transition"), obj(state, "pending_run_completion")
    if state.get("status") != "paused" or not (asked or done):
        return None
    return _request_of(run, asked or done, asked.get("to"))


def _request_of(run: Run, raw: Object, to: object) -> Request:
    phase = str(run.state.value.get("phase"))
    gate = text(raw, "gate", 200) or exit_gate(run.config.value, phase)
    next_phase = to if isinstance(to, str) else ""
    kind = "phase_transition" if next_phase else "run_completion"
    return Request(kind, gate, phase, next_phase, text(raw, "requested_by_turn", 200))


def has_worked(run: Run) -> bool:
    """Whether a turn was accepted in the phase in which the run is."""
    state = run.state.value
    return any(
        line.value.get("phase") == state.get("phase")
        and line.value.get("run_id") == state.get("run_id")
        for line in run.history.lines
    )


def phase_after(phases: Sequence[str], phase: str) -> str | None:
    """The phase after this one, None after the last.

    Raises:
        ValueError: it is none of them.
    """
    place = list(phases).index(phase)
    return phases[place + 1] if place + 1 < len(phases) else None


def hold_at_barrier(run: Run, asked: Request, barrier: str, now: datetime) -> Move:
    """The run that asked to leave its phase, held at a barrier: no local approval crosses it."""
    at, new = format_time(now), copied(run.state.value)
    pending = obj(new, "pending_phase_transition") or obj(new, "pending_run_completion")
    new |= {
        "pending_phase_transition": None,
        "pending_run_completion": None,
        "barrier_request": {
            "barrier": barrier,
            "gate_type": asked.kind,
            "gate": asked.gate,
            "from": asked.phase,
            "to": asked.to or None,
            "requested_by_turn": asked.turn,
            "requested_at": pending.get("requested_at") or at,
        },
    }
    detail = f"waits at the barrier {barrier} for the initiative's other workstreams"
    return blocked(
        Move(new),
        f"{HELD_AT_BARRIER}{barrier}",
        "barrier",
        detail,
        asked.turn,
        at,
        action=APPROVE_ACTION,
    )


def cross_barrier(run: Run, barrier: str, by: str, comment: str, at: str) -> Move:
    """The run past the approved barrier: in its next phase, or completed after the last.

    Raises:
        ValueError: its configuration does not have the phase in which it is.
    """
    phase = str(run.state.value.get("phase"))
    to = phase_after(tuple(obj(run.config.value, "routing")) or schema.PHASES, phase)
    asked = _asked(run)._replace(
        kind="phase_transition" if to else "run_completion", to=to or ""
    )  # where to follows from the configuration, whatever the request says
    move = approved(run.state.value, asked, by, comment, (), at)
    move.state.pop("barrier_request", None)
    move.state["barrier_approvals"] = obj(move.state, "barrier_approvals") | {barrier: at}
    return move._replace(ledger=tuple(line | {"barrier": barrier} for line in move.ledger))


def send_back_from_barrier(run: Run, barrier: str, by: str, comment: str, at: str) -> Move:
    """The run at work again in the same phase: the barrier was rejected.

    Raises:
        Refused: no comment says what is missing.
    """
    asked = _asked(run)
    move = rejected_gate(run.state.value, asked, by, comment, _role_of(run, asked.turn), at)
    move.state.pop("barrier_request", None)
    return move._replace(ledger=tuple(line | {"barrier": barrier} for line in move.ledger))


def _asked(run: Run) -> Request:
    phase = str(run.state.value.get("phase"))
    gate = exit_gate(run.config.value, phase)
    return barrier_request(run) or Request("run_completion", gate, phase, "", "")


def _role_of(run: Run, turn: str) -> str:
    """Who asked: it goes on with what the human found missing."""
    for line in reversed(run.history.lines):
        if line.value.get("turn_id") == turn:
            role = line.value.get("role")
            return role if isinstance(role, str) else ""
    return ""


# --- which workstream of which initiative a run is, and which barriers are shut to it
# Read from the initiative's configuration and the coordinator's files alone, so that it costs a run
# little to ask.


class Link(NamedTuple):
    """The workstream of an initiative that a run is: the initiative, its name, who crossed what.

    Attributes:
        root: the initiative.
        name: the workstream's.
        barriers: the barriers that nobody has approved, as pairs of name and phase.
        recorded: what the coordinator knows of the workstream.
    """

    root: Path
    name: str
    barriers: tuple[tuple[str, str], ...]
    recorded: Object


def is_past_phase(run: Run, phase: str) -> bool:
    """Whether a run has left a phase."""
    if run.state.reason or phase not in run.phases:
        return False
    if run.status == "completed":
        return True
    return run.phase in run.phases and run.phases.index(run.phase) > run.phases.index(phase)


def linked_workstream(run: Run) -> Link | None:
    """The workstream that a run is, None where no initiative above it names it."""
    here = os.path.realpath(run.root)
    for root in coordinators_above(run.root):
        config = schema.read_object(root / schema.MULTI_CONFIG).value
        if not isinstance(config.get("workstreams"), list):
            continue
        state = schema.read_object(root / COORDINATOR_HOME / "state.json")
        recorded = objects(state.value.get("workstreams"))
        for raw in schema.items(config, "workstreams"):
            name = str(raw.get("name"))
            if _place_of_run(root, raw, recorded.get(name, {})) == here:
                return Link(
                    root, name, tuple(_unapproved(root, config, state)), recorded.get(name, {})
                )
    return None


def coordinated_workstream(run: Run) -> Link | None:
    """The workstream that a run is, where its coordinator knows the run and its phase."""
    link = linked_workstream(run)
    if link is None or not link.recorded.get("run_id"):
        return None
    return link if link.recorded.get("phase") in run.phases else None


def _unapproved(root: Path, config: Object, state: schema.Loaded) -> Iterator[tuple[str, str]]:
    """The barriers that nobody has approved, as the coordinator's state tells, else its ledger."""
    barriers = objects(state.value.get("barriers"))
    approved = {name for name, record in barriers.items() if record.get("status") == "approved"}
    if state.reason:
        lines = schema.read_log(root / COORDINATOR_HOME / "ledger.jsonl").lines
        approved = {
            str(line.value.get("barrier"))
            for line in lines
            if line.value.get("type") == "barrier_approved"
        }
    for raw in schema.items(config, "barriers"):
        name, phase = text(raw, "name", 80), text(raw, "phase", 80)
        if name not in approved:
            yield name, phase


def _place_of_run(root: Path, raw: Object, recorded: Object) -> str:
    """Where the run of a workstream is, every link followed; "" where it leads out."""
    relative, config = recorded.get("path"), raw.get("config_path")
    relative = relative if isinstance(relative, str) and relative else raw.get("name")
    config = config if isinstance(config, str) and config else schema.CONFIG
    path = schema.inside(root, relative) if isinstance(relative, str) else None
    within = schema.inside(path, config) if path is not None else None
    return os.path.realpath(within.parent) if within is not None else ""
