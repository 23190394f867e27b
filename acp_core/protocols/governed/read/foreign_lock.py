"""The lock of the existing program on a run: respected, and held while acp writes the run.

That program makes the file ``locks/accept-turn.lock`` while it accepts a turn, with its process id
in it, and refuses to where another's stands there. acp makes the same file, so that neither writes
while the other does. Between acp's own processes the kernel's lock decides (see `journal`), so that
a file which acp made and left, because it was killed, holds nobody up. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files import atomic, modes
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema

FOLDER, NAME = "locks", "accept-turn.lock"

PATIENCE = 2.0  # seconds that are waited for the other program

OLD = 600.0  # seconds after which a lock that names no process is nobody's

_LIMIT = 4_096

_CLOCKS = 2.0  # seconds by which a file's time and a process's birth may disagree

_TRIES = 20


class Holder(NamedTuple):
    """Who holds a lock: ``pid`` is None where the file does not say."""

    pid: int | None
    since: datetime | None
    ours: bool
    data: bytes


@contextlib.contextmanager
def held(home: Path, timeout: float | None = None) -> Iterator[None]:
    """Hold the existing program's lock on a run; acp's own on it is held already.

    Args:
        home: the run's ``.agentxchain``.
        timeout: seconds to wait for the other program; None for `PATIENCE`.

    Raises:
        Refused: the other program holds it; who, and what to do.
    """
    folder = home / FOLDER
    path = folder / NAME
    if folder.is_symlink() or path.is_symlink():
        raise Refused(f"{path} is a symbolic link: acp does not write through links")
    owner = {"pid": os.getpid(), "acquired_at": datetime.now(UTC).isoformat(), "by": "acp"}
    data = json.dumps(owner).encode()
    until = time.monotonic() + (PATIENCE if timeout is None else timeout)
    while not _made(path, data):
        holder = holding(home)
        if holder is None:
            continue
        if is_stale(home, holder):
            _take_away(path, holder)
        elif time.monotonic() >= until:
            raise Refused(refusal(home, holder))
        else:
            time.sleep(0.05)
    try:
        atomic.sweep(path)
        yield
    finally:
        with contextlib.suppress(OSError):
            if path.read_bytes() == data:
                path.unlink()


def holding(home: Path) -> Holder | None:
    """Who holds the lock, None where nobody does; never raises."""
    path = home / FOLDER / NAME
    try:
        data = read_bounded(path, _LIMIT)
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


def is_stale(home: Path, holder: Holder) -> bool:
    """Whether a lock is left from a process that is gone."""
    if holder.ours or holder.pid == os.getpid():
        return True  # acp's own lock is held, so that no other process of acp is at work
    since = holder.since.timestamp() if holder.since else _written(home)
    if holder.pid is None:
        return since is not None and time.time() - since > OLD
    from acp_core.agents.identity import identify  # late: a lock is seldom there

    found = identify(holder.pid)
    if found is None or not found.alive():
        return True
    return since is not None and found.created > since + _CLOCKS


def refusal(home: Path, holder: Holder) -> str:
    """Why nothing can be written now, and what to do, in a line."""
    path = home / FOLDER / NAME
    if holder.pid is None:
        return (
            f"{path} says that the agentxchain program is writing this run but names no process: "
            "try again, or remove the file if no such program runs"
        )
    return (
        f"the agentxchain program (process {holder.pid}) is writing this run ({path}): try again "
        "when it is done"
    )


def _written(home: Path) -> float | None:
    try:
        return (home / FOLDER / NAME).stat().st_mtime
    except OSError:
        return None


def _made(path: Path, data: bytes) -> bool:
    for _ in range(_TRIES):
        try:
            atomic.create(path, data)
        except FileExistsError:
            return False
        except FileNotFoundError:
            modes.shared_folder(path.parent)
            continue
        except OSError as error:
            raise Refused(f"{path}: {error.strerror or error}") from None
        return True
    raise Refused(f"{path} cannot be created: its folder keeps being removed")


def _take_away(path: Path, holder: Holder) -> None:
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
