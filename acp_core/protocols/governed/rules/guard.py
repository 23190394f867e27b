"""What stands in the way of writes into a run: damage that was seen, and how it is mended.

Writes ask it under the run's lock, the Snapshot carries the same obstacles. Source: governed
protocol specification, "Files" (the run's own files belong together and are the orchestrator's)
and "Gates and resync" (Invariants 1 and 2).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from acp_core.model.errors import Refused
from acp_core.model.snapshot import Obstacle
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import (
    existing_program,
    foreign_lock,
    seals,
    trust,
    turn_program,
    unfinished,
)
from acp_core.protocols.governed.read.initiative import OWN, Initiative
from acp_core.protocols.governed.read.links import coordinated, is_past, linked
from acp_core.protocols.governed.read.run import AT_WORK, ActiveTurn, Run
from acp_core.protocols.governed.read.unfinished_write import (
    COORDINATOR,
    NAME,
    RUN,
    above,
    interrupted,
)
from acp_core.protocols.governed.rules import foreign_steps, stuck
from acp_core.protocols.governed.schema import Log, Object, act_names, hook_phases
from acp_core.protocols.governed.schema.config import Programs, Role
from acp_core.protocols.governed.schema.fields import decode
from acp_core.protocols.governed.state import next_role
from acp_core.protocols.kit import guard

UNFINISHED = "A6"

"""The code of what the existing program left half written."""

TRANSACTION = f"{UNFINISHED}:TRANSACTION:"

"""How its keys begin."""

RUNTIMES = ("manual", "local_cli", "api_proxy")

"""Types of runtimes with which acp has a turn taken."""

STATUSES = ("idle", "active", "paused", "blocked", "completed", "failed")

"""What a run's state may say of its status."""

ALL = frozenset(value for name, value in vars(act_names).items() if name.isupper())

"""The names of all acts."""

_ANYWAY = frozenset({act_names.STOP, act_names.TRUST, act_names.TRUST_HOOKS})

"""Acts that write over nothing."""

_LOOKING = frozenset({act_names.TALK, act_names.COORDINATE, act_names.POLL})

_CURES = frozenset(
    {
        act_names.RECOVER,
        act_names.BRING_BACK,
        act_names.TAKE_FILES,
        act_names.SET_ASIDE,
        act_names.MEND,
    }
)

_MENDING = _ANYWAY | _LOOKING | _CURES

NOTING = "note_failed_start"

"""The write that is nobody's act: it says that a turn's program came to nothing."""

_WITHOUT_GIT = ALL - {act_names.STEP, act_names.ACCEPT} | {NOTING}

_WITHOUT_RUNTIME = ALL - {act_names.STEP} | {NOTING}


def of_run(
    run: Run, *, role: str = "", excluded: Iterable[str] = (), now: datetime | None = None
) -> tuple[Obstacle, ...]:
    """What stands in the way of writes into a run.

    Args:
        run: as it was read.
        role: who is to take the next turn; "" for whoever comes next.
        excluded: the run's own files that a human takes as they are.
        now: the time, for whoever only looks: what the existing program may be writing at this
            very moment is left out then.
    """
    broken = unusable(run)
    if broken:
        return (*stuck.of_run(run.root, _ANYWAY), *broken, *_environment(run))
    found = [
        *stuck.of_run(run.root, _ANYWAY),
        *_sealed(run, excluded),
        *_unlawful(run),
        *_crossed(run),
        *_unfinished(run, now),
        *_runtime(run, role),
        *_hooks(run),
        *_elsewhere(run),
    ]
    return (*found, *_environment(run))


def of_initiative(initiative: Initiative) -> tuple[Obstacle, ...]:
    """What stands in the way of writes into an initiative in the specification's layout."""
    if initiative.layout != OWN:
        return ()
    if interrupted(initiative.root, COORDINATOR):
        return tuple(stuck.of_initiative(initiative.root, _ANYWAY))
    disk = guard.disk(initiative.root / COORDINATOR)
    if initiative.state.reason:  # it alone tells which barriers were approved
        return (*_coordinator(initiative), *([disk] if disk else ()))
    found = [
        crossing(initiative.root, stream.name, barrier.name)
        for barrier in initiative.barriers
        if barrier.status != "approved"
        for stream in initiative.workstreams
        if stream.run is not None and is_past(stream.run, barrier.phase)
    ]
    found += [
        _of_workstream(stream.name, each)
        for stream in initiative.workstreams
        if stream.run is not None
        for each in _sealed(stream.run, ())
    ]
    return (*found, *([disk] if disk else ()))


