"""A read-only mirror, in a store, of a collaboration that one host conducts.

What the store keeps as protocol.json is the mirror's manifest: whose it is, and the files by their
names, each as a list of pieces. A piece is a document of the store, named by its digest: a file that
grows sends what was added. The store's log has one line, for ever; ``number`` grows with every change.
Names come from a stranger: they are judged before anything is written. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from acp_core.files.read_only import FILE, NEWER, PLACE
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.text import clean_line
from acp_core.stores import tree as stores_tree
from acp_core.stores.engine import MAX_BYTES, MAX_FILE, MAX_FILES, SharingError, StoreRefused
from acp_core.stores.tree import Tree

SCHEMA = "acp.mirror/1"
KINDS = frozenset({"workspaces", "cycle", "governed"})
"""The protocols of which there are mirrors."""
DOTTED = frozenset({".agentxchain", ".planning", ".coordinator", ".workflow", ".cycle", ".coord"})
"""Folders of these protocols whose names begin with a dot."""
LARGEST = 2 << 20  # bytes of a manifest
PIECE = 1 << 20  # bytes of a piece
_SMALL = 4 << 10
_PIECES = "pieces/"
_ABOVE = ("1", "2", "3", "4")  # folders above the collaboration: parts may lie beside it
_MARK = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LONGEST = 300
_MATTERS = {"governed": (".json", ".md")}  # gates ask for documents
_LAST = 1 << 62
_MOST_ACTS = 100


class Piece(NamedTuple):
    """A part of a file: the digest of its bytes, and how many there are."""

    sha256: str
    size: int


class File(NamedTuple):
    """A file of the collaboration.

    ``name`` is its path relative to the collaboration's folder, with "/"; it may begin with "..".
    ``written`` is when it was changed, in nanoseconds since 1970, by the clock of who conducts.
    """

    name: str
    written: int
    sha256: str
    size: int
    pieces: tuple[Piece, ...]


class Manifest(NamedTuple):
    """What a mirror holds, and whose it is.

    Attributes:
        mark: made up when the mirror was begun: names it for good.
        number: grows by one with every change.
        protocol: the collaboration's.
        name: of its folder.
        host, account: who conducts it, and fills the mirror.
        at: when it was changed, by the clock of that host.
        files: by name, in order.
        standing: what lists of many collaborations tell.
        acts: what the host can be asked for, as whoever shows it describes it.
    """

    mark: str
    number: int
    protocol: str
    name: str
    host: str
    account: str
    at: str
    files: tuple[File, ...] = ()
    standing: Mapping[str, Any] = {}
    acts: tuple[Mapping[str, Any], ...] = ()

    def file(self, name: str) -> File | None:
        """The file of this name."""
        return next((each for each in self.files if each.name == name), None)


class PiecesMissing(SharingError):
    """A piece of a file is neither in what was read nor here: read everything."""


def encode(manifest: Manifest) -> bytes:
    """The manifest as a store keeps it."""
    files = [
        [e.name, e.written, e.sha256, e.size, [[p.sha256, p.size] for p in e.pieces]]
        for e in manifest.files
    ]
    value = {"schema": SCHEMA, **manifest._asdict(), "files": files}
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def is_manifest(data: bytes) -> bool:
    """Whether a store's protocol.json is a mirror's manifest, good or bad."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and str(value.get("schema", "")).startswith("acp.mirror/")


