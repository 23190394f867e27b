"""A participant's loop and its log, read from real files while they grow."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.events import Key
from textual.pilot import Pilot

from acp_core.agents.logs import Log, rotate
from acp_core.agents.state import Phase
from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from acp_tui.screens.action import ActionScreen
from acp_tui.screens.collaboration import CollaborationScreen
from acp_tui.screens.participant import ParticipantScreen
from acp_tui.widgets.lines import text_of
from acp_tui.widgets.log_view import KEPT, LogView
from tests.agents.support import wait_for
from tests.loops.support import command, make, start, state, stop_all
from tests.tui.screen import make_app, open_screen, seen, settle
from tests.tui.stage import until
from tests.tui.support import HOSTILE, KEY, NOW, make_snapshot
from tests.tui.test_why_and_people import make_loop, stuck

SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"


def stage(folder: Path, *lines: str) -> tuple[AcpApp, Log]:
    """A dashboard, and the log of the reader's loop with some lines."""
    log = Log(folder / "log")
    for line in lines:
        log.write("out", line, NOW)
    out, err = folder / "1.out", folder / "1.err"
    out.write_bytes(b'{"type":"raw","key":"' + SECRET.encode() + b'"}\n')
    err.write_bytes(b"warning: \x1b[31mred\x1b[0m\n")
    app = make_app(stuck(), folder=folder)
    loop = make_loop(log=str(log._path))
    run = replace(loop.shown.run, out=str(out), err=str(err))  # type: ignore[type-var]
    fleet: Any = app.fleet
    fleet.running[KEY] = (replace(loop, shown=replace(loop.shown, run=run)),)
    return app, log


async def open_log(pilot: Pilot[Any]) -> ParticipantScreen:
    await open_screen(pilot)
    await pilot.press("p")
    await settle(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, ParticipantScreen)
    await until(pilot, lambda: screen.view.rows)
    return screen


def logged(screen: ParticipantScreen) -> list[str]:
    return [text_of(row) for row in screen.view.rows]


async def test_the_log_grows_before_ones_eyes(tmp_path: Path) -> None:
    app, log = stage(tmp_path, "I read the proposal.")
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_log(pilot)
        shown = seen(pilot)
        assert "reader  reviewer · agent  in checkout-redesign" in shown
        assert "using Bash 3m  attempt 2 of 4 · 11k in, 2.3k out · $0.31" in shown
        assert "! The program of reader ended without a review (certain)" in shown
        assert "12:50:00 out  I read the proposal." in shown
        log.write("loop", "the program ended", NOW)
        await until(pilot, lambda: "the program ended" in seen(pilot))
        rotate(tmp_path / "log")
        log.write("loop", "a new file", NOW)
        await until(pilot, lambda: "a new file" in seen(pilot))
        await until(
            pilot,
            lambda: (
                [line[14:] for line in logged(screen)]
                == [
                    "I read the proposal.",
                    "the program ended",
                    "a new file",
                ]
            ),
        )
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, CollaborationScreen)


async def test_what_the_program_printed_shows_raw_without_secrets_or_escapes(
    tmp_path: Path,
) -> None:
    app, _ = stage(tmp_path, f"my key is {SECRET}", *HOSTILE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await open_log(pilot)
        assert SECRET not in "\n".join(logged(screen))
        assert "my key is sk-a********" in logged(screen)[0]
        assert len(screen.view.rows) == 1 + len(HOSTILE)
        await pilot.press("r")
        await until(pilot, lambda: len(screen.view.rows) == 2)
        text = "\n".join(logged(screen))
        assert SECRET not in text and "\x1b" not in text
        assert "␛[31mred" in text and '"type":"raw"' in text
        assert "\x1b" not in seen(pilot)


@pytest.mark.slow
async def test_scrolling_up_lets_go_of_the_end_and_the_end_takes_hold_again(
    tmp_path: Path,
) -> None:
    app, log = stage(tmp_path, *(f"line {n}" for n in range(200)))
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_log(pilot)
        await until(pilot, lambda: "line 199" in seen(pilot))
        await pilot.press("pageup")
        await settle(pilot)
        assert not screen.view.follow and "line 199" not in seen(pilot)
        log.write("out", "line 200", NOW)
        await until(pilot, lambda: len(screen.view.rows) == 201)
        await until(pilot, lambda: "line 200" not in seen(pilot) and "not following" in seen(pilot))
        await pilot.press("V")
        await settle(pilot)
        assert screen.view.follow and "line 200" in seen(pilot)
        await pilot.press("home")
        await settle(pilot)
        assert "line 0" in seen(pilot)
        await pilot.press("end")
        await settle(pilot)
        assert screen.view.follow


async def test_the_end_stays_in_view_where_the_lines_above_the_log_take_more_room(
    tmp_path: Path,
) -> None:
    app, _ = stage(tmp_path, *(f"line {n}" for n in range(200)))
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_log(pilot)
        await until(pilot, lambda: "line 199" in seen(pilot))
        screen.query_one("#facts").styles.height = 12
        await settle(pilot)
        assert screen.view.follow and "line 199" in seen(pilot)
        await pilot.resize_terminal(120, 24)
        await settle(pilot)
        assert screen.view.follow and "line 199" in seen(pilot)


async def test_words_are_found_and_long_lines_wrap(tmp_path: Path) -> None:
    app, _ = stage(tmp_path, "needle " + "hay " * 60, *(f"line {n}" for n in range(100)), "needle")
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await open_log(pilot)
        high = screen.view.virtual_size.height
        await pilot.press("W")
        await settle(pilot)
        assert screen.view.virtual_size.height == 102 < high
        await pilot.press("W", "slash", *"NEEDLE", "enter")
        await settle(pilot)
        assert "/NEEDLE 2/2" in seen(pilot)
        await pilot.press("n")
        await settle(pilot)
        assert "/NEEDLE 1/2" in seen(pilot) and "needle hay" in seen(pilot)
        await pilot.press("escape")
        await settle(pilot)
        assert app.screen is screen and "/NEEDLE" not in seen(pilot)


async def test_who_has_no_loop_has_no_log_and_the_next_one_is_a_key_away(tmp_path: Path) -> None:
    app, _ = stage(tmp_path, "I read the proposal.")
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_log(pilot)
        assert "S Stop loop" in seen(pilot) and "m Message" in seen(pilot)
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: "S Stop loop" not in seen(pilot))
        assert "m Message" not in seen(pilot) and "L Start loop" in seen(pilot)
        assert screen.participant == "server"
        assert "No log: the participant has no loop on this machine" in seen(pilot)
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: "I read the proposal." in seen(pilot))


