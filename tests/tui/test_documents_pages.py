"""Documents as rows: Markdown, raw lines, changes, trees, code."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.app import ComposeResult

from acp_core.model import Document
from acp_tui.text import width
from acp_tui.widgets.document_pages import (
    ChangesPage,
    RawPage,
    changed_lines,
    compare,
    lines_of,
    removed_before,
)
from acp_tui.widgets.document_view import Mode, NotJson, StateTree, lay_out, read
from acp_tui.widgets.lines import text_of
from acp_tui.widgets.markdown import MarkdownPage, TooDeep, parse
from acp_tui.widgets.markdown import lines_of as code_lines
from acp_tui.widgets.row_list import RowList
from tests.tui.stage import WidgetApp


def render(text: str, cells: int = 60) -> list[str]:
    page = MarkdownPage(parse(text), cells)
    return [text_of(page.row(y)).rstrip() for y in range(page.rows)]


def test_markdown_keeps_the_shape_of_lists_quotes_and_code() -> None:
    assert render("- [x] done\n- [ ] open\n  1. a\n  2. b\n\n> said\n> twice\n") == [
        "• [x] done",
        "• [ ] open",
        "    1. a".replace("    ", "  "),
        "  2. b",
        "",
        "▌ said twice",
    ]
    assert render("```\n- [blocking] x\n\ty\n```") == ["│ - [blocking] x", "│     y"]
    assert render("<b>bold</b> &amp; <!-- [blocking] -->") == ["<b>bold</b> & <!-- [blocking] -->"]


def test_file_names_are_no_web_addresses() -> None:
    page = MarkdownPage(parse("proposal.md and a@b.c and http://a.org"), 60)
    assert page.link(0, 0) is None
    assert page.link(0, 16) is None
    assert page.link(0, 26) == "http://a.org"


def test_text_that_nests_too_deep_is_not_lost() -> None:
    deep = "> " * 300 + "here"
    with pytest.raises(TooDeep):
        parse(deep)
    document = Document("d", "D", "markdown")
    laid = lay_out(document, deep, None, Mode.RENDERED, 60)
    assert laid.mode is Mode.RAW and laid.why_raw


MARKDOWN = st.lists(
    st.sampled_from(
        ["# h", "## h *e*", "text **b** `c` ~~s~~", "- item", "  - nested", "1. one", "> quote", "",
         "| a | b |", "|---|---|", "| 1 | long cell " + "x" * 50 + " |", "```", "    code",
         "[l](http://x) ![i](y)", "---", "日本語 " * 20, "- [x] t", "word " * 40, "\\", "[a]: http://b"]
    ),
    max_size=20,
)  # fmt: skip


@settings(max_examples=200)
@given(lines=MARKDOWN, cells=st.integers(20, 90))
def test_rendered_rows_fit_and_know_their_lines(lines: list[str], cells: int) -> None:
    page = MarkdownPage(parse("\n".join(lines)), cells)
    before = 0
    for y in range(page.rows):
        assert width(text_of(page.row(y))) <= cells
        first, last = page.lines(y)
        assert 0 <= first <= last <= len(lines) + 1
        if first:
            assert first >= before
            before = first
            row = page.row_of(first)
            assert page.lines(row)[0] <= first


@given(text=st.text(alphabet="ab\t 日\n", max_size=200), cells=st.integers(8, 40))
def test_the_raw_page_shows_every_character_of_the_file(text: str, cells: int) -> None:
    page = RawPage(text, cells)
    lines = lines_of(text) or [""]
    shown_lines: dict[int, str] = {}
    for y in range(page.rows):
        first, last = page.lines(y)
        assert first == last
        shown_lines[first] = shown_lines.get(first, "") + text_of(page.row(y)[1:])
    assert list(shown_lines) == list(range(1, len(lines) + 1))
    for number, line in enumerate(lines, 1):
        letters = line.expandtabs(4).replace(" ", "")
        assert shown_lines[number].replace(" ", "") == letters
        assert page.lines(page.row_of(number))[0] == number


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_edits_make_the_new_text_of_the_old(old: list[str], new: list[str]) -> None:
    edits = compare(old, new)
    made = list(old)
    for edit in reversed(edits):
        made[edit.old.start : edit.old.stop] = [new[i] for i in edit.new]
    assert made == new
    assert all(1 <= line <= len(new) for line in changed_lines(edits))
    assert all(1 <= line <= len(new) + 1 for line in removed_before(edits))
    page = ChangesPage(old, new, edits, 60)
    added = [text_of(page.row(y)) for y in range(page.rows) if page.row(y)[-1][1] == "added"]
    assert len(added) == sum(len(edit.new) for edit in edits)


def test_long_texts_that_differ_everywhere_are_compared_quickly() -> None:
    old = [f"a{n % 7}" for n in range(50_000)]
    new = [f"b{n % 7}" for n in range(50_000)]
    assert len(compare(old, new)) == 1


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"a":' * 300 + "1" + "}" * 300, "nul"])
def test_what_is_no_json_is_no_tree(text: str) -> None:
    with pytest.raises(NotJson):
        read(text)


def test_names_that_stand_twice_show_twice() -> None:
    root = read('{"a": 1, "a": [2, {}], "b": null}')
    assert [child.name for child in root.children] == ["a", "a", "b"]
    assert root.size == 6


async def test_a_tree_with_many_values_shows_some_and_counts_the_rest() -> None:
    class Tree(WidgetApp):
        def compose(self) -> ComposeResult:
            yield StateTree(id="tree")

    async with Tree().run_test(size=(60, 20)) as pilot:
        tree = pilot.app.query_one(StateTree)
        tree.root = read(str(list(range(5_000))))
        await pilot.pause()
        tree.focus()
        await pilot.press("end")
        last = tree.render_line(tree.size.height - 1).text
        assert "4,000 more, not shown" in last or "4,000 more" in "".join(
            tree.render_line(y).text for y in range(tree.size.height)
        )


def test_code_has_as_many_lines_as_in_the_file() -> None:
    code = "def f():\n\n    return 'x'  # why\n"
    for language in ("python", "no such language", ""):
        lines = code_lines(code, language)
        assert ["".join(text for text, _ in line) for line in lines] == code.split("\n")
    assert ("def", "keyword") in code_lines(code, "python")[0]


async def test_a_list_with_very_many_rows_opens_at_once() -> None:
    from acp_tui.widgets.row_list import Item

    class Long(WidgetApp):
        def compose(self) -> ComposeResult:
            yield RowList(id="list")

    async with Long().run_test(size=(60, 20)) as pilot:
        rows = pilot.app.query_one(RowList)
        rows.items = tuple(Item(((f"row {n}", ""),), key=str(n)) for n in range(20_000))
        rows.focus()
        await pilot.press("end")
        assert rows.selected is not None and rows.selected.key == "19999"
        await pilot.press("home", "down", "pagedown")
        assert rows.selected.key == "19"
