"""A document that changes together with an event: written before it, taken back if it fails.

Standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from acp_core.files import atomic
from acp_core.files.atomic import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.person.paths import state_folder
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import Entry, path_of
from acp_core.protocols.folder.write.opened import Opened

_APPEND = (
    os.O_WRONLY
    | os.O_APPEND
    | os.O_CREAT
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
)


class Edit(NamedTuple):
    """What a document is and what it becomes; ``name`` is the document as people know it."""

    name: str
    path: str
    before: bytes
    after: bytes

    def apply(self) -> None:
        """Write it. Where text is only added, it is appended: other writers lose nothing.

        Raises:
            Refused: the file changed since it was read.
            OSError: it could not be written (what was written of it is removed again).
        """
        if self.after == self.before:
            return
        if content(self.name, self.path) != self.before:
            raise Refused(f"{self.name} changed in the meantime; try again")
        if not self.after.startswith(self.before):
            atomic.replace(self.path, self.after)
            return
        fd = os.open(self.path, _APPEND, 0o666)
        try:
            atomic.write_all(fd, self.after[len(self.before) :])
            atomic.sync_fd(fd)
        except OSError:
            self._cut_back(fd)
            raise
        finally:
            with contextlib.suppress(OSError):
                os.close(fd)

    def undo(self) -> None:
        """Take it back, unless somebody has changed the file in between."""
        with contextlib.suppress(OSError, Refused):
            if self.after == self.before or content(self.name, self.path) != self.after:
                return
            if self.after.startswith(self.before):
                fd = os.open(self.path, _APPEND)
                try:
                    os.ftruncate(fd, len(self.before))
                finally:
                    os.close(fd)
            else:
                atomic.replace(self.path, self.before)

    def _cut_back(self, fd: int) -> None:
        with contextlib.suppress(OSError, Refused):
            if self.after.startswith(content(self.name, self.path)):
                os.ftruncate(fd, len(self.before))


def content(name: str, path: str) -> bytes:
    """A document's bytes, b"" where it is missing.

    Raises:
        Refused: it cannot be read.
    """
    try:
        return read_bounded(path, records.MAX_DOCUMENT)
    except Unreadable as error:
        if error.missing:
            return b""
        raise Refused(f"{name}: {error}") from None


REVIEW = "review.md"

_TORN_TIME = re.compile(rb"## [0-9]?[0-9T:-]{0,19}")


class Block(NamedTuple):
    """A review in review.md: from ``start`` (its heading) to ``end``, in bytes."""

    start: int
    end: int
    when: str
    participant: str
    seq: int


def heading(at: str, participant: str, seq: int) -> str:
    """The heading of a review."""
    return f"## {at} - {participant} - seq {seq}"


def plan(opened: Opened, entry: Entry, text: str) -> Edit:
    """What review.md becomes with ``text`` as the review of the event ``entry``.

    Raises:
        Refused: the text cannot be a review, or the heading stands there with another text.
    """
    seq = entry.seq or 0
    body = _body(text, entry.sender)
    path = path_of(opened.folder, REVIEW)
    before = content(REVIEW, path)
    line = heading(entry.at, entry.sender, seq)
    try:
        block = _block(line, body)
    except UnicodeEncodeError:
        raise Refused("the review is not UTF-8 text") from None
    kept = before
    written = opened.machine.reviews.items()  # where nothing is broken, each seq is one event's
    reviews = {seq for seq, author in written if author == entry.sender}
    for found in reversed(list(blocks(before))):
        if found.participant != entry.sender or found.seq in reviews:
            continue
        there = before[found.start : found.end]
        whole = _block(heading(found.when, entry.sender, found.seq), body)
        ours = whole.startswith(there) or there.rstrip() == whole.rstrip()
        if ours and found.seq == seq:  # a run that was killed got this far
            rest = whole[len(there) :] if whole.startswith(there) else b""
            after = before[: found.end] + rest + before[found.end :]
            return _checked(Edit(REVIEW, path, before, after))
        if ours:  # that run lost its seq to somebody else's event
            kept = kept[: found.start] + kept[found.end :]
        elif found.seq == seq:
            raise Refused(
                f"{REVIEW} already has a heading for seq {seq} by {entry.sender}, with another "
                "text: remove it, or append the event without a review text"
            )
    kept = _without_torn_heading(kept, entry.sender)
    gap = b"" if not kept or kept.endswith(b"\n\n") else b"\n" if kept.endswith(b"\n") else b"\n\n"
    return _checked(Edit(REVIEW, path, before, kept + gap + block))


def blocks(data: bytes) -> Iterator[Block]:
    """The reviews in review.md, in order; linear in its size."""
    last: Block | None = None
    start = 0
    for raw in data.split(b"\n"):
        found = parse_heading(raw.decode(errors="replace")) if raw.startswith(b"## ") else None
        if found:
            if last:
                yield last._replace(end=start)
            last = Block(start, len(data), *found)
        start += len(raw) + 1
    if last:
        yield last


def parse_heading(line: str) -> tuple[str, str, int] | None:
    """Time, participant and seq of a review's heading; None for any other line."""
    head, separator, number = line.rstrip().rpartition(" - seq ")
    when, dash, who = head.removeprefix("## ").partition(" - ")
    digits = number.isascii() and number.isdigit() and len(number) <= 15
    if not (line.startswith("## ") and separator and dash and who and digits):
        return None
    return when, who, int(number)


