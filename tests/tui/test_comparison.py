"""Two versions as rows: raw and rendered, below each other and side by side."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.history.versions import hunks, is_changed
from acp_tui.screens.reading import below, compare, side_by_side
from acp_tui.text import width
from acp_tui.widgets.lines import Row, text_of

OLD = "# Title\n\nEntries stay for **seven** days, and then\nthey go.\n\n- one\n- two\n\n---\n"
NEW = "# Title\n\nEntries stay for **thirty** days, and then\nthey go.\n\n- one\n- three\n\n---\n"


def marked(rows: list[Row]) -> list[str]:
    return [text for row in rows for text, style in row if "match" in style]


def test_rendered_a_word_is_one_change_though_the_paragraph_is_long() -> None:
    comparison = compare(OLD, NEW, rendered=True)
    parts = hunks(comparison.diff)
    rows, changes = below(comparison, [line for hunk in parts for line in hunk], 60)
    text = "\n".join(text_of(row) for row in rows)
    assert "**" not in text and "• three" in text
    assert {"seven", "thirty"} <= set(marked(rows))
    assert len(changes) == 2
    assert sum(line.sign != " " for line in comparison.diff) == 4
    assert all(width(text_of(row)) <= 60 for row in rows)


def test_raw_shows_the_signs_of_the_file() -> None:
    comparison = compare(OLD, NEW, rendered=False)
    rows, _ = side_by_side(comparison, list(comparison.diff), 120)
    text = "\n".join(text_of(row) for row in rows)
    assert "**seven**" in text and "**thirty**" in text
    line = next(text_of(row) for row in rows if "**seven**" in text_of(row))
    assert "**thirty**" in line and line.lstrip().startswith("3 ")


def test_what_cannot_be_rendered_is_shown_as_it_stands() -> None:
    deep = ">" * 3_000 + " x\n"
    comparison = compare(deep, deep + "more\n", rendered=True)
    assert comparison.line(comparison.diff[-1]) >= 1


_TEXTS = st.text(st.sampled_from("ab *#->`|\n審\u0301_[]()1."), max_size=300)


@settings(max_examples=60)
@given(_TEXTS, _TEXTS, st.booleans(), st.integers(56, 200))
def test_every_text_fits_its_columns(old: str, new: str, rendered: bool, cells: int) -> None:
    comparison = compare(old, new, rendered=rendered)
    for made, _ in (
        below(comparison, comparison.diff, cells),
        side_by_side(comparison, comparison.diff, cells),
    ):
        assert all(width(text_of(row)) <= cells for row in made)
    assert is_changed(comparison.diff) <= (old != new)
