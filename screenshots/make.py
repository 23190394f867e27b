"""Makes the pictures in this folder: every screen, dark and light, in two sizes.

    python screenshots/make.py            # all of them, here
    python screenshots/make.py -o DIR     # somewhere else
    python screenshots/make.py fleet help # only these screens

The dashboard that is drawn is the real one, on real collaborations that are made for it in a
folder of a fixed name with fixed times: the same code always makes the same pictures.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from textual.app import App
from textual.geometry import Size
from textual.pilot import Pilot
from textual.widgets import Button, Input

from acp_core.agents.codec import encode
from acp_core.agents.logs import Log
from acp_core.agents.loop_directory import place
from acp_core.agents.processes import Identity
from acp_core.agents.state import Phase, Run, Saved
from acp_core.fleet import Fleet, live
from acp_core.history.recorder import Recorder
from acp_core.loops.launch import Spec, save_spec
from acp_core.person.attention import Attention
from acp_core.person.paths import key_of
from acp_core.person.settings import Settings
from acp_core.protocols.discovery import identify
from acp_core.protocols.folder.rehearsal import scenario as samples
from acp_core.protocols.folder.rehearsal.scenario import SCENARIOS, Exhibit, load, make_fleet
from acp_core.protocols.registry import bundled
from acp_tui.app import AcpApp
from acp_tui.screens.collaboration import CollaborationScreen
from acp_tui.screens.fleet import FleetScreen

NOW = datetime(2026, 5, 4, 14, 3, tzinfo=UTC)
PLACE = Path(tempfile.gettempdir(), "acp-pictures")  # paths are in the pictures: always the same
STATE = PLACE / ".state"
LEARNED = PLACE / ".learned"  # the same before any picture was made
LIVE = PLACE / "live" / "order-retries"  # goes on while it is looked at
THEMES = {"dark": "textual-dark", "light": "textual-light"}
SIZES = ((120, 36), (80, 24))
PATIENCE = 30.0  # seconds for one picture
PAUSE = 0.15  # seconds between two looks at whether the picture still changes
_NUMBER = re.compile(r"\bterminal-\d+")
STILL = 3  # looks in a row that must see the same picture

Screen = Callable[[Pilot[None]], Awaitable[None]]


class Picture(NamedTuple):
    """A screen: the folder that is opened, below the person's own, and how to get there."""

    name: str
    folder: str
    go: Screen


def keys(*steps: str) -> Screen:
    """Press keys one after the other; ``see ...`` waits until the text is on the screen."""

    async def go(pilot: Pilot[None]) -> None:
        for step in steps:
            if step.startswith("see "):
                await seen(pilot, step.removeprefix("see "))
            else:
                await pilot.press(step)

    return go


def filled(action: str, values: dict[str, object], *steps: str) -> Screen:
    """Press keys that lead to a form in which something was typed already."""

    async def go(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, AcpApp)
        key = "" if action == "create" else str(app.paths[0])
        app.drafts[key, action] = values
        await keys(*steps)(pilot)
        await until(pilot, lambda: not app.screen.query_one("#do", Button).disabled, "a preview")

    return go


async def begin(pilot: Pilot[None]) -> None:
    """The form of a new collaboration, with a short name for its folder."""
    values: dict[str, object] = {
        "objective": "Decide how the nightly export resumes after a failure.",
        "participants": ["exporter", "warehouse"],
        "gates": ["No row is exported twice", "A resumed export says where it began"],
    }
    await filled("create", values, "see column-rename", "n", "see Objective")(pilot)
    pilot.app.screen.query_one("#folder", Input).value = "export-resume"
    await seen(pilot, "work/export-resume.")  # the preview speaks of it


