"""A form is made from an action's own description, and says beside each field what is wrong."""

from __future__ import annotations

import threading
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator
from textual import events
from textual.pilot import Pilot
from textual.widgets import Button, Checkbox, Input, Select, TextArea

from acp_core.model import Action, Change, Outcome, OutcomeState, Preview
from acp_tui.actions import forms
from acp_tui.app import AcpApp
from tests.tui.stage import (
    StageFleet,
    closes,
    dashboard,
    hides,
    is_open,
    opens,
    screen_text,
    shows,
    snapshot,
    until,
)
from tests.tui.support import HARMFUL

ORDERS = frozenset("\x1b\x9b\x07\x08\r\x85\u202e\u2066\u2028")
"""What a terminal, or the eye of its reader, would obey."""


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Everything(BaseModel):
    who: Literal["server", "reader"] = Field(title="Participant on whose behalf")
    colour: Colour = Colour.BLUE
    summary: str = Field(title="Summary", description="Said to everybody.", min_length=3)
    details: str = Field("", json_schema_extra={"format": "multiline"})
    gates: list[str] = Field(default_factory=list, description="What must be met.")
    rounds: int = Field(1, ge=1, le=9)
    limit: int | None = None
    urgent: bool = False
    reason: str | None = Field(None, title="Reason")

    @field_validator("summary")
    @classmethod
    def _no_shouting(cls, summary: str) -> str:
        if summary.isupper():
            raise ValueError("do not shout")
        return summary


class Stage:
    """An action on a stage: what it was given, and how it ends."""

    def __init__(self, model: type[BaseModel] = Everything, **others: Any) -> None:
        self.outcome = Outcome(OutcomeState.DONE, "Done it.")
        self.refused = ""
        self.performed: list[Any] = []
        self.previewed: list[Any] = []
        self.threads: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.action = Action(
            "try", "Try it", "Tries something.", model, self.preview, self.perform, **others
        )

    def preview(self, inputs: Any) -> Preview:
        self.threads.add(threading.current_thread().name)
        self.previewed.append(inputs)
        changes = (Change("/work/a/events.jsonl", "append", '+{"seq":4}'),)
        command = ("acp", "append", "--summary", str(getattr(inputs, "summary", "")))
        return Preview(
            "Appends one event.",
            changes,
            command,
            ("It cannot be taken back.",),
            self.refused,
            ("ann is told of it.",),
        )

    def perform(self, inputs: Any) -> Outcome:
        self.threads.add(threading.current_thread().name)
        self.gate.wait(60)
        self.performed.append(inputs)
        return self.outcome


@pytest.fixture
def stage() -> Stage:
    return Stage()


def view(app: AcpApp, name: str) -> forms.FieldView:
    return next(v for v in app.screen.query(forms.FieldView) if v.field.name == name)


def wrong(app: AcpApp, name: str) -> str:
    shown = view(app, name)
    return str(shown.query_one(".field--wrong").render()) if shown.has_class("-wrong") else ""


def test_fields_come_from_the_model_with_titles_kinds_defaults_and_choices() -> None:
    found = {field.name: field for field in forms.fields(Stage().action, {"summary": "as before"})}
    assert [(name, field.kind) for name, field in found.items()] == [
        ("who", "choice"),
        ("colour", "choice"),
        ("summary", "line"),
        ("details", "lines"),
        ("gates", "list"),
        ("rounds", "number"),
        ("limit", "number"),
        ("urgent", "switch"),
        ("reason", "line"),
    ]
    assert found["who"].title == "Participant on whose behalf"
    assert found["who"].choices == ("server", "reader")
    assert found["who"].required
    assert found["colour"].default == "blue"
    assert found["summary"].default == "as before"
    assert not found["summary"].required, "the action gives it a default"
    assert found["limit"].optional


