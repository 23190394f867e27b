"""What a shell offers for an input beside its choices: names that acp reads where they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

from acp_core.model import Snapshot
from acp_core.model.action_field import DOCUMENTS, PARTICIPANTS, PRESETS, STORIES, VIEWS, Field
from acp_core.protocols import registry


def suggested(field: Field, place: str, incomplete: str) -> Iterator[str]:
    """What can be written for an input now, as far as it begins like what was typed.

    Args:
        field: the input.
        place: the collaboration that the command line names; "" if it names none.
        incomplete: what was typed of it.
    """
    names = _SOURCES.get(field.suggests, _nothing)
    given, equals, _ = incomplete.partition("=")
    if field.suggests == PRESETS and equals:  # NAME=PRESET
        names, place = (lambda place: (f"{given}={each}" for each in _presets(place))), ""
    elif field.suggests == PRESETS and field.metavar.startswith(("PARTICIPANT", "ROLE")):
        return  # its first half is a name that is made up
    yield from (each for each in names(place) if each.startswith(incomplete))


def _snapshot(place: str) -> Snapshot | None:
    from acp_core.model.clock import utc_now
    from acp_core.protocols import locations

    found = locations.find(os.path.realpath(place)) if place and os.path.isdir(place) else None
    return found.open().refresh(utc_now()) if found is not None else None


def _participants(place: str) -> Iterator[str]:
    snapshot = _snapshot(place)
    yield from (each.id for each in snapshot.participants if each.id) if snapshot else ()


def _documents(place: str) -> Iterator[str]:
    snapshot = _snapshot(place)
    yield from (each.id for each in snapshot.documents) if snapshot else ()


def _presets(place: str) -> Iterator[str]:
    from acp_core.agents import presets
    from acp_core.person import settings

    yield from presets.load(settings.load().presets)


def _views(place: str) -> Iterator[str]:
    from acp_core.person import settings, views

    yield from views.parse(settings.load().fleet).saved


def _stories(place: str) -> Iterator[str]:
    from acp_core.cli import stuck

    yield from stuck.names(next(known for known in registry.bundled() if known.rehearse))


def _nothing(place: str) -> Iterator[str]:
    yield from ()


_SOURCES: Mapping[str, Callable[[str], Iterator[str]]] = {
    PARTICIPANTS: _participants,
    DOCUMENTS: _documents,
    PRESETS: _presets,
    VIEWS: _views,
    STORIES: _stories,
}
