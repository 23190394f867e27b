"""The journal of one turn, every message as a line of JSON, and what the messages say as one state.

The journal is what the watcher of the turn reads while it runs, and what stays of it. Long texts
are cut, what looks like a secret is masked, and only its owner can read it.

A state and a message give the next state. A message is what a stranger writes: parts of it may be
missing, of another kind or hostile, and none of that stops the reading. Texts stay as they came;
whoever shows them makes them safe.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from acp_core.agents.progress import count, items, money, string, table, text_in
from acp_core.files.atomic import write_all
from acp_core.files.secrets import mask

LONGEST = 64_000  # characters of one text; the rest is cut

MOST = 3  # entries that stay of lists which only say what there would be

LIMIT = 64 << 20  # bytes of one journal; what comes then is left out

_DEPTH = 60

_CATALOGUES = ("availableCommands", "availableModels", "configOptions")

AGENT, CLIENT, RUNNER = "agent", "client", "runner"


class Journal:
    """Appends what happens in a turn to its file.

    A message that cannot be written (a full disk) is lost: that stops no session.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._full = False

    def write(self, direction: str, message: dict[str, Any], now: float) -> None:
        """Append a message.

        Args:
            direction: who it is from: `AGENT`, `CLIENT`, or `RUNNER` for a note of our own.
            message: as it came.
            now: seconds since 1970.
        """
        record = {"at": round(now, 3), "direction": direction, "message": reduced(message)}
        line = json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        with contextlib.suppress(OSError):
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if direction == RUNNER or os.fstat(fd).st_size + len(line) <= LIMIT:
                    write_all(fd, line)
                elif not self._full:
                    self._full = True
                    self.write(RUNNER, {"note": "The journal is full: messages are left out."}, now)
            finally:
                os.close(fd)


