"""What somebody who plays a scenario reads in the folder before writing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from acp_core.protocols.folder import schema
from acp_core.protocols.folder.rehearsal import writing
from acp_core.protocols.folder.rehearsal.scenario import Scenario, Write
from acp_core.protocols.folder.schema.deliverables import DEFAULT_DIR


class PlayedScenario:
    """A scenario beside the folder in which it is played."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self._scenario = scenario
        self._folder = folder

    def events(self) -> list[tuple[int, str, str]]:
        """Seq, kind and author of every event.

        Raises:
            OSError, ValueError, KeyError: the log cannot be read, or is not what the commands write.
        """
        lines = (self._folder / schema.LOG_FILE).read_bytes().split(b"\n")[:-1]
        events: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]
        return [(event["seq"], event["event"], event["from"]) for event in events]

    def latest(self, event: str) -> int:
        """The seq of the latest event of a kind.

        Raises:
            LookupError: there is none.
        """
        found = [seq for seq, kind, _ in self.events() if kind == event]
        if not found:
            raise LookupError(f"there is no {event} to reply to")
        return found[-1]

    def edit(self, write: Write, reply_to: int) -> tuple[Path, str, str]:
        """The file that ``write`` changes, its text now, and its text afterwards.

        Raises:
            OSError, ValueError: the file is not what the scenario expects.
        """
        path = self._folder / write.file
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        return path, old, writing.result(write, old, self._values(reply_to))

    def fill(self, text: str, reply_to: int) -> str:
        """A text of the scenario with its ``$names`` filled in."""
        return writing.fill(text, self._values(reply_to))

    def sha256(self) -> str:
        """The SHA-256 of the primary deliverable as it stands; "" where there is none."""
        deliverable = self._scenario.deliverable
        if deliverable is None:
            return ""
        path = self._folder / DEFAULT_DIR / deliverable.file
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""

    def _values(self, reply_to: int) -> dict[str, str]:
        """What the ``$names`` of a text stand for, now."""
        protocol = schema.decode_protocol((self._folder / schema.PROTOCOL_FILE).read_bytes())
        return {
            **writing.gate_lists(protocol),
            "objective": self._scenario.objective,
            "reply_to": str(reply_to),
            "sha256": self.sha256(),
        }
