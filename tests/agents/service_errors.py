"""What programs answer over the Agent Client Protocol when their model service refuses them.

A row is one program in one situation, written as that program writes it. The stand-in
`tests.agents.live_agent` plays a row when its behaviour names it: ``claude/limit``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LIMIT_TEXT = "You've hit your weekly limit · resets Nov 25, 10:40am (UTC)"
CODEX_LIMIT = (
    "You’ve hit your usage limit. Visit https://example.invalid/usage to purchase more credits or "
    "try again at Nov 25th, 2026 10:40 AM."
)
NO_MODEL = "The model `stand-9` does not exist or you do not have access to it."
FULL = "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens."
WARNING = "Warning: Model metadata for `stand-1` not found. Defaulting to fallback metadata.\n\n"


@dataclass(frozen=True)
class Row:
    """What a program does with a prompt.

    Attributes:
        kind: the class of failure that this is, as `FailureClass` names it.
        error: the error of its answer; None where it answers as if all were well, or never.
        warning: what it says at first; ``text`` what it says at last, before its answer.
        trouble: it says that its thread is in an error.
        notice: it says that it tries again.
        silent: it never answers.
        until: whether it says when it may go on.
        field: what it says of its limit in a field, before its answer.
    """

    kind: str
    error: dict[str, Any] | None = None
    text: str = ""
    warning: str = ""
    trouble: bool = False
    notice: str = ""
    silent: bool = False
    until: str = ""
    field: dict[str, Any] | None = None


def _rpc(code: int, message: str, /, **data: Any) -> dict[str, Any]:
    return {"code": code, "message": message, **({"data": data} if data else {})}


def _claude(
    kind: str, text: str, name: str, until: str = "", field: dict[str, Any] | None = None
) -> Row:
    error = _rpc(-32603, f"Internal error: {text}", errorKind=name)
    return Row(kind, error, text, until=until, field=field)


def _codex(kind: str, text: str, notice: str = "") -> Row:
    """It answers that the turn has ended, and only a status says that it failed."""
    return Row(kind, None, f"{text}\n\n", WARNING, trouble=True, notice=notice)


_WEEKLY_RESET = 1795603200  # 2026-11-25T10:40:00Z
_SILENT = Row("service", silent=True)
_NO_LOGIN = _rpc(-32000, "Authentication required")
WEEKLY, LATER = "weekly", "ten minutes"
PROMPTED = {
    "claude/no-login": Row("login", _NO_LOGIN),
    "claude/401": _SILENT,
    "claude/429": _claude("service", "API Error: Request rejected (429) · Please try again later.", "rate_limit"),
    "claude/limit": _claude("limit", LIMIT_TEXT, "rate_limit", WEEKLY),
    "claude/field": _claude("limit", "You've hit your weekly limit · resets Nov 25, 11am (UTC)", "rate_limit", WEEKLY, {"status": "rejected", "resetsAt": _WEEKLY_RESET, "rateLimitType": "seven_day"}),
    "claude/500": _SILENT,
    "claude/model": _claude("model", "There's an issue with the selected model (stand-9). It may not exist or you may not have access to it.", "model_not_found"),
    "claude/full": _claude("context", "Prompt is too long · the request is ~212345 tokens (limit 200000)", "invalid_request"),
    "claude/credit": _claude("credit", "Credit balance is too low", "billing_error"),
    "codex/401": Row("login", _NO_LOGIN),
    "codex/429": Row("service", warning=WARNING, notice="Reconnecting... 1/1", silent=True),
    "codex/limit": Row("limit", _rpc(-32603, "Internal error", message=CODEX_LIMIT, codexErrorInfo="usageLimitExceeded"), warning=WARNING, trouble=True, until=WEEKLY),
    "codex/500": _codex("service", "We’re currently experiencing high demand, which may cause temporary errors.", "Reconnecting... 1/1"),
    "codex/model": _codex("model", NO_MODEL),
    "codex/full": _codex("context", f'{{"error": {{"message": "{FULL}", "type": "invalid_request_error"}}}}'),
    "codex/credit": Row("credit", _rpc(-32603, "Internal error", message="Quota exceeded. Check your plan and billing details.", codexErrorInfo="usageLimitExceeded"), warning=WARNING, trouble=True),
    "opencode/401": Row("login", _rpc(-32603, "Internal error: Incorrect API key provided: x.", service="session", errorName="APIError")),
    "opencode/429": _SILENT,
    "opencode/500": _SILENT,
    "opencode/model": Row("model", _rpc(-32603, f"Internal error: {NO_MODEL}", service="session", errorName="APIError")),
    "opencode/full": Row("context", _rpc(-32603, "Internal error: Session too large to compact - context exceeds model limit even after stripping media", service="session", errorName="ContextOverflowError")),
    "opencode/credit": _SILENT,
    "gemini/401": Row("login", _rpc(401, '{"error":{"code":401,"message":"Request had invalid authentication credentials."}}')),
    "gemini/429": Row("limit", _rpc(429, "You exceeded your current quota. Please retry in 600s.\nSuggested retry after 600s."), until=LATER),
    "gemini/500": _SILENT,
    "gemini/model": Row("model", _rpc(500, "models/stand-9 is not found for API version v1beta, or is not supported for generateContent.")),
    "gemini/full": Row("context", _rpc(400, '{"error":{"code":400,"message":"The input token count (1148576) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}')),
    "gemini/credit": _SILENT,
    "qwen/401": Row("login", _rpc(-32603, "Internal error", details="401 Incorrect API key provided: x.")),
    "qwen/429": _SILENT,
    "qwen/500": _SILENT,
    "qwen/model": Row("model", _rpc(-32603, "Internal error", details=f"404 {NO_MODEL}")),
    "qwen/full": Row("context", _rpc(-32603, "Internal error", details=f"400 {FULL}")),
    "qwen/credit": _SILENT,
}  # fmt: skip
"""Rows of a prompt."""
OPENED = {
    "codex/no-login": _NO_LOGIN,
    "gemini/no-login": _rpc(-32000, "Gemini API key is missing or not configured."),
    "qwen/no-login": _rpc(-32000, "Authentication required: log in first.", authMethods=[{"id": "openai"}]),
}  # fmt: skip
"""The error with which a new session is refused where nobody is logged in."""
