"""A run as a writer holds it: read under its lock, and written as one (see `files.transaction`).

Writers hold a lock on the folder of the run (``.agentxchain``) or of the coordinator
(``.coordinator``), and of runs the existing program's too; what a killed command left is finished
first, and with every writing the run is sealed. Source: governed protocol specification, "State
coherence after resync". Standard library only.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import secrets
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.files import transaction
from acp_core.files.locked import TIMEOUT
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.transaction import APPEND, REMOVE, REPLACE, Hooks, Transaction, Write, writable
from acp_core.files.transaction import Failed as Failed
from acp_core.files.transaction import Interrupted as Interrupted
from acp_core.files.transaction import Recovered as Recovered
from acp_core.model.action import Change
from acp_core.model.errors import Refused
from acp_core.model.text import clean, clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import existing_program, own_writes
from acp_core.protocols.governed.read.own_writes import (
    COORDINATOR_HOME,
    RUN_HOME,
    coordinators_above,
    interrupted,
)
from acp_core.protocols.governed.read.run import Run, read_run
from acp_core.protocols.governed.rules import guard
from acp_core.protocols.governed.schema import RUN_HISTORY, Object, obj, objects, text
from acp_core.protocols.governed.state import OPERATION_MARK, Move, by_acp, format_time
from acp_core.protocols.kit.guard import check

AT_WORK = 1.0  # seconds for which a journal may be there because a command writes
MOST = 1_000  # files of a folder that is removed


class Opened(NamedTuple):
    """A run as it stands. ``held`` is its lock, None where it is only looked at."""

    root: Path
    run: Run
    raw_state: bytes | None
    held: Transaction | None = None

    @property
    def key(self) -> str:
        """The run's repository: acts are bound to it."""
        return str(self.root)

    @property
    def recovered(self) -> Recovered | None:
        """What became of a command that was killed before, None where none was."""
        return self.held.recovered if self.held else None

    @property
    def config(self) -> Object:
        """The configuration."""
        return self.run.config.value

    @property
    def state(self) -> Object:
        """The state, empty where there is none yet."""
        return self.run.state.value

    @property
    def objections(self) -> dict[str, str]:
        """The status of every objection, by its id."""
        return {each.id: each.status for each in self.run.objections}


class RunPlan(NamedTuple):
    """What an act of a run does: shown as a preview, made anew under the lock and done.

    Making it has no effects.

    Attributes:
        what: how the journal calls it.
        sentence: what it would do, and ``done`` the same once it is.
        move: the run's next state and lines, None where these stay.
        writes: other files.
        warnings: what is to be heeded first.
        before, after: what programs read of its preview, and of its outcome.
        words: what the existing program is told so that it does it: then nothing is written here.
        refusal: why it is not done; its writes only note that.
        taken: the run's own files that a human takes as they are, first.
        first: what is done under the lock before it is written.
        asked: what the hooks are told that may stop it.
        told: the hooks that are told of it then: the phase, and what they are told.
        said: what is said of it besides; of what was done also what hooks say.
        subject: what it is about.
    """

    what: str
    sentence: str
    done: str = ""
    move: Move | None = None
    writes: Sequence[Write] = ()
    warnings: tuple[str, ...] = ()
    before: Mapping[str, object] = {}
    after: Mapping[str, object] = {}
    words: Sequence[str] = ()
    refusal: Refused | None = None
    taken: Sequence[str] = ()
    first: Callable[[], object] | None = None
    asked: Mapping[str, Any] = {}
    told: Sequence[tuple[str, Object]] = ()
    said: tuple[str, ...] = ()
    subject: Any = None


def new_id(kind: str) -> str:
    """A fresh id as the files hold it: ``run_`` or ``turn_`` and 16 hex digits."""
    return f"{kind}_{secrets.token_hex(8)}"


def read_unlocked(root: str | Path, act: str = "") -> Opened:
    """The run as it stands, without its lock: for looking only.

    Args:
        root: the repository.
        act: the name of an act that needs no whole run, such as one that mends it.

    Raises:
        Refused: there is no run, a command was interrupted, or its files are such that nothing
            can be decided: what mends them.
    """
    place = _place(root)
    left, until = interrupted(place), time.monotonic() + AT_WORK
    while left is not None and time.monotonic() < until:  # a command may be writing just now
        time.sleep(0.02)
        left = interrupted(place)
    if left is not None:
        mending = f"acp governed recover {shlex.quote(str(place))}"
        raise Refused(f"{left.what} was interrupted; run `{mending}` to finish it")
    return _opened(place, None, act)


