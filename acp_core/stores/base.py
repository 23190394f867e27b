"""What a shared folder, and this account, know of its store: address, last reading, state at a tip.

``.acp/share.json`` names the store; it binds only as far as this account has pinned the same
address in its own configuration, because agents can write in the folder. ``.acp/base.json`` is the
manifest of what was last read from the store: what differs from it was changed here. What this
account knows of a tip (`TipCache`) lies in its own cache folder, so that an append need not ask
before it publishes, and whoever writes in the folder cannot make a host believe in a lease;
publishing is refused where the store has moved on. Standard library only.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.files import atomic, claims
from acp_core.files.locked import LogError, locked
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person.paths import cache_folder, pin_of, pins_folder
from acp_core.stores import tree as stores_tree
from acp_core.stores.address import Address, BadAddress, parse
from acp_core.stores.engine import Commit, Lease, Tip, decode_lease, encode_lease, lease_file
from acp_core.stores.tree import Tree

SHARE, BASE, LOCK = ".acp/share.json", ".acp/base.json", ".acp/lock"

LEASES = ".acp/leases"

_SHARE_VERSION = 1

_SHARE_SCHEMA, _BASE_SCHEMA = f"acp.share/{_SHARE_VERSION}", "acp.base/1"

_LIMIT = 4 << 20

_LOCK_PATIENCE = 60.0


class BadManifest(Refused):
    """A file of a shared folder about its store cannot be read; the message says what mends it."""


class NewerManifest(Refused):
    """A newer acp has shared the folder; this one leaves it alone."""


class NotPinned(Refused):
    """The folder does not name the store that this account agreed to. Nothing was asked of any."""


class Entry(NamedTuple):
    """A document as the store had it: its digest, its size, and the mode that it has here."""

    sha256: str
    size: int
    mode: int = 0o644


class Base(NamedTuple):
    """What was last read from the store: where it stood, and its documents by path."""

    tip: Tip
    files: Mapping[str, Entry]


def is_shared(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder says that it is shared with other hosts."""
    return os.path.lexists(os.path.join(folder, SHARE))


def digest(data: bytes) -> str:
    """The name of a content."""
    return hashlib.sha256(data).hexdigest()


def pinned_address(folder: str) -> Address:
    """The address of a folder's store, as the folder and this account's configuration say alike.

    Raises:
        NotPinned: this account did not share or join the folder, or at another address.
        NewerManifest: a newer acp wrote share.json.
        BadManifest: share.json cannot be read.
    """
    if not is_shared(folder) and (pinned := agreed_address(folder)):
        raise NotPinned(
            f"{folder} is shared at {clean_line(pinned.text, 300)}, but {SHARE} is gone: another program removed it; "
            f"{_cures(folder, pinned)}"
        )
    there = _address_in(folder)
    pinned = agreed_address(folder)
    if pinned is None:
        raise NotPinned(
            f"{folder} says that it is shared at {clean_line(there.text, 300)}, but this account has not "
            f"joined it: `acp join {clean_line(there.typed, 300)} {folder}`"
        )
    if pinned != there:
        raise NotPinned(
            f"{SHARE} in {folder} names {clean_line(there.text, 300)}, but this account shares it at "
            f"{clean_line(pinned.text, 300)}: another program changed it; acp connected to neither; "
            f"{_cures(folder, pinned)}"
        )
    return pinned


def _cures(folder: str, pinned: Address) -> str:
    verb = "share" if pinned_mark(folder) else "join"
    address = clean_line(pinned.typed, 300)
    again = f"acp join {address} {folder}" if verb == "join" else f"acp share {folder} {address}"
    return f"`{again}` puts it back, `acp unshare {folder}` ends the sharing"


def agreed_address(folder: str) -> Address | None:
    """Where this account has agreed to share a folder, whatever the folder says; None for nowhere.

    Raises:
        BadManifest: the agreement cannot be read.
    """
    pin = pin_of(folder)
    try:
        return parse(str(json.loads(read_bounded(pin, _LIMIT))["address"]))
    except Unreadable as error:
        if not error.missing:
            raise BadManifest(f"{pin}: {error}") from None
        return None
    except (ValueError, TypeError, KeyError, RecursionError, BadAddress) as error:
        raise BadManifest(
            f"{pin} cannot be read ({error}): remove it, and `acp join` again"
        ) from None


def put_back(folder: str, address: Address) -> None:
    """Have the folder name the store again that this account agreed to, where it does not.

    Raises:
        NewerManifest: a newer acp wrote share.json: it is left alone.
        Refused: acp cannot coordinate there.
        OSError: it cannot be written.
    """
    try:
        if _address_in(folder) == address:
            return
    except BadManifest:
        pass
    write_share(folder, address)


