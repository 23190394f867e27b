"""What acp keeps for itself stays in the test's own folder, never in the home folder."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("own")
    monkeypatch.setenv("ACP_STATE", str(folder / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(folder / "config"))
    return folder
