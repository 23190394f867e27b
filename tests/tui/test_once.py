"""What a collaboration's screen says stands there once, below a few rows, in every protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widget import Widget

from acp_core.model import Finding, Severity
from acp_tui.widgets.findings import items
from acp_tui.widgets.headline import FEW, LOW, MOST
from tests.protocols.cycle import folders
from tests.protocols.folder.support import make_v1
from tests.protocols.governed import states
from tests.protocols.workspaces.making import agent, run
from tests.tui.cards import dashboard
from tests.tui.screen import headline, screen_lines
from tests.tui.stage import until

WORDS = 6
"""So many words in a row make a sentence that a reader knows again."""


def _blocked(root: Path) -> Path:
    root.mkdir()
    reason = "A reused token may sign out one device or all of them: somebody has to choose which"
    return make_v1(root, blocked=reason)


def _torn(root: Path) -> Path:
    root.mkdir()
    log = make_v1(root) / "events.jsonl"
    lines = log.read_text().splitlines()
    log.write_text("\n".join((*lines[:1], *lines[2:])) + "\n")
    return root


def _partial(root: Path) -> Path:
    agent(run(root), "ben", "partial")
    return root


_FIRST = {"folder, blocked", "governed, at a gate"}
"""The scenes of the default tests."""

SCENES: dict[str, Callable[[Path], Path]] = {
    "folder, blocked": _blocked,
    "folder, a broken log": _torn,
    "governed, a staged turn": lambda root: states.run_in(root, "staged"),
    "governed, at a gate": lambda root: states.run_in(root, "at its gate"),
    "governed, a rejected turn": lambda root: states.run_in(root, "turn rejected"),
    "governed, a question": lambda root: states.run_in(root, "asks"),
    "governed, escalated": lambda root: states.run_in(root, "escalated"),
    "initiative, at a gate": lambda root: states.initiative_in(root, "gate open"),
    "cycle, a decision": folders.escalated,
    "cycle, failing tests": folders.limit_reached,
    "cycle, nobody at work": folders.just_created,
    "workspaces, a partial result": _partial,
}


def said_in(lines: list[str], widget: Widget) -> list[str]:
    """The words that are drawn within a widget; rows that were cut are left out."""
    area = widget.region
    rows = [lines[y].ljust(area.right)[area.x + 1 : area.right - 1] for y in area.line_range]
    return [word for row in rows if "…" not in row for word in row.split()]


def shown_parts(screen: Any) -> list[Widget]:
    """What speaks for acp: not the events, nor a document, which hold others' words."""
    ids = ["#headline", "#pane-next", "#pane-findings"]
    ids += ["#pane-documents"] if not screen.documents.active.startswith("document ") else []
    parts = [screen.query_one(id) for id in ids]
    return [part for part in parts if part.display and part.region.height]


def said_twice(screen: Any, lines: list[str]) -> list[str]:
    """The sentences that are drawn in two places, each by so many of its words."""
    known: set[str] = set()
    twice = []
    for part in shown_parts(screen):
        words = said_in(lines, part)
        here = [" ".join(words[at : at + WORDS]) for at in range(len(words) - WORDS + 1)]
        twice += [each for each in here if each in known]
        known.update(here)
    return twice


async def still(pilot: Pilot[Any]) -> list[str]:
    """What is on the screen, once it no longer changes."""
    before: list[str] = []
    while before != (lines := screen_lines(pilot.app)):
        before = lines
        await pilot.pause(0.3)
    return before


async def look_around(pilot: Pilot[Any]) -> None:
    """Look at every pane, and check each picture."""
    screen = pilot.app.screen
    for pane in "1234":
        await pilot.press(pane)
        lines = await still(pilot)
        most = FEW if screen.size.height < LOW else MOST
        assert len(headline(screen)) <= most and screen.headline.size.height <= most
        assert not said_twice(screen, lines), "\n".join(lines)


@pytest.mark.parametrize(
    "size",
    [
        (120, 36),
        pytest.param((80, 24), marks=pytest.mark.slow),
        pytest.param((200, 50), marks=pytest.mark.slow),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "scene",
    [name if name in _FIRST else pytest.param(name, marks=pytest.mark.slow) for name in SCENES],
)
async def test_a_sentence_stands_once_on_the_screen(
    tmp_path: Path, scene: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    root = SCENES[scene](tmp_path / "lamp")
    async with dashboard(root, tmp_path, size, needs=False) as pilot:
        await until(pilot, lambda: "Timeline" in "\n".join(screen_lines(pilot.app)))
        await until(pilot, lambda: any(row.startswith(" ! ") for row in screen_lines(pilot.app)))
        await look_around(pilot)


@pytest.mark.slow
async def test_a_question_of_a_peer_stands_once_on_the_screen(tmp_path: Path) -> None:
    from acp_core.protocols.wire.network.agent_directory import folder_of
    from tests.protocols.wire.support import Process
    from tests.protocols.wire.test_cards import WORDS as QUESTION
    from tests.protocols.wire.test_cards import ask, text
    from tests.protocols.wire.test_remote import OPTIONS

    with Process("A", *OPTIONS) as a, Process("B", *OPTIONS) as b:
        await asyncio.to_thread(ask, a, b, text(QUESTION))
        async with dashboard(folder_of("A"), tmp_path) as pilot:
            await look_around(pilot)


def test_a_document_is_named_once_above_its_findings() -> None:
    deep, plain = "runs/1/cd/result.txt", "review.md"
    findings = [Finding("A1", Severity.ERROR, "Odd.", each, 1) for each in (deep, plain)]
    titles = {deep: "cd/result.txt", plain: "Review"}
    headings = [each.pieces[0][0] for each in items(findings, titles) if each.heading]
    assert headings == [deep, "Review (review.md)"]
