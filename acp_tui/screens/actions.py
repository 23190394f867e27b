"""Everything that a person can do in a collaboration now, to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from acp_core.model import Action
from acp_tui import keys, text
from acp_tui.actions.collaboration_actions import offered, trouble
from acp_tui.actions.intents import grave, grave_last
from acp_tui.widgets.key_line import KeyLine
from acp_tui.widgets.options import Options

if TYPE_CHECKING:
    from acp_tui.app import AcpApp, Ended


class ActionsScreen(ModalScreen[None]):
    """The actions of one collaboration, each with its sentence."""

    CSS_PATH = "actions.tcss"
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [*keys.PICK]
    app: AcpApp

    def __init__(self, key: str, then: Ended | None = None) -> None:
        super().__init__()
        self.collaboration = key
        self._then = then
        self._offered: Sequence[Action] = ()

    def compose(self) -> ComposeResult:
        """A title and the list."""
        with Vertical(id="frame"):
            yield Static(id="title")
            yield Options(markup=False)
        yield KeyLine()

    def on_mount(self) -> None:
        """Find out what can be done."""
        self._say("Loading the actions…")
        self._find()

    def _say(self, sentence: str) -> None:
        snapshot = self.app.fleet.snapshots.get(self.collaboration)
        name = snapshot.name if snapshot else self.collaboration
        title = text.join((text.safe_line(name), "bold $text-accent"), "\n", sentence)
        self.query_one("#title", Static).update(title)

    def _limits(self) -> str:
        snapshot = self.app.fleet.snapshots.get(self.collaboration)
        return snapshot.limits if snapshot else ""

    @work(exclusive=True, exit_on_error=False)
    async def _find(self) -> None:
        try:
            self._offered = grave_last(await offered(self.app, self.collaboration))
        except Exception as error:  # somebody else's protocol: said, not raised
            why = trouble(self.app, self.collaboration, error)
            self._say(f"Could not load the actions: {why}")
            return
        if not self._offered:
            self._say(self._limits() or "No actions are possible here now.")
            return
        self._say(" ".join(filter(None, (self._limits(), "Possible actions:"))))
        choices = self.query_one(OptionList)
        for place, action in enumerate(self._offered):
            option = text.join(
                (text.safe_line(action.label), "bold"),
                (" (cannot be undone)" if action.risky else "", "$text-warning"),
                "\n",
                (text.safe_line(action.sentence), text.MUTED),
            )
            choices.add_option(Option(option, id=str(place)))
        choices.highlighted = None if grave(self._offered[0]) else 0
        choices.focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        action = self._offered[int(event.option_id or 0)]
        self.dismiss()
        self.app.perform(self.collaboration, action, self._then)

    def action_close(self) -> None:
        """Leave."""
        self.dismiss()
