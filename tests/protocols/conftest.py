"""What the tests of protocols share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import Acp
from tests.support import examples


@pytest.fixture
def acp(tmp_path: Path) -> Acp:
    """acp with settings and a state of its own."""
    (tmp_path / "home").mkdir()
    return Acp(tmp_path / "home")


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Temporary folders, and what acp keeps for itself, lie in memory while a property is tried.

    All examples of the property share them.
    """
    with tempfile.TemporaryDirectory(prefix="acp-tests-", dir=examples.MEMORY) as place:
        for name in ("ACP_STATE", "ACP_CONFIG", "ACP_CACHE"):
            monkeypatch.setenv(name, f"{place}/{name.lower()}")
        monkeypatch.setenv("TMPDIR", place)
        monkeypatch.setattr(tempfile, "tempdir", place)
        yield Path(place)