def _coordinator(initiative: Initiative) -> Iterator[Obstacle]:
    """The coordinator's state is lost, or cannot be read, though it had begun."""
    lines, reason = initiative.ledger.lines, initiative.state.reason
    if initiative.state.missing and not lines:
        return
    is_recorded = any(line.value.get("type") == "workstream_linked" for line in lines)
    mends = is_recorded and not initiative.ledger.problems
    document = f"{COORDINATOR}/state.json"
    what = "is lost" if initiative.state.missing else f"cannot be read: {schema.why(reason)}"
    yield Obstacle(
        "A1",
        f"{document} {what}",
        f"acp governed coordinator mend-state {_at(initiative.root)}"
        if mends
        else f"restore {document} from a backup: the ledger does not record its content",
        _ANYWAY | {act_names.MEND_STATE},
        act_names.MEND_STATE if mends else "",
        document=document,
        key=f"A1:FILE_UNREADABLE:{document}",
    )


def unusable(run: Run) -> tuple[Obstacle, ...]:
    """The files of a run without which nothing can be decided: missing, or not to be read."""
    found = [*_configuration(run)]
    found += [*_log(schema.HISTORY, run.history), *_log(schema.LEDGER, run.ledger)]
    return (*found, *(() if run.config.reason else _state(run)))


def lost(run: Run) -> bool:
    """Whether the state of a run that had begun is missing, or cannot be read."""
    if not run.state.reason:
        return False
    return not run.state.missing or _had_begun(run)


def changed(run: Run) -> tuple[str, ...]:
    """The run's own files that somebody but acp wrote, in a run that acp made."""
    return seals.changed(run.root, run.root / RUN / NAME) if run.by_acp else ()


def is_tampered(run: Run) -> bool:
    """Whether somebody but acp wrote a run's own files, and not as the existing program may."""
    return bool(changed(run)) and foreign_steps.recognised(run) is None


def crossing(root: Path, name: str, barrier: str) -> Obstacle:
    """The obstacle that a workstream is past a barrier which nobody approved."""
    return Obstacle(
        "A5",
        f"workstream {name} crossed the unapproved barrier {barrier}",
        f"acp governed coordinator mend-workstream --workstream {shlex.quote(name)} {_at(root)}",
        _MENDING,
        act_names.MEND,
        (("workstream", name),),
        participant=name,
        key=f"A5:BARRIER_CROSSED:{barrier}:{name}",
    )


def copied(run: Run) -> bytes | None:
    """The state as acp wrote it last, where the history does not tell of later turns."""
    data = seals.last_sealed(run.root)
    if data is None:
        return None
    last = schema.parsed(data).get("last_completed_turn_id")
    lines = run.history.lines
    return data if (lines[-1].value.get("turn_id") if lines else None) == last else None


def runtime(config: Object, name: str, role: str) -> Obstacle | None:
    """The obstacle that a runtime is none with which acp has a turn taken; None where it is one."""
    described = decode(Programs, config).runtimes.get(name)
    kind = described.adapter if described is not None else ""
    if kind in RUNTIMES:
        return None
    which = f"is of type “{kind}”" if kind else "is not configured"
    known = ", ".join(RUNTIMES)
    return Obstacle(
        "E22",
        f"the runtime “{clean_line(name, 80)}” of {role} {which}, so acp cannot dispatch its turn",
        f"choose a runtime for {role} in {schema.CONFIG} of a supported type: {known}",
        _WITHOUT_RUNTIME,
        participant=role or None,
        document=schema.CONFIG,
        key=f"obstacle:runtime:{role}:{name}",
    )


def _configuration(run: Run) -> Iterator[Obstacle]:
    if run.config.reason:
        yield Obstacle(
            "A1",
            f"{schema.CONFIG} cannot be read: {schema.why(run.config.reason)}",
            "correct the file, or restore it from version control",
            _ANYWAY | {act_names.RECOVER},
            document=schema.CONFIG,
            key=f"A1:FILE_UNREADABLE:{schema.CONFIG}",
        )


