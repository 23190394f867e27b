"""What a program may do in one attempt, in the words of its own permissions.

A program may change files below its working folder, the collaboration and its drafts, and run the
commands that its prompt names. Everything else it refuses by itself, as nobody is there to ask.
A command is allowed by its beginning; programs that would let a redirection or a substitution
follow get a rule against these signs. A participant's tools are served by a command of ours.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
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


_SIGNS = (">", "<", "$(", "`", "\n")
"""What turns an allowed command into another one, or lets it write elsewhere."""

_OPENCODE = "OPENCODE_CONFIG_CONTENT"

_OPENCODE_ALLOWED = (
    "read",
    "edit",
    "glob",
    "grep",
    "list",
    "lsp",
    "skill",
    "todowrite",
    "todoread",
)

_QWEN_CHANGES = ("edit", "write_file")

_GEMINI_REST = r'( ([^<>|;&$`\\]|\\")*)?"'

_GEMINI_CHANGES = ("write_file", "replace")

_GEMINI_PRIORITY = 900  # above what the program decides by itself, of 0 to 999


@dataclass(frozen=True, slots=True)
class Scope:
    """What an attempt may do.

    Attributes:
        commands: beginnings of the commands that it may run, as they stand in its prompt.
        folders: absolute paths of the folders below which it may change files.
        policy: the path of a file for its rules, where it reads them from one.
        server: the server of its participant's tools, each of which it may use; by default none.
        confined: its working folder is not among the folders: it may only read there.
        top: the repository that its working folder lies in, or the root of the file system.
    """

    commands: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    policy: str = ""
    server: ToolServer = NO_TOOLS
    confined: bool = False
    top: str = "/"


@dataclass(frozen=True, slots=True)
class Grant:
    """How a program is told: arguments, variables, and files (path to content) made before."""

    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def grant(kind: str, scope: Scope) -> Grant:
    """The scope in the words of a program.

    Args:
        kind: one of `NAMES`, or "" for a program that cannot be told.
        scope: what it may do.
    """
    return _KINDS[kind](scope) if kind else Grant()


def _claude(scope: Scope) -> Grant:
    rules = [f"Bash({command} *)" for command in scope.commands] + _named_tools(scope)
    mode = "default" if scope.confined else "acceptEdits"
    if scope.confined:
        rules += [f"Edit(/{_literal(folder)}/**)" for folder in scope.folders]
    allowed = ("--allowedTools", *rules) if rules else ()
    return Grant((*_mcp_config(scope), "--permission-mode", mode, *allowed))


def _named_tools(scope: Scope) -> list[str]:
    """The tools of its server, as two of the programs name them."""
    return [f"mcp__{NAME}__{tool}" for tool in scope.server.tools] if scope.server.command else []


def _mcp_config(scope: Scope) -> tuple[str, ...]:
    """The server, beside those that the program has by itself."""
    if not scope.server.command:
        return ()
    command, *args = scope.server.command
    entry = {"command": command, "args": args, "env": dict(scope.server.env)}
    return ("--mcp-config", json.dumps({"mcpServers": {NAME: entry}}))


def _opencode(scope: Scope) -> Grant:
    commands = {"*": "deny"} | {f"{command} *": "allow" for command in scope.commands}
    folders = {"*": "deny"} | {f"{folder}/*": "allow" for folder in scope.folders}
    permission: dict[str, object] = {"*": "deny", **dict.fromkeys(_OPENCODE_ALLOWED, "allow")}
    permission["external_directory"] = folders
    if scope.confined:
        changes = [os.path.relpath(each, scope.top) for each in scope.folders]
        permission["edit"] = {"*": "deny"} | {f"{each}/*": "allow" for each in changes}
    permission["bash"] = commands | {f"*{sign}*": "deny" for sign in _SIGNS}
    config = {**_config(os.environ.get(_OPENCODE, "")), "permission": permission}
    if scope.server.command:
        permission |= {f"{NAME}_{tool}": "allow" for tool in scope.server.tools}
        servers = config.get("mcp")
        config["mcp"] = {**(servers if isinstance(servers, dict) else {}), NAME: _local(scope)}
    return Grant(env={_OPENCODE: json.dumps(config)})


def asking(kind: str) -> Mapping[str, str]:
    """The variables with which a program asks before it acts, where no mode of it does that.

    Args:
        kind: one of `NAMES`.
    """
    if kind != "opencode":
        return MappingProxyType({})
    reads = {name: "allow" for name in _OPENCODE_ALLOWED if name != "edit"}
    config = {**_config(os.environ.get(_OPENCODE, "")), "permission": {"*": "ask", **reads}}
    return MappingProxyType({_OPENCODE: json.dumps(config)})


def _local(scope: Scope) -> dict[str, object]:
    server = scope.server
    return {"type": "local", "command": list(server.command), "environment": dict(server.env)}


def _config(text: str) -> dict[str, object]:
    """The configuration that the program would get without us."""
    try:
        config = json.loads(text)
    except ValueError:
        return {}
    return config if isinstance(config, dict) else {}


def _gemini(scope: Scope) -> Grant:
    args = ("--approval-mode", "auto_edit")
    made = [*map(_gemini_rule, scope.commands)]
    if scope.confined:
        made += _gemini_changes(scope.folders)
    if not made:
        return Grant(args)
    rules = "\n".join(made)
    return Grant((*args, "--policy", scope.policy), files={scope.policy: rules})


def _gemini_rule(command: str) -> str:
    written = json.dumps(command, ensure_ascii=False)[1:-1]  # the program matches its JSON
    return (
        '[[rule]]\ntoolName = "run_shell_command"\n'
        f"commandRegex = {json.dumps(_gemini_literal(written) + _GEMINI_REST)}\n"
        f'decision = "allow"\npriority = {_GEMINI_PRIORITY}\n'
    )


def _gemini_changes(folders: Sequence[str]) -> Iterator[str]:
    """That files below some folders may be changed, and no others; what counts more has the larger number."""
    for tool in _GEMINI_CHANGES:
        yield _gemini_change(tool, r'"file_path":"[^"]*\.\.', "deny", 2)
        for each in folders:
            path = _gemini_literal(json.dumps(each, ensure_ascii=False)[1:-1])
            yield _gemini_change(tool, rf'"file_path":"{path}\/[^"]', "allow", 1)
        yield _gemini_change(tool, '"file_path"', "deny", 0)


def _gemini_change(tool: str, pattern: str, decision: str, more: int) -> str:
    return (
        f'[[rule]]\ntoolName = "{tool}"\nargsPattern = {json.dumps(pattern)}\n'
        f'decision = "{decision}"\npriority = {_GEMINI_PRIORITY + more}\n'
    )


def _gemini_literal(text: str) -> str:
    """A text whose signs stand for themselves in a pattern."""
    return "".join(f"\\{sign}" if sign in r"\^$.*+?()[]{}|/" else sign for sign in text)


def _qwen(scope: Scope) -> Grant:
    allowed = [f"run_shell_command({command} *)" for command in scope.commands]
    places = [f"/{_literal(folder)}/**" for folder in scope.folders]
    allowed += [f"{tool}({place})" for tool in _QWEN_CHANGES for place in places]
    denied = [f"run_shell_command(*{sign}*)" for sign in _SIGNS]
    allowed += _named_tools(scope)
    options = [word for rule in allowed for word in ("--allowed-tools", rule)]
    options += [word for rule in denied for word in ("--exclude-tools", rule)]
    return Grant((*_mcp_config(scope), "--approval-mode", "default", *options))


def _literal(path: str) -> str:
    """A path whose signs stand for themselves in a pattern of paths."""
    return "".join(f"\\{sign}" if sign in r"\*?[]{}()!+@" else sign for sign in path)


_KINDS: Mapping[str, Callable[[Scope], Grant]] = MappingProxyType(
    {"claude": _claude, "opencode": _opencode, "gemini": _gemini, "qwen": _qwen}
)

NAMES: Sequence[str] = ("", *_KINDS)
"""The programs whose permissions are known; "" for the others."""

TOOLS = frozenset({"claude", "opencode", "qwen"})
"""Those that take a server of tools for one attempt."""
