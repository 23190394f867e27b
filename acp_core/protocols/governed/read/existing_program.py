"""The existing program: runs that it made, its lock on a run, and what it left unfinished.

It keeps more than acp does (budgets, sessions, escalations), so its own commands act on its runs
wherever it is there. Where it is not, acp's engine acts on the same files. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from acp_core.files import atomic
from acp_core.files.atomic import is_leftover
from acp_core.files.reading import Unreadable, read_bounded, stamp
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.schema import Object, obj, objects, text

if TYPE_CHECKING:
    from acp_core.protocols.governed.read.run import Run

NAME = "agentxchain"


def program(run: Run) -> str | None:
    """The existing program, where it made this run and is there; None where acp acts itself."""
    if run.state.reason or run.by_acp:
        return None
    return shutil.which(NAME)


def is_there() -> bool:
    """Whether the existing program is on the PATH."""
    return shutil.which(NAME) is not None


def words(run: Run, verb: str, *, turn: str = "", role: str = "", reason: str = "") -> list[str]:
    """What the program is told so that it does what acp calls ``verb``; [] where acp does it itself.

    Args:
        run: the run.
        verb: a verb of `acp governed`.
        turn: the turn that it is about, where there are several.
        role: who takes the next turn.
        reason: why a turn is rejected, or a run stopped.
    """
    if program(run) is None:
        return []
    several = len(objects(run.state.value.get("active_turns"))) > 1
    named = ["--turn", turn] if turn and several else []
    options = ["--reason", reason] if reason else []
    if verb == "unblock":
        id = escalation(run.root)
        return ["unblock", id] if id else ["resume"]
    return {
        "step": ["resume", *(["--role", role] if role else [])],
        "accept-turn": [verb, *named],
        "reject-turn": [verb, *named, *options],
        "escalate": [verb, *options],
    }.get(verb, [verb])


def escalation(root: Path) -> str:
    """The id of the escalation that was raised last and is not resolved, "" where there is none."""
    open_ids: dict[str, None] = {}
    path = schema.inside(root, schema.ESCALATIONS)
    for line in schema.read_log(path).lines if path else ():
        id = text(line.value, "escalation_id", 80)
        if line.value.get("kind") == "raised" and id:
            open_ids[id] = None
        else:
            open_ids.pop(id, None)
    return next(reversed(open_ids), "")


# --- its lock: respected, and held while acp writes the run
# That program makes the file ``locks/accept-turn.lock`` while it accepts a turn, with its process id
# in it, and refuses to where another's stands there. acp makes the same file, so that neither writes
# while the other does. Between acp's own processes the kernel's lock decides (see `write.opened`), so
# that a file which acp made and left, because it was killed, holds nobody up.

LOCK_FOLDER, LOCK_NAME = "locks", "accept-turn.lock"
LOCK_PATIENCE = 2.0  # seconds that are waited for the other program
LOCK_OLD = 600.0  # seconds after which a lock that names no process is nobody's
_LOCK_LIMIT = 4_096
_CLOCKS = 2.0  # seconds by which a file's time and a process's birth may disagree
_TRIES = 20


class Holder(NamedTuple):
    """Who holds a lock: ``pid`` is None where the file does not say."""

    pid: int | None
    since: datetime | None
    ours: bool
    data: bytes


@contextlib.contextmanager
def lock_held(home: Path, timeout: float | None = None) -> Iterator[None]:
    """Hold the existing program's lock on a run; acp's own on it is held already.

    Args:
        home: the run's ``.agentxchain``.
        timeout: seconds to wait for the other program; None for `PATIENCE`.

    Raises:
        Refused: the other program holds it; who, and what to do.
    """
    folder = home / LOCK_FOLDER
    path = folder / LOCK_NAME
    if folder.is_symlink() or path.is_symlink():
        raise Refused(f"{path} is a symbolic link: acp does not write through links")
    owner = {"pid": os.getpid(), "acquired_at": datetime.now(UTC).isoformat(), "by": "acp"}
    data = json.dumps(owner).encode()
    until = time.monotonic() + (LOCK_PATIENCE if timeout is None else timeout)
    while not _lock_made(path, data):
        holder = lock_holder(home)
        if holder is None:
            continue
        if is_lock_stale(home, holder):
            _take_lock_away(path, holder)
        elif time.monotonic() >= until:
            raise Refused(lock_refusal(home, holder))
        else:
            time.sleep(0.05)
    try:
        atomic.sweep(path)
        yield
    finally:
        with contextlib.suppress(OSError):
            if path.read_bytes() == data:
                path.unlink()


def lock_holder(home: Path) -> Holder | None:
    """Who holds the lock, None where nobody does; never raises."""
    path = home / LOCK_FOLDER / LOCK_NAME
    try:
        data = read_bounded(path, _LOCK_LIMIT)
    except Unreadable as error:
        return None if error.missing else Holder(None, None, False, b"")
    raw = data.decode("utf-8", "replace").strip()
    owner: schema.Object = {"pid": int(raw)} if raw.isdecimal() and len(raw) < 10 else {}
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(raw)
        owner = value if isinstance(value, dict) else owner
    pid = schema.number(owner, "pid")
    since = schema.moment(owner, "acquired_at", "created_at", "timestamp")
    return Holder(pid if pid and pid > 0 else None, since, owner.get("by") == "acp", data)


def is_lock_stale(home: Path, holder: Holder) -> bool:
    """Whether a lock is left from a process that is gone."""
    if holder.ours or holder.pid == os.getpid():
        return True  # acp's own lock is held, so that no other process of acp is at work
    since = holder.since.timestamp() if holder.since else _lock_written(home)
    if holder.pid is None:
        return since is not None and time.time() - since > LOCK_OLD
    from acp_core.agents.processes import identify  # late: a lock is seldom there

    found = identify(holder.pid)
    if found is None or not found.alive():
        return True
    return since is not None and found.created > since + _CLOCKS


def lock_refusal(home: Path, holder: Holder) -> str:
    """Why nothing can be written now, and what to do, in a line."""
    path = home / LOCK_FOLDER / LOCK_NAME
    if holder.pid is None:
        return (
            f"{path} says that the agentxchain program is writing this run but names no process: "
            "try again, or remove the file if no such program runs"
        )
    return (
        f"the agentxchain program (process {holder.pid}) is writing this run ({path}): try again "
        "when it is done"
    )


def _lock_written(home: Path) -> float | None:
    try:
        return (home / LOCK_FOLDER / LOCK_NAME).stat().st_mtime
    except OSError:
        return None


def _lock_made(path: Path, data: bytes) -> bool:
    for _ in range(_TRIES):
        try:
            atomic.create(path, data)
        except FileExistsError:
            return False
        except FileNotFoundError:
            atomic.shared_folder(path.parent)
            continue
        except OSError as error:
            raise Refused(f"{path}: {error.strerror or error}") from None
        return True
    raise Refused(f"{path} cannot be created: its folder keeps being removed")


def _take_lock_away(path: Path, holder: Holder) -> None:
    """Remove a stale lock; one that another process made meanwhile is put back."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.acp-tmp")
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return
    except OSError as error:
        raise Refused(f"{path}: {error.strerror or error}") from None
    with contextlib.suppress(OSError):
        if aside.read_bytes() != holder.data:
            os.link(aside, path)
    with contextlib.suppress(OSError):
        aside.unlink()


