"""Starting an initiative: its repositories, a run in each, and the coordinator's files.

Whatever it is interrupted at, starting again goes on. Source: governed protocol specification,
"How it works" and "File layout".
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files import git, modes
from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import own_writes
from acp_core.protocols.governed.read.initiative import Plan, Stream, Workstream, read_plan
from acp_core.protocols.governed.read.run import Run, read_run
from acp_core.protocols.governed.rules.initiative_reconcile import PENDING, record, stamped
from acp_core.protocols.governed.schema import Object, StreamRecord, text
from acp_core.protocols.governed.state import Move, begun, copied, format_time, initial
from acp_core.protocols.governed.write import (
    initiative_context,
    initiative_repositories,
    initiative_trust,
    journal,
)
from acp_core.protocols.governed.write.init import Wish, configuration, initialise
from acp_core.protocols.governed.write.initiative_opened import (
    LEDGER,
    STATE,
    Writes,
    open_initiative,
)

_NOBODY: Mapping[str, str] = {}  # people take all turns


class Source(NamedTuple):
    """Where a workstream's repository is: ``folder`` relative to the initiative.

    ``address`` is what has to be cloned, "" where the repository is there.
    """

    stream: Stream
    folder: str
    address: str


class NewInitiative(NamedTuple):
    """What starting will do, before it does it."""

    root: Path
    plan: Plan
    sources: tuple[Source, ...]
    messages: tuple[str, ...]
    warnings: tuple[str, ...]


def prepare(
    root: Path, agents: Mapping[str, str] = _NOBODY, plan: Plan | None = None
) -> NewInitiative:
    """What starting the initiative in ``root`` will do. Runs git only to ask for branches.

    ``agents`` are command lines by role, for the runs that do not have a configuration yet;
    ``plan`` is what the configuration will say, where it is not written yet.

    Raises:
        Refused: it was begun already, or something stands in the way.
    """
    plan = plan or read_plan(root)
    configuration(root, Wish(agents=agents))  # refuses unsound ones before anything is cloned
    if own_writes.interrupted(root, own_writes.COORDINATOR_HOME):
        return NewInitiative(root, plan, (), ("finish the interrupted start",), ())
    if (root / STATE).exists():
        raise Refused(f"{root} is already started: see acp governed coordinator status")
    if schema.read_log(root / LEDGER).lines:
        cure = f"acp governed coordinator mend-state {shlex.quote(str(root))}"
        raise Refused(f"{root} is started, but its state is lost: {cure}")
    sources = tuple(_source(root, stream) for stream in plan.streams)
    steps, warnings, used = [], [], False
    for source in sources:
        name, branch = source.stream.name, source.stream.branch
        if source.address:
            on = f", branch {branch}" if branch else ""
            steps.append(
                f"clone {initiative_context._bare(source.address)}{on} into {source.folder}"
            )
            used = True  # unless what is cloned has its own configuration
            continue
        steps.append(f"use the repository in {source.folder} as {name}")
        run = read_run(_home(root, source), Path(source.stream.config_path).name)
        _check_branch(root, source)
        used = used or run.config.missing
        steps.append(_about(run, plan, name, agents))
    if agents and not used:
        warnings.append("every workstream has its own configuration: acp ignores the agents")
    for hook in plan.hooks:
        there = initiative_trust.digest(root, hook.path)
        steps.append(f"allow {hook.path}: {hook.name}") if there else warnings.append(
            f"{hook.name}: the script {hook.path} does not exist yet; allow it later: acp governed coordinator trust"
        )
    return NewInitiative(root, plan, sources, tuple(steps), tuple(warnings))


def create(
    root: Path, by: str, now: datetime, agents: Mapping[str, str] = _NOBODY
) -> tuple[str, ...]:
    """Start the initiative; returns what was done, in sentences. ``agents`` as for `prepare`.

    Raises:
        Refused: as `prepare`, or a repository cannot be cloned or has no proper configuration.
            What was cloned stays; starting again goes on.
    """
    initiative = prepare(root, agents)
    plan, steps = initiative.plan, []
    initiative_trust.trust(root, tuple(hook.path for hook in plan.hooks))
    if not initiative.sources:
        return _finished(root)
    for source in initiative.sources:
        initiative_repositories.sweep(root, source.folder)
        if source.address:
            target = root / source.folder
            modes.shared_folder(target.parent)
            initiative_repositories.clone(source.address, source.stream.branch, target)
            steps.append(f"cloned {source.stream.name}")
        _check_branch(root, source)
        if _scaffold(root, source, plan, agents, now):
            steps.append(f"started a governed run in {source.folder}: review its {schema.CONFIG}")
    runs = {s.stream.name: _readable_run(root, s, plan) for s in initiative.sources}
    homes = [os.path.relpath(run.root / own_writes.RUN_HOME, root) for run in runs.values()]
    for run in runs.values():
        modes.shared_folder(run.root / own_writes.RUN_HOME)
    with journal.held(root, own_writes.COORDINATOR_HOME, homes) as holder:
        if (root / STATE).exists():
            raise Refused(f"{root} is already started: see acp governed coordinator status")
        runs = {s.stream.name: _readable_run(root, s, plan) for s in initiative.sources}
        holder.commit("start the initiative", _writes(initiative, runs, by, now).all())
        initiative_context.write(open_initiative(root))
    steps += [f"{name}: {_sentence(read_run(run.root))}" for name, run in runs.items()]
    return tuple(steps)


def _finished(root: Path) -> tuple[str, ...]:
    with journal.held(root, own_writes.COORDINATOR_HOME) as holder:
        if not (root / STATE).exists():
            reason = holder.recovered.reason if holder.recovered else ""
            raise Refused(f"the start failed and was rolled back: {reason}")
        initiative_context.write(open_initiative(root))
    return ("finished the start that was interrupted",)


def _source(root: Path, stream: Stream) -> Source:
    local = initiative_repositories.within(root, stream.repo)
    folder = local or stream.name
    place = schema.inside(root, folder)
    if place is None or place == root:
        raise Refused(f"workstream {stream.name}: {folder} leads out of the initiative")
    if place.exists():
        if not place.is_dir() or not git.is_repository(place):
            raise Refused(f"workstream {stream.name}: {folder} exists but is not a git repository")
        return Source(stream, folder, "")
    try:
        return Source(stream, folder, initiative_repositories.address(root, stream.repo))
    except Refused as error:
        raise Refused(f"workstream {stream.name}: {error}") from None


def _home(root: Path, source: Source) -> Path:
    home = schema.inside(root / source.folder, source.stream.run)
    if home is None:
        raise Refused(f"workstream {source.stream.name}: config_path leads out of its repository")
    return home


def _check_branch(root: Path, source: Source) -> None:
    wanted, folder = source.stream.branch, root / source.folder
    if not wanted:
        return
    on = initiative_repositories.branch_of(folder)
    if on != wanted:
        steps = f"on branch {on}" if on else "on no branch"
        raise Refused(
            f"workstream {source.stream.name}: {source.folder} is {steps} instead of {wanted}: "
            f"git -C {source.folder} switch {wanted}"
        )


def _scaffold(
    root: Path, source: Source, plan: Plan, agents: Mapping[str, str], now: datetime
) -> bool:
    """Give a repository without a configuration one; people play the roles without an agent."""
    home = _home(root, source)
    if (home / source.stream.config_path).exists() or source.stream.config_path != schema.CONFIG:
        return False
    goal = plan.description[:500]
    wish = Wish(source.stream.name, goal, agents=agents, barriers=plan.by_phase())
    initialise(home, wish, now)
    return True


def _readable_run(root: Path, source: Source, plan: Plan) -> Run:
    """The run of a workstream as it can be linked.

    Raises:
        Refused: its files do not allow it.
    """
    name = source.stream.name
    run = read_run(_home(root, source), Path(source.stream.config_path).name)
    if run.config.missing:
        raise Refused(f"workstream {name}: {source.folder} has no {source.stream.config_path}")
    if run.config.reason:
        raise Refused(f"workstream {name}: {source.stream.config_path} {run.config.reason}")
    if run.state.reason and not run.state.missing:
        raise Refused(f"workstream {name}: {schema.STATE} {run.state.reason}: repair it first")
    _about(run, plan, name)
    return run


def _about(run: Run, plan: Plan, name: str, agents: Mapping[str, str] = _NOBODY) -> str:
    """What happens to a workstream's run.

    Raises:
        Refused: its phases do not have the barriers', it is over, or of another initiative.
    """
    if run.config.missing:
        played = "".join(f"; {command} plays {role}" for role, command in agents.items())
        return f"{name}: start a governed run there, with the usual roles{played}"
    if run.config.reason:
        return f"{name}: {run.config.reason}"
    for barrier in plan.barriers:
        if barrier.phase not in run.phases:
            known = ", ".join(run.phases)
            raise Refused(
                f"workstream {name} has no phase {barrier.phase} for the barrier {barrier.name}; "
                f"its phases: {known}"
            )
    state = run.state.value
    other = text(state, "super_run_id", 120)
    if other and other != plan.super_run_id:
        raise Refused(f"workstream {name} belongs to the initiative {other}")
    if run.status in ("completed", "failed"):
        raise Refused(f"workstream {name}: its run is {run.status}; start another run there first")
    if run.status in ("absent", "idle"):
        return f"{name}: start a run in {run.phases[0]}"
    phase = run.phases.index(run.phase) if run.phase in run.phases else -1
    passed = [b.name for b in plan.barriers if run.phases.index(b.phase) < phase]
    if passed:
        raise Refused(f"workstream {name} is already in {run.phase}, past {', '.join(passed)}")
    return f"{name}: link its run, which is in {run.phase}"


def _writes(initiative: NewInitiative, runs: dict[str, Run], by: str, now: datetime) -> Writes:
    plan, at, root = initiative.plan, format_time(now), initiative.root
    run_id = plan.super_run_id or f"super_run_{secrets.token_hex(6)}"
    writes, lines, records = Writes(root), [], {}
    for source in initiative.sources:
        name, run = source.stream.name, runs[source.stream.name]
        change = _linked(
            run, run_id, plan, at, initiative_repositories.head_of(root / source.folder)
        )
        stream = Workstream(name, str(run.root), run, StreamRecord(source.folder))
        writes.run(stream, change)
        begun = replace(run, state=run.state._replace(value=change.state, reason="", missing=False))
        records[name] = record(stream._replace(run=begun))
        lines.append(
            {"type": "workstream_linked", "workstream": name, "path": source.folder,
             "run_id": change.state["run_id"], "phase": change.state["phase"]}
        )  # fmt: skip
    writes.state(
        {
            "schema_version": "1.0",
            "super_run_id": run_id,
            "status": "active",
            "barriers": {
                barrier.name: {
                    "phase": barrier.phase,
                    "status": PENDING,
                    "reached_by": [],
                    "reached_at": None,
                    "approved_at": None,
                    "approved_by": None,
                    "comment": None,
                }
                for barrier in plan.barriers
            },
            "workstreams": records,
            "updated_at": at,
        }
    )
    first: Object = {"type": "initiative_started", "by": by, "description": plan.description}
    writes.ledger(list(stamped([first, *lines], at, run_id)))
    return writes


def _linked(run: Run, run_id: str, plan: Plan, at: str, head: str) -> Move:
    """The run with the initiative's id and its barriers; one that has not begun begins."""
    linked: Object = {"super_run_id": run_id, "barriers": plan.by_phase()}
    if run.status not in ("absent", "idle"):
        return Move(copied(run.state.value) | linked)
    state = run.state.value or initial(run.config.value, at)
    if head:
        linked["accepted_integration_ref"] = f"git:{head}"
    return begun(state | linked, f"run_{secrets.token_hex(8)}", at)


def _sentence(run: Run) -> str:
    return f"run {run.record.run_id} is {run.status} in {run.phase}"
