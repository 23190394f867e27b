"""What redraws, what is remembered, and what a person can do on a collaboration's screen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from acp_core import model
from acp_core.model import Action, Intent, Outcome, OutcomeState, Preview
from acp_core.model.matter import decision
from acp_tui.widgets.pane import PaneData
from tests.tui.screen import (
    TEXTS,
    change,
    headline,
    make_app,
    open_screen,
    screen_lines,
    seen,
    settle,
    with_paths,
)
from tests.tui.stage import is_open, shows, until
from tests.tui.support import KEY, NOW, START, make_event, make_events, make_findings, make_snapshot


async def test_only_what_changed_is_drawn_again(tmp_path: Path) -> None:
    app = make_app(make_snapshot(findings=make_findings()), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        drawn: list[str] = []
        for name, widget in (("timeline", screen.query_one("TimelineView")),
                             ("findings", screen.query_one("Findings")),
                             ("text", screen.query_one("TextView")),
                             ("next", screen.query_one("NextActions"))):  # fmt: skip
            original = widget.set_extent
            widget.set_extent = (  # type: ignore[method-assign]
                lambda *a, name=name, original=original: (drawn.append(name), original(*a))[1]
            )
        assert screen.snapshot is not None
        change(app, replace(screen.snapshot, headline="Something else."))
        await settle(pilot)
        assert drawn == []
        change(app, replace(screen.snapshot, events=(*make_events(), make_event(4))))
        await settle(pilot)
        assert set(drawn) == {"timeline"}
        drawn.clear()
        change(app, replace(screen.snapshot, findings=make_findings()[:1]))
        await settle(pilot)
        assert {"findings"} <= set(drawn) <= {"findings", "timeline"}  # which gets the room


async def test_a_flood_is_drawn_at_once_and_then_in_steps(tmp_path: Path) -> None:
    app = make_app(make_snapshot(), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        drawn: list[int] = []  # how many events each picture showed
        original = screen.timeline.watch_data

        def count(data: PaneData | None) -> None:
            shown = len(data.snapshot.events) if data is not None else 0
            if drawn[-1:] != [shown]:  # not when only the acts on offer became known
                drawn.append(shown)
            original(data)

        screen.timeline.watch_data = count  # type: ignore[method-assign]
        await pilot.pause(0.1)
        drawn.clear()
        events = make_events()
        for number in range(4, 204):
            events = (*events, make_event(number))
            change(app, make_snapshot(events=events))
            if number == 4:
                await pilot.pause(0)
                assert drawn == [4]
        assert len(drawn) < 50
        await until(pilot, lambda: screen.query_one("Timeline").title == "Timeline · 203")
        assert len(drawn) < 50


@pytest.mark.slow
async def test_what_was_seen_is_remembered_until_the_next_visit(tmp_path: Path) -> None:
    app = make_app(make_snapshot(), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        assert not any(row.startswith("─ ") for row in screen_lines(app))
        await pilot.press("escape")
        await settle(pilot)
        later = make_snapshot(events=(*make_events(), make_event(4), make_event(5)))
        documents = tuple(
            replace(d, version="2") if d.id == "review.md" else d for d in later.documents
        )
        change(app, replace(later, documents=documents))
        screen = await open_screen(pilot)
        assert "2 new events since your last visit" in seen(pilot)
        assert "Review ●" in seen(pilot)
        assert screen.query_one("#pane-documents").heading == "Documents ●"
        await pilot.press("escape")
        await settle(pilot)
        await open_screen(pilot)
        assert "new event" not in seen(pilot)
        assert "●  Decisions" not in seen(pilot)


async def test_acknowledged_needs_leave_the_top(tmp_path: Path) -> None:
    need = decision("stuck:2", "STUCK", "reader has not reviewed", "reader", START)
    app = make_app(make_snapshot(needs=(need,)), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        assert "! reader has not reviewed · 50m" in seen(pilot)
        app.attention.acknowledge(KEY, need.key, "known", NOW)
        app.attention_changed()
        await settle(pilot)
        assert not any("needs you" in text for text in headline(screen))
        assert "✓ reader has not reviewed" in seen(pilot)


@pytest.mark.slow
async def test_copying_events_findings_and_paths(tmp_path: Path) -> None:
    snapshot = with_paths(make_snapshot(findings=make_findings()), KEY)
    app = make_app(snapshot, folder=tmp_path)
    copied: list[str] = []
    app.copy_to_clipboard = copied.append  # type: ignore[method-assign]
    async with app.run_test(size=(120, 36)) as pilot:
        await open_screen(pilot)
        await pilot.press("y")
        await settle(pilot)
        assert json.loads(copied[-1]) == {"seq": "3", "event": "as the source holds it"}
        await pilot.press("3", "y")
        await settle(pilot)
        assert copied[-1] == (
            "review.md:14: error: ACP310: review.md heading seq 7: no matching event"
        )
        await pilot.press("2", "y")
        await settle(pilot)
        assert copied[-1] == "/work/checkout-redesign/proposal.md"
        await pilot.press("4", "y")
        await settle(pilot)
        assert copied[-1] == KEY


async def test_editing_steps_aside_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited: list[tuple[Path, int | None]] = []
    monkeypatch.setattr(
        "acp_tui.screens.collaboration.edit",
        lambda app, path, line=None, setting=None: edited.append((path, line)),
    )
    snapshot = with_paths(make_snapshot(), KEY)
    app = make_app(snapshot, folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await open_screen(pilot)
        await pilot.press("2", "e")
        await settle(pilot)
        assert edited == [(Path("/work/checkout-redesign/proposal.md"), 1)]
        assert app.fleet.touched == [KEY]  # type: ignore[attr-defined]


class Nothing(BaseModel):
    """No inputs."""


@pytest.mark.slow
async def test_a_finding_names_the_action_that_mends_it(tmp_path: Path) -> None:
    finding = replace(make_findings()[0], action="repair")
    app = make_app(make_snapshot(findings=(finding,)), folder=tmp_path)
    block = Action(
        "block", "Block", "Blocks.", Nothing,
        lambda inputs: Preview("Blocks."), lambda inputs: Outcome(OutcomeState.DONE, "Blocked."),
        intent=Intent.STOP_EVERYTHING,
    )  # fmt: skip
    app.fleet.sources[KEY].offered = (block,)  # type: ignore[attr-defined]
    asked: list[tuple[str | None, Any]] = []
    app.perform = lambda key, action, *_: asked.append((key, action))  # type: ignore[method-assign]
    async with app.run_test(size=(120, 36)) as pilot:
        await open_screen(pilot)
        await pilot.press("3", "f", "b")
        await until(pilot, lambda: len(asked) == 2)
        assert asked == [(KEY, "repair"), (KEY, "block")]


async def test_the_key_that_stops_work_keeps_its_name_while_it_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It changes with the state which acts there are; asking may take long."""
    app = make_app(make_snapshot(), folder=tmp_path)
    block = Action(
        "block", "Block", "Blocks.", Nothing,
        lambda inputs: Preview("Blocks."), lambda inputs: Outcome(OutcomeState.DONE, "Blocked."),
        intent=Intent.STOP_EVERYTHING,
    )  # fmt: skip
    app.fleet.sources[KEY].offered = (block,)  # type: ignore[attr-defined]
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        await shows(pilot, "b Block")
        changed = replace(make_snapshot(), phase="another")
        monkeypatch.setattr(screen, "in_hand", lambda: changed)
        screen.refresh_bindings()
        await settle(pilot)
        assert "b Block" in seen(pilot)