async def test_what_is_typed_is_what_the_action_gets(tmp_path: Path, stage: Stage) -> None:
    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 60), notifications=True) as pilot:
        app.perform("/work/a", stage.action)
        await pilot.pause()
        view(app, "who").query_one(Select).value = "reader"
        view(app, "summary").query_one(Input).value = "a summary"
        view(app, "details").query_one(TextArea).text = "one\ntwo"
        view(app, "gates").query_one(TextArea).text = "first gate\n\n  second gate \n"
        view(app, "rounds").query_one(Input).value = "3"
        tick = view(app, "urgent").query_one(Checkbox)
        empty = str(tick.render())
        tick.value = True
        assert "X" in str(tick.render()) and "X" not in empty
        await until(pilot, lambda: not app.screen.query_one("#do", Button).disabled)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: stage.performed)
        (given,) = stage.performed
        assert given == Everything(
            who="reader", colour=Colour.BLUE, summary="a summary", details="one\ntwo",
            gates=["first gate", "second gate"], rounds=3, limit=None, urgent=True, reason=None,
        )  # fmt: skip
        await closes(pilot, "ActionScreen")
        await shows(pilot, "Done it.")
    assert threading.main_thread().name not in stage.threads, "nothing slow on the screen's thread"


@pytest.mark.slow
async def test_the_preview_shows_sentence_warning_change_and_command(
    tmp_path: Path, stage: Stage
) -> None:
    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(140, 50)) as pilot:
        app.perform(
            "/work/a", replace(stage.action, defaults={"who": "server", "summary": "it's so"})
        )
        await shows(pilot, "Appends one event.")
        shown = screen_text(app)
        for part in (
            "! It cannot be taken back.",
            "· ann is told of it.",
            "append /work/a/events.jsonl",
            '+{"seq":4}',
            """acp append --summary 'it'"'"'s so'""",
        ):
            assert part in shown


async def test_errors_stand_beside_their_field_once_it_was_touched(
    tmp_path: Path, stage: Stage
) -> None:
    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 60)) as pilot:
        app.perform("/work/a", stage.action)
        await shows(pilot, "Fill in the required fields")
        assert wrong(app, "summary") == "", "nobody is told off before they began"
        view(app, "summary").query_one(Input).value = "NO"
        await until(pilot, lambda: "at least 3 characters" in wrong(app, "summary"))
        await until(pilot, lambda: wrong(app, "who") == "")
        view(app, "summary").query_one(Input).value = "NO WAY"
        await until(pilot, lambda: "do not shout" in wrong(app, "summary"))
        view(app, "rounds").query_one(Input).value = "0"
        await until(pilot, lambda: "must be at least 1" in wrong(app, "rounds"))
        await until(pilot, lambda: app.screen.query_one("#do", Button).disabled)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: wrong(app, "who"))
        assert stage.performed == []
        assert view(app, "who").query_one(Select).has_focus, "the first thing to mend"


@pytest.mark.slow
async def test_a_refusal_keeps_the_form_open_with_what_was_typed_and_says_why(
    tmp_path: Path, stage: Stage
) -> None:
    stage.outcome = Outcome(OutcomeState.REFUSED, "seq 4: not allowed from phase completed")
    fleet = StageFleet(snapshot("a"))
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 60)) as pilot:
        app.perform("/work/a", replace(stage.action, defaults={"who": "server"}))
        await pilot.pause()
        view(app, "summary").query_one(Input).value = "kept"
        await until(pilot, lambda: not app.screen.query_one("#do", Button).disabled)
        await pilot.click("#do")
        await shows(pilot, "not allowed from phase completed")
        await shows(pilot, "✗ Refused, nothing was changed")
        await until(pilot, lambda: view(app, "summary").query_one(Input).value == "kept")
        await until(pilot, lambda: app.screen.query_one("#do", Button).disabled)
        fleet.show(replace(snapshot("a"), headline="what was refused left a trace"))
        await pilot.pause(0.6)
        assert "not allowed from phase completed" in screen_text(app), "and it still says why"
        view(app, "summary").query_one(Input).value = "kept and changed"
        await until(pilot, lambda: not app.screen.query_one("#do", Button).disabled)


