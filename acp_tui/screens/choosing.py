"""Choosing one of many: type to narrow the list, enter to take what is selected; and the command palette.

The palette offers collaborations to open, and what can be done with the one in hand. Names and sentences
come from files: they go in as `Content`, and never as `str`, which the palette would take as markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.command import Hit, Hits, Provider
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static

from acp_core.model import Action, Snapshot
from acp_core.model.format import names_in, sentence_case
from acp_tui import keys, text
from acp_tui.keys import called
from acp_tui.text import line
from acp_tui.widgets.lines import text_of
from acp_tui.widgets.row_list import Item, RowList

if TYPE_CHECKING:
    from acp_tui.actions.collaboration_actions import CollaborationActions
    from acp_tui.app import AcpApp


class PickScreen(ModalScreen[str | None]):
    """A list over the screen; gives the key of what was chosen, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.PICKING]

    DEFAULT_CSS = """
    PickScreen {
        align: center middle;
        & #pick {
            width: 100; max-width: 90%; height: auto; max-height: 80%;
            border: round $accent; padding: 0 1; background: $surface;
        }
        & #pick-title { height: 1; text-style: bold; }
        & #pick-words { border: none; height: 1; padding: 0; background: transparent; }
        & RowList { height: auto; max-height: 50vh; margin-top: 1; }
        &:ansi #pick { background: ansi_default; }
    }
    """

    def __init__(self, title: str, items: Sequence[Item], selected: str = "") -> None:
        """Make it.

        Args:
            title: What is chosen.
            items: What there is, each with a key.
            selected: The key of the one that is selected first.
        """
        super().__init__()
        self._title = title
        self._items = tuple(items)
        self._selected = selected
        self._list = RowList(id="pick-list", empty="No match.")

    def compose(self) -> ComposeResult:
        with Vertical(id="pick"):
            yield Static(line(self._title), id="pick-title")
            yield Input(placeholder="type to filter", id="pick-words", compact=True)
            yield self._list

    def on_mount(self) -> None:
        """Show everything; the words can be typed at once."""
        self._list.can_focus = False
        self._show("")
        self.query_one(Input).focus()

    def _show(self, words: str) -> None:
        wanted = words.lower().split()
        items = [
            item for item in self._items if all(w in text_of(item.pieces).lower() for w in wanted)
        ]
        self._list.items = tuple(items)
        keys = [item.key for item in items]
        if not items:
            return
        self.call_after_refresh(
            self._list.select, keys.index(self._selected) if self._selected in keys else 0
        )

    @on(Input.Changed, "#pick-words")
    def _typed(self, message: Input.Changed) -> None:
        if message.value:
            self._selected = ""
        self._show(message.value)

    @on(Input.Submitted, "#pick-words")
    def _submitted(self) -> None:
        item = self._list.selected
        self.dismiss(item.key if item is not None else None)

    @on(RowList.Chosen, "#pick-list")
    def _chosen(self, message: RowList.Chosen) -> None:
        self.dismiss(message.item.key)

    def action_move(self, by: int) -> None:
        """Select another one."""
        self._list.action_cursor(by)

    def action_close(self) -> None:
        """Choose nothing."""
        self.dismiss(None)


