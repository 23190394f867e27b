"""Putting the fleet in order: at once, or beside the interface's thread where it is a large one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.dom import DOMNode

    from acp_core.fleet.overview import FleetEntry, Seen
    from acp_core.model import Snapshot

MANY = 1_500  # collaborations: to arrange more would hold the interface up


class Arranging:
    """Puts the fleet in order for a screen, which is told when that is done.

    While a large fleet is being arranged, whatever else comes is taken together.

    Args:
        screen: whose worker does it.
        snapshots: the fleet, as it stands whenever this is called.
        seen: what the person has seen of a collaboration; called in any thread.
        show: takes the entries in their order, in the interface's thread.
    """

    def __init__(
        self,
        screen: DOMNode,
        snapshots: Callable[[], Iterable[Snapshot]],
        seen: Callable[[Snapshot], Seen],
        show: Callable[[list[FleetEntry]], Any],
    ) -> None:
        self._screen = screen
        self._snapshots = snapshots
        self._seen = seen
        self._show = show
        self._busy = self._again = False

    def begin(self, before: Mapping[str, FleetEntry]) -> None:
        """Arrange the fleet as it stands now; ``before`` are the entries that are shown."""
        if self._busy:
            self._again = True
            return
        snapshots = tuple(self._snapshots())
        if len(snapshots) < MANY:
            self._show(self._arranged(snapshots, before))
            return
        self._busy = True
        self._screen.run_worker(
            lambda: self._in_thread(snapshots, before), thread=True, group="arrange"
        )

    def _in_thread(self, snapshots: tuple[Snapshot, ...], before: Mapping[str, FleetEntry]) -> None:
        """In a thread of its own."""
        entries = self._arranged(snapshots, before)
        self._screen.app.call_from_thread(self._done, entries)

    def _done(self, entries: list[FleetEntry]) -> None:
        self._busy = False
        if self._screen.is_attached:
            self._show(entries)
            if self._again:
                self._again = False
                self.begin({entry.key: entry for entry in entries})

    def _arranged(
        self, snapshots: tuple[Snapshot, ...], before: Mapping[str, FleetEntry]
    ) -> list[FleetEntry]:
        from acp_core.fleet import overview  # late: not for the first picture

        ordered = overview.arrange(snapshots, self._seen, before)
        ordered.sort(key=lambda entry: entry.archived)
        return ordered
