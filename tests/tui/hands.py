"""A person at the keys, whose key presses are counted, and the agents that are installed there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from acp_core.protocols import registry as protocols
from tests.loops import support


class Hands:
    """Presses keys, and counts those that are no typed text."""

    def __init__(self, pilot: Pilot[Any]) -> None:
        self.pilot, self.keys = pilot, 0

    async def key(self, *keys: str) -> None:
        self.keys += len(keys)
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        names = {"\n": "enter", " ": "space"}
        await self.pilot.press(*(names.get(each, each) for each in text))


@contextmanager
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Have Claude Code and Codex installed, and no other agent; gives the folder of programs."""
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path / "config"))
    monkeypatch.setattr(protocols, "_handed_in", {})
    protocols.hand_in(protocols.START, "acp_core.loops.acts.starting:NEW_FOLDER_STARTER")
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("codex", "claude"):
        support.stand_in(folder, name)
    python = Path(sys.executable).parent
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), str(python), "/usr/bin", "/bin"]))
    yield folder
    support.stop_all()