def seal_lawful(run: Run, state: bytes | None, holder: Transaction) -> None:
    """Seal a run anew where the existing program did in it what acp would have let it do.

    Args:
        run: the run.
        state: what its state file holds.
        holder: holds its lock.
    """
    changed = guard.changed(run)
    if not changed or state is None or guard.recognised(run) is None:
        return
    sealed = own_writes.sound(run.root, changed)
    if sealed is not None:
        holder.commit("seal the changes of the agentxchain program", [sealed])
        own_writes.kept_copy(run.root, state)


def permitted(opened: Opened, act: str, *, role: str = "", excluded: Iterable[str] = ()) -> Opened:
    """The run, where nothing stands in the way of an act. Arguments as those of `locked`.

    Raises:
        Refused: something does; what, and what mends it.
    """
    check(guard.of_run(opened.run, role=role, excluded=excluded), act)
    return opened


@contextlib.contextmanager
def locked(
    root: str | Path, act: str, *, role: str = "", excluded: Iterable[str] = ()
) -> Iterator[Opened]:
    """Hold the run's lock; what a killed command left is finished first.

    Args:
        root: the repository.
        act: the name of the act that is to be done.
        role: who is to take the next turn, where that is what is done.
        excluded: the run's own files that a human takes as they are.

    Raises:
        Refused: there is no run, another command holds the lock, or something stands in the way
            of the act (see `write.guard`).
    """
    place = _place(root)
    home = place / ".agentxchain"
    if home.is_symlink():
        raise Refused(".agentxchain is a symbolic link: acp does not write through links")
    with hold_files(place) as holder:
        opened = _opened(place, holder, act)
        check(guard.of_run(opened.run, role=role, excluded=excluded), act)
        seal_lawful(opened.run, opened.raw_state, holder)
        yield opened


def _place(root: str | Path) -> Path:
    place = Path(os.path.abspath(root))
    if not place.is_dir():
        raise Refused(f"{root} is not a folder")
    if not (place / schema.CONFIG).is_file():
        raise Refused(
            f"no governed run in {root}: {schema.CONFIG} is missing (`acp governed init`)"
        )
    return place


def _opened(place: Path, holder: Transaction | None, act: str = "") -> Opened:
    raw = None
    with contextlib.suppress(Refused):  # of what cannot be read the guard says more
        raw = content(place, schema.STATE)
    run = read_run(place)
    check(guard.unusable(run), act)
    return Opened(place, run, raw, holder)


def commit(opened: Opened, what: str, move: Move, more: Sequence[Write] = ()) -> None:
    """Write what a step makes of the run: logs first, then ``more``, the state last.

    Raises:
        Refused: it cannot be written, another program changed the state since it was read, or
            the existing program left something half written.
    """
    root = opened.root
    refuse_over_unfinished(opened)
    if content(root, schema.STATE) != opened.raw_state:
        raise Refused(f"{schema.STATE} has just changed; try again")
    wanted = [
        Write(root / name, APPEND, b"".join(log_line(each) for each in lines))
        for name, lines in (
            (schema.HISTORY, move.history),
            (schema.LEDGER, move.ledger),
            (schema.EVENTS, [{"event_id": new_id("evt")} | each for each in move.events]),
        )
        if lines
    ]
    wanted += more
    for path, verb, value in checkpoint_writes(opened.run, move, datetime.now(UTC)):
        wanted.append(
            Write(path, verb, log_line(value) if verb == APPEND else json_document(value))
        )
    wanted.append(Write(root / schema.STATE, REPLACE, json_document(move.state)))
    write(opened, what, wanted)


