"""Settling what was changed here and on another host: documents, and events that a script appended.

Nothing is deleted: what gave way stays in ``.acp/kept``, marked as settled. Standard library only.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person import settings
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.schema import Entry
from acp_core.protocols.folder.write import shared
from acp_core.protocols.folder.write.append import Request
from acp_core.stores import base as manifests
from acp_core.stores import tree as stores_tree
from acp_core.stores.base import digest
from acp_core.stores.engine import REFUSED, REWRITTEN, UNREACHABLE
from acp_core.stores.tree import SETTLED, Tree

_MARKS = (b"<<<<<<< ", b">>>>>>> ")

_FALLBACKS = ("nano", "vim", "vi")


def _nothing() -> None:
    pass


def settle(folder: str, name: str, *, mine: bool) -> str:
    """Settle a document that was changed on both sides; a sentence on it.

    Args:
        folder: the shared folder.
        name: the document.
        mine: take the local text that gave way; else the store's, which stands there.

    Raises:
        Refused: nothing was kept of it.
        OSError: it cannot be written.
    """
    tree = Tree(folder)
    kept = _kept_names(tree, name)
    if mine and name in (schema.LOG_FILE, schema.PROTOCOL_FILE):
        raise Refused(
            f"{name} is always the store's; `acp sync --again` appends the events again that are still allowed"
        )
    with manifests.held(folder):
        data = tree.read(kept[-1])
        if mine and data is not None:
            tree.replace(name, data)
        _mark(folder, kept)
    return (
        f"{name} is yours again; it is published with the next event"
        if mine
        else f"{name} stays as the store has it"
    )


def _kept_names(tree: Tree, name: str) -> list[str]:
    """What is kept of a document.

    Raises:
        Refused: nothing is, or the name is none.
    """
    if reason := stores_tree.against(name):
        raise Refused(f"{clean_line(name, 200)} is not shared: {reason}")
    kept = tree.kept_copies(name)
    if not kept:
        raise Refused(f"acp kept no copy of {clean_line(name, 200)}")
    return kept


def _mark(folder: str, kept: list[str]) -> None:
    for each in kept:
        os.rename(os.path.join(folder, each), os.path.join(folder, f"{each}{SETTLED}"))


def merge(folder: str, name: str) -> str:
    """Have a person merge a document that was changed on both sides, in an editor; a sentence on it.

    The editor opens four files: the document, to be edited (merged as far as git can), then the
    local text, the one before both changes, and the store's.

    Raises:
        Refused: nothing was kept of it, there is no editor, or the person did not finish.
        OSError: it cannot be written.
    """
    tree = Tree(folder)
    kept = _kept_names(tree, name)
    if name in (schema.LOG_FILE, schema.PROTOCOL_FILE):
        raise Refused(f"{name} cannot be merged: it is always the store's")
    command = _editor()
    theirs = tree.read(name) or b""
    texts = {
        "yours": tree.read(kept[-1]) or b"",
        "before": tree.read(tree.before(kept[-1])) or b"",
        "store": theirs,
    }
    place = tempfile.mkdtemp(prefix="acp-merge-")
    paths = {each: os.path.join(place, f"{each}.md") for each in texts}
    for each, data in texts.items():
        _write(paths[each], data)
    draft = os.path.join(place, f"merged-{os.path.basename(name)}")
    _write(draft, _draft(paths, texts))
    ended = subprocess.run([*command, draft, *paths.values()], check=False).returncode
    with open(draft, "rb") as file:
        merged = file.read()
    if ended:
        raise Refused(f"{command[0]} ended with {ended}: nothing was changed; the draft is {draft}")
    if any(line.startswith(_MARKS) for line in merged.splitlines()):
        raise Refused(f"the draft still has conflict marks: nothing was changed; it is {draft}")
    with manifests.held(folder):
        if (tree.read(name) or b"") != theirs:
            raise Refused(
                f"{name} has changed meanwhile: nothing was changed; the draft is {draft}"
            )
        tree.replace(name, merged)
        _mark(folder, kept)
    shutil.rmtree(place, ignore_errors=True)
    return f"{name} is merged; it is published with the next event"


def _write(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)


def _draft(paths: Mapping[str, str], texts: Mapping[str, bytes]) -> bytes:
    """Both changes in one text, with marks where they touch; the store's text where git cannot."""
    labels = [word for each in paths for word in ("-L", each)]
    command = ["git", "merge-file", "-p", *labels, *paths.values()]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        done = subprocess.run(command, capture_output=True, check=False, env=kept, cwd="/")
    except OSError:
        return texts["store"]
    return done.stdout if done.returncode < 128 else texts["store"]


