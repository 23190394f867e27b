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

_KNOWN = 1_000  # pairs of a sender and an event that are remembered
_FEW = 1_900  # bytes: a shorter line's summary is not too long
_UNUSUAL = bytes({*range(0x20), 0x5C})  # of these, lines without escapes hold their newlines only

_NUMBER = rb"[1-9][0-9]{0,14}+"
_TEXT = rb'[^"\\\x00-\x1f]*+'
_SUMMARY = rb'[^"\\\x00-\x20\x7f-\xff][^"\\\x00-\x1f]*+(?:\\["\\/bfnrt][^"\\\x00-\x1f]*+)*+'
_AT = (
    rb"(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    rb"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"
)
# Where a block holds nothing unusual, a text ends at the next quotation mark: that is found faster.
# A text with a newline takes two lines for one row, which `rows` notices.
_PLAIN_TEXT = rb'[^"]*+'
_PLAIN_SUMMARY = rb'[!#-~][^"]{0,1900}+'


def _row(text: bytes, summary: bytes) -> re.Pattern[bytes]:
    return re.compile(
        rb'\{"seq":(%(n)b),"from":"(%(t)b","event":"%(t)b)","at":"(%(at)b)","summary":"%(s)b"'
        rb'(?:,"doc":"(%(t)b)")?+,"reply_to":(%(n)b)(?:,"key":"%(t)b")?+\}\n|([^\n]*)\n'
        % {b"n": _NUMBER, b"t": text, b"at": _AT, b"s": summary}
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
    # The only such bytes are the lines' ends: nothing is escaped, and nothing has to be.
    plain = len(data) - len(data.translate(None, _UNUSUAL)) == block.count
    if not plain and max(map(len, block.lines), default=0) > _FEW:
        return None
    pattern = _row(_PLAIN_TEXT, _PLAIN_SUMMARY) if plain else _row(_TEXT, _SUMMARY)
    found: list[Row] = pattern.findall(data)
    unusual = [row[0] for row in found].count(b"")
    return found if unusual * 4 < len(found) and len(found) == block.count else None


def author_and_event(said: bytes) -> tuple[str, str]:
    """The sender and the event of a row."""
    sender, _, event = said.partition(b'","event":"')
    return sender.decode(), event.decode()


class Outlines:
    """Makes the events of usual lines, but for their summaries and keys."""

    def __init__(self) -> None:
        self._said: dict[bytes, tuple[str, str]] = {}
        self._at, self._time = b"", ""

    def of(self, row: Row, line: int) -> schema.Entry:
        """The event of a row in the line of this number."""
        seq, said, at, document, reply_to, _ = row
        names = self._said.get(said)
        if names is None:
            names = author_and_event(said)
            if len(self._said) < _KNOWN:
                self._said[said] = names
        if at != self._at:
            self._at, self._time = at, at.decode()
        sender, event = names
        doc = document.decode() if document else None
        return tuple.__new__(  # as Entry(...), at half the cost
            schema.Entry,
            (
                line,
                int(seq),
                sender,
                event,
                self._time,
                "",
                doc,
                int(reply_to),
                None,
                None,
                None,
                (),
                "",
            ),
        )


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
