"""Wanting a shared folder synchronized, for as long as somebody looks at it or a loop runs there.

One process for each account and store does that for all folders that are wanted: one look at the
store serves them all. Who wants a folder holds a lock on a file in the account's state folder, so
that the end of whoever looks, however it ends, is the end of the want.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import threading
from datetime import UTC, datetime
from pathlib import Path

from acp_core.agents import background
from acp_core.files import atomic
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import NotStarted, Refused
from acp_core.person.paths import state_folder
from acp_core.protocols.folder.write import handover, shared
from acp_core.protocols.folder.write.sharing import bring_mirror, is_reader
from acp_core.protocols.processes import SYNC
from acp_core.stores import address as stores_address
from acp_core.stores import base as manifests
from acp_core.stores.address import Address
from acp_core.stores.engine import StoreUnreachable
from acp_core.stores.hosts import open_engine

try:
    import fcntl
except ImportError:  # Windows: nothing can be written there
    fcntl = None  # type: ignore[assignment]

_LONGEST = 8_192  # bytes of a path

_log = logging.getLogger(__name__)

_starting = threading.Lock()


class Wanted:
    """A folder that is wanted synchronized, until `close`.

    Args:
        descriptor: of the file that is held.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        """It is not wanted any more."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def place_of(address: Address) -> Path:
    """The folder in which the process of a store, and what is wanted of it, have their files."""
    name = hashlib.sha256(address._replace(id="").link.encode()).hexdigest()[:32]
    return state_folder() / "sync" / name


def want(folder: str) -> Wanted | None:
    """Have a shared folder synchronized from now on; None where it cannot be.

    A process is started where none does it: in a thread, so that nobody waits for it.
    """
    try:
        address = stores_address.pinned_address(folder)
        descriptor = note(folder, address, hold=True)
    except (Refused, OSError):
        return None
    threading.Thread(target=_start, args=(folder,), name="acp-sync", daemon=True).start()
    return Wanted(descriptor) if descriptor >= 0 else None


def note(folder: str, address: Address, *, hold: bool) -> int:
    """Note a folder for the process of its store.

    Args:
        folder: the shared folder.
        address: where this account shares it.
        hold: want it until the descriptor that is returned is closed; else only as long as loops
            run there.

    Returns:
        A descriptor; -1 where nothing is held.

    Raises:
        OSError: the state folder cannot be written.
    """
    place = place_of(address)
    atomic.private_folder(place)
    real = os.path.realpath(folder)
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:32]
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(place / f"{name}.want", flags, 0o600)
    try:
        if os.pread(descriptor, _LONGEST, 0) != os.fsencode(real):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, os.fsencode(real), 0)
        if hold and fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        os.utime(descriptor)
        os.utime(place)  # it looks at once
    except BaseException:
        os.close(descriptor)
        raise
    if hold and fcntl is not None:
        return descriptor
    os.close(descriptor)
    return -1


def begin(folder: str) -> None:
    """Have what this host conducts brought into its mirror from now on, in the background.

    Raises:
        Refused: it is not this account's to share.
        NotStarted: the process did not start; the message says why.
        OSError: the state folder cannot be written.
    """
    note(folder, stores_address.pinned_address(folder), hold=False)
    with _starting:
        if not handover.is_synced(folder):
            background.start(SYNC.module, (folder,))


def wanted(file: Path) -> tuple[str, bool]:
    """The folder that a file names ("" where it names none), and whether somebody holds it."""
    try:
        folder = os.fsdecode(read_bounded(file, _LONGEST))
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
    except (Unreadable, OSError):
        return "", False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return folder, True
    finally:
        os.close(descriptor)
    return folder, False


def _start(folder: str) -> None:
    with _starting, contextlib.suppress(OSError):  # the first of many folders starts it for all
        if handover.is_synced(folder):
            return
        try:
            background.start(SYNC.module, (folder,))
        except NotStarted as error:
            _log.info("%s is not synchronized: %s", folder, error)


def bring_news(folder: str) -> str:
    """Bring what is new in the store, unless a process does so anyway; "" or a sentence about it.

    Raises:
        Refused: what the store holds cannot be taken, or its address is not this account's.
        OSError: a file could not be written.
    """
    if handover.is_synced(folder):
        return ""
    try:
        with open_engine(stores_address.pinned_address(folder)) as engine:
            if is_reader(folder):
                with manifests.held(folder):
                    bring_mirror(folder, engine)
                return ""
            return "; ".join(shared.sync(folder, engine, publish=False).notes)
    except StoreUnreachable as error:
        return f"as of {_read_at(folder)}; not reached since: {error}"


def _read_at(folder: str) -> str:
    with contextlib.suppress(OSError):
        at = os.stat(os.path.join(folder, manifests.BASE)).st_mtime
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return "an unknown time"