def reduced(value: Any, name: str = "", depth: int = 0) -> Any:
    """A message with long texts cut, catalogues shortened and secrets masked.

    Args:
        value: the message, or a part of it.
        name: of the field that holds it.
        depth: how deep that is.
    """
    if isinstance(value, str):
        return _masked(value, name)
    if depth > _DEPTH:
        return "…"
    if isinstance(value, dict):
        return {mask(str(key)): reduced(each, str(key), depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        items = value[:MOST] if name in _CATALOGUES else value
        return [reduced(each, "", depth + 1) for each in items]
    return value


def _masked(text: str, name: str) -> str:
    """A text, masked also where only the name of its field says that it is a secret."""
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}… (cut: {len(text):,} characters)"
    lead = f"{name}="
    together = mask(lead + cut)
    return together[len(lead) :] if together.startswith(lead) else mask(cut)


LIMIT_EVENT = "rate_limit_event"
"""The kind of claude's own messages about its usage limit."""

MOST_CALLS = 200  # that are remembered, the newest

_MOST_STEPS = 100  # of a plan

_LONGEST = 20_000  # characters of a text, the last ones

OVER = ("completed", "failed")


@dataclass(frozen=True, slots=True)
class Step:
    """One entry of a plan. ``status``: pending, in_progress or completed."""

    content: str
    status: str = ""
    priority: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One use of a tool, as far as it is known.

    Attributes:
        id: the agent's name for it.
        name: of the tool; "" where it is not named.
        title, kind: what the agent calls it; ``status`` how far it is.
        input: what the tool gets.
        output: what came of it, the last of it.
    """

    id: str
    name: str = ""
    title: str = ""
    kind: str = ""
    status: str = "pending"
    input: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    output: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it runs no longer."""
        return self.status in OVER


@dataclass(frozen=True, slots=True)
class SessionState:
    """What is known of a session.

    Attributes:
        session: the agent's name for it.
        opened: how it was opened for this turn: resumed, or why it is a new one; "" where it stayed.
        agent, version: the program; ``model`` where it says which.
        mode: the permission mode that it says is on.
        login: the kind of its login ("none" for none); "" where it does not say.
        plan: its plan; ``calls`` its uses of tools by id, in order.
        text: what the agent says; ``last`` whose words these are (a message's id, or "").
        used, size: tokens in its context, and how many it holds; 0 where it does not say.
        tokens_in, tokens_out: of this turn.
        amount: its count of the cost so far, in US dollars; ``before`` the same when the turn
            began. The count is of the program's process or of the session: only differences hold.
        prompt: the id of the request that is this turn; "" before it.
        answered: the turn was answered; ``stop`` with which reason.
        error: why it failed; ``code`` and ``data`` of the answer, where there was one.
        trouble: it says that it could not reach its service although it answered.
        retry: what it says about trying again to reach its service.
        resets_at: when its usage limit is reset, in seconds since 1970, where it says so in a field.
        refused: titles of calls for which no permission was given.
        odd: updates of a kind that is not known.
    """

    session: str = ""
    opened: str = ""
    agent: str = ""
    version: str = ""
    model: str = ""
    mode: str = ""
    login: str = ""
    plan: tuple[Step, ...] = ()
    calls: Mapping[str, ToolCall] = field(default_factory=lambda: MappingProxyType({}))
    text: str = ""
    last: str = ""
    used: int = 0
    size: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    amount: float | None = None
    before: float = 0.0
    prompt: str = ""
    answered: bool = False
    stop: str = ""
    error: str = ""
    code: int | None = None
    data: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    trouble: bool = False
    retry: str = ""
    resets_at: float | None = None
    refused: tuple[str, ...] = ()
    odd: int = 0

    @property
    def cost(self) -> float | None:
        """US dollars of this turn, None where the agent tells none."""
        if self.amount is None:
            return None
        began_anew = self.amount < self.before
        return self.amount if began_anew else self.amount - self.before

    @property
    def running(self) -> ToolCall | None:
        """The newest call that is not over."""
        return next(
            (each for each in reversed(tuple(self.calls.values())) if not each.is_over), None
        )


def apply(state: SessionState, direction: str, message: Mapping[str, Any]) -> SessionState:
    """The state after a message.

    Args:
        state: before it.
        direction: who it is from (see `acp_core.agents.live.updates`).
        message: as it came.
    """
    if direction == RUNNER:
        return _noted(state, message)
    method = string(message.get("method"))
    params = table(message.get("params"))
    if direction == CLIENT:
        return _sent(state, method, message)
    if direction != AGENT:
        return state
    if method == "session/update":
        return _updated(state, table(params.get("update")))
    if method == "_claude/sdkMessage":
        return _raw(state, table(params.get("message")))
    if method == "_auth/status_update":
        return replace(state, login=string(table(params.get("authStatus")).get("kind")))
    if method == "session/request_permission":
        return _call(state, table(params.get("toolCall")))
    return state if method else _answered(state, message)


def begin_turn(state: SessionState) -> SessionState:
    """The same session at the start of another turn."""
    return replace(
        SessionState(),
        session=state.session,
        agent=state.agent,
        version=state.version,
        model=state.model,
        mode=state.mode,
        login=state.login,
        used=state.used,
        size=state.size,
        before=state.amount if state.amount is not None else state.before,
    )


def _noted(state: SessionState, message: Mapping[str, Any]) -> SessionState:
    """What the runner notes: how the session stood when the turn began, or how it failed."""
    turn = table(message.get("turn"))
    if turn:
        state = replace(
            state,
            session=string(turn.get("session")),
            agent=string(turn.get("agent")),
            version=string(turn.get("version")),
            mode=string(turn.get("mode")),
            before=money(turn.get("before")) or 0.0,
        )
    opened = string(message.get("opened"))
    if opened:
        state = replace(state, opened=opened)
    refused = string(message.get("refused"))
    if refused:
        state = replace(state, refused=(*state.refused, refused)[-MOST_CALLS:])
    failed = string(message.get("failed"))
    if failed:
        state = replace(state, error=failed, answered=True)
    return state


def _sent(state: SessionState, method: str, message: Mapping[str, Any]) -> SessionState:
    if method == "session/set_mode":  # two programs say nothing when it changes
        return replace(state, mode=string(table(message.get("params")).get("modeId")))
    if method != "session/prompt":
        return state
    before = state.before if state.amount is None else state.amount
    name = str(message.get("id"))
    return replace(state, prompt=name, before=before, amount=None, error="", code=None)


def _answered(state: SessionState, message: Mapping[str, Any]) -> SessionState:
    result, error = table(message.get("result")), table(message.get("error"))
    if error and not state.answered:
        data = table(error.get("data"))
        code = error.get("code")
        state = replace(
            state,
            error=_reason(string(error.get("message")), data),
            code=code if isinstance(code, int) and not isinstance(code, bool) else None,
            data=MappingProxyType(data),
        )
    if state.prompt and str(message.get("id")) == state.prompt:
        return _turn_answered(state, result)
    info = table(result.get("agentInfo"))
    if info:
        state = replace(state, agent=string(info.get("name")), version=string(info.get("version")))
    session = string(result.get("sessionId"))
    mode = string(table(result.get("modes")).get("currentModeId"))
    model = string(table(result.get("models")).get("currentModelId"))
    state = replace(
        state,
        session=session or state.session,
        mode=mode or state.mode,
        model=model or state.model,
    )
    return _options(state, result)


def _turn_answered(state: SessionState, result: Mapping[str, Any]) -> SessionState:
    counted = table(table(table(result.get("_meta")).get("quota")).get("token_count"))
    tokens = _tokens(table(result.get("usage"))) or _tokens(counted)
    tokens = max(tokens or (0, 0), (state.tokens_in, state.tokens_out), key=sum)  # of calls so far
    error = state.error
    if state.trouble and not error:
        last = state.text.strip().rpartition("\n\n")[2]
        error = last or "the agent could not reach its model service"
    return replace(
        state,
        answered=True,
        stop=string(result.get("stopReason")),
        tokens_in=tokens[0],
        tokens_out=tokens[1],
        error=error,
        retry=state.retry if result.get("stopReason") == "cancelled" else "",
    )


def _tokens(usage: Mapping[str, Any]) -> tuple[int, int] | None:
    """Tokens read (cached ones included) and written; None where nothing is said."""
    read = [count(usage.get(each)) for each in ("inputTokens", "input_tokens", "cachedReadTokens",
            "cachedWriteTokens", "cachedInputTokens")]  # fmt: skip
    written = count(usage.get("outputTokens")) or count(usage.get("output_tokens"))
    return (sum(read), written) if sum(read) or written else None


def _updated(state: SessionState, update: Mapping[str, Any]) -> SessionState:
    kind = string(update.get("sessionUpdate"))
    reader = _READERS.get(kind)
    if reader is None:
        return replace(state, odd=state.odd + 1)
    return reader(state, update)


def _chunk(state: SessionState, update: Mapping[str, Any]) -> SessionState:
    used = _tokens(table(table(update.get("_meta")).get("usage")))
    if used:
        state = replace(
            state, tokens_in=state.tokens_in + used[0], tokens_out=state.tokens_out + used[1]
        )
    text = text_in([table(update.get("content"))])
    if not text:
        return state
    whose = string(update.get("messageId"))
    whole = state.text + text if whose == state.last else text
    return replace(state, text=whole[-_LONGEST:], last=whose, retry="")


def _call(state: SessionState, update: Mapping[str, Any]) -> SessionState:
    """A call, new or known: one program announces none that it asks about."""
    name = string(update.get("toolCallId"))
    if not name:
        return state
    meta = table(update.get("_meta"))
    old = state.calls.get(name, ToolCall(name))
    tool = (
        string(update.get("name"))
        or string(table(meta.get("claudeCode")).get("toolName"))
        or string(meta.get("toolName"))
    )
    call = replace(
        old,
        name=tool or old.name,
        title=string(update.get("title"))[:_LONGEST] or old.title,
        kind=string(update.get("kind")) or old.kind,
        status=string(update.get("status")) or old.status,
        input=MappingProxyType(table(update.get("rawInput")) or dict(old.input)),
        output=_output(old.output, update, meta),
    )
    calls = {**state.calls, name: call}
    while len(calls) > MOST_CALLS:
        del calls[next(iter(calls))]
    return replace(state, calls=MappingProxyType(calls), last="\0")


def _output(before: str, update: Mapping[str, Any], meta: Mapping[str, Any]) -> str:
    """What a call printed: in its own channel, as content, or as raw output."""
    more = string(table(meta.get("terminal_output_delta")).get("data"))
    if more:
        return (before + more)[-_LONGEST:]
    parts = [table(each).get("content") for each in items(update.get("content"))]
    raw = update.get("rawOutput")
    whole = text_in(parts) or string(raw) or string(table(raw).get("output"))
    return whole[-_LONGEST:] or before


def _plan(state: SessionState, update: Mapping[str, Any]) -> SessionState:
    entries = [table(each) for each in items(update.get("entries"))[:_MOST_STEPS]]
    return replace(
        state,
        plan=tuple(
            Step(string(each.get("content")), string(each.get("status")), string(each.get("priority")))
            for each in entries
        ),
    )  # fmt: skip


def _usage(state: SessionState, update: Mapping[str, Any]) -> SessionState:
    cost = table(update.get("cost"))
    amount = money(cost.get("amount")) if cost.get("currency") == "USD" else None
    meta = table(update.get("_meta"))
    model = string(meta.get("_claude/model"))
    state = _limited(state, table(meta.get("_claude/rateLimit")))
    return replace(
        state,
        used=count(update.get("used")),
        size=count(update.get("size")),
        amount=state.amount if amount is None else amount,
        model=model or state.model,
    )


def _raw(state: SessionState, message: Mapping[str, Any]) -> SessionState:
    """A message of claude itself, which only these tell of a limit before its model has answered."""
    if message.get("type") != LIMIT_EVENT:
        return state
    return _limited(state, table(message.get("rate_limit_info")))


def _limited(state: SessionState, limit: Mapping[str, Any]) -> SessionState:
    """What claude says of its usage limit: a limit that allows it says nothing of a reset."""
    if string(limit.get("status")) in ("", "allowed", "allowed_warning"):
        return state
    return replace(state, resets_at=money(limit.get("resetsAt")))


def _mode(state: SessionState, update: Mapping[str, Any]) -> SessionState:
    return replace(state, mode=string(update.get("currentModeId")) or state.mode)


def _options(state: SessionState, update: Mapping[str, Any]) -> SessionState:
    """Options that are set: of the mode and the model."""
    for option in map(table, items(update.get("configOptions"))):
        value = string(option.get("currentValue"))
        if option.get("id") == "mode" and value:
            state = replace(state, mode=value)
        if option.get("id") == "model" and value:
            state = replace(state, model=value)
    return state


def _info(state: SessionState, update: Mapping[str, Any]) -> SessionState:
    codex = table(table(update.get("_meta")).get("codex"))
    status = string(table(codex.get("threadStatus")).get("type"))
    if status:
        state = replace(state, trouble=status == "systemError")
    again = table(codex.get("error"))
    return replace(state, retry=string(again.get("message")) or state.retry) if again else state


def _nothing(state: SessionState, update: Mapping[str, Any]) -> SessionState:
    return state


_READERS: dict[str, Callable[[SessionState, Mapping[str, Any]], SessionState]] = {
    "agent_message_chunk": _chunk,
    "agent_thought_chunk": _nothing,
    "user_message_chunk": _nothing,
    "available_commands_update": _nothing,
    "tool_call": _call,
    "tool_call_update": _call,
    "plan": _plan,
    "usage_update": _usage,
    "current_mode_update": _mode,
    "config_option_update": _options,
    "session_info_update": _info,
}


def _reason(text: str, data: Mapping[str, Any]) -> str:
    more = string(data.get("message")) or string(data.get("details"))
    return f"{text}: {more}" if more and more not in text else text