@pytest.mark.slow
async def test_whose_log_is_asked_where_several_are_waited_for(tmp_path: Path) -> None:
    app = make_app(make_snapshot(turns=()), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await open_screen(pilot)
        await pilot.press("p")
        await settle(pilot)
        await pilot.press(*"server", "enter")
        await settle(pilot)
        assert isinstance(app.screen, ParticipantScreen)
        assert app.screen.participant == "server"


async def test_the_oldest_lines_of_a_long_log_go(tmp_path: Path) -> None:
    app, _ = stage(tmp_path, "first")
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_log(pilot)
        view: LogView = screen.view
        view.extend([((f"line {n}", ""),) for n in range(KEPT + 10)])
        await settle(pilot)
        assert len(view.rows) <= KEPT
        assert f"line {KEPT + 9}" in seen(pilot)


@pytest.mark.slow
async def test_its_loop_is_nudged_stopped_and_started_by_keys(tmp_path: Path) -> None:
    """A real loop, parked: told something, stopped, and started again, each through its form."""
    folder = make(tmp_path / "cache")
    app = AcpApp([str(folder)], settings=Settings())
    try:
        start(folder, "reader", command(tmp_path))
        wait_for(lambda: state(folder, "reader").phase is Phase.WAITING, "the loop to park")
        pid = state(folder, "reader").pid
        async with app.run_test(size=(120, 36), notifications=True) as pilot:
            await until(pilot, lambda: str(folder) in app.fleet.snapshots)
            app.open_participant(str(folder), "reader")
            await until(pilot, lambda: "idle" in seen(pilot))
            await by_form(pilot, "m", "reader restarts its turn at once")
            assert state(folder, "reader").shown.nudged is not None
            await by_form(pilot, "S", f"process {pid}")
            assert not state(folder, "reader").alive
            await until(pilot, lambda: "no process" in seen(pilot))
            await pilot.press("m")
            await until(pilot, lambda: "no running loop; press L to start one" in seen(pilot))
            await by_form(pilot, "L", "Starts reader in the background.")
            assert state(folder, "reader").alive
            assert state(folder, "reader").pid != pid
    finally:
        stop_all()


async def by_form(pilot: Pilot[Any], key: str, preview: str) -> None:
    """Press a key, do what its form says once it says ``preview``, and wait until it is done."""
    await pilot.press(key)
    await until(pilot, lambda: isinstance(pilot.app.screen, ActionScreen))
    await until(pilot, lambda: preview in seen(pilot))
    await pilot.press("ctrl+s")
    await until(
        pilot,
        lambda: isinstance(pilot.app.screen, ParticipantScreen) or "Next: server" in seen(pilot),
    )
    if not isinstance(pilot.app.screen, ParticipantScreen):
        await pilot.press("escape")  # after a minute another participant needs the person, too
    await until(pilot, lambda: isinstance(pilot.app.screen, ParticipantScreen))


async def test_a_key_that_comes_before_the_loop_is_found_is_not_lost(tmp_path: Path) -> None:
    app, _ = stage(tmp_path, "one")
    fleet: Any = app.fleet
    looked, loops = threading.Event(), fleet.loops

    def slowly(key: str) -> Any:
        looked.wait(30.0)  # as on a busy machine
        return loops(key)

    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await open_screen(pilot)
        fleet.loops = slowly
        pilot.app.open_participant(KEY, "reader")  # type: ignore[attr-defined]
        await until(pilot, lambda: "Message" in seen(pilot))
        pilot.app.post_message(Key("m", "m"))
        await pilot.pause(0.3)
        looked.set()
        await until(pilot, lambda: isinstance(pilot.app.screen, ActionScreen))


async def test_one_without_a_loop_says_which_key_starts_it(tmp_path: Path) -> None:
    app = make_app(stuck(), folder=tmp_path)
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await open_screen(pilot)
        await pilot.press("p")
        await until(pilot, lambda: "no loop on this machine" in seen(pilot))
        await pilot.press("m")
        await until(
            pilot, lambda: "reader has no running loop; press L to start one" in seen(pilot)
        )
        await pilot.press("S")
        await until(pilot, lambda: "reader has no running loop here" in seen(pilot))
