"""Which collaborations a folder names as the one that it continues, or that continues it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from acp_core.model import Link
from acp_core.model.text import clean_line
from acp_core.protocols.folder.read.detect import detect
from acp_core.protocols.folder.schema import object_in, text_in

CONTINUED = "continued_by"

RELATIONS = ("continues", CONTINUED)

_PATH = 4_096


def lineage(protocol: dict[str, Any] | None, folder: str) -> tuple[Link, ...]:
    """The links in protocol.json. A path there is data: only a collaboration is linked to."""
    found = []
    for relation in RELATIONS:
        named = object_in(protocol or {}, relation)
        path = text_in(named, "path") or text_in(protocol or {}, relation)
        if not path or "\0" in path or len(path) > _PATH:
            continue
        place = os.path.normpath(os.path.join(folder, path))
        found.append(
            Link(
                relation=relation,
                location=place,
                name=clean_line(os.path.basename(place) or place, 200),
                found=detect(place),
                summary=_summary(named),
            )
        )
    return tuple(found)


def _summary(named: dict[str, Any]) -> str:
    parts = (text_in(named, key) for key in ("objective", "phase", "at"))
    return clean_line(", ".join(filter(None, parts)), 300)


def continued_in(links: Iterable[Link]) -> str:
    """The folder in which a collaboration goes on, "" where none is there."""
    return next((each.location for each in links if each.relation == CONTINUED and each.found), "")
