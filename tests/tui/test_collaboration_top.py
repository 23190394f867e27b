"""The top of the screen: one sentence, who is waited for, what needs somebody, the phases."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from acp_core import model
from acp_core.model import PhaseState, Source, SourceState, Status, Turn
from acp_core.model.matter import decision, remark
from acp_tui.widgets.headline import Keys, headlines
from acp_tui.widgets.lines import text_of
from acp_tui.widgets.pane import PaneData
from acp_tui.widgets.phase_rail import rail
from tests.tui.screen import change, headline, make_app, open_screen, seen, settle
from tests.tui.stage import shows, until
from tests.tui.support import KEY, NOW, START, make_phases, make_snapshot


async def test_one_sentence_who_is_waited_for_and_since_when(tmp_path: Path) -> None:
    async with make_app(make_snapshot(), folder=tmp_path).run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        first, second = headline(screen)
        assert first.startswith("checkout-redesign — Reviewing, round 1: waiting for reader.")
        assert first.endswith("files valid")
        assert second.startswith("Waiting for reader 48m (since 12:02Z)")
        assert second.endswith("Decide where sessions are kept")
        # the time goes on without anything being read again
        pilot.app.now = lambda: NOW + timedelta(minutes=3)  # type: ignore[attr-defined]
        screen._tick()
        await pilot.pause()
        assert headline(screen)[1].startswith("Waiting for reader 51m")
        assert "reviewing ● 51m" in seen(pilot)


async def test_what_a_signal_did_not_tell_is_shown_a_moment_later(tmp_path: Path) -> None:
    async with make_app(make_snapshot(), folder=tmp_path).run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        screen.app.snapshots_changed.unsubscribe(screen)
        change(screen.app, make_snapshot(headline="Revising, round 2."))
        screen._tick()
        await pilot.pause()
        assert "Revising, round 2." in headline(screen)[0]


async def test_the_verdict_shows_also_beside_a_long_sentence(tmp_path: Path) -> None:
    for number, rows in ((3, 1), (10, 2), (30, 2)):
        words = ("Waiting. " * number).strip()
        app = make_app(
            make_snapshot(headline=words, runners=(model.Runner("reader"),)), folder=tmp_path
        )
        async with app.run_test(size=(80, 24)) as pilot:
            lines = headline(await open_screen(pilot))
            assert lines[0].endswith("files valid") and len(lines) == rows + 1
            assert "".join(lines[:rows]).count("Waiting.") == min(number, 13)
            assert lines[rows].startswith("Waiting for reader 48m")


def test_a_step_of_the_past_that_cannot_be_read_is_not_called_stale() -> None:
    snapshot = make_snapshot(source=Source(SourceState.STALE, "events.jsonl: missing"))
    data = PaneData(snapshot, (), NOW, past=True)
    rows = [row.plain for row in headlines(data, 120, Keys(), str).rows]
    assert "~ Not readable at this step: events.jsonl: missing" in [row.strip() for row in rows]


async def test_needs_notices_doubt_and_a_stale_source_have_lines_of_their_own(
    tmp_path: Path,
) -> None:
    snapshot = make_snapshot(
        status=Status.BLOCKED,
        headline="Blocked by reader: no data.",
        doubt="seq 4 is illegal",
        source=Source(SourceState.STALE, "protocol.json is half written"),
        needs=tuple(decision(f"n{n}", "X", f"reason {n}", None, START, "repair") for n in range(4)),
        notices=(
            remark("LATE", "proposal.md changed after it was accepted", "proposal.md", START),
        ),
    )
    async with make_app(snapshot, folder=tmp_path).run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        lines = headline(screen)
        assert lines[0].startswith("checkout-redesign — ■ Blocked by reader: no data.")
        assert lines[1] == "~ Stale, last read 0s ago: protocol.json is half written"
        assert lines[2].startswith("! Reason 0 · 50m · f: Repair · a: acknowledge  ")
        assert lines[2].endswith("  1 of 4 · J next")
        assert lines[3].startswith("Waiting for reader 48m") and len(lines) == 4
        next_list = screen.query_one("NextActions")
        below = ["doubt", "LATE proposal.md"]  # for which there is no room on top
        assert [item.key for item in next_list.items[:5]] == [
            *(f"n{n} reason {n}" for n in (1, 2, 3)),
            *below,
        ]
        assert screen.query_one("#pane-next").heading == "Next · 3 more for you"


async def test_a_low_terminal_has_four_rows_above_the_panes_however_much_there_is_to_say(
    tmp_path: Path,
) -> None:
    wordy = "Somebody has to choose whether a reused token signs out one device or all of them"
    turns = tuple(Turn(f"agent{n}", "work", START + timedelta(minutes=1)) for n in range(3))
    snapshot = make_snapshot(
        headline="Waiting for a choice. " * 5,
        needs=(decision("n", "X", wordy, None, START, "repair"),),
        turns=turns,
        notices=(remark("LATE", "proposal.md changed after it was accepted", None, START),),
    )
    async with make_app(snapshot, folder=tmp_path).run_test(size=(80, 24)) as pilot:
        screen = await open_screen(pilot)
        assert len(headline(screen)) == 3 and "them · 50m · f: Repair" in headline(screen)[2]
        assert screen.query_one("#rail").region.bottom == 4
        await pilot.resize_terminal(120, 36)
        await until(pilot, lambda: "Waiting for agent0" in headline(screen)[-1])


async def test_who_is_waited_for_in_several_turns_is_named_once(tmp_path: Path) -> None:
    turns = tuple(Turn("reader", f"do t{n}", START + timedelta(minutes=n)) for n in range(3))
    snapshot = make_snapshot(turns=(*turns, Turn("server", "revise", START)))
    async with make_app(snapshot, folder=tmp_path).run_test(size=(120, 36)) as pilot:
        rows = headline(await open_screen(pilot))
        waiting = next(row for row in rows if row.startswith("Waiting"))
        assert waiting.startswith(
            "Waiting for reader 50m (3 turns, since 12:00Z) · server 50m (since 12:00Z)"
        )


async def test_a_doubt_and_a_notice_stand_on_top_where_there_is_room(tmp_path: Path) -> None:
    late = remark("LATE", "proposal.md changed after it was accepted", "proposal.md", START)
    snapshot = make_snapshot(doubt="seq 4 is illegal", notices=(late,))
    async with make_app(snapshot, folder=tmp_path).run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        assert headline(screen)[2:] == [
            "? Uncertain: seq 4 is illegal",
            "! proposal.md changed after it was accepted, 50m ago",
        ]
        text = seen(pilot)
        assert text.count("seq 4 is illegal") == text.count("after it was accepted") == 1
        change(screen.app, make_snapshot(doubt="seq 4 is illegal " * 20))
        await until(pilot, lambda: "…" in headline(screen)[2])
        kept = screen.query_one("NextActions").items[0]
        assert kept.key == "doubt" and text_of(kept.pieces).count("is illegal") == 20


async def test_a_folder_that_goes_away_keeps_what_was_read_last(tmp_path: Path) -> None:
    app = make_app(make_snapshot(), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        del app.fleet.snapshots[KEY]  # type: ignore[attr-defined]
        app.snapshots_changed.publish(gone_batch(KEY))
        gone = "! Folder not found. Showing the last version read."
        await until(pilot, lambda: gone in headline(screen))
        assert headline(screen)[1] == gone
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
        await shows(pilot, "No collaboration here")
        change(app, make_snapshot())
        await settle(pilot)
        assert "initialized" in seen(pilot)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (130, "drafting ✓ 2m ─ reviewing ● 48m ─ revising ○ ─ decision review ○ ─ readiness ○ ─ completed ○"),
        (90, "drafting ✓ ─ reviewing ● 48m ─ revising ○ ─ decision review ○ ─ readiness ○ ─ completed ○"),
        (78, "drafting ✓ ─ reviewing ● 48m ─ revising ○ ─ decision review ○ ─ ○ ─ ○"),
        (55, "drafting ✓ ─ reviewing ● 48m ─ revising ○ ─ ○ ─ ○ ─ ○"),
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


async def test_the_hints_name_the_keys_that_were_chosen(tmp_path: Path) -> None:
    need = decision("n", "X", "a reason", None, None, "repair")
    app = make_app(
        make_snapshot(needs=(need,)), folder=tmp_path, keys={"act.acknowledge": "ctrl+k"}
    )
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        assert headline(screen)[1] == "! A reason · f: Repair · ^k: acknowledge"
