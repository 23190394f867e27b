"""A mirror, opened: read by the very rules of its protocol, and never acted in."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.files.read_only import FILE, PLACE
from acp_core.files.reading import Stamp, stamp
from acp_core.model import Action, DocumentText, Snapshot, Source, SourceState, Status
from acp_core.model.errors import Refused
from acp_core.model.past import Story
from acp_core.model.text import clean_line
from acp_core.protocols import registry
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.folder.conduct import following
from acp_core.protocols.folder.mirror import acts
from acp_core.stores import mirror
from acp_core.stores.mirror import Manifest

if TYPE_CHECKING:
    from acp_core.model.card import Card


class MirrorCollaboration(Collaboration):
    """What another host conducts, as this folder shows it.

    Args:
        folder: the reader's.
    """

    protocol = "folder"

    def __init__(self, folder: str) -> None:
        self.key = folder
        self._inner: Collaboration | None = None
        self._manifest: Manifest | None = None
        self._stamp: Stamp | None = None
        self._seen: Snapshot | None = None
        self._last: Snapshot | None = None
        self._followed: following.Wanted | None = None

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Have the folder synchronized from now on: its files tell what changed."""
        self._followed = following.want(self.key)

    def refresh(self, now: datetime) -> Snapshot:
        changed = self._take_up()
        seen = self._inner.refresh(now) if self._inner is not None else None
        if self._last is None or changed or seen is not self._seen:
            self._last = self._as_seen(seen, now)
        self._seen = seen
        return self._last

    def _take_up(self) -> bool:
        """Read the manifest, where it changed; whether it did."""
        found = stamp(Path(self.key, FILE))
        if found == self._stamp and self._last is not None:
            return False
        self._stamp, before = found, self._manifest
        self._manifest = mirror.read(self.key)
        if self._manifest is None or (before and before.mark != self._manifest.mark):
            self._let_go()
        if self._manifest is not None and self._inner is None:
            known = {each.name: each for each in registry.bundled()}
            opened: Collaboration = registry.load(known[self._manifest.protocol].open)(self.place)
            self._inner = opened
        return True

    @property
    def place(self) -> str:
        """Where the files lie."""
        assert self._manifest is not None
        return os.path.join(self.key, PLACE, mirror.place(self._manifest, ""))

    def _let_go(self) -> None:
        if self._inner is not None:
            self._inner.close()
        self._inner = None

    def _as_seen(self, seen: Snapshot | None, now: datetime) -> Snapshot:
        location = clean_line(self.key, 4_096)
        told = self._manifest
        if seen is None or told is None:
            words = f"{FILE} cannot be read: `acp join` the mirror into a new folder"
            return Snapshot(
                key=self.key, protocol=self.protocol, dialect="", name=os.path.basename(self.key), objective="",
                location=location, as_of=now, headline=words, status=Status.UNKNOWN, phase="",
                source=Source(SourceState.UNREACHABLE, words),
            )  # fmt: skip
        host = clean_line(told.host, 64)
        possible = {each.name for each in self.actions(now)}
        needs = tuple(
            each if each.action in possible else replace(each, action=None) for each in seen.needs
        )
        return replace(
            seen, key=self.key, location=location, hosts=(host,), needs=needs, runners=(), cost=None,
            causes=(), obstacles=(), parts=(),
            limits=f"{host} controls this run; your acts are requests to {host}",
        )  # fmt: skip

    def watched(self) -> frozenset[Path]:
        below = self._inner.watched() if self._inner is not None else frozenset()
        return below | {Path(self.key)}

    def load(self, document: str) -> DocumentText:
        if self._inner is None:
            raise KeyError(document)
        return self._inner.load(document)

    def raw_event(self, event: str) -> str:
        return self._inner.raw_event(event) if self._inner is not None else ""

    def actions(self, now: datetime) -> Sequence[Action]:
        return acts.requests(self.key, self._manifest) if self._manifest else ()

    def action(self, name: str, now: datetime) -> Action | None:
        found = next((each for each in self.actions(now) if each.called(name)), None)
        if found is None and self._manifest is not None:
            raise Refused(
                f"{clean_line(self._manifest.host, 80)} controls this run, and cannot be asked for {name} now"
            )
        return found

    def cards(self, now: datetime) -> Sequence[Card]:
        return self._inner.cards(now) if self._inner is not None else ()

    def durations(self, participant: str) -> Sequence[float]:
        return self._inner.durations(participant) if self._inner is not None else ()

    def story(self) -> Story:
        return self._inner.story() if self._inner is not None else Story()

    def close(self) -> None:
        self._let_go()
        if self._followed is not None:
            self._followed.close()
