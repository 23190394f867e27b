"""The command that serves a participant's tools to its program, and the variables that it needs."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from acp_core.person.paths import CONFIG_VARIABLE, STATE_VARIABLE

NAME = "acp"
"""What programs call the server."""
LIBRARY = "mcp"
EXTRA = 'install the extra: pip install "acp-tui[mcp]"'
_NEEDED = (STATE_VARIABLE, CONFIG_VARIABLE, "XDG_STATE_HOME", "XDG_CONFIG_HOME")


@dataclass(frozen=True, slots=True)
class ToolServer:
    """How a program starts the server.

    Attributes:
        command: an absolute path and its arguments; empty where there is no server.
        env: variables that it gets: several programs hand a server few of their own.
        tools: the names of its tools, where the program must be told which it may use.
    """

    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    tools: tuple[str, ...] = ()


NO_TOOLS = ToolServer()
"""No server."""


def missing() -> str:
    """Why no tools can be served here; "" where they can."""
    return "" if importlib.util.find_spec(LIBRARY) else EXTRA


def program() -> tuple[str, ...]:
    """The words that run this very acp, wherever they are run."""
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "acp")
    return (beside,) if os.path.isfile(beside) else (sys.executable, "-P", "-m", "acp_core")


def variables() -> dict[str, str]:
    """The variables by which acp finds its own folders, as far as they are set."""
    return {name: os.environ[name] for name in _NEEDED if os.environ.get(name)}


def section(tools: Sequence[str]) -> str:
    """What the prompt of an agent says of its tools; not each program hands them to its model."""
    if not tools:
        return ""
    names = ", ".join(f"`{name}`" for name in tools)
    lines = [
        "",
        "## Tools",
        "",
        f"If you have tools of the MCP server `{NAME}` ({names}), use them.",
    ]
    if "ask_human" in tools:
        lines.append("`ask_human` gets an answer from a person and ends nothing.")
    return "\n".join([*lines, ""])


def server(
    folder: str, participant: str, env: Mapping[str, str], tools: Sequence[str]
) -> ToolServer:
    """The server of a participant whose turns somebody else waits for.

    Args:
        folder, participant: who uses the tools, and where.
        env: variables that acp needs so that it runs.
        tools: their names.
    """
    if missing():
        return NO_TOOLS
    words = ("mcp", "--folder", folder, "--participant", participant, "--no-wait")
    return ToolServer((*program(), *words), {**variables(), **env}, tuple(tools))
