"""How an act ended, and what is to be done next: one key does that, any other goes on below."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from acp_tui import keys, text
from acp_tui.actions.preview import outcome_line
from acp_tui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from acp_core.diagnosis.actions import NextStep
    from acp_core.model import Outcome
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
