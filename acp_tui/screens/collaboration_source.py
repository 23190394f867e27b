"""Where a collaboration's screen gets what a Snapshot leaves out: texts, sources, loops."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Protocol

from acp_core.model import Document, DocumentText, Event
from acp_core.model.text import clean_line

if TYPE_CHECKING:
    from acp_core.fleet import Fleet
    from acp_tui.widgets.people import Loops


class Source(Protocol):
    """What is slow to get; nothing is raised."""

    async def text(self, document: Document) -> DocumentText | None:
        """The text of a document, or why it cannot be read; None where it went away."""

    async def event(self, event: Event) -> str:
        """An event as its source holds it, or else its fields as JSON."""

    async def loops(self) -> Loops:
        """The loops of the participants."""


class FleetSource:
    """The present: asks the fleet, off the interface's thread.

    Args:
        fleet: What holds the collaboration open.
        key: The collaboration's.
    """

    def __init__(self, fleet: Fleet, key: str) -> None:
        self._fleet = fleet
        self._key = key

    async def text(self, document: Document) -> DocumentText | None:
        """The text of a document, or why it cannot be read; None where it went away."""
        try:
            text: DocumentText = await self._fleet.call(self._key, lambda c: c.load(document.id))
        except KeyError:
            return None  # it went away meanwhile: the next Snapshot says so
        except Exception as error:  # somebody else's protocol: said, not raised
            return unreadable(document, clean_line(f"Could not read the document: {error!r}"))
        return text

    async def event(self, event: Event) -> str:
        """An event as its source holds it, or else its fields as JSON."""
        try:
            source: str = await self._fleet.call(self._key, lambda c: c.raw_event(event.id))
        except Exception:  # somebody else's protocol: the fields are there anyway
            source = ""
        return source or json.dumps(event._asdict(), ensure_ascii=False, default=str)

    async def loops(self) -> Loops:
        """The loops of the participants; looking at them can wait for a disk."""

        def read() -> Loops:
            return (*self._fleet.loops(self._key), *self._fleet.loops_of_others(self._key))

        return await asyncio.to_thread(read)


def unreadable(document: Document, note: str) -> DocumentText:
    """What shows in place of a text that cannot be had: ``note``, a line."""
    return DocumentText(document.id, document.version, "", note=note)
