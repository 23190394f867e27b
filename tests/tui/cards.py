"""A collaboration on the dashboard, and the card of what it needs."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from tests.support import forked
from tests.tui.screen import seen
from tests.tui.stage import opens, shows, until

Press = Callable[[str], Awaitable[None]]
THEMES = ("textual-dark", "textual-light", "ansi-dark")
SIZES = ((120, 36), (80, 24), (200, 50))


@asynccontextmanager
async def dashboard(
    root: Path, state: Path, size: tuple[int, int] = (120, 36), *, needs: bool = True
) -> AsyncIterator[Pilot[Any]]:
    """The dashboard on one collaboration, which needs somebody where ``needs`` says so."""
    app = AcpApp(
        [str(root)], settings=Settings(bell=False), attention=Attention(state / "attention.json")
    )
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: not needs or "f: " in seen(pilot))
        yield pilot


async def open_card(pilot: Pilot[Any], press: Press | None = None) -> Any:
    """Press the key of the first need, and wait until its card is drawn.

    Args:
        pilot: Drives the dashboard.
        press: Presses the key, where somebody counts.
    """
    await (press or pilot.press)("f")
    return await drawn_card(pilot)


async def drawn_card(pilot: Pilot[Any]) -> Any:
    """Wait until the card that was asked for is drawn; `acp card` shows the same."""
    screen = await opens(pilot, "CardScreen")
    await until(pilot, lambda: screen._drawn_at < time.monotonic())
    await shows(pilot, "1 ")
    await asyncio.to_thread(agrees, screen)
    await pictured(pilot)
    return screen


def agrees(screen: Any) -> None:
    """`acp card` prints every fact that the card on the screen shows, and decides on the same matter."""
    card = screen.card
    assert card is not None
    ran = forked.run(("card", screen.key), Path.cwd(), dict(os.environ), "")
    printed = "".join(ran.stdout.split())
    shown = [card.title, card.claim, card.digest, *(each.label for each in card.verdicts)]
    for item in screen.facts.items:
        shown += [text for text, _ in item.pieces]
    for each in shown:
        assert "".join(each.split()) in printed, (
            f"{each!r} is not printed:\n{ran.stdout}{ran.stderr}"
        )


async def pictured(pilot: Pilot[Any]) -> None:
    """Take pictures of the card, where `screenshots/cards.py` asks for them: then the test ends."""
    place = os.environ.get("ACP_PICTURES")
    if not place:
        return
    app, name = pilot.app, os.environ["PYTEST_CURRENT_TEST"].split("::")[-1].split(" ")[0]
    name = re.sub(r"\[.*", "", name.removeprefix("test_"))
    everywhere = os.environ.get("ACP_PICTURES_EVERYWHERE") == "1"
    for theme in THEMES if everywhere else THEMES[:1]:
        app.theme = theme
        for width, height in SIZES if everywhere else SIZES[:1]:
            await pilot.resize_terminal(width, height)
            await pilot.pause(0.3)
            drawn = app.export_screenshot(title="acp")
            unique = f"{name}.{theme}-{width}x{height}" if everywhere else name
            _save(Path(place, f"{unique}.svg"), re.sub(r"\bterminal-\d+", "card", drawn))
    pytest.skip("the picture is taken; what is decided on the card is tested without one")


def _save(path: Path, drawn: str) -> None:
    """Save the picture of the first card that a test opens."""
    if not path.exists():
        path.write_text(drawn, encoding="utf-8")
