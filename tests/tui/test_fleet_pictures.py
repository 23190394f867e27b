"""How the fleet and the forms look, by what somebody does with them.

After a wanted change: ``pytest tests/tui/test_fleet_pictures.py --snapshot-update``, and
look at the pictures before they are committed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field
from textual.pilot import Pilot
from textual.widgets import Input

from acp_core.model import (
    Action,
    Change,
    Intent,
    Outcome,
    OutcomeState,
    Participant,
    Preview,
    Snapshot,
    Source,
    SourceState,
    Status,
    Turn,
)
from acp_core.model.matter import decision, remark
from tests.tui.stage import (
    StageFleet,
    dashboard,
    finished,
    named_keys,
    needy,
    screen_text,
    snapshot,
    until,
    with_findings,
)
from tests.tui.support import NOW

Compare = Callable[..., bool]


def fleet() -> list[Snapshot]:
    """A coordinator's evening: one of everything."""
    hours = NOW - timedelta(hours=2)
    gate = decision(
        "gate", "GATE", "the planning gate waits for your approval", "you", hours, "approve"
    )
    stuck = decision("blocked", "BLOCKED", "blocked by server: may ids be used again?", "server",
                 NOW - timedelta(days=1), "continue")  # fmt: skip
    late = remark("LATE", "proposal.md changed after it was accepted, 3 May 12:01")
    return [
        needy("checkout-redesign"),
        needy("payments", status=Status.BLOCKED, phase="blocked", turns=(), needs=(stuck,)),
        needy("billing", phase="planning", needs=(gate,), participants=(Participant("you", "human"),),
              turns=(Turn("you", "approve", hours),)),
        with_findings(snapshot("auth-flow", phase="revising", round=2, progress=0.5), 0, 1),
        with_findings(snapshot("mail", source=Source(SourceState.STALE, "protocol.json is half written")), 2),
        snapshot("search-index", phase="decision_review", progress=0.6,
                 turns=(Turn("server", "accept", NOW - timedelta(seconds=50)),)),
        *(snapshot(f"service-{number}", progress=number / 10) for number in range(1, 5)),
        finished("cache-eviction"),
        finished("naming", notices=(late,)),
    ]  # fmt: skip


class Block(BaseModel):
    """What blocking takes."""

    participant: Literal["server", "reader"] = Field(
        "server", title="Participant on whose behalf", description="The event bears this name."
    )
    reason: str = Field(title="What blocks it", description="For everybody to read.", min_length=3)
    details: str = Field("", title="Details", json_schema_extra={"format": "multiline"})
    gates: list[str] = Field([], title="Gates that cannot be met")
    silent: bool = Field(False, title="Do not ring anybody's bell")


def preview(inputs: Block) -> Preview:
    line = (
        f'+{{"seq":12,"from":"{inputs.participant}","event":"blocked","summary":"{inputs.reason}"}}'
    )
    state = '@@ -2,3 +2,3 @@\n-  "currentPhase": "reviewing",\n+  "currentPhase": "blocked",\n   "objective": ""'
    return Preview(
        "Appends event 12, blocked, in the name of server.",
        (
            Change("/work/payments/events.jsonl", "append", line),
            Change("/work/payments/protocol.json", "replace", state),
        ),
        ("acp", "append", "--folder", "/work/payments", "--event", "blocked"),
        ("Nothing leads out of blocked: going on means a new folder.",),
    )


BLOCK = Action(
    "block", "Block", "Say that this cannot go on, and why.", Block, preview,
    lambda inputs: Outcome(OutcomeState.REFUSED, "seq 12: the collaboration is over"),
    intent=Intent.STOP_EVERYTHING,
)  # fmt: skip


def pictured(state: Path, theme: str, *given: Snapshot) -> Any:
    stage = StageFleet(*given)
    stage.offered = (BLOCK,)
    return dashboard(stage, state, settings={"theme": theme, "utc": True})


def following(*steps: str | Callable[[Any], object]) -> Callable[[Pilot[Any]], Any]:
    """Press keys, and wait for what has to hold between them."""

    async def run(pilot: Pilot[Any]) -> None:
        await pilot.pause()
        for step in steps:
            for control in pilot.app.screen.query(Input):
                control.cursor_blink = False
            if isinstance(step, str):
                await pilot.press(step)
            else:
                await until(pilot, lambda step=step: step(pilot.app))
        await named_keys(pilot)
        await pilot.pause(0.3)

    return run


def filled(app: Any) -> bool:
    return bool(app.screen.query("FieldView"))


def allowed(app: Any) -> bool:
    return not app.screen.query_one("#do").disabled


def refused(app: Any) -> bool:
    return "Refused, nothing was changed" in screen_text(app)


def test_the_coordinator_keeps_the_terminals_own_colours(
    snap_compare: Compare, tmp_path: Path
) -> None:
    app = pictured(tmp_path, "ansi-dark", *fleet())
    assert snap_compare(app, terminal_size=(80, 24), run_before=following("down"))


def test_a_wide_terminal_shows_more(snap_compare: Compare, tmp_path: Path) -> None:
    app = pictured(tmp_path, "nord", *fleet())
    assert snap_compare(app, terminal_size=(200, 30), run_before=following())


def test_a_refusal_is_seen_on_a_small_ansi_terminal(snap_compare: Compare, tmp_path: Path) -> None:
    app = pictured(tmp_path, "ansi-light", *fleet())
    steps = following("b", filled, *"why", allowed, "ctrl+s", refused)
    assert snap_compare(app, terminal_size=(80, 24), run_before=steps)
