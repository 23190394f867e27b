"""A collaboration that no folder here holds: joined in the account's cache when it is looked at.

From then on a folder in the cache is read and acted in; what stands for the collaboration stays its
address in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.model import Action, Cause, DocumentText, Snapshot, Source, SourceState, Status
from acp_core.model.errors import Refused
from acp_core.model.past import Story
from acp_core.model.text import clean_line
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.folder.conduct import following
from acp_core.protocols.folder.conduct.following import bring_news
from acp_core.protocols.folder.mirror.opened import MirrorCollaboration
from acp_core.protocols.folder.read.collaboration import FolderCollaboration, people_of_settings
from acp_core.protocols.folder.read.detect import shows_mirror
from acp_core.protocols.folder.read.stores import join_in_cache
from acp_core.stores.address import parse

if TYPE_CHECKING:
    from acp_core.model.card import Card
    from acp_core.protocols.kit.diagnosis import Case

NOT_HERE = frozenset({"continue", "share", "sync", "unshare", "repair"})
"""Acts that are about a folder of a person's own."""


def opened_in_cache(folder: str) -> Collaboration:
    """What was joined in the cache: a folder collaboration, or a mirror of another one."""
    if shows_mirror(folder):
        return MirrorCollaboration(folder)
    return FolderCollaboration(folder, people_of_settings())


class StoreCollaboration(Collaboration):
    """One collaboration of a store.

    Args:
        location: its address, as a link.
    """

    protocol = "folder"

    def __init__(self, location: str) -> None:
        self.key = location
        self._address = parse(location)
        self._inner: Collaboration | None = None
        self._followed: following.Wanted | None = None
        self._is_live = False
        self._seen: Snapshot | None = None  # of the folder
        self._note = ""
        self._last: Snapshot | None = None

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Have the folder in the cache synchronized from now on: its files tell what changed."""
        self._is_live = True

    def refresh(self, now: datetime) -> Snapshot:
        note = self._bring()
        seen = self._inner.refresh(now) if self._inner is not None else None
        if self._last is None or seen is not self._seen or note != self._note:
            self._last = self._as_seen(seen, note, now)
        self._seen, self._note = seen, note
        return self._last

    def _bring(self) -> str:
        """Have the folder in the cache as the store has it; why that is not so, "" where it is."""
        try:
            folder = join_in_cache(self._address)
            if self._inner is None:
                self._inner = opened_in_cache(folder)
            if self._is_live and self._followed is None:
                self._followed = following.want(folder)
            return bring_news(folder)
        except (Refused, OSError) as error:
            return str(error)

    def _as_seen(self, seen: Snapshot | None, note: str, now: datetime) -> Snapshot:
        words = clean_line(note, 500)
        if seen is None:
            return Snapshot(
                key=self.key, protocol=self.protocol, dialect="", name=self._address.id, objective="",
                location=clean_line(self.key, 4_096), as_of=now, headline=words, status=Status.UNKNOWN,
                phase="", source=Source(SourceState.UNREACHABLE, words),
            )  # fmt: skip
        source = Source(SourceState.STALE, words) if note else seen.source
        needs = tuple(
            replace(each, action=None) if each.action in NOT_HERE else each for each in seen.needs
        )
        return replace(
            seen, key=self.key, name=self._address.id, location=clean_line(self.key, 4_096),
            source=source, needs=needs,
        )  # fmt: skip

    def watched(self) -> frozenset[Path]:
        return self._inner.watched() if self._inner is not None else frozenset()

    def load(self, document: str) -> DocumentText:
        if self._inner is None:
            raise KeyError(document)
        return self._inner.load(document)

    def raw_event(self, event: str) -> str:
        return self._inner.raw_event(event) if self._inner is not None else ""

    def actions(self, now: datetime) -> Sequence[Action]:
        found = self._inner.actions(now) if self._inner is not None else ()  # else only listed
        return tuple(each for each in found if each.name not in NOT_HERE)

    def action(self, name: str, now: datetime) -> Action | None:
        if self._inner is None:
            return None
        found = self._inner.action(name, now)
        if found is not None and found.name in NOT_HERE:
            raise Refused(
                f"{name} needs a folder of your own: `acp join {clean_line(self._address.text, 300)} FOLDER`"
            )
        return found

    def cards(self, now: datetime) -> Sequence[Card]:
        return self._inner.cards(now) if self._inner is not None else ()

    def causes(self, case: Case) -> Sequence[Cause]:
        found = self._inner.causes(case) if self._inner is not None else ()
        return tuple(
            replace(each, remedy=None) if each.remedy in NOT_HERE else each for each in found
        )

    def durations(self, participant: str) -> Sequence[float]:
        return self._inner.durations(participant) if self._inner is not None else ()

    def story(self) -> Story:
        return self._inner.story() if self._inner is not None else Story()

    def close(self) -> None:
        if self._followed is not None:
            self._followed.close()
