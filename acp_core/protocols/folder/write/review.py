"""Writing a review into review.md together with its event.

Source: folder protocol specification, "Review Format": a review stands under a heading with
the seq of its own event, which only the log's lock makes known in advance. The heading is
written first; a run that was killed before the event is recognised and finished, so that
nothing stands twice. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from acp_core.protocols.folder import schema
from acp_core.protocols.folder.schema import Entry
from acp_core.protocols.folder.write import Refused
from acp_core.protocols.folder.write.edits import Edit, content
from acp_core.protocols.folder.write.opened import Opened, path_of

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
    if len(change.after) > schema.MAX_DOCUMENT:
        raise Refused(f"{REVIEW} would be larger than {schema.MAX_DOCUMENT} bytes")
    return change