def _body(text: str, participant: str) -> str:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").strip().split("\n")
    own = parse_heading(lines[0])
    if own and own[1] == participant:
        del lines[0]
    for number, line in enumerate(lines, 1):
        if parse_heading(line):
            raise Refused(f"line {number} of the review reads as the heading of a review")
    body = "\n".join(lines).strip()
    if not body:
        raise Refused("the review is empty")
    return body


def _block(line: str, body: str) -> bytes:
    return f"{line}\n\n{body}\n".encode()


def _without_torn_heading(data: bytes, participant: str) -> bytes:
    """Without a last line that is the beginning of our heading: a killed run left it."""
    before, newline, last = data.rpartition(b"\n")
    if not last.startswith(b"## "):
        return data
    whole = last[:23] + f" - {participant} - seq ".encode()
    torn = _TORN_TIME.fullmatch(last) or (
        _TORN_TIME.match(last) and (whole.startswith(last) or last.startswith(whole))
    )
    return before + newline if torn else data


def _checked(change: Edit) -> Edit:
    if len(change.after) > records.MAX_DOCUMENT:
        raise Refused(f"{REVIEW} would be larger than {records.MAX_DOCUMENT} bytes")
    return change


_CHARTER = "charter.json"


def place(folder: str) -> str:
    """Where copies of this collaboration's files are kept: one folder for each real path."""
    real = os.path.realpath(folder)
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    name = "".join(c if c.isalnum() or c in "._-" else "_" for c in os.path.basename(real))
    return os.path.join(state_folder(), "backups", f"{name[:40]}-{digest}")


def keep(folder: str, name: str, data: bytes, now: datetime) -> str:
    """Keep a copy of a file's bytes; returns the copy's path.

    Raises:
        OSError: the copy could not be made.
    """
    store = place(folder)
    atomic.private_folder(store)
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    for number in range(1, 1000):
        path = os.path.join(store, f"{stamp}-{number:03d}-{name}")
        with contextlib.suppress(FileExistsError):
            atomic.create(path, data, private=True)
            return path
    raise FileExistsError(f"{store} already has a thousand copies from this second")


def keep_charter(folder: str, protocol: dict[str, Any]) -> None:
    """Keep the newest good protocol.json, where that is possible: repairs look there first."""
    with contextlib.suppress(OSError, UnicodeError):
        store = place(folder)
        atomic.private_folder(store)
        path, data = os.path.join(store, _CHARTER), records.encode_protocol(protocol)
        atomic.replace(path, data, private=True)


def kept_charter(folder: str) -> dict[str, Any] | None:
    """The newest good protocol.json that was kept, or None."""
    try:
        with open(os.path.join(place(folder), _CHARTER), "rb") as file:
            return records.decode_protocol(file.read(records.MAX_PROTOCOL + 1))
    except (OSError, ValueError):
        return None
