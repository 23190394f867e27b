"""The dashboard: holds the fleet, the settings and the one "snapshots changed" signal; nothing else.

Screens draw; they take what they show from the signal, and go from one to another by the
few methods here. It is left from everywhere, but not with words half written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

from textual import events, work
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.filter import ANSIToTruecolor
from textual.reactive import reactive
from textual.screen import Screen
from textual.signal import Signal

from acp_core.model.clock import utc_now
from acp_core.model.text import clean, clean_line
from acp_core.protocols.locations import RUNNING, is_link
from acp_tui import keys, theme
from acp_tui.keys import KeyQueue
from acp_tui.opening import Opening
from acp_tui.screens.fleet import FleetScreen
from acp_tui.terminal.driver import Screenshots, Terminal, terminal_driver, terminal_guard
from acp_tui.terminal.garbage import Heap
from acp_tui.terminal.painting import PaintingApp
from acp_tui.theme import ReadableDim, readable

if TYPE_CHECKING:
    from rich.terminal_theme import TerminalTheme
    from textual.command import Provider
    from textual.filter import LineFilter

    from acp_core.fleet import Batch, Fleet
    from acp_core.model import Action, Outcome, Target
    from acp_core.person.attention import Attention
    from acp_core.person.settings import Settings
    from acp_tui.widgets.outcome_line import Outcomes

START = 5.0  # s after which the start is over even where reading goes on

Severity = Literal["information", "warning", "error"]

Ended = Callable[["Outcome | None"], None]


def run(paths: Sequence[str], *, settings: Settings | None = None) -> int:
    """Draw the dashboard over some folders until the person leaves it.

    Args:
        paths: Folders under which collaborations are looked for, or that are one, and keys of
            some elsewhere.
        settings: The person's; read from ``config.toml`` where not given.

    Returns:
        The exit code.

    Raises:
        SettingsError: the settings were not given and cannot be read.
    """
    if settings is None:
        from acp_core.person.settings import load

        settings = load()
    app = AcpApp(paths, settings=settings)
    app.driver_class = terminal_driver(app.driver_class)
    app.heap = Heap()
    with terminal_guard(app.exit):
        app.run()
    return app.return_code or 0


def _collaborations() -> type[Provider]:
    from acp_tui.screens.choosing import CollaborationsProvider

    return CollaborationsProvider


def _actions() -> type[Provider]:
    from acp_tui.screens.choosing import ActionsProvider

    return ActionsProvider


@cache
def _readable_dim(palette: TerminalTheme) -> ReadableDim:
    return ReadableDim(palette)


@cache
def _without_colour() -> tuple[LineFilter, ...]:
    from textual.filter import NoColor

    return (NoColor(),)


class AcpApp(PaintingApp):
    """The dashboard."""

    TITLE = "acp"
    BINDINGS: ClassVar[list[BindingType]] = [*keys.APP]
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-narrow"),
        (100, "-normal"),
        (140, "-wide"),
        (200, "-ultra"),
    ]
    MODES = {"fleet": FleetScreen}  # noqa: RUF012
    DEFAULT_MODE = "fleet"
    COMMANDS = App.COMMANDS | {_collaborations, _actions}

    utc: reactive[bool] = reactive(False)
    """Whether times are shown in UTC."""

    def __init__(
        self,
        paths: Sequence[str] = (),
        *,
        settings: Settings | None = None,
        clock: Callable[[], datetime] = utc_now,
        fleet: Fleet | None = None,
        attention: Attention | None = None,
    ) -> None:
        """Make it; nothing is read before the first picture.

        Args:
            paths: Where to look for collaborations (default: the present folder); keys of some
                elsewhere may be among them, and what stands for all that run here.
            settings: The person's; read from ``config.toml`` where not given.
            clock: The time now, aware; tests and pictures set it.
            fleet: Another source of Snapshots than the files under ``paths``.
            attention: What the person has seen; from the user's state folder where not given.
        """
        super().__init__()
        self._enabled_filters: Sequence[LineFilter] = ()
        self._line_filters: Sequence[LineFilter] = ()
        self.terminal = Terminal(self)
        self._screenshots = Screenshots(self)
        self._quit_guard = QuitGuard(self)
        self.opening = Opening(self)
        self._key_queue = KeyQueue(self, self._hand_on, lambda: self.opening.is_under_way)
        places = list(paths) or ["."]
        self._all_that_runs = [path for path in places if path == RUNNING]
        self.links = tuple(path for path in places if is_link(path))
        self.paths = tuple(
            Path(path).expanduser().absolute()
            for path in places
            if path not in self.links and path != RUNNING
        )
        self.now = clock
        self.snapshots_changed: Signal[Batch] = Signal(self, "snapshots changed")
        self.drafts: dict[tuple[str, str], dict[str, object]] = {}
        self.heap: Heap | None = None  # a program's of its own: tests share theirs
        for name, given in (("settings", settings), ("fleet", fleet), ("attention", attention)):
            if given is not None:
                self.__dict__[name] = given

    # What is heavy to import is made when it is first asked for: after the first picture.

    @cached_property
    def settings(self) -> Settings:
        """The person's settings."""
        from acp_core.person import settings

        return settings.load()

    @cached_property
    def fleet(self) -> Fleet:
        """The collaborations under the paths."""
        from acp_core.fleet import Fleet
        from acp_core.history.recorder import Recorder
        from acp_core.history.schema import Bounds

        bounds = Bounds.of(self.settings.recording)
        recorder = Recorder("dashboard", bounds, lambda: self.now().timestamp(), patience=2.0)
        return Fleet(
            [*self.paths, *self.links, *self._all_that_runs],
            clock=self.now, recorder=recorder, rows=True,
        )  # fmt: skip

    @cached_property
    def outcomes(self) -> Outcomes:
        """How the last act ended, where that shows still."""
        from acp_tui.widgets.outcome_line import Outcomes

        return Outcomes(self)

    @property
    def has_outcomes(self) -> bool:
        """Whether any act ended yet: nothing of `outcomes` is loaded before."""
        return "outcomes" in self.__dict__

    @property
    def where(self) -> tuple[str, ...]:
        """The paths and links that are looked at, as they are."""
        return (*map(str, self.paths), *self.links)

    @cached_property
    def attention(self) -> Attention:
        """What this person has seen, acknowledged and put away."""
        from acp_core.person.attention import Attention

        return Attention()

    # The start: theme and keys first, so that nothing flashes; files after the first picture.

    def on_mount(self) -> None:
        """Take theme, keys and time zone from the settings, then begin to read."""
        chosen, problem = theme.choose(
            self.settings.theme, self.available_themes, colour=not self.no_color
        )
        self.theme = chosen
        self.utc = self.settings.utc
        self.set_keymap(self.settings.keys)
        for line in (problem, *keys.problems(self.settings.keys)):
            if line:
                self.tell(line, "warning")
        self.opening.look()
        self.call_after_refresh(self._follow)
        if self.heap:
            self.set_timer(START, self.heap.settle)

    @work(exclusive=True, group="fleet", exit_on_error=False)
    async def _follow(self) -> None:
        """Publish every change of the fleet, for as long as the dashboard runs."""
        await self.opening.open()
        try:
            async for batch in self.fleet.changes():
                self.snapshots_changed.publish(batch)
                if self.heap:
                    self.heap.read((each.key, len(each.events)) for each in batch.snapshots)
                    if batch.complete:
                        self.heap.settle()
        except Exception as error:
            self.tell(f"acp no longer sees changes: {error!r}. Restart acp.", "error")
            raise

    def post_display_hook(self) -> None:
        super().post_display_hook()
        if self.heap:
            self.heap.drawn()

    async def on_unmount(self) -> None:
        """Let go of the files and give the terminal its title back."""
        self.terminal.restore()
        with suppress(OSError):
            self.attention.left(self.now())
        if "fleet" in self.__dict__:
            await self.fleet.close()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's, and one without any colour where the person wants none: its own leaves greys."""
        enabled = super().get_line_filters()
        if enabled != self._enabled_filters:  # they are asked for with every widget that is drawn
            filters = [
                _readable_dim(self.ansi_theme) if isinstance(each, ANSIToTruecolor) else each
                for each in enabled
            ]
            without = _without_colour() if self.no_color else ()
            self._enabled_filters, self._line_filters = enabled, [*filters, *without]
        return self._line_filters

    def get_css_variables(self) -> dict[str, str]:
        """The theme's, with colours of text that can be read."""
        self.theme_variables = readable(super().get_css_variables())
        return self.theme_variables

    # What it says outside its screens, never as markup.

    def tell(
        self, sentence: str, severity: Severity = "information", *, timeout: float = 6
    ) -> None:
        """Say something in the corner for some seconds."""
        words = clean_line(sentence, 1000)
        self.notify(words, severity=severity, timeout=timeout, markup=False)

    def copy(self, text: str) -> None:
        """Put a text on the clipboard, by way of the terminal (OSC 52), without control characters."""
        self.copy_to_clipboard(clean(text))
        self.tell(f"Copied: {text}", timeout=3)

    def show_title(self, title: str) -> None:
        """Put a title on the terminal's window."""
        self.title = title
        self.terminal.title(title)

    # Where one can go from anywhere.

    @property
    def fleet_screen(self) -> FleetScreen:
        """The screen below all others."""
        screen = self.screen_stack[0]
        assert isinstance(screen, FleetScreen)
        return screen

    def open_collaboration(self, key: str, target: Target | None = None) -> None:
        """Show a collaboration; at a document's line, an event or a finding where given."""
        from acp_tui.screens.collaboration import CollaborationScreen

        self.push_screen(CollaborationScreen(key, target))

    def open_participant(self, key: str, participant: str) -> None:
        """Show what a participant's loop does, and its log."""
        from acp_tui.screens.participant import ParticipantScreen

        self.push_screen(ParticipantScreen(key, participant))

    def open_replay(self, key: str) -> None:
        """Show a collaboration's past."""
        from acp_tui.screens.replay import ReplayScreen

        self.push_screen(ReplayScreen(key))

    def open_times(self, key: str) -> None:
        """Show where the time went in a collaboration."""
        from acp_tui.screens.times import TimesScreen

        self.push_screen(TimesScreen(key))

    def perform(
        self,
        key: str | None,
        action: Action | str,
        then: Ended | None = None,
        given: Mapping[str, str] | None = None,
    ) -> None:
        """Show the card that an action decides, or else its form, its preview and its outcome.

        Args:
            key: The collaboration; None where the action belongs to none.
            action: The action, or the name of one that the collaboration offers.
            then: Called with the outcome, or None where the person thought better of it.
            given: What stands in the form's fields at first, by name.
        """
        if key is not None:
            self.fleet.look_at(key)
        if key is not None and isinstance(action, str):
            from acp_tui.screens.card import CardScreen

            self.push_screen(CardScreen(key, action, given), then)
        else:
            self.perform_in_form(key, action, then, given)

    def perform_in_form(
        self,
        key: str | None,
        action: Action | str,
        then: Ended | None = None,
        given: Mapping[str, str] | None = None,
    ) -> None:
        """Show an action's form, also where a card has it as a verdict; as `perform`."""
        from acp_tui.screens.action import ActionScreen

        if key is not None:
            self.fleet.look_at(key)
        self.push_screen(ActionScreen(key, action, given), then)

    def list_actions(self, key: str, then: Ended | None = None) -> None:
        """Show everything that can be done in a collaboration; ``then`` as for `perform`."""
        from acp_tui.screens.action import ActionsScreen

        self.fleet.look_at(key)
        self.push_screen(ActionsScreen(key, then))

    def attention_changed(self) -> None:
        """Say that what the person saw, acknowledged or put away is otherwise than before."""
        from acp_core.fleet import Batch

        self.snapshots_changed.publish(Batch((), complete=False))

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Let no cursor blink where the person wants no animations (``TEXTUAL_ANIMATIONS=none``)."""
        if self.animation_level == "none" and hasattr(event.widget, "cursor_blink"):
            event.widget.cursor_blink = False

    def _handle_exception(self, error: Exception) -> None:
        if not (self._exit and is_half_made(error)):
            super()._handle_exception(error)

    # What the person can do anywhere.

    async def on_event(self, event: events.Event) -> None:
        """Let keys wait for those before them."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self._key_queue.take(event)
        else:
            await super().on_event(event)

    async def _hand_on(self, event: events.Key | events.Paste) -> None:
        """Hand a key to what has the focus, unless it was for the outcome that shows."""
        if isinstance(event, events.Key) and self.has_outcomes and self.outcomes.takes(event):
            return
        await super().on_event(event)

    async def on_key(self, event: events.Key) -> None:
        """Leave from a dialog too: it keeps what it does not know of from the app's bindings."""
        if self.screen.is_modal and event.key in self._quit_guard.keys:
            event.stop()
            await self.action_quit()

    async def action_quit(self) -> None:
        """Leave; where something would be lost, at the second time."""
        self._quit_guard.leave()

    def on_delivery_complete(self, event: events.DeliveryComplete) -> None:
        """A picture was saved."""
        self._screenshots.report(event)

    def on_delivery_failed(self, event: events.DeliveryFailed) -> None:
        """A picture could not be saved."""
        self._screenshots.report(event)

    async def action_help(self) -> None:
        """Show every key of the screen."""
        from acp_tui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen))

    def action_inbox(self) -> None:
        """Show what needs the person, and what is asked, in all collaborations."""
        from acp_tui.screens.inbox import InboxScreen

        if not isinstance(self.screen, InboxScreen):
            self.push_screen(InboxScreen())

    def action_toggle_utc(self) -> None:
        """Show times in UTC, or in local time again."""
        self.utc = not self.utc

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """What the command palette offers on every screen."""
        yield SystemCommand("Help", "Show the keys of this screen", self.action_help)
        yield SystemCommand("Inbox", "Show what needs you in all collaborations", self.action_inbox)
        yield SystemCommand("Theme", "Choose a theme", self.action_change_theme)
        yield SystemCommand(
            "UTC or local time", "Choose how times are shown", self.action_toggle_utc
        )
        yield SystemCommand("Screenshot", "Save this screen as SVG", self._screenshots.take_soon)
        yield SystemCommand(
            "Quit", "Quit the dashboard; loops and agents keep running", self.action_quit
        )


