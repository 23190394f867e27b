"""Help: every key that works on the screen beneath, with the id by which it can be changed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from acp_core.person.paths import config_folder
from acp_tui import keys, text
from acp_tui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from acp_tui.app import AcpApp

KEY, ID = 16, 24  # cells
WIDEST, FRAME = 92, 8  # of the whole frame, as its style says; of what is around the text in it


class HelpScreen(ModalScreen[None]):
    """The keys of another screen, made from its bindings as they are now."""

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*keys.PICK]
    app: AcpApp

    def __init__(self, beneath: Screen[Any]) -> None:
        super().__init__()
        self._bindings_beneath = list(beneath.active_bindings.values())

    def compose(self) -> ComposeResult:
        """The list, which scrolls."""
        with VerticalScroll(id="frame"):
            yield Static(self._content())
        yield KeyLine()

    def on_mount(self) -> None:
        """Let the arrow keys scroll."""
        self.query_one("#frame").focus()

    def _content(self) -> Content:
        parts: list[text.Part] = [("Keys\n", "bold $text-accent")]
        cells = min(WIDEST, self.app.size.width * 9 // 10) - FRAME
        for title, rows in grouped(self._bindings_beneath):
            parts.append((f"\n{title}\n", "bold"))
            for binding, bindings in rows:
                names = dict.fromkeys(self.app.get_key_display(each) for each in bindings)
                pressed = ", ".join(names)
                parts += [
                    (text.fit(pressed, KEY), "$text-accent"),
                    text.fit(binding.description, ID + 4),
                    (f"{binding.id}\n", text.MUTED),
                ]
                about = textwrap.wrap(binding.tooltip or "", max(20, cells - KEY))
                parts += [(f"{'':{KEY}}{line}\n", text.MUTED) for line in about]
        parts += [
            ("\nOther keys\n", "bold"),
            f"Write in {text.safe_line(str(config_folder() / 'config.toml'))}, and start acp again:\n\n",
            ('[keys]\n"fleet.open" = "o,enter"\n', "$text-accent"),
        ]
        return text.join(*parts)

    def action_close(self) -> None:
        """Leave."""
        self.dismiss()


def grouped(
    active: Iterable[ActiveBinding],
) -> list[tuple[str, list[tuple[Binding, list[Binding]]]]]:
    """Bindings with an id, by the first word of it, all keys of an id together."""
    groups: dict[str, dict[str, list[Binding]]] = {}
    for entry in active:
        binding = entry.binding
        if binding.id and binding.description:
            group = groups.setdefault(binding.id.partition(".")[0], {})
            group.setdefault(binding.id, []).append(binding)
    return [
        (title.capitalize(), [(bindings[0], bindings) for bindings in ids.values()])
        for title, ids in groups.items()
    ]
