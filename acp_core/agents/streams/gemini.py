"""Gemini CLI (``-o stream-json``)."""

from __future__ import annotations

import re
from typing import Any

from acp_core.agents.streams.progress import Parser, count, string, table, text_in, use

_REFUSED = re.compile(r"denied|not allowed|permission|not found in registry", re.IGNORECASE)
_RETRY = re.compile(r"attempt (\d+) failed|retrying", re.IGNORECASE)


class Gemini(Parser):
    """``init``, messages in pieces, tools and their results, at last one ``result``."""

    def __init__(self) -> None:
        super().__init__()
        self._tools: dict[str, str] = {}
        self._piece = ""  # what the model is saying, as far as it came

    def take(self, record: dict[str, Any], now: float) -> list[str]:
        """Take a record."""
        kind = string(record.get("type"))
        progress = self.progress
        progress.answered()
        if kind == "message":
            return self._message(record)
        said = self._finish_message()
        if kind == "init":
            progress.session = string(record.get("session_id"))
            progress.model = string(record.get("model"))
            return [f"session {progress.session} with {progress.model}"]
        if kind == "tool_use":
            used = use(string(record.get("tool_name")) or "tool", record.get("parameters"))
            self._tools[string(record.get("tool_id"))] = used
            progress.tool = used
            return [*said, f"uses {used}"]
        if kind == "tool_result":
            return [*said, *self._tool_result(record)]
        if kind == "error":
            progress.error = string(record.get("message")) or text_in(record.get("error"))
            return [*said, f"error: {progress.error}"]
        if kind == "result":
            return [*said, *self._end(record)]
        return said

    def _message(self, record: dict[str, Any]) -> list[str]:
        if record.get("role") != "assistant":
            return []
        text = text_in(record.get("content"))
        if record.get("delta") is not True:
            self._piece = text
            return self._finish_message()
        self._piece = (self._piece + text)[-20_000:]
        self.progress.said = self._piece
        return []

    def _finish_message(self) -> list[str]:
        """What the model said, once it is through."""
        said, self._piece = self._piece.strip(), ""
        if said:
            self.progress.said = said
        return [said] if said else []

    def _tool_result(self, record: dict[str, Any]) -> list[str]:
        used = self._tools.pop(string(record.get("tool_id")), "tool")
        self.progress.tool = next(reversed(self._tools.values()), "")
        error = record.get("error")
        reason = string(table(error).get("message")) or string(error)
        output = text_in(record.get("output"))
        self.progress.quote(f"{output}\n{reason}")
        if record.get("status") != "error":
            return []
        if _REFUSED.search(f"{reason} {output}"):
            self.progress.refuse(used)
            return [f"was refused {used}"]
        return [f"failed: {used}: {reason or output}"]

    def _end(self, record: dict[str, Any]) -> list[str]:
        progress, stats = self.progress, table(record.get("stats"))
        progress.finished = True
        progress.tool = ""
        progress.tokens_in = count(stats.get("input_tokens"))
        progress.tokens_out = count(stats.get("output_tokens"))
        progress.is_error = record.get("status") == "error"
        if not progress.is_error:
            return ["finished"]
        error = record.get("error")
        progress.error = string(table(error).get("message")) or string(error) or progress.error
        progress.error = progress.error or "unknown error"
        progress.error_name = string(table(error).get("type"))
        return [f"failed: {progress.error}"]

    def complain(self, line: bytes, now: float) -> list[str]:
        """Take a line of the standard error, where tries to reach the service are told."""
        lines = super().complain(line, now)
        for found in lines:
            if _RETRY.search(found):
                self.progress.retry(found)
        return lines
