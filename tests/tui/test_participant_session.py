"""A participant's live session on its screen: text as it comes, calls, plan, context, cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from acp_core.agents.live.updates import CLIENT
from acp_core.loops.acts.names import ANSWER_PERMISSION
from acp_core.model import Matter
from acp_core.model.matter import About, Verdict
from acp_tui.app import AcpApp
from acp_tui.widgets.lines import text_of
from tests.agents.live.test_feed import Writer
from tests.tui.screen import make_app, open_screen, seen, settle
from tests.tui.stage import opens, shows, until
from tests.tui.support import HOSTILE, KEY
from tests.tui.test_why_and_people import make_loop, stuck


def stage(folder: Path) -> tuple[AcpApp, Writer]:
    """A dashboard, and the journal of the reader's live turn."""
    writer = Writer(folder)
    app = make_app(stuck(), folder=folder)
    (folder / "log").write_text("")
    loop = make_loop(log=str(folder / "log"))
    run = replace(loop.shown.run, out=str(writer.path), live=True)  # type: ignore[type-var]
    fleet: Any = app.fleet
    fleet.running[KEY] = (replace(loop, shown=replace(loop.shown, run=run, live="yes")),)
    return app, writer


async def open_session(pilot: Pilot[Any]) -> Any:
    await open_screen(pilot)
    await pilot.press("p")
    await settle(pilot)
    return await opens(pilot, "ParticipantScreen")


def at_work(writer: Writer) -> None:
    writer.write(CLIENT, {"id": 1, "method": "session/prompt", "params": {}})
    writer.update("plan", entries=[
        {"content": "read the proposal", "status": "completed"},
        {"content": "write the review", "status": "in_progress"},
        {"content": "append the event", "status": "pending"},
    ])  # fmt: skip
    writer.update("usage_update", used=124_000, size=200_000, cost={"amount": 0.42, "currency": "USD"})  # fmt: skip
    writer.update("tool_call", toolCallId="c1", kind="execute", status="in_progress", rawInput={"command": "make test"})  # fmt: skip
    writer.say("The proposal ")


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)], ids=str)
async def test_the_turn_is_seen_while_it_happens(tmp_path: Path, size: tuple[int, int]) -> None:
    app, writer = stage(tmp_path)
    async with app.run_test(size=size) as pilot:
        screen = await open_session(pilot)
        at_work(writer)
        await shows(pilot, "The proposal")
        for words in (
            "● execute: make test  running",
            "62% of 200k tokens",
            "$0.42",
            "plan 1 of 3 done",
            "● write the review",
        ):
            await shows(pilot, words)
        writer.say("names no owner.")
        output = [{"type": "content", "content": {"type": "text", "text": "12 passed"}}]
        writer.update("tool_call_update", toolCallId="c1", status="completed", content=output)
        await shows(pilot, "12 passed")
        shown = seen(pilot)
        assert "The proposal names no owner." in shown and "✓ execute: make test" in shown
        assert len([row for row in screen.view.rows if "make test" in text_of(row)]) == 1


async def test_a_word_more_changes_no_text_beside_what_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each new text has the whole screen laid out, and words come many times a second."""
    app, writer = stage(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await open_session(pilot)
        at_work(writer)
        await shows(pilot, "The proposal", "plan 1 of 3")
        new: list[str] = []
        update = Static.update
        monkeypatch.setattr(
            Static,
            "update",
            lambda self, *given, **more: (new.append(self.id), update(self, *given, **more))[1],
        )
        writer.say("names no owner.")
        await shows(pilot, "names no owner.")
        assert not {"session", "bar"} & set(new)


async def test_the_key_for_raw_shows_session_log_and_output_in_turns(tmp_path: Path) -> None:
    app, writer = stage(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_session(pilot)
        at_work(writer)
        await until(pilot, lambda: screen.picture is not None)
        for name, words in (("log", "The log is empty."), ("raw", '"direction"'), ("session", "make test")):  # fmt: skip
            await pilot.press("r")
            await shows(pilot, words)
            assert any(line.lstrip().startswith(name) for line in seen(pilot).splitlines())
        assert screen.query_one("#session").display


@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=str)
async def test_what_an_agent_asks_stands_once_on_the_screen(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    app, writer = stage(tmp_path)
    command = "touch made.txt"
    fleet: Any = app.fleet
    loop = fleet.running[KEY][0]
    run = replace(loop.shown.run, tool=f"execute: {command}")
    fleet.running[KEY] = (replace(loop, shown=replace(loop.shown, run=run)),)
    snapshot = fleet.snapshots[KEY]
    asks = Matter("B17", f"reader's agent asks to run: {command}", verdicts=(Verdict(ANSWER_PERMISSION),), about=About(participant="reader"), root=True,)  # fmt: skip
    fleet.snapshots[KEY] = replace(snapshot, causes=(asks, *snapshot.causes))
    async with app.run_test(size=size) as pilot:
        await open_session(pilot)
        writer.update("tool_call", toolCallId="c1", kind="execute", status="pending", rawInput={"command": command})  # fmt: skip
        await shows(pilot, "○ execute  waiting")
        assert seen(pilot).count(command) == 1
        assert "waiting for your answer" in seen(pilot)
        fleet.snapshots[KEY] = snapshot  # it was answered
        writer.update("tool_call_update", toolCallId="c1", status="completed")
        await shows(pilot, f"✓ execute: {command}")


@pytest.mark.slow
async def test_a_hostile_session_is_plain_text(tmp_path: Path) -> None:
    app, writer = stage(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_session(pilot)
        for number, text in enumerate(HOSTILE):
            writer.say(text, f"m{number}")
            writer.update("tool_call", toolCallId=f"c{number}", title=text, kind=text, status=text)
            writer.update("tool_call_update", toolCallId=f"c{number}", rawOutput=text)
        writer.update("plan", entries=[{"content": text, "status": text} for text in HOSTILE])
        writer.update("current_mode_update", currentModeId=HOSTILE[0])
        last = HOSTILE[-1].splitlines()[0][:8]
        await until(pilot, lambda: any(last in text_of(row) for row in screen.view.rows))
        assert app.is_running
        for line in seen(pilot).splitlines():
            assert line.isprintable()
        await pilot.press("g")
        await settle(pilot)
        assert "[@click=app.quit]click[/]" in seen(pilot)


@pytest.mark.slow
async def test_a_key_cancels_the_turn_after_a_look_at_what_that_does(tmp_path: Path) -> None:
    app, writer = stage(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await open_session(pilot)
        at_work(writer)
        assert "Cancel turn" in seen(pilot)
        await pilot.press("E")
        await opens(pilot, "ActionScreen")
        await shows(pilot, "Cancel the turn")


@pytest.mark.slow
async def test_a_long_session_keeps_its_newest_entries_and_the_end_in_view(tmp_path: Path) -> None:
    app, writer = stage(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await open_session(pilot)
        for number in range(700):
            writer.update("tool_call", toolCallId=f"c{number}", title=f"call {number}.")
        await shows(pilot, "call 699.")
        rows = [text_of(row) for row in screen.view.rows]
        assert len(rows) <= 500 and len(set(rows)) == len(rows)
        await pilot.press("g")
        await settle(pilot)
        writer.update("tool_call", toolCallId="more", title="one more.")
        await until(pilot, lambda: any("one more." in text_of(row) for row in screen.view.rows))
        assert "one more." not in seen(pilot)  # who scrolled up stays there
