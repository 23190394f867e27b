"""What the panes of a collaboration show: one value, bound to each of them.

A screen sets its ``data``; a pane that is bound to it (``data_bind``) compares by ``is`` the
parts that it shows, and draws anew only where one of them, or what the time makes of it, is
another.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from acp_core.model import Need, Snapshot


class PaneData(NamedTuple):
    """A Snapshot, as of when, and how it is shown.

    ``needs`` are those that nobody acknowledged, ``gone`` says that it was read before it went
    away, and ``utc`` that times are shown so.
    """

    snapshot: Snapshot
    needs: tuple[Need, ...]
    now: datetime
    utc: bool = False
    gone: bool = False

    @property
    def minute(self) -> int:
        """Which minute it is: what tells ages in minutes changes with it."""
        return int(self.now.timestamp() // 60)
