"""A dashboard in a page of a browser ends with the server that started it, however that ended."""

from __future__ import annotations

import os
import signal
import threading
import time

EVERY = 1.0
"""Seconds between two looks at who our parent is."""

PATIENCE = 5.0
"""Seconds for an orderly end, which may fail: nobody reads what is drawn any more."""


def end_with_the_server() -> None:
    """Watch from now on, in a thread; the server is the parent of this process."""
    threading.Thread(target=_watch, args=(os.getppid(),), name="acp-page", daemon=True).start()


def _watch(server: int) -> None:
    while os.getppid() == server:
        time.sleep(EVERY)
    os.kill(os.getpid(), signal.SIGTERM)  # what the driver takes for a wish to leave
    time.sleep(PATIENCE)
    os._exit(1)
