"""What the tests of protocols share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Acp


@pytest.fixture
def acp(tmp_path: Path) -> Acp:
    """acp with settings and a state of its own."""
    (tmp_path / "home").mkdir()
    return Acp(tmp_path / "home")
