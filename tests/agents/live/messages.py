"""Requests for permission as the five programs write them."""

from __future__ import annotations

from typing import Any

ONCE = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "once", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def message(call: dict[str, Any], **params: Any) -> dict[str, Any]:
    """A request about a tool call."""
    told = {"toolCallId": "call-1", "status": "pending", **call}
    return {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "session/request_permission",
        "params": {"sessionId": "session-1", "toolCall": told, "options": list(ONCE), **params},
    }


def shell(program: str, command: str, folder: str = "/project") -> dict[str, Any]:
    """How a program asks to run a shell command."""
    told: dict[str, Any] = {"title": command, "kind": "execute"}
    if program == "gemini":
        text = f"[current working directory {folder}] (a step)"
        return message(told | {"content": [_text(text)], "locations": []})
    told["rawInput"] = {"command": command}
    if program == "claude":
        told["rawInput"]["description"] = "a step"
        told |= {"name": "Bash", "content": [_text("a step")]}
    if program == "codex":
        told["rawInput"]["cwd"] = folder
    if program == "opencode":
        told["locations"] = []
    if program == "qwen":
        told |= {"title": f"{command} (a step)", "content": [], "locations": []}
        told["rawInput"] |= {"description": "a step", "is_background": False}
        told["_meta"] = {"toolName": "run_shell_command"}
    return message(told)


def edit(program: str, path: str, old: str | None, new: str) -> dict[str, Any]:
    """How a program asks to change a file (codex does not)."""
    names = {"claude": "file_path", "qwen": "file_path", "opencode": "filepath"}
    told: dict[str, Any] = {
        "title": f"Edit {path}",
        "kind": "edit",
        "content": [{"type": "diff", "path": path, "oldText": old, "newText": new}],
        "locations": [{"path": path}],
    }
    if program in names:
        told["rawInput"] = {names[program]: path}
    return message(told)


def tool(program: str, server: str, name: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """How a program asks to call an MCP server's tool, and how it announced the call before."""
    raw = {"event": "proposal_submitted"}
    if program == "codex":
        announced = {
            "toolCallId": "call-1",
            "title": f"mcp.{server}.{name}",
            "rawInput": {"server": server, "tool": name, "arguments": raw},
            "_meta": {"is_mcp_tool_call": True},
        }
        return message({"kind": "execute"}, _meta={"is_mcp_tool_approval": True}), announced
    if program == "gemini":
        title = f"{name} ({server} MCP Server)"
        return message({"title": title, "kind": "other", "locations": []}), None
    meta: dict[str, Any] = {"toolName": f"mcp__{server}__{name}"}
    if program == "claude":
        meta = {"claudeCode": meta | {"mcpServer": {"name": server, "source": "dynamic"}}}
    return message({"kind": "other", "rawInput": raw, "_meta": meta}), None


def question(text: str = "Which one?", label: str = "B") -> dict[str, Any]:
    """A question to the person, disguised as a request."""
    choices = [{"label": "A", "description": "first"}, {"label": label, "description": "second"}]
    asked = {"question": text, "header": "Choice", "options": choices, "multiSelect": False}
    meta = {
        "toolName": "ask_user_question",
        "qwenInteractionKind": "user_question",
        "qwenQuestions": [asked],
    }
    return message({"title": "Ask user 1 question", "kind": "think", "_meta": meta})


def _text(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}