# --- what it began to write, and did not finish
# It notes in ``.agentxchain/transactions`` what it is about to write (the accepted turn, its
# decisions, the state), and takes the note away when all of it is written. A note that is left may be
# the only place where an accepted turn stands, so nothing is ever done over it. What a note holds is
# laid down nowhere: only what it plainly says is told.

TRANSACTIONS = ".agentxchain/transactions"
AT_ONCE = timedelta(seconds=3)
"""A note that is younger belongs to a program that is writing just now."""

_OVER_WORDS = (
    "aborted", "applied", "cancelled", "committed", "complete", "completed", "done", "finished",
    "rolled_back",
)  # fmt: skip

_KINDS = ("kind", "type", "operation", "action")
_INNER = ("turn", "history_entry", "entry", "payload")
"""Members of a note that may name the turn."""
_DEEPEST_NOTE, _MOST_NOTES = 3, 50


class Transaction(NamedTuple):
    """A note that is left: ``name`` is its file, relative to the repository.

    ``what`` is what was begun, ``turn`` the turn that it is about, ``state`` how far it says that it
    is, each "" where it does not say; ``reason`` why it cannot be read, "" where it can.
    """

    name: str
    what: str = ""
    turn: str = ""
    state: str = ""
    at: datetime | None = None
    reason: str = ""

    def is_fresh(self, now: datetime) -> bool:
        """Whether it may well be at work at this moment."""
        return self.at is not None and abs(now - self.at) < AT_ONCE


