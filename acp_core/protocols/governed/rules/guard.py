"""What stands in the way of writes into a run: damage that was seen, and how it is mended.

Writes ask it under the run's lock, the Snapshot carries the same obstacles. Source: governed
protocol specification, "Files" (the run's own files belong together and are the orchestrator's),
"Phase model" and "Gates and resync" (Invariants 1 and 2).
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files import git
from acp_core.model.errors import Refused
from acp_core.model.matter import About, Matter, damage
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import existing_program, own_writes, repository
from acp_core.protocols.governed.read import run as read_run
from acp_core.protocols.governed.read.initiative import (
    OWN,
    Initiative,
    coordinated_workstream,
    is_past_phase,
    linked_workstream,
)
from acp_core.protocols.governed.read.own_writes import (
    COORDINATOR_HOME,
    JOURNAL,
    RUN_HOME,
    coordinators_above,
    fault,
    interrupted,
)
from acp_core.protocols.governed.read.run import AT_WORK, ActiveTurn, Run
from acp_core.protocols.governed.rules import results
from acp_core.protocols.governed.schema import (
    Line,
    Log,
    Object,
    Programs,
    Role,
    decode,
    obj,
    objects,
    roles_of,
    strings,
    text,
)
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
_ANYWAY = frozenset({schema.STOP, schema.TRUST, schema.TRUST_HOOKS})
"""Acts that write over nothing."""
_LOOKING = frozenset({schema.LEAVE_MESSAGE, schema.COORDINATE, schema.POLL})

_CURES = frozenset(
    {
        schema.RECOVER,
        schema.BRING_BACK,
        schema.TAKE_FILES,
        schema.SET_ASIDE,
        schema.MEND,
    }
)

_MENDING = _ANYWAY | _LOOKING | _CURES
NOTING = "note_failed_start"
"""The write that is nobody's act: it says that a turn's program came to nothing."""
_WITHOUT_GIT = schema.ACTS - {schema.STEP, schema.ACCEPT} | {NOTING}
_WITHOUT_RUNTIME = schema.ACTS - {schema.STEP} | {NOTING}


def of_run(
    run: Run, *, role: str = "", excluded: Iterable[str] = (), now: datetime | None = None
) -> tuple[Matter, ...]:
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
        return (*stuck_run(run.root, _ANYWAY), *broken, *_environment(run))
    found = [
        *stuck_run(run.root, _ANYWAY),
        *_sealed(run, excluded),
        *_unlawful(run),
        *_crossed(run),
        *_unfinished(run, now),
        *_runtime(run, role),
        *_hooks(run),
        *_elsewhere(run),
    ]
    return (*found, *_environment(run))


def of_initiative(initiative: Initiative) -> tuple[Matter, ...]:
    """What stands in the way of writes into an initiative in the specification's layout."""
    if initiative.layout != OWN:
        return ()
    if interrupted(initiative.root, COORDINATOR_HOME):
        return tuple(stuck_initiative(initiative.root, _ANYWAY))
    disk = guard.disk(initiative.root / COORDINATOR_HOME)
    if initiative.state.reason:  # it alone tells which barriers were approved
        return (*_coordinator(initiative), *([disk] if disk else ()))
    found = [
        crossing(initiative.root, stream.name, barrier.name)
        for barrier in initiative.barriers
        if barrier.status != "approved"
        for stream in initiative.workstreams
        if stream.run is not None and is_past_phase(stream.run, barrier.phase)
    ]
    found += [
        _of_workstream(stream.name, each)
        for stream in initiative.workstreams
        if stream.run is not None
        for each in _sealed(stream.run, ())
    ]
    return (*found, *([disk] if disk else ()))


