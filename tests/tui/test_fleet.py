"""The coordinator looks at the fleet: who needs me, what is live, what is over."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Input, Static

from acp_core.fleet import overview
from acp_core.fleet.overview import FleetEntry
from acp_core.model import Participant, Source, SourceState, Status, Turn
from acp_core.model.matter import decision, remark
from acp_tui.app import AcpApp
from acp_tui.screens import fleet as screens_fleet
from acp_tui.widgets import fleet_table
from acp_tui.widgets.fleet_table import FleetTable
from tests.tui.stage import (
    Clock,
    StageFleet,
    dashboard,
    finished,
    is_open,
    needy,
    screen_text,
    shows,
    snapshot,
    until,
    with_findings,
)
from tests.tui.support import NOW, make_event


def table(app: AcpApp) -> FleetTable:
    return app.screen_stack[0].query_one(FleetTable)


def rows(app: AcpApp) -> list[str]:
    """The lines of the table that are on the screen."""
    view = table(app)
    return [view.render_line(y).text.rstrip() for y in range(view.size.height)]


def names(app: AcpApp) -> list[str]:
    return [entry.snapshot.name for entry in table(app).entries]


async def settled(pilot: Pilot[Any]) -> None:
    await pilot.pause()
    await pilot.pause()


async def test_what_needs_a_human_is_on_top_then_live_then_done(tmp_path: Path) -> None:
    app = dashboard(
        StageFleet(finished("old"), snapshot("zeta"), snapshot("alpha"), needy("stuck")), tmp_path
    )
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert names(app) == ["stuck", "alpha", "zeta", "old"]
        header = app.screen.query_one("FleetHeader")
        assert header.counts == "1 needs you · 2 live · 1 done"
        assert header.clock == NOW.astimezone().strftime("%H:%M")
        assert app.title == "1 needs you · acp", "the title says the same number"
        drawn = rows(app)
        headings = [line.strip(" ─") for line in drawn if line.endswith("──")]
        assert headings == ["needs you 1", "live 2", "done 1"], (
            "the counts, and the rows below them"
        )
        assert "reader has not reviewed for 19 minutes  → enter: open" in drawn[2]


async def test_the_number_is_that_of_collaborations_not_of_parts(tmp_path: Path) -> None:
    whole = snapshot("whole", parts=("/work/part",))
    app = dashboard(StageFleet(needy("part"), whole, snapshot("other")), tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert names(app) == ["whole", "part", "other"]
        assert app.screen.query_one("FleetHeader").counts.startswith("1 needs you")
        assert "└ part" in "\n".join(rows(app))
        assert screen_text(app).count("reader has not reviewed") == 1


async def test_collaborations_of_one_name_are_told_apart_on_a_narrow_terminal(
    tmp_path: Path,
) -> None:
    given = [
        replace(snapshot(team), name="counter-module-rewrite", location=f"/work/{team}/api")
        for team in ("checkout", "catalogue", "payments")
    ]
    app = dashboard(StageFleet(*given, snapshot("a-name-that-is-far-too-long-2")), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        shown = "\n".join(rows(app))
        for team in ("checkout", "catalogue", "payments"):
            assert f" · {team}/api" in shown
        assert "a-name-" in shown and "…" in shown and "-long-2" in shown


async def test_a_row_says_phase_progress_who_since_when_and_findings(tmp_path: Path) -> None:
    given = with_findings(snapshot("auth", phase="revising", round=2, progress=0.5), 0, 2)
    app = dashboard(StageFleet(given), tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        (row,) = [row for row in rows(app) if "auth" in row]
        for part in ("○", "folder v1", "━━━━────", "revising r2", "reader", "19m", "! 2 warnings"):
            assert part in row
        titles = app.screen.query_one("FleetTitles").render_line(0).text
        for title, value in (
            ("phase", "━"),
            ("waiting for", "reader"),
            ("since", "19m"),
            ("findings", "! 2"),
        ):
            assert titles.index(title) == row.index(value), title


@pytest.mark.parametrize(
    ("given", "sign"),
    [
        (needy("it"), "●"),
        (needy("it", participants=(Participant("reader", "human"),)), "◆"),
        (needy("it", status=Status.BLOCKED), "■"),
        (finished("it"), "✓"),
        (snapshot("it"), "○"),
        (snapshot("it", status=Status.UNKNOWN), "?"),
        (snapshot("it", source=Source(SourceState.STALE, "half written")), "○~"),
    ],
)
async def test_a_state_is_a_sign_and_never_a_colour_alone(
    tmp_path: Path, given: Any, sign: str
) -> None:
    app = dashboard(StageFleet(given), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert rows(app)[0][1:3].strip() == sign


async def test_what_could_not_be_read_and_what_changed_late_is_said_below(tmp_path: Path) -> None:
    late = remark("LATE", "proposal.md changed after it was accepted")
    app = dashboard(
        StageFleet(
            snapshot("a", source=Source(SourceState.UNREACHABLE, "permission denied")),
            finished("b", notices=(late,)),
            snapshot("c", doubt="seq 3 is illegal"),
        ),
        tmp_path,
    )
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        shown = "\n".join(rows(app))
        assert "Unreachable: permission denied" in shown
        assert "proposal.md changed after it was accepted" in shown
        assert "Uncertain: seq 3 is illegal" in shown


async def test_the_selection_stays_with_the_collaboration_when_the_order_changes(
    tmp_path: Path,
) -> None:
    fleet = StageFleet(*(snapshot(name) for name in ("a", "b", "c", "d")))
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pilot.press("down", "down")
        assert table(app).selected == "/work/c"
        fleet.show(needy("d"), needy("b"))
        await settled(pilot)
        assert names(app) == ["b", "d", "a", "c"]
        assert table(app).selected == "/work/c"
        fleet.show(gone=("/work/c",))
        await settled(pilot)
        assert table(app).selected == "/work/a", "a neighbour, when it is gone"


async def test_until_somebody_selects_the_top_is_selected(tmp_path: Path) -> None:
    fleet = StageFleet(snapshot("m"))
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        fleet.show(needy("z"))
        await settled(pilot)
        assert table(app).selected == "/work/z"


async def test_a_filter_shows_what_has_all_the_words_and_escape_shows_all_again(
    tmp_path: Path,
) -> None:
    app = dashboard(
        StageFleet(
            snapshot("auth", objective="Where SESSIONS live"), snapshot("cache"), finished("old")
        ),
        tmp_path,
    )
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pilot.press("slash", *"sessions auth")
        await settled(pilot)
        assert names(app) == ["auth"]
        await pilot.press("backspace", "backspace", "n")
        await settled(pilot)
        assert names(app) == []
        assert "No collaboration matches “sessions aun”." in screen_text(app)
        await pilot.press("escape")
        await settled(pilot)
        assert names(app) == ["auth", "cache", "old"]
        assert table(app).has_focus
        assert not app.screen.query_one("#filter", Input).display


async def test_letters_that_are_keys_are_letters_in_the_filter(tmp_path: Path) -> None:
    app = dashboard(StageFleet(snapshot("a"), needy("b")), tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pilot.press("slash", "b", "q", "slash", "exclamation_mark", "question_mark")
        await settled(pilot)
        assert app.screen.query_one("#filter", Input).value == "bq/!?"


async def test_an_acknowledged_need_leaves_the_top_and_a_new_one_comes_back(tmp_path: Path) -> None:
    fleet = StageFleet(needy("stuck"), snapshot("a"))
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        await pilot.press("a")
        await settled(pilot)
        await pilot.press(*"known")
        acknowledged = "acp ack /work/stuck stuck:1 --note known"
        await shows(pilot, acknowledged)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.title == "acp" and is_open(app, "FleetScreen"))
        await until(pilot, lambda: names(app) == ["a", "stuck"])
        assert app.attention.acknowledged("/work/stuck")["stuck:1"].note == "known"
        fresh = decision("stuck:2", "STUCK", "reader's process ended")
        fleet.show(needy("stuck", needs=(*needy().needs, fresh)))
        await settled(pilot)
        assert names(app) == ["stuck", "a"]
        assert "reader's process ended" in "\n".join(rows(app))


async def test_what_is_archived_is_hidden_counted_and_found_again(tmp_path: Path) -> None:
    app = dashboard(StageFleet(finished("old"), snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pilot.press("end", "A")
        await settled(pilot)
        assert names(app) == ["a"]
        await pilot.press("H")
        await settled(pilot)
        assert names(app) == ["a", "old"]
        assert "archived 1 ─" in "\n".join(rows(app))
        await pilot.press("end", "A")
        await settled(pilot)
        assert "archived ─" not in "\n".join(rows(app))


async def test_all_archived_says_so_and_which_key_shows_them(tmp_path: Path) -> None:
    app = dashboard(StageFleet(finished("old")), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("A")
        await settled(pilot)
        assert "1 collaboration, all archived." in screen_text(app)
        assert "H  shows them" in screen_text(app)


async def test_an_empty_fleet_says_what_to_do(tmp_path: Path) -> None:
    app = dashboard(StageFleet(), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        shown = screen_text(app)
        for part in ("No collaboration under /work yet.", "n  starts one", "acp new", "acp demo"):
            assert part in shown


async def test_while_it_looks_it_says_so_and_how_it_looks(tmp_path: Path) -> None:
    fleet = StageFleet(complete=False)
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert "Looking for collaborations under /work" in screen_text(app)
        fleet.show(snapshot("a"), complete=False)
        await settled(pilot)
        assert "(looking…)" in screen_text(app)
        fleet.show(note="polling every 0.3 s: network file system")
        await settled(pilot)
        assert "(polling every 0.3 s: network file system)" in screen_text(app)
        app.attention_changed()
        await settled(pilot)
        assert "(polling every 0.3 s: network file system)" in screen_text(app)


async def test_unread_events_show_as_a_dot_until_the_next_visit(tmp_path: Path) -> None:
    seen = snapshot("a")
    fleet = StageFleet(seen)
    app = dashboard(fleet, tmp_path)
    app.attention.visited(seen, NOW)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert "•" not in rows(app)[0]
        more = replace(seen, events=(*seen.events, make_event(4)))
        fleet.show(more)
        await settled(pilot)
        assert rows(app)[0][3] == "•"
        app.attention.visited(more, NOW)
        app.attention_changed()
        await settled(pilot)
        assert "•" not in rows(app)[0]


async def test_ages_go_on_and_only_their_lines_are_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    young = snapshot("young", turns=(Turn("reader", "review", NOW - timedelta(seconds=58)),))
    app = dashboard(StageFleet(young, snapshot("old")), tmp_path, clock=clock)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        drawn: list[str] = []
        draw = FleetTable.render_line

        def spy(view: FleetTable, y: int) -> Strip:
            strip = draw(view, y)
            drawn.append(strip.text)
            return strip

        monkeypatch.setattr(FleetTable, "render_line", spy)
        clock.forward(1)
        table(app).tick()
        await settled(pilot)
        assert [line for line in drawn if "59s" in line]
        assert all("young" in line for line in drawn), "the other line reads as before"
        drawn.clear()
        table(app).tick()
        await settled(pilot)
        assert drawn == []


async def test_the_mouse_selects_and_a_second_click_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = dashboard(StageFleet(needy("a"), snapshot("b"), snapshot("c")), tmp_path)
    opened: list[str] = []
    monkeypatch.setattr(app, "open_collaboration", opened.append)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        line = next(y for y, row in enumerate(rows(app)) if " c " in row)
        await pilot.click(FleetTable, offset=(20, line))
        assert table(app).selected == "/work/c"
        assert opened == []
        await pilot.click(FleetTable, offset=(20, line))
        assert opened == ["/work/c"]
        await pilot.click(FleetTable, offset=(20, 0))
        assert table(app).selected == "/work/c", "a heading is nothing to select"
        await pilot.click(FleetTable, offset=(20, 2))
        assert table(app).selected == "/work/a", "its second line belongs to it"
        await pilot.hover(FleetTable, offset=(20, line))
        assert table(app).hovered == "/work/c"


async def test_a_thousand_are_arranged_and_only_what_shows_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [snapshot(f"n{i:04}") for i in range(1000)]
    fleet = StageFleet(*many)
    app = dashboard(fleet, tmp_path)
    made: list[str] = []
    row = fleet_table.row
    monkeypatch.setattr(
        fleet_table, "row", lambda entry, *rest: made.append(entry.key) or row(entry, *rest)
    )
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert len(names(app)) == 1000
        assert len(set(made)) <= 30
        made.clear()
        fleet.show(with_findings(many[5], 1))
        await settled(pilot)
        assert set(made) == {"/work/n0005"}, "the others' lines are those drawn before"
        await pilot.press("end")
        await settled(pilot)
        assert table(app).selected == "/work/n0999"
        assert "n0999" in "\n".join(rows(app))
        await pilot.press("pageup", "home")
        await settled(pilot)
        assert "n0000" in rows(app)[0]


async def test_a_large_fleet_is_put_in_order_beside_the_interface(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes meanwhile is not lost; the list is as of the last of it."""
    monkeypatch.setattr(screens_fleet, "MANY", 3)
    many = [snapshot(f"n{i}") for i in range(5)]
    fleet = StageFleet(*many)
    app = dashboard(fleet, tmp_path)
    arrange = overview.arrange
    threads: list[threading.Thread] = []
    held, begun = threading.Event(), threading.Event()

    def slowly(*given: Any, **more: Any) -> list[FleetEntry]:
        threads.append(threading.current_thread())
        begun.set()
        held.wait(30)
        return arrange(*given, **more)

    monkeypatch.setattr(overview, "arrange", slowly)
    async with app.run_test(size=(120, 30)) as pilot:
        while not begun.is_set():
            await pilot.pause()
        fleet.show(needy("late"))  # the interface goes on meanwhile
        await pilot.pause()
        held.set()
        while not app.screen.query(FleetTable) or len(names(app)) < 6:
            await pilot.pause()
        assert names(app)[0] == "late"
        before = len(threads)
        await pilot.press("exclamation_mark")
        while "late" not in screen_text(app) or len(threads) == before:
            await pilot.pause()
    assert threading.main_thread() not in threads


