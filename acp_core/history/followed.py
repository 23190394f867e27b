"""Which document changed at a step of the past, and what it held before."""

from __future__ import annotations

from typing import NamedTuple

from acp_core.history.moments import DOCUMENT, EVENT
from acp_core.history.past import Past
from acp_core.history.wording import text_of


class DocumentChange(NamedTuple):
    """A document that changed, and its text before that; "" where it is new or was not recorded."""

    document: str
    before: str


def changed_document(past: Past, place: int) -> str | None:
    """The document that changed at a step; at an event the last one since the event before.

    Args:
        past: of the collaboration.
        place: of the step, among ``past.moments``.
    """
    for number in range(place, -1, -1):
        moment = past.moments[number]
        if moment.kind == DOCUMENT:
            document = past.document_of(moment.name)
            if document is not None:
                return document
        elif moment.kind == EVENT and number < place:
            break
    return None


def change_of(past: Past, place: int, document: str) -> DocumentChange:
    """A document that changed at a step, with its text before.

    Raises:
        KeyError: there is no such document.
        BadRecording: the recording is damaged there.
    """
    old, _ = past.between(document, None, place)
    return DocumentChange(document, text_of(old))