def _coordinator(initiative: Initiative) -> Iterator[Matter]:
    """The coordinator's state is lost, or cannot be read, though it had begun."""
    lines, reason = initiative.ledger.lines, initiative.state.reason
    if initiative.state.missing and not lines:
        return
    is_recorded = any(line.value.get("type") == "workstream_linked" for line in lines)
    mends = is_recorded and not initiative.ledger.problems
    document = f"{COORDINATOR_HOME}/state.json"
    what = "is lost" if initiative.state.missing else f"cannot be read: {schema.why(reason)}"
    yield damage(
        "A1",
        f"{document} {what}",
        f"acp governed coordinator mend-state {_at(initiative.root)}"
        if mends
        else f"restore {document} from a backup: the ledger does not record its content",
        _ANYWAY | {schema.MEND_STATE},
        schema.MEND_STATE if mends else "",
        document=document,
        key=f"A1:FILE_UNREADABLE:{document}",
    )


def unusable(run: Run) -> tuple[Matter, ...]:
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
    return (
        own_writes.changed_since_sealed(run.root, run.root / RUN_HOME / JOURNAL)
        if run.by_acp
        else ()
    )


def is_tampered(run: Run) -> bool:
    """Whether somebody but acp wrote a run's own files, and not as the existing program may."""
    return bool(changed(run)) and recognised(run) is None


def crossing(root: Path, name: str, barrier: str) -> Matter:
    """The obstacle that a workstream is past a barrier which nobody approved."""
    return damage(
        "A5",
        f"workstream {name} crossed the unapproved barrier {barrier}",
        f"acp governed coordinator mend-workstream --workstream {shlex.quote(name)} {_at(root)}",
        _MENDING,
        schema.MEND,
        (("workstream", name),),
        participant=name,
        key=f"A5:BARRIER_CROSSED:{barrier}:{name}",
    )


def copied(run: Run) -> bytes | None:
    """The state as acp wrote it last, where the history does not tell of later turns."""
    data = own_writes.last_sealed(run.root)
    if data is None:
        return None
    last = schema.parsed(data).get("last_completed_turn_id")
    lines = run.history.lines
    return data if (lines[-1].value.get("turn_id") if lines else None) == last else None


def runtime(config: Object, name: str, role: str) -> Matter | None:
    """The obstacle that a runtime is none with which acp has a turn taken; None where it is one."""
    described = decode(Programs, config).runtimes.get(name)
    kind = described.adapter if described is not None else ""
    if kind in RUNTIMES:
        return None
    which = f"is of type “{kind}”" if kind else "is not configured"
    known = ", ".join(RUNTIMES)
    return damage(
        "E22",
        f"the runtime “{clean_line(name, 80)}” of {role} {which}, so acp cannot dispatch its turn",
        f"choose a runtime for {role} in {schema.CONFIG} of a supported type: {known}",
        _WITHOUT_RUNTIME,
        participant=role or None,
        document=schema.CONFIG,
        key=f"obstacle:runtime:{role}:{name}",
    )


def _configuration(run: Run) -> Iterator[Matter]:
    if run.config.reason:
        yield damage(
            "A1",
            f"{schema.CONFIG} cannot be read: {schema.why(run.config.reason)}",
            "correct the file, or restore it from version control",
            _ANYWAY | {schema.RECOVER},
            document=schema.CONFIG,
            key=f"A1:FILE_UNREADABLE:{schema.CONFIG}",
        )


def _log(document: str, log: Log) -> Iterator[Matter]:
    for number, reason in log.problems[:1]:
        where = f"{document}, line {number}" if number else document
        cure = f"correct line {number} by hand" if number else "correct the file"
        yield damage(
            "A1",
            f"{where}: {schema.why(reason)}",
            f"{cure}, or restore {document} from a backup: acp never rewrites a log",
            _ANYWAY | {schema.RECOVER},
            document=document,
            line=number or None,
            key=f"A1:LOG_LINE:{document}:{number}",
        )


