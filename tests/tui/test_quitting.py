"""Whoever leaves while a screen is being made gets no traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from acp_tui.screens.collaboration import CollaborationScreen
from acp_tui.screens.fleet import FleetScreen
from tests.protocols.folder.support import make_v1


@pytest.mark.parametrize("made", [FleetScreen, CollaborationScreen])
async def test_leaving_while_a_screen_is_made_is_quiet(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    made: type[Any],
) -> None:
    """As a signal does that comes while the dashboard starts, and a hasty key."""
    make_v1(tmp_path / "checkout", "reviewing")
    compose = made.compose
    left = []

    def leave(self: Any) -> Any:
        left.append(self)
        self.app.exit()
        return compose(self)

    monkeypatch.setattr(made, "compose", leave)
    app = AcpApp([str(tmp_path / "checkout")], settings=Settings())
    await app.run_async(headless=True, size=(120, 36))
    assert left and app.return_code == 0
    assert capfd.readouterr().err == ""


async def test_a_fault_is_told_also_while_the_dashboard_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fault(self: AcpApp) -> None:
        self.exit()
        raise ZeroDivisionError

    monkeypatch.setattr(AcpApp, "on_mount", fault)
    app = AcpApp([str(tmp_path)], settings=Settings())
    await app.run_async(headless=True, size=(120, 36))
    assert app.return_code == 1
    assert "ZeroDivisionError" in capfd.readouterr().err