async def watch_it_change(pilot: Pilot[None]) -> None:
    """A second proposal and the first review of it come while somebody looks."""
    await seen(pilot, "server looks the key up" if pilot.app.size.width > 100 else "oncall")
    if pilot.app.size.width <= 100:
        await keys("2", "see server looks the key up")(pilot)
    scenario = load("order-retries")
    for step, minutes in zip(scenario.steps[3:5], (19, 8), strict=True):
        samples.take(step, scenario, LIVE, NOW - timedelta(minutes=minutes))
    await seen(pilot, "round 2")
    await seen(pilot, "since your last visit")
    await seen(pilot, "usually ")  # read from the recordings meanwhile
    await seen(pilot, "Start loops")  # how it can be started is asked when its phase has changed
    await pilot.press("2", "n")  # to the first of the changes


# In the past: from the end to the beginning, then on to the second proposal.
TO_SECOND_ROUND = (
    "see of",
    "left_curly_bracket",
    "see 1 of",
    *["shift+right"] * 5,
    "see proposal_submitted",
    "see round 2",
)

PICTURES = (
    Picture("fleet", "work", keys("see column-rename")),
    Picture("collaboration", "live/order-retries", watch_it_change),
    Picture("findings", "work/metric-names", keys("see review_submitted", "3", "see ACP215")),
    Picture("blocked", "work/session-tokens", keys("see 13:16")),
    Picture(
        "continue",
        "work/session-tokens",
        filled(
            "continue",
            {"answer": "All devices. Signing in again is a nuisance, a stranger is not."},
            *("see 13:16", "f", "see 1  ", "e", "see Answer"),
        ),
    ),
    Picture("card", "work/session-tokens", keys("see 13:16", "f", "see 1  ")),
    Picture(
        "completed",
        "work/page-cursors",
        keys("see Outcome"),
    ),
    Picture("new", "work", begin),
    Picture("help", "work/order-retries", keys("see review_submitted", "question_mark")),
    Picture(
        "actions", "work/index-rebuild", keys("see proposal_submitted", "x", "see Start all loops")
    ),
    Picture("inbox", "work", keys("see column-rename", "exclamation_mark", "see Inbox")),
    Picture("causes", "work/webhook-signatures", keys("see Timeline", "w", "see or enter")),
    Picture("participant", "work/webhook-signatures", keys("see Timeline", "p", "see /login")),
    Picture(
        "launch",
        "work/webhook-signatures",
        keys("see Timeline", "L", "see Start loops", "enter", "see claude", "c", "enter"),
    ),
    Picture("times", "past", keys("see order-retries", "T", "see phases")),
    Picture("replay", "past", keys("see order-retries", "R", *TO_SECOND_ROUND)),
    Picture(
        "compare",
        "past",
        keys("see order-retries", "R", *TO_SECOND_ROUND, "2", "C", "see changed: "),
    ),
    Picture("empty", "empty", keys("see acp new")),
)


def shown(app: App[Any]) -> str:
    """What is on the screen, line by line."""
    strips = app.screen._compositor.render_strips(Size(*app.size))
    return "\n".join(strip.text.rstrip() for strip in strips)


async def seen(pilot: Pilot[None], text: str) -> None:
    """Wait until a text is on the screen.

    Raises:
        TimeoutError: it does not come.
    """
    await until(pilot, lambda: text in shown(pilot.app), repr(text))


async def until(pilot: Pilot[None], true: Callable[[], bool], what: str) -> None:
    """Wait for something.

    Raises:
        TimeoutError: it does not come.
    """
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not come:\n{shown(pilot.app)}")
        await pilot.pause(PAUSE)


async def learned(pilot: Pilot[None]) -> None:
    """Wait until the screen shows all that its collaborations teach of how long things take.

    Raises:
        TimeoutError: it does not come.
    """
    app = pilot.app
    assert isinstance(app, AcpApp)

    def shown() -> bool:
        forecast, screen = app.fleet.forecast, app.screen
        if not app.fleet.forecasting.is_up_to_date:
            return False
        if isinstance(screen, CollaborationScreen):
            return screen.data is not None and screen.data.forecast is forecast
        listed = isinstance(screen, FleetScreen) and screen.furnished
        return not listed or screen.table.forecast is forecast

    await until(pilot, shown, "the usual durations")