async def test_what_a_preview_refuses_cannot_be_done(tmp_path: Path, stage: Stage) -> None:
    stage.refused = "the collaboration is over"  # as commands print it, after "error: "
    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 60)) as pilot:
        app.perform("/work/a", replace(stage.action, defaults={"who": "server", "summary": "abc"}))
        await shows(pilot, "✗ The collaboration is over")
        await until(pilot, lambda: app.screen.query_one("#do", Button).disabled)
        assert screen_text(app).count("he collaboration is over") == 1


async def test_what_is_queued_is_told_and_the_form_is_over(tmp_path: Path, stage: Stage) -> None:
    stage.outcome = Outcome(OutcomeState.REQUESTED, "Asked the writer.")
    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 60)) as pilot:
        app.perform("/work/a", replace(stage.action, defaults={"who": "server", "summary": "abc"}))
        await until(pilot, lambda: not app.screen.query_one("#do", Button).disabled)
        await pilot.press("ctrl+s")
        await closes(pilot, "ActionScreen")
        assert app.outcomes.shown is not None
        assert str(app.outcomes.shown.content) == "… Asked the writer."


async def test_an_outcome_that_is_not_known_stays_until_it_was_read_and_offers_nothing_again(
    tmp_path: Path, stage: Stage
) -> None:
    stage.outcome = Outcome(OutcomeState.UNKNOWN, "The writer did not answer.")
    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 60)) as pilot:
        app.perform("/work/a", replace(stage.action, defaults={"who": "server", "summary": "abc"}))
        await until(pilot, lambda: not app.screen.query_one("#do", Button).disabled)
        await pilot.press("ctrl+s")
        await closes(pilot, "ActionScreen")
        await shows(pilot, "? Result unknown: The writer did not answer. · y: copy")
        await pilot.press("escape")
        await hides(pilot, "Result unknown")


async def test_an_action_that_fails_by_a_bug_is_said_and_never_a_traceback(tmp_path: Path) -> None:
    stage = Stage()

    def bug(inputs: Any) -> Outcome:
        raise RuntimeError("[/x] broken")

    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 60)) as pilot:
        defaults = {"who": "server", "summary": "abc"}
        app.perform("/work/a", replace(stage.action, defaults=defaults, perform=bug))
        await until(pilot, lambda: not app.screen.query_one("#do", Button).disabled)
        await pilot.press("ctrl+s")
        await shows(pilot, "Result unknown")
        await shows(pilot, "[/x] broken")


async def test_escape_leaves_and_what_was_typed_is_there_the_next_time(
    tmp_path: Path, stage: Stage
) -> None:
    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 60)) as pilot:
        ended: list[object] = []
        app.perform("/work/a", stage.action, ended.append)
        await pilot.pause()
        view(app, "summary").query_one(Input).value = "half a thought"
        view(app, "gates").query_one(TextArea).text = "one\ntwo"
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert ended == [None]
        app.perform("/work/a", stage.action)
        await pilot.pause()
        assert view(app, "summary").query_one(Input).value == "half a thought"
        assert view(app, "gates").query_one(TextArea).text == "one\ntwo"


async def test_the_dashboard_is_left_from_a_form_but_not_with_words_half_written(
    tmp_path: Path, stage: Stage
) -> None:
    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 60), notifications=True) as pilot:
        app.perform("/work/a", stage.action)
        await pilot.pause()
        view(app, "summary").control.focus()
        await pilot.press("H", "i")
        await pilot.press("ctrl+q")
        await shows(pilot, "again to quit anyway")
        assert app.is_running
        assert view(app, "summary").value == "Hi"
        await pilot.press("ctrl+q")
    assert app.return_code == 0


@pytest.mark.parametrize("opened", ["x", "question_mark", "ctrl+p"])
async def test_the_dashboard_is_left_from_every_dialog(tmp_path: Path, opened: str) -> None:
    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "1 live")
        await pilot.press(opened)
        await until(pilot, lambda: app.screen.is_modal)
        await pilot.press("ctrl+q")
        await pilot.pause()
    assert app.return_code == 0


