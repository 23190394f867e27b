"""Many lines of a log at one go: which of them are usual, and what stands in those.

A usual line has the form in which every tool writes an event that replies to another one, and
nothing about it by itself would be remarked on. What is unusual is read line by line by
`acp_core.protocols.folder.schema.parse_line`, which knows every form. Standard library only.
"""

from __future__ import annotations

import re
from datetime import date

from acp_core.files.journal import Lines
from acp_core.protocols.folder import schema

Row = tuple[bytes, bytes, bytes, bytes, bytes, bytes]
"""Seq, sender and event (see `author_and_event`), time, document ("" for none) and the seq that is
replied to, as they stand in a usual line; of another one the last item is the line, the rest empty."""

_FEW = 1_900  # bytes: a shorter line's summary is not too long


_NUMBER = rb"[1-9][0-9]{0,14}+"
_TEXT = rb'[^"\\\x00-\x1f]*+'
_SUMMARY = rb'[^"\\\x00-\x20\x7f-\xff][^"\\\x00-\x1f]*+(?:\\["\\/bfnrt][^"\\\x00-\x1f]*+)*+'
_AT = (
    rb"(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    rb"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"
)
_ROW = re.compile(
    rb'\{"seq":(%(n)b),"from":"(%(t)b","event":"%(t)b)","at":"(%(at)b)","summary":"%(s)b"'
    rb'(?:,"doc":"(%(t)b)")?+,"reply_to":(%(n)b)(?:,"key":"%(t)b")?+\}\n|([^\n]*)\n'
    % {b"n": _NUMBER, b"t": _TEXT, b"at": _AT, b"s": _SUMMARY}
)


def rows(block: Lines) -> list[Row] | None:
    """One row for each line; None where hardly a line, or not the text as a whole, is usual."""
    data = block.data
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return None
        if not schema.holds_no_breaker(data):
            return None
    if max(map(len, block.lines), default=0) > _FEW:
        return None
    found: list[Row] = _ROW.findall(data)
    unusual = sum(1 for row in found if not row[0])
    return found if unusual * 4 < len(found) and len(found) == len(block.lines) else None


def author_and_event(said: bytes) -> tuple[str, str]:
    """The sender and the event of a row."""
    sender, _, event = said.partition(b'","event":"')
    return sender.decode(), event.decode()


class Days(dict[bytes, bool]):
    """Whether a date exists, for the dates that a log holds."""

    def __missing__(self, day: bytes) -> bool:
        try:
            date.fromisoformat(day.decode())
        except ValueError:
            exists = False
        else:
            exists = True
        if len(self) < 10_000:
            self[day] = exists
        return exists
