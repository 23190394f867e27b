"""The names of the tools that a participant's agent gets while somebody else waits for its turns."""

from __future__ import annotations

from acp_core.protocols import registry
from acp_core.protocols.kit import tools


def tools_in(protocol: str) -> tuple[str, ...]:
    """The names of the tools of a protocol's participants, without those that wait for a turn."""
    known = next((each for each in registry.installed() if each.name == protocol), None)
    return tuple(each.name for each in tools.tools_of(known, waits=False)) if known else ()
