"""Codex (``codex exec --json``)."""

from __future__ import annotations

import re
from typing import Any

from acp_core.agents.streams.progress import Parser, count, items, short, string, table

_WAITS = re.compile(r"reconnecting|waiting for network|retrying", re.IGNORECASE)
_REFUSED = re.compile(r"denied|rejected|not permitted|operation not permitted", re.IGNORECASE)


class Codex(Parser):
    """``thread.started``, ``turn.started``, items, then ``turn.completed`` or ``turn.failed``."""

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[str, str] = {}  # item id -> what runs

    def take(self, record: dict[str, Any], now: float) -> list[str]:
        """Take a record; an item of the type ``error`` is only a warning."""
        kind = string(record.get("type"))
        progress = self.progress
        if kind == "error":
            return self._trouble(string(record.get("message")))
        if kind == "thread.started":
            progress.session = string(record.get("thread_id"))
            return [f"session {progress.session}"]
        progress.answered()
        if kind in ("item.started", "item.updated", "item.completed"):
            return self._item(kind, table(record.get("item")))
        if kind == "turn.completed":
            usage = table(record.get("usage"))
            progress.tokens_in = count(usage.get("input_tokens"))
            progress.tokens_out = count(usage.get("output_tokens"))
            progress.finished = True
            progress.tool = ""
            progress.is_error = False
            return ["finished"]
        if kind == "turn.failed":
            progress.finished = progress.is_error = True
            progress.tool = ""
            progress.error = string(table(record.get("error")).get("message")) or progress.error
            progress.error = progress.error or "the turn failed"
            return [f"failed: {progress.error}"]
        return []

    def _trouble(self, message: str) -> list[str]:
        """An ``error`` record: the program goes on trying, or says in a next record that it failed."""
        self.progress.error = message
        if _WAITS.search(message):
            self.progress.retry(message)
        return [f"error: {message}"]

    def _item(self, kind: str, item: dict[str, Any]) -> list[str]:
        what, name = string(item.get("type")), string(item.get("id"))
        if what in ("agent_message", "reasoning"):
            if kind != "item.completed" or not string(item.get("text")):
                return []
            if what == "agent_message":
                self.progress.said = string(item.get("text"))
            return [string(item.get("text"))]
        if what == "error":
            return [f"warning: {string(item.get('message'))}"] if kind == "item.completed" else []
        used = _used(what, item)
        if kind == "item.completed":
            self._running.pop(name, None)
        else:
            self._running[name] = used
        self.progress.tool = next(reversed(self._running.values()), "")
        if kind == "item.started":
            return [f"uses {used}"]
        return self._completed(item, used) if kind == "item.completed" else []

    def _completed(self, item: dict[str, Any], used: str) -> list[str]:
        output = string(item.get("aggregated_output"))
        self.progress.quote(output)
        status = string(item.get("status"))
        if status == "declined" or (status == "failed" and _REFUSED.search(output)):
            self.progress.refuse(used)
            return [f"was refused {used}"]
        if status == "failed":
            return [f"failed ({item.get('exit_code')}): {used}: {output}"]
        return []


def _used(what: str, item: dict[str, Any]) -> str:
    if what == "command_execution":
        return short(string(item.get("command")))
    if what == "file_change":
        paths = [string(table(change).get("path")) for change in items(item.get("changes"))]
        return short("edit " + ", ".join(filter(None, paths)))
    if what == "mcp_tool_call":
        return short(f"{string(item.get('server'))} {string(item.get('tool'))}")
    return short(f"{what} {string(item.get('query'))}".strip()) or "tool"