def _state(run: Run) -> Iterator[Matter]:
    if not lost(run):
        return
    what = "is lost" if run.state.missing else f"cannot be read: {schema.why(run.state.reason)}"
    link, copy = coordinated_workstream(run), copied(run)
    cure, remedy = f"acp governed recover {_at(run.root)}", schema.RECOVER
    if link is not None and copy is None:
        name = shlex.quote(link.name)
        cure = f"acp governed coordinator mend-workstream --workstream {name} {_at(link.root)}"
        remedy = ""
    evidence = [f"{len(run.history.lines)} accepted turns are in {schema.HISTORY}"]
    if copy is not None:
        evidence.append("acp has a copy of the state as it last wrote it")
    yield damage(
        "A1",
        f"{schema.STATE} {what}",
        cure,
        _ANYWAY | {schema.RECOVER, schema.BRING_BACK, schema.MEND},
        remedy,
        evidence=tuple(evidence),
        document=schema.STATE,
        key=f"A1:FILE_UNREADABLE:{schema.STATE}",
    )


def _of_workstream(name: str, obstacle: Matter) -> Matter:
    """What stands in the way of a workstream, as its initiative says it: it is mended there."""
    return damage(
        obstacle.code,
        f"workstream {name}: {obstacle.sentence}",
        obstacle.instruction,
        (obstacle.refuses or frozenset()) | {schema.MEND},
        evidence=obstacle.evidence,
        participant=name,
        key=f"{obstacle.key}{name}",
    )


def _unlawful(run: Run) -> Iterator[Matter]:
    """A status or a phase that a run cannot have: no act knows what comes next."""
    if run.state.reason or run.config.reason:
        return
    wrong = ""
    if run.status not in STATUSES:
        wrong = f"the status “{run.status}”, which is unknown (statuses: {', '.join(STATUSES)})"
    elif run.phase not in run.phases:
        wrong = f"the phase “{run.phase}”, which {schema.CONFIG} does not have"
    if wrong:
        yield damage(
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
        any(log.lines for log in logs)
        or own_writes.is_sealed(run.root)
        or coordinated_workstream(run) is not None
    )


def _sealed(run: Run, excluded: Iterable[str]) -> Iterator[Matter]:
    left = [name for name in changed(run) if name not in set(excluded)]
    if not left or recognised(run) is not None:
        return
    back = schema.STATE in left and own_writes.last_sealed(run.root) is not None
    taking = f"`acp governed take-files {_at(run.root)}`"
    choice = f"`acp governed bring-back {_at(run.root)}`, or {taking}" if back else taking
    yield damage(
        "A8",
        f"files changed outside acp: {', '.join(left)}",
        f"review the changes, then run {choice}",
        _MENDING,
        schema.BRING_BACK if back else schema.TAKE_FILES,
        evidence=tuple(f"{name} does not match acp's seal" for name in left),
        document=left[0],
        key="A8:RESERVED_CHANGED:seal",
    )


def _crossed(run: Run) -> Iterator[Matter]:
    crossing_now = any(interrupted(root, COORDINATOR_HOME) for root in coordinators_above(run.root))
    link = (
        None if crossing_now else linked_workstream(run)
    )  # a journal explains what does not agree yet
    for barrier, phase in link.barriers if link else ():
        if link and is_past_phase(run, phase):
            found = crossing(link.root, link.name, barrier)
            yield damage(
                found.code, found.sentence, found.instruction, found.refuses or frozenset(), key=found.key,
                document=schema.STATE,
            )  # fmt: skip


def is_writing(run: Run) -> bool:
    """Whether the existing program holds its lock on the run."""
    home = run.root / RUN_HOME
    holder = existing_program.lock_holder(home)
    return holder is not None and not existing_program.is_lock_stale(home, holder)


def _unfinished(run: Run, now: datetime | None) -> Iterator[Matter]:
    left = [each for each in run.unfinished if now is None or not each.is_fresh(now)]
    if left and (now is None or not is_writing(run)):
        first = left[0]
        yield damage(
            UNFINISHED,
            f"the agentxchain program did not finish {existing_program.describe_transaction(first)}",
            f"let that program finish, or review {clean_line(first.name, 200)} and run"
            f" `acp governed set-aside {_at(run.root)}`",
            _MENDING,
            schema.SET_ASIDE,
            document=clean_line(first.name, 200),
            key=f"{TRANSACTION}{clean_line(first.name, 150)}",
        )


