"""Which view of the fleet is used: saved ones, grouping, order, columns, only what changed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, partial
from typing import TYPE_CHECKING

from acp_core.person.views import COLUMNS, GROUPS, SORTS, View, Views, parse

if TYPE_CHECKING:
    from textual.command import Provider

    from acp_tui.screens.command_palette import Offer
    from acp_tui.screens.fleet import FleetScreen
    from acp_tui.widgets.row_list import Item

DEFAULT = "default"


def places() -> type[Provider]:
    """What offers the views in the command palette."""
    from acp_tui.screens.command_palette import ViewsProvider

    return ViewsProvider


class FleetViews:
    """The view of a fleet's screen, and the ways to another one.

    Args:
        screen: The fleet's.
    """

    def __init__(self, screen: FleetScreen) -> None:
        self._screen = screen
        self.view = View()
        """The one that is used."""

    @cached_property
    def _saved(self) -> Views:
        return parse(self._screen.app.settings.fleet)

    def begin(self) -> None:
        """Use the view that the settings name."""
        self.view = self._saved.first

    def use(self, view: View) -> None:
        """List the fleet by another view."""
        self.view = view
        if self._screen.furnished:
            self.show()
            self._screen.relist()

    def show(self) -> None:
        """Tell the parts of the screen how the fleet is listed."""
        from acp_tui.widgets.fleet_header import FleetHeader

        screen, view = self._screen, self.view
        screen.query_one(FleetHeader).view = view.words
        screen.titles.view = view
        screen.table.chosen_columns = view.columns
        if view.filter and not screen.field.value:
            screen.field.value = view.filter
            screen.field.display = True

    def _use_saved(self, view: View) -> None:
        field = self._screen.field
        field.value = view.filter
        field.display = bool(view.filter)
        self.use(view)

    # choosing

    def pick(self) -> None:
        """Choose among saved views, orders, groupings and columns."""
        from acp_tui.screens.pick import PickScreen

        if self._screen.furnished:
            self._screen.app.push_screen(PickScreen("View", self._items()), self._picked)

    def places(self) -> Iterable[Offer]:
        """The same for the command palette."""
        from acp_tui.screens.command_palette import Offer

        if self._screen.furnished:
            for key, label, about in self._choices():
                yield Offer(label, about, partial(self._picked, key))

    def _items(self) -> list[Item]:
        from acp_tui import text
        from acp_tui.widgets.row_list import Item

        choices = list(self._choices())
        widest = max(text.width(label) for _, label, _ in choices)
        return [
            Item(((text.fit(label, widest + 2), ""), (about, "muted")), key=key)
            for key, label, about in choices
        ]

    def _choices(self) -> Iterable[tuple[str, str, str]]:
        """A key, a label, and what it means."""
        for name, view in self._saved.saved.items():
            yield f"view {name}", f"View {name}", _about(view)
        yield (
            DEFAULT,
            "Default view",
            "grouped by state, what needs you first, the columns that fit",
        )
        changed = "everything" if self.view.changed else "only what changed since your last visit"
        yield "changed", "Changes", f"show {changed}"
        for name, about in SORTS.items():
            yield f"sort {name}", f"Sort by {name}", _marked(about, name == self.view.sort)
        for name, about in GROUPS.items():
            yield f"group {name}", f"Group by {name}", _marked(about, name == self.view.group)
        for name in COLUMNS:
            shown = name in self._shown_columns()
            yield f"column {name}", f"Column {name}", "hide" if shown else "show"

    def _shown_columns(self) -> tuple[str, ...]:
        from acp_tui.widgets.fleet_lines import TITLES

        widths = dict(zip(TITLES, self._screen.titles.columns, strict=True))
        return tuple(name for name in COLUMNS if widths[name])

    def _picked(self, key: str | None) -> None:
        what, _, name = (key or "").partition(" ")
        if what == "view":
            self._use_saved(self._saved.saved[name])
        elif what == DEFAULT:
            self._use_saved(View())
        elif what == "changed":
            self.use(self.view._replace(changed=not self.view.changed))
        elif what == "sort":
            self.use(self.view._replace(sort=name))
        elif what == "group":
            self.use(self.view._replace(group=name))
        elif what == "column":
            self.use(self.view.with_column(name, self._shown_columns()))


def _marked(about: str, used: bool) -> str:
    return f"{about} (used now)" if used else about


def _about(view: View) -> str:
    parts = (view.words, f"filter: {view.filter}" if view.filter else "", ", ".join(view.columns))
    return " · ".join(filter(None, parts))
