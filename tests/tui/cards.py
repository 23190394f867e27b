"""A collaboration on the dashboard, and the card of what it needs."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from acp_tui.screens.card import CardScreen
from tests.tui.screen import seen
from tests.tui.stage import until


@asynccontextmanager
async def dashboard(
    root: Path, state: Path, size: tuple[int, int] = (120, 36), *, needs: bool = True
) -> AsyncIterator[Pilot[Any]]:
    """The dashboard on one collaboration, which needs somebody where ``needs`` says so."""
    app = AcpApp(
        [str(root)], settings=Settings(bell=False), attention=Attention(state / "attention.json")
    )
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: not needs or "f fix" in seen(pilot))
        yield pilot


async def open_card(pilot: Pilot[Any]) -> CardScreen:
    """Press the key of the first need, and wait until its card is drawn."""
    await pilot.press("f")
    await until(pilot, lambda: isinstance(pilot.app.screen, CardScreen))
    screen = pilot.app.screen
    assert isinstance(screen, CardScreen)
    await until(pilot, lambda: screen._drawn_at < time.monotonic())
    await until(pilot, lambda: "1 " in seen(pilot))
    return screen
