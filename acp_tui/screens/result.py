"""How an act ended: told in passing, or shown with what is to be done next, which one key does.

Refusals and outcomes are data, which commands print after "error: " too. Where one stands by itself it
begins with a capital (`capitalize_sentence`); `acp_core.model.format` has the rule.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from acp_core.model.action_spec import Intent
from acp_core.model.format import names_in, sentence_case
from acp_tui import keys, text
from acp_tui.actions.preview import outcome_line
from acp_tui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from textual.screen import Screen

    from acp_core.diagnosis.actions import NextStep
    from acp_core.model import Action, Outcome
    from acp_core.protocols.contract import Collaboration
    from acp_tui.app import AcpApp


class ResultScreen(ModalScreen[bool]):
    """The outcome of an act over the screen that it changed. Gives whether the next step is wanted."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.RESULT]
    DEFAULT_CSS = """
    ResultScreen {
        align: center bottom;
        background: transparent;
        #result {
            width: 100%;
            height: auto;
            margin: 0 0 1 0;
            padding: 0 1;
            background: $surface;
            border: round $border;
        }
        #result Static { height: auto; max-height: 5; }
        &:ansi #result { background: ansi_default; }
    }
    """

    app: AcpApp

    def __init__(self, outcome: Outcome, step: NextStep) -> None:
        """Make it.

        Args:
            outcome: How the act ended.
            step: What is to be done next.
        """
        super().__init__()
        self._outcome = outcome
        self._step = step

    def compose(self) -> ComposeResult:
        """The outcome, the next step, the keys."""
        key = keys.display(self.app, "result.next")
        with Vertical(id="result"):
            yield Static(outcome_line(self._outcome))
            yield Static(
                text.join(
                    (f"Next: {text.safe_line(self._step.reason)} · ", ""),
                    (f"{key}: {text.safe_line(self._step.label)}", "bold $text-accent"),
                )
            )
        yield KeyLine()

    def on_key(self, event: events.Key) -> None:
        """Leave at any key that is none of its own, and let the screen below take that key."""
        if event.key not in self.active_bindings:
            event.stop()
            event.prevent_default()
            self.dismiss(False)
            self.app.call_later(self.app.simulate_key, event.key)

    def action_open(self) -> None:
        """Go on to the next step."""
        self.dismiss(True)

    def action_close(self) -> None:
        """Leave it for later."""
        self.dismiss(False)


RUNNING = frozenset({Intent.STOP, Intent.STOP_EVERYTHING, Intent.START})
"""Acts after which nobody is asked to start something: it was stopped, or starts now."""

_LOOK, _MOST_LOOKS = 0.05, 40  # s between two looks whether a screen has left


def report(app: AcpApp, key: str | None, action: Action | None, outcome: Outcome) -> None:
    """Tell how an act ended, with the next thing to do in its collaboration.

    Args:
        app: The dashboard.
        key: The collaboration's; None where the act belongs to none.
        action: The act.
        outcome: How it ended: done, or queued.
    """
    outcome = replace(outcome, sentence=capitalize_sentence(app, key, outcome.sentence))
    place = outcome.location
    if key is None or action is None or action.personal or (place and not os.path.isdir(place)):
        app.tell(outcome.sentence)
        return
    work = _report_new(app, place, outcome) if place else _report(app, key, action, outcome)
    app.run_worker(work, group="result", exit_on_error=False)


def leave(screen: Screen[Outcome | None], outcome: Outcome) -> None:
    """Leave the screen of an act with its outcome; what was opened over it meanwhile goes too."""
    app = screen.app
    while app.screen is not screen:  # a document of its card: Textual takes away what is on top
        app.pop_screen()
    screen.dismiss(outcome)


async def _report(app: AcpApp, key: str, action: Action, outcome: Outcome) -> None:
    try:
        step = await app.fleet.call(key, partial(_next_step, app))
    except Exception:  # somebody else's protocol, or it is gone: how it ended is known all the same
        step = None
    from acp_core.loops.wording import IDLE

    stopped = step is not None and step.reason == IDLE and action.intent in RUNNING
    if step is None or stopped:
        app.tell(outcome.sentence)
        return
    if app.screen.is_modal:  # the person goes on by themselves
        app.tell(f"{outcome.sentence} Next: {step.reason} ({step.label}).")
        return

    then = getattr(app.screen, "performed", None)

    def go_on(wanted: bool | None) -> None:
        if wanted:
            app.perform(key, step.action, then, dict(step.given))

    app.push_screen(ResultScreen(outcome, step), go_on)


async def _report_new(app: AcpApp, place: str, outcome: Outcome) -> None:
    """Tell of an act that made another collaboration, with what is to be done next in that one.

    The screen of a collaboration opens the other one, which says so by itself.
    """
    from acp_core.diagnosis.actions import NextStep

    there = Path(place)
    if hasattr(app.screen, "performed"):
        app.tell(outcome.sentence)
        return
    opener = app.screen
    new = app.fleet.add(there)
    try:
        step = await app.fleet.call(new, partial(_next_step, app))
    except Exception:  # as above
        step = None
    for _ in range(_MOST_LOOKS):  # a card from which the act was opened is about to leave, too
        if app.screen is not opener or not opener.is_modal:
            break
        await asyncio.sleep(_LOOK)
    if app.screen.is_modal:
        app.tell(outcome.sentence)
        return
    shown = step or NextStep("look at it", "", "Open")

    def go_on(wanted: bool | None) -> None:
        if wanted and step is not None:
            app.perform(new, step.action, None, dict(step.given))
        elif wanted:
            app.open_collaboration(new)

    app.push_screen(
        ResultScreen(outcome, shown._replace(reason=f"{there.name}: {shown.reason}")), go_on
    )


def _next_step(app: AcpApp, opened: Collaboration) -> NextStep | None:
    """What is to be done next, read anew; for worker threads."""
    from acp_core.diagnosis.actions import next_step

    return next_step(opened, app.attention, app.now())


_NOTHING: Mapping[str, object] = {}

_NAMED = re.compile(r"\S+(?: \d+)?:(?: |$)")


def capitalize_sentence(
    app: AcpApp, key: str | None, sentence: str, values: Mapping[str, object] = _NOTHING
) -> str:
    """A refusal or an outcome as it stands by itself.

    Args:
        app: Its fleet knows the names with which a sentence may begin.
        key: The collaboration that it is about; None for none.
        sentence: What was said. A word (and a number) before a colon names what it is about: a
            field, a file, an event.
        values: What is in the form: names that no collaboration has yet, agents that are chosen.

    Returns:
        The sentence, with a capital unless it begins with a name.
    """
    if _NAMED.match(sentence):
        return sentence
    snapshot = app.fleet.snapshots.get(key) if key is not None else None
    known = names_in(snapshot) if snapshot is not None else ()
    return sentence_case(sentence, (*known, *_names(values)))


def _names(values: Mapping[str, object]) -> Iterator[str]:
    """What a form's values may name: words alone, and both sides of NAME=VALUE."""
    for value in values.values():
        for each in value if isinstance(value, list | tuple) else (value,):
            if isinstance(each, str) and " " not in each:
                yield from each.split("=")
