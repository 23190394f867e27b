"""What the tests of governed runs share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.protocols.governed.acting import start


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A run in a repository, with scripted agents beside it."""
    return start(tmp_path / "lamp")