def _runtime(run: Run, role: str) -> Iterator[Matter]:
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


def _hooks(run: Run) -> Iterator[Matter]:
    """Hooks that may stop an act, and cannot be asked."""
    config = run.config.value
    if existing_program.program(run) is not None:
        return
    acts = {act for act in schema.ASKED_BEFORE.values() if schema.asked_before(config, act)}
    if acts and not read_run.is_trusted(run.root):
        yield damage(
            "E23",
            "the configuration has hooks that may stop an act, and you have not allowed them",
            f"acp governed trust {_at(run.root)}",
            schema.ACTS - acts | {NOTING},
            schema.TRUST,
            document=schema.CONFIG,
            key="obstacle:hooks",
        )
    late = run.settings.hooks.get("after_dispatch", ())
    if any(each.mode == schema.BLOCKING for each in late):
        yield damage(
            "E23",
            "a hook of after_dispatch is meant to block turns, but acp does not run it there",
            f"make it a hook of before_assignment, or advisory, in {schema.CONFIG}",
            _WITHOUT_RUNTIME,
            document=schema.CONFIG,
            key="obstacle:hooks:after_dispatch",
        )


def _elsewhere(run: Run) -> Iterator[Matter]:
    """A turn's program is at work that this account's own folder does not know."""
    for turn in run.turns:
        id = turn.turn_id or turn.id
        noted = read_run.read_program_note(run.root, id) if turn.running else None
        seen = read_run.runs_elsewhere(run.root, id) if turn.running else None
        if seen is None or (noted is not None and noted.alive()):
            continue
        refused = {schema.STEP, schema.REJECT} | (set() if seen.mine else {schema.STOP})
        who = clean_line(seen.owner.account if seen.owner else "?", 80)
        yield guard.conductor(seen, schema.ACTS - refused | {NOTING})._replace(
            sentence=f"the program of {turn.role} ({turn.id}) is still running, but {seen.sentence}",
            instruction=f"stop it first with `acp governed stop-turn {_at(run.root)}`"
            if seen.mine
            else f"ask {who} to stop it, or wait until it ends",
            about=About(participant=turn.role or None),
        )


def _is_due(turn: ActiveTurn) -> bool:
    """Whether a turn has yet to be taken, or taken again."""
    return not turn.staged and turn.status in (*AT_WORK, "failed_start", "stalled")


def _environment(run: Run) -> tuple[Matter, ...]:
    """What keeps this account from writing, and from looking at what changed."""
    disk = guard.disk(run.root / RUN_HOME)
    found = (disk, _refusing_git(run.root))
    return tuple(each for each in found if each is not None)


def _refusing_git(folder: Path) -> Matter | None:
    """Whether git refuses to read the repository around a folder; None where it does not."""
    refused = git.refusal(folder)
    if refused is None:
        return None
    sentence = f"git refuses to read the repository in {clean_line(str(folder), 200)}"
    return damage(
        "E21", f"{sentence}: {refused.reason}", refused.cure, _WITHOUT_GIT,
        key="obstacle:git", evidence=("its changes cannot be compared with the declared ones",),
    )  # fmt: skip


def _at(root: Path) -> str:
    return shlex.quote(str(root))


# --- a write of acp that can be neither finished nor undone: others changed its files

INTERRUPTED = "A6:INTERRUPTED:journal"
"""The key of its obstacle."""


def stuck_run(root: Path, anyway: frozenset[str]) -> Iterator[Matter]:
    """The obstacle in a run, if there is one; a human can leave the files as they are.

    Args:
        root: the run's folder.
        anyway: names of acts that are never refused.
    """
    reason = fault(root)
    if reason:
        cure = f"`acp governed take-files {shlex.quote(str(root))}`"
        yield _stuck_obstacle(
            f"{RUN_HOME}/{JOURNAL}",
            reason,
            f"review the files, then leave them as they are: {cure}",
            anyway | {schema.TAKE_FILES},
            schema.TAKE_FILES,
        )


