"""Where the lines and the events of a growing log end; each look costs what is new, not the whole log.

A screen and a recording both need the ends of the lines; that part imports next to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from acp_core.files.journal import RESTARTED, UNREADABLE, Reader
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.history.schema import LARGEST_LOG
from acp_core.model import Document, Event, Notice, Snapshot
from acp_core.model.past import TrackedFile
from acp_core.protocols.contract import Collaboration

if TYPE_CHECKING:
    from acp_core.history.schema import Version
    from acp_core.history.store import Store


class LineEnds:
    """Where the lines of a log end, and with them its events; fed with what is new.

    Attributes:
        size: bytes of the lines so far.
    """

    def __init__(self) -> None:
        self.size = 0
        self._ends: list[int] = []
        self._texts: list[int] = []  # of lines that hold something

    def add(self, data: bytes) -> None:
        """Go on with whole lines; the last one may lack its newline where nothing follows."""
        place = 0
        while place < len(data):
            newline = data.find(b"\n", place)
            end = newline + 1 if newline >= 0 else len(data)
            self._ends.append(self.size + end)
            if data[place:end].strip():
                self._texts.append(self.size + end)
            place = end
        self.size += len(data)

    def of_event(self, events: Sequence[Event], number: int) -> int | None:
        """Where the line of an event ends, its newline included; None where there is no such line.

        Where the events do not know their lines, each line that holds something is one.
        """
        line_of = getattr(events, "line_of", None)
        ends = self._texts if line_of is None else self._ends
        place = number if line_of is None else line_of(number) - 1
        return ends[place] if 0 <= place < len(ends) else None


class GrowingLog:
    """The log of one collaboration, look after look.

    Args:
        path: the log.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._reader = Reader(
            path, max_line=LARGEST_LOG, max_lines=LARGEST_LOG, max_size=LARGEST_LOG
        )
        self._lines = LineEnds()

    def read(self) -> None:
        """Look once at what is new.

        Raises:
            Unreadable: it is missing, or may not be read.
        """
        poll = self._reader.poll(0.0)
        if poll.change == UNREADABLE:
            raise Unreadable(poll.reason)
        if poll.change == RESTARTED:
            self._lines = LineEnds()
        for block in poll.blocks:
            self._lines.add(block.data)

    def end_of(self, events: Sequence[Event], number: int) -> int:
        """Where the line of an event ends, its newline included; the log's end where none is known."""
        end = self._lines.of_event(events, number)
        return self._lines.size + len(self._reader.tail) if end is None else end


RECORDED = "as recorded"

_ROUNDED = timedelta(seconds=1)  # what an event's time may lie before the writing of a state file


class Edits:
    """The edits of one collaboration, look after look; one thread at a time."""

    def __init__(self) -> None:
        self._for: Snapshot | None = None
        self._made: Snapshot | None = None
        self._known: dict[Document, bool] = {}
        self._log: GrowingLog | None = None
        self._versions: dict[str, str] = {}  # of the documents at the last look
        self._events = 0  # how many there were then

    def marked(self, snapshot: Snapshot, collaboration: Collaboration) -> Snapshot:
        """The Snapshot with the documents that were edited too late; the same for the same one."""
        if snapshot is self._for and self._made is not None:
            return self._made
        asked = tuple(each for each in snapshot.documents if _may_be_edited(each, snapshot))
        new = [each for each in asked if each not in self._known]
        kept = {each: self._known[each] for each in asked if each in self._known}
        rested = dict.fromkeys((each for each in new if self._rested(each)), False)
        new = [each for each in new if each not in rested]
        compared = self._compared(new, snapshot, collaboration) if new else {}
        self._known = kept | rested | compared
        self._versions = {each.id: each.version for each in snapshot.documents}
        self._events = len(snapshot.events)
        edited = frozenset(each.id for each in asked if self._known[each])
        self._for, self._made = snapshot, _with_edits(snapshot, edited)
        return self._made

    def _rested(self, document: Document) -> bool:
        """Whether it is as it was before the event that settled it came: no recording need tell."""
        known = self._versions.get(document.id, "")
        since = document.settled_after is not None and document.settled_after > self._events
        return since and bool(known) and known == document.version

    def _compared(
        self, documents: list[Document], snapshot: Snapshot, collaboration: Collaboration
    ) -> dict[Document, bool]:
        """Whether each of them holds something else than when its event was seen."""
        from acp_core.history import (
            store as history_store,  # late: a fleet whose documents rest needs no recording
        )
        from acp_core.history.store import BadRecording

        edited = dict.fromkeys(documents, False)
        try:
            store = history_store.open_recording(snapshot.key)
        except BadRecording:
            return edited
        if store is None:
            return edited
        try:
            files = {file.document: file for file in collaboration.tracked_files()}
            log = next((file for file in files.values() if file.log), None)
            if log is None:
                return edited
            if self._log is None or self._log.path != log.path:
                self._log = GrowingLog(log.path)
            self._log.read()
            for each in documents:
                if each.id in files and each.settled_after is not None:
                    end = self._log.end_of(snapshot.events, each.settled_after - 1)
                    edited[each] = _differs(store, log, files[each.id], end, collaboration)
            return edited
        except (BadRecording, Unreadable, KeyError, IndexError):
            return dict.fromkeys(documents, False)
        finally:
            store.close()


def _with_edits(snapshot: Snapshot, edited: frozenset[str]) -> Snapshot:
    if not edited:
        return snapshot
    documents = tuple(
        replace(each, late=f"changed {each.settled} ({RECORDED})") if each.id in edited else each
        for each in snapshot.documents
    )
    notices = tuple(
        Notice("late", f"{each.id} {each.late}", each.id, each.changed)
        for each in documents
        if each.id in edited
    )
    return replace(snapshot, documents=documents, notices=(*snapshot.notices, *notices))


def _may_be_edited(document: Document, snapshot: Snapshot) -> bool:
    """Whether it could be, by what is known without the recording."""
    count = document.settled_after
    if count is None or document.late or document.state != "present" or document.changed is None:
        return False
    if not 0 < count <= len(snapshot.events):
        return False
    at = snapshot.events[count - 1].at
    room = _ROUNDED if document.group == "state" else timedelta(0)
    return at is not None and document.changed - room >= at


def _differs(
    store: Store, log: TrackedFile, file: TrackedFile, end: int, collaboration: Collaboration
) -> bool:
    """Whether a file is not what it was when the recorder first saw the log up to ``end``.

    A recorder reads the log first: what it read of the file with it, or before, is what was there
    when the event had happened.
    """
    seen = next((v.seen for v in _last_generation(store.versions(log.name)) if v.size >= end), None)
    if seen is None:
        return False
    then = [version for version in store.versions(file.name) if version.seen <= seen]
    if not then or not then[-1].present:
        return False
    before = store.content(then[-1].id)
    from acp_core.history.schema import LARGEST  # late: the first look finds no edit

    return collaboration.is_edit(file.document, before, read_bounded(file.path, LARGEST))


def _last_generation(versions: list[Version]) -> list[Version]:
    """The states of the log since it was last cut or rewritten."""
    start = 0
    for place in range(1, len(versions)):
        if versions[place].size < versions[place - 1].size:
            start = place
    return versions[start:]