def pin(
    folder: str, address: Address, *, only_acp: bool = False, mark: str = "", reads: str = ""
) -> None:
    """Agree to a folder's store, for this account.

    Args:
        folder: the shared folder.
        address: of its store.
        only_acp: nothing else appends there, see `acp_core.stores.tree`.
        mark: of the mirror that this folder fills, see `acp_core.stores.mirror`.
        reads: of the mirror that this folder shows.

    Raises:
        OSError: the configuration cannot be written.
    """
    place = pin_of(folder)
    atomic.private_folder(Path(pins_folder()))
    value: dict[str, Any] = {"folder": os.path.realpath(folder), "address": address.text}
    value |= {"exclusive": only_acp} | ({"mark": mark} if mark else {})
    value |= {"reads": reads} if reads else {}
    atomic.replace(place, json.dumps(value, indent=2).encode() + b"\n", private=True)


def unpin(folder: str) -> None:
    """Take the agreement to a folder's store back."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(pin_of(folder))


def is_exclusive(folder: str) -> bool:
    """Whether this account has chosen that only acp appends in the folder."""
    return _pinned(folder).get("exclusive") is True


def pinned_mark(folder: str) -> str:
    """The mark of the mirror that this account fills from a folder; "" where it fills none."""
    return str(_pinned(folder).get("mark", ""))


def pinned_reads(folder: str) -> str:
    """The mark of the mirror that this account reads in a folder; "" where it reads none."""
    return str(_pinned(folder).get("reads", ""))


def _pinned(folder: str) -> dict[str, Any]:
    try:
        value = json.loads(read_bounded(pin_of(folder), _LIMIT))
    except (Unreadable, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def pins_changed() -> int:
    """When this account last agreed to a store, or took that back; 0 where it never did."""
    try:
        return os.stat(pins_folder()).st_mtime_ns
    except OSError:
        return 0


def pinned_folders() -> dict[str, Address]:
    """Every folder that this account has shared or joined, with its store, as it agreed to it.

    A folder may be gone, or name another store by now: `pinned_address` tells.
    """
    found: dict[str, Address] = {}
    place = pins_folder()
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(place)):
            with contextlib.suppress(
                Unreadable, ValueError, TypeError, KeyError, RecursionError, BadAddress
            ):
                value = json.loads(read_bounded(os.path.join(place, name), _LIMIT))
                found[str(value["folder"])] = parse(str(value["address"]))
    return found


def write_share(folder: str, address: Address) -> None:
    """Say in the folder where it is shared; ``.acp/.gitignore`` comes first.

    Raises:
        Refused: acp cannot coordinate there.
        OSError: it cannot be written.
    """
    claims.prepare(folder)
    value = {
        "schema": _SHARE_SCHEMA,
        "url": address.text,
        "id": address.id,
        "engine": address.engine,
    }
    atomic.replace(os.path.join(folder, SHARE), json.dumps(value, indent=2).encode() + b"\n")


def read_base(folder: str) -> Base | None:
    """The manifest; None where nothing was read yet, or it is of no use (then all is read anew)."""
    try:
        value: Any = json.loads(read_bounded(os.path.join(folder, BASE), _LIMIT))
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
                lease = decode_lease(read_bounded(os.path.join(folder, LEASES, name), _LIMIT))
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


def _address_in(folder: str) -> Address:
    place = os.path.join(folder, SHARE)
    try:
        value = json.loads(read_bounded(place, _LIMIT))
        if newer := newer_share(value):
            raise NewerManifest(f"{place}: {newer}")
        return parse(str(value["url"]))
    except (Unreadable, ValueError, TypeError, KeyError, RecursionError, BadAddress) as error:
        raise BadManifest(
            f"{place} cannot be read ({clean_line(str(error), 200)}): `acp join` the folder again"
        ) from None


def newer_share(value: Any) -> str:
    """Why share.json, as it was decoded, is not for this acp, where a newer one wrote it; else ""."""
    schema = str(value.get("schema", "")) if isinstance(value, dict) else ""
    kind, _, version = schema.partition("/")
    if kind != "acp.share" or not version.isdecimal() or int(version[:9]) <= _SHARE_VERSION:
        return ""
    return (
        f"the folder was shared by a newer acp (format {int(version[:9])}, this one knows {_SHARE_VERSION}): "
        "update acp on this machine"
    )


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