def write(opened: Opened, what: str, wanted: Sequence[Write]) -> None:
    """Write several files as one.

    Raises:
        Refused: one cannot be written; all are as before.
    """
    if opened.held is None:
        raise Refused("the run is opened read-only")
    opened.held.commit(what, wanted)
    for each in wanted:
        if each.verb == REMOVE:
            with contextlib.suppress(OSError):  # not empty, or gone: either way nothing is lost
                os.rmdir(each.path.parent)


def content(root: Path, name: str) -> bytes | None:
    """What a file of the run holds, None where there is none.

    Raises:
        Refused: it cannot be read, or leads out of the repository.
    """
    path = writable(root, name)
    if path is None:
        raise Refused(f"{name} leads out of the repository, or is a symbolic link")
    try:
        return read_bounded(path, schema.LOG_LIMIT)
    except Unreadable as error:
        if error.missing:
            return None
        raise Refused(f"{name}: {error.reason}") from None


def removing(root: Path, name: str) -> list[Write]:
    """The removal of every file in a folder of the run.

    Raises:
        Refused: the folder holds other folders, or leads out of the repository.
    """
    place = writable(root, name)
    if place is None:
        raise Refused(f"{name} leads out of the repository, or is a symbolic link")
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return []
    found = [place / each for each in names[:MOST]]
    odd = next((path for path in found if path.is_symlink() or not path.is_file()), None)
    if odd is not None or len(names) > MOST:
        raise Refused(f"{name} holds more than a turn's files ({odd or len(names)}): clean it up")
    return [Write(path, REMOVE) for path in found]


def reserved_changed(opened: Opened) -> tuple[str, ...]:
    """The run's own files that somebody but acp wrote, in a run that acp made."""
    return guard.changed(opened.run) if guard.is_tampered(opened.run) else ()


def take_as_they_are(opened: Opened, names: Iterable[str]) -> None:
    """A human takes the run's own files as they are, whoever wrote them."""
    sealed = own_writes.sound(opened.root, names)
    if sealed is not None:
        write(opened, "accept the run's files as they are", [sealed])


def refuse_over_unfinished(opened: Opened) -> None:
    """No step is made over what the existing program left half written.

    Raises:
        Refused: it left something; what to do.
    """
    if opened.run.unfinished:
        raise Refused(existing_program.transaction_refusal(opened.run.unfinished))


def refuse_agents() -> None:
    """What only a human may do is refused within an agent's turn.

    Raises:
        Refused: the environment says that an agent's program is at work.
    """
    turn = os.environ.get(OPERATION_MARK)
    if turn:
        raise Refused(f"only a human can decide this, not the program of the turn {turn}")


def who(given: str = "") -> str:
    """Who decides: the name that was given, else the user's.

    Raises:
        Refused: there is none.
    """
    import getpass

    name = " ".join(given.split())
    if not name:
        with contextlib.suppress(Exception):  # no user of that id: getpass says it in many ways
            name = getpass.getuser()
    if not name or len(name) > 120:
        raise Refused("name who decides (--by NAME)")
    return name


# --- files written as one, and the locks that are held for it

_TRIES = 20


@contextlib.contextmanager
def hold_files(
    root: Path, home: str = RUN_HOME, others: Sequence[str] = (), *, timeout: float = TIMEOUT
) -> Iterator[Transaction]:
    """Hold the lock of a run or of an initiative, with everything finished that was interrupted.

    Args:
        root: the run's folder, or the initiative's.
        home: `RUN` or `COORDINATOR`; the folder is made where it is missing.
        others: further folders below ``root`` to lock, those of an initiative's runs.
        timeout: seconds to wait for another process.

    Raises:
        Refused: it is held by another process, or what was interrupted cannot be finished.
    """
    for _ in range(_TRIES):
        if home == RUN_HOME:
            _finish_above(root, timeout)
        with transaction.lock(root, home, others, hooks=_HOOKS, timeout=timeout) as opened:
            if home == RUN_HOME and any(
                interrupted(up, COORDINATOR_HOME) for up in coordinators_above(root)
            ):
                continue
            opened.recover()
            yield opened
            return
    raise Refused(f"{root} keeps being written by other processes; try again")