@pytest.mark.slow
async def test_a_letter_that_was_chosen_to_leave_is_a_letter_in_a_form(
    tmp_path: Path, stage: Stage
) -> None:
    app = dashboard(StageFleet(snapshot("a")), tmp_path, settings={"keys": {"app.quit": "X"}})
    async with app.run_test(size=(120, 60)) as pilot:
        app.perform("/work/a", stage.action)
        await pilot.pause()
        view(app, "summary").control.focus()
        await pilot.press("X")
        assert app.is_running
        assert view(app, "summary").value == "X"


async def test_when_the_collaboration_moves_on_nothing_typed_is_lost_and_the_preview_is_new(
    tmp_path: Path, stage: Stage
) -> None:
    fleet = StageFleet(snapshot("a"))
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 60)) as pilot:
        app.perform("/work/a", replace(stage.action, defaults={"who": "server"}))
        await pilot.pause()
        view(app, "summary").query_one(Input).value = "kept"
        await until(pilot, lambda: not app.screen.query_one("#do", Button).disabled)
        stage.refused = "somebody was faster"
        fleet.show(snapshot("a", phase="completed"))
        await shows(pilot, "✗ Somebody was faster")
        await until(pilot, lambda: view(app, "summary").query_one(Input).value == "kept")
        await until(pilot, lambda: app.screen.query_one("#do", Button).disabled)


@pytest.mark.slow
async def test_while_it_is_being_done_it_cannot_be_done_twice_nor_left(
    tmp_path: Path, stage: Stage
) -> None:
    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 60)) as pilot:
        app.perform("/work/a", replace(stage.action, defaults={"who": "server", "summary": "abc"}))
        await until(pilot, lambda: not app.screen.query_one("#do", Button).disabled)
        stage.gate.clear()
        await pilot.press("ctrl+s", "ctrl+s", "escape", "ctrl+s")
        await pilot.pause()
        assert is_open(app, "ActionScreen")
        stage.gate.set()
        await closes(pilot, "ActionScreen")
        assert len(stage.performed) == 1


async def test_an_action_by_name_is_found_or_said_to_be_impossible_now(
    tmp_path: Path, stage: Stage
) -> None:
    fleet = StageFleet(snapshot("a", events=()))  # nothing to report yet
    fleet.offered = (stage.action,)
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 60)) as pilot:
        app.perform("/work/a", "try")
        await until(pilot, lambda: app.screen.query(forms.FieldView))
        await pilot.press("escape")
        await pilot.pause()
        app.perform("/work/a", "[/block]")
        await shows(pilot, "This is not possible now.")
        await shows(pilot, "Possible now: Try it.")
        await pilot.press("enter")
        await pilot.pause()
        assert not is_open(app, "ActionScreen")


async def test_the_list_of_actions_leads_to_their_forms(tmp_path: Path, stage: Stage) -> None:
    fleet = StageFleet(snapshot("a", events=()))  # nothing to report yet
    fleet.offered = (stage.action, replace(stage.action, name="other", label="Another", risky=True))
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 60)) as pilot:
        await pilot.pause()
        await pilot.press("x")
        await shows(pilot, "Another (cannot be undone)")
        await pilot.press("down", "enter")
        await until(pilot, lambda: app.screen.query(forms.FieldView))
        await shows(pilot, "Another")


class Nothing(BaseModel):
    pass


async def test_an_action_without_inputs_only_asks(tmp_path: Path) -> None:
    stage = Stage(Nothing)
    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        app.perform("/work/a", stage.action)
        await until(pilot, lambda: not app.screen.query_one("#do", Button).disabled)
        await shows(pilot, "Appends one event.")
        await until(pilot, lambda: app.screen.query_one("#do", Button).has_focus)
        await pilot.press("enter")
        await until(pilot, lambda: stage.performed)


