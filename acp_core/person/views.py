"""Views of the fleet that a person chose and saved: grouping, order, columns and filter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from acp_core.model.errors import InvalidInput

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


class WrongView(InvalidInput):
    """A view cannot be used: ``where`` below ``[fleet]``, and what is ``needed`` there."""

    def __init__(self, where: str, needed: str) -> None:
        super().__init__(f"{where}: {needed}")
        self.where = where
        self.needed = needed


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
    """The views in the ``[fleet]`` table of the settings.

    Raises:
        WrongView: there is something else in it.
    """
    for name in table:
        if name not in ("view", "views"):
            raise WrongView(f".{name}", "one of view, views")
    saved = table.get("views", {})
    if not isinstance(saved, dict):
        raise WrongView(".views", "a table of views")
    views = {name: _view(given, f".views.{name}") for name, given in saved.items()}
    first = table.get("view")
    if first is None:
        return Views(views)
    if first not in views:
        raise WrongView(
            ".view", f"the name of a saved view ({', '.join(views) or 'none is saved'})"
        )
    return Views(views, views[first])


def _view(given: object, where: str) -> View:
    if not isinstance(given, dict):
        raise WrongView(where, "a table")
    checks: dict[str, Callable[[object], str]] = {
        "group": lambda value: _one_of(value, GROUPS),
        "sort": lambda value: _one_of(value, SORTS),
        "columns": _columns,
        "filter": lambda value: "" if isinstance(value, str) else "a text in quotes",
        "changed": lambda value: "" if isinstance(value, bool) else "true or false",
    }
    for name, value in given.items():
        if name not in checks:
            raise WrongView(f"{where}.{name}", f"one of {', '.join(checks)}")
        if needed := checks[name](value):
            raise WrongView(f"{where}.{name}", needed)
    return View(**{**given, "columns": tuple(given.get("columns", ()))})


def _one_of(value: object, known: Mapping[str, str]) -> str:
    known_names = isinstance(value, str) and value in known
    return "" if known_names else f"one of {', '.join(known)}"


def _columns(value: object) -> str:
    good = isinstance(value, list) and all(each in COLUMNS for each in value)
    return "" if good else f"a list of some of {', '.join(COLUMNS)}"
