"""A pane: a quiet frame with a title, what the panes of a collaboration show, and where they get more.

A screen sets its ``data``; a pane that is bound to it (``data_bind``) compares by ``is`` the
parts that it shows, and draws anew only where one of them, or what the time makes of it, is
another. A `Source` has what a Snapshot leaves out: texts, events as they stand in the file, loops.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from textual.containers import Vertical
from textual.geometry import Region
from textual.reactive import var

from acp_core.history.forecast import Forecast, Outlook
from acp_core.model import Document, DocumentText, Event, Need, Snapshot
from acp_core.model.text import clean_line
from acp_tui.text import line

if TYPE_CHECKING:
    from acp_core.fleet import Fleet
    from acp_tui.widgets.people import Loops


class Pane(Vertical):
    """A frame; which one has the focus shows by its colour, and by its title's weight."""

    DEFAULT_CSS = """
    Pane {
        border: round $foreground 20%;
        border-title-color: $text-muted;
        padding: 0;
        &:focus-within {
            border: round $accent 70%;
            border-title-color: $text-accent;
            border-title-style: bold;
        }
        &.-empty { border: blank; border-top: round $foreground 20%; border-bottom: none; }
        &.-empty:focus-within { border: blank; border-top: round $accent 70%; border-bottom: none; }
        &:ansi { border: round ansi_bright_black; border-title-color: ansi_default; }
        &:ansi:focus-within { border: round $accent; border-title-color: $accent; }
        &.-empty:ansi { border: blank; border-top: round ansi_bright_black; border-bottom: none; }
        &.-empty:ansi:focus-within { border: blank; border-top: round $accent; border-bottom: none; }
    }
    """

    heading: var[str] = var("", init=False)
    """What stands in the frame."""

    def watch_heading(self, heading: str) -> None:
        """Set the title."""
        self._only_title = True
        self.border_title = line(heading)  # a str would be markup
        self._only_title = False

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """Draw again: for another title the line in which it stands, not both sides of each line."""
        if self._only_title and self.styles.border_top[0]:
            regions = (Region(-1, -1, self.outer_size.width, 1),)  # from where the content begins
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    _only_title = False


class PaneData(NamedTuple):
    """A Snapshot, as of when, and how it is shown.

    ``needs`` are those that nobody acknowledged, ``gone`` says that it was read before it went
    away, ``utc`` that times are shown so, and ``past`` that it is as it was then: nothing of it can be
    acted on or acknowledged. ``current`` is the place of the need in hand among them;
    ``forecast`` knows how long things usually take; ``start`` is what the act is called that starts
    it where acp runs nothing ("" else).
    """

    snapshot: Snapshot
    needs: tuple[Need, ...]
    now: datetime
    utc: bool = False
    gone: bool = False
    past: bool = False
    current: int = 0
    forecast: Forecast = Forecast()
    start: str = ""

    @property
    def need(self) -> Need | None:
        """The need in hand: the one that the headline shows and that keys act on."""
        return self.needs[min(self.current, len(self.needs) - 1)] if self.needs else None

    @property
    def outlook(self) -> Outlook:
        """How long what lasts now usually takes."""
        return self.forecast.outlook(self.snapshot, self.now)

    @property
    def minute(self) -> int:
        """Which minute it is: what tells ages in minutes changes with it."""
        return int(self.now.timestamp() // 60)

    def moment(self, begun: Iterable[datetime | None]) -> int:
        """What the ages of things change with: each second while one is younger than a minute.

        Args:
            begun: Since when each of them is.
        """
        young = any(at is not None and (self.now - at).total_seconds() < 61 for at in begun)
        return int(self.now.timestamp()) if young else self.minute


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
