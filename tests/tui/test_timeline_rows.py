"""Rows and positions of the timeline, its filter, and text cut to fit."""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import ComposeResult

from acp_tui.widgets.lines import Lines, Row, find, mark, text_of, wrap, wrap_path
from acp_tui.widgets.timeline_model import Filter, Growth, Model, Part, Spot, find_event, parse
from acp_tui.widgets.timeline_view import columns, detail_rows, event_height, event_rows, rule_row
from tests.tui.stage import WidgetApp
from tests.tui.support import NOW, START, ManyEvents, make_event, make_events

ACTORS = ("server", "reader", "reviewer")


@given(
    length=st.integers(0, 40),
    unread=st.none() | st.integers(0, 45),
    cursor=st.none() | st.integers(0, 39),
    details=st.integers(0, 5),
    hidden=st.sets(st.integers(0, 39)),
    heights=st.none() | st.lists(st.integers(1, 4), min_size=41, max_size=41),
)
def test_every_row_is_found_from_its_position_and_back(
    length: int,
    unread: int | None,
    cursor: int | None,
    details: int,
    hidden: set[int],
    heights: list[int] | None,
) -> None:
    model = Model()
    model.take(ManyEvents(length))
    model.unread_from = unread
    if hidden:
        model.choose(Filter(words=("chosen by hand",)))
        model.refilter(array("l", [place for place in range(length) if place not in hidden]))
    model.cursor = cursor if cursor is not None and cursor < length else None
    model.details = details
    if heights is not None:
        model.starts = list(accumulate(heights[: len(model)], initial=0))

    expected: list[Spot] = []
    for position in range(len(model)):
        place = model.place(position)
        first = unread is not None and place >= unread
        before = position > 0 and model.place(position - 1) < (unread or 0)
        if first and before:
            expected.append(Spot(Part.RULE, 0))
        height = heights[position] if heights is not None else 1
        expected += [Spot(Part.EVENT, position, line) for line in range(height)]
        if place == model.cursor:
            expected += [Spot(Part.DETAIL, number) for number in range(details)]
    assert [model.spot(row) for row in range(model.rows)] == expected
    for position in range(len(model)):
        assert expected[model.row(position)] == Spot(Part.EVENT, position)


def test_growth_is_told_from_rewriting() -> None:
    model = Model()
    log = make_events()
    assert model.take(log) is Growth.GROWN
    assert model.take(log) is Growth.SAME
    assert model.take((*log, make_event(4))) is Growth.GROWN
    assert model.take(log) is Growth.REWRITTEN
    assert model.take((*log[:2], make_event(3, summary="something else"))) is Growth.REWRITTEN


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("from:reader event:blocked", Filter(("reader",), ("blocked",))),
        ("by:a kind:b", Filter(("a",), ("b",))),
        ("is:illegal is:new", Filter(problems=True, unread=True)),
        ('Limit "two words" x:y', Filter(words=("limit", "two words", "x:y"))),
        ("from: :", Filter(words=("from:", ":"))),
        ('"', Filter()),
        ("   ", Filter()),
    ],
)
def test_what_is_typed_as_a_filter(typed: str, expected: Filter) -> None:
    assert parse(typed) == expected
    assert parse(str(expected)) == expected


@given(st.text())
def test_nothing_typed_as_a_filter_is_an_error(typed: str) -> None:
    parse(typed).admits(make_event(1))


def test_an_event_is_found_whatever_its_id_is() -> None:
    assert find_event(ManyEvents(100_000), "77") == 76
    named = tuple(make_event(n, id=f"e-{n}") for n in range(1, 10))
    assert find_event(named, "e-3") == 2
    assert find_event(named, "3") is None
    assert find_event(named, None) is None


# --- text ----------------------------------------------------------------------------------