def stuck_initiative(root: Path, anyway: frozenset[str]) -> Iterator[Matter]:
    """The obstacle in an initiative, if there is one; see `of_run`."""
    reason = fault(root, COORDINATOR_HOME)
    if reason:
        document = f"{COORDINATOR_HOME}/{JOURNAL}"
        yield _stuck_obstacle(
            document, reason, f"review the files, then remove {document}", anyway, ""
        )


def _stuck_obstacle(
    document: str, reason: str, cure: str, allowed: frozenset[str], remedy: str
) -> Matter:
    return damage(
        "A6",
        "an interrupted write can be neither finished nor undone",
        cure,
        allowed,
        remedy,
        evidence=(reason,),
        document=document,
        key=INTERRUPTED,
    )


_FIXED = ("phase", "project_id", "provenance", "super_run_id", "barriers", "barrier_approvals",
          "barrier_request", "created_at", "phase_entered_at", "rebuilt_at")  # fmt: skip
"""What neither assigning nor accepting a turn changes."""
_UNPROVED = ("approved", "entered", "completed", "resolved", "rejected", "revision", "reissued")
"""Parts of names of events and lines that tell of a human's decision, or of what follows from it."""
_DECIDED = ("pending_phase_transition", "pending_run_completion", "blocked_on")


# --- what the existing program did in a run of acp's own, where acp would have let it do that
# It assigns turns and accepts results; then the seal is broken, and nothing is wrong. A step is
# recognised where the files agree with each other: the logs only grew, each new line of the history
# is a sound result of a turn of this phase, the state follows from them, and the repository holds no
# change that nobody declared. A gate or a barrier that was crossed is never recognised: that
# program's files do not prove that a human approved.