def _editor() -> list[str]:
    """The person's editor.

    Raises:
        Refused: none is named, and none of the usual ones is there.
    """
    try:
        named = settings.load().editor
    except settings.SettingsError as error:
        raise Refused(str(error)) from None
    for text in (named, os.environ.get("VISUAL"), os.environ.get("EDITOR")):
        if text and text.strip():
            try:
                return shlex.split(text)
            except ValueError as error:
                raise Refused(f"the editor's command cannot be read: {error}") from None
    for name in _FALLBACKS:
        if path := shutil.which(name):
            return [path]
    raise Refused("no editor: set VISUAL or EDITOR, or editor in config.toml")


class Again(NamedTuple):
    """What came of events that were appended again: a sentence each, and whether one was refused."""

    lines: tuple[str, ...]
    refused: bool


def again(folder: str) -> Again:
    """Append the events again that a script appended here without acp, and that gave way.

    Each gets a new seq and time; what it replied to stays, unless that gave way, too. Each has a
    key, so that the same call again repeats none.

    Raises:
        Refused: nothing is kept, or the store cannot be reached.
    """
    tree = Tree(folder)
    kept = tree.kept_copies(schema.LOG_FILE)
    if not kept:
        raise Refused("no events were moved away here")
    lines: list[str] = []
    refused = False
    for each in kept:
        data = tree.read(each) or b""
        found = _append_all(folder, data if data.endswith(b"\n") else data + b"\n")
        lines += found.lines
        refused |= found.refused
        if not found.refused:
            _mark(folder, [each])
    return Again(tuple(lines), refused)


def _append_all(folder: str, data: bytes) -> Again:
    lines: list[str] = []
    refused = False
    numbers: dict[int, int | None] = {}
    for raw in data.splitlines():
        entry = schema.parse_line(raw, len(lines) + 1)
        if not isinstance(entry, Entry):
            if entry is not None:
                lines.append("not appended: a line is not an event")
                refused = True
            continue
        said = clean_line(f"seq {entry.name} {entry.event} from {entry.sender}", 300)
        seq: int | None = None
        try:
            seq = _append(folder, entry, digest(raw), numbers)
            lines.append(f"{said}: appended as seq {seq}")
        except Refused as error:
            if error.code in (UNREACHABLE, REFUSED, REWRITTEN):
                raise
            refused = True
            lines.append(f"{said}: {clean_line(str(error), 500)}")
        if entry.seq is not None:
            numbers[entry.seq] = seq
    return Again(tuple(lines), refused)


def _append(folder: str, entry: Entry, name: str, numbers: Mapping[int, int | None]) -> int | None:
    """Append one event again; its new seq."""
    reply_to = entry.reply_to
    if reply_to is not None and reply_to in numbers:
        reply_to = numbers[reply_to]
        if reply_to is None:
            raise Refused("not appended: it replies to an event that was not appended")
    request = Request(
        folder,
        entry.sender,
        entry.event,
        entry.summary or "",
        doc=entry.doc,
        reply_to=reply_to,
        role=entry.role,
        sha256=entry.sha256,
        key=entry.key or f"again-{name[:24]}",
    )
    done = shared.append(request, now=_now, before_write=_nothing)
    return done.entry.seq


def _now() -> datetime:
    return datetime.now(UTC)
