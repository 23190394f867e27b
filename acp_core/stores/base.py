"""What a shared folder, and this account, know of its store: last reading, leases, state at a tip.

``.acp/base.json`` is the manifest of what was last read from the store: what differs from it was
changed here. What this account knows of a tip (`TipCache`) lies in its own cache folder, so that an
append need not ask before it publishes, and whoever writes in the folder cannot make a host believe in
a lease; publishing is refused where the store has moved on. Standard library only.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from acp_core.files import atomic, claims
from acp_core.files.locked import LogError, locked
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.person.paths import cache_folder
from acp_core.stores import tree as stores_tree
from acp_core.stores.address import (
    LIMIT,
    Address,
    is_exclusive,
)
from acp_core.stores.engine import Commit, Lease, Tip, decode_lease, encode_lease, lease_file
from acp_core.stores.tree import Tree

LEASES = ".acp/leases"
_BASE_SCHEMA = "acp.base/1"
_LOCK_PATIENCE = 60.0


class Entry(NamedTuple):
    """A document as the store had it: its digest, its size, and the mode that it has here."""

    sha256: str
    size: int
    mode: int = 0o644


class Base(NamedTuple):
    """What was last read from the store: where it stood, and its documents by path."""

    tip: Tip
    files: Mapping[str, Entry]


def digest(data: bytes) -> str:
    """The name of a content."""
    return hashlib.sha256(data).hexdigest()


def read_base(folder: str) -> Base | None:
    """The manifest; None where nothing was read yet, or it is of no use (then all is read anew)."""
    try:
        value: Any = json.loads(read_bounded(os.path.join(folder, BASE), LIMIT))
        tip = Tip(*(value["tip"][name] for name in Tip._fields))
        files = {
            str(path): Entry(str(each["sha256"]), int(each["size"]), int(each["mode"]))
            for path, each in value["files"].items()
        }
    except (Unreadable, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    right = [isinstance(tip.id, str), isinstance(tip.sha256, str)]
    right += [isinstance(each, int) and each >= 0 for each in (tip.seq, tip.size)]
    return Base(tip, files) if all(right) else None


def write_base(folder: str, base: Base) -> None:
    """Replace the manifest.

    Raises:
        OSError: it cannot be written.
    """
    files = {path: each._asdict() for path, each in sorted(base.files.items())}
    value = {"schema": _BASE_SCHEMA, "tip": base.tip._asdict(), "files": files}
    data = json.dumps(value, indent=1).encode() + b"\n"
    atomic.replace(os.path.join(folder, BASE), data, sync=False)  # else it is read anew


def read_leases(folder: str) -> dict[str, Lease]:
    """Who acts where, as the store said when it was read last: for people and programs here to see."""
    found = {}
    with contextlib.suppress(OSError):
        for name in os.listdir(os.path.join(folder, LEASES)):
            with contextlib.suppress(Unreadable):
                lease = decode_lease(read_bounded(os.path.join(folder, LEASES, name), LIMIT))
                if lease is not None:
                    found[lease.participant] = lease
    return found


def write_leases(folder: str, leases: Mapping[str, Lease]) -> None:
    """Make the leases in the folder what the store holds.

    Raises:
        OSError: one could not be written.
    """
    before = read_leases(folder)
    if before == dict(leases):
        return
    tree = Tree(folder)
    for participant, lease in leases.items():
        if before.get(participant) != lease:
            path = f"{LEASES}/{lease_file(participant)}"
            tree.replace(path, encode_lease(lease), sync=False)  # the store has it
    for participant in before.keys() - leases.keys():
        tree.remove(f"{LEASES}/{lease_file(participant)}")


@contextlib.contextmanager
def held(folder: str, *, timeout: float = _LOCK_PATIENCE) -> Iterator[None]:
    """Hold a shared folder: no other process here reads from its store into it, or publishes.

    Raises:
        Refused: another process has held it for too long, or it cannot be locked.
    """
    path = os.path.join(folder, LOCK)
    try:
        _prepare(folder)
        if not os.path.lexists(path):
            with contextlib.suppress(FileExistsError):
                atomic.create(path, b"")
        with locked(path, timeout=timeout):
            if not is_exclusive(folder):
                yield
                return
            with stores_tree.writable(folder):
                yield
    except LogError as error:
        raise Refused(str(error)) from None


def _prepare(folder: str) -> None:
    """Make ``.acp`` and what is to be in it."""
    try:
        claims.prepare(folder)
    except claims.ClaimError as error:
        raise Refused(str(error)) from None


_LARGEST_CACHE = 16 << 20


class TipCache:
    """What is known of one collaboration."""

    def __init__(self, address: Address) -> None:
        name = hashlib.sha256(address.text.encode()).hexdigest()[:32]
        self._path = cache_folder() / "known" / f"{name}.json"

    def at(self, tip: Tip) -> Commit | None:
        """What stands at a tip beside log and documents; None where that is not known."""
        try:
            value: Any = json.loads(read_bounded(self._path, _LARGEST_CACHE))
            if value["tip"] != tip._asdict():
                return None
            leases = [decode_lease(each.encode()) for each in value["leases"]]
            protocol = base64.b64decode(value["protocol"])
        except (Unreadable, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        return Commit(tip, b"", protocol, {}, {each.participant: each for each in leases if each})

    def keep(self, tip: Tip, protocol: bytes, leases: Mapping[str, Lease]) -> None:
        """Keep it for the next call; without a cache folder nothing is kept."""
        value = {
            "tip": tip._asdict(),
            "protocol": base64.b64encode(protocol).decode(),
            "leases": [encode_lease(each).decode() for each in leases.values()],
        }
        with contextlib.suppress(OSError):
            atomic.private_folder(self._path.parent)
            atomic.replace(self._path, json.dumps(value).encode(), sync=False, private=True)


BASE = ".acp/base.json"
LOCK = ".acp/lock"
