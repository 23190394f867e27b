"""The coordinator reads what was written: rendered, raw, what changed, and as a tree."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from acp_core.model import Document, DocumentText, Link, Panel, Snapshot, Target
from acp_core.model import Row as PanelRow
from acp_tui.text import width
from acp_tui.widgets.code_styles import lines_of as code_lines
from acp_tui.widgets.document_pages import ChangesPage, RawPage
from acp_tui.widgets.document_view import DocumentView, Mode, lay_out
from acp_tui.widgets.documents import Documents
from acp_tui.widgets.line_diff import changed_lines, compare, lines_of, removed_before
from acp_tui.widgets.lines import text_of
from acp_tui.widgets.markdown_blocks import TooDeep, parse
from acp_tui.widgets.markdown_page import MarkdownPage
from acp_tui.widgets.row_list import RowList
from acp_tui.widgets.state_tree import NotJson, StateTree, read
from acp_tui.widgets.tab_strip import TabStrip
from acp_tui.widgets.text_view import TextView
from tests.tui.support import NOW, TEXTS, make_snapshot


class Stage(App[None]):
    """The documents of a collaboration alone; a text is there as soon as it is wanted."""

    def __init__(self, texts: dict[str, str] | None = None) -> None:
        super().__init__()
        self.texts = dict(texts or TEXTS)
        self.now: datetime = NOW
        self.others: dict[str, Snapshot] = {}
        self.loads: list[str] = []
        self.clicked: list[str] = []

    def compose(self) -> ComposeResult:
        yield Documents(id="documents")

    def on_documents_text_wanted(self, message: Documents.TextWanted) -> None:
        document = message.document
        self.loads.append(document.id)
        text = DocumentText(document.id, document.version, self.texts[document.id])
        self.query_one(Documents).loaded(text)

    def on_text_view_link_clicked(self, message: TextView.LinkClicked) -> None:
        self.clicked.append(message.address)

    def take(self, snapshot: Snapshot) -> None:
        self.query_one(Documents).take(snapshot, self.now, True, self.others.get)


def shown(app: App[None]) -> str:
    """What the active tab shows."""
    documents = app.query_one(Documents)
    pane = documents.shown
    view = pane.shown if isinstance(pane, DocumentView) else pane
    return "\n".join(view.render_line(y).text.rstrip() for y in range(view.size.height))


def about(app: App[None]) -> str:
    return str(app.query_one("#document-line").render())


def tabs(app: App[None]) -> str:
    return str(app.query_one("#document-tabs", TabStrip).render())


async def settle(pilot: Pilot[None]) -> None:
    await pilot.pause()
    while any(worker.is_running for worker in pilot.app.workers):
        await pilot.pause(0.01)
    await pilot.pause()


async def start(pilot: Pilot[None], snapshot: Snapshot | None = None) -> Documents:
    app = pilot.app
    assert isinstance(app, Stage)
    app.take(snapshot or make_snapshot())
    await settle(pilot)
    documents = app.query_one(Documents)
    documents.document_view.shown.focus()
    await pilot.pause()
    return documents


def changed(snapshot: Snapshot, document: str, version: str) -> Snapshot:
    """The Snapshot with another version of a document."""
    return replace(
        snapshot,
        documents=tuple(
            replace(d, version=version) if d.id == document else d for d in snapshot.documents
        ),
    )


# --- stories -------------------------------------------------------------------------------


async def test_a_proposal_is_read_rendered_and_raw_at_the_same_place() -> None:
    async with Stage().run_test(size=(70, 20)) as pilot:
        documents = await start(pilot)
        text = shown(pilot.app)
        assert "Proposal\n  ━━━━━━━━" in text
        assert "database │ 2 weeks │ a slower login" in text
        assert "proposal.md · changed 4m ago · 812 B" in about(pilot.app)
        documents.open("proposal.md", 20)
        await settle(pilot)
        await pilot.press("r")
        await settle(pilot)
        assert "19     return database.put(session.id, session)" in shown(pilot.app)
        assert "20 ```" in shown(pilot.app)
        assert "raw" in about(pilot.app)
        await pilot.press("r")
        await settle(pilot)
        assert "│     return database.put" in shown(pilot.app)


async def test_a_finding_opens_the_document_at_its_very_line() -> None:
    async with Stage().run_test(size=(70, 12)) as pilot:
        documents = await start(pilot)
        assert documents.open("review.md", 14, raw=True)
        await settle(pilot)
        view = documents.document_view.view
        rows = [y for y in range(view.virtual_size.height) if view.row_style(y) == "target"]
        assert [text_of(view.row(y)).split()[:2] for y in rows] == [["❯", "14"]]
        assert "Required Changes" in shown(pilot.app)
        assert not documents.open("no such document", 1)


async def test_what_changed_since_it_was_seen_is_marked_and_listed() -> None:
    async with Stage().run_test(size=(80, 30)) as pilot:
        app = pilot.app
        assert isinstance(app, Stage)
        snapshot = make_snapshot()
        documents = await start(pilot, snapshot)
        app.texts["proposal.md"] = TEXTS["proposal.md"].replace("2 weeks", "3 weeks") + "\nEnd.\n"
        app.take(changed(snapshot, "proposal.md", "2"))
        await settle(pilot)
        assert "+3 -1 since you looked" in about(app)
        marked = [row for row in shown(app).split("\n") if row.startswith("▌")]
        assert marked[0].startswith("▌ database │ 3 weeks")
        await pilot.press("c")
        await settle(pilot)
        listed = shown(app)
        assert "- | database | 2 weeks | a slower login |" in listed
        assert "14 + | database | 3 weeks | a slower login |" in listed
        assert "⋯ 10 lines unchanged" in listed
        await pilot.press("s")
        await settle(pilot)
        assert "since you looked" not in about(app)
        assert not any(row.startswith("▌") for row in shown(app).split("\n"))
        # a change while another document is looked at shows as a mark on its tab
        documents.activate("document review.md")
        await settle(pilot)
        app.texts["proposal.md"] += "More.\n"
        app.take(changed(snapshot, "proposal.md", "3"))
        assert "Proposal ●" in tabs(app)
        documents.activate("document proposal.md")
        await settle(pilot)
        assert "Proposal ●" not in tabs(app)
        assert "+1 since you looked" in about(app)
        await pilot.press("n")
        assert "▌ End. More." in shown(app)


async def test_a_document_that_did_not_change_is_not_loaded_again() -> None:
    async with Stage().run_test(size=(80, 30)) as pilot:
        app = pilot.app
        assert isinstance(app, Stage)
        snapshot = make_snapshot()
        await start(pilot, snapshot)
        app.take(replace(snapshot, headline="Something else."))
        app.take(changed(snapshot, "review.md", "2"))
        await settle(pilot)
        assert app.loads == ["proposal.md"]


async def test_documents_that_changed_since_the_last_visit_are_marked() -> None:
    async with Stage().run_test(size=(100, 20)) as pilot:
        documents = await start(pilot)
        versions = {d.id: d.version for d in make_snapshot().documents}
        documents.set_visit(versions | {"review.md": "0", "decisions.md": "0"})
        assert "Review ●  Decisions ●  Readiness" in tabs(pilot.app)
        await pilot.press("tab")
        documents.step(1)
        await settle(pilot)
        documents.step(1)
        assert "●" not in tabs(pilot.app)


async def test_state_is_a_tree_that_folds() -> None:
    async with Stage().run_test(size=(80, 20)) as pilot:
        documents = await start(pilot)
        documents.activate("document protocol.json")
        await settle(pilot)
        documents.document_view.shown.focus()
        assert "▾ participants  [3 items]" in shown(pilot.app)
        assert "id  reviewer" in shown(pilot.app)
        await pilot.press("down", "down", "enter")
        assert "▸ participants  [3 items]" in shown(pilot.app)
        assert "reviewer" not in shown(pilot.app).replace("reviewing", "")
        await pilot.press("r")
        await settle(pilot)
        assert '3   "currentPhase": "reviewing",' in shown(pilot.app)


async def test_broken_json_is_shown_as_it_is() -> None:
    async with Stage(TEXTS | {"protocol.json": '{"objective": '}).run_test(size=(80, 20)) as pilot:
        documents = await start(pilot)
        documents.activate("document protocol.json")
        await settle(pilot)
        assert '1 {"objective":' in shown(pilot.app)
        assert "no JSON" in about(pilot.app)


async def test_an_empty_and_a_missing_document_say_so() -> None:
    snapshot = make_snapshot()
    missing = replace(snapshot.documents[0], state="missing")
    snapshot = replace(snapshot, documents=(missing, *snapshot.documents[1:]))
    async with Stage().run_test(size=(80, 20)) as pilot:
        documents = await start(pilot, snapshot)
        empty = pilot.app.query_one("#document-empty")
        assert str(empty.render()) == "Proposal is not there (missing)." and empty.display
        documents.activate("document conclusion.md")
        await settle(pilot)
        assert str(empty.render()).startswith("Conclusion is empty.")
        documents.activate("document review.md")
        await settle(pilot)
        assert not empty.display


async def test_links_ask_and_images_are_only_words() -> None:
    text = "See [the review](review.md) and ![a picture](http://example.org/x.png).\n"
    async with Stage(TEXTS | {"proposal.md": text}).run_test(size=(80, 20)) as pilot:
        app = pilot.app
        assert isinstance(app, Stage)
        await start(pilot)
        assert "See the review and [image: a picture]." in shown(app)
        await pilot.click(TextView, offset=(8, 0))
        await pilot.click(TextView, offset=(25, 0))
        await pilot.click(TextView, offset=(3, 0))
        assert app.clicked == ["review.md", "http://example.org/x.png"]


async def test_gates_people_phases_and_the_story_have_their_tabs() -> None:
    before = make_snapshot("/work/checkout-first", headline="Blocked: no data.")
    snapshot = make_snapshot(
        lineage=(Link("continues", "/work/checkout-first", "checkout-first", True, "blocked"),),
    )
    async with Stage().run_test(size=(120, 20)) as pilot:
        app = pilot.app
        assert isinstance(app, Stage)
        app.others[before.key] = before
        documents = await start(pilot, snapshot)
        assert "Gates 1/2  People  Phases  Story  State" in tabs(app)
        documents.activate("gates")
        await settle(pilot)
        assert "[ ] The objective is decided\n  [x] Risks are listed" in shown(app)
        documents.activate("people")
        await settle(pilot)
        assert "● reader    reviewer  agent  waited for  last seen never" in shown(app)
        documents.activate("phases")
        await settle(pilot)
        documents.list.focus()
        await pilot.press("down")
        assert "● reviewing        48 min" in shown(app)
        assert "2026-05-03 12:02:00 UTC, 48 min so far" in shown(app)
        documents.activate("story")
        await settle(pilot)
        assert "1 checkout-first     Blocked: no data." in shown(app)
        assert "(this one)" in shown(app)


async def test_panels_of_any_protocol_are_shown_in_their_shapes() -> None:
    rows = (
        PanelRow(("open", "one", "first task"), checked=False),
        PanelRow(("done", "two", "second task"), depth=1, checked=True,
                 target=Target(document="review.md", line=3)),
        PanelRow(("open", "three", "third")),
    )  # fmt: skip
    shapes = ("table", "tree", "checklist", "board", "thread", "comparison", "yet unknown")
    panels = tuple(Panel(s, s.title(), s, ("lane", "id", "what"), rows) for s in shapes)
    empty = Panel("empty", "Empty", "table", ("a",), (), "No task was ever made.")
    async with Stage().run_test(size=(120, 20)) as pilot:
        documents = await start(pilot, make_snapshot(panels=(*panels, empty)))
        for shape in shapes:
            documents.activate(f"panel {shape}")
            await settle(pilot)
            assert "first task" in shown(pilot.app) and "[x]" in shown(pilot.app)
        documents.activate("panel board")
        await settle(pilot)
        assert "open  2\n  [ ] one  first task\n  three  third\n  done  1" in shown(pilot.app)
        documents.activate("panel tree")
        await settle(pilot)
        documents.panel.focus()
        await pilot.press("down")
        assert "→ review.md:3" in shown(pilot.app)
        documents.activate("panel empty")
        await settle(pilot)
        assert "No task was ever made." in shown(pilot.app)


async def test_more_tabs_than_fit_scroll_with_the_active_one() -> None:
    async with Stage().run_test(size=(40, 12)) as pilot:
        documents = await start(pilot)
        assert tabs(pilot.app) == "Proposal  Review  Decisions ›"
        documents.activate("gates")
        assert tabs(pilot.app).startswith("‹ ") and "Gates 1/2" in tabs(pilot.app)
        await pilot.click("#document-tabs", offset=(1, 0))
        assert documents.active == "document decisions.md"
        await pilot.click("#document-tabs", offset=(12, 0))
        assert documents.active != "document decisions.md"


# --- rendering -----------------------------------------------------------------------------


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
    class Tree(App[None]):
        def compose(self) -> ComposeResult:
            yield StateTree(id="tree")

    async with Tree().run_test(size=(60, 20)) as pilot:
        tree = pilot.app.query_one(StateTree)
        tree.take(read(str(list(range(5_000)))), another=True)
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

    class Long(App[None]):
        def compose(self) -> ComposeResult:
            yield RowList(id="list")

    async with Long().run_test(size=(60, 20)) as pilot:
        rows = pilot.app.query_one(RowList)
        rows.show([Item(((f"row {n}", ""),), key=str(n)) for n in range(20_000)])
        rows.focus()
        await pilot.press("end")
        assert rows.selected is not None and rows.selected.key == "19999"
        await pilot.press("home", "down", "pagedown")
        assert rows.selected.key == "19"