class Recognised(NamedTuple):
    """The turns that the existing program accepted and assigned since acp wrote last."""

    accepted: tuple[str, ...]
    assigned: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What it did, without a capital and without a full stop."""
        parts = [f"accepted {each}" for each in self.accepted]
        parts += [f"assigned {each}" for each in self.assigned]
        return f"the agentxchain program {' and '.join(parts)}"


def recognised(run: Run) -> Recognised | None:
    """What the existing program did since acp wrote last; None where the files tell otherwise."""
    before, now = schema.parsed(own_writes.last_sealed(run.root) or b""), run.state.value
    seal = own_writes.read_seal(run.root)
    if not before or seal is None or seal.marked:
        return None
    grown = {
        name: _grown(run.root / name, log, seal.files.get(name, "empty"))
        for name, log in (
            (schema.HISTORY, run.history), (schema.LEDGER, run.ledger), (schema.EVENTS, run.events)
        )
    }  # fmt: skip
    history, ledger, events = (
        grown[name] for name in (schema.HISTORY, schema.LEDGER, schema.EVENTS)
    )
    if history is None or ledger is None or events is None:
        return None
    accepted = tuple(str(line.value.get("turn_id")) for line in history)
    assigned = tuple(id for id in _turns(now) if id not in _turns(before))
    lawful = (
        bool(accepted or assigned)
        and _state_follows(run, before, accepted)
        and not any(_is_decision(line.value) for line in (*ledger, *events))
        and all(_is_sound(run, before, line) for line in history)
        and all(_may_take(run, turn) for id, turn in _turns(now).items() if id in assigned)
        and _repository_agrees(run, before, history)
    )
    return Recognised(accepted, assigned) if lawful else None


def _grown(path: Path, log: Log, sealed: str) -> list[Line] | None:
    """The lines that were added to a log since it was sealed; None where others changed."""
    if log.problems:
        return None
    if sealed == "empty":
        return list(log.lines)
    try:
        data = path.read_bytes()[: schema.LOG_LIMIT]
    except OSError:
        return None
    digest = hashlib.sha256()
    for number, raw in enumerate(data.split(b"\n"), 1):
        digest.update(raw + b"\n")
        if f"sha256:{digest.hexdigest()}" == sealed:
            return [line for line in log.lines if line.number > number]
    return None


def _turns(state: Object) -> dict[str, Object]:
    return objects(state.get("active_turns"))


def _state_follows(run: Run, before: Object, accepted: tuple[str, ...]) -> bool:
    """Whether the state is one to which assigning and accepting turns leads."""
    now = run.state.value
    if any(now.get(key) != before.get(key) for key in _FIXED):
        return False
    if now.get("run_id") != before.get("run_id") or before.get("status") not in (
        "active",
        "paused",
    ):
        return False
    if accepted and now.get("last_completed_turn_id") != accepted[-1]:
        return False
    if not set(_turns(before)) <= {*_turns(now), *accepted} or set(_turns(now)) & set(accepted):
        return False
    passed = {key for key, value in obj(now, "phase_gate_status").items() if value == "passed"}
    before_passed = {
        k for k, value in obj(before, "phase_gate_status").items() if value == "passed"
    }
    return passed == before_passed and _status_follows(before, now, accepted)


def _status_follows(before: Object, now: Object, accepted: tuple[str, ...]) -> bool:
    """Whether no gate was decided: one that waited still does, one that waits now was asked for."""
    if before.get("status") == "paused":
        return all(now.get(key) == before.get(key) for key in ("status", *_DECIDED))
    asked = obj(now, "pending_phase_transition") or obj(now, "pending_run_completion")
    if now.get("status") == "paused":
        return asked.get("requested_by_turn") in accepted
    if now.get("status") == "blocked":
        return bool(accepted and now.get("blocked_on") and now.get("blocked_reason"))
    return now.get("status") == "active" and not asked and not now.get("blocked_on")


def _is_decision(line: Object) -> bool:
    kind = text(line, "type", 80) or text(line, "decision", 80) or text(line, "event_type", 80)
    if kind == "approval_policy":
        return line.get("action") != "require_human"
    return any(part in kind for part in _UNPROVED)


def _is_sound(run: Run, before: Object, line: Line) -> bool:
    """Whether a line of the history is a result that acp would have accepted, too."""
    value, config = line.value, run.config.value
    turn = _turns(before).get(str(value.get("turn_id")))
    if turn is None:
        turn = {"turn_id": value.get("turn_id"), "assigned_role": value.get("role"),
                "runtime_id": value.get("runtime_id")}  # fmt: skip
        if not _may_take(run, turn):
            return False
    state = before | {"active_turns": {str(value.get("turn_id")): turn}}
    earlier = [each for each in run.history.lines if each.number < line.number]
    sequence = schema.number(value, "accepted_sequence")
    follows = sequence is None or sequence > (schema.number(before, "turn_sequence") or 0)
    of_phase = value.get("phase") == before.get("phase")
    result = {"schema_version": "1.0", **value}
    return follows and of_phase and results.check(result, state, config, earlier).ok


def _may_take(run: Run, turn: Object) -> bool:
    """Whether a turn is one that its role may take here, with the runtime that is configured."""
    role, config = turn.get("assigned_role"), run.config.value
    described = objects(config.get("roles")).get(str(role), {})
    return role in roles_of(config, run.phase) and turn.get("runtime_id") == described.get(
        "runtime"
    )


def _repository_agrees(run: Run, before: Object, history: list[Line]) -> bool:
    """Whether nothing changed that the accepted turns did not declare, as far as git tells."""
    turns = [
        turn for line in history if (turn := _turns(before).get(str(line.value.get("turn_id"))))
    ]
    if not turns or _turns(run.state.value):
        return True  # their work and that of the turn under way cannot be told apart any more
    baseline = obj(turns[0], "baseline")
    seen = repository.observe(run.root, baseline)
    if not seen.known:
        return text(baseline, "kind", 40) != "git_worktree"
    declared = {name for line in history for name in strings(line.value, "files_changed")}
    return set(seen.files) <= declared
