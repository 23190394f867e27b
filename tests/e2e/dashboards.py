"""The real dashboard in a terminal of its own, where people answer what agents ask."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from acp_core.agents.live import answers
from acp_core.agents.live.answers import OpenRequest
from tests.agents.live.commands import environment
from tests.support.terminal import NotShown, Terminal
from tests.support.waiting import until

ALLOW, REJECT = "1", "2"
"""The keys of the verdicts on the card of a request: allow it this once, and reject it."""
_AGAIN = 20.0  # seconds after which a card that did not open is opened again
_ESCAPE = "\x1b"


def dashboard(folder: Path) -> Terminal:
    """The real dashboard in a terminal of its own."""
    words = [sys.executable, "-m", "acp_tui", str(folder)]
    return Terminal(words, env=environment(), cwd=folder.parent, columns=150, rows=45)


def answer_by_key(terminal: Terminal, opened: OpenRequest, key: str, patience: float) -> None:
    """Answer a request on its card in a dashboard that is open, by a key."""
    end = time.monotonic() + patience
    while True:
        terminal.wait_for("asks", patience)
        terminal.run(0.5)
        terminal.send("f")
        try:
            terminal.wait_for("Allow once", _AGAIN)
            break
        except NotShown:  # another need was on top when the key came
            if terminal.ended or time.monotonic() > end:
                raise
            terminal.send(_ESCAPE)
    terminal.run(0.5)
    terminal.send(key)
    until(lambda: not answers.is_published(opened), "the answer", patience)
