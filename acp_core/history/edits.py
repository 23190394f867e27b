"""Documents that were edited after they were settled, as a recording knows it.

File times tell such an edit only where it came clearly later than the event. A recording holds the
bytes that were there when the event was seen: what differs from them now was edited since.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model import Document, Snapshot
from acp_core.model.matter import remark
from acp_core.model.past import TrackedFile
from acp_core.protocols.contract import Collaboration

if TYPE_CHECKING:
    from acp_core.history.schema import Version
    from acp_core.history.store import GrowingLog, Store

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
        from acp_core.history.store import BadRecording, GrowingLog

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
        remark("late", f"{each.id} {each.late}", each.id, each.changed)
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
