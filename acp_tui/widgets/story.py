"""A chain of collaborations that continue each other, read as one story."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from acp_core.cli.signs import STATUS
from acp_core.model import Link, Snapshot, Status, Target
from acp_core.model.format import long_span, moment
from acp_tui.text import width
from acp_tui.widgets.phase_rail import rail
from acp_tui.widgets.row_list import Item

LONGEST = 50
"""How many collaborations of a chain are shown at most."""

STYLES = {Status.COMPLETED: "success", Status.BLOCKED: "error", Status.ACTIVE: "accent"}

Find = Callable[[str], Snapshot | None]


def chain(snapshot: Snapshot, find: Find) -> list[Snapshot | Link]:
    """The collaborations before and after this one, oldest first; links where one is not known.

    Args:
        snapshot: Where the chain is entered.
        find: The Snapshot of a location, where it is known.
    """
    known = {snapshot.key}

    def follow(start: Snapshot, relation: str) -> list[Snapshot | Link]:
        links: list[Snapshot | Link] = []
        here = start
        while len(links) < LONGEST:
            link = next((link for link in here.lineage if link.relation == relation), None)
            if link is None or link.location in known:
                return links
            known.add(link.location)
            there = find(link.location)
            links.append(there or link)
            if there is None:
                return links
            here = there
        return links

    before = follow(snapshot, "continues")
    return [*reversed(before), snapshot, *follow(snapshot, "continued_by")]


def items(snapshot: Snapshot, find: Find, now: datetime, utc: bool) -> list[Item]:
    """A line per collaboration of the chain: how it went, when, and its phases."""
    links = chain(snapshot, find)
    widest = min(32, max(width(link.name) for link in links))
    rows = []
    for number, link in enumerate(links, 1):
        name = link.name + " " * max(0, widest - width(link.name))
        if isinstance(link, Link):
            words = link.summary or "not read"
            state = "" if link.found else "not found  "
            pieces = (("? ", "muted"), (f"{number} {name}  ", ""), (f"{state}{words}", "muted"))
            rows.append(Item(pieces, ((link.location, "muted"),), key=link.location))
            continue
        here = link.key == snapshot.key
        style = STYLES.get(link.status, "muted")
        details = [
            (link.objective, ""),
            (rail(link.phases, now, 10_000, link.status).plain, "muted"),
        ]
        if link.started is not None:
            took = (link.changed or now) - link.started
            details.append(
                (
                    f"started {moment(link.started, now, utc)}, {long_span(took.total_seconds())}",
                    "muted",
                )
            )
        details.append((link.location, "muted"))
        rows.append(
            Item(
                (
                    (f"{STATUS[link.status]} ", style),
                    (f"{number} {name}  ", "strong" if here else ""),
                    (link.headline, style if link.status is Status.BLOCKED else ""),
                    ("  (this one)" if here else "", "muted"),
                ),
                tuple(details),
                Target(),
                key=link.key,
            )
        )
    return rows