class Options(OptionList):
    """Textual's list, with its key named."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.OPTIONS]


SHOWN = 30

"""How many are offered before anything is typed."""


class Offer(NamedTuple):
    """One thing that the palette offers."""

    label: str
    about: str
    run: Callable[[], object]
    key: str = ""
    """The key that does the same, where there is one."""

    @property
    def title(self) -> str:
        """The label, and the key behind it."""
        return f"{self.label}  ({self.key})" if self.key else self.label


class OffersProvider(Provider):
    """Offers found by `offers`, matched by their labels."""

    WEIGHT: ClassVar[float] = 1.0
    """How far up its offers stand among those of other providers."""

    @property
    def acp(self) -> AcpApp:
        """The dashboard."""
        return cast("AcpApp", self.app)

    def offers(self) -> Iterable[Offer]:
        """What there is to offer."""
        raise NotImplementedError

    async def discover(self) -> Hits:
        """The first offers."""
        for offer, number in zip(self.offers(), range(SHOWN), strict=False):
            title, about = text.line(offer.title), text.line(offer.about)
            score = self.WEIGHT - number / 1000
            yield Hit(score, title, offer.run, text=title.plain, help=about)  # type: ignore[arg-type]

    async def search(self, query: str) -> Hits:
        """The offers that match."""
        matcher = self.matcher(query)
        for offer in self.offers():
            title, about = text.safe_line(offer.title), text.line(offer.about)
            score = self.WEIGHT * matcher.match(title)
            if score > 0:
                marked = text.highlight(matcher, title)
                yield Hit(score, marked, offer.run, text=title, help=about)  # type: ignore[arg-type]


def _about(snapshot: Snapshot) -> str:
    """How it stands, or else what it is about."""
    return sentence_case(snapshot.headline, names_in(snapshot)) or snapshot.objective


class CollaborationsProvider(OffersProvider):
    """Every collaboration, to open."""

    def offers(self) -> Iterable[Offer]:
        """By name."""
        snapshots = sorted(self.acp.fleet.snapshots.values(), key=lambda each: each.name.casefold())
        names = Counter(each.name for each in snapshots)
        for each in snapshots:
            run = partial(self.acp.open_collaboration, each.key)
            where = f"  {PurePath(each.key).parent}" if names[each.name] > 1 else ""
            yield Offer(f"Open {each.name}{where}", _about(each), run)


class PlacesProvider(OffersProvider):
    """Where one can go on the screen in front: its navigation says so (`places`)."""

    WEIGHT = 1.1

    def offers(self) -> Iterable[Offer]:
        """In the order of the screen."""
        navigation = getattr(self.screen, "navigation", None)
        return navigation.places() if navigation else ()


class ViewsProvider(PlacesProvider):
    """How the fleet can be listed: behind the collaborations that one may look for."""

    WEIGHT = 0.9


class ActionsProvider(OffersProvider):
    """What can be done with the collaboration in hand, with the keys that do the same."""

    WEIGHT = 1.3

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self._subject: Snapshot | None = None
        self._actions: tuple[Action, ...] = ()

    async def startup(self) -> None:
        """Find out what can be done, in a worker thread."""
        screen = self._acting()
        self._subject = screen.in_hand() if screen else None
        if self._subject is not None:
            from acp_tui.actions.offered import offered

            self._actions = await offered(self.acp, self._subject.key)

    def _acting(self) -> CollaborationActions | None:
        """The screen beneath, where one can act on a collaboration there."""
        from acp_tui.actions.collaboration_actions import CollaborationActions

        return self.screen if isinstance(self.screen, CollaborationActions) else None

    def offers(self) -> Iterable[Offer]:
        """In the order in which the protocol offers them: the most useful first."""
        if self._subject is None:
            return
        keyed = self._keys(self._subject)
        several = self.screen is self.acp.fleet_screen  # which does not say whose actions these are
        for action in self._actions:
            run = partial(self.acp.perform, self._subject.key, action)
            where = f": {self._subject.name}" if several else ""
            yield Offer(f"{action.label}{where}", action.sentence, run, keyed.get(action.name, ""))

    def _keys(self, subject: Snapshot) -> dict[str, str]:
        """The keys that perform actions now, by the actions' names."""
        from acp_core.loops.acts.names import LAUNCH, STOP_LOOP
        from acp_tui.actions.offered import halting

        ids = {LAUNCH: "act.launch", STOP_LOOP: "act.stop"}
        if halt := halting(self._actions):
            ids[halt.name] = "act.block"
        shown = screen.need_in_hand() if (screen := self._acting()) else None
        if shown and shown[0].key == subject.key and shown[1].remedy:
            ids[shown[1].remedy] = "act.remedy"
        return {name: called(self.acp, id) for name, id in ids.items()}
