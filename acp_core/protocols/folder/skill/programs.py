"""Where known programs look for skills and for tools (MCP servers): a table, and the folders in it."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from acp_core.model.errors import Refused
from acp_core.protocols.folder.skill.contents import NAME

SERVER = "acp"
"""What programs call the server of the tools."""


class Places(NamedTuple):
    """Where one program looks.

    Attributes:
        title: the program, for people.
        variable, home: the variable that names the program's own folder, and that folder without it.
        settings: the file of its servers below that folder.
        project: its folder of skills in a project; ``project_settings`` its file of servers there.
        section: the table of the servers in its settings.
        toml: whether its settings are TOML, not JSON.
        beside: where the settings stand while the variable is not set, if not in the folder.
    """

    title: str
    variable: str
    home: str
    settings: str
    project: str
    project_settings: str
    section: str = "mcpServers"
    toml: bool = False
    beside: str = ""


PROGRAMS = {
    "claude": Places(
        "Claude Code", "CLAUDE_CONFIG_DIR", "~/.claude", ".claude.json", ".claude/skills", ".mcp.json",
        beside="~/.claude.json",
    ),
    "codex": Places(
        "Codex", "CODEX_HOME", "~/.codex", "config.toml", ".agents/skills", ".codex/config.toml",
        "mcp_servers", toml=True,
    ),
    "opencode": Places(
        "opencode", "", "$XDG_CONFIG_HOME/opencode", "opencode.json", ".opencode/skills",
        "opencode.json", "mcp",
    ),
    "gemini": Places(
        "Gemini CLI", "", "~/.gemini", "settings.json", ".gemini/skills", ".gemini/settings.json"
    ),
    "qwen": Places(
        "Qwen Code", "QWEN_HOME", "~/.qwen", "settings.json", ".qwen/skills", ".qwen/settings.json"
    ),
}  # fmt: skip


class Target(NamedTuple):
    """The files of one program, for a person or for one project: all absolute."""

    program: str
    skill: str
    settings: str

    @property
    def places(self) -> Places:
        """The row of the table."""
        return PROGRAMS[self.program]


def target(program: str, project: str = "") -> Target:
    """Where a program looks.

    Args:
        program: one of `PROGRAMS`.
        project: a project's folder; "" for all that the person does.

    Raises:
        Refused: the project is no folder.
    """
    places = PROGRAMS[program]
    if project:
        folder = os.path.abspath(os.path.expanduser(project))
        if not os.path.isdir(folder):
            raise Refused(f"{project} is not a folder")
        skill = os.path.join(folder, places.project, NAME)
        return Target(program, skill, os.path.join(folder, places.project_settings))
    chosen = os.environ.get(places.variable, "") if places.variable else ""
    home = os.path.abspath(chosen or _expanded(places.home))
    beside = "" if chosen else places.beside
    settings = os.path.expanduser(beside) if beside else os.path.join(home, places.settings)
    return Target(program, os.path.join(home, "skills", NAME), settings)


def _expanded(path: str) -> str:
    """A path below the home folder, or below the folder of settings."""
    settings = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return os.path.expanduser(path.replace("$XDG_CONFIG_HOME", settings))


def entry(program: str, command: tuple[str, ...], env: dict[str, str]) -> dict[str, Any]:
    """A server as a program's settings name one.

    Args:
        program: one of `PROGRAMS`.
        command: what starts it.
        env: variables that it needs.
    """
    if program == "opencode":
        local = {"type": "local", "command": list(command), "enabled": True}
        return local | ({"environment": env} if env else {})
    kind = {"type": "stdio"} if program == "claude" else {}
    made = {**kind, "command": command[0], "args": list(command[1:])}
    return made | ({"env": env} if env else {})
