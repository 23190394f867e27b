"""One collaboration on the screen: what is said on top, going from one thing to another, keys."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from textual.pilot import Pilot

from acp_core import model
from acp_core.model import Need, Notice, PhaseState, Source, SourceState, Status, Target
from acp_tui.app import AcpApp
from acp_tui.screens.collaboration import CollaborationScreen
from acp_tui.screens.link import LinkScreen, is_web
from acp_tui.screens.pick import PickScreen
from acp_tui.widgets.document_view import DocumentView
from acp_tui.widgets.documents import Documents
from acp_tui.widgets.findings import Findings
from acp_tui.widgets.headline import Headline
from acp_tui.widgets.next_actions import NextActions
from acp_tui.widgets.pane import Pane
from acp_tui.widgets.phase_rail import rail
from acp_tui.widgets.tab_strip import TabStrip
from acp_tui.widgets.text_view import TextView
from acp_tui.widgets.timeline import Timeline
from acp_tui.widgets.timeline_view import TimelineView
from tests.tui.support import (
    NOW,
    START,
    TEXTS,
    change,
    make_app,
    make_event,
    make_events,
    make_findings,
    make_phases,
    make_snapshot,
    screen_lines,
    settle,
)

KEY = "/work/checkout-redesign"


async def open_screen(pilot: Pilot[Any], target: Target | None = None) -> CollaborationScreen:
    """Open the first collaboration, and wait until it is drawn."""
    app: AcpApp = pilot.app  # type: ignore[assignment]
    await settle(pilot)
    app.open_collaboration(KEY, target)
    await settle(pilot)
    screen = app.screen
    assert isinstance(screen, CollaborationScreen)
    return screen


def headline(screen: CollaborationScreen) -> list[str]:
    return str(screen.query_one(Headline).render()).split("\n")


def seen(pilot: Pilot[Any]) -> str:
    return "\n".join(screen_lines(pilot.app))


# --- what is said on top -------------------------------------------------------------------


async def test_one_sentence_who_is_waited_for_and_since_when(tmp_path: Path) -> None:
    async with make_app(make_snapshot(), folder=tmp_path).run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        first, second = headline(screen)
        assert first.startswith("checkout-redesign — Reviewing, round 1: waiting for reader.")
        assert first.endswith("✓ valid")
        assert second.startswith("waiting for reader 48 min (since 12:02Z)")
        assert second.endswith("Decide where sessions are kept")
        # the time goes on without anything being read again
        pilot.app.now = lambda: NOW + timedelta(minutes=3)  # type: ignore[attr-defined]
        screen._tick()
        await pilot.pause()
        assert headline(screen)[1].startswith("waiting for reader 51 min")
        assert "reviewing ● 51m" in seen(pilot)


async def test_needs_notices_doubt_and_a_stale_source_have_lines_of_their_own(
    tmp_path: Path,
) -> None:
    snapshot = make_snapshot(
        status=Status.BLOCKED,
        headline="Blocked by reader: no data.",
        doubt="seq 4 is illegal",
        source=Source(SourceState.STALE, "protocol.json is half written"),
        needs=tuple(Need(f"n{n}", "X", f"reason {n}", None, START, "repair") for n in range(4)),
        notices=(
            Notice("LATE", "proposal.md changed after it was accepted", "proposal.md", START),
        ),
    )
    async with make_app(snapshot, folder=tmp_path).run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        lines = headline(screen)
        assert lines[0].startswith("checkout-redesign — ■ Blocked by reader: no data.")
        assert lines[1] == "~ stale, last read 0s ago: protocol.json is half written"
        assert lines[3] == "? Not certain: seq 4 is illegal"
        assert lines[4] == "! needs you: reason 0 50m  f fix  a acknowledge"
        assert lines[6] == "  and 2 more (see Next)"
        assert lines[7] == "! proposal.md changed after it was accepted, 50m ago"
        next_list = screen.query_one(NextActions)
        assert [item.key for item in next_list.items[:5]] == [
            *("n0", "n1", "n2", "n3"),
            "LATE proposal.md",
        ]
        assert screen.query_one("#pane-next", Pane)._entitled == "Next · 4 for you"


async def test_a_folder_that_goes_away_keeps_what_was_read_last(tmp_path: Path) -> None:
    app = make_app(make_snapshot(), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        del app.fleet.snapshots[KEY]  # type: ignore[attr-defined]
        app.snapshots_changed.publish(gone_batch(KEY))
        await pilot.pause(0.1)
        assert headline(screen)[1] == "! It is gone from here; what was read last is shown."
        assert "initialized" in seen(pilot)


def gone_batch(key: str) -> Any:
    from acp_core.fleet import Batch

    return Batch((), (key,))


async def test_before_the_first_reading_it_says_so(tmp_path: Path) -> None:
    app = make_app(folder=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.open_collaboration(KEY)
        await settle(pilot)
        assert f"Reading {KEY} …" in seen(pilot)
        from acp_core.fleet import Batch

        app.snapshots_changed.publish(Batch(()))
        await pilot.pause(0.1)
        assert "There is no collaboration here" in seen(pilot)
        change(app, make_snapshot())
        await settle(pilot)
        assert "initialized" in seen(pilot)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (130, "drafting ✓ 2m ─ reviewing ● 48m ─ revising ○ ─ decision review ○ ─ readiness ○ ─ completed ○"),
        (90, "drafting ✓ ─ reviewing ● 48m ─ revising ○ ─ decision review ○ ─ readiness ○ ─ completed ○"),
        (78, "drafting ✓ ─ reviewing ● 48m ─ revising ○ ─ ○ ─ ○ ─ ○"),
        (40, "✓ ─ reviewing ● 48m ─ ○ ─ ○ ─ ○ ─ ○"),
        (30, "✓ ─ reviewing ● 48m ─ ○ ─ …"),
    ],
)  # fmt: skip
def test_the_rail_says_as_much_as_fits(cells: int, expected: str) -> None:
    content = rail(make_phases(), NOW, cells)
    assert content.plain == expected
    assert content.cell_length <= cells


def test_a_second_round_counts_and_its_time_adds_up() -> None:
    minute = timedelta(minutes=1)
    visits = (
        model.Visit(START, START + 2 * minute, 1),
        model.Visit(START + 10 * minute, None, 2),
    )
    phase = model.Phase("reviewing", "reviewing", PhaseState.CURRENT, visits)
    assert rail((phase,), START + 13 * minute, 80).plain == "reviewing ● ×2 5m"
    unknown = model.Phase("a", "a", PhaseState.DONE, (model.Visit(None, None),))
    assert rail((unknown,), NOW, 80).plain == "a ✓"
    assert rail((), NOW, 80).plain == ""
    assert rail((phase,), NOW, 80, Status.BLOCKED).plain == "reviewing ■ ×2"
    assert rail((phase,), NOW, 80, Status.COMPLETED).plain == "reviewing ✓ ×2"


# --- going from one thing to another -------------------------------------------------------


async def test_an_event_shows_its_details_and_opens_its_document(tmp_path: Path) -> None:
    async with make_app(make_snapshot(), folder=tmp_path).run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert (
            '"event": "as the source holds it"'
            in "\n".join(
                screen.query_one("#timeline-details").render_line(y).text for y in range(30)
            )
            or screen.query_one(Timeline).details.event is not None
        )
        assert screen.query_one(Documents).active == "document review.md"
        assert screen.focused is screen.query_one(TimelineView)
        await pilot.press("enter")
        await settle(pilot)
        assert screen.focused is screen.query_one(TextView)


async def test_a_finding_explains_itself_and_opens_the_line(tmp_path: Path) -> None:
    snapshot = make_snapshot(findings=make_findings())
    async with make_app(snapshot, folder=tmp_path).run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        assert screen.query_one("#pane-findings", Pane)._entitled == "Findings · 1 error, 1 warning"
        await pilot.press("3")
        await pilot.pause()
        assert "A review's heading names the number" in seen(pilot)
        assert "→ Correct the number in the heading." in seen(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert screen.query_one(Documents).active == "document review.md"
        assert screen.focused is screen.query_one(TextView)
        assert "14 Required Changes:" in seen(pilot)


async def test_where_the_fleet_points_is_shown_first(tmp_path: Path) -> None:
    snapshot = make_snapshot(findings=make_findings())
    for target, shows in (
        (Target(document="review.md", line=14), "14 Required Changes:"),
        (Target(event="2"), "❯ 12:02Z  2 ▲ server"),
        (Target(finding=1), "❯ ! ACP402 3 deferred items should"),
    ):
        async with make_app(snapshot, folder=tmp_path).run_test(size=(120, 36)) as pilot:
            await open_screen(pilot, target)
            await settle(pilot)
            assert shows in seen(pilot)


async def test_panes_are_reached_by_keys_and_zoomed(tmp_path: Path) -> None:
    async with make_app(make_snapshot(), folder=tmp_path).run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        order = []
        for key in ("tab", "tab", "tab", "tab", "shift+tab", "l", "h", "3"):
            await pilot.press(key)
            order.append(screen._pane)
        assert order == [
            *("documents", "findings", "next", "timeline"),
            *("next", "timeline", "next", "findings"),
        ]
        await pilot.press("2", "z")
        await pilot.pause()
        assert screen.query_one("#pane-documents").size.width > 110
        assert not screen.query_one("#pane-timeline").display
        assert screen.query_one("#pane-bar", TabStrip).display
        await pilot.press("escape")
        await pilot.pause()
        assert screen.query_one("#pane-timeline").display
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(pilot.app.screen, CollaborationScreen)


async def test_at_80_columns_one_pane_shows_and_the_top_stays(tmp_path: Path) -> None:
    snapshot = make_snapshot(findings=make_findings())
    async with make_app(snapshot, folder=tmp_path).run_test(size=(80, 24)) as pilot:
        screen = await open_screen(pilot)
        for key, shows in (
            ("1", "proposal_submitted"),
            ("2", "Decide where sessions are kept, so that"),
            ("3", "ACP310"),
            ("4", "append a structured review"),
        ):
            await pilot.press(key)
            await settle(pilot)
            text = seen(pilot)
            assert shows in text
            assert text.startswith(" checkout-redesign — Reviewing")
            assert "reviewing ● 48m" in text
        await pilot.click("#pane-bar", offset=(3, 0))
        await pilot.pause()
        assert screen._pane == "timeline"


async def test_very_wide_terminals_show_three_columns(tmp_path: Path) -> None:
    async with make_app(make_snapshot(), folder=tmp_path).run_test(size=(200, 50)) as pilot:
        screen = await open_screen(pilot)
        places = {name: screen.query_one(f"#pane-{name}").region for name in
                  ("timeline", "documents", "findings", "next")}  # fmt: skip
        assert places["timeline"].x < places["documents"].x < places["findings"].x
        assert places["findings"].x == places["next"].x
        assert places["timeline"].height == places["documents"].height > 40


async def test_documents_and_headings_are_picked_by_typing(tmp_path: Path) -> None:
    async with make_app(make_snapshot(), folder=tmp_path).run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        await pilot.press("d")
        await settle(pilot)
        assert isinstance(pilot.app.screen, PickScreen)
        await pilot.press(*"peop", "enter")
        await settle(pilot)
        assert screen.query_one(Documents).active == "people"
        await pilot.press("d", *"propo", "enter")
        await settle(pilot)
        await pilot.press("t")
        await settle(pilot)
        assert "Current Proposal  8" in seen(pilot)
        await pilot.press("down", "down", "enter")
        await settle(pilot)
        view = screen.query_one(TextView)
        assert view.row_style(view.page.row_of(8)) == "target"  # type: ignore[union-attr]
        await pilot.press("d", "escape")
        await settle(pilot)
        assert pilot.app.screen is screen


async def test_links_are_asked_about_and_never_followed_blindly(tmp_path: Path) -> None:
    opened: list[str] = []
    snapshot = make_snapshot(documents=_with_paths(make_snapshot(), "/work/checkout-redesign"))
    app = make_app(snapshot, folder=tmp_path)
    app.open_url = lambda url, **_: opened.append(url)  # type: ignore[method-assign, assignment]
    async with app.run_test(size=(120, 50)) as pilot:
        screen = await open_screen(pilot)
        view = screen.query_one(TextView)
        view.post_message(TextView.LinkClicked("https://example.org/a?b=c"))
        await settle(pilot)
        assert isinstance(app.screen, LinkScreen)
        assert "https://example.org/a?b=c" in seen(pilot)
        await pilot.press("escape")
        view.post_message(TextView.LinkClicked("https://example.org/x"))
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert opened == ["https://example.org/x"]
        for address in ("vscode://x", "file:///etc/passwd", "javascript:alert(1)", "../outside.md",
                        "http://[broken", "x');app.exit('", "mailto:a@b.c"):  # fmt: skip
            view.post_message(TextView.LinkClicked(address))
            await settle(pilot)
            assert app.screen is screen
        assert screen.query_one(Documents).active == "document proposal.md"
        view.post_message(TextView.LinkClicked("./review.md#seq-3"))
        await settle(pilot)
        assert screen.query_one(Documents).active == "document review.md"
        assert len(opened) == 1


def _with_paths(snapshot: model.Snapshot, folder: str) -> tuple[model.Document, ...]:
    return tuple(replace(d, path=f"{folder}/{d.id}") for d in snapshot.documents)


@pytest.mark.parametrize(
    ("address", "web"),
    [("https://a.org", True), ("HTTP://a.org/x", True), ("http://", False), ("ftp://a", False),
     ("//a.org", False), ("review.md", False), ("https:/a.org", False), ("http://[", False)],
)  # fmt: skip
def test_only_addresses_of_the_web_are_ever_opened(address: str, web: bool) -> None:
    assert is_web(address) is web


async def test_the_chain_of_collaborations_is_one_story(tmp_path: Path) -> None:
    first = make_snapshot(
        "/work/checkout-first", status=Status.BLOCKED, headline="Blocked: no data.",
        lineage=(model.Link("continued_by", KEY, "checkout-redesign"),),
    )  # fmt: skip
    second = make_snapshot(
        lineage=(model.Link("continues", first.key, "checkout-first", True, "blocked"),)
    )
    async with make_app(second, first, folder=tmp_path).run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        assert headline(screen)[2] == "continues checkout-first (blocked) <"
        screen.query_one(Documents).activate("story")
        await settle(pilot)
        assert "■ 1 checkout-first     Blocked: no data." in seen(pilot)
        await pilot.press("less_than_sign")
        await settle(pilot)
        there = pilot.app.screen
        assert isinstance(there, CollaborationScreen) and there.key == first.key
        assert headline(there)[2] == "continued by checkout-redesign >"
        await pilot.press("less_than_sign")
        await pilot.pause()
        assert pilot.app.screen is there
        await pilot.press("escape")
        await settle(pilot)
        assert pilot.app.screen is screen


# --- what redraws, and what is remembered --------------------------------------------------


async def test_only_what_changed_is_drawn_again(tmp_path: Path) -> None:
    app = make_app(make_snapshot(findings=make_findings()), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        drawn: list[str] = []
        for name, widget in (("timeline", screen.query_one(TimelineView)),
                             ("findings", screen.query_one(Findings)),
                             ("text", screen.query_one(TextView)),
                             ("next", screen.query_one(NextActions))):  # fmt: skip
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
        assert set(drawn) == {"findings"}


async def test_a_flood_is_drawn_at_once_and_then_in_steps(tmp_path: Path) -> None:
    app = make_app(make_snapshot(), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        draws = 0
        original = screen.timeline.show

        def count(*arguments: Any) -> None:
            nonlocal draws
            draws += 1
            original(*arguments)

        screen.timeline.show = count  # type: ignore[method-assign]
        await pilot.pause(0.1)
        events = make_events()
        for number in range(4, 204):
            events = (*events, make_event(number))
            change(app, make_snapshot(events=events))
            if number == 4:
                await pilot.pause(0)
                assert draws == 1
        assert draws < 50
        await pilot.pause(0.2)
        assert screen.query_one(Timeline).title == "Timeline · 203"


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
        assert screen.query_one("#pane-documents", Pane)._entitled == "Documents ●"
        await pilot.press("escape")
        await settle(pilot)
        await open_screen(pilot)
        assert "new event" not in seen(pilot)
        assert "●  Decisions" not in seen(pilot)


async def test_acknowledged_needs_leave_the_top(tmp_path: Path) -> None:
    need = Need("stuck:2", "STUCK", "reader has not reviewed", "reader", START)
    app = make_app(make_snapshot(needs=(need,)), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        assert "needs you: reader has not reviewed" in seen(pilot)
        app.attention.acknowledge(KEY, need.key, "known", NOW)
        app.attention_changed()
        await settle(pilot)
        assert not any("needs you" in text for text in headline(screen))
        assert "✓ reader has not reviewed" in seen(pilot)


# --- copying, editing, acting --------------------------------------------------------------


async def test_copying_events_findings_and_paths(tmp_path: Path) -> None:
    snapshot = make_snapshot(findings=make_findings())
    snapshot = replace(snapshot, documents=_with_paths(snapshot, "/work/checkout-redesign"))
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
        "acp_tui.screens.collaboration_requests.edit",
        lambda app, path, line=None, setting=None: edited.append((path, line)),
    )
    snapshot = make_snapshot()
    snapshot = replace(snapshot, documents=_with_paths(snapshot, "/work/checkout-redesign"))
    app = make_app(snapshot, folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await open_screen(pilot)
        await pilot.press("2", "e")
        await settle(pilot)
        assert edited == [(Path("/work/checkout-redesign/proposal.md"), 1)]
        assert app.fleet.touched == [KEY]  # type: ignore[attr-defined]


class Nothing(BaseModel):
    """No inputs."""


async def test_a_finding_names_the_action_that_mends_it(tmp_path: Path) -> None:
    finding = replace(make_findings()[0], action="repair")
    app = make_app(make_snapshot(findings=(finding,)), folder=tmp_path)
    asked: list[tuple[str | None, Any]] = []
    app.perform = lambda key, action, then=None: asked.append((key, action))  # type: ignore[method-assign]
    async with app.run_test(size=(120, 36)) as pilot:
        await open_screen(pilot)
        await pilot.press("3", "f", "b")
        await pilot.pause()
        assert asked == [(KEY, "repair"), (KEY, "block")]


async def test_every_key_can_be_changed(tmp_path: Path) -> None:
    app = make_app(
        make_snapshot(), folder=tmp_path, keys={"collaboration.zoom": "w", "timeline.time": "T"}
    )
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        await pilot.press("w")
        assert screen.has_class("-zoom")
        await pilot.press("T")
        assert screen.query_one(TimelineView).relative
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
        assert screen.query_one(DocumentView).document is not None
        source = app.fleet.sources[KEY]  # type: ignore[attr-defined]

        def broken(document: str) -> Any:
            raise PermissionError("no")

        source.load = broken
        screen.query_one(Documents).activate("document review.md")
        await settle(pilot)
        assert "It cannot be read: PermissionError('no')" in seen(pilot)


async def test_the_palette_goes_to_documents_and_panes(tmp_path: Path) -> None:
    async with make_app(make_snapshot(), folder=tmp_path).run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        await pilot.press("ctrl+p", *"Go to Gates")
        await pilot.pause(0.5)
        await pilot.press("enter")
        await settle(pilot)
        assert screen.query_one(Documents).active == "gates"
        assert screen._pane == "documents"


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
        assert isinstance(pilot.app.screen, CollaborationScreen)
        assert pilot.app.screen.key == made.key


async def test_the_layout_follows_the_size_of_the_terminal(tmp_path: Path) -> None:
    async with make_app(make_snapshot(), folder=tmp_path).run_test(size=(200, 50)) as pilot:
        screen = await open_screen(pilot)
        for size in ((80, 24), (120, 36), (70, 12), (200, 50), (100, 20)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            lines = screen_lines(pilot.app)
            assert lines[0].startswith(" checkout-redesign — Reviewing")
            assert lines[1].startswith(" waiting for reader 48 min")
            assert "reviewing ● 48m" in lines[2]
            narrow = size[0] < 100
            assert screen.query_one("#pane-bar").display is narrow
            assert screen.query_one("#pane-next").display is not narrow
            assert all(len(line) <= size[0] for line in lines)


async def test_the_hints_name_the_keys_that_were_chosen(tmp_path: Path) -> None:
    need = Need("n", "X", "a reason", None, None, "repair")
    app = make_app(
        make_snapshot(needs=(need,)), folder=tmp_path, keys={"act.acknowledge": "ctrl+k"}
    )
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        assert headline(screen)[2] == "! needs you: a reason  f fix  ^k acknowledge"
