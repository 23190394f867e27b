"""The events of a log as a sequence that keeps lines, and makes an event when it is asked for.

A log of 100,000 events is then little more than its bytes. Standard library only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from acp_core.files.journal import Lines
from acp_core.light import TYPE_CHECKING
from acp_core.protocols.folder.schema import Entry, parse_line

if TYPE_CHECKING:
    from typing import overload

_MADE = 4_096  # events that are kept once they were made: those near the end are asked for often


class Entries(Sequence[Entry]):
    """The events of one log, in order; only ever appended to.

    An event that was read for itself is kept as it is; one of many usual lines as its line.
    """

    __slots__ = ("_breaks", "_items", "_made", "_shifts")

    def __init__(self) -> None:
        self._items: list[Entry | bytes] = []
        # From which index on a line's number is how much more than its index.
        self._breaks: list[int] = []
        self._shifts: list[int] = []
        self._made: dict[int, Entry] = {}

    def __len__(self) -> int:
        return len(self._items)

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: int) -> Entry: ...
        @overload
        def __getitem__(self, index: slice) -> list[Entry]: ...

    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return [self._entry(i) for i in range(*index.indices(len(self._items)))]
        return self._entry(index if index >= 0 else len(self._items) + index)

    def _entry(self, index: int) -> Entry:
        if index < 0:
            raise IndexError(index)
        item = self._items[index]
        if not isinstance(item, bytes):
            return item
        made = self._made.get(index)
        if made is not None:
            return made
        entry = parse_line(item, self.line_of(index))
        assert isinstance(entry, Entry)  # only such lines are kept
        if len(self._made) >= _MADE:
            self._made.clear()
        self._made[index] = entry
        return entry

    def append(self, entry: Entry) -> None:
        """Add an event that was read for itself."""
        self._note(len(self._items), entry.line)
        self._items.append(entry)

    def extend(self, lines: Sequence[bytes], first: int) -> None:
        """Add lines of which each is known to be an event; ``first`` is the first one's number."""
        if lines:
            self._note(len(self._items), first)
            self._items += lines

    def _note(self, index: int, line: int) -> None:
        if not self._shifts or line - index != self._shifts[-1]:
            self._breaks.append(index)
            self._shifts.append(line - index)

    def naming(self, field: str) -> Iterator[Entry]:
        """The events that may have a field: all others are passed over without being made."""
        name = f'"{field}"'.encode()
        for index, item in enumerate(self._items):
            if not isinstance(item, bytes) or name in item or b"\\" in item:
                yield self._entry(index)

    def line_of(self, index: int) -> int:
        """The number of the line, from 1, in which an event stands.

        Raises:
            IndexError: there is no such event.
        """
        if not 0 <= index < len(self._items):
            raise IndexError(index)
        return index + self._shifts[bisect_right(self._breaks, index) - 1]

    def at_line(self, line: int, among: int) -> int | None:
        """The index of the event in a line, among the first so many events, or None."""
        found = bisect_left(range(among), line, key=self.line_of)
        return found if found < among and self.line_of(found) == line else None

    def block(self) -> Lines | None:
        """All events as lines that follow each other, where they were kept so."""
        lines = [item for item in self._items if isinstance(item, bytes)]
        if len(lines) < len(self._items) or len(self._breaks) != 1:
            return None
        return Lines(b"\n".join([*lines, b""]), lines, self.line_of(0))

    def copy(self) -> Entries:
        """An independent sequence of the same events."""
        other = Entries()
        other._items = self._items.copy()
        other._breaks, other._shifts = self._breaks.copy(), self._shifts.copy()
        return other
