"""The footer offers what can be done, and calls it what the collaboration calls it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from textual.widgets import Input, OptionList, Static

from acp_core.model import Finding, Intent, Panel, Row, Severity
from acp_core.model.action import Action, Field, Kind, Outcome, OutcomeState, Preview
from acp_core.model.matter import decision
from tests.tui.stage import (
    StageFleet,
    dashboard,
    finished,
    hides,
    is_open,
    opens,
    screen_text,
    shows,
    snapshot,
    until,
)


class Nothing(BaseModel):
    """No inputs."""


class Who(BaseModel):
    """Whom it is about."""

    who: str


def action(name: str, label: str, intent: Intent = Intent.OTHER) -> Action:
    return Action(
        name, label, f"{label}.", Nothing,
        lambda inputs: Preview(label), lambda inputs: Outcome(OutcomeState.DONE, label),
        intent=intent,
    )  # fmt: skip


def stop_key(app: Any) -> str | None:
    """What the key that stops work is called at the foot; None where it is not offered."""
    entry = app.screen.active_bindings.get("b")
    return entry.binding.description if entry else None


@pytest.mark.parametrize(
    ("protocol", "act", "label"),
    [
        ("folder", "relaunch", "Restart"),
        ("workspaces", "triage", "Decide"),
        ("wire", "answer", "Answer a task"),
        ("governed", "approve_gate", "Approve the gate"),
        ("cycle", "launch", "Start loops"),
        ("folder", "nobody_knows_it", "Do it"),
    ],
)
async def test_a_fix_is_called_what_its_description_calls_it_and_never_by_its_name(
    tmp_path: Path, protocol: str, act: str, label: str
) -> None:
    """Also while the collaboration has not said yet what it offers."""
    need = decision("n", "X", "no review came", act=act)
    app: Any = dashboard(
        StageFleet(replace(snapshot("a", needs=(need,)), protocol=protocol)), tmp_path
    )
    seen: set[str] = set()

    def told() -> str:
        row = next((r for r in screen_text(app).splitlines() if "! No review came" in r), "")
        seen.add(row.partition("f: ")[2].partition(" · a: ")[0])
        return label

    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "reviewing")
        await pilot.press("enter")
        await until(pilot, lambda: told() in seen)
    assert seen <= {"", "…", label}


@pytest.mark.parametrize("opened", [False, True], ids=["fleet", "collaboration"])
async def test_nothing_is_to_be_stopped_from_the_moment_on_at_which_it_is_over(
    tmp_path: Path, opened: bool
) -> None:
    """However long the question takes what can be done now."""
    fleet: Any = StageFleet(snapshot("a"))
    fleet.offered = (action("freeze", "Freeze it", Intent.STOP_EVERYTHING),)
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "reviewing")
        if opened:
            await pilot.press("enter")
            await opens(pilot, "CollaborationScreen")
        await shows(pilot, "b Freeze it")
        answered, call = asyncio.Event(), fleet.call

        async def slowly(*given: Any) -> Any:
            await answered.wait()
            return await call(*given)

        fleet.call = slowly
        fleet.show(finished("a"))
        await hides(pilot, " b ")
        answered.set()


async def test_the_stop_key_is_offered_where_something_can_be_stopped(tmp_path: Path) -> None:
    fleet = StageFleet(snapshot("a"), snapshot("b"))
    fleet.offered = (action("step", "Take the next step"),)
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "2 live" in screen_text(app) and stop_key(app) is None)
        await until(pilot, lambda: " b " not in screen_text(app).splitlines()[-1])
        await pilot.press("question_mark")
        await opens(pilot, "HelpScreen")
        listed = str(app.screen.query_one(Static).render())
        assert "act.actions" in listed and "act.block" not in listed
        await pilot.press("escape")
        fleet.offered = (action("freeze", "Freeze it", Intent.STOP_EVERYTHING),)
        await pilot.press("down")
        await until(pilot, lambda: stop_key(app) == "Freeze it")
        await until(pilot, lambda: "b Freeze it" in screen_text(app).splitlines()[-1])


async def test_what_is_over_is_not_said_to_be_stopped_before_it_is_known(tmp_path: Path) -> None:
    app: Any = dashboard(StageFleet(finished("a")), tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.screen.in_hand() is not None)
        screen = app.screen
        screen._availability._known.clear()
        assert not screen.active_bindings["b"].binding.show


@pytest.mark.parametrize(
    ("intents", "name"),
    [
        ((Intent.OTHER, Intent.STOP, Intent.STOP_EVERYTHING), "2"),
        ((Intent.START, Intent.STOP, Intent.STOP), "1"),
    ],
)
async def test_the_stop_key_stops_everything_rather_than_a_part(
    tmp_path: Path, intents: tuple[Intent, ...], name: str
) -> None:
    fleet = StageFleet(snapshot("a"))
    fleet.offered = [action(str(n), f"Act {n}", intent) for n, intent in enumerate(intents)]
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "1 live")
        await pilot.press("b")  # at once, before it is known what is offered
        await opens(pilot, "ActionScreen")
        await shows(pilot, f"Act {name}.")


@pytest.mark.slow
async def test_the_stop_key_is_for_the_agent_of_the_selected_row(tmp_path: Path) -> None:
    agents = tuple(Row((name, "running")) for name in ("ann", "ben", "cleo"))
    panel = Panel("agents", "Agents", "table", ("agent", "state"), agents)
    fleet = StageFleet(replace(snapshot("a"), documents=(), panels=(panel,)))
    who = Field("who", "Agent", "Name it.", Kind.CHOICE, choices=("ann", "cleo"), required=True)
    stop = action("end_program", "End a program", Intent.STOP)
    fleet.offered = (replace(stop, inputs=Who, fields=(who,)),)
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "1 live")
        await pilot.press("enter", "2")
        await until(pilot, lambda: stop_key(app) == "End a program")
        await pilot.press("down", "down", "b")
        await until(pilot, lambda: is_open(app, "ActionScreen") and app.screen.form)
        assert app.screen.form.values()["who"] == "cleo"


async def test_what_stops_or_cannot_be_taken_back_is_listed_last(tmp_path: Path) -> None:
    fleet = StageFleet(snapshot("a", events=()))  # nothing to report yet
    stop = action("freeze", "Freeze", Intent.STOP_EVERYTHING)
    fleet.offered = (
        stop,
        replace(action("burn", "Burn"), risky=True),
        action("a", "A"),
        action("b", "B"),
    )
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "1 live")
        await pilot.press("x")
        await shows(pilot, "Burn")
        listed = app.screen.query_one(OptionList)
        labels = [str(option.prompt).split("\n")[0] for option in listed.options]
        assert labels == ["A", "B", "Freeze", "Burn (cannot be undone)"]
        assert listed.highlighted == 0
        await pilot.press("escape")
        fleet.offered = (stop,)
        await pilot.press("x")
        await shows(pilot, "Possible actions")
        assert app.screen.query_one(OptionList).highlighted is None
        await pilot.press("enter")
        await pilot.pause()
        assert not is_open(app, "ActionScreen")


async def test_a_need_names_its_remedy_by_its_label(tmp_path: Path) -> None:
    need = decision("gate", "GATE", "the next step is due", act="step")
    fleet = StageFleet(replace(snapshot("a"), needs=(need,)))
    fleet.offered = (action("step", "Take [the] next step\x1b"),)
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "f: Take [the] next step")
        await pilot.press("exclamation_mark")
        await shows(pilot, "f: Take [the] next step")
        assert "\x1b" not in screen_text(app)


async def test_next_and_findings_call_an_action_by_its_label(tmp_path: Path) -> None:
    need = decision("gate", "GATE", "the next step is due", act="step")
    finding = Finding("T1", Severity.ERROR, "it is late", action="mend", given=(("who", "ann"),))
    second = need._replace(key="next gate", sentence="so is another one")
    one = replace(snapshot("a"), needs=(need, second), findings=(finding,))
    fleet = StageFleet(one)
    fleet.offered = (
        action("step", "Take [the] next step\x1b"),
        replace(action("mend", "Mend it"), inputs=Who),
    )
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "1 needs you")
        await pilot.press("enter", "4", "up")
        await shows(pilot, "f: Take [the] next step")
        await shows(pilot, "enter: Take [the] next step")
        await pilot.press("3", "up")
        await shows(pilot, "f: Mend it")
        assert "\x1b" not in screen_text(app)
        await pilot.press("f")
        await until(pilot, lambda: is_open(app, "ActionScreen") and app.screen.form)
        await until(pilot, lambda: app.screen.query_one(Input).value == "ann")
