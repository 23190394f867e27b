"""The pane of what comes next: ages that agree with the headline, and a past that claims nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from textual.app import ComposeResult

from acp_core.model import NextAction, Participant, Snapshot, Status, Turn
from acp_core.model.matter import decision
from acp_tui.widgets.headline import Headline
from acp_tui.widgets.lines import text_of
from acp_tui.widgets.next_actions import NextActions, action_items
from acp_tui.widgets.pane import PaneData
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


PERSON = Participant("you", "human")
VERDICT, DISPATCH = "accept or reject the staged result of pm", "dispatch the next turn to dev"


def with_turns(snapshot: Snapshot, *needed: timedelta) -> Snapshot:
    """A person has two turns, of which those that began so long ago are needs, too."""
    begun = {VERDICT: NOW - timedelta(minutes=3), DISPATCH: NOW - timedelta(minutes=1)}
    return replace(
        snapshot,
        participants=(*snapshot.participants, PERSON),
        turns=tuple(Turn("you", what, at) for what, at in begun.items()),
        next_actions=tuple(NextAction("you", what, True) for what in begun),
        needs=tuple(
            decision(str(ago), "x", "The result needs you", "you", NOW - ago) for ago in needed
        ),
    )


async def test_what_a_need_says_of_a_persons_turn_is_not_said_again(snapshot: Snapshot) -> None:
    async with (app := Stage()).run_test(size=(120, 36)):
        for needed, left in (
            ((), [VERDICT, DISPATCH]),
            ((timedelta(minutes=3),), [DISPATCH]),
            ((timedelta(minutes=3), timedelta(minutes=1)), []),
        ):
            shown = with_turns(snapshot, *needed)
            _, rows = app.show(PaneData(shown, shown.needs, NOW))
            assert [each for each in (VERDICT, DISPATCH) if each in rows] == left


async def test_an_agents_turn_is_shown_beside_the_need_that_speaks_of_it(
    snapshot: Snapshot,
) -> None:
    agents = replace(with_turns(snapshot, timedelta(minutes=3)), participants=())
    async with (app := Stage()).run_test(size=(120, 36)):
        assert VERDICT in app.show(PaneData(agents, agents.needs, NOW))[1]


async def test_at_the_end_nobody_is_told_to_stop(snapshot: Snapshot) -> None:
    stop = NextAction("reader", "stop; collaboration is complete.", False)
    async with (app := Stage()).run_test(size=(120, 36)):
        for status, seen in ((Status.ACTIVE, True), (Status.COMPLETED, False)):
            over = replace(snapshot, status=status, next_actions=(stop,), needs=())
            assert (stop.text in app.show(PaneData(over, (), NOW))[1]) == seen


def test_what_several_should_do_goes_on_below_its_beginning() -> None:
    actions = [NextAction(name, "wait", False) for name in ("reader", "reviewer")]
    first, both = action_items((NextAction("server", "revise", True), *actions), (), NOW)
    assert text_of(first.pieces).index("revise") == first.indent
    assert text_of(both.pieces) == "○ reader, reviewer  wait"
    assert text_of(both.pieces).index("wait") == both.indent