async def at_rest(pilot: Pilot[None]) -> str:
    """The picture, once it no longer changes, with all that is learned.

    Raises:
        TimeoutError: it does not come to rest.
    """
    await learned(pilot)
    end, named = time.monotonic() + PATIENCE, time.monotonic() + 15
    last, same = "", 0
    while same < STILL:
        if time.monotonic() > end:
            raise TimeoutError("the screen does not come to rest")
        await pilot.pause(PAUSE)
        now = pilot.app.export_screenshot(title="acp")
        # Until it is known what can be stopped ("Block"), which takes a moment.
        unnamed = " b Stop" in shown(pilot.app) and time.monotonic() < named
        last, same = (now, same + 1) if now == last and not unnamed else (now, 0)
    return last


async def take(picture: Picture, theme: str, size: tuple[int, int]) -> str:
    """The picture as SVG."""
    state = Path(tempfile.mkdtemp(dir=PLACE, prefix=".state-"))
    begin_again()
    samples.make(Exhibit("order-retries", SCENARIOS, ago=26, steps=3), LIVE, NOW)
    attention = Attention(state / "attention.json")
    remember_half(PLACE / "work" / "order-retries", attention)
    settings = Settings(theme=THEMES[theme], utc=True, bell=False)
    app = AcpApp(
        [str(PLACE / picture.folder)], settings=settings, clock=lambda: NOW, attention=attention
    )
    app.animation_level = "none"  # nor does a cursor blink
    async with app.run_test(size=size) as pilot:
        await learned(pilot)  # what is opened over a screen stops its clock
        await picture.go(pilot)
        return await at_rest(pilot)


def remember_half(folder: Path, attention: Attention) -> None:
    """Let the person have looked before the last two events, so that something is new to them."""
    found = identify(folder, bundled())
    if found is None:
        raise FileNotFoundError(f"{folder}: no collaboration")
    snapshot = found.open().refresh(NOW)
    attention.visited(replace(snapshot, events=snapshot.events[:-2]), NOW - timedelta(minutes=24))


def leave_a_loop(folder: Path, participant: str) -> None:
    """What a loop left that gave up: its program was not logged in."""
    where = place(str(folder), participant)
    where.make()
    began = NOW - timedelta(minutes=6)
    said = "Invalid API key · Please run /login"
    log = Log(where.log)
    log.write("loop", f"a loop for {participant} with Claude Code starts", began)
    nobody = Identity(2**22 - 1, began.timestamp())  # a process that there is not
    run: Run | None = None
    for number, minutes in enumerate((0, 1, 3), 1):
        start = began + timedelta(minutes=minutes)
        end = start + timedelta(seconds=2)
        log.write("loop", f"attempt {number} of 3: revise the proposal", start)
        log.write("out", said, end)
        log.write("loop", "the program ended: exit code 1; its event did not appear", end)
        run = Run(number, nobody, start, end, 1, exit="exit code 1", lines=(said,), is_error=True)
        run = replace(run, error=said, last_output=end)
    log.write("loop", "gave up after 3 attempts; a person is needed", NOW - timedelta(minutes=2))
    saved = Saved(
        folder=key_of(str(folder)),
        participant=participant,
        process=nobody,
        started=began,
        program="claude",
        version="2.1.0",
        command=("claude", "-p", "--output-format", "stream-json", "--verbose"),
        workdir=str(folder),
        phase=Phase.GAVE_UP,
        since=NOW - timedelta(minutes=2),
        turn="4",
        attempt=3,
        attempts=3,
        restarts=2,
        run=run,
    )
    where.state.write_bytes(encode(saved))
    save_spec(Spec(folder=str(folder), participant=participant, name="claude"), where)


