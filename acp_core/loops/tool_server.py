"""The server of tools that the program of a loop's participant gets."""

from __future__ import annotations

from acp_core.agents import tool_servers
from acp_core.agents.background import importable
from acp_core.agents.tool_servers import ToolServer
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit.tool_names import tools_in


def server_of(collaboration: Collaboration, participant: str) -> ToolServer:
    """The server of a participant's tools; one without a command where none can be started."""
    names = tools_in(collaboration.protocol)
    return tool_servers.server(collaboration.key, participant, importable(), names)
