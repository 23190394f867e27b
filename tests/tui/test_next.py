"""The pane of what comes next: ages that agree with the headline, and a past that claims nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from textual.app import ComposeResult

from acp_core.model import Snapshot
from acp_tui.widgets.headline import Headline
from acp_tui.widgets.lines import text_of
from acp_tui.widgets.next_actions import NextActions
from acp_tui.widgets.pane_data import PaneData
from tests.tui.stage import NOW, WidgetApp, needy


class Stage(WidgetApp):
    """The headline above the pane."""

    def compose(self) -> ComposeResult:
        yield Headline()
        yield NextActions()

    def show(self, data: PaneData) -> tuple[str, str]:
        headline, pane = self.query_one(Headline), self.query_one(NextActions)
        headline.data = pane.data = data
        rows = "\n".join(text_of(item.pieces) for item in pane.items)
        return str(headline.render()), rows


@pytest.fixture
def snapshot() -> Snapshot:
    return needy()


async def test_the_age_of_what_needs_you_is_the_same_in_both_places(snapshot: Snapshot) -> None:
    (need, *_) = snapshot.needs
    since = need.since or NOW
    async with (app := Stage()).run_test(size=(120, 36)):
        for seconds in (1, 7, 42, 61, 119, 125):
            now = since + timedelta(seconds=seconds)
            top, rows = app.show(PaneData(snapshot, (need,), now))
            told = f"{seconds}s" if seconds < 60 else f"{seconds // 60}m"
            assert f" {told}" in top and f" {told}" in rows


async def test_a_need_of_the_past_was_acknowledged_by_nobody(snapshot: Snapshot) -> None:
    async with (app := Stage()).run_test(size=(120, 36)):
        top, rows = app.show(PaneData(snapshot, snapshot.needs, NOW, past=True))
        assert "acknowledge" not in top and "f:" not in top and "! reader has not" in top
        assert rows.startswith("! ") and "acknowledged" not in rows
        assert app.query_one(NextActions).items[0].target.action is None