def record_a_story(folder: Path) -> None:
    """Carry a story out while a recorder looks on, at fixed times."""
    scenario = load("order-retries")
    times = [NOW - timedelta(minutes=7 * left) for left in range(len(scenario.steps), -1, -1)]
    samples.start(scenario, folder, times[0])
    record(folder, times[0])
    for step, at in zip(scenario.steps, times[1:], strict=True):
        samples.take(step, scenario, folder, at)
        record(folder, at)


def record(folder: Path, at: datetime) -> None:
    """Record what stands there, as if the log had been written at that time."""
    for name in ("events.jsonl", "protocol.json"):
        os.utime(folder / name, (at.timestamp(), at.timestamp()))
    recorder = Recorder("pictures", clock=at.timestamp)
    Fleet([folder], recorder=recorder, clock=lambda: at).read()
    recorder.close()


def settle_in() -> None:
    """Make the person's home folder with its collaborations, and live there.

    Raises:
        FileExistsError: somebody else uses the place.
    """
    PLACE.mkdir(mode=0o700)
    (PLACE / "empty").mkdir()
    os.environ |= {
        "HOME": str(PLACE),
        "TZ": "UTC",
        "ACP_STATE": str(STATE),
        "ACP_CONFIG": str(PLACE / ".config"),
        "COLORTERM": "truecolor",
    }
    os.environ.pop("NO_COLOR", None)
    time.tzset()
    program = PLACE / "bin" / "claude"  # whatever else is installed, or is not
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho '2.1.0 (Claude Code)'\n")
    program.chmod(0o755)
    beside = Path(sys.executable).with_name("acp")  # commands name acp by a path: always the same
    (program.parent / "acp").symlink_to(beside)
    os.environ["PATH"] = f"{program.parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
    make_fleet(PLACE / "work", NOW)
    record_a_story(PLACE / "past" / "order-retries")
    leave_a_loop(PLACE / "work" / "webhook-signatures", "sender")
    person = Fleet([PLACE / "work", PLACE / "past"], clock=lambda: NOW)
    person.read(teaches=True)
    person.learn()  # how long things usually take
    shutil.copytree(STATE, LEARNED)


def begin_again() -> None:
    """Forget what an earlier picture left: what it recorded, what was learned from it."""
    for left in (STATE, LIVE):
        shutil.rmtree(left, ignore_errors=True)
    shutil.copytree(LEARNED, STATE)


@contextmanager
def settled_in() -> Iterator[None]:
    """What the pictures show, for as long as some are made. Whoever else makes some waits."""
    live.REST = 0.0  # there are no floods of changes here
    with PLACE.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(PLACE, ignore_errors=True)  # left by what was killed
        try:
            settle_in()
            yield
        finally:
            shutil.rmtree(PLACE, ignore_errors=True)


def main() -> int:
    """Make the pictures that were asked for; the exit code."""
    parser = argparse.ArgumentParser(description="Make the pictures of every screen.")
    names = [picture.name for picture in PICTURES]
    parser.add_argument("screens", nargs="*", metavar="SCREEN", help=f"of {', '.join(names)}")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent, metavar="DIR")
    given = parser.parse_args()
    unknown = sorted(set(given.screens) - set(names))
    if unknown:
        parser.error(f"no screen {', '.join(unknown)}; there are: {', '.join(names)}")
    output: Path = given.output.absolute()
    output.mkdir(parents=True, exist_ok=True)
    with settled_in():
        for picture in PICTURES:
            if not given.screens or picture.name in given.screens:
                make(picture, output)
    return 0


def make(picture: Picture, output: Path) -> None:
    """Make one screen's pictures."""
    for theme in THEMES:
        for size in SIZES:
            name = f"{picture.name}-{theme}-{size[0]}x{size[1]}"
            path = output / f"{name}.svg"
            drawn = asyncio.run(take(picture, theme, size))
            # Rich names the classes after a number that is another one in each process.
            path.write_text(_NUMBER.sub(name, drawn), encoding="utf-8")
            print(path.name)


if __name__ == "__main__":
    sys.exit(main())