if TYPE_CHECKING:
    pass

AGAIN = 6.0
"""Seconds in which a second wish to leave is obeyed: for so long the question is shown."""


@runtime_checkable
class Unsaved(Protocol):
    """A screen that may hold what would be lost."""

    @property
    def unsaved(self) -> str:
        """What would be lost, as a sentence; "" where nothing would."""


def is_half_made(error: Exception) -> bool:
    """Whether a screen lacks its widgets: Textual mounts none any more while it is being left."""
    from textual.css.query import NoMatches
    from textual.widget import MountError

    return isinstance(error, NoMatches | MountError)


class QuitGuard:
    """Asks before the dashboard is left where something would be lost.

    Args:
        app: The dashboard.
    """

    def __init__(self, app: AcpApp) -> None:
        self._app = app
        self._asked_at = float("-inf")

    @property
    def keys(self) -> Iterable[str]:
        """The keys that leave."""
        chosen = self._app.settings.keys.get("app.quit", keys.QUIT.key)
        return [key.strip() for key in chosen.split(",")]

    def leave(self) -> None:
        """Leave; where something would be lost, at the second time."""
        screens = self._app.screen_stack
        lost = next((s.unsaved for s in screens if isinstance(s, Unsaved) and s.unsaved), "")
        if not lost or monotonic() - self._asked_at < AGAIN:
            self._app.exit()
            return
        self._asked_at = monotonic()
        key = self._app.get_key_display(keys.QUIT.with_key(next(iter(self.keys))))
        self._app.tell(f"{lost} Press {key} again to quit anyway.", "warning", timeout=AGAIN)
