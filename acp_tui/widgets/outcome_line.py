"""How the last act ended, in the line on top where it is told what is needed.

What ended well shows for a moment, and then what is true shows again. What was refused or is not
known, and what has something to keep (a path, a link), stays until a key; one key copies it. The line
lies over what stands there: nothing moves for it, and it goes along to the screen that is opened next.
"""

from __future__ import annotations

import re
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from textual import events
from textual.content import Content
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Static

from acp_core.model import Outcome, OutcomeState
from acp_tui import keys
from acp_tui.text import join

if TYPE_CHECKING:
    from acp_tui.app import AcpApp

SECONDS = 3.0
"""For how long an outcome shows that does not stay."""

_TO_KEEP = re.compile(r"(?:\w+://|(?<![\w/.~-])~?/(?=\w))[^\s,;'\"“”)]+")
"""A link, or the path of a file."""


def kept_words(outcome: Outcome) -> str:
    """What of an outcome a person may want to copy: its link or path; "" where it may just pass.

    A refusal, what is not known, and what failed in part are kept as they are told.
    """
    found = _TO_KEEP.search(outcome.sentence)
    if found is not None:
        return found[0].rstrip(".:")
    ended_well = outcome.state in (OutcomeState.DONE, OutcomeState.REQUESTED)
    return "" if ended_well and not outcome.failed else outcome.sentence


class Shown(NamedTuple):
    """An outcome that shows.

    Attributes:
        content: Its row.
        kept: What is copied; "" where it passes by itself.
        at: When it began to show, as events' times are.
    """

    content: Content
    kept: str
    at: float


class Outcomes:
    """Shows how the last act ended on whatever screen is in front, but over no dialog.

    Args:
        app: The dashboard.
    """

    def __init__(self, app: AcpApp) -> None:
        self._app = app
        self._line: OutcomeLine | None = None
        self._timer: Timer | None = None
        self.shown: Shown | None = None
        """What shows now."""
        app.screen_change_signal.subscribe(app, self._follow)

    def tell(self, outcome: Outcome) -> None:
        """Show how an act ended, in place of what was told before.

        Args:
            outcome: Its sentence stands by itself.
        """
        from acp_tui.actions.forms import outcome_line

        kept = kept_words(outcome)
        content = outcome_line(outcome)
        if kept:
            key = keys.display(self._app, "result.copy")
            content = join(content, (f" · {key}: copy", "$text-accent"))
        self.end()
        self.shown = Shown(content, kept, monotonic())
        self._follow()
        if not kept:
            self._timer = self._app.set_timer(SECONDS, self._pass)

    def end(self) -> None:
        """Show what is true again."""
        self.shown = None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._take_away()

    def end_passing(self) -> None:
        """As `end`, where it would pass anyway: the person wants to see what is below it."""
        if self.shown is not None and not self.shown.kept:
            self.end()

    def takes(self, event: events.Key) -> bool:
        """Whether a key is for the outcome alone. Any key ends one that stays."""
        shown = self.shown
        if shown is None or not shown.kept or self._line is None or event.time < shown.at:
            return False
        screen = self._app.screen
        if self._line.screen is not screen:
            return False
        focused = screen.focused
        if focused is not None and focused.check_consume_key(event.key, event.character):
            return False  # it is typed
        self.end()
        if self._runs(event, "result.copy"):
            self._app.copy(shown.kept)
            return True
        return self._runs(event, "result.close")

    def _runs(self, event: events.Key, id: str) -> bool:
        """Whether a key is one of those that run a binding."""
        (binding,) = (each for each in keys.RESULT if each.id == id)
        chosen = self._app.settings.keys.get(id, binding.key)
        return event.key in (each.strip() for each in chosen.split(","))

    def place(self) -> None:
        """The row where it shows is another one now."""
        if self._line is not None:
            self._line.styles.offset = (0, _row_of(self._line.screen))

    def _pass(self) -> None:
        """It showed for long enough, unless a dialog hid it."""
        self._timer = None
        if self._line is not None and self._line.screen is self._app.screen:
            self.end()
        elif self.shown is not None:
            self._timer = self._app.set_timer(SECONDS, self._pass)

    def _follow(self, _: Screen[Any] | None = None) -> None:
        """Show it on the screen that is in front now."""
        if self.shown is None:
            return
        screen = self._app.screen
        if screen.is_modal or (self._line is not None and self._line.screen is screen):
            return
        if not screen.is_mounted:
            self._app.call_after_refresh(self._follow)
            return
        self._take_away()
        self._line = OutcomeLine(self.shown.content)
        self._line.styles.offset = (0, _row_of(screen))
        screen.mount(self._line)

    def _take_away(self) -> None:
        line, self._line = self._line, None
        if line is not None and line.is_attached:
            line.remove()


def _row_of(screen: Screen[Any]) -> int:
    """The row of a screen in which it says what is needed."""
    return int(getattr(screen, "row_of_need", 0))


class OutcomeLine(Static):
    """The line. It is as high as its words are long, and ends where it is clicked."""

    app: AcpApp
    DEFAULT_CSS = """
    OutcomeLine {
        dock: top; layer: outcome;
        width: 100%; height: auto; max-height: 60%; padding: 0 1;
        background: $surface;
        &:ansi { background: ansi_default; }
    }
    """

    def __init__(self, content: Content) -> None:
        super().__init__(content, markup=False)

    def on_click(self, event: events.Click) -> None:
        """Show what is true again."""
        event.stop()
        self.app.outcomes.end()
