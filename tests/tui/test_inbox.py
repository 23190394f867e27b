"""The inbox: everything that needs the person or is asked, in all collaborations."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from acp_core.model import Snapshot
from acp_core.model.matter import question, verdicts
from tests.tui.screen import Source, change, make_app, seen, settle
from tests.tui.stage import is_open
from tests.tui.support import HARMFUL, KEY, NOW, make_event, make_snapshot
from tests.tui.test_why_and_people import Inputs, relaunch, stuck

SINCE = NOW - timedelta(minutes=5)
ASKED = question("question:3:1", "question", "Is there a limit on the size?", "reviewer", SINCE,
                 "review.md", 14, "3")  # fmt: skip
BLOCKING = question("blocking:1", "blocking", "No budget", document="readiness.md", line=3)
OTHER = "/work/cache"


def two() -> tuple[Snapshot, Snapshot]:
    """A collaboration that needs a human, and one in which something is asked."""
    return stuck(), make_snapshot(OTHER, questions=(BLOCKING, ASKED))


async def test_all_collaborations_stand_in_one_list(tmp_path: Path) -> None:
    app = make_app(*two(), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("exclamation_mark")
        await settle(pilot)
        shown = seen(pilot)
        assert "Inbox  1 need · 1 blocking · 1 question" in shown
        order = ["checkout-redesign", "! The program of reader ended", "cache",
                 "■ [blocking] No budget", "? reviewer asks: Is there a limit on the size?  5m"]  # fmt: skip
        places = [shown.index(words) for words in order]
        assert places == sorted(places)
        assert "f: Restart" in shown
        await pilot.press("down", "down")
        await settle(pilot)
        assert "enter: review.md:14" in seen(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert is_open(app, "CollaborationScreen")
        assert app.screen.key == OTHER
        assert app.screen.documents.active == "document review.md"
        await pilot.press("exclamation_mark")
        await settle(pilot)
        assert is_open(app, "InboxScreen")
        await pilot.press("escape")
        await settle(pilot)
        assert is_open(app, "CollaborationScreen")


async def test_the_footer_calls_the_key_what_the_selected_item_calls_it(tmp_path: Path) -> None:
    classify = BLOCKING._replace(verdicts=verdicts("classify"))
    app = make_app(stuck(), make_snapshot(OTHER, questions=(classify, ASKED)), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("exclamation_mark")
        await settle(pilot)
        foot = lambda: seen(pilot).rstrip().splitlines()[-1]  # noqa: E731
        assert "f: Restart" in seen(pilot) and "f Restart" in foot()
        await pilot.press("down")
        await settle(pilot)
        assert "f: Do it" in seen(pilot) and "f Do it" in foot()
        await pilot.press("down")  # nothing settles this one
        await settle(pilot)
        assert "f: " not in seen(pilot) and " f " not in foot()


async def test_a_need_is_answered_in_place(tmp_path: Path) -> None:
    app = make_app(*two(), folder=tmp_path)
    done: list[Inputs] = []
    source: Source = app.fleet.sources[KEY]  # type: ignore[attr-defined]
    source.offered = (relaunch(done),)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("exclamation_mark")
        await settle(pilot)
        await pilot.press("f")
        await settle(pilot)
        assert is_open(app, "ActionScreen")
        await pilot.press("exclamation_mark")  # in a form it is a letter
        await settle(pilot)
        assert is_open(app, "ActionScreen")
        await pilot.press("escape")
        await settle(pilot)
        await pilot.press("f")
        await settle(pilot)
        await pilot.press("ctrl+s")
        await settle(pilot)
        assert [inputs.participant for inputs in done] == ["reader"]
        assert is_open(app, "InboxScreen")


async def test_what_is_acknowledged_goes_and_what_is_put_off_comes_back(tmp_path: Path) -> None:
    app = make_app(*two(), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("exclamation_mark")
        await settle(pilot)
        await pilot.press("Z")
        await settle(pilot)
        shown = seen(pilot)
        assert "The program of reader ended" not in shown
        assert app.attention.open_needs(app.fleet.snapshots[KEY]) == ()
        await pilot.press("a")
        await settle(pilot)
        assert is_open(app, "ActionScreen")
        await pilot.press("ctrl+s")
        await settle(pilot)
        assert is_open(app, "InboxScreen")
        app.outcomes.end()
        await settle(pilot)
        assert "Inbox  1 question" in seen(pilot)
        events = (*stuck().events, make_event(4))
        change(app, replace(stuck(), events=events))
        await settle(pilot)
        assert "The program of reader ended" in seen(pilot)
        assert "No budget" not in seen(pilot)


async def test_an_empty_inbox_says_so_and_leads_back(tmp_path: Path) -> None:
    app = make_app(make_snapshot(), folder=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("exclamation_mark")
        await settle(pilot)
        assert "Nothing needs you, and no questions are open." in seen(pilot)
        await pilot.press("f", "a", "Z", "enter", "escape")
        await settle(pilot)
        assert is_open(app, "FleetScreen")


@pytest.mark.parametrize("text", HARMFUL)
async def test_hostile_questions_show_as_text(text: str, tmp_path: Path) -> None:
    hostile = question(text, "question", text, text, SINCE, text, 3, text, text, ((text, text),))
    app = make_app(make_snapshot(questions=(hostile,), name=text), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("exclamation_mark")
        await settle(pilot)
        assert "\x1b" not in seen(pilot) and "\u202e" not in seen(pilot)
        await pilot.press("f")
        await settle(pilot)
        assert is_open(app, "ActionScreen")


def test_what_is_put_off_does_not_pile_up(tmp_path: Path) -> None:
    app: Any = make_app(*two(), folder=tmp_path)
    attention, snapshot = app.attention, two()[0]
    for number in range(4, 9):
        events = (*snapshot.events, *(make_event(n) for n in range(4, number)))
        attention.snooze(replace(snapshot, events=events), "B7 reader 4", NOW)
    assert len(attention.acknowledged(KEY)) == 1


async def test_the_selected_item_is_in_sight_whatever_comes_above_it(tmp_path: Path) -> None:
    def many(first: int) -> Snapshot:
        asked = [ASKED._replace(key=f"q{n}", sentence=f"Question {n}?") for n in range(first, 100)]
        return make_snapshot(questions=tuple(asked))

    app = make_app(many(40), folder=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("exclamation_mark")
        await settle(pilot)
        assert "❯ ? reviewer asks: Question 40?" in seen(pilot)
        change(app, many(20))  # nothing was chosen yet: the first one stays selected
        await settle(pilot)
        assert "❯ ? reviewer asks: Question 20?" in seen(pilot)
        await pilot.press("down")
        change(app, many(0))
        await settle(pilot)
        assert "❯ ? reviewer asks: Question 21?" in seen(pilot)


async def test_it_opens_with_the_first_heading_in_sight(tmp_path: Path) -> None:
    many = tuple(
        ASKED._replace(key=f"question:{n}", sentence=f"Question {n}: " + "how is it? " * 12)
        for n in range(30)
    )
    app = make_app(make_snapshot(OTHER, questions=many), folder=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("exclamation_mark")
        await settle(pilot)
        shown = seen(pilot)
        assert shown.index("cache") < shown.index("Question 0")


@pytest.mark.slow
async def test_the_inbox_is_filtered_by_words(tmp_path: Path) -> None:
    app = make_app(*two(), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("exclamation_mark")
        await settle(pilot)
        await pilot.press("slash", *"REVIEWER", "space", *"limit", "enter")
        await settle(pilot)
        shown = seen(pilot)
        assert "Is there a limit on the size?" in shown and "1 of 3 rows" in shown
        assert "No budget" not in shown and "The program of reader ended" not in shown
        assert "Inbox  1 question · 1 of 3 items shown" in shown
        await pilot.press("enter")  # what is left is what the keys act on
        await settle(pilot)
        assert is_open(app, "CollaborationScreen") and app.screen.key == OTHER
        await pilot.press("exclamation_mark")
        await settle(pilot)
        await pilot.press("slash", *"sxfa")  # letters, and no commands
        await settle(pilot)
        assert is_open(app, "InboxScreen")
        assert "No item contains these words" in seen(pilot)
        await pilot.press("escape")
        await settle(pilot)
        assert "No budget" in seen(pilot) and "rows" not in seen(pilot)
        await pilot.press("slash", *"cache", "enter", "escape")
        await settle(pilot)
        assert is_open(app, "InboxScreen") and "The program of reader" in seen(pilot)
        await pilot.press("escape")
        await settle(pilot)
        assert is_open(app, "CollaborationScreen")