def unfinished_transactions(root: Path) -> tuple[Transaction, ...]:
    """The notes that are left in the run at ``root``, by name; never raises."""
    found = [_read_transaction(root, path) for path in transaction_files(root)]
    return tuple(each for each in found if each is not None)


def transaction_files(root: Path) -> list[Path]:
    """The files in which notes may be, whatever they hold; never raises."""
    home = schema.inside(root, TRANSACTIONS)
    return sorted(_files(home, _DEEPEST_NOTE))[:_MOST_NOTES] if home is not None else []


def transaction_folders(root: Path) -> Iterator[Path]:
    """The folders in which notes may come to be: to be watched."""
    home = schema.inside(root, TRANSACTIONS)
    if home is not None:
        yield home
        yield from sorted(_folders(home, _DEEPEST_NOTE))[:_MOST_NOTES]


def _read_transaction(root: Path, path: Path) -> Transaction | None:
    name = os.path.relpath(path, root)
    found = stamp(path)
    written = datetime.fromtimestamp(found.modified / 1e9, UTC) if found else None
    loaded = schema.read_object(path)
    if loaded.missing:
        return None
    if loaded.reason:
        return Transaction(name, at=written, reason=loaded.reason)
    value = loaded.value
    state = text(value, "status", 60) or text(value, "state", 60)
    if state.lower() in _OVER_WORDS:
        return None
    what = next((t for key in _KINDS if (t := text(value, key, 80))), "")
    at = schema.moment(value, "prepared_at", "started_at", "created_at", "at", "timestamp")
    return Transaction(name, what.replace("_", " "), _turn_named(value), state, at or written)


def _turn_named(value: Object) -> str:
    holders = (value, *(obj(value, key) for key in _INNER))
    return next((t for each in holders if (t := text(each, "turn_id", 80))), "")


def _files(home: Path, deep: int) -> Iterator[Path]:
    """Files that are notes; names with a leading dot, and what killed writers left, are none."""
    for entry in _entries(home):
        if entry.is_symlink() or entry.name.startswith(".") or is_leftover(entry.name):
            continue
        if entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
        elif deep and entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path), deep - 1)


def _folders(home: Path, deep: int) -> Iterator[Path]:
    for entry in _entries(home):
        if deep and entry.is_dir(follow_symlinks=False):
            yield Path(entry.path)
            yield from _folders(Path(entry.path), deep - 1)


def _entries(home: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(home) as entries:
            return sorted(entries, key=lambda entry: entry.name)[: 4 * _MOST_NOTES]
    except OSError:
        return []


def describe_transaction(each: Transaction) -> str:
    """What was begun, in words without a capital and without a full stop."""
    what = each.what or "a write"
    begun = f"“{what}”" if each.what else what
    return clean_line(f"{begun} ({each.turn})" if each.turn else begun, 200)


def transaction_refusal(left: tuple[Transaction, ...]) -> str:
    """Why nothing may be written over these notes, and what to do, in a line."""
    first, more = left[0], len(left) - 1
    also = f" and {more} more" if more else ""
    return (
        f"the agentxchain program did not finish {describe_transaction(first)} ({clean_line(first.name, 200)}{also}"
        "): let that program finish it, or review it and run `acp governed set-aside`"
    )
