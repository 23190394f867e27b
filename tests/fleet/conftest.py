"""Many finished collaborations, and what is read of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import finished, rows


@pytest.fixture(scope="session")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished.folder(tmp_path_factory.mktemp("pattern"))


@pytest.fixture
def work(tmp_path: Path, pattern: Path) -> Path:
    """Many finished collaborations in one folder."""
    return rows.many(pattern, tmp_path / "work")


@pytest.fixture
def long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """All was written long before it is read; who changes a file waits for a `tick`."""
    rows.settle(monkeypatch)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the collaborations that are read, as they are."""
    names: list[str] = []
    rows.readings(monkeypatch, lambda reading: names.append(reading.name))
    return names
