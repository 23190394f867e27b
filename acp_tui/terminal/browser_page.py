"""A dashboard in a page of a browser: ends with its server, and notes when somebody uses it."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.driver import Driver

EVERY = 1.0
"""Seconds between two looks at who our parent is."""

PATIENCE = 5.0
"""Seconds for an orderly end, which may fail: nobody reads what is drawn any more."""

NOTED = 20.0
"""Seconds between two notes that somebody uses the page."""


def page_driver(driver: type[Driver]) -> type[Driver]:
    """The driver for a page, which notes when a person uses it.

    Requests of agents are rejected after some minutes only where a person was there to answer;
    in a terminal, the system itself notes that.
    """
    from textual import events

    from acp_core.agents.live.answers import note_page_used

    class PageDriver(driver):  # type: ignore[valid-type, misc]
        """Notes keys and the mouse; its messages come in a thread of their own."""

        _noted_at = float("-inf")

        def process_message(self, message: Any) -> None:
            is_input = isinstance(message, events.InputEvent | events.Paste)
            if is_input and time.monotonic() - self._noted_at > NOTED:
                self._noted_at = time.monotonic()
                note_page_used()
            super().process_message(message)

    return PageDriver


def end_with_the_server() -> None:
    """Watch from now on, in a thread; the server is the parent of this process."""
    threading.Thread(
        target=_watch_server, args=(os.getppid(),), name="acp-page", daemon=True
    ).start()


def _watch_server(server: int) -> None:
    while os.getppid() == server:
        time.sleep(EVERY)
    os.kill(os.getpid(), signal.SIGTERM)  # what the driver takes for a wish to leave
    time.sleep(PATIENCE)
    os._exit(1)
