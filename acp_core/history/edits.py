"""Documents that were edited after they were settled, as a recording knows it.

File times tell such an edit only where it came clearly later than the event. A recording holds the
bytes that were there when the event was seen: what differs from them now was edited since.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.history.observing import LARGEST, LARGEST_LOG
from acp_core.model import Document, Notice, Snapshot
from acp_core.model.tracked import TrackedFile
from acp_core.protocols.contract import Collaboration

if TYPE_CHECKING:
    from acp_core.history.schema import Version
    from acp_core.history.store import Store

RECORDED = "as recorded"
_ROUNDED = timedelta(seconds=1)  # what an event's time may lie before the writing of a state file


class Edits:
    """The edits of one collaboration, look after look; one thread at a time."""

    def __init__(self) -> None:
        self._for: Snapshot | None = None
        self._made: Snapshot | None = None
        self._asked: tuple[Document, ...] = ()
        self._edited: frozenset[str] = frozenset()

    def marked(self, snapshot: Snapshot, collaboration: Collaboration) -> Snapshot:
        """The Snapshot with the documents that were edited too late; the same for the same one."""
        if snapshot is self._for and self._made is not None:
            return self._made
        asked = tuple(each for each in snapshot.documents if _may_be_edited(each, snapshot))
        if asked != self._asked:
            self._asked, self._edited = asked, _edited(asked, snapshot, collaboration)
        self._for, self._made = snapshot, _with_edits(snapshot, self._edited)
        return self._made


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


def _edited(
    asked: tuple[Document, ...], snapshot: Snapshot, collaboration: Collaboration
) -> frozenset[str]:
    """Which of them hold something else than when their event was seen."""
    if not asked:
        return frozenset()
    from acp_core.history import library  # late: a fleet whose documents rest needs no recording
    from acp_core.history.store import BadRecording
    from acp_core.history.whole_log import event_ends

    files = {file.document: file for file in collaboration.tracked_files()}
    log = next((file for file in files.values() if file.log), None)
    try:
        store = library.find(snapshot.key) if log is not None else None
    except BadRecording:
        return frozenset()
    if store is None or log is None:
        return frozenset()
    try:
        ends = event_ends(snapshot.events, read_bounded(log.path, LARGEST_LOG))
        return frozenset(
            each.id
            for each in asked
            if each.id in files
            and each.settled_after is not None
            and _differs(store, log, files[each.id], ends[each.settled_after - 1], collaboration)
        )
    except (BadRecording, Unreadable, KeyError, IndexError):
        return frozenset()
    finally:
        store.close()


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
    return collaboration.is_edit(file.document, before, read_bounded(file.path, LARGEST))


def _last_generation(versions: list[Version]) -> list[Version]:
    """The states of the log since it was last cut or rewritten."""
    start = 0
    for place in range(1, len(versions)):
        if versions[place].size < versions[place - 1].size:
            start = place
    return versions[start:]
