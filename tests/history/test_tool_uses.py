"""What agents did in live turns: told by the moments of a replay and by a report."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from acp_core.agents.state import Phase, RunnerState, ToolUse
from acp_core.history.moments import LOOP, moments, tool_uses, tool_uses_panel
from acp_core.history.observing import loop_change
from tests.tui.support import NOW
from tests.tui.test_why_and_people import make_loop

AT = NOW.timestamp()
CALLS = (
    ToolUse(AT, "execute: make test", "completed"),
    ToolUse(AT + 9, "edit: \x1b[31mred", "failed"),
)


def ended() -> RunnerState:
    """A loop whose live turn has ended."""
    loop = make_loop()
    assert loop.run is not None
    run = replace(loop.run, ended=NOW + timedelta(seconds=20), calls=CALLS, live=True)
    return replace(loop, shown=replace(loop.shown, run=run, phase=Phase.WAITING))


def test_each_use_of_a_tool_is_a_moment_once() -> None:
    changes = [
        loop_change(make_loop(), NOW),
        loop_change(ended(), NOW + timedelta(seconds=20)),
        loop_change(replace(ended(), alive=False), NOW + timedelta(seconds=30)),
    ]
    assert [(each.at, each.status) for each in tool_uses(changes)] == [
        (AT, "completed"),
        (AT + 9, "failed"),
    ]
    found = moments([], [], [], [], changes)
    assert [
        (each.at, each.what) for each in found if each.kind == LOOP and "agent" in each.what
    ] == [
        (AT, "reader's agent: execute: make test (completed)"),
        (AT + 9, "reader's agent: edit: \x1b[31mred (failed)"),
    ]


def test_a_report_lists_them_as_plain_text() -> None:
    found = tool_uses_panel([loop_change(ended(), NOW)], utc=True)
    assert found is not None
    assert [row.cells[1:] for row in found.rows] == [
        ("reader", "execute: make test", "completed"),
        ("reader", "edit: \u241b[31mred", "failed"),
    ]
    assert tool_uses_panel([loop_change(make_loop(), NOW)], utc=True) is None
