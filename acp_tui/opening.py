"""What the dashboard does until something is read.

Started in the folder of one collaboration, it opens that; until it is read, the newest events stand
there, as its log ends with them. Started over many, their names stand there. What this imports stands
in the way of the first picture.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from textual.content import Content

from acp_core.model import format
from acp_core.protocols.locations import is_list
from acp_tui import text

if TYPE_CHECKING:
    from acp_core.protocols.discovery import DiscoveredCollaboration, NewestEvent
    from acp_core.protocols.registry import Protocol
    from acp_tui.app import AcpApp

MOST = 100  # events at most: more than any terminal has room for
FOLDERS = 200  # that are looked into for names; the fleet finds all
MARGIN, AROUND = 4, 10  # columns beside the rows, and rows of other things above and below them
HELD = 3.0  # s that keys wait at most for what shows to be read
PATIENCE = 0.2  # s that the fleet waits for this look at most
_WHEN, _ACTOR, _KIND = 20, 14, 24  # cells of a column at most


class Opening:
    """Finds out whether the dashboard was started in one collaboration, and shows that.

    Args:
        app: The dashboard.
    """

    def __init__(self, app: AcpApp) -> None:
        self._app = app
        self._looked: asyncio.Task[DiscoveredCollaboration | None] | None = None
        self._newest: tuple[str, Sequence[NewestEvent]] = "", ()
        self._names: tuple[str, ...] = ()
        self._is_over = False

    def look(self) -> None:
        """Look for newest events, or names, beside the making of the first picture, where they then stand."""
        self._looked = asyncio.create_task(self._show())
        self._app.set_timer(HELD, self.end)

    async def open(self) -> None:
        """Where the one given path is itself a collaboration, begin to open it on top of the fleet."""
        looked = self._looked
        if looked is not None:  # where it waits for a disk, the fleet goes on without it
            await asyncio.wait({looked}, timeout=PATIENCE)
        found = looked.result() if looked and looked.done() and not looked.exception() else None
        self._app.run_worker(lambda: self._open(found), thread=True, group="start")

    @property
    def is_under_way(self) -> bool:
        """Whether newest events, or names, show of which nothing else is known yet.

        A key that is pressed then is meant for the collaboration, or its row, and waits for it.
        """
        return bool(self._newest[0] or self._names) and not self._is_over

    def end(self) -> None:
        """The one collaboration is read, or found to be gone."""
        self._is_over = True

    def listed(self) -> None:
        """The fleet has its list, or all is read and there is nothing to list."""
        if not self._newest[0]:
            self.end()

    def reading(self, key: str, note: str = "") -> Content:
        """That a collaboration is being read, and its newest events, where they are known.

        Args:
            key: The collaboration's.
            note: How far the reading is, where that is known.
        """
        app, (known, events) = self._app, self._newest
        width = app.size.width - 2 * MARGIN
        said = text.fit(f"Reading {key} … {note}", width).rstrip()
        fitting = events[-self._room :] if key == known else ()
        return self._under(said, newest_rows(fitting, app.now(), width=width, utc=app.utc))

    def looking(self, where: str) -> Content:
        """That collaborations are looked for, and what is known of them until one is read.

        Args:
            where: The paths below which they are looked for.
        """
        if self._newest[0]:
            return self.reading(self._newest[0])
        width = self._app.size.width - 2 * MARGIN
        names = (text.fit(name, width).rstrip() for name in self._names[: self._room])
        return self._under(f"Looking for collaborations under {where} …", map(Content, names))

    @property
    def _room(self) -> int:
        return max(1, self._app.size.height - AROUND)

    @staticmethod
    def _under(said: str, rows: Iterable[Content]) -> Content:
        lines = list(rows)
        return Content("\n").join(
            [text.line(said, text.MUTED), *([Content()] if lines else []), *lines]
        )

    async def _show(self) -> DiscoveredCollaboration | None:
        try:
            found = await asyncio.to_thread(self._look)
        except Exception:  # the fleet reads the same again, and says what is wrong
            return None
        if self._app.is_running and (self._newest[0] or self._names):
            self._app.fleet_screen.relist()
        return found

    def _look(self) -> DiscoveredCollaboration | None:
        app = self._app
        if not app.paths or app.links:
            return None
        from acp_core.protocols.discovery import identify
        from acp_core.protocols.registry import bundled

        known = tuple(bundled())
        found = identify(app.paths[0], known) if len(app.paths) == 1 else None
        if found is None:
            self._names = tuple(islice(self._find_names(known), MOST))
        else:
            from acp_core.protocols.discovery import newest

            self._newest = found.key, newest(app.paths[0], found.protocol, MOST)
        return found

    def _find_names(self, known: Sequence[Protocol]) -> Iterator[str]:
        from acp_core.protocols.discovery import Explorer

        paths, attention = self._app.paths, self._app.attention
        base = os.path.commonpath(paths)
        for each in Explorer(paths, limit=FOLDERS, known=known).explore():
            if not attention.is_archived(each.key):
                yield os.path.relpath(each.key, base)

    def _open(self, found: DiscoveredCollaboration | None) -> None:
        paths, links = self._app.paths, self._app.links
        if len(paths) + len(links) != 1 or any(map(is_list, links)):
            return
        if paths and found is None:
            from acp_core.protocols.discovery import identify
            from acp_core.protocols.registry import installed

            # Looking up what other distributions bring costs tens of milliseconds.
            found = identify(paths[0], installed())
        key = links[0] if links else found.key if found else None
        if key is not None:
            import acp_tui.screens.collaboration  # noqa: F401 - heavy: not on the screen's thread

            self._app.call_from_thread(self._show_above_the_fleet, key)

    def _show_above_the_fleet(self, key: str) -> None:
        """Open it, unless something is open already: nothing may come between a card and its verdict."""
        if len(self._app.screen_stack) == 1:
            self._app.open_collaboration(key)
        else:
            self.end()


def newest_rows(
    events: Sequence[NewestEvent], now: datetime, *, width: int, utc: bool = False
) -> list[Content]:
    """A row for each event: when, who, what, and its summary.

    Args:
        events: In order.
        now: The time now.
        width: How many cells a row has.
        utc: Show UTC, and not local time.
    """
    rows = [(_when(event.at, now, utc), *event[1:]) for event in events]
    when, actor, kind = (
        min(most, max((text.width(text.safe_line(row[column])) for row in rows), default=0))
        for column, most in enumerate((_WHEN, _ACTOR, _KIND))
    )
    rest = width - when - actor - kind - 6
    return [
        text.join(
            (text.fit(at, when) + "  ", text.MUTED),
            text.fit(who, actor) + "  ",
            (text.fit(what, kind) + "  ", text.MUTED),
            text.fit(summary, rest).rstrip(),
        )
        for at, who, what, summary in rows
    ]


def _when(at: str, now: datetime, utc: bool) -> str:
    try:
        return format.moment(datetime.fromisoformat(at), now, utc)
    except (ValueError, OverflowError):
        return ""
