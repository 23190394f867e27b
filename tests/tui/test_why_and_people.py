"""Why it is stuck, and what everybody's loop does, as the collaboration screen shows it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from acp_core.agents.processes import Identity
from acp_core.agents.state import Phase, Run, RunnerState, Saved
from acp_core.fleet import Batch
from acp_core.model import Action, Matter, Outcome, OutcomeState, Preview
from acp_core.model.matter import TIME, About, decision, verdicts
from acp_tui.widgets import people
from acp_tui.widgets.lines import text_of
from tests.tui.screen import Source, change, make_app, open_screen, seen, settle
from tests.tui.stage import is_open, shows, until
from tests.tui.support import HARMFUL, KEY, NOW, make_snapshot

ENDED = Matter(
    "B7",
    "the program of reader ended without a review",
    instruction="start it again",
    evidence=("exit code 0 at 12:31:04", "it said: Invalid API key"),
    verdicts=verdicts("relaunch", (("participant", "reader"),), ("hand_over",)),
    about=About(participant="reader"),
    since=NOW - timedelta(minutes=12),
    key="B7 reader 4",
)
GUESS = Matter(
    "E2",
    "the machine may have slept",
    move=TIME,
    certain=False,
    key="E2",
)


def make_loop(participant: str = "reader", folder: str = KEY, **changes: Any) -> RunnerState:
    """A loop at its second try, whose program uses a tool."""
    run = Run(
        number=2,
        process=Identity(4242, 1.0),
        started=NOW - timedelta(minutes=3),
        tool="Bash",
        tokens_in=1_200,
        tokens_out=300,
        cost=0.02,
        lines=("I read the proposal.", "Now I write the review."),
    )
    saved = Saved(
        folder=folder,
        participant=participant,
        process=Identity(4200, 1.0),
        started=NOW - timedelta(hours=1),
        program="claude",
        version="2.1.0",
        phase=Phase.RUNNING,
        since=NOW - timedelta(minutes=3),
        turns=2,
        attempt=2,
        attempts=4,
        run=run,
        tokens_in=10_000,
        tokens_out=2_000,
        cost=0.29,
    )
    values: dict[str, Any] = {"log": "/state/log", "place": "/state", "program_alive": True}
    values |= {"alive": True} | {k: v for k, v in changes.items() if k in RunnerState.__slots__}
    more = {k: v for k, v in changes.items() if k not in RunnerState.__slots__}
    return RunnerState(folder, participant, replace(saved, **more), **values)


def stuck() -> Any:
    """A review that waits for a program which ended."""
    need = decision(ENDED.key, "B7", ENDED.sentence, "reader", ENDED.since, "relaunch", ENDED.given)
    return make_snapshot(causes=(ENDED, GUESS), needs=(need,))


class Inputs(BaseModel):
    """Whom an action is about."""

    participant: str
    message: str = ""


def relaunch(done: list[Inputs]) -> Action:
    """The action that the cause names."""

    def perform(inputs: Inputs) -> Outcome:
        done.append(inputs)
        return Outcome(OutcomeState.DONE, "Fixed: it was started again.")

    return Action(
        "relaunch",
        "Restart",
        "Start the program again.",
        Inputs,
        lambda inputs: Preview(f"Starts {inputs.participant} again."),
        perform,
    )


@pytest.mark.asyncio
async def test_the_causes_show_with_their_evidence_and_how_sure_they_are(tmp_path: Path) -> None:
    app = make_app(stuck(), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        screen.show_tab("why")
        await settle(pilot)
        shown = seen(pilot)
        assert "B7 The program of reader ended without a review" in shown
        assert "certain · 12m" in shown
        assert "· it said: Invalid API key" in shown
        assert "→ Start it again" in shown
        assert "▸ Restart" in shown and "▸ Reassign to another agent" in shown
        assert "… E2 The machine may have slept  inferred" in shown


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_remedy_is_one_key_away_and_knows_whom_it_is_about(tmp_path: Path) -> None:
    app = make_app(stuck(), folder=tmp_path)
    done: list[Inputs] = []
    source: Source = app.fleet.sources[KEY]  # type: ignore[attr-defined]
    source.offered = (relaunch(done),)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        await pilot.press("f")
        await settle(pilot)
        assert is_open(app, "ActionScreen")
        await pilot.press("escape")
        screen.show_tab("why")
        await settle(pilot)
        await pilot.press("down", "enter")  # from the cause to its first remedy
        await settle(pilot)
        assert is_open(app, "ActionScreen")
        await pilot.press("ctrl+s")
        await settle(pilot)
        assert [inputs.participant for inputs in done] == ["reader"]


@pytest.mark.asyncio
async def test_remedies_bear_their_labels_and_the_key_that_does_them(tmp_path: Path) -> None:
    app = make_app(stuck(), folder=tmp_path, keys={"act.remedy": "F5"})
    source: Source = app.fleet.sources[KEY]  # type: ignore[attr-defined]
    source.offered = (relaunch([]),)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        screen.show_tab("why")
        await settle(pilot)
        shown = seen(pilot)
        assert "▸ Restart  F5 or enter" in shown
        assert "▸ Reassign to another agent  not possible now" in shown


@pytest.mark.slow
@pytest.mark.asyncio
async def test_people_show_what_their_loops_do(tmp_path: Path) -> None:
    app = make_app(make_snapshot(), folder=tmp_path)
    fleet: Any = app.fleet
    fleet.running[KEY] = (make_loop(),)
    async with app.run_test(size=(199, 40)) as pilot:
        screen = await open_screen(pilot)
        screen.show_tab("people")
        await settle(pilot)
        row = next(line for line in seen(pilot).split("\n") if "using Bash" in line)
        for words in ("reader", "has the turn", "using Bash 3m", "attempt 2 of 4"):
            assert words in row
        await pilot.press("end")
        await settle(pilot)
        rows = screen.query_one("Documents").list
        texts = (text_of(rows.row(y)) for y in range(rows.virtual_size.height))
        shown = " ".join(" ".join(texts).split())
        assert "11k in, 2.3k out · $0.31" in shown
        assert "Now I write the review." in shown
        assert "claude 2.1.0 · 2 turns taken" in shown

        fleet.running[KEY] = (make_loop(alive=False, program_alive=False),)
        app.snapshots_changed.publish(Batch((), loops=(KEY,)))
        await settle(pilot)
        assert "died 3m" in seen(pilot)


@pytest.mark.asyncio
async def test_a_wide_terminal_cuts_no_name_of_a_participant(tmp_path: Path) -> None:
    name = "reviewer-of-everything-that-is-costly"
    snapshot = make_snapshot()
    longer = replace(snapshot.participants[2], id=name)
    snapshot = replace(snapshot, participants=(*snapshot.participants[:2], longer))
    app = make_app(snapshot, folder=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await open_screen(pilot)
        screen.show_tab("people")
        await until(pilot, lambda: f"{name[:15]}" in seen(pilot))
        assert name not in seen(pilot)
        await pilot.resize_terminal(200, 50)
        await shows(pilot, name)


async def test_people_show_the_loops_of_other_accounts_and_whom_to_ask(tmp_path: Path) -> None:
    app = make_app(make_snapshot(), folder=tmp_path)
    fleet: Any = app.fleet
    note = "anna plays reader (pid 4711 on workshop since 10:02): ask anna"
    theirs = make_loop(account="anna", log="", note=note, run=None)
    fleet.loops_of_others = lambda key: (theirs,)
    async with app.run_test(size=(199, 40), notifications=True) as pilot:
        screen = await open_screen(pilot)
        screen.show_tab("people")
        await settle(pilot)
        assert "run by anna 3m" in seen(pilot)
        assert "reader (pid 4711 on workshop since 10:02): ask anna" in seen(pilot)
        await pilot.press("end", "p")
        await shows(pilot, "The log belongs to anna")
        await pilot.press("m")
        await shows(pilot, "Use `acp stop`")


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.parametrize("text", HARMFUL)
async def test_hostile_causes_and_loops_show_as_text(text: str, tmp_path: Path) -> None:
    cause = Matter(
        text,
        text,
        instruction=text,
        evidence=(text,),
        verdicts=verdicts(text, others=(text,)),
        about=About(document=text),
        key=text,
    )
    app = make_app(make_snapshot(causes=(cause,)), folder=tmp_path)
    fleet: Any = app.fleet
    loop = make_loop(note=text, program=text)
    run = replace(loop.shown.run, tool=text, lines=(text,), exit=text)
    fleet.running[KEY] = (replace(loop, shown=replace(loop.shown, run=run)),)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        for tab in ("why", "people"):
            screen.show_tab(tab)
            await pilot.press("end")
            await settle(pilot)
            assert "\x1b" not in seen(pilot) and "\u202e" not in seen(pilot)
        assert is_open(app, "CollaborationScreen")
        change(app, make_snapshot())
        await settle(pilot)
        assert app.screen.query_one("Documents").active != "why"


def test_a_loop_that_took_one_turn_says_one_turn() -> None:
    rows = people.items(make_snapshot(), (make_loop(turns=1),), NOW, utc=True)
    said = [words for row in rows for words, _ in row.details]
    assert any("1 turn taken" in words for words in said)
