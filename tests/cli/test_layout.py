"""Text in columns: aligned and never too wide, whatever the signs are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acp_core.cli import output
from acp_core.cli.output import Cell, Column, Terminal

NAMES = Column("name", 4)
WORDS = Column("what it is about", 6)
RARE = Column("rarely wanted", 8, drop=1)


def test_columns_align_though_signs_are_wide_or_combine() -> None:
    rows = [
        [Cell("checkout"), Cell("x")],
        [Cell("検索インデックス"), Cell("x")],
        [Cell("cafe\u0301"), Cell("x")],
        [Cell("🚀 launch"), Cell("x")],
    ]
    lines = output.table((NAMES, Column("x", 1)), rows, Terminal())
    assert {output.width(line) for line in lines} == {output.width("検索インデックス") + 3}


def test_a_table_gives_way_in_its_widest_column_first() -> None:
    rows = [[Cell("billing"), Cell("a sentence that goes on for much longer than that")]]
    lines = output.table((NAMES, WORDS), rows, Terminal(width=30))
    assert lines == ["name     what it is about", "billing  a sentence that goes…"]


def test_a_column_that_does_not_fit_at_all_is_left_out() -> None:
    rows = [[Cell("billing"), Cell("a sentence"), Cell("much more")]]
    columns = (NAMES, WORDS, RARE)
    assert "rarely" in output.table(columns, rows, Terminal(width=24))[0]
    assert "rarely" not in output.table(columns, rows, Terminal(width=20))[0]


def test_a_pipe_gets_everything() -> None:
    words = "word " * 100
    assert words.strip() in output.table((WORDS,), [[Cell(words)]], Terminal())[1]
    assert output.wrap(words, Terminal()) == [words.strip()]


def test_a_line_end_in_a_cell_does_not_break_the_table() -> None:
    lines = output.table((NAMES,), [[Cell("one\ntwo\x1b[2J")]], Terminal())
    assert len(lines) == 2
    assert "\x1b" not in lines[1]


def test_a_paragraph_wraps_at_words_behind_its_indent() -> None:
    lines = output.wrap("one two three four", Terminal(width=14), indent="    ", first="  → ")
    assert lines == ["  → one two", "    three four"]


@given(
    st.lists(st.lists(st.text(max_size=60), min_size=3, max_size=3), max_size=5),
    st.integers(min_value=24, max_value=100),
)
def test_no_table_is_wider_than_the_terminal(texts: list[list[str]], width: int) -> None:
    rows = [[Cell(text) for text in row] for row in texts]
    lines = output.table((NAMES, WORDS, RARE), rows, Terminal(width=width))
    assert len(lines) == len(rows) + 1
    assert all(output.width(line) <= width for line in lines)


@given(st.text(max_size=300), st.integers(min_value=20, max_value=80))
def test_wrapping_fits_and_loses_no_word(text: str, width: int) -> None:
    lines = output.wrap(text, Terminal(width=width), indent="  ")
    assert all(output.width(line) <= width for line in lines)
    shown = output.clean(text).expandtabs(4)
    assert "".join("".join(lines).split()) == "".join(shown.split())


def test_a_name_that_is_too_long_keeps_its_folder_and_both_its_ends() -> None:
    name = "counter-module-rewrite · checkout/api"
    assert output.fit_name(name, 40) == name.ljust(40)
    assert output.fit_name(name, 24) == "coun…rite · checkout/api"
    assert output.fit_name(name, 18) == "co…e · check…t/api"
    assert output.fit_name("checkout-redesign-2026-a", 13) == "checko…2026-a"
    for cells in range(40):
        for text in (name, "日本語の名前 · 名前/日本語", "e\u0301" * 30):
            assert output.width(output.fit_name(text, cells)) == cells
