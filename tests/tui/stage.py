"""A stage for tests of screens: hand-made Snapshots, and a fleet that shows them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from textual.app import App
from textual.geometry import Size
from textual.pilot import Pilot

from acp_core.fleet import Batch
from acp_core.history.forecast import Forecast
from acp_core.model import Action, Card, Finding, Severity, Snapshot, Status, Turn
from acp_core.model.matter import decision
from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_tui.actions.availability import load_descriptions
from acp_tui.app import AcpApp
from acp_tui.theme import readable
from tests.tui.support import NOW, make_snapshot


class WidgetApp(App[None]):
    """An app for widgets alone, with the colours of the dashboard."""

    def get_css_variables(self) -> dict[str, str]:
        return readable(super().get_css_variables())


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class StageFleet:
    """A fleet of hand-made Snapshots: `show` is what changes on disk would be."""

    has_turns = False

    def __init__(self, *snapshots: Snapshot, complete: bool = True, note: str = "") -> None:
        self.snapshots: dict[str, Snapshot] = {s.key: s for s in snapshots}
        self.offered: Sequence[Action] = ()
        self.touched: list[str] = []
        self.running: dict[str, tuple[Any, ...]] = {}
        self.closed = False
        self.forecast = Forecast()
        self._batches: asyncio.Queue[Batch] = asyncio.Queue()
        self._batches.put_nowait(Batch(tuple(snapshots), complete=complete, note=note))

    def show(self, *snapshots: Snapshot, gone: tuple[str, ...] = (), **others: Any) -> None:
        for snapshot in snapshots:
            self.snapshots[snapshot.key] = snapshot
        for key in gone:
            del self.snapshots[key]
        self._batches.put_nowait(Batch(tuple(snapshots), gone, **others))

    async def changes(self) -> AsyncIterator[Batch]:
        while True:
            yield await self._batches.get()

    def look_at(self, key: str) -> None:
        pass

    async def call(self, key: str, function: Callable[[Any], Any]) -> Any:
        return await asyncio.to_thread(function, self)

    def actions(self, now: datetime) -> Sequence[Action]:
        return self.offered

    def cards(self, now: datetime) -> Sequence[Card]:
        return ()

    def action(self, name: str, now: datetime) -> Action | None:
        return next((each for each in self.offered if each.called(name)), None)

    def whole(self, key: str) -> Any:
        return self.snapshots.get(key)

    def loops_of_others(self, key: str) -> tuple[Any, ...]:
        return ()

    def loops(self, key: str) -> tuple[Any, ...]:
        return self.running.get(key, ())

    def touch(self, key: str) -> None:
        self.touched.append(key)

    async def close(self) -> None:
        self.closed = True


def snapshot(name: str = "search-index", **others: Any) -> Snapshot:
    """A live collaboration that waits for one of its participants since 19 minutes."""
    since = NOW - timedelta(minutes=19)
    turns = (Turn("reader", "review proposal.md", since),)
    return make_snapshot(f"/work/{name}", **({"turns": turns, "since": since} | others))


def needy(name: str = "checkout-redesign", **others: Any) -> Snapshot:
    """A collaboration that needs a human."""
    since = NOW - timedelta(minutes=19)
    need = decision("stuck:1", "STUCK", "reader has not reviewed for 19 minutes", "reader", since)
    return snapshot(name, **({"needs": (need,)} | others))


def finished(name: str = "cache-eviction", **others: Any) -> Snapshot:
    """A collaboration that is over."""
    over = {
        "status": Status.COMPLETED,
        "phase": "completed",
        "progress": 1.0,
        "turns": (),
        "since": NOW - timedelta(days=3),
        "changed": NOW - timedelta(days=3),
        "headline": "Completed.",
    }
    return snapshot(name, **(over | others))


def with_findings(given: Snapshot, errors: int = 0, warnings: int = 0) -> Snapshot:
    """The same with so many findings."""
    findings = [Finding("E", Severity.ERROR, "wrong")] * errors
    findings += [Finding("W", Severity.WARNING, "odd")] * warnings
    return replace(given, findings=tuple(findings))


def dashboard(
    fleet: StageFleet,
    state: Path,
    *,
    settings: Mapping[str, Any] | None = None,
    clock: Callable[[], datetime] | None = None,
    paths: Sequence[str] = ("/work",),
) -> AcpApp:
    """The dashboard over a stage; what is seen is kept in ``state``. What acts are called is known at once."""
    load_descriptions("folder")
    return AcpApp(
        paths,
        settings=Settings(**(settings or {})),
        clock=clock or Clock(),
        fleet=fleet,  # type: ignore[arg-type]
        attention=Attention(state / "attention.json"),
    )


def screen_text(app: App[Any]) -> str:
    """What is on the screen, line by line."""
    width, height = app.size
    strips = app.screen._compositor.render_strips(Size(width, height))
    return "\n".join(strip.text.rstrip() for strip in strips)


async def until(pilot: Pilot[Any], condition: Callable[[], object], what: str = "it") -> None:
    """Wait until something holds; shows the screen where it never does."""
    for _ in range(2_000):
        await pilot.pause(0.01)
        if condition():
            return
        await pilot.pause(0.02)
    raise AssertionError(f"{what} did not happen:\n{screen_text(pilot.app)}")


async def shows(pilot: Pilot[Any], *texts: str) -> None:
    """Wait until all of it is on the screen."""
    await until(pilot, lambda: all(each in screen_text(pilot.app) for each in texts), str(texts))


async def hides(pilot: Pilot[Any], text: str) -> None:
    """Wait until it is on the screen no more."""
    await until(pilot, lambda: text not in screen_text(pilot.app), f"the end of {text!r}")


async def opens(pilot: Pilot[Any], name: str) -> Any:
    """Wait for the screen of that name to be on top, and give it."""
    await until(pilot, lambda: is_open(pilot.app, name), name)
    return pilot.app.screen


async def closes(pilot: Pilot[Any], name: str) -> None:
    """Wait until the screen of that name is on top no more."""
    await until(pilot, lambda: not is_open(pilot.app, name), f"the end of {name}")


def is_open(app: App[Any], name: str) -> bool:
    """Whether the screen of that name is on top."""
    return any(each.__name__ == name for each in type(app.screen).__mro__)


async def named_keys(pilot: Pilot[Any]) -> None:
    """Wait until the key that stops work is called what the collaboration in hand calls it."""
    app: Any = pilot.app
    await until(pilot, lambda: not app.fleet.snapshots or " b Stop" not in screen_text(app))
