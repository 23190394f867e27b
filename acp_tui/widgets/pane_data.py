"""What the panes of a collaboration show: one value, bound to each of them.

A screen sets its ``data``; a pane that is bound to it (``data_bind``) compares by ``is`` the
parts that it shows, and draws anew only where one of them, or what the time makes of it, is
another.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from acp_core.history.forecast import Forecast, Outlook
from acp_core.model import Need, Snapshot


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