def decode(data: bytes) -> Manifest:
    """The manifest that a stranger may have written, once everything in it is judged.

    Raises:
        StoreRefused: it is none, or names what no folder should be made of.
    """
    if len(data) > LARGEST:
        raise StoreRefused("the mirror's manifest is too large: refused")
    try:
        value = json.loads(data)
        if value["schema"] != SCHEMA:
            raise StoreRefused(f"the mirror was {NEWER}")
        made = Manifest(
            _matching(_MARK, value["mark"]), _whole(value["number"]), _text(value["protocol"]),
            _text(value["name"]), _text(value["host"]), _text(value["account"]), _text(value["at"]),
            tuple(_file(each) for each in value["files"][: MAX_FILES + 1]), dict(value["standing"]),
            tuple(dict(each) for each in value["acts"][:_MOST_ACTS]),
        )  # fmt: skip
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise StoreRefused(f"the mirror's manifest cannot be read ({error}): refused") from None
    if made.protocol not in KINDS:
        raise StoreRefused(f"acp does not mirror {clean_line(made.protocol, 80)}: refused")
    if sum(each.size for each in made.files) > MAX_BYTES:
        raise StoreRefused(f"the mirror holds more than {MAX_BYTES >> 20} MiB: refused")
    stores_tree.check([place(made, each.name) for each in made.files], DOTTED)
    return made


def reason_against(name: str) -> str:
    """Why a file of this name is not in a mirror; "" where it may be."""
    try:
        return stores_tree.against(_below(name, "name"), DOTTED)
    except StoreRefused:
        return "it leads elsewhere"


def place(manifest: Manifest, name: str) -> str:
    """Where a file lies below `PLACE`; "" as the name stands for the collaboration's folder.

    Raises:
        StoreRefused: the name leads out.
    """
    if stores_tree.against(manifest.name) or "/" in manifest.name:
        raise StoreRefused(f"the mirror is of {clean_line(manifest.name, 200)}: refused (its name)")
    return _below(name, manifest.name)


def lies(manifest: Manifest, name: str) -> str:
    """Where a file lies below a reader's folder."""
    return f"{PLACE}/{place(manifest, name)}"


def _below(name: str, folder: str) -> str:
    parts = name.split("/") if name else []
    up = 0
    while up < len(parts) and parts[up] == "..":
        up += 1
    if up > len(_ABOVE):
        raise StoreRefused(
            f"the mirror holds {clean_line(name, 200)}: refused (it leads elsewhere)"
        )
    above = (*_ABOVE, folder)
    return "/".join([*above[: len(above) - up], *parts[up:]])


def matter(manifest: Manifest) -> str:
    """The digest of what a decision is about: it changes with any file that says how things stand."""
    kinds = _MATTERS.get(manifest.protocol, (".json",))
    told = sorted((e.name, e.sha256) for e in manifest.files if e.name.endswith(kinds))
    return hashlib.sha256(json.dumps([manifest.mark, told]).encode()).hexdigest()


def line(mark: str) -> bytes:
    """The one line of a mirror's log."""
    return json.dumps({"seq": 1, "event": "mirrored", "mark": mark}).encode() + b"\n"


def file_of(name: str, written: int, data: bytes, before: File | None) -> File:
    """A file in pieces: those of before, where it only grew, and what was added.

    Small pieces at the end are joined, so that there are never many.
    """
    kept: list[Piece] = []
    at = 0
    if before is not None and digest(data[: before.size]) == before.sha256:
        kept, at = list(before.pieces), before.size
    while kept and at < len(data) and (joined := len(data) - at + kept[-1].size) <= PIECE:
        if kept[-1].size > max(_SMALL, 2 * (joined - kept[-1].size)):
            break
        at -= kept.pop().size
    kept += [_piece(data[i : i + PIECE]) for i in range(at, len(data), PIECE)]
    return File(name, written, digest(data), len(data), tuple(kept))


def documents(
    files: Iterable[tuple[File, bytes]], before: Manifest | None
) -> dict[str, bytes | None]:
    """What a store must take and let go of, so that it has the pieces of these files and no others."""
    had = {piece.sha256 for each in (before.files if before else ()) for piece in each.pieces}
    wanted: set[str] = set()
    found: dict[str, bytes | None] = {}
    for file, data in files:
        at = 0
        for piece in file.pieces:
            wanted.add(piece.sha256)
            if piece.sha256 not in had:
                found[_PIECES + piece.sha256] = data[at : at + piece.size]
            at += piece.size
    return found | {_PIECES + each: None for each in had - wanted}


