"""Tells the person before the dashboard, or away from it, that something needs them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from acp_core.model.format import count, grouped, zoned
from acp_core.person import notices
from acp_core.person.notices import Message, News, is_quiet
from acp_tui.keys import called

if TYPE_CHECKING:
    from acp_core.model import Matter, Snapshot
    from acp_tui.app import AcpApp

MOST = 3
"""How many messages are sent one by one; more than that at once become one."""


class Notifier:
    """Bell, terminal, desktop, command and webhook, once for everything that is new.

    Args:
        app: The dashboard.
    """

    def __init__(self, app: AcpApp) -> None:
        self._app = app
        self._news = News()
        self._reported: set[str] = set()

    def announce(
        self, fleet: Iterable[tuple[Snapshot, Iterable[Matter]]], *, complete: bool
    ) -> None:
        """See how the fleet stands, and tell what is new in it."""
        news = self._news.update(self._app.now(), fleet, complete=complete)
        if not news:
            return
        wanted = notices.parse(self._app.settings.notify)
        messages = [message for message in news if wanted.tells(message.kind)]
        if not messages or is_quiet(wanted.quiet, zoned(self._app.now()).time()):
            return
        if self._app.settings.bell:
            self._app.terminal.bell()
        key = called(self._app, "act.remedy")
        for message in _few(messages):
            self._app.terminal.notice(message.title, message.text(key), wanted.terminal)
        self._app.run_worker(
            self._send(messages, wanted, key), group="notices", exit_on_error=False
        )

    async def _send(self, messages: list[Message], wanted: notices.Ways, key: str) -> None:
        ours = await asyncio.to_thread(notices.take_unsent, messages, self._app.now())
        for message in _few(ours):
            desktop = self._app.terminal.reachable
            problems = await asyncio.to_thread(notices.tell, message, wanted, key, desktop=desktop)
            for problem in problems:
                if problem not in self._reported:  # once: it would be said again with every notice
                    self._reported.add(problem)
                    self._app.tell(f"Could not send the notification: {problem}", "warning")


def _few(messages: list[Message]) -> list[Message]:
    return messages if len(messages) <= MOST else [_combined(messages)]


def _combined(messages: list[Message]) -> Message:
    names = list(dict.fromkeys(message.collaboration for message in messages))
    more = f" and {grouped(len(names) - MOST)} more" if len(names) > MOST else ""
    where = f"{', '.join(names[:MOST])}{more}"
    return Message(messages[0].kind, where, "", "", count(len(messages), "update"))