def hostile_action(text: str) -> Action:
    """An action that has ``text`` wherever it can have any."""

    class Hostile(BaseModel):
        line: str = Field(text, title=text, description=text)
        lines: str = Field(text, title=text, json_schema_extra={"format": "multiline"})
        choice: Literal[text] = Field(title=text)  # type: ignore[valid-type]
        several: list[str] = Field([text], title=text)
        switch: bool = Field(False, title=text)

    return Action(
        text, text, text, Hostile,
        lambda inputs: Preview(text, (Change(text, text, text),), (text, text), (text,), "", (text,)),
        lambda inputs: Outcome(OutcomeState.REFUSED, text),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("text", HARMFUL)
async def test_hostile_text_in_descriptions_defaults_and_outcomes_is_only_text(
    tmp_path: Path, text: str
) -> None:
    fleet = StageFleet(replace(snapshot("a"), name=text))
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(100, 40), notifications=True) as pilot:
        fleet.offered = (hostile_action(text),)
        app.list_actions("/work/a")
        await shows(pilot, "Possible actions:")
        await pilot.press("enter")
        await until(pilot, lambda: allowed(app))
        assert not ORDERS & set(screen_text(app))
        await do(pilot, "Refused, nothing was changed")
        app.tell(text)
        await pilot.pause()
        assert not ORDERS & set(screen_text(app))
        await pilot.press("escape")
        await closes(pilot, "ActionScreen")
        assert app.clipboard == ""
        assert app.is_running


async def do(pilot: Pilot[Any], outcome: str) -> None:
    """Press the key until the outcome shows: while a preview is being made it does nothing."""
    app: Any = pilot.app
    for _ in range(20):
        await until(pilot, lambda: allowed(app))
        await pilot.press("ctrl+s")
        for _ in range(50):
            await pilot.pause(0.02)
            if outcome in screen_text(app):
                return
    raise AssertionError(f"{outcome!r} does not come:\n{screen_text(app)}")


def allowed(app: AcpApp) -> bool:
    return is_open(app, "ActionScreen") and not app.screen.query_one("#do", Button).disabled


async def test_what_is_pasted_holds_no_control_characters(tmp_path: Path, stage: Stage) -> None:
    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 60)) as pilot:
        app.perform("/work/a", stage.action)
        await pilot.pause()
        for name, kind in (("summary", Input), ("details", TextArea)):
            control = view(app, name).query_one(kind)
            control.focus()
            await pilot.pause()
            app.post_message(events.Paste("a\x1b]52;c;eA==\x07b"))
            await pilot.pause()
        assert view(app, "summary").query_one(Input).value == "a␛]52;c;eA==␇b"
        assert view(app, "details").query_one(TextArea).text == "a␛]52;c;eA==␇b"


async def test_where_a_person_wants_no_animations_no_cursor_blinks(
    tmp_path: Path, stage: Stage
) -> None:
    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    app.animation_level = "none"
    async with app.run_test(size=(120, 36)) as pilot:
        app.perform("/work/a", stage.action)
        await opens(pilot, "ActionScreen")
        for kind in (Input, TextArea):
            await until(pilot, lambda kind=kind: app.screen.query(kind))
            field = app.screen.query(kind).first()
            field.focus()
            await until(pilot, lambda field=field: field.has_focus and not field.cursor_blink)


async def test_on_a_small_screen_the_preview_has_the_rows_that_the_form_leaves(
    tmp_path: Path, stage: Stage
) -> None:
    class One(BaseModel):
        summary: str

    one = replace(stage.action, inputs=One, fields=None, defaults={})
    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        app.perform("/work/a", one)
        await until(pilot, lambda: app.screen.query("#what") and app.screen.query("FieldView"))
        await pilot.pause()
        form, preview = app.screen.query_one("#form"), app.screen.query_one("#preview")
        assert form.size.height < preview.size.height
        assert preview.region.y == form.region.bottom
