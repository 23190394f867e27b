"""What the tests of folder collaborations share."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_core.protocols.folder.conduct import waiting
from acp_core.protocols.folder.read import checkpoint
from acp_core.protocols.folder.write import opened
from tests.protocols.folder.support import make_v1


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A v1 collaboration that was just begun."""
    return make_v1(tmp_path / "run", "drafting")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A v1 collaboration whose proposal the others are to review."""
    return make_v1(tmp_path / "run")


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept yet."""
    monkeypatch.setenv("ACP_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every log counts as long, and every new line as worth keeping."""
    monkeypatch.setattr(opened, "LONG", 1)
    monkeypatch.setattr(waiting, "LONG", 1)
    monkeypatch.setattr(checkpoint, "TAIL", 1)
    monkeypatch.setattr("acp_core.files.locked.QUIET", 0.0)  # here and below: nobody is writing
    monkeypatch.setattr(waiting, "QUIET", 0.0)
    monkeypatch.setattr(opened, "_PAUSE", 0.0)
