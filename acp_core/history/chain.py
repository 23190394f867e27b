"""The collaborations that continue each other, as one story."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from acp_core.model import Link
from acp_core.protocols import registry
from acp_core.protocols.discovery import DiscoveredCollaboration, identify

MOST = 100
"""Collaborations of one chain."""


def chain(found: DiscoveredCollaboration, now: datetime) -> list[DiscoveredCollaboration]:
    """A collaboration with those that it continues and those that continue it, oldest first.

    What a link names and is no collaboration, and what stands in the chain already, ends it.

    Args:
        found: one of them.
        now: the present time.
    """
    seen = {_real(found)}
    before = _follow(found, "continues", now, seen)
    return [*reversed(before), found, *_follow(found, "continued_by", now, seen)]


def _follow(
    found: DiscoveredCollaboration, relation: str, now: datetime, seen: set[str]
) -> list[DiscoveredCollaboration]:
    others: list[DiscoveredCollaboration] = []
    at: DiscoveredCollaboration | None = found
    while at is not None and len(others) < MOST:
        opened = at.open()
        try:
            links = opened.refresh(now).lineage
        finally:
            opened.close()
        at = _linked(links, relation)
        if at is None or _real(at) in seen:
            break
        seen.add(_real(at))
        others.append(at)
    return others


def _linked(links: Iterable[Link], relation: str) -> DiscoveredCollaboration | None:
    for link in links:
        if link.relation == relation and link.found:
            return identify(Path(link.location), registry.installed())
    return None


def _real(found: DiscoveredCollaboration) -> str:
    return os.path.realpath(found.key)
