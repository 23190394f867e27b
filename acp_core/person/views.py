"""Views of the fleet that a person chose and saved: grouping, order, columns and filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

GROUPS = {
    "state": "needs you, live, done ...",
    "folder": "the folder around each collaboration",
    "protocol": "the protocol",
    "none": "no headings",
}
"""What the fleet can be grouped by, each with what that means."""
SORTS = {
    "attention": "what needs you first",
    "name": "name",
    "waiting": "longest wait first",
    "last": "latest change first",
    "protocol": "protocol",
}
"""What the fleet can be sorted by, each with what that means."""
COLUMNS = (
    *("protocol", "phase", "waiting for", "host", "since", "usually", "findings", "cost", "state"),
    "about",
)
"""The columns beside the name that can be chosen."""


class View(NamedTuple):
    """How the fleet is listed.

    Attributes:
        group: one of `GROUPS`.
        sort: one of `SORTS`.
        columns: which of `COLUMNS` are shown; empty for those that fit.
        filter: words by which each listed collaboration is found.
        changed: only what changed since the person last looked.
    """

    group: str = "state"
    sort: str = "attention"
    columns: tuple[str, ...] = ()
    filter: str = ""
    changed: bool = False

    @property
    def words(self) -> str:
        """What is other than usual, in a few words; "" where nothing is."""
        parts = (
            (self.group == "none", "not grouped"),
            (self.group not in ("state", "none"), f"grouped by {self.group}"),
            (self.sort == "waiting", "longest wait first"),
            (self.sort == "last", "latest change first"),
            (self.sort in ("name", "protocol"), f"sorted by {self.sort}"),
            (self.changed, "only changes since your last visit"),
        )
        return ", ".join(words for holds, words in parts if holds)

    def next_group(self) -> View:
        """The same, grouped by what comes next; after the last comes the first."""
        return self._replace(group=_after(self.group, tuple(GROUPS)))

    def next_sort(self) -> View:
        """The same in the next order; after the last comes the first."""
        return self._replace(sort=_after(self.sort, tuple(SORTS)))

    def with_column(self, column: str, shown: tuple[str, ...]) -> View:
        """The same with one column more, or less where it is among those ``shown``."""
        wanted = {*shown} ^ {column}
        return self._replace(columns=tuple(each for each in COLUMNS if each in wanted))


def _after(name: str, known: tuple[str, ...]) -> str:
    return known[(known.index(name) + 1) % len(known)]


class Views(NamedTuple):
    """The saved views by name, and the one that the dashboard starts with."""

    saved: Mapping[str, View]
    first: View = View()


def parse(table: Mapping[str, Any]) -> Views:
    """The views in the ``[fleet]`` table of the settings, which `check` found right."""
    views = {
        name: View(**{**given, "columns": tuple(given.get("columns", ()))})
        for name, given in table.get("views", {}).items()
    }
    first = table.get("view")
    return Views(views) if first is None else Views(views, views[first])


def check(table: Any) -> None:
    """Check the ``[fleet]`` table of the settings.

    Raises:
        WrongValue: there is something else in it.
    """
    from acp_core.person import kinds

    view = kinds.check_fields(
        {
            "group": kinds.check_one_of(GROUPS),
            "sort": kinds.check_one_of(SORTS),
            "columns": kinds.check_that(
                lambda value: isinstance(value, list) and all(each in COLUMNS for each in value),
                f"a list of some of {', '.join(COLUMNS)}",
            ),
            "filter": kinds.IS_TEXT,
            "changed": kinds.IS_SWITCH,
        }
    )
    views = kinds.check_table(view, "a table of views")
    kinds.check_fields({"view": lambda _: None, "views": views})(table)
    first, saved = table.get("view"), list(table.get("views", {}))
    if first is not None and first not in saved:
        known = ", ".join(saved) or "none is saved"
        raise kinds.WrongValue(".view", f"the name of a saved view ({known})")
