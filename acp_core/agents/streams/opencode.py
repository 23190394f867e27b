"""opencode (``opencode run --format json``)."""

from __future__ import annotations

import json
import re
from typing import Any

from acp_core.agents.failures import resets_in
from acp_core.agents.streams.progress import MAX_LINE, Parser, count, money, string, table, use

_REFUSED = re.compile(r"reject|denied|permission", re.IGNORECASE)
_AUTO_REJECT = re.compile(r"permission requested: (\w{1,40}) ?\((.*)\); auto-rejecting")


class Opencode(Parser):
    """Steps, each with what it cost; there is no last record, only a last step's reason."""

    def __init__(self) -> None:
        super().__init__()
        self._last_reason = ""

    def take(self, record: dict[str, Any], now: float) -> list[str]:
        """Take a record; tokens and cost are summed over the steps."""
        kind, part = string(record.get("type")), table(record.get("part"))
        progress = self.progress
        progress.session = string(record.get("sessionID")) or progress.session
        if kind == "step_start":
            progress.finished = False
            self._last_reason = ""
        elif kind == "tool_use":
            return self._tool(part)
        elif kind == "text" and string(part.get("text")).strip():
            progress.said = string(part.get("text"))
            return [progress.said]
        elif kind == "step_finish":
            return self._step(part)
        elif kind == "error":
            return self._error(record.get("error"))
        return []

    def _tool(self, part: dict[str, Any]) -> list[str]:
        """A tool's record comes when it is over, or with a state that says that it runs."""
        state = table(part.get("state"))
        status = string(state.get("status"))
        used = use(string(part.get("tool")) or "tool", state.get("input"))
        self.progress.tool = used if status in ("pending", "running") else ""
        self.progress.quote(string(state.get("output")))
        error = string(state.get("error"))
        if status != "error":
            return [f"uses {used}"]
        self.progress.quote(error)
        if _REFUSED.search(error):
            self.progress.refuse(used)
            return [f"was refused {used}"]
        return [f"failed: {used}: {error}"]

    def _step(self, part: dict[str, Any]) -> list[str]:
        progress, tokens = self.progress, table(part.get("tokens"))
        cache = table(tokens.get("cache"))
        progress.tokens_in += sum(
            count(n) for n in (tokens.get("input"), cache.get("read"), cache.get("write"))
        )
        progress.tokens_out += count(tokens.get("output")) + count(tokens.get("reasoning"))
        cost = money(part.get("cost"))
        if cost is not None:
            progress.cost = (progress.cost or 0.0) + cost
        self._last_reason = string(part.get("reason"))
        progress.tool = ""
        progress.finished = self._last_reason == "stop"
        return ["finished"] if progress.finished else []

    def _error(self, error: object) -> list[str]:
        data = table(table(error).get("data"))
        message = string(data.get("message")) or string(table(error).get("name")) or string(error)
        self.progress.is_error = True
        self.progress.error_name = string(table(error).get("name"))
        self.progress.error_status = count(data.get("statusCode"))
        self.progress.error = message or "unknown error"
        self.progress.resets_at = _resets_at(data)
        return [f"failed: {self.progress.error}"]

    def complain(self, line: bytes, now: float) -> list[str]:
        """Take a line of the standard error, where a refused permission is told."""
        if match := _AUTO_REJECT.search(line[:MAX_LINE].decode(errors="replace")):
            self.progress.refuse(use(match[1], {"command": match[2]}))
        return super().complain(line, now)

    def end(self) -> None:
        """A last step that asked for tools was cut off: nobody gave it their results."""
        self.progress.cut_off = self._last_reason == "tool-calls"


def _resets_at(data: dict[str, Any]) -> float | None:
    """When its limit is reset, by a field of the error or of the service's answer in it."""
    try:
        answer = json.loads(string(data.get("responseBody")) or "{}")
    except (ValueError, RecursionError):
        answer = {}
    return resets_in(data) or resets_in(answer)
