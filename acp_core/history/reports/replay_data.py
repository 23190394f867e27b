"""What documents held at each event, for the replay in a report."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from acp_core.history.moments import EVENT
from acp_core.history.past import Past
from acp_core.history.reports.report import Text, Version
from acp_core.history.store import BadRecording
from acp_core.history.versions import Known
from acp_core.model.text import clean

MOST = 4_000_000  # characters of all versions together


def versions(past: Past, documents: Sequence[Text], most: int = MOST) -> tuple[Version, ...]:
    """The versions of these documents, as far as they are known; only changes are told.

    Args:
        past: of the collaboration.
        documents: which.
        most: characters of all of them together; a version that would be more is left out.
    """
    events = [
        (place, moment.name) for place, moment in enumerate(past.moments) if moment.kind == EVENT
    ]
    found: list[Version] = []
    for document in documents:
        before: str | None = None
        for place, event in events:
            try:
                _, known = past.between(document.document, place, place)
            except KeyError:  # its file is not one of those that are kept
                break
            key = "" if known is None else f"{known.since} {known.key}"
            if key == before:
                continue
            before = key
            version = _version(document.document, event, known, most)
            most -= len(version.text or "")
            found.append(version)
    return tuple(found)


def _version(document: str, event: str, known: Known | None, most: int) -> Version:
    if known is None:
        return Version(document, event, None, "", None, "not recorded")
    since = datetime.fromtimestamp(known.since, UTC)
    if known.size is None:
        return Version(document, event, since, known.source, None, "not there")
    try:
        text = clean(known.read().decode("utf-8", "replace"))
    except (OSError, KeyError, BadRecording):
        return Version(document, event, since, known.source, None, "cannot be read")
    if len(text) > most:
        return Version(document, event, since, known.source, None, "left out: too long")
    return Version(document, event, since, known.source, text)
