"""What the commands about the past share: opening one, and naming a moment of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from acp_core.cli.opening import open_one
from acp_core.history.moments import written
from acp_core.history.past import Past, chain
from acp_core.history.store import BadRecording
from acp_core.model import SourceState
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.protocols.discovery import DiscoveredCollaboration
from acp_core.protocols.locations import find, is_link

_ZONE = re.compile(r" ([+-]\d\d:?\d\d)$")
"""The zone of a time as people are shown it."""


@contextmanager
def past_of(folder: str, *, empty: bool = False) -> Iterator[Past]:
    """The past of the collaboration in a folder.

    Args:
        folder: as it was given.
        empty: whether one in which nothing has happened will do.

    Raises:
        CommandError: there is none, it has no past, or its recording cannot be read.
    """
    found = (None if is_link(folder) else find(os.path.abspath(folder))) or find_collaboration(
        folder
    )
    try:
        past = Past(found, utc_now())
    except BadRecording as error:
        raise CommandError(str(error)) from None
    try:
        if past.present.source.state is SourceState.UNREACHABLE:
            open_one(folder)  # says why
        if not (past.moments or empty):
            raise CommandError(f"{folder}: nothing has happened yet")
        yield past
    except BadRecording as error:
        raise CommandError(str(error)) from None
    finally:
        past.close()


def find_collaboration(folder: str) -> DiscoveredCollaboration:
    """The collaboration in a folder.

    Raises:
        CommandError: there is none.
    """
    _, snapshot = open_one(folder)
    found = find(snapshot.key)
    if found is None:
        raise CommandError(f"{folder}: no collaboration")
    return found


def chain_of(folder: str) -> list[str]:
    """The folders of the chain to which a collaboration belongs, oldest first.

    Raises:
        CommandError: there is none in this folder.
    """
    return [found.key for found in chain(find_collaboration(folder), utc_now())]


def place_of(past: Past, given: str) -> tuple[int, datetime | None]:
    """The moment that is meant by its id, an event's id, or a time (ISO 8601; local without a zone).

    Returns:
        The place of the moment, and the time where one was given.

    Raises:
        CommandError: there is no such event, or it is no time, or nothing had happened by then.
    """
    place = past.place(given)
    if place is not None:
        return place, None
    try:
        at = datetime.fromisoformat(_ZONE.sub(r"\1", given.replace(" UTC", "Z")))
    except ValueError:
        first, last = past.present.events[:1], past.present.events[-1:]
        ids = f"{first[0].id} to {last[0].id}" if first else "none yet"
        raise CommandError(
            f"{given!r} is neither an event ({ids}) nor a time such as 2026-05-03T14:00"
        ) from None
    if at.tzinfo is None:
        at = at.astimezone()
    place = past.nearest(at)
    if place is None:
        began = written(past.moments[0].time)
        raise CommandError(f"{given} is before the beginning: {began}")
    return place, at
