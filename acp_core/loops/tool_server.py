"""The tools that the program of a loop's participant gets, and the command that serves them."""

from __future__ import annotations

from acp_core.agents import tool_servers
from acp_core.agents.background import importable
from acp_core.agents.tool_servers import ToolServer
from acp_core.protocols import registry
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit import tools


def tools_in(protocol: str) -> tuple[str, ...]:
    """The names of the tools of a protocol's participants, without those that wait for a turn."""
    known = next((each for each in registry.installed() if each.name == protocol), None)
    return tuple(each.name for each in tools.tools_of(known, waits=False)) if known else ()


def server_of(collaboration: Collaboration, participant: str) -> ToolServer:
    """The server of a participant's tools; one without a command where none can be started."""
    names = tools_in(collaboration.protocol)
    return tool_servers.server(collaboration.key, participant, importable(), names)