def _log(document: str, log: Log) -> Iterator[Obstacle]:
    for number, reason in log.problems[:1]:
        where = f"{document}, line {number}" if number else document
        cure = f"correct line {number} by hand" if number else "correct the file"
        yield Obstacle(
            "A1",
            f"{where}: {schema.why(reason)}",
            f"{cure}, or restore {document} from a backup: acp never rewrites a log",
            _ANYWAY | {act_names.RECOVER},
            document=document,
            line=number or None,
            key=f"A1:LOG_LINE:{document}:{number}",
        )


def _state(run: Run) -> Iterator[Obstacle]:
    if not lost(run):
        return
    what = "is lost" if run.state.missing else f"cannot be read: {schema.why(run.state.reason)}"
    link, copy = coordinated(run), copied(run)
    cure, remedy = f"acp governed recover {_at(run.root)}", act_names.RECOVER
    if link is not None and copy is None:
        name = shlex.quote(link.name)
        cure = f"acp governed coordinator mend-workstream --workstream {name} {_at(link.root)}"
        remedy = ""
    evidence = [f"{len(run.history.lines)} accepted turns are in {schema.HISTORY}"]
    if copy is not None:
        evidence.append("acp has a copy of the state as it last wrote it")
    yield Obstacle(
        "A1",
        f"{schema.STATE} {what}",
        cure,
        _ANYWAY | {act_names.RECOVER, act_names.BRING_BACK, act_names.MEND},
        remedy,
        evidence=tuple(evidence),
        document=schema.STATE,
        key=f"A1:FILE_UNREADABLE:{schema.STATE}",
    )


def _of_workstream(name: str, obstacle: Obstacle) -> Obstacle:
    """What stands in the way of a workstream, as its initiative says it: it is mended there."""
    return Obstacle(
        obstacle.code,
        f"workstream {name}: {obstacle.sentence}",
        obstacle.cure,
        obstacle.allowed | {act_names.MEND},
        evidence=obstacle.evidence,
        participant=name,
        key=f"{obstacle.key}{name}",
    )


def _unlawful(run: Run) -> Iterator[Obstacle]:
    """A status or a phase that a run cannot have: no act knows what comes next."""
    if run.state.reason or run.config.reason:
        return
    wrong = ""
    if run.status not in STATUSES:
        wrong = f"the status “{run.status}”, which is unknown (statuses: {', '.join(STATUSES)})"
    elif run.phase not in run.phases:
        wrong = f"the phase “{run.phase}”, which {schema.CONFIG} does not have"
    if wrong:
        yield Obstacle(
            "A2",
            f"{schema.STATE} names {wrong}",
            f"correct {schema.STATE}, or restore it from a backup"
            if run.status not in STATUSES
            else f"add the phase to “routing” in {schema.CONFIG}, or correct {schema.STATE}",
            _MENDING,
            document=schema.STATE,
            key="A2:STATE:place",
        )


def _had_begun(run: Run) -> bool:
    """Whether there was a state once: a run that never had one begins with its first step."""
    logs = (run.history, run.ledger, run.events)
    return (
        any(log.lines for log in logs) or seals.is_sealed(run.root) or coordinated(run) is not None
    )


def _sealed(run: Run, excluded: Iterable[str]) -> Iterator[Obstacle]:
    left = [name for name in changed(run) if name not in set(excluded)]
    if not left or foreign_steps.recognised(run) is not None:
        return
    back = schema.STATE in left and seals.last_sealed(run.root) is not None
    taking = f"acp governed take-files {_at(run.root)}"
    choice = f"acp governed bring-back {_at(run.root)}, or {taking}" if back else taking
    yield Obstacle(
        "A8",
        f"files changed outside acp: {', '.join(left)}",
        f"review the changes, then run {choice}",
        _MENDING,
        act_names.BRING_BACK if back else act_names.TAKE_FILES,
        evidence=tuple(f"{name} does not match acp's seal" for name in left),
        document=left[0],
        key="A8:RESERVED_CHANGED:seal",
    )


def _crossed(run: Run) -> Iterator[Obstacle]:
    crossing_now = any(interrupted(root, COORDINATOR) for root in above(run.root))
    link = None if crossing_now else linked(run)  # a journal explains what does not agree yet
    for barrier, phase in link.barriers if link else ():
        if link and is_past(run, phase):
            found = crossing(link.root, link.name, barrier)
            yield Obstacle(
                found.code, found.sentence, found.cure, found.allowed, key=found.key,
                document=schema.STATE,
            )  # fmt: skip


