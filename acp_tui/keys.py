"""Every key binding of the dashboard: its id, its keys, what it does.

The ids are what people write in ``config.toml`` to choose other keys::

    [keys]
    "fleet.open" = "o,enter"

and are never changed once released. Help (``?``) is made from these, so a binding
without a description here is one that nobody finds.

``/`` and ``!`` are never priority bindings: they must stay ordinary letters in forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from textual.binding import Binding

if TYPE_CHECKING:
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


QUIT = bind("app.quit", "ctrl+q", "quit", "Quit", tooltip="Leave the dashboard; nothing else stops")

APP = (
    bind("app.help", "question_mark,f1", "help", "Help", show=True, display="?",
         tooltip="Every key of this screen, with the id by which it can be changed"),
    QUIT,
    bind("app.inbox", "exclamation_mark", "inbox", "Inbox", display="!",
         tooltip="What needs you and what is asked in all collaborations"),
    bind("app.utc", "U", "toggle_utc", "UTC / local time",
         tooltip="Show times in UTC, or in this machine's zone"),
    bind("app.theme", "ctrl+t", "change_theme", "Theme"),
)  # fmt: skip

# The same acts on the collaboration that is selected (fleet) or open (its screen).
ACT = (
    bind("act.block", "b", "block", "Block", show=True,
         tooltip="Say on somebody's behalf that the collaboration is blocked"),
    bind("act.acknowledge", "a", "acknowledge", "Acknowledge",
         tooltip="Take a need off the top, with a note; a new reason shows again"),
    bind("act.actions", "x", "actions", "Actions", show=True,
         tooltip="Everything that you can do in this collaboration"),
    bind("act.remedy", "f", "remedy", "Fix",
         tooltip="Do what its first need asks for"),
    bind("act.launch", "L", "launch", "Start loops",
         tooltip="Start programs that take participants' turns; shows each command before"),
    bind("act.stop", "S", "stop", "Stop loops",
         tooltip="Stop participants' loops, with the programs that they run"),
    bind("act.archive", "A", "archive", "Archive",
         tooltip="Put it away, or take it back; it still exists and is still found"),
    bind("act.validate", "v", "validate", "Validate now",
         tooltip="Read everything again now"),
    bind("act.copy_path", "y", "copy_path", "Copy path"),
    bind("act.open_folder", "o", "open_folder", "Open folder"),
)  # fmt: skip

FLEET = (
    bind("fleet.open", "enter", "open", "Open", show=True, display="enter"),
    bind("fleet.filter", "slash", "filter", "Filter", show=True, display="/",
         tooltip="By words of name, objective, phase and people; enter searches in documents"),
    bind("fleet.new", "n", "new", "New", show=True, tooltip="Start a collaboration"),
    bind("fleet.replay", "r", "replay", "Replay",
         tooltip="Its past, moment by moment; what became of its documents"),
    bind("fleet.times", "T", "times", "Where the time went"),
    bind("fleet.launch", "l", "launch", "Start loops"),
    bind("fleet.archived", "H", "toggle_archived", "Show or hide the archived"),
    bind("fleet.clear", "escape", "clear", "Clear the filter"),
    bind("fleet.quit", "q", "app.quit", "Quit"),
)  # fmt: skip

FILTER = (bind("filter.list", "down", "screen.list", "To the list"),)

# Moving in a list that draws its own lines.
LIST = (
    bind("list.up", "up,k", "cursor(-1)", "Up"),
    bind("list.down", "down,j", "cursor(1)", "Down"),
    bind("list.page_up", "pageup", "page(-1)", "Page up"),
    bind("list.page_down", "pagedown", "page(1)", "Page down"),
    bind("list.first", "home,g", "first", "First"),
    bind("list.last", "end,G", "last", "Last"),
)  # fmt: skip

FORM = (
    bind("form.do", "ctrl+s", "do", "Do it", show=True, tooltip="Do what the preview says"),
    bind("form.cancel", "escape", "cancel", "Cancel", show=True),
)  # fmt: skip

PICK = (bind("pick.close", "escape,q", "close", "Close", show=True, display="esc"),)


OWN = (*APP, *ACT, *FLEET, *FILTER, *LIST, *FORM, *PICK)
"""The bindings of this file."""


def everything() -> tuple[Binding, ...]:
    """The bindings of all screens and panes."""
    from acp_tui.collaboration_keys import ALL

    return (*OWN, *ALL)


def called(app: AcpApp, id: str) -> str:
    """What the key is called that runs the binding ``id``, for hints."""
    chosen = app.settings.keys.get(id)
    if chosen:
        return chosen.partition(",")[0].strip()
    binding = next(each for each in everything() if each.id == id)
    first = binding.with_key(binding.key.partition(",")[0], binding.key_display)
    return app.get_key_display(first)


def problems(chosen: Mapping[str, str]) -> list[str]:
    """What is wrong with the keys that a person chose (binding id to keys), a line each."""
    known = {binding.id for binding in everything()}
    return [
        f"config.toml: there is no key called {id!r} (? lists them)"
        for id in sorted(chosen)
        if id not in known
    ]
