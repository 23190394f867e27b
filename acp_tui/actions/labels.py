"""What the actions are called that needs ask for: looked up off the interface's thread, and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from acp_tui.actions.collaboration_actions import offered

if TYPE_CHECKING:
    from acp_core.model import Snapshot
    from acp_tui.app import AcpApp

AT_ONCE = 40
"""Collaborations that are asked in one go: no more stand on a screen."""

SOON = 0.2
"""Seconds until lines that were drawn are asked for: who scrolls past them asks nothing."""


class Labels:
    """The labels of actions, by collaboration and name."""

    def __init__(self, app: AcpApp, changed: Callable[[], None]) -> None:
        """Make it.

        Args:
            app: Its fleet is asked.
            changed: Called when more is known.
        """
        self._app = app
        self._changed = changed
        self._known: dict[tuple[str, str], str] = {}
        self._asked: dict[tuple[str, str], Snapshot] = {}
        self._soon: dict[tuple[str, str], Snapshot] = {}

    def of(self, key: str, action: str) -> str:
        """What an action is called; the words of its name until that is known."""
        return self._known.get((key, action)) or action.replace("_", " ").capitalize()

    def drawn(self, key: str, action: str) -> str:
        """As `of`, for a line that is drawn now: of a thousand only those are asked that show."""
        snapshot = self._app.fleet.snapshots.get(key)
        if snapshot is not None:
            self.want_soon([(snapshot, action)])
        return self.of(key, action)

    def want_soon(self, wanted: Iterable[tuple[Snapshot, str]]) -> None:
        """As `want`, once what was read is drawn: describing actions takes many modules."""
        for snapshot, action in wanted:
            place = snapshot.key, action
            if not self._knows(place, snapshot):
                if not self._soon:
                    self._app.set_timer(SOON, self._ask)
                self._soon[place] = snapshot

    def _ask(self) -> None:
        soon, self._soon = self._soon, {}
        self.want((snapshot, action) for (_, action), snapshot in soon.items())

    def _knows(self, place: tuple[str, str], snapshot: Snapshot) -> bool:
        return place in self._known or self._asked.get(place) is snapshot

    def want(self, wanted: Iterable[tuple[Snapshot, str]]) -> None:
        """See to it that the labels of these actions are known soon."""
        missing: dict[str, set[str]] = {}
        for snapshot, action in wanted:
            place = snapshot.key, action
            if self._knows(place, snapshot):
                continue
            if len(missing) == AT_ONCE and snapshot.key not in missing:
                break
            self._asked[place] = snapshot
            missing.setdefault(snapshot.key, set()).add(action)
        if missing:
            self._app.run_worker(self._request(missing), group="labels", exit_on_error=False)

    async def _request(self, missing: dict[str, set[str]]) -> None:
        changed = False
        for key, names in missing.items():
            try:
                actions = await offered(self._app, key)
            except Exception:  # a protocol's fault, or the collaboration is gone
                continue
            for action in actions:
                if action.name in names and action.label:
                    self._known[key, action.name] = action.label
                    changed = True
        if changed:
            self._changed()