def is_writing(run: Run) -> bool:
    """Whether the existing program holds its lock on the run."""
    home = run.root / RUN
    holder = foreign_lock.holding(home)
    return holder is not None and not foreign_lock.is_stale(home, holder)


def _unfinished(run: Run, now: datetime | None) -> Iterator[Obstacle]:
    left = [each for each in run.unfinished if now is None or not each.is_fresh(now)]
    if left and (now is None or not is_writing(run)):
        first = left[0]
        yield Obstacle(
            UNFINISHED,
            f"the agentxchain program did not finish {unfinished.describe(first)}",
            f"let that program finish, or review {clean_line(first.name, 200)} and run"
            f" acp governed set-aside {_at(run.root)}",
            _MENDING,
            act_names.SET_ASIDE,
            document=clean_line(first.name, 200),
            key=f"{TRANSACTION}{clean_line(first.name, 150)}",
        )


def _runtime(run: Run, role: str) -> Iterator[Obstacle]:
    if run.status not in ("active", "idle") or existing_program.program(run) is not None:
        return
    turn = next(iter(run.turns), None)
    if turn is not None:
        found = runtime(run.config.value, turn.runtime, turn.role) if _is_due(turn) else None
    else:
        try:
            role = role or next_role(run.config.value, run.state.value)
        except Refused:  # no role is defined: that is said elsewhere
            return
        played_by = (run.settings.roles.get(role) or Role()).runtime
        found = runtime(run.config.value, played_by, role)
    if found is not None:
        yield found


def _hooks(run: Run) -> Iterator[Obstacle]:
    """Hooks that may stop an act, and cannot be asked."""
    config = run.config.value
    if existing_program.program(run) is not None:
        return
    acts = {
        act for act in hook_phases.ASKED_BEFORE.values() if hook_phases.asked_before(config, act)
    }
    if acts and not trust.is_trusted(run.root):
        yield Obstacle(
            "E23",
            "the configuration has hooks that may stop an act, and you have not allowed them",
            f"acp governed trust {_at(run.root)}",
            ALL - acts | {NOTING},
            act_names.TRUST,
            document=schema.CONFIG,
            key="obstacle:hooks",
        )
    late = run.settings.hooks.get("after_dispatch", ())
    if any(each.mode == hook_phases.BLOCKING for each in late):
        yield Obstacle(
            "E23",
            "a hook of after_dispatch is meant to block turns, but acp does not run it there",
            f"make it a hook of before_assignment, or advisory, in {schema.CONFIG}",
            _WITHOUT_RUNTIME,
            document=schema.CONFIG,
            key="obstacle:hooks:after_dispatch",
        )


def _elsewhere(run: Run) -> Iterator[Obstacle]:
    """A turn's program is at work that this account's own folder does not know."""
    for turn in run.turns:
        id = turn.turn_id or turn.id
        noted = turn_program.read_note(run.root, id) if turn.running else None
        seen = turn_program.elsewhere(run.root, id) if turn.running else None
        if seen is None or (noted is not None and noted.alive()):
            continue
        refused = {act_names.STEP, act_names.REJECT} | (set() if seen.mine else {act_names.STOP})
        who = clean_line(seen.owner.account if seen.owner else "?", 80)
        yield replace(
            guard.conductor(seen, ALL - refused | {NOTING}),
            sentence=f"the program of {turn.role} ({turn.id}) is still running, but {seen.sentence}",
            cure=f"stop it first with `acp governed stop-turn {_at(run.root)}`"
            if seen.mine
            else f"ask {who} to stop it, or wait until it ends",
            participant=turn.role or None,
        )


def _is_due(turn: ActiveTurn) -> bool:
    """Whether a turn has yet to be taken, or taken again."""
    return not turn.staged and turn.status in (*AT_WORK, "failed_start", "stalled")


def _environment(run: Run) -> tuple[Obstacle, ...]:
    """What keeps this account from writing, and from looking at what changed."""
    disk = guard.disk(run.root / RUN)
    git = guard.repository(run.root, _WITHOUT_GIT)
    return tuple(each for each in (disk, git) if each is not None)


def _at(root: Path) -> str:
    return shlex.quote(str(root))
