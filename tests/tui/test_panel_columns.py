"""The columns of a panel stand under their headings, whatever stands before the first cell."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from acp_core.model import Panel, Row, Tone
from acp_tui.widgets.panel_view import aged, items


def written(panel: Panel, cells: int = 80) -> list[str]:
    return ["".join(text for text, _ in item.pieces) for item in items(panel, cells=cells)]


@pytest.mark.parametrize("shape", ["checklist", "table", "tree"])
def test_columns_stand_under_their_headings(shape: str) -> None:
    rows = (
        Row(("1", "begun", "ann"), checked=False),
        Row(("22", "done", "ben"), checked=True, depth=1),
        Row(("x", "done", "ben"), tone=Tone.START),
    )
    heading, *lines = written(Panel("p", "P", shape, ("id", "state", "who"), rows))
    for row, line in zip(rows, lines, strict=True):
        assert line.index(row.cells[1]) == heading.index("state")
        assert line.index(row.cells[2]) == heading.index("who")


def test_blanks_at_the_end_of_a_row_are_not_there_to_be_cut() -> None:
    rows = (Row(("planning", "", "")), Row(("ann", "at work", "you: answer")))
    assert written(Panel("p", "P", "table", ("what", "state", "next"), rows))[1] == "planning"


def test_ages_are_told_as_of_the_time_at_which_they_are_looked_at() -> None:
    since = datetime(2026, 3, 1, 10, tzinfo=UTC)
    rows = (Row(("ann", "1m", "at work"), ages=((1, since),)), Row(("ben", "-", "waits")))
    panel = Panel("p", "P", "table", ("who", "age", "is"), rows)
    later = aged(panel, since + timedelta(hours=3))
    assert [row.cells for row in later.rows] == [("ann", "3h", "at work"), ("ben", "-", "waits")]
    assert "ann" in written(later)[1] and "3h" in written(later)[1]
    timeless = Panel("p", "P", "table", ("who",), rows[1:])
    assert aged(timeless, since) is timeless


def test_the_widest_columns_give_way_so_that_every_column_shows() -> None:
    long = "a long answer that goes on and on " * 3
    rows = (Row(("1", long, "ben")), Row(("2", "short", "cat")))
    panel = Panel("p", "P", "table", ("id", "answer", "from"), rows)
    lines = written(panel, 40)
    assert all(len(line) <= 40 for line in lines)
    assert lines[0].endswith("from") and lines[1].endswith("ben") and lines[2].endswith("cat")
    wide = written(panel, 240)
    assert long.strip() in wide[1], "nothing is cut where there is room"
    noted = replace(panel, columns=("id", "note", "answer", "from"), rows=(
        Row(("1", "", long, "ben")), Row(("2", "", "short", "cat"))))  # fmt: skip
    assert written(noted, 40) == lines, "a column in which nothing stands gives way first"
    assert "note" in written(noted, 240)[0]


def test_a_long_text_goes_on_below_its_heading_where_the_table_is_short() -> None:
    error = "Two of the queues could not be compared for want of an account."
    names = ("agent", "state", "error", "task")
    rows = (
        Row(("ann", "success", "", "ann-part")),
        Row(("ben", "partial", error, "ben-part"), tone=Tone.REVISE),
    )
    panel = Panel("p", "P", "table", names, rows)
    _, ann, ben = items(panel, cells=50)
    lines = ["".join(text for text, _ in row) for row in (ben.pieces, *ben.below)]
    begin = lines[0].index("Two of")
    assert lines[0].endswith("ben-part") and not ann.below and ben.details == ()
    assert " ".join(line[begin:].removesuffix("ben-part").strip() for line in lines) == error
    assert all(line[:begin].isspace() and len(line) <= 50 for line in lines[1:])
    _, _, last = items(replace(panel, columns=names[:3]), cells=40)
    assert last.below, "the last column, too"
    endless = replace(panel, rows=(Row(("ben", "partial", error * 20, "ben-part")),))
    _, cut = items(endless, cells=50)
    assert len(cut.below) == 4 and [*cut.details] == [(f"error: {error * 20}", "muted")]
    _, *many = items(replace(panel, rows=rows * 30), cells=50)
    assert not any(item.below for item in many), "a long table has a line for each row"


def test_columns_of_nothing_but_dashes_give_way_first() -> None:
    names = ("id", "name", "state", "since", "received", "waiting", "identity", "trouble")
    row = Row(("peer_001", "B", "away", "22 Jan 10:30:00", "2", "-", "-", "-"))
    panel = Panel("p", "P", "table", names, (row,))
    assert written(panel, 56)[0].split() == [*names[:5]]
    assert written(panel, 120)[0].split() == [*names]


def test_where_there_are_too_many_columns_the_last_ones_are_left_out() -> None:
    names = ("id", "severity", "status", "statement", "raised", "at", "changed", "at last")
    said = "No owner is named for the migration of the old counter"
    row = ("OBJ-031", "blocking", "raised", said, "qa", "20 Nov 21:44", "pm", "21 Nov 08:12")
    panel = Panel("p", "P", "table", names, (Row(row), Row(("OBJ-1", "low", *row[2:]))))
    heading, line, _ = written(panel, 66)
    assert heading.split() == ["id", "severity", "status", "statement", "raised", "at"]
    assert line.startswith("OBJ-031  blocking  raised  No owner is named  qa") and len(line) <= 66
    assert line.rstrip().endswith("20 Nov 21:44"), "what shows can be read"
    assert written(panel, 180)[0].split("  ")[-1] == "at last", "all of them where there is room"


def test_columns_stand_closer_before_a_heading_is_cut() -> None:
    names = ("agent", "state", "attempt", "last write", "findings")
    rows = (Row(("ann", "success", "1", "38w", "0")), Row(("ben", "failed", "2", "1h", "12")))
    panel = Panel("p", "P", "table", names, rows)
    wide, near = written(panel, 50)[0], written(panel, 44)[0]
    assert "state    attempt  last write  findings" in wide
    assert "state   attempt last write findings" in near


@pytest.mark.parametrize("cells", range(40, 120, 3))
def test_no_heading_is_cut_where_columns_can_be_left_out(cells: int) -> None:
    names = ("agent", "state", "attempt", "last write", "files", "error", "findings", "task")
    error = "Two of the queues could not be compared for want of an account."
    rows = (
        Row(("ann", "success", "1", "38w", "2, 237 B", "", "0", "ann-part")),
        Row(("ben", "partial", "1", "38w", "2, 376 B", error, "0", "ben-part")),
    )
    lines = written(Panel("p", "P", "table", names, rows), cells)
    assert "…" not in lines[0] and "error" in lines[0], "what a row is about shows"
    assert all(len(line) <= cells for line in lines[:2])


def test_first_cells_stand_below_each_other_where_only_some_rows_have_a_sign() -> None:
    rows = (Row(("ann", "success"), tone=Tone.DONE), Row(("cat", "waits")))
    _, ann, cat = written(Panel("p", "P", "table", ("agent", "state"), rows))
    assert ann.index("ann") == cat.index("cat") == 2


def test_the_details_of_a_row_tell_only_what_does_not_stand_whole_in_it() -> None:
    long = "a long answer that goes on and on " * 30
    rows = (Row(("1", long, "ben")), Row(("2", "short", "cat")))
    _, first, second = items(Panel("p", "P", "table", ("id", "answer", "from"), rows))
    assert [text for text, _ in first.details] == [f"answer: {long}"]
    assert second.details == ()


def test_a_title_that_has_its_line_for_itself_makes_no_column_wider() -> None:
    rows = (
        Row(("implementation of all",)),
        Row(("plan-sync", "reached, 2 of 2 there", "your approval"), depth=1),
    )
    panel = Panel("p", "P", "tree", ("workstream", "standing", "waiting for"), rows)
    heading, alone, line = written(panel, 50)
    assert alone == "implementation of all"
    assert line.split("  ")[-2:] == ["reached, 2 of 2 there", "your approval"]
    assert heading.index("standing") == line.index("reached")
    names = replace(panel, rows=rows[:1])
    assert written(names, 50)[1] == "implementation of all"
