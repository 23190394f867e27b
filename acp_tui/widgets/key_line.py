"""The row at the foot of a screen: which keys do what here and now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from textual import events
from textual.content import Content
from textual.widget import Widget

from acp_tui.keys import rank
from acp_tui.text import safe_line, width

if TYPE_CHECKING:
    from textual.screen import Screen

BACK = 8
"""The rank from which on keys always show, where anything does."""
MORE = "…"
KEY = "bold $footer-key-foreground"
WORDS = "$footer-description-foreground"
OFF = "dim"

_TYPED = frozenset({"slash", "plus", "minus", "backslash"})
"""Keys that write a sign into a field, which Textual does not know of."""
_NAMED = frozenset({"f1"})
"""Keys that do in a field what another one does elsewhere, and go by their own name there."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A key and what it does, and where it stands (`acp_tui.keys.rank`).

    One that is not ``enabled`` does nothing now.
    """

    key: str
    display: str
    words: str
    action: str
    enabled: bool = True
    tooltip: str = ""
    rank: int = 0

    @property
    def cells(self) -> int:
        """How wide it is."""
        return width(self.display) + 1 + width(self.words)


def _importance(offer: Offer) -> int:
    """What gives way first has the least: the way back and help stay longest."""
    return offer.rank if offer.rank >= BACK else 0


class KeyLine(Widget):
    """One row of the keys that do something now; the most useful ones first.

    What has no room gives way, from the end; the ways back and to help last.

    One widget draws the whole row. (Textual's own footer is a widget for each key, made anew
    whenever the focus moves: a third of all that the dashboard then had to do.)
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    KeyLine {
        dock: bottom; height: 1; padding: 0 1;
        color: $footer-foreground; background: $footer-background;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.offers: tuple[Offer, ...] = ()
        self.palette: Offer | None = None
        self._pointed: Offer | None = None

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, screen: Screen[object]) -> None:
        if not screen.app.app_focus or screen is not self.screen:
            return
        offers: dict[str, Offer] = {}
        palette = None
        focused = screen.focused
        typing = focused is not None and focused.check_consume_key("a", "a")
        for key, (_, binding, enabled, tooltip) in screen.active_bindings.items():
            of_palette = key == self.app.COMMAND_PALETTE_BINDING
            if not of_palette and (not binding.show or binding.action in offers):
                continue
            if typing and key in _TYPED:
                continue
            words = safe_line(binding.description)
            hint = tooltip or binding.tooltip or binding.description
            as_named = replace(binding, key_display=None) if typing and key in _NAMED else binding
            display = safe_line(self.app.get_key_display(as_named))
            offer = Offer(
                binding.key, display, words, binding.action, enabled, safe_line(hint), rank(binding)
            )
            if of_palette:
                palette = offer
            else:
                offers[binding.action] = offer
        enabled_now = (offer for offer in offers.values() if offer.enabled)
        useful = tuple(sorted(enabled_now, key=lambda offer: offer.rank))
        if (useful, palette) != (self.offers, self.palette):
            self.offers, self.palette = useful, palette
            self.refresh()

    def _placed(self) -> tuple[list[tuple[int, Offer]], bool]:
        """Which keys show in which columns, and whether some had no room."""
        space = self.content_size.width
        offers, palette = list(self.offers), self.palette

        def taken(gap: int) -> int:
            return sum(offer.cells + gap for offer in offers) - gap

        fits = palette is not None and taken(2) + 3 + palette.cells <= space
        gap = 2 if fits or taken(2) <= space else 1
        cut = False
        while len(offers) > 1 and taken(gap) + (2 if cut else 0) > space:
            offers.pop(max(range(len(offers)), key=lambda n: (-_importance(offers[n]), n)))
            cut = True
        placed, column = [], 0
        for offer in offers:
            placed.append((column, offer))
            column += offer.cells + gap
        if fits and palette is not None:
            placed.append((space - palette.cells, palette))
        return placed, cut

    def render(self) -> Content:
        placed, cut = self._placed()
        parts: list[str | tuple[str, str]] = []
        column = 0
        for start, offer in placed:
            parts.append(" " * (start - column))
            pointed = " on $block-hover-background" if offer is self._pointed else ""
            parts += [(offer.display, KEY + pointed), (f" {offer.words}", WORDS + pointed)]
            column = start + offer.cells
        if cut:
            parts.append((f" {MORE}", OFF))
        return Content.assemble(*parts)

    def offer_at(self, x: int) -> Offer | None:
        """The key in column ``x``, if there is one."""
        placed, _ = self._placed()
        return next((o for start, o in placed if start <= x < start + o.cells), None)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        offset = event.get_content_offset(self)
        pointed = self.offer_at(offset.x) if offset is not None else None
        if pointed is not self._pointed:
            self._pointed = pointed
            self.tooltip = Content(pointed.tooltip) if pointed else None
            self.refresh()

    def on_leave(self) -> None:
        if self._pointed is not None:
            self._pointed = None
            self.tooltip = None
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        offer = self.offer_at(offset.x) if offset is not None else None
        if offer is None:
            return
        event.stop()
        if offer.enabled:
            self.app.simulate_key(offer.key)
        else:
            self.app.bell()
