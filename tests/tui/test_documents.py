"""The coordinator reads what was written: rendered, raw, what changed, and as a tree."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from acp_core.model import DocumentText, Link, Panel, Snapshot, Target
from acp_core.model import Row as PanelRow
from acp_tui.widgets.document_pages import TextView
from acp_tui.widgets.document_view import DocumentView
from acp_tui.widgets.documents import Documents
from acp_tui.widgets.lines import text_of
from acp_tui.widgets.pane import PaneData
from acp_tui.widgets.panel_view import narrowed
from tests.tui.screen import TEXTS
from tests.tui.stage import WidgetApp
from tests.tui.support import NOW, make_snapshot


class Stage(WidgetApp):
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
        documents = self.query_one(Documents)
        documents.find_snapshot = self.others.get
        documents.data = PaneData(snapshot, (), self.now, utc=True)


def visible_text(app: App[None]) -> str:
    """What the active tab shows."""
    documents = app.query_one(Documents)
    pane = documents.active_view
    view = pane.active_view if isinstance(pane, DocumentView) else pane
    return "\n".join(view.render_line(y).text.rstrip() for y in range(view.size.height))


def about(app: App[None]) -> str:
    return str(app.query_one("#document-line").render())


def tabs(app: App[None]) -> str:
    return str(app.query_one("#document-tabs").render())


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
    documents.document_view.active_view.focus()
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
        text = visible_text(pilot.app)
        assert "Proposal\n  ━━━━━━━━" in text
        assert "database │ 2 weeks │ a slower login" in text
        assert "proposal.md · changed 4m ago · 812 B" in about(pilot.app)
        documents.open("proposal.md", 20)
        await settle(pilot)
        await pilot.press("r")
        await settle(pilot)
        assert "19     return database.put(session.id, session)" in visible_text(pilot.app)
        assert "20 ```" in visible_text(pilot.app)
        assert "raw" in about(pilot.app)
        await pilot.press("r")
        await settle(pilot)
        assert "│     return database.put" in visible_text(pilot.app)


@pytest.mark.slow
async def test_a_finding_opens_the_document_at_its_very_line() -> None:
    async with Stage().run_test(size=(70, 12)) as pilot:
        documents = await start(pilot)
        assert documents.open("review.md", 14, raw=True)
        await settle(pilot)
        view = documents.document_view.view
        rows = [y for y in range(view.virtual_size.height) if view.row_style(y) == "target"]
        assert [text_of(view.row(y)).split()[:2] for y in rows] == [["❯", "14"]]
        assert "Required Changes" in visible_text(pilot.app)
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
        assert "+3 -1 since your last visit" in about(app)
        marked = [row for row in visible_text(app).split("\n") if row.startswith("▌")]
        assert marked[0].startswith("▌ database │ 3 weeks")
        await pilot.press("c")
        await settle(pilot)
        listed = visible_text(app)
        assert "- | database | 2 weeks | a slower login |" in listed
        assert "14 + | database | 3 weeks | a slower login |" in listed
        assert "⋯ 10 lines unchanged" in listed
        await pilot.press("s")
        await settle(pilot)
        assert "since your last visit" not in about(app)
        assert not any(row.startswith("▌") for row in visible_text(app).split("\n"))
        # a change while another document is looked at shows as a mark on its tab
        documents.activate("document review.md")
        await settle(pilot)
        app.texts["proposal.md"] += "More.\n"
        app.take(changed(snapshot, "proposal.md", "3"))
        assert "Proposal ●" in tabs(app)
        documents.activate("document proposal.md")
        await settle(pilot)
        assert "Proposal ●" not in tabs(app)
        assert "+1 since your last visit" in about(app)
        await pilot.press("n")
        assert "▌ End. More." in visible_text(app)


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
        documents.last_seen = versions | {"review.md": "0", "decisions.md": "0"}
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
        documents.document_view.active_view.focus()
        assert "▾ participants  [3 items]" in visible_text(pilot.app)
        assert "id  reviewer" in visible_text(pilot.app)
        await pilot.press("down", "down", "enter")
        assert "▸ participants  [3 items]" in visible_text(pilot.app)
        assert "reviewer" not in visible_text(pilot.app).replace("reviewing", "")
        await pilot.press("r")
        await settle(pilot)
        assert '3   "currentPhase": "reviewing",' in visible_text(pilot.app)


async def test_broken_json_is_shown_as_it_is() -> None:
    async with Stage(TEXTS | {"protocol.json": '{"objective": '}).run_test(size=(80, 20)) as pilot:
        documents = await start(pilot)
        documents.activate("document protocol.json")
        await settle(pilot)
        assert '1 {"objective":' in visible_text(pilot.app)
        assert "no JSON" in about(pilot.app)


async def test_an_empty_and_a_missing_document_say_so() -> None:
    snapshot = make_snapshot()
    missing = replace(snapshot.documents[0], state="missing")
    snapshot = replace(snapshot, documents=(missing, *snapshot.documents[1:]))
    async with Stage().run_test(size=(80, 20)) as pilot:
        documents = await start(pilot, snapshot)
        empty = pilot.app.query_one("#document-empty")
        assert str(empty.render()) == "Proposal does not exist (missing)." and empty.display
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
        assert "See the review and [image: a picture]." in visible_text(app)
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
        assert "Gates 1/2  Participants  Phases  Story  State" in tabs(app)
        documents.activate("gates")
        await settle(pilot)
        assert "[ ] The objective is decided\n  [x] Risks are listed" in visible_text(app)
        documents.activate("people")
        await settle(pilot)
        assert "● reader    reviewer  agent  has the turn 48m  last seen never" in visible_text(app)
        documents.activate("phases")
        await settle(pilot)
        documents.list.focus()
        await pilot.press("down")
        assert "● reviewing        48 min" in visible_text(app)
        assert "2026-05-03 12:02:00 UTC, 48 min so far" in visible_text(app)
        documents.activate("story")
        await settle(pilot)
        assert "1 checkout-first     Blocked: no data." in visible_text(app)
        assert "(this one)" in visible_text(app)


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
            assert "first task" in visible_text(pilot.app) and "[x]" in visible_text(pilot.app)
        documents.activate("panel board")
        await settle(pilot)
        assert "open  2\n  [ ] one  first task\n  three  third\n  done  1" in visible_text(
            pilot.app
        )
        documents.activate("panel tree")
        await settle(pilot)
        documents.panel.focus()
        await pilot.press("down")
        assert "→ review.md:3" in visible_text(pilot.app)
        documents.activate("panel empty")
        await settle(pilot)
        assert "No task was ever made." in visible_text(pilot.app)


LEDGER = Panel(
    "ledger", "Ledger", "table", ("Id", "Decided by", "What"),
    (PanelRow(("D-1", "reader", "Green door")), PanelRow(("D-2", "writer", "Blue dóor")),
     PanelRow(("D-3", "writer", "Ask the reader"))),
)  # fmt: skip


@pytest.mark.slow
async def test_typed_words_narrow_the_rows_of_a_panel() -> None:
    other = Panel("other", "Other", "table", ("Id",), (PanelRow(("X-1",)),))
    async with Stage().run_test(size=(100, 16)) as pilot:
        documents = await start(pilot, make_snapshot(panels=(LEDGER, other)))
        documents.activate("panel ledger")
        await settle(pilot)
        documents.panel.focus()
        await pilot.press("slash", *"READER")
        await settle(pilot)
        assert "D-1" in visible_text(pilot.app) and "D-3" in visible_text(pilot.app)
        assert "D-2" not in visible_text(pilot.app)
        await pilot.press("enter")
        await settle(pilot)
        assert documents.panel.has_focus
        status = str(documents.panel_filter.query_one("#panel-status").render())
        assert status == "/READER  2 of 3 rows"

        grown = replace(LEDGER, rows=(*LEDGER.rows, PanelRow(("D-4", "reader", "Red"))))
        pilot.app.take(make_snapshot(panels=(grown, other)))  # type: ignore[attr-defined]
        await settle(pilot)
        assert "D-4" in visible_text(pilot.app) and "D-2" not in visible_text(pilot.app)
        documents.activate("panel other")
        await settle(pilot)
        assert "X-1" in visible_text(pilot.app), "each panel has a filter of its own"
        assert not documents.panel_filter.has_class("-narrowed")
        documents.activate("panel ledger")
        await settle(pilot)
        documents.panel.focus()
        await pilot.press("escape")
        await settle(pilot)
        assert "D-2" in visible_text(pilot.app)

        await pilot.press("down")  # what is selected may go
        assert "❯ D-1" in visible_text(pilot.app)
        await pilot.press("F", *"decidedby:writer DOOR")
        await settle(pilot)
        assert "D-2" in visible_text(pilot.app) and "D-3" not in visible_text(pilot.app)
        await pilot.press(*" [/x]")
        await settle(pilot)
        assert "No row contains these words." in visible_text(pilot.app)
        await pilot.press("escape")
        await settle(pilot)
        assert documents.panel.has_focus and "❯ D-1" in visible_text(pilot.app)


def test_the_rows_above_a_found_one_stay_in_a_tree() -> None:
    rows = (
        PanelRow(("hall",)), PanelRow(("lamp",), depth=1), PanelRow(("bulb",), depth=2),
        PanelRow(("switch",), depth=1), PanelRow(("attic",)), PanelRow(("bulb",), depth=1),
    )  # fmt: skip
    tree = Panel("tree", "Tree", "tree", ("Part",), rows)
    found = [(row.depth, row.cells[0]) for row in narrowed(tree, "bulb")]
    assert found == [(0, "hall"), (1, "lamp"), (2, "bulb"), (0, "attic"), (1, "bulb")]
    assert narrowed(tree, "  ") == rows
    assert narrowed(tree, "part:hall") == rows[:1]
    assert narrowed(tree, "other:hall") == ()


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
