"""The events of a log as a sequence that keeps lines, and makes an event when it is asked for.

A log of 100,000 events is then little more than its bytes. Standard library only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from acp_core.files.journal import Lines
from acp_core.model.light import TYPE_CHECKING
from acp_core.protocols.folder.read.lines import Outlines, rows
from acp_core.protocols.folder.schema import Entry, parse_line

if TYPE_CHECKING:
    from typing import overload

_MADE = 4_096  # events that are kept once they were made: those near the end are asked for often


class _Block:
    """Lines that follow each other: as one text until one of them is asked for, then each for itself.

    Args:
        held: the text, each line with its newline; or the lines without.
    """

    __slots__ = ("_held",)

    def __init__(self, held: bytes | memoryview | list[bytes]) -> None:
        self._held = held  # replaced in one step: other threads read it too

    @property
    def lines(self) -> list[bytes]:
        """The lines, without their newlines."""
        held = self._held
        if not isinstance(held, list):
            held = bytes(held).split(b"\n")
            held.pop()
            self._held = held
        return held

    @property
    def text(self) -> bytes:
        """The lines, each with its newline."""
        held = self._held
        return b"\n".join([*held, b""]) if isinstance(held, list) else bytes(held)

    def may_hold(self, word: bytes) -> bool:
        """Whether the word may stand in one of them."""
        if isinstance(self._held, list):
            return True
        text = self.text
        return word in text or b"\\" in text


class Entries(Sequence[Entry]):
    """The events of one log, in order; only ever appended to.

    An event that was read for itself is kept as it is; one of many usual lines as its line.
    """

    __slots__ = ("_breaks", "_count", "_made", "_pieces", "_shifts", "_starts")

    def __init__(self) -> None:
        self._count = 0
        # Pieces that follow each other, and the index of the first event of each.
        self._pieces: list[list[Entry] | _Block] = []
        self._starts: list[int] = []
        # From which index on a line's number is how much more than its index.
        self._breaks: list[int] = []
        self._shifts: list[int] = []
        self._made: dict[int, Entry] = {}

    def __len__(self) -> int:
        return self._count

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: int) -> Entry: ...
        @overload
        def __getitem__(self, index: slice) -> list[Entry]: ...

    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return [self._entry(i) for i in range(*index.indices(self._count))]
        return self._entry(index if index >= 0 else self._count + index)

    def _entry(self, index: int) -> Entry:
        made = self._made.get(index)
        if made is not None:
            return made
        if not 0 <= index < self._count:
            raise IndexError(index)
        number = bisect_right(self._starts, index) - 1
        piece, place = self._pieces[number], index - self._starts[number]
        if isinstance(piece, list):
            return piece[place]
        entry = parse_line(piece.lines[place], self.line_of(index))
        assert isinstance(entry, Entry)  # only such lines are kept
        if len(self._made) >= _MADE:
            self._made.clear()
        self._made[index] = entry
        return entry

    def append(self, entry: Entry) -> None:
        """Add an event that was read for itself."""
        self._note(self._count, entry.line)
        piece = self._pieces[-1] if self._pieces else None
        if isinstance(piece, list):
            piece.append(entry)
        else:
            self._add([entry])
        self._count += 1

    def extend(self, block: Lines, start: int, end: int) -> None:
        """Add lines of a block of which each is known to be an event: from ``start`` up to ``end``."""
        if start < end:
            self._note(self._count, block.first + start)
            whole = end - start == block.count
            self._add(_Block(block.data if whole else block.lines[start:end]))
            self._count += end - start

    def extend_with(self, text: memoryview, lines: int) -> None:
        """Add so many whole lines, none of them blank, of which each is known to be an event.

        They follow the events that are there, which have a line each.
        """
        self._note(self._count, self._count + 1)
        self._add(_Block(text))
        self._count += lines

    def _add(self, piece: list[Entry] | _Block) -> None:
        self._starts.append(self._count)
        self._pieces.append(piece)

    def _note(self, index: int, line: int) -> None:
        if not self._shifts or line - index != self._shifts[-1]:
            self._breaks.append(index)
            self._shifts.append(line - index)

    def outlines(self) -> Iterator[Entry]:
        """Every event in order, one after the other, and none of them kept.

        Those of usual lines come without summary and key: they cost a tenth of whole ones.
        """
        outline = Outlines().of
        for start, piece in zip(self._starts, self._pieces, strict=False):
            if isinstance(piece, list):
                yield from piece
                continue
            found = rows(Lines(piece.text, 1))
            if found is None:
                yield from (self._entry(index) for index in range(start, start + len(piece.lines)))
                continue
            first = self.line_of(start)  # the lines of a piece follow each other
            for index, row in enumerate(found):
                yield outline(row, first + index) if row[0] else self._entry(start + index)

    def naming(self, text: str) -> Iterator[Entry]:
        """The events that may have this text as a field: all others are passed over without being made."""
        written = text.encode(errors="surrogatepass")  # unless it was escaped
        for start, piece in zip(self._starts, self._pieces, strict=False):
            if isinstance(piece, list):
                yield from piece
            elif piece.may_hold(written):
                for index, line in enumerate(piece.lines, start):
                    if written in line or b"\\" in line:
                        yield self._entry(index)

    def line_of(self, index: int) -> int:
        """The number of the line, from 1, in which an event stands.

        Raises:
            IndexError: there is no such event.
        """
        if not 0 <= index < self._count:
            raise IndexError(index)
        return index + self._shifts[bisect_right(self._breaks, index) - 1]

    def at_line(self, line: int, among: int) -> int | None:
        """The index of the event in a line, among the first so many events, or None."""
        found = bisect_left(range(among), line, key=self.line_of)
        return found if found < among and self.line_of(found) == line else None

    def block(self) -> Lines | None:
        """All events as lines that follow each other, where they were kept so."""
        blocks = [piece for piece in self._pieces if isinstance(piece, _Block)]
        if len(blocks) < len(self._pieces) or len(self._breaks) != 1:
            return None
        lines = [line for block in blocks for line in block.lines]
        return Lines(b"\n".join([*lines, b""]), self.line_of(0))

    def copy(self) -> Entries:
        """An independent sequence of the same events."""
        other = Entries()
        other._count, other._starts = self._count, self._starts.copy()
        other._pieces = [each.copy() if isinstance(each, list) else each for each in self._pieces]
        other._breaks, other._shifts = self._breaks.copy(), self._shifts.copy()
        return other
