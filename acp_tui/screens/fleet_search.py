"""Searching inside the documents of a fleet, and the list of what was found.

Enter in the fleet's filter begins it. A hit is a line for the place and a line for what stands there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from acp_core.model import format
from acp_tui import keys, text
from acp_tui.screens.choosing import Options

if TYPE_CHECKING:
    from acp_core.fleet.search import Hit
    from acp_tui.screens.fleet import FleetScreen

PACE = 0.2  # seconds between two pictures of the hits so far

GROUP = "search"


class FleetSearch:
    """Looks into the documents of all collaborations, and lists the hits below the fleet.

    Args:
        screen: The fleet's.
    """

    def __init__(self, screen: FleetScreen) -> None:
        self._screen = screen
        self.hits: Hits | None = None
        """The list of hits, where something was searched for."""

    async def start(self, words: str) -> None:
        """Look for words, in place of the ones before."""

        await self.clear()
        self.hits = Hits()
        await self._screen.mount(self.hits, after=self._screen.query_one("#empty"))
        self.hits.results = Results(words)
        self._screen.run_worker(
            partial(self._search, words), group=GROUP, thread=True, exit_on_error=False
        )

    async def clear(self) -> None:
        """End the search, and take its hits away."""
        self._screen.workers.cancel_group(self._screen, GROUP)
        if self.hits is not None:
            hits, self.hits = self.hits, None
            await hits.remove()

    def _search(self, words: str) -> None:
        from acp_core.fleet.search import hits, loader

        worker, app = get_current_worker(), self._screen.app
        snapshots = tuple(app.fleet.snapshots.values())
        results: list[Hit] = []
        drawn_at = monotonic()
        for hit in hits(snapshots, words, loader(app.fleet), stop=lambda: worker.is_cancelled):
            results.append(hit)
            if monotonic() - drawn_at > PACE:
                drawn_at = monotonic()
                so_far = Results(words, tuple(results), len(snapshots))
                app.call_from_thread(self._update, so_far)
        if not worker.is_cancelled:
            app.call_from_thread(
                self._update, Results(words, tuple(results), len(snapshots), done=True)
            )

    def _update(self, results: Results) -> None:
        if self.hits is None or results.words != self._screen.words:
            return
        self.hits.results = results._replace(hits=_ranked(results.hits))
        if results.done and results.hits and self._screen.focused is self._screen.field:
            self.hits.list.focus()


def _ranked(hits: Sequence[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: (-hit.score, hit.name.casefold(), hit.key))


LISTED = 200
"""How many hits are listed at most: who needs more needs other words."""


class Results(NamedTuple):
    """What was found so far: the best ``hits`` first, of ``words``, in ``searched`` collaborations."""

    words: str
    hits: Sequence[Hit] = ()
    searched: int = 0
    done: bool = False


class Hits(Vertical):
    """A list of hits with a line over it that says how far the search is."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.HITS]
    DEFAULT_CSS = """
    Hits {
        height: auto;
        max-height: 60%;
        border-top: solid $foreground 20%;
        & > Static { height: 1; padding: 0 1; }
        & > OptionList, & > OptionList:focus {
            height: auto;
            border: none;
            padding: 0;
            background: transparent;
            scrollbar-size-vertical: 1;
        }
    }
    """

    @dataclass
    class Opened(Message):
        """The person wants to see the place of a hit."""

        hit: Hit

    results: var[Results] = var(Results(""), init=False)
    """What to show."""

    def compose(self) -> ComposeResult:
        """The line and the list."""
        yield Static()
        yield Options(markup=False)

    def watch_results(self, results: Results) -> None:
        """Show what was found so far."""
        words, hits, searched, done = results
        number, among = format.count(len(hits), "hit"), format.count(searched, "collaboration")
        state = f"{number} in the documents of {among}" if done else "searching the documents …"
        more = f", the best {LISTED} are listed" if len(hits) > LISTED else ""
        title = text.join((f"“{words}”  ", "bold"), (state + more, text.MUTED))
        self.query_one(Static).update(title)
        choices = self.query_one(OptionList)
        before = choices.highlighted
        choices.clear_options()
        choices.add_options([Option(_option(hit, words)) for hit in hits[:LISTED]])
        if hits:
            choices.highlighted = min(before or 0, choices.option_count - 1)

    @property
    def list(self) -> OptionList:
        """The list, to focus."""
        return self.query_one(OptionList)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(self.Opened(self.results.hits[event.option_index]))


def _option(hit: Hit, words: str) -> Content:
    where = f"  {hit.document}" if hit.document else "  objective"
    line = f":{hit.line}" if hit.line else ""
    excerpt = text.line(hit.excerpt)
    wanted = re.compile("|".join(map(re.escape, words.split())) or r"(?!)", re.IGNORECASE)
    return text.join(
        (text.safe_line(hit.name), "bold"),
        (text.safe_line(where + line), text.MUTED),
        "\n  ",
        excerpt.highlight_regex(wanted, style="bold underline"),
    )