def log_line(value: dict[str, Any]) -> bytes:
    """An object as one line of a log."""
    return (json.dumps(value, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def json_document(value: dict[str, Any]) -> bytes:
    """An object as a JSON file."""
    text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    return text.encode("utf-8", "backslashreplace")


def _finish_above(root: Path, timeout: float) -> None:
    for place in coordinators_above(root):
        if interrupted(place, COORDINATOR_HOME):
            with hold_files(place, COORDINATOR_HOME, timeout=timeout):
                pass


def _existing_lock(folder: Path) -> AbstractContextManager[None]:
    """The existing program's lock, where it has one."""
    return existing_program.lock_held(folder) if folder.name == RUN_HOME else nullcontext()


_HOOKS = Hooks(follow=own_writes.sealing, done=own_writes.keep_copy, lock=_existing_lock)


# --- what the existing program keeps of a run besides: its checkpoint, and the list of finished runs
# acp needs neither. But where that program keeps a checkpoint, in a run that both may carry on, acp
# writes it with each of its steps, so that the program's own view of the run stays true; and a run
# that was founded there is listed there once it ends, whoever took its turns. Source: the shapes that
# the existing program writes.

ENDS = ("completed", "blocked")
_RECENT = 5  # decisions and turns that a run's line repeats


def checkpoint_writes(run: Run, move: Move, now: datetime) -> tuple[tuple[Path, str, Object], ...]:
    """What a step leads to: path, verb and object of each file; () where the program keeps none.

    Args:
        run: the run before the step.
        move: the step.
        now: the time.
    """
    found: list[tuple[Path, str, Object]] = []
    if not run.session.reason:
        found.append(
            (run.root / schema.SESSION, REPLACE, session_after(run.session.value, move, now))
        )
    ends = move.state.get("status") in ENDS and run.status != move.state.get("status")
    if ends and (found or not by_acp(move.state)):
        found.append((run.root / RUN_HISTORY, APPEND, run_history_line(run, move, now)))
    return tuple(found)


def session_after(before: Object, move: Move, now: datetime) -> Object:
    """The checkpoint after a step."""
    state = move.state
    turns = objects(state.get("active_turns"))
    last = next((each for each in reversed(move.events) if obj(each, "turn")), {})
    of = obj(last, "turn")
    gate = obj(state, "pending_phase_transition") or obj(state, "pending_run_completion")
    return before | {
        "run_id": state.get("run_id"),
        "last_checkpoint_at": format_time(now),
        "checkpoint_reason": move.events[-1]["event_type"] if move.events else "state_written",
        "run_status": state.get("status"),
        "phase": state.get("phase"),
        "last_phase": state.get("phase"),
        "last_turn_id": of.get("turn_id") or before.get("last_turn_id"),
        "last_completed_turn_id": state.get("last_completed_turn_id"),
        "active_turn_ids": list(turns),
        "last_role": of.get("role_id") or before.get("last_role"),
        "pending_gate": gate.get("gate"),
        "pending_run_completion": state.get("pending_run_completion"),
        "blocked": state.get("status") == "blocked",
    }


def run_history_line(run: Run, move: Move, now: datetime) -> Object:
    """The line for a run that was completed or blocked."""
    state, config = move.state, run.config.value
    lines = [line.value for line in run.history.lines] + list(move.history)
    own = [line for line in lines if line.get("run_id") == state.get("run_id")]
    began = schema.moment(state, "created_at")
    project = obj(config, "project")
    decisions = [line for line in run.ledger.lines if "id" in line.value]
    budget = obj(state, "budget_status")
    return {
        "schema_version": "0.1",
        "run_id": state.get("run_id"),
        "project_id": state.get("project_id"),
        "project_name": text(project, "name", 200),
        "template": config.get("template"),
        "status": state.get("status"),
        "started_at": state.get("created_at"),
        "completed_at": state.get("completed_at"),
        "duration_ms": int((now - began).total_seconds() * 1000) if began else None,
        "phases_completed": _phases(run, own),
        "total_turns": len(own),
        "roles_used": list(dict.fromkeys(text(line, "role", 80) for line in own)),
        "decisions_count": len(decisions) + sum("id" in line for line in move.ledger),
        "total_cost_usd": budget.get("spent_usd"),
        "budget_limit_usd": obj(config, "budget").get("per_run_max_usd"),
        "blocked_reason": state.get("blocked_on"),
        "gate_results": obj(state, "phase_gate_status"),
        "connector_used": next((line.get("runtime_id") for line in own), None),
        "model_used": None,
        "provenance": state.get("provenance"),
        "parent_context": None,
        "retrospective": _retrospective(state, own),
        "inheritance_snapshot": {
            "recent_decisions": _decisions(run, move),
            "recent_accepted_turns": [
                {name: line.get(name) for name in ("turn_id", "role", "summary", "phase")}
                for line in own[-_RECENT:]
            ],
        },
        "recorded_at": format_time(now),
    }


def _retrospective(state: Object, own: list[Object]) -> Object:
    """How the run ended, in a line, and what is next."""
    reason = obj(state, "blocked_reason")
    on, said = state.get("blocked_on"), text(own[-1], "summary", 500) if own else ""
    action = obj(reason, "recovery").get("recovery_action")
    return {
        "headline": on or said,
        "terminal_reason": reason.get("category") or state.get("status"),
        "next_operator_action": action,
        "follow_on_hint": None,
    }


def _decisions(run: Run, move: Move) -> list[Object]:
    lines = [line.value for line in run.ledger.lines] + list(move.ledger)
    return [
        {"id": line["id"], "statement": line.get("statement"), "decided_by": line.get("role"),
         "phase": line.get("phase")}
        for line in lines
        if "id" in line
    ][-_RECENT:]  # fmt: skip


def _phases(run: Run, own: list[Object]) -> list[str]:
    worked = {text(line, "phase", 80) for line in own}
    return [phase for phase in run.phases if phase in worked]


# --- what a step would change, as texts that are safe to show: for previews and dry runs

_LONGEST = 1 << 16  # characters of one file's change


def changes_of_move(
    opened: Opened, move: Move | None, more: Sequence[Write] = ()
) -> tuple[Change, ...]:
    """The files that a step touches, in the order in which they are written.

    Raises:
        Refused: the step may not be made, see `opened.commit`; or a file cannot be read.
    """
    found = []
    if move is not None:
        refuse_over_unfinished(opened)
        for name, lines in (
            (schema.HISTORY, move.history),
            (schema.LEDGER, move.ledger),
            (schema.EVENTS, move.events),
        ):
            if lines:
                text = b"".join(log_line(each) for each in lines)
                found.append(Change(_changed_path(opened.root, name), "append", _added(text)))
    found += changes_of_writes(opened.root, more)
    if move is not None:
        before, after = opened.raw_state or b"", json_document(move.state)
        name = _changed_path(opened.root, schema.STATE)
        found.append(Change(name, "replace" if before else "create", _diff(before, after)))
    return tuple(found)


def changes_of_writes(root: Path, writes: Sequence[Write]) -> tuple[Change, ...]:
    """What these writes below ``root`` would change.

    Raises:
        Refused: a file cannot be read.
    """
    return tuple(_change(root, each) for each in writes)


def changes_since_sealed(root: Path, name: str) -> str:
    """What somebody but acp changed in a sealed file; only of the state it is known."""
    before = own_writes.last_sealed(root) if name == schema.STATE else None
    if before is None:
        return "is accepted as it is; its changes are unknown"
    return _diff(before, content(root, name) or b"")


def _change(root: Path, write: Write) -> Change:
    name = os.path.relpath(write.path, root)
    path = _changed_path(root, name)
    if write.verb == APPEND:
        return Change(path, "append", _added(write.data))
    if write.verb == REMOVE:
        return Change(path, "remove")
    before = content(root, name)
    if before is None:
        return Change(path, "create", _added(write.data))
    return Change(path, "replace", _diff(before, write.data))


def _changed_path(root: Path, name: str) -> str:
    return clean_line(os.path.join(root, name), 2_000)


def _lines(data: bytes) -> list[str]:
    text = clean(data.decode(errors="replace"))
    return text.removesuffix("\n").split("\n") if text else []


def _added(data: bytes) -> str:
    return _bounded("\n".join(f"+{each}" for each in _lines(data)))


def _diff(before: bytes, after: bytes) -> str:
    return _bounded("\n".join(difflib.unified_diff(_lines(before), _lines(after), lineterm="")))


def _bounded(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "\n…"