@given(st.text(alphabet="ab 日\u0301e"), st.integers(2, 9), st.integers(2, 9))
def test_wrapped_text_loses_nothing_but_the_blanks_at_its_cuts(
    text: str, first: int, rest: int
) -> None:
    from acp_tui.text import width

    spans = wrap(text, first, rest)
    at = 0
    for number, (start, end) in enumerate(spans):
        assert not text[at:start].strip(" ")
        assert not number or not text[start:end].startswith(" ")
        assert width(text[start:end]) <= max(2, rest if number else first)
        at = end
    assert not text[at:].strip(" ")


@given(st.text(alphabet="ab/ 日"), st.integers(2, 9))
def test_a_path_loses_nothing_and_is_cut_behind_its_slashes(path: str, cells: int) -> None:
    from acp_tui.text import width

    pieces = [path[start:stop] for start, stop in wrap_path(path, cells)]
    assert "".join(pieces) == path
    assert all(width(each) <= max(2, cells) for each in pieces)
    for each in pieces[:-1]:
        assert each.endswith("/") or "/" not in each[1:]


@given(st.text(), st.text(max_size=3))
def test_found_spans_hold_the_words(text: str, words: str) -> None:
    spans = find(text, words)
    assert all(text[a:b].lower() == words.lower() for a, b in spans)


@given(st.lists(st.tuples(st.text(max_size=4), st.sampled_from(["", "muted"])), max_size=5))
def test_marking_changes_no_text(row: list[tuple[str, str]]) -> None:
    text = text_of(tuple(row))
    spans = [(1, 3), (4, 5)]
    marked = mark(tuple(row), spans, "match")
    assert text_of(marked) == text
    inside = "".join(piece for piece, style in marked if "match" in style)
    assert inside == text[1:3] + text[4:5]


@given(
    wide=st.integers(1, 140),
    kind=st.text(max_size=30),
    actor=st.text(max_size=30),
    summary=st.text(max_size=200),
    reply=st.none() | st.text(max_size=12),
    problem=st.text(max_size=40),
    wrapped=st.booleans(),
)
def test_rows_fit_whatever_an_event_holds(
    wide: int, kind: str, actor: str, summary: str, reply: str | None, problem: str, wrapped: bool
) -> None:
    from acp_tui.text import width

    wide = max(20, wide)
    event = make_event(
        7, kind, actor, summary, reply_to=reply, problem=problem, document=kind, at_source=actor
    )
    form = columns(
        wide,
        events=(event,),
        last_order=7,
        actors=(actor,),
        first=None,
        last=None,
        relative=False,
        utc=True,
        wrapped=wrapped,
    )
    made = event_rows(event, form, NOW)
    assert len(made) == event_height(event, form)
    rows: list[Row] = [*made, rule_row(form, 3, START, NOW)]
    rows += detail_rows(event, form, event)
    for row in rows:
        assert width(text_of(row)) <= max(wide, 44), text_of(row)


class Endless(Lines):
    """Lines that say their number."""

    def row(self, y: int) -> Row:
        return ((f"line {y}", ""), (" end", "muted"))


async def test_selected_text_is_bounded() -> None:
    class Long(WidgetApp):
        def compose(self) -> ComposeResult:
            yield Endless(id="lines")

    async with Long().run_test(size=(40, 10)) as pilot:
        lines: Any = pilot.app.query_one(Endless)
        lines.set_extent(1_000_000)
        lines.text_select_all()
        text = pilot.app.screen.get_selected_text()
        assert text is not None and len(text.splitlines()) == 5_000


@pytest.mark.parametrize(
    ("kind", "said", "shown"),
    [
        ("started", "ra started", ""),
        ("run_started", "run started", ""),
        ("gate_pending", "Gate pending, from planning", "from planning"),
        ("started", "ra started late", "ra started late"),
    ],
)
def test_a_row_does_not_say_twice_who_did_what(kind: str, said: str, shown: str) -> None:
    event = make_event(1, kind, "ra", said)
    form = columns(
        120,
        events=[event],
        last_order=1,
        actors=("ra",),
        first=START,
        last=START,
        relative=False,
        utc=True,
    )
    (row,) = event_rows(event, form, NOW)
    assert text_of(row).partition(kind)[2].strip() == shown
