"""Going from one thing to another on a collaboration's screen, at every size."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import OptionList

from acp_core import model
from acp_core.model import Status, Target
from acp_tui.screens.collaboration import CollaborationScreen, is_web
from acp_tui.widgets.document_pages import TextView
from tests.tui.screen import headline, make_app, open_screen, screen_lines, seen, settle, with_paths
from tests.tui.stage import is_open, until
from tests.tui.support import KEY, make_findings, make_snapshot


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
            or screen.query_one("Timeline").details.event is not None
        )
        assert screen.query_one("Documents").active == "document review.md"
        assert screen.focused is screen.query_one("TimelineView")
        await pilot.press("enter")
        await settle(pilot)
        assert screen.focused is screen.query_one(TextView)


async def test_a_finding_explains_itself_and_opens_the_line(tmp_path: Path) -> None:
    snapshot = make_snapshot(findings=make_findings())
    async with make_app(snapshot, folder=tmp_path).run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        assert screen.query_one("#pane-findings").heading == "Findings · 1 error, 1 warning"
        await pilot.press("3")
        await pilot.pause()
        assert "A review's heading names the number" in seen(pilot)
        assert "→ Correct the number in the heading." in seen(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert screen.query_one("Documents").active == "document review.md"
        assert screen.focused is screen.query_one(TextView)
        assert "14 Required Changes:" in seen(pilot)


@pytest.mark.slow
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


@pytest.mark.slow
async def test_panes_are_reached_by_keys_and_zoomed(tmp_path: Path) -> None:
    async with make_app(make_snapshot(), folder=tmp_path).run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        order = []
        for key in ("tab", "tab", "tab", "tab", "shift+tab", "l", "h", "3"):
            await pilot.press(key)
            order.append(screen.panes.active)
        assert order == [
            *("documents", "findings", "next", "timeline"),
            *("next", "timeline", "next", "findings"),
        ]
        await pilot.press("2", "z")
        await pilot.pause()
        assert screen.query_one("#pane-documents").size.width > 110
        assert not screen.query_one("#pane-timeline").display
        assert screen.query_one("#pane-bar").display
        await pilot.press("escape")
        await pilot.pause()
        assert screen.query_one("#pane-timeline").display
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(pilot.app.screen, CollaborationScreen)


@pytest.mark.slow
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
        assert screen.panes.active == "timeline"


async def test_wide_terminals_give_documents_the_room_that_the_timeline_leaves(
    tmp_path: Path,
) -> None:
    async with make_app(make_snapshot(), folder=tmp_path).run_test(size=(200, 50)) as pilot:
        screen = await open_screen(pilot)
        places = {name: screen.query_one(f"#pane-{name}").region for name in
                  ("timeline", "documents", "findings", "next")}  # fmt: skip
        assert places["timeline"].x == places["findings"].x
        assert places["documents"].x == places["next"].x == places["timeline"].right
        assert places["documents"].width >= 100
        assert min(places["timeline"].height, places["documents"].height) > 30


@pytest.mark.slow
async def test_documents_and_headings_are_picked_by_typing(tmp_path: Path) -> None:
    async with make_app(make_snapshot(), folder=tmp_path).run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        await pilot.press("d")
        await settle(pilot)
        assert is_open(pilot.app, "PickScreen")
        await pilot.press(*"partic", "enter")
        await settle(pilot)
        assert screen.query_one("Documents").active == "people"
        await pilot.press("d", *"propo", "enter")
        await settle(pilot)
        await pilot.press("O")
        await settle(pilot)
        assert "Current Proposal  line 8" in seen(pilot)
        await pilot.press("down", "down", "enter")
        await settle(pilot)
        view = screen.query_one(TextView)
        assert view.row_style(view.page.row_of(8)) == "target"  # type: ignore[union-attr]
        await pilot.press("d", "escape")
        await settle(pilot)
        assert pilot.app.screen is screen


@pytest.mark.slow
async def test_links_are_asked_about_and_never_followed_blindly(tmp_path: Path) -> None:
    opened: list[str] = []
    snapshot = with_paths(make_snapshot(), KEY)
    app = make_app(snapshot, folder=tmp_path)
    app.open_url = lambda url, **_: opened.append(url)  # type: ignore[method-assign, assignment]
    async with app.run_test(size=(120, 50)) as pilot:
        screen = await open_screen(pilot)
        view = screen.query_one(TextView)
        view.post_message(TextView.LinkClicked("https://example.org/a?b=c"))
        await settle(pilot)
        assert is_open(app, "LinkScreen")
        assert "https://example.org/a?b=c" in seen(pilot)
        assert "enter Open  y Copy  esc Leave it" in seen(pilot)
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
        assert screen.query_one("Documents").active == "document proposal.md"
        view.post_message(TextView.LinkClicked("./review.md#seq-3"))
        await settle(pilot)
        assert screen.query_one("Documents").active == "document review.md"
        assert len(opened) == 1


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
        assert headline(screen)[2] == "Continues checkout-first < (blocked)"
        screen.query_one("Documents").activate("story")
        await settle(pilot)
        assert "■ 1 checkout-first     Blocked: no data." in seen(pilot)
        await pilot.press("less_than_sign")
        await settle(pilot)
        there = pilot.app.screen
        assert isinstance(there, CollaborationScreen) and there.key == first.key
        assert headline(there)[2] == "Continued by checkout-redesign >"
        await pilot.press("less_than_sign")
        await pilot.pause()
        assert pilot.app.screen is there
        await pilot.press("escape")
        await settle(pilot)
        assert pilot.app.screen is screen


@pytest.mark.slow
async def test_the_palette_goes_to_documents_and_panes(tmp_path: Path) -> None:
    async with make_app(make_snapshot(), folder=tmp_path).run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        about = {each.label: each.about for each in screen.navigation.places()}
        assert about["Go to Gates"] == "" and about["Go to Proposal"] == "proposal.md"
        await pilot.press("ctrl+p", *"Go to Gates")
        listed = pilot.app.screen.query(OptionList)
        await until(pilot, lambda: listed.first().option_count)
        await pilot.pause(0.3)
        await pilot.press("enter")
        await until(pilot, lambda: screen.query_one("Documents").active == "gates")
        assert screen.panes.active == "documents"


@pytest.mark.slow
async def test_the_layout_follows_the_size_of_the_terminal(tmp_path: Path) -> None:
    run = make_snapshot(headline="Reviewing, round 1.", runners=(model.Runner("reader"),))
    async with make_app(run, folder=tmp_path).run_test(size=(200, 50)) as pilot:
        screen = await open_screen(pilot)
        for size in ((80, 24), (120, 36), (70, 12), (200, 50), (100, 20)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            lines = screen_lines(pilot.app)
            assert lines[0].startswith(" checkout-redesign — Reviewing")
            assert lines[1].startswith(" Waiting for reader 48m")
            assert "reviewing ● 48m" in lines[2]
            narrow = size[0] < 100
            assert screen.query_one("#pane-bar").display is narrow
            assert screen.query_one("#pane-next").display is not narrow
            assert all(len(line) <= size[0] for line in lines)
