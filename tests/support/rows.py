"""Fleets of so many finished collaborations that their rows are kept between runs."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from acp_core.files import tree_state
from acp_core.model import Snapshot
from acp_core.protocols.folder.collaboration import FolderCollaboration

SIZE = 34  # as few as are kept at all, and two


class Reading(NamedTuple):
    """That a collaboration was read, and by which thread."""

    name: str
    thread: threading.Thread


def many(pattern: Path, work: Path) -> Path:
    """As many finished collaborations in one folder, all like the pattern."""
    for number in range(SIZE):
        shutil.copytree(pattern, work / f"c{number:02}")
    return work


def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything have been written long before it is read."""
    monkeypatch.setattr(tree_state, "now", lambda: time.time() + 3_600)


def readings(monkeypatch: pytest.MonkeyPatch, tell: Callable[[Reading], None]) -> None:
    """Tell of whatever is read of shared folders from now on."""
    refresh = FolderCollaboration.refresh

    def noted(self: FolderCollaboration, now: datetime) -> Snapshot:
        tell(Reading(os.path.basename(self.key), threading.current_thread()))
        return refresh(self, now)

    monkeypatch.setattr(FolderCollaboration, "refresh", noted)
