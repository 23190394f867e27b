"""Text that does harm elsewhere is only text here: in every pane, tab, title and list."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from textual.pilot import Pilot

from acp_core import model
from acp_core.model.matter import decision, remark
from acp_core.model.text import clean
from acp_tui.text import width
from acp_tui.widgets.lines import text_of
from acp_tui.widgets.markdown import MarkdownPage, TooDeep, parse
from acp_tui.widgets.pane import Tab
from acp_tui.widgets.phase_rail import rail
from tests.tui.screen import change, make_app, screen_lines, settle
from tests.tui.stage import is_open
from tests.tui.support import HOSTILE, NOW, hostile_snapshot, make_snapshot

KEY = "/work/hostile"
CONTROL = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))} | set("\u202e\u2066\u2028")


async def visit_everything(pilot: Pilot[Any]) -> str:
    """Go through every pane and tab, open what opens, click around; all that was shown."""
    app = pilot.app
    app.open_collaboration(KEY)  # type: ignore[attr-defined]
    await settle(pilot)
    screen = app.screen
    lines_seen: list[str] = []

    async def collect() -> None:
        await settle(pilot)
        assert app.is_running
        lines = screen_lines(app)
        assert not CONTROL & set("".join(lines)), lines
        lines_seen.extend(lines)

    await collect()
    for key in ("1", "k", "enter", "escape", "3", "down", "4", "down", "down", "2", "d"):
        await pilot.press(key)
        await collect()
    assert is_open(app, "PickScreen")
    await pilot.press("escape")
    documents = screen.query_one("Documents")
    for tab in documents.all_tabs:
        documents.activate(tab.id)
        await settle(pilot)
        await pilot.press("r", "i", "down", "enter")
        await collect()
        if app.screen is not screen:
            await pilot.press("escape")
            await settle(pilot)
        await pilot.press("2")
    for y in range(1, app.size.height, 7):
        await pilot.click(offset=(app.size.width // 3, y))
        await pilot.pause()
        while app.screen is not screen and len(app.screen_stack) > 1:
            await pilot.press("escape")
            await pilot.pause()
        if not is_open(app, "CollaborationScreen"):
            break
    await collect()
    return "\n".join(lines_seen)


LATER = [
    pytest.param(text, marks=pytest.mark.slow) for text in (HOSTILE[0], " ".join(HOSTILE[1:9]))
]


@pytest.mark.slow
@pytest.mark.parametrize("text", [*LATER, " ".join(HOSTILE[9:])])
async def test_hostile_text_is_shown_and_does_nothing(tmp_path: Path, text: str) -> None:
    copied: list[str] = []
    # as the reading side delivers it: safe to show, markup and all
    snapshot = replace(hostile_snapshot(KEY, clean(text)), key=KEY)
    texts = {document.id: f"{clean(text)}\n\n# {clean(text)}\n" for document in snapshot.documents}
    app = make_app(snapshot, texts=texts, folder=tmp_path)
    app.copy_to_clipboard = copied.append  # type: ignore[method-assign]
    app.open_url = lambda url, **_: copied.append(url)  # type: ignore[method-assign, assignment]
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await settle(pilot)
        lines_seen = await visit_everything(pilot)
        words = clean(text).replace("\n", "\u2424").split()
        assert words[0] in lines_seen
    assert copied == []


@pytest.mark.slow
async def test_a_protocol_that_forgot_to_clean_its_text_does_no_harm(tmp_path: Path) -> None:
    snapshot = replace(hostile_snapshot(KEY, HOSTILE[9]), key=KEY)
    texts = {document.id: HOSTILE[9] for document in snapshot.documents}
    async with make_app(snapshot, texts=texts, folder=tmp_path).run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await visit_everything(pilot)


async def test_hostile_text_may_come_and_go(tmp_path: Path) -> None:
    app = make_app(make_snapshot(KEY), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        app.open_collaboration(KEY)
        await settle(pilot)
        for text in (*HOSTILE[:3], " ".join(HOSTILE[3:])):
            change(app, replace(hostile_snapshot(KEY, clean(text)), key=KEY))
            await pilot.pause()
            change(app, make_snapshot(KEY))
            await pilot.pause()
        await settle(pilot)
        assert "Decide where sessions are kept" in "\n".join(screen_lines(app))


@pytest.mark.slow
async def test_much_of_everything_still_draws(tmp_path: Path) -> None:
    snapshot = make_snapshot(KEY)
    long = "x" * 3_000
    snapshot = replace(
        snapshot,
        headline=long,
        objective=long,
        phases=tuple(model.Phase(f"p{n}", long[:40], model.PhaseState.AHEAD) for n in range(400)),
        participants=tuple(model.Participant(f"agent-{n}") for n in range(300)),
        turns=tuple(model.Turn(f"agent-{n}", long) for n in range(300)),
        next_actions=tuple(model.NextAction(f"agent-{n}", long, True) for n in range(700)),
        documents=tuple(
            model.Document(f"d{n}.md", long[:60], "markdown", version="1") for n in range(500)
        ),
        findings=tuple(
            model.Finding("F", model.Severity.ERROR, long, f"d{n % 9}.md", n) for n in range(3_000)
        ),
        needs=tuple(decision(f"n{n}", "N", long) for n in range(300)),
        notices=tuple(remark(f"o{n}", long) for n in range(300)),
        lineage=tuple(model.Link("continues", f"/l{n}", long[:40]) for n in range(30)),
    )
    texts = {document.id: "text\n" for document in snapshot.documents}
    for size in ((200, 50), (20, 6)):
        app = make_app(snapshot, texts=texts, folder=tmp_path)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            app.open_collaboration(KEY)
            await settle(pilot)
            for key in ("2", "]", "]", "3", "end", "home", "down", "4", "end", "1", "z", "z"):
                await pilot.press(key)
            await settle(pilot)
            assert is_open(app, "CollaborationScreen")


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=300), st.integers(10, 100))
def test_any_text_renders_as_markdown_and_fits(text: str, cells: int) -> None:
    try:
        page = MarkdownPage(parse(clean(text)), cells)
    except TooDeep:
        return
    for y in range(page.rows):
        row = text_of(page.row(y))
        assert width(row) <= max(cells, 19)
        assert not CONTROL & set(row.replace("\t", ""))


@given(st.lists(st.text(max_size=30), max_size=12), st.integers(1, 120))
def test_any_rail_fits(names: list[str], cells: int) -> None:
    states = list(model.PhaseState)
    phases = tuple(
        model.Phase(name, clean(name), states[n % len(states)]) for n, name in enumerate(names)
    )
    assert rail(phases, NOW, cells).cell_length <= cells


def test_a_tab_of_any_name_has_the_width_that_it_says() -> None:
    for text in HOSTILE:
        tab = Tab("x", clean(text) * 5, "1/2", True)
        assert tab.cells == width(tab.text) + 2
