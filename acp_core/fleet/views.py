"""Views of a fleet: which collaborations are listed, under which headings, in which order.

Pure functions over the entries of `acp_core.fleet.overview`, for the dashboard and the commands.
A part stays below its whole, and what is archived comes last, in every view.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from acp_core.fleet import overview
from acp_core.fleet.overview import FleetEntry
from acp_core.person.views import View

ARCHIVED = "archived"
_EVER = float("inf")


class Section(NamedTuple):
    """Entries below one heading; "" where there is none."""

    title: str
    entries: tuple[FleetEntry, ...]


def sections(entries: Sequence[FleetEntry], view: View) -> list[Section]:
    """The entries of a view below their headings.

    Args:
        entries: in the order of `overview.arrange`.
        view: how they are listed; its filter is left to the caller.
    """
    blocks = list(_blocks(entries))
    if view.changed:
        blocks = [block for block in blocks if any(entry.changed for entry in block)]
    if view.sort != "attention":
        blocks.sort(key=lambda block: _SORT_KEYS[view.sort](block[0]))
    title = _TITLES[view.group]
    titled = [(title(block[0]), block) for block in blocks]
    if view.group == "state":
        titled.sort(key=lambda each: each[1][0].group)
    elif view.group != "none":
        titled.sort(key=lambda each: each[0].casefold())
    titled.sort(key=lambda each: each[1][0].archived)  # sorting keeps the order of equals
    grouped = groupby(titled, key=lambda each: (each[1][0].archived, each[0]))
    return [
        Section(ARCHIVED if archived else name, tuple(e for _, block in found for e in block))
        for (archived, name), found in grouped
    ]


def _blocks(entries: Iterable[FleetEntry]) -> Iterable[list[FleetEntry]]:
    """Each whole with its parts behind it."""
    block: list[FleetEntry] = []
    for entry in entries:
        if block and not entry.depth:
            yield block
            block = []
        block.append(entry)
    if block:
        yield block


def _folder(entry: FleetEntry) -> str:
    """The folder in which a collaboration's own folder is, or the host behind its address."""
    location = entry.snapshot.location
    scheme, mark, rest = location.partition("://")
    return f"{scheme}{mark}{rest.partition('/')[0]}" if mark else os.path.dirname(location) or "/"


_TITLES: dict[str, Callable[[FleetEntry], str]] = {
    "state": lambda entry: entry.group.title,
    "folder": _folder,
    "protocol": lambda entry: entry.snapshot.protocol,
    "none": lambda entry: "",
}


def _name(entry: FleetEntry) -> tuple[str, str]:
    return entry.name.casefold(), entry.key


def _waiting(entry: FleetEntry) -> tuple[bool, float, tuple[str, str]]:
    since = None if entry.group.over else overview.since(entry)
    return entry.group.over, since.timestamp() if since else _EVER, _name(entry)


def _last(entry: FleetEntry) -> tuple[float, tuple[str, str]]:
    changed = entry.snapshot.changed
    return -changed.timestamp() if changed else _EVER, _name(entry)


_SORT_KEYS: dict[str, Callable[[FleetEntry], Any]] = {
    "name": _name,
    "waiting": _waiting,
    "last": _last,
    "protocol": lambda entry: (entry.snapshot.protocol, _name(entry)),
}