async def test_every_key_can_be_changed(tmp_path: Path) -> None:
    app = make_app(
        make_snapshot(), folder=tmp_path, keys={"collaboration.zoom": "w", "timeline.time": "T"}
    )
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        await pilot.press("w")
        assert screen.has_class("-zoom")
        await pilot.press("T")
        assert screen.query_one("TimelineView").relative
        of_textual = {"screen.copy_text", "command_palette", "help_quit"}
        for entry in screen.active_bindings.values():
            binding = entry.binding
            assert binding.id or binding.action in of_textual, binding


async def test_times_follow_the_zone_that_is_chosen(tmp_path: Path) -> None:
    async with make_app(make_snapshot(), folder=tmp_path).run_test(size=(120, 36)) as pilot:
        await open_screen(pilot)
        assert "12:01Z" in seen(pilot) and "since 12:02Z" in seen(pilot)
        await pilot.press("U")
        await settle(pilot)
        assert "12:01Z" not in seen(pilot) and "since 12:02Z" not in seen(pilot)


async def test_a_text_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    texts = {name: text for name, text in TEXTS.items() if name != "proposal.md"}
    app = make_app(make_snapshot(), texts=texts, folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        assert screen.query_one("DocumentView").document is not None
        source = app.fleet.sources[KEY]  # type: ignore[attr-defined]

        def broken(document: str) -> Any:
            raise PermissionError("no")

        source.load = broken
        screen.query_one("Documents").activate("document review.md")
        await shows(pilot, "PermissionError('no')")
        assert "Could not read the document:" in seen(pilot)


async def test_what_an_action_made_is_opened(tmp_path: Path) -> None:
    made = make_snapshot("/work/checkout-again")
    async with make_app(make_snapshot(), made, folder=tmp_path).run_test(size=(80, 24)) as pilot:
        screen = await open_screen(pilot)
        screen.performed(None)
        screen.performed(model.Outcome(model.OutcomeState.DONE, "Repaired."))
        await settle(pilot)
        assert pilot.app.screen is screen
        screen.performed(model.Outcome(model.OutcomeState.DONE, "Continued.", made.key))
        await settle(pilot)
        assert is_open(pilot.app, "CollaborationScreen")
        assert pilot.app.screen.key == made.key


async def test_what_was_seen_and_cannot_be_kept_is_said(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")
    app = make_app(make_snapshot(), folder=tmp_path / "state")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await open_screen(pilot)
        await pilot.press("escape")
        await settle(pilot)
        assert "Could not save what you have seen" in seen(pilot)
