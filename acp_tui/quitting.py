"""Leaving the dashboard: from everywhere, but not with words half written."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from acp_tui import keys

if TYPE_CHECKING:
    from acp_tui.app import AcpApp

AGAIN = 6.0
"""Seconds in which a second wish to leave is obeyed: for so long the question is shown."""


@runtime_checkable
class Unsaved(Protocol):
    """A screen that may hold what would be lost."""

    @property
    def unsaved(self) -> str:
        """What would be lost, as a sentence; "" where nothing would."""


def is_half_made(error: Exception) -> bool:
    """Whether a screen lacks its widgets: Textual mounts none any more while it is being left."""
    from textual.css.query import NoMatches
    from textual.widget import MountError

    return isinstance(error, NoMatches | MountError)


class QuitGuard:
    """Asks before the dashboard is left where something would be lost.

    Args:
        app: The dashboard.
    """

    def __init__(self, app: AcpApp) -> None:
        self._app = app
        self._asked_at = float("-inf")

    @property
    def keys(self) -> Iterable[str]:
        """The keys that leave."""
        chosen = self._app.settings.keys.get("app.quit", keys.QUIT.key)
        return [key.strip() for key in chosen.split(",")]

    def leave(self) -> None:
        """Leave; where something would be lost, at the second time."""
        screens = self._app.screen_stack
        lost = next((s.unsaved for s in screens if isinstance(s, Unsaved) and s.unsaved), "")
        if not lost or monotonic() - self._asked_at < AGAIN:
            self._app.exit()
            return
        self._asked_at = monotonic()
        key = self._app.get_key_display(keys.QUIT.with_key(next(iter(self.keys))))
        self._app.tell(f"{lost} Press {key} again to quit anyway.", "warning", timeout=AGAIN)
