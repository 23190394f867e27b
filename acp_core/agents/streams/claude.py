"""Claude Code (``--output-format stream-json``) and Qwen Code, which prints the same records."""

from __future__ import annotations

from typing import Any

from acp_core.agents.streams.progress import (
    Parser,
    count,
    items,
    money,
    string,
    table,
    text_in,
    use,
)

_VERSIONS = ("claude_code_version", "qwen_code_version")


class Claude(Parser):
    """``system/init``, then ``assistant`` and ``user`` messages, at last one ``result``."""

    def __init__(self) -> None:
        super().__init__()
        self._tools: dict[str, str] = {}  # tool use id -> what is used, while it is
        self._usage: dict[str, tuple[int, int]] = {}  # message id -> tokens in, out

    def take(self, record: dict[str, Any], now: float) -> list[str]:
        """Take a record; ``is_error`` of the result counts, not its ``subtype``."""
        kind = string(record.get("type"))
        if kind == "system" and record.get("subtype") == "api_retry":
            return self._retry(record, now)
        if kind in ("assistant", "user", "result", "stream_event"):
            self.progress.answered()
        if kind == "system" and record.get("subtype") == "init":
            return self._begin(record)
        if kind == "assistant":
            self.progress.error_name = string(record.get("error"))
            return self._take_message(table(record.get("message")))
        if kind == "user":
            return self._tool_results(record)
        if kind == "result":
            return self._end(record)
        if kind == "rate_limit_event":
            return self._rate_limit(table(record.get("rate_limit_info")) or record)
        return []

    def _begin(self, record: dict[str, Any]) -> list[str]:
        progress = self.progress
        progress.session = string(record.get("session_id"))
        progress.model = string(record.get("model"))
        progress.version = next((v for name in _VERSIONS if (v := string(record.get(name)))), "")
        return [f"session {progress.session} with {progress.model}"]

    def _retry(self, record: dict[str, Any], now: float) -> list[str]:
        error = record.get("error")
        cause = string(error) or string(table(error).get("message"))
        status = count(record.get("error_status"))
        reason = " ".join(filter(None, (str(status) if status else "", cause))) or "no answer"
        self.progress.retry(reason, now + count(record.get("retry_delay_ms")) / 1000)
        attempt, limit = count(record.get("attempt")), count(record.get("max_retries"))
        return [f"retry {attempt} of {limit}: {reason}"]

    def _rate_limit(self, information: dict[str, Any]) -> list[str]:
        status = string(information.get("status"))
        if status in ("", "allowed", "allowed_warning"):
            return []
        until = money(information.get("resetsAt"))
        self.progress.resets_at = until
        self.progress.retry(f"rate limit: {status}", until)
        return [f"rate limit: {status}"]

    def _take_message(self, message: dict[str, Any]) -> list[str]:
        self._count(message)
        lines = []
        for part in items(message.get("content")):
            part = table(part)
            if part.get("type") == "text" and string(part.get("text")).strip():
                self.progress.said = string(part.get("text"))
                lines.append(self.progress.said)
            elif part.get("type") == "tool_use":
                used = use(string(part.get("name")) or "tool", part.get("input"))
                self._tools[string(part.get("id"))] = used
                self.progress.tool = used
                lines.append(f"uses {used}")
        return lines

    def _count(self, message: dict[str, Any]) -> None:
        """Parts of one message come as several records, each with the usage of the whole."""
        usage = table(message.get("usage"))
        if not usage or self.progress.finished:
            return
        self._usage[string(message.get("id"))] = _tokens(usage)
        self.progress.tokens_in = sum(read for read, _ in self._usage.values())
        self.progress.tokens_out = sum(written for _, written in self._usage.values())
        self.progress.tokens_estimated = True

    def _tool_results(self, record: dict[str, Any]) -> list[str]:
        lines = []
        for part in items(table(record.get("message")).get("content")):
            part = table(part)
            if part.get("type") != "tool_result":
                continue
            used = self._tools.pop(string(part.get("tool_use_id")), "")
            output = text_in(part.get("content"))
            self.progress.quote(output)
            if part.get("is_error") is True:
                lines.append(f"failed: {used}: {output}")
        for meta in items(record.get("tool_result_meta")):
            decision = table(table(meta).get("permission_decision")).get("decision")
            if decision in ("deny", "reject"):
                self.progress.refuse(string(table(meta).get("id")))
        self.progress.tool = next(reversed(self._tools.values()), "")
        return lines

    def _end(self, record: dict[str, Any]) -> list[str]:
        progress = self.progress
        progress.finished = True
        progress.tool = ""
        progress.is_error = record.get("is_error") is True
        progress.session = string(record.get("session_id")) or progress.session
        result = string(record.get("result"))
        if result:
            progress.said = result
        if progress.is_error:
            named = string(table(record.get("error")).get("message"))
            progress.error = named or result or string(record.get("subtype")) or "unknown error"
            progress.error_name = progress.error_name or string(record.get("api_error_type"))
            progress.error_status = count(record.get("api_error_status"))
        usage = table(record.get("usage"))
        if usage:
            progress.tokens_in, progress.tokens_out = _tokens(usage)
            progress.tokens_estimated = False
        progress.cost = money(record.get("total_cost_usd"))
        denials = [table(denial) for denial in items(record.get("permission_denials"))]
        if denials:
            progress.refused = []  # the result names each by its tool
        for denial in denials:
            progress.refuse(use(string(denial.get("tool_name")), denial.get("tool_input")))
        ended = f"failed: {progress.error}" if progress.is_error else f"finished: {result}"
        return [ended, *(f"was refused {tool}" for tool in progress.refused)]


def _tokens(usage: dict[str, Any]) -> tuple[int, int]:
    cached = count(usage.get("cache_read_input_tokens"))
    cached += count(usage.get("cache_creation_input_tokens"))
    return count(usage.get("input_tokens")) + cached, count(usage.get("output_tokens"))
