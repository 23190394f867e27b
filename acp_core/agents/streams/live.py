"""A turn of a live session, as its runner writes it down (`acp_core.agents.live.journal`)."""

from __future__ import annotations

from typing import Any

from acp_core.agents.failures import resets_in
from acp_core.agents.live.updates import SessionState, ToolCall, apply
from acp_core.agents.streams.progress import Parser, string, table, use


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
