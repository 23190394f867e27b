"""The past of a collaboration, for its screen: its moments, and the texts of the one that shows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from acp_core.history.past import Past
from acp_core.history.store import BadRecording
from acp_core.model import Document, DocumentText, Event
from acp_core.model.text import clean_line
from acp_core.protocols.locations import find
from acp_tui.screens.collaboration_source import unreadable

if TYPE_CHECKING:
    from acp_tui.widgets.people import Loops

T = TypeVar("T")


class PastSource:
    """Reads in worker threads; a past is used from one of them at a time.

    Args:
        key: The collaboration's.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._lock = asyncio.Lock()
        self.past: Past | None = None
        self.place = -1
        """Which moment shows."""

    async def read(self, now: datetime) -> bool:
        """Find out which moments there are by now; returns whether there are any.

        Raises:
            BadRecording: its recording cannot be read.
        """

        def read() -> Past | None:
            there = find(self._key)
            return Past(there, now) if there else None

        past = await asyncio.to_thread(read)
        if past is None or not past.moments:
            return False
        async with self._lock:
            before, self.past = self.past, past
            if before is not None:
                await asyncio.to_thread(before.close)
        return True

    async def close(self) -> None:
        """Let go of the recording."""
        async with self._lock:
            if self.past is not None:
                await asyncio.to_thread(self.past.close)

    async def ask(self, function: Callable[[Past], T]) -> T:
        """Call a function with the past, in a worker thread.

        Raises:
            KeyError: nothing of its past was read.
            Exception: whatever ``function`` raises.
        """
        async with self._lock:
            if self.past is None:
                raise KeyError(self._key)
            return await asyncio.to_thread(function, self.past)

    async def text(self, document: Document) -> DocumentText | None:
        """The text of a document at this moment; None where another one shows by now."""
        place = self.place
        try:
            text = await self.ask(lambda past: past.text(place, document.id))
        except KeyError:
            return None
        except (BadRecording, OSError) as error:
            text = unreadable(document, clean_line(f"Could not read the collaboration: {error}"))
        if document.state == "not recorded":
            text = unreadable(document, "not recorded")
        return text if place == self.place else None

    async def event(self, event: Event) -> str:
        """An event as its source held it."""
        place = self.place
        return await self.ask(lambda past: past.raw_event(place, event.id))

    async def loops(self) -> Loops:
        """None: what loops did then stands in the recording, not in their files."""
        return ()
