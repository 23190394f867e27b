"""The journal of one turn: every message of the session as it came, a line of JSON each.

It is what the watcher of the turn reads while it runs, and what stays of it. Long texts are cut,
what looks like a secret is masked, and only its owner can read it.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from acp_core.files.atomic import write_all
from acp_core.files.secrets import mask

LONGEST = 64_000  # characters of one text; the rest is cut
MOST = 3  # entries that stay of lists which only say what there would be
LIMIT = 64 << 20  # bytes of one journal; what comes then is left out
_DEPTH = 60
_CATALOGUES = ("availableCommands", "availableModels", "configOptions")

AGENT, CLIENT, RUNNER = "agent", "client", "runner"


class Journal:
    """Appends what happens in a turn to its file.

    A message that cannot be written (a full disk) is lost: that stops no session.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._full = False

    def write(self, direction: str, message: dict[str, Any], now: float) -> None:
        """Append a message.

        Args:
            direction: who it is from: `AGENT`, `CLIENT`, or `RUNNER` for a note of our own.
            message: as it came.
            now: seconds since 1970.
        """
        record = {"at": round(now, 3), "direction": direction, "message": reduced(message)}
        line = json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        with contextlib.suppress(OSError):
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if direction == RUNNER or os.fstat(fd).st_size + len(line) <= LIMIT:
                    write_all(fd, line)
                elif not self._full:
                    self._full = True
                    self.write(RUNNER, {"note": "The journal is full: messages are left out."}, now)
            finally:
                os.close(fd)


def reduced(value: Any, name: str = "", depth: int = 0) -> Any:
    """A message with long texts cut, catalogues shortened and secrets masked.

    Args:
        value: the message, or a part of it.
        name: of the field that holds it.
        depth: how deep that is.
    """
    if isinstance(value, str):
        return _masked(value, name)
    if depth > _DEPTH:
        return "…"
    if isinstance(value, dict):
        return {mask(str(key)): reduced(each, str(key), depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        items = value[:MOST] if name in _CATALOGUES else value
        return [reduced(each, "", depth + 1) for each in items]
    return value


def _masked(text: str, name: str) -> str:
    """A text, masked also where only the name of its field says that it is a secret."""
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}… (cut: {len(text):,} characters)"
    lead = f"{name}="
    together = mask(lead + cut)
    return together[len(lead) :] if together.startswith(lead) else mask(cut)
