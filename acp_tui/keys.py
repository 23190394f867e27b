"""Every key binding of the dashboard: its id, its keys, what it does; and keys one after the other.

The ids are what people write in ``config.toml`` to choose other keys::

    [keys]
    "fleet.open" = "o,enter"

and are never changed once released. Help (``?``) is made from these, so a binding
without a description here is one that nobody finds.

``/`` and ``!`` are never priority bindings: they must stay ordinary letters in forms.

Textual hands every key to the widget that has the focus when the key arrives. In a burst (a paste by a
terminal without bracketed paste, a lagging line) the second key arrives before the first one has moved the
focus, and what was meant as text runs as commands. In a `KeyQueue` the second key waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from textual import events
from textual.binding import Binding
from textual.screen import Screen

if TYPE_CHECKING:
    from textual.app import App
    from textual.dom import DOMNode

    from acp_tui.app import AcpApp


def bind(
    id: str,
    keys: str,
    action: str,
    description: str,
    *,
    show: bool = False,
    tooltip: str = "",
    display: str | None = None,
    group: Binding.Group | None = None,
) -> Binding:
    """A binding that people can rebind.

    Args:
        id: ``screen.act``, unique in the whole product, never changed once released.
        keys: One key, or several separated by commas.
        action: What Textual runs.
        description: A word or two, for the footer and for help.
        show: Whether the footer shows it.
        tooltip: A sentence, where the description is not enough.
        display: How the footer writes the key, where its name is long.
        group: Bindings that the footer shows together.
    """
    return Binding(
        keys,
        action,
        description,
        show=show,
        key_display=display,
        tooltip=tooltip,
        id=id,
        group=group,
    )


QUIT = bind(
    "app.quit",
    "ctrl+q",
    "quit",
    "Quit",
    tooltip=("Quit the dashboard; loops and agents keep running"),
)

APP = (
    bind("app.help", "question_mark,f1", "help", "Help", show=True, display="?",
         tooltip="What you can do here now, every key, and what the signs mean"),
    QUIT,
    bind("app.inbox", "exclamation_mark", "inbox", "Inbox", display="!",
         tooltip="Show what needs you, and open questions, in all collaborations"),
    bind("app.utc", "U", "toggle_utc", "UTC / local time",
         tooltip="Show times in UTC or in local time"),
    bind("app.theme", "ctrl+t", "change_theme", "Theme"),
)  # fmt: skip

# The same acts on the collaboration that is selected (fleet) or open (its screen).
ACT = (
    bind("act.block", "b", "halt", "Stop", show=True,
         tooltip="Stop the collaboration; where only a part can be stopped, the current agent or task"),
    bind("act.acknowledge", "a", "acknowledge", "Acknowledge",
         tooltip="Hide an attention item, with a note, until something new needs attention"),
    bind("act.actions", "x", "actions", "Actions", show=True,
         tooltip="List all actions of this collaboration"),
    bind("act.remedy", "f", "remedy", "Fix", show=True,
         tooltip="Run the action of the attention item that is shown"),
    bind("act.next_need", "J", "next_need", "Next need",
         tooltip="Go to the next attention item, here and then in the next collaboration"),
    bind("act.launch", "L", "launch", "Start loops",
         tooltip="Start agents for participants; shows each command first"),
    bind("act.stop", "S", "stop", "Stop loops",
         tooltip="Stop loops, and the agents that they run"),
    bind("act.archive", "A", "archive", "Archive",
         tooltip="Archive or unarchive; archived collaborations can still be found"),
    bind("act.validate", "v", "validate", "Validate now",
         tooltip="Read and validate the files again now"),
    bind("act.copy_path", "y", "copy_path", "Copy path"),
    bind("act.open_folder", "o", "open_folder", "Open folder"),
)  # fmt: skip

FLEET = (
    bind("fleet.open", "enter", "open", "Open", show=True, display="enter"),
    bind("fleet.filter", "slash", "filter", "Filter", show=True, display="/",
         tooltip="Filter by name, objective, phase and participants; enter searches the documents"),
    bind("fleet.new", "n", "new", "New", show=True, tooltip="Start a collaboration"),
    bind("fleet.replay", "R", "replay", "Replay",
         tooltip="Show the history step by step, with the documents as they were"),
    bind("fleet.times", "T", "times", "Stats"),
    bind("fleet.sort", "I", "sort", "Sort",
         tooltip="Sort by attention, name, longest wait, latest change or protocol; press again for the next"),
    bind("fleet.group", "K", "group", "Group",
         tooltip="Group by state, folder or protocol, or not at all; press again for the next"),
    bind("fleet.changed", "D", "changed", "Only what changed",
         tooltip="Show only what changed since your last visit, or everything again"),
    bind("fleet.view", "X", "view", "View",
         tooltip="Choose a saved view, an order, a grouping or columns"),
    bind("fleet.archived", "H", "toggle_archived", "Show or hide archived"),
    bind("fleet.clear", "escape", "clear", "Clear the filter"),
    bind("fleet.quit", "q", "app.quit", "Quit"),
)  # fmt: skip

# --- a collaboration, and its panes

COLLABORATION = (
    bind("collaboration.back", "escape,q", "back", "Back", show=True),
    bind("collaboration.actions", "colon", "actions", "Actions",
         tooltip="List all actions of this collaboration"),
    bind("collaboration.timeline", "1", "pane('timeline')", "Timeline"),
    bind("collaboration.documents", "2", "pane('documents')", "Documents, or overview"),
    bind("collaboration.findings", "3", "pane('findings')", "Findings"),
    bind("collaboration.next", "4", "pane('next')", "Next"),
    bind("collaboration.left", "h", "step(-1)", "Pane before"),
    bind("collaboration.right", "l", "step(1)", "Pane after"),
    bind("collaboration.zoom", "z", "zoom", "Zoom", show=True,
         tooltip="Use the whole screen for this pane, or go back"),
    bind("collaboration.next_tab", "right_square_bracket", "tab(1)", "Next tab",
         display="]"),
    bind("collaboration.previous_tab", "left_square_bracket", "tab(-1)", "Tab before",
         display="["),
    bind("collaboration.document", "d", "pick_document", "Go to a tab",
         tooltip="Choose a document or panel"),
    bind("collaboration.why", "w", "why", "Why it is stuck",
         tooltip="List each problem with its evidence and its fix"),
    bind("collaboration.people", "P", "people", "Participants and loops"),
    bind("collaboration.replay", "R", "replay", "Replay",
         tooltip="Show the history step by step, with the documents as they were"),
    bind("collaboration.times", "T", "times", "Stats",
         tooltip="Draw the timeline chart and list all figures, beside other collaborations"),
    bind("collaboration.log", "p", "log", "Participant's log",
         tooltip="Show what a participant's loop does, and its log"),
    bind("collaboration.before", "less_than_sign", "lineage('continues')", "What this continues",
         display="<"),
    bind("collaboration.after", "greater_than_sign", "lineage('continued_by')",
         "What continues this", display=">"),
    bind("collaboration.next_pane", "tab", "focus_pane(1)", "Next pane"),
    bind("collaboration.previous_pane", "shift+tab", "focus_pane(-1)", "Pane before"),
)  # fmt: skip

TIMELINE = (
    bind("timeline.open", "enter", "open", "Details", show=True, display="enter",
         tooltip="Show all fields of the event, and its document"),
    bind("timeline.search", "slash", "search", "Search", show=True, display="/"),
    bind("timeline.next_match", "n", "match(1)", "Next match"),
    bind("timeline.previous_match", "N", "match(-1)", "Match before"),
    bind("timeline.filter", "F,ampersand", "filter", "Filter", show=True,
         tooltip="By participant, kind of event and words"),
    bind("timeline.time", "t", "toggle_relative", "Clock / ago",
         tooltip="Show times of events, or their age"),
    bind("timeline.reply", "i", "reply", "Go to the event it replies to"),
    bind("timeline.unread", "u", "unread", "Go to the first new event"),
    bind("timeline.copy", "y", "copy", "Copy as JSON"),
    bind("timeline.clear", "escape", "clear", "Close the details, the search or the filter"),
)  # fmt: skip

TYPED = (
    bind("typed.cancel", "escape", "cancel", "Cancel", show=True, display="esc"),
)  # fmt: skip

DOCUMENT = (
    bind("document.raw", "r", "toggle_raw", "Raw / rendered", show=True),
    bind("document.changes", "c", "toggle_changes", "Changes", show=True,
         tooltip="Show what changed since your last visit, line by line"),
    bind("document.outline", "O", "outline", "Contents", show=True,
         tooltip="Go to a heading"),
    bind("document.next_change", "n", "change(1)", "Next change"),
    bind("document.previous_change", "N", "change(-1)", "Previous change"),
    bind("document.seen", "s", "seen", "Mark as seen"),
    bind("document.edit", "e", "edit", "Edit", show=True, tooltip="Open in your editor"),
    bind("document.copy_path", "y", "copy_path", "Copy the path"),
)  # fmt: skip

SCROLL = (
    bind("scroll.up", "up,k", "scroll_up", "Up"),
    bind("scroll.down", "down,j", "scroll_down", "Down"),
    bind("scroll.page_up", "pageup", "page_up", "Page up"),
    bind("scroll.page_down", "pagedown", "page_down", "Page down"),
    bind("scroll.first", "home,g", "scroll_home", "Top"),
    bind("scroll.last", "end,G", "scroll_end", "End"),
)  # fmt: skip

CHOOSE = (
    bind("list.choose", "enter", "choose", "Open", show=True, display="enter"),
)  # fmt: skip

FINDINGS = (
    bind("findings.fix", "f", "fix", "Fix", show=True, tooltip="Run the action that fixes the finding"),
    bind("findings.copy", "y", "copy", "Copy the finding"),
)  # fmt: skip

PANEL = (
    bind("panel.filter", "slash,F", "filter", "Filter", show=True, display="/",
         tooltip="Show only rows with these words; column:word searches one column"),
    bind("panel.clear", "escape", "clear", "Show all rows"),
)  # fmt: skip

TREE = (
    bind("tree.fold", "enter", "fold", "Fold / unfold", show=True),
    bind("tree.unfold_all", "asterisk", "unfold_all", "Unfold all", display="*"),
    bind("tree.copy", "y", "copy", "Copy the value"),
)  # fmt: skip

PICKING = (
    bind("picking.close", "escape", "close", "Close", show=True, display="esc"),
    bind("picking.up", "up", "move(-1)", "Up"),
    bind("picking.down", "down", "move(1)", "Down"),
    bind("picking.page_up", "pageup", "move(-10)", "Page up"),
    bind("picking.page_down", "pagedown", "move(10)", "Page down"),
)  # fmt: skip

LINK = (
    bind("link.open", "enter", "open", "Open", show=True, display="enter"),
    bind("link.copy", "y", "copy", "Copy", show=True),
    bind("link.close", "escape,q", "close", "Leave it", show=True, display="esc"),
)  # fmt: skip

# --- loops, and the inbox

PARTICIPANT = (
    bind("participant.back", "escape,q", "back", "Back", show=True, display="esc"),
    bind("participant.search", "slash", "search", "Search", show=True, display="/"),
    bind("participant.follow", "V", "toggle_follow", "Follow", show=True,
         tooltip="Follow the newest line; scrolling up stops following, the end key resumes"),
    bind("participant.wrap", "W", "toggle_wrap", "Wrap", show=True),
    bind("participant.raw", "r", "toggle_raw", "Raw", show=True,
         tooltip="Show the live session, the log, or the output of the agent unchanged"),
    bind("participant.nudge", "m", "nudge", "Message", show=True,
         tooltip="Send a message: into the running turn if the agent takes it, else with the next attempt"),
    bind("participant.cancel", "E", "cancel_turn", "Cancel turn", show=True,
         tooltip="End what the agent is doing now; the loop then waits for you"),
    bind("participant.start", "L", "start", "Start loop", show=True,
         tooltip="Start or restart the loop; shows the command first"),
    bind("participant.stop", "S", "stop", "Stop loop", show=True,
         tooltip="Stop the loop, and the agent that it runs"),
    bind("participant.next_match", "n", "match(1)", "Next match"),
    bind("participant.previous_match", "N", "match(-1)", "Match before"),
    bind("participant.next", "right_square_bracket", "step(1)", "Next participant", display="]"),
    bind("participant.previous", "left_square_bracket", "step(-1)", "Previous participant",
         display="["),
)  # fmt: skip

INBOX = (
    bind("inbox.back", "escape,q", "back", "Back", show=True, display="esc"),
    bind("inbox.filter", "slash", "filter", "Filter", show=True, display="/",
         tooltip="Show only the items that contain the words; esc shows all again"),
    bind("inbox.answer", "f", "answer", "Answer", show=True,
         tooltip="Open the form that resolves it"),
    bind("inbox.acknowledge", "a", "acknowledge", "Acknowledge", show=True,
         tooltip="Hide the item, with a note, until something new needs attention"),
    bind("inbox.snooze", "Z", "snooze", "Snooze", show=True,
         tooltip="Snooze until something happens in the collaboration"),
    bind("inbox.copy", "y", "copy", "Copy"),
)  # fmt: skip

# --- the past

REPLAY = (
    bind("replay.back", "escape,q", "back", "Back", show=True, display="esc"),
    bind("replay.previous", "left,comma", "step(-1)", "Step back", show=True, display="←"),
    bind("replay.next", "right,full_stop", "step(1)", "Step on", show=True, display="→"),
    bind("replay.previous_event", "shift+left", "jump('event', -1)",
         "Event before"),
    bind("replay.next_event", "shift+right", "jump('event', 1)", "Next event"),
    bind("replay.play", "space", "play", "Play / pause", show=True),
    bind("replay.faster", "plus", "pace(1)", "Faster", display="+"),
    bind("replay.slower", "minus", "pace(-1)", "Slower", display="-"),
    bind("replay.next_phase", "right_parenthesis", "jump('phase', 1)", "Next phase", show=True,
         display=")"),
    bind("replay.previous_phase", "left_parenthesis", "jump('phase', -1)", "Phase before",
         display="("),
    bind("replay.next_stall", "apostrophe,ctrl+right", "jump('stall', 1)", "Next stall", show=True,
         display="'",
         tooltip="Go to the next unusually long wait (inferred)"),
    bind("replay.previous_stall", "quotation_mark,ctrl+left", "jump('stall', -1)", "Stall before",
         display='"'),
    bind("replay.next_finding", "backslash,ctrl+down", "jump('findings', 1)", "Next finding",
         display="\\"),
    bind("replay.previous_finding", "vertical_line,ctrl+up", "jump('findings', -1)", "Previous finding",
         display="|"),
    bind("replay.first", "left_curly_bracket", "end(-1)", "The beginning", display="{"),
    bind("replay.last", "right_curly_bracket", "end(1)", "The end", display="}"),
    bind("replay.pick", "ctrl+g", "pick", "Go to a step", tooltip="Choose a step"),
    bind("replay.mark", "M", "mark", "Mark", tooltip="Mark this step to compare with"),
    bind("replay.compare", "C", "compare", "Compare", show=True,
         tooltip="Compare the document at the mark (or its previous version) with this step"),
)  # fmt: skip

COMPARE = (
    bind("compare.back", "escape,q", "back", "Back", show=True, display="esc"),
    bind("compare.whole", "asterisk", "toggle_whole", "Whole / changes", show=True, display="*"),
    bind("compare.rendered", "r", "toggle_rendered", "Rendered / raw", show=True),
    bind("compare.sides", "B", "toggle_sides", "Side by side", show=True),
    bind("compare.next", "n", "change(1)", "Next change", show=True),
    bind("compare.previous", "N", "change(-1)", "Previous change"),
    bind("compare.document", "d", "pick_document", "Another document", show=True),
)  # fmt: skip

TIMES = (
    bind("times.back", "escape,q", "back", "Back", show=True, display="esc"),
    bind("times.beside", "c", "beside", "Beside another", show=True,
         tooltip="Show the figures of another collaboration beside these"),
    bind("times.chain", "greater_than_sign,less_than_sign", "chain", "Chain", show=True, display=">",
         tooltip="Include the collaborations before and after this one"),
    bind("times.alone", "backspace", "alone", "Alone", show=True),
)  # fmt: skip

# --- lists, forms and questions

FILTER = (
    bind("filter.search", "enter", "submit", "Search the documents", show=True, display="enter"),
    bind("filter.list", "down", "screen.list", "To the list", show=True, display="↓"),
    bind("filter.clear", "escape", "screen.clear", "Clear", show=True, display="esc"),
)  # fmt: skip

HITS = FILTER[-1:]  # the way back is the same from the hits below the filter

# Moving in a list that draws its own lines.
LIST = (
    bind("list.up", "up,k", "cursor(-1)", "Up"),
    bind("list.down", "down,j", "cursor(1)", "Down"),
    bind("list.page_up", "pageup", "page(-1)", "Page up"),
    bind("list.page_down", "pagedown", "page(1)", "Page down"),
    bind("list.first", "home,g", "first", "First"),
    bind("list.last", "end,G", "last", "Last"),
)  # fmt: skip

OPTIONS = (bind("options.choose", "enter", "select", "Open", show=True, display="enter"),)

FORM = (
    bind("form.do", "ctrl+s", "do", "Do it", show=True, tooltip="Run the previewed action"),
    bind("form.cancel", "escape", "cancel", "Cancel", show=True),
)  # fmt: skip

CARD = (
    *(bind(f"card.verdict_{n}", str(n), f"verdict({n})", f"Verdict {n}") for n in range(1, 10)),
    bind("card.writes", "equals_sign", "toggle_writes", "Writes", show=True, display="=",
         tooltip="Show what a verdict writes, and the equivalent command"),
    bind("card.next_verdict", "right", "pick(1)", "Next verdict"),
    bind("card.previous_verdict", "left", "pick(-1)", "Previous verdict"),
    bind("card.form", "e", "form", "All fields",
         tooltip="Open the full form of the verdict, with optional fields"),
    bind("card.do", "ctrl+s", "do", "Do it", display="ctrl+s"),
    bind("card.close", "escape", "close", "Back", show=True, display="esc"),
)  # fmt: skip

RESULT = (
    bind("result.copy", "y", "copy", "Copy the outcome",
         tooltip="Copy the path or link in an outcome that stays until a key, or else its words"),
    bind("result.close", "escape", "close", "Close the outcome",
         tooltip="Every other key closes it, too, and works as usual"),
)  # fmt: skip

READING = (bind("reading.close", "escape,q", "close", "Back", show=True, display="esc"),)

HELP = (bind("help.search", "slash", "search", "Search", show=True, display="/"),)

PICK = (bind("pick.close", "escape,q", "close", "Close", show=True, display="esc"),)

FIRST = ("act.remedy", "findings.fix", "inbox.answer")
"""What the footer shows first."""
MIDDLE = ("act.actions", "act.block", "collaboration.zoom")
"""What it shows behind the keys of the pane and of the screen, in this order."""

TABLE = (
    *APP, *ACT, *FLEET, *COLLABORATION, *TIMELINE, *TYPED, *DOCUMENT, *SCROLL, *CHOOSE, *FINDINGS, *PANEL,
    *TREE, *PICKING, *LINK, *PARTICIPANT, *INBOX, *REPLAY, *COMPARE, *TIMES, *FILTER, *LIST, *OPTIONS, *FORM, *CARD,
    *RESULT, *READING, *HELP, *PICK,
)  # fmt: skip
"""Every binding of the dashboard."""

RETIRED = frozenset({"result.next"})
"""Ids of keys that there were once: whoever chose a key for one hears nothing of it."""


def rank(binding: Binding) -> int:
    """Where the footer shows a binding: by how soon it is of use, not by who binds it.

    A fix comes first; then what steps through the past, where that shows; then the pane's keys and
    the screen's; what can be done everywhere; the way back, and help.
    """
    id = binding.id or ""
    if id == "app.help" or binding.action == "help":
        return 9
    if binding.key.partition(",")[0] == "escape":
        return 8
    if id in MIDDLE:
        return 3 + MIDDLE.index(id)
    return 0 if id in FIRST else 1 if id.startswith("replay.") else 2


def called(app: AcpApp, id: str) -> str:
    """What the key is called that runs the binding ``id``, for hints."""
    chosen = app.settings.keys.get(id)
    if chosen:
        return chosen.partition(",")[0].strip()
    binding = next(each for each in TABLE if each.id == id)
    first = binding.with_key(binding.key.partition(",")[0], binding.key_display)
    return app.get_key_display(first)


def display(app: AcpApp, id: str) -> str:
    """The sign of the key that runs the binding ``id``, also where the person chose another."""
    binding = next(each for each in TABLE if each.id == id)
    key = app.settings.keys.get(id, binding.key).partition(",")[0].strip()
    sign = binding.key_display if id not in app.settings.keys else None
    return app.get_key_display(binding.with_key(key, sign))


def problems(chosen: Mapping[str, str]) -> list[str]:
    """What is wrong with the keys that a person chose (binding id to keys), a line each."""
    known = {binding.id for binding in TABLE} | RETIRED
    return [
        f"config.toml: unknown key id {id!r} (? lists all ids)"
        for id in sorted(chosen)
        if id not in known
    ]


Input = events.Key | events.Paste
LONGEST = 10.0
"""Seconds for which keys wait at most for a screen that is being made, whichever it is, all of them together;
a form takes more than one on a busy machine. After that they go to it as it is."""
PAUSE = 0.01
NEVER_HELD = frozenset({"escape", "ctrl+q", "ctrl+c"})
"""Keys that leave: nobody is kept in a form that does not come."""


class KeyQueue:
    """The keys that were pressed and have not reached a widget yet."""

    def __init__(
        self,
        app: App[Any],
        forward: Callable[[Input], Awaitable[None]],
        is_held: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Make it.

        Args:
            app: Its focused widget gets the keys.
            forward: Hands a key to it.
            is_held: Says whether keys wait although the screen is made.
            clock: Seconds that pass.
        """
        self._app = app
        self._forward = forward
        self._is_held = is_held
        self._clock = clock
        self._waited_for: object = None  # what was being made when a key was looked at last
        self._since = 0.0  # and since when keys have waited for it
        self._waiting: deque[Input] = deque()
        self._busy = False  # a key is on its way

    async def take(self, event: Input) -> None:
        """Hand a key on, at once or when those before it are done."""
        if self._busy:
            self._waiting.append(event)
        else:
            self._busy = True
            await self._hand_on(event)

    async def _hand_on(self, event: Input) -> None:
        if self._must_wait(event):
            later = partial(self._hand_on, event)
            self._app.set_timer(PAUSE, lambda: self._after_focus(later))
            return
        target = self._app.focused or self._app.screen
        await self._forward(event)
        self._follow(target, partial(self._follow_messages, target))

    def _must_wait(self, event: Input) -> bool:
        """Whether what takes the key is still being made, and keys have not waited `LONGEST` for it."""
        screen = self._app.screen
        making = screen if is_being_made(screen) else self if self._is_held() else None
        if making is not self._waited_for:
            self._waited_for, self._since = making, self._clock()
        leaving = isinstance(event, events.Key) and event.key in NEVER_HELD
        return making is not None and not leaving and self._clock() - self._since < LONGEST

    async def _follow_messages(self, target: DOMNode) -> None:
        """Go the same way again, behind what widgets told each other because of the key."""
        self._follow(target, self._done)

    def _follow(self, node: DOMNode, then: Callable[[], Awaitable[None]]) -> None:
        """Go the way of the key, behind it: from widget to widget up to the app."""
        if node is self._app or not node.call_later(self._passed, node, then):
            self._after_focus(then)

    def _passed(self, node: DOMNode, then: Callable[[], Awaitable[None]]) -> None:
        self._follow(self._app if node.parent is None else node.parent, then)

    def _after_focus(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Call something when the app has set the focus that a widget asked for until now."""
        self._app.call_later(self._app.call_later, callback)

    async def _done(self) -> None:
        if self._waiting:
            await self._hand_on(self._waiting.popleft())
        else:
            self._busy = False


def is_being_made(screen: Screen[Any]) -> bool:
    """Whether a screen has not made yet what takes its keys; one that loads it says ``is_being_made``."""
    return not screen.is_mounted or bool(getattr(screen, "is_being_made", False))
