"""What programs print while they work, each family in its own form, as one kind of progress.

Claude Code and Qwen Code print the records of ``--output-format stream-json``, Codex those of
``codex exec --json``, opencode those of ``opencode run --format json``, Gemini CLI those of
``-o stream-json``. Any other command, and aider, prints text for people. The runner of a live
session writes its turns down in a form of its own (`acp_core.agents.live.updates`).
"""

from __future__ import annotations

import json
import re
from collections import deque
from typing import Any

from acp_core.agents.failures import resets_in
from acp_core.agents.live.updates import SessionState, ToolCall, apply
from acp_core.agents.progress import (
    MAX_LINE,
    Parser,
    Progress,
    count,
    items,
    money,
    short,
    string,
    table,
    text_in,
    use,
)

__all__ = ["LIVE", "NAMES", "Parser", "Progress", "parser"]

NAMES = ("claude", "codex", "opencode", "gemini", "text")

LIVE = "live"
"""What the runner of a live session writes; no program prints it."""


def parser(name: str) -> Parser:
    """A new parser for one run of a program that prints in this form.

    Raises:
        KeyError: there is none of that name.
    """
    if name == "claude":
        return Claude()
    if name == "codex":
        return Codex()
    if name == "opencode":
        return Opencode()
    if name == "gemini":
        return Gemini()
    if name == "text":
        return Text()
    if name == LIVE:
        return Live()
    raise KeyError(name)


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


_CODEX_WAITS = re.compile(r"reconnecting|waiting for network|retrying", re.IGNORECASE)

_CODEX_REFUSED = re.compile(r"denied|rejected|not permitted|operation not permitted", re.IGNORECASE)


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
        if _CODEX_WAITS.search(message):
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
        if status == "declined" or (status == "failed" and _CODEX_REFUSED.search(output)):
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


_GEMINI_REFUSED = re.compile(r"denied|not allowed|permission|not found in registry", re.IGNORECASE)

_GEMINI_RETRY = re.compile(r"attempt (\d+) failed|retrying", re.IGNORECASE)


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
        if _GEMINI_REFUSED.search(f"{reason} {output}"):
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
            if _GEMINI_RETRY.search(found):
                self.progress.retry(found)
        return lines


class Live(Parser):
    """Messages of the session in their order, and notes of its runner."""

    def __init__(self) -> None:
        super().__init__()
        self._state = SessionState()

    def take(self, record: dict[str, Any], now: float) -> list[str]:
        """Take a message."""
        before = self._state
        message = table(record.get("message"))
        self._state = state = apply(before, string(record.get("direction")), message)
        progress = self.progress
        progress.session, progress.version = state.session, state.version
        progress.opened = state.opened
        progress.model = state.model
        progress.tokens_in, progress.tokens_out = state.tokens_in, state.tokens_out
        progress.cost = state.cost
        progress.said = state.text
        progress.silent = bool(state.prompt) and not (state.text or state.calls or state.plan)
        progress.is_error, progress.error = bool(state.error and state.answered), state.error
        progress.error_name, progress.error_status = _name(state), state.code or 0
        progress.resets_at = state.resets_at or resets_in(state.data)
        progress.finished = state.answered
        running = state.running
        progress.tool = use_of(running) if running and not state.answered else ""
        for refused in state.refused[len(before.refused) :]:
            progress.refuse(refused)
        if state.retry and state.retry != before.retry:
            progress.retry(state.retry)
        elif not state.retry:
            progress.answered()
        return [*self._spoken_lines(before), *self._calls(before), *self._notes(message)]

    def _spoken_lines(self, before: SessionState) -> list[str]:
        """What the agent said, once it does something else."""
        state = self._state
        whole = before.text if state.last != before.last or state.answered else ""
        return whole.splitlines() if before.last != "\0" and not before.answered else []

    def _calls(self, before: SessionState) -> list[str]:
        lines = []
        for name, call in self._state.calls.items():
            known = before.calls.get(name)
            if known is call:
                continue
            if call.is_over and not (known and known.is_over):
                self.progress.quote(call.output)
                lines += [f"uses {use_of(call)}", *call.output.splitlines()[-3:]]
                if call.status == "failed":
                    lines.append(f"{use_of(call)} failed")
        return lines

    def _notes(self, message: dict[str, Any]) -> list[str]:
        noted = [string(message.get(each)) for each in ("note", "failed")]
        refused, steered = string(message.get("refused")), string(message.get("message"))
        noted.append(f"a person says: {steered}" if steered else "")
        return [*filter(None, noted), *([f"not allowed: {refused}"] if refused else ())]


def _name(state: SessionState) -> str:
    """The name of the error, as one of the programs gives it."""
    names = (string(state.data.get(each)) for each in ("errorKind", "codexErrorInfo", "errorName"))
    return next(filter(None, names), "")


def use_of(call: ToolCall) -> str:
    """A call in one line: the tool, and what it is used on."""
    name = call.name or call.kind or "tool"
    return use(name, dict(call.input) or {"description": call.title})


_OPENCODE_REFUSED = re.compile(r"reject|denied|permission", re.IGNORECASE)

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
        if _OPENCODE_REFUSED.search(error):
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


_TOKENS = re.compile(
    r"^Tokens: ([\d.,]{1,12})([kM]?) sent\b.{0,80}?\b([\d.,]{1,12})([kM]?) received"
)

_COST = re.compile(r"Cost: \$([\d.,]{1,12}) message, \$([\d.,]{1,12}) session")

_MODEL = re.compile(r"^(?:Main )?[Mm]odel: (\S{1,100})")

_VERSION = re.compile(r"^[Aa]ider v(\S{1,40})$")

_KEPT_ERROR_LINES = 20  # lines of the error stream

_LONGEST_LINE = 2_000  # characters of the last line

_UNITS = {"": 1, "k": 1000, "M": 1_000_000}


class Text(Parser):
    """Lines are progress by themselves; aider's counts are understood.

    Its output is the work of an agent: only its error stream and its last line may say why it failed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._errors: deque[str] = deque(maxlen=_KEPT_ERROR_LINES)
        self._last: tuple[str, ...] = ()  # line of the output
        self.progress.error_lines = ()

    def take(self, record: dict[str, Any], now: float) -> list[str]:
        """A JSON record means nothing here: it is text that the program printed."""
        import json

        text = json.dumps(record, ensure_ascii=False)
        return self.plain(text, now)

    def plain(self, text: str, now: float) -> list[str]:
        """Take a line."""
        progress = self.progress
        progress.said = text
        if match := _TOKENS.match(text):
            progress.tokens_in += _number(match[1], match[2])
            progress.tokens_out += _number(match[3], match[4])
            progress.tokens_estimated = True  # rounded to tenths of thousands
        if match := _COST.search(text):
            progress.cost = money(_amount(match[2]))
        if match := _MODEL.match(text):
            progress.model = match[1]
        if match := _VERSION.match(text):
            progress.version = match[1]
        progress.quote(text)
        self._last = (short(text, _LONGEST_LINE),)
        progress.error_lines = (*self._errors, *self._last)
        return super().plain(text, now)

    def complain(self, line: bytes, now: float) -> list[str]:
        """Take a line of the standard error, where what it runs may say that it refuses."""
        lines = super().complain(line, now)
        for printed in lines:
            self.progress.quote(printed)
            self._errors.append(printed)
            self.progress.error_lines = (*self._errors, *self._last)
        return lines


def _number(digits: str, unit: str) -> int:
    return int(_amount(digits) * _UNITS[unit])


def _amount(digits: str) -> float:
    try:
        return float(digits.replace(",", ""))
    except ValueError:
        return 0.0