def restore(
    folder: str, manifest: Manifest, before: Manifest | None, came: Mapping[str, bytes | None]
) -> list[str]:
    """Make the files below `PLACE` what a manifest names; the names of those that changed.

    Args:
        folder: the reader's.
        manifest: as `decode` gave it.
        before: what stands there.
        came: the documents of the store that changed since.

    Raises:
        PiecesMissing: something is missing; some files may have been written.
        StoreRefused: a piece is not what its name says.
        OSError: a file could not be written.
    """
    tree = Tree(folder)  # which follows no link, not that of `.acp` either
    here = _Here(tree, before)
    changed = []
    for file in manifest.files:
        path = lies(manifest, file.name)
        data = tree.read(path)
        if data is not None and len(data) == file.size and digest(data) == file.sha256:
            continue
        made = b"".join(_bytes_of(piece, came, here) for piece in file.pieces)
        if digest(made) != file.sha256:
            raise StoreRefused(f"{clean_line(file.name, 200)} of the mirror is damaged: refused")
        tree.replace(path, made, sync=False, written=file.written)
        changed.append(file.name)
    now = {lies(manifest, each.name) for each in manifest.files}
    if before is not None:
        for each in before.files:
            if (path := lies(before, each.name)) not in now:
                tree.remove(path)
                changed.append(each.name)
    return changed


class _Here:
    """The pieces of the files that stand here, each as long as it is still what it was."""

    def __init__(self, tree: Tree, before: Manifest | None) -> None:
        self._tree = tree
        self._before = before
        self._at: dict[str, tuple[str, int]] | None = None

    def get(self, piece: Piece) -> bytes | None:
        """Its bytes; None where they are not here."""
        if self._at is None:
            self._at = {}
            for file in self._before.files if self._before else ():
                at = 0
                for each in file.pieces:
                    self._at[each.sha256] = (file.name, at)
                    at += each.size
        if self._before is None or piece.sha256 not in self._at:
            return None
        name, at = self._at[piece.sha256]
        return (self._tree.read(lies(self._before, name)) or b"")[at : at + piece.size]


def _bytes_of(piece: Piece, came: Mapping[str, bytes | None], here: _Here) -> bytes:
    data = came.get(_PIECES + piece.sha256)
    found = data if data is not None else here.get(piece)
    if found is not None and digest(found) == piece.sha256:
        return found
    if data is not None:
        raise StoreRefused("a piece of the mirror is not what its name says: refused")
    raise PiecesMissing("a piece of the mirror is missing")


def read(folder: str | os.PathLike[str]) -> Manifest | None:
    """The manifest in a reader's folder; None where none can be read: then all is read anew."""
    try:
        return decode(read_bounded(os.path.join(folder, FILE), LARGEST))
    except (Unreadable, StoreRefused):
        return None


def digest(data: bytes) -> str:
    """The name of a content."""
    return hashlib.sha256(data).hexdigest()


def _piece(data: bytes) -> Piece:
    return Piece(digest(data), len(data))


def _file(value: Sequence[Any]) -> File:
    name, written, sha256, size, pieces = value
    made = tuple(
        Piece(_matching(_DIGEST, sha), _whole(length)) for sha, length in pieces[: MAX_FILES + 1]
    )
    if sum(each.size for each in made) != _whole(size) or size > MAX_FILE:
        raise ValueError(f"the size of {clean_line(str(name), 200)}")
    if not isinstance(name, str) or name.rpartition("/")[2] in ("", ".."):
        raise ValueError("a name")
    return File(name, _whole(written), _matching(_DIGEST, sha256), size, made)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise ValueError("a text")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _LAST:
        raise ValueError("a number")
    return value


def _matching(form: re.Pattern[str], value: Any) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise ValueError("a digest")
    return value