async def test_what_stands_in_the_view_does_not_move_when_others_come(tmp_path: Path) -> None:
    fleet = StageFleet(*(snapshot(f"n{i:03}") for i in range(100)))
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pilot.press(*["pagedown"] * 2)
        await settled(pilot)
        key = table(app).selected or ""
        at = next(y for y, line in enumerate(rows(app)) if key.rpartition("/")[2] in line)
        fleet.show(*(snapshot(f"a{i}") for i in range(5)))
        await settled(pilot)
        assert key.rpartition("/")[2] in rows(app)[at]


async def test_the_bell_rings_once_for_a_new_need_and_not_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = StageFleet(needy("a"), snapshot("b"))
    app = dashboard(fleet, tmp_path, settings={"bell": True})
    rung: list[int] = []
    monkeypatch.setattr(app.terminal, "bell", lambda: rung.append(1))
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert rung == []
        fleet.show(needy("b"))
        await settled(pilot)
        assert rung == [1]
        fleet.show(needy("b", headline="still"))
        await settled(pilot)
        assert rung == [1]


async def test_a_need_names_the_key_that_helps_as_it_was_rebound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need = decision(
        "lag", "LAGGING", "protocol.json is out of date with the log", None, NOW, "repair"
    )
    app = dashboard(
        StageFleet(needy("a", needs=(need,))), tmp_path, settings={"keys": {"act.remedy": "R"}}
    )
    done: list[tuple[str, str]] = []
    monkeypatch.setattr(app, "perform", lambda key, action, *rest: done.append((key, action)))
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert "→ R: Repair" in "\n".join(rows(app))
        await pilot.press("f")
        assert done == []
        await pilot.press("R")
        assert done == [("/work/a", "repair")]


