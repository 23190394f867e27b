"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Acp
from tests.support import toy


@pytest.fixture
def acp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Acp:
    """acp, with the toy protocol installed beside its own ones."""
    (tmp_path / "home").mkdir()
    return Acp(tmp_path / "home", toy.register(monkeypatch, tmp_path / "installed"))
