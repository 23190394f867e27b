"""The command palette: collaborations to open, and what can be done with the one in hand.

Names and sentences come from files: they go in as `Content`, and never as `str`, which
the palette would take as markup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from acp_core.model import Action, Snapshot
from acp_tui import text

if TYPE_CHECKING:
    from acp_tui.app import AcpApp

SHOWN = 30
"""How many are offered before anything is typed."""


class Offer(NamedTuple):
    """One thing that the palette offers."""

    label: str
    about: str
    run: Callable[[], object]


class OffersProvider(Provider):
    """Offers found by `offers`, matched by their labels."""

    @property
    def acp(self) -> AcpApp:
        """The dashboard."""
        return cast("AcpApp", self.app)

    def offers(self) -> Iterable[Offer]:
        """What there is to offer."""
        raise NotImplementedError

    async def discover(self) -> Hits:
        """The first offers."""
        for offer, _ in zip(self.offers(), range(SHOWN), strict=False):
            label, about = text.line(offer.label), text.line(offer.about)
            yield DiscoveryHit(label, offer.run, text=label.plain, help=about)  # type: ignore[arg-type]

    async def search(self, query: str) -> Hits:
        """The offers that match."""
        matcher = self.matcher(query)
        for offer in self.offers():
            label, about = text.safe_line(offer.label), text.line(offer.about)
            score = matcher.match(label)
            if score > 0:
                marked = text.highlight(matcher, label)
                yield Hit(score, marked, offer.run, text=label, help=about)  # type: ignore[arg-type]


class CollaborationsProvider(OffersProvider):
    """Every collaboration, to open."""

    def offers(self) -> Iterable[Offer]:
        """By name."""
        snapshots = sorted(self.acp.fleet.snapshots.values(), key=lambda each: each.name.casefold())
        for each in snapshots:
            run = partial(self.acp.open_collaboration, each.key)
            yield Offer(f"Open {each.name}", each.headline or each.objective, run)


class PlacesProvider(OffersProvider):
    """Where one can go on the screen in front: its navigation says so (`places`)."""

    def offers(self) -> Iterable[Offer]:
        """In the order of the screen."""
        navigation = getattr(self.screen, "navigation", None)
        return navigation.places() if navigation else ()


class ActionsProvider(OffersProvider):
    """What can be done with the collaboration in hand."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self._subject: Snapshot | None = None
        self._actions: tuple[Action, ...] = ()

    async def startup(self) -> None:
        """Find out what can be done, in a worker thread."""
        in_hand = getattr(self.screen, "in_hand", None)
        self._subject = in_hand() if in_hand else None
        if self._subject is not None:
            from acp_tui.actions.collaboration_actions import offered

            self._actions = await offered(self.acp, self._subject.key)

    def offers(self) -> Iterable[Offer]:
        """In the order in which the protocol offers them: the most useful first."""
        if self._subject is None:
            return
        for action in self._actions:
            run = partial(self.acp.perform, self._subject.key, action)
            yield Offer(f"{action.label}: {self._subject.name}", action.sentence, run)