async def test_read_again_and_copy_act_on_what_is_selected(tmp_path: Path) -> None:
    fleet = StageFleet(snapshot("a"), snapshot("b"))
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pilot.press("down", "v", "y")
        assert fleet.touched == ["/work/b"]
        assert app.clipboard == "/work/b"


@pytest.mark.parametrize("columns", [60, 80, 99, 100, 120, 149, 150, 200, 320])
async def test_every_width_has_its_columns_and_nothing_runs_over(
    tmp_path: Path, columns: int
) -> None:
    long = needy("a name that is much longer than any column of a terminal that is eighty wide")
    app = dashboard(StageFleet(long, with_findings(snapshot("日本語の名前"), 12)), tmp_path)
    async with app.run_test(size=(columns, 24)) as pilot:
        await settled(pilot)
        view = table(app)
        widths = {view.render_line(y).cell_length for y in range(view.size.height)}
        assert widths == {columns}
        shown = "\n".join(rows(app))
        assert "a name" in shown
        assert "12 err" in shown
        assert ("about" in app.screen.query_one("FleetTitles").render_line(0).text) == (
            columns >= 150
        )


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize(
    "place", ["/w", "/a/rather/long/path/to/look/under/that/does/not/fit/anywhere"]
)
async def test_the_clock_and_the_counts_stay_whatever_else_there_is(
    tmp_path: Path, columns: int, place: str
) -> None:
    fleet = StageFleet(snapshot("a"), note="polling every 0.3 s: network file system")
    app = dashboard(fleet, tmp_path, paths=(place,))
    async with app.run_test(size=(columns, 24)) as pilot:
        await settled(pilot)
        top = screen_text(app).splitlines()[0]
        assert top.startswith(" acp")
        assert top.endswith(f"0 need you · 1 live · 0 done  {NOW.astimezone():%H:%M}")
        assert len(top) == columns - 1


async def test_without_colour_the_selection_still_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = dashboard(StageFleet(snapshot("a"), snapshot("b")), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert rows(app)[0].startswith("▌")
        strip = table(app).render_line(0)
        assert any(segment.style and segment.style.reverse for segment in strip)


async def test_times_are_local_or_utc(tmp_path: Path) -> None:
    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("U")
        await settled(pilot)
        assert app.screen.query_one("FleetHeader").clock == NOW.strftime("%H:%MZ")


async def test_an_empty_state_is_not_left_behind(tmp_path: Path) -> None:
    fleet = StageFleet()
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        fleet.show(snapshot("a"))
        await settled(pilot)
        assert not app.screen.query_one("#empty", Static).display
        assert table(app).has_focus
