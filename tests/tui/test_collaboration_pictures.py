"""How the collaboration screen looks, by what somebody does with it.

After a wanted change: ``pytest tests/tui/test_collaboration_pictures.py --snapshot-update``,
and look at the pictures before they are committed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from textual.pilot import Pilot

from acp_core import model
from acp_core.model import (
    Action,
    Intent,
    Outcome,
    OutcomeState,
    PhaseState,
    Preview,
    Snapshot,
    Status,
)
from acp_tui.app import AcpApp
from tests.tui.screen import TEXTS, change, settle
from tests.tui.screen import make_app as made
from tests.tui.stage import named_keys, shows
from tests.tui.support import (
    START,
    make_event,
    make_events,
    make_findings,
    make_phases,
    make_snapshot,
)

KEY = "/work/checkout-redesign"
Compare = Callable[..., bool]


class Nothing(BaseModel):
    """No inputs."""


BLOCK = Action(
    "block", "Block", "Blocks.", Nothing,
    lambda inputs: Preview("Blocks."), lambda inputs: Outcome(OutcomeState.DONE, "Blocked."),
    intent=Intent.STOP_EVERYTHING,
)  # fmt: skip


def make_app(*snapshots: Snapshot, **others: Any) -> Any:
    """An app whose collaborations can be blocked: its key is never dimmed, however late one looks."""
    app: Any = made(*snapshots, **others)
    for source in app.fleet.sources.values():
        source.offered = (BLOCK,)
    return app


def opened(*keys: str) -> Callable[[Pilot[Any]], Any]:
    """Open the collaboration, and press keys."""

    async def run(pilot: Pilot[Any]) -> None:
        app: AcpApp = pilot.app  # type: ignore[assignment]
        await settle(pilot)
        app.open_collaboration(KEY)
        await settle(pilot)
        for key in keys:
            await pilot.press(key)
            await settle(pilot)
        await named_keys(pilot)

    return run


def test_the_coordinator_reads_on_a_small_terminal(snap_compare: Compare, tmp_path: Path) -> None:
    snapshot = make_snapshot(findings=make_findings(), verdict=model.Verdict.INVALID)
    app = make_app(snapshot, folder=tmp_path, theme="ansi-dark")
    assert snap_compare(app, terminal_size=(80, 24), run_before=opened("2"))


def test_the_coordinator_sees_what_changed(snap_compare: Compare, tmp_path: Path) -> None:
    snapshot = make_snapshot()
    app = make_app(snapshot, folder=tmp_path)
    start = opened("2")

    async def run(pilot: Pilot[Any]) -> None:
        await start(pilot)
        source = app.fleet.sources[KEY]  # type: ignore[attr-defined]
        text = TEXTS["proposal.md"].replace("2 weeks", "3 weeks").replace("a slower login", "none")
        source.texts = TEXTS | {"proposal.md": text + "- Who removes old ones?\n"}
        documents = (replace(snapshot.documents[0], version="2"), *snapshot.documents[1:])
        change(app, replace(snapshot, documents=documents))
        await settle(pilot)
        await named_keys(pilot)

    assert snap_compare(app, terminal_size=(120, 36), run_before=run)


def test_a_finished_story_on_a_wide_terminal(snap_compare: Compare, tmp_path: Path) -> None:
    first = make_snapshot(
        "/work/checkout-first", status=Status.BLOCKED, headline="Blocked: no data.",
        changed=START + timedelta(hours=2),
    )  # fmt: skip
    phases = tuple(replace(phase, state=PhaseState.DONE) for phase in make_phases(5))
    done = make_event(4, "completed", "server", "Proceed: sessions live in the database",
                      reply_to="3", document="conclusion.md")  # fmt: skip
    snapshot = make_snapshot(
        status=Status.COMPLETED,
        headline="Completed: proceed.",
        phases=(*phases[:-1], replace(phases[-1], state=PhaseState.CURRENT)),
        turns=(),
        next_actions=(),
        events=(*make_events(), done),
        lineage=(model.Link("continues", first.key, "checkout-first", True, "blocked"),),
    )
    app = make_app(snapshot, first, folder=tmp_path)
    start = opened()

    async def run(pilot: Pilot[Any]) -> None:
        await start(pilot)
        pilot.app.screen.query_one("Documents").activate("story")
        await settle(pilot)
        await shows(pilot, "b Block")  # known a moment later

    assert snap_compare(app, terminal_size=(200, 50), run_before=run)
