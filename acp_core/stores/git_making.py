"""Commits made here, without running git: the objects of a change, written loose into our own store.

To add a commit, git's own programs take as long as a third of the push. What a tree holds is noted
whenever it was read or made; where that is not known, the caller has git make the commit. Our store
is a cache: nothing of it need survive a power failure. Standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

FILE, PROGRAM = "100644", "100755"
_FOLDER = "40000"
_NOTES = "acp-trees"  # in the object store: gone when that is thrown away
_LIMIT = 4 << 20

Listing = dict[str, tuple[str, str]]
"""The files of a whole tree by path: mode and id."""


def note(store: Path, id: str, commit: str, listing: Listing) -> None:
    """Note what the tree of a collaboration's commit holds; without a place for that, nothing is noted."""
    value = {"commit": commit, "files": {path: [*each] for path, each in listing.items()}}
    with contextlib.suppress(OSError):
        place = store / _NOTES
        place.mkdir(exist_ok=True)
        _put(place / f"{id}.json", json.dumps(value).encode())


def noted(store: Path, id: str, commit: str) -> Listing | None:
    """What a commit's tree holds; None where that is not known."""
    try:
        with open(store / _NOTES / f"{id}.json", "rb") as file:
            value = json.loads(file.read(_LIMIT))
        if value["commit"] != commit or len(commit) != 40:
            return None
        return {path: (mode, blob) for path, (mode, blob) in value["files"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def commit(
    store: Path,
    parent: str,
    before: Listing,
    files: Mapping[str, bytes | None],
    who: str,
    message: bytes,
) -> tuple[str, Listing]:
    """Write a commit; its id, and what its tree holds.

    Args:
        store: the bare repository.
        parent: the commit before it; "" where it is the first.
        before: what the tree of that holds.
        files: what changes: the new bytes by path, or None for a file that is removed.
        who: author and committer, with an address.
        message: of the commit.

    Raises:
        OSError: an object could not be written.
    """
    after = dict(before)
    for path, data in files.items():
        if data is None:
            after.pop(path, None)
        else:
            after[path] = (after.get(path, (FILE, ""))[0], _write(store, "blob", data))
    old = {id for id, _ in _trees(before)}
    root = ""
    for root, data in _trees(after):  # the last one is the root
        if root not in old:
            _write(store, "tree", data)
    stamp = f"{who} {int(time.time())} +0000"
    head = [
        f"tree {root}",
        *([f"parent {parent}"] if parent else []),
        f"author {stamp}",
        f"committer {stamp}",
    ]
    return _write(store, "commit", "\n".join(head).encode() + b"\n\n" + message), after


def set_ref(store: Path, name: str, commit: str) -> None:
    """Have a ref of our store name a commit.

    Raises:
        OSError: it could not be written.
    """
    path = store / name
    path.parent.mkdir(parents=True, exist_ok=True)
    _put(path, f"{commit}\n".encode())


def _trees(listing: Listing) -> Iterator[tuple[str, bytes]]:
    """The trees of a listing, each after those below it: id and content."""
    below: dict[str, dict[str, tuple[str, str]]] = {"": {}}
    for path, entry in listing.items():
        folder, _, name = path.rpartition("/")
        below.setdefault(folder, {})[name] = entry
        while folder:
            folder = folder.rpartition("/")[0]
            below.setdefault(folder, {})
    for folder in sorted(below, key=lambda each: (-each.count("/") - bool(each), each)):
        data = _tree(below[folder])
        id = _id("tree", data)
        yield id, data
        if folder:
            above, _, name = folder.rpartition("/")
            below[above][name] = (_FOLDER, id)


def _tree(entries: Mapping[str, tuple[str, str]]) -> bytes:
    """A tree as git stores it: in the order of names, a folder's with a slash at its end."""
    named = [
        (name.encode("utf-8", "surrogateescape"), mode, id) for name, (mode, id) in entries.items()
    ]
    named.sort(key=lambda each: each[0] + b"/" if each[1] == _FOLDER else each[0])
    return b"".join(
        mode.encode() + b" " + name + b"\0" + bytes.fromhex(id) for name, mode, id in named
    )


def _id(kind: str, data: bytes) -> str:
    """The name of an object."""
    return hashlib.sha1(
        b"%s %d\0" % (kind.encode(), len(data)) + data, usedforsecurity=False
    ).hexdigest()


def _write(store: Path, kind: str, data: bytes) -> str:
    """Write an object, unless it is there; its id."""
    id = _id(kind, data)
    path = store / "objects" / id[:2] / id[2:]
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        packed = zlib.compress(b"%s %d\0" % (kind.encode(), len(data)) + data, 1)
        _put(path, packed)
    return id


def _put(path: Path, data: bytes) -> None:
    """Write a file whole; the caller holds the store, so that nobody else does."""
    made = path.with_name(f"{path.name}.new")
    made.write_bytes(data)
    os.replace(made, path)
