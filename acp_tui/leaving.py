"""Leaving the dashboard: from everywhere, but not with words half written."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from textual import events

from acp_tui import keys
from acp_tui.saying import Saying

if TYPE_CHECKING:
    from acp_core.person.settings import Settings

AGAIN = 6.0
"""Seconds in which a second wish to leave is obeyed: for so long the question is shown."""


@runtime_checkable
class Holding(Protocol):
    """A screen that may hold what would be lost."""

    @property
    def held(self) -> str:
        """What would be lost, as a sentence; "" where nothing would."""


class Leaving(Saying):
    """An app that is left by one key on every screen, and asks where something would be lost."""

    @property
    def settings(self) -> Settings:
        """The person's settings."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self._asked_at = float("-inf")

    async def on_key(self, event: events.Key) -> None:
        """Leave from a dialog too: it keeps what it does not know of from the app's bindings."""
        if self.screen.is_modal and event.key in self._keys_that_leave():
            event.stop()
            await self.action_quit()

    async def action_quit(self) -> None:
        """Leave; where something would be lost, at the second time."""
        held = next((s.held for s in self.screen_stack if isinstance(s, Holding) and s.held), "")
        if not held or monotonic() - self._asked_at < AGAIN:
            self.exit()
            return
        self._asked_at = monotonic()
        key = self.get_key_display(keys.QUIT.with_key(next(iter(self._keys_that_leave()))))
        self.tell(f"{held} {key} again leaves all the same.", "warning", timeout=AGAIN)

    def _keys_that_leave(self) -> Iterable[str]:
        chosen = self.settings.keys.get("app.quit", keys.QUIT.key)
        return [key.strip() for key in chosen.split(",")]
