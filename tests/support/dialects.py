"""The four ways in which agent programs talk to their model service, each reduced to the same two things.

What a program sends becomes a `Talk`: the texts of the person and the results of tools, in their order, and
the tools that are offered. What the model does next, a `Reply`, becomes the stream of events that the
program reads.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MODEL = "scripted-1"
RESULT = None
"""Stands in `Talk.said` for the result of a tool."""


@dataclass(frozen=True)
class Talk:
    """What a program sends: what was said so far, and the names of the tools."""

    said: tuple[str | None, ...]
    tools: tuple[str, ...]
    wanted: dict[str, Any] = field(default_factory=dict)  # the schema of an answer, if there is one


@dataclass(frozen=True)
class Reply:
    """What the model does next: it says something, word by word, and may use a tool."""

    words: tuple[str, ...] = ()
    pause: float = 0.0  # seconds between two words
    tool: str = ""
    given: dict[str, Any] = field(default_factory=dict)


Event = tuple[dict[str, Any], float]
"""A part of the answer, and the seconds before the next."""


def texts(content: object) -> list[str]:
    """The texts of a message, whose content is one text or a list of parts."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [each["text"] for each in parts if isinstance(each.get("text"), str)]


class Messages:
    """``POST /v1/messages``, as Claude Code talks."""

    named = True  # each event has a line with its name

    def read(self, body: dict[str, Any]) -> Talk:
        said: list[str | None] = []
        for message in body.get("messages", []):
            if message["role"] != "user":
                continue
            content = message["content"]
            for part in [content] if isinstance(content, str) else content:
                if isinstance(part, dict) and part.get("type") == "tool_result":
                    said.append(RESULT)
                else:
                    said += texts([part] if isinstance(part, dict) else part)
        return Talk(tuple(said), tuple(each.get("name", "") for each in body.get("tools", [])))

    def whole(self, reply: Reply) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "text", "text": "".join(reply.words)}]
        if reply.tool:
            content.append(self._use(reply, reply.given))
        return {
            **self._message(),
            "content": content,
            "stop_reason": "tool_use" if reply.tool else "end_turn",
            "usage": {"input_tokens": 1_000, "output_tokens": 40},
        }

    def events(self, reply: Reply) -> Iterator[Event]:
        yield {"type": "message_start", "message": {**self._message(), "content": [], "stop_reason": None}}, 0  # fmt: skip
        yield from self._block(0, {"type": "text", "text": ""}, [{"type": "text_delta", "text": each} for each in reply.words], reply.pause)  # fmt: skip
        if reply.tool:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.given)}
            yield from self._block(1, self._use(reply, {}), [delta], 0)
        reason = "tool_use" if reply.tool else "end_turn"
        yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 40}}, 0  # fmt: skip
        yield {"type": "message_stop"}, 0

    def _message(self) -> dict[str, Any]:
        usage = {"input_tokens": 1_000, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}  # fmt: skip
        return {"id": f"msg_{name()}", "type": "message", "role": "assistant", "model": MODEL, "stop_sequence": None, "usage": usage}  # fmt: skip

    def _use(self, reply: Reply, given: dict[str, Any]) -> dict[str, Any]:
        return {"type": "tool_use", "id": f"toolu_{name()}", "name": reply.tool, "input": given}

    def _block(self, index: int, block: dict[str, Any], deltas: list[dict[str, Any]], pause: float) -> Iterator[Event]:  # fmt: skip
        yield {"type": "content_block_start", "index": index, "content_block": block}, 0
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}, pause
        yield {"type": "content_block_stop", "index": index}, 0


class Responses:
    """``POST /v1/responses``, as Codex talks."""

    named = True

    def read(self, body: dict[str, Any]) -> Talk:
        said: list[str | None] = []
        for item in body.get("input", []):
            if str(item.get("type", "")).endswith("_call_output"):
                said.append(RESULT)
            elif item.get("role") == "user":
                said += texts(item["content"])
        tools: list[str] = []
        for tool in body.get("tools", []):
            if tool.get("type") == "namespace":
                tools += [f"{tool['name']}/{each['name']}" for each in tool["tools"]]
            else:
                tools.append(tool.get("name", ""))
        return Talk(tuple(said), tuple(tools))

    def whole(self, reply: Reply) -> dict[str, Any]:
        usage = {"input_tokens": 1_000, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 40, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 1_040}  # fmt: skip
        return {"id": f"resp_{name()}", "object": "response", "status": "completed", "model": MODEL, "output": self._items(reply), "usage": usage}  # fmt: skip

    def events(self, reply: Reply) -> Iterator[Event]:
        whole = self.whole(reply)
        yield {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}, 0  # fmt: skip
        for index, item in enumerate(whole["output"]):
            yield {"type": "response.output_item.added", "output_index": index, "item": item}, 0
            for word in reply.words if item["type"] == "message" else ():
                yield {"type": "response.output_text.delta", "item_id": item["id"], "output_index": index, "content_index": 0, "delta": word}, reply.pause  # fmt: skip
            yield {"type": "response.output_item.done", "output_index": index, "item": item}, 0
        yield {"type": "response.completed", "response": whole}, 0

    def _items(self, reply: Reply) -> list[dict[str, Any]]:
        if not reply.tool:
            text = {"type": "output_text", "text": "".join(reply.words), "annotations": []}
            return [{"type": "message", "id": f"msg_{name()}", "role": "assistant", "status": "completed", "content": [text]}]  # fmt: skip
        server, _, tool = reply.tool.rpartition("/")
        call = {"id": f"fc_{name()}", "call_id": f"call_{name()}", "name": tool, "status": "completed"}  # fmt: skip
        if server:
            call["namespace"] = server
        if "code" in reply.given:  # a tool that takes a text instead of fields
            return [{"type": "custom_tool_call", **call, "input": reply.given["code"]}]
        return [{"type": "function_call", **call, "arguments": json.dumps(reply.given)}]


class Chat:
    """``POST /v1/chat/completions``, as opencode and Qwen Code talk."""

    named = False

    def read(self, body: dict[str, Any]) -> Talk:
        said: list[str | None] = []
        for message in body.get("messages", []):
            if message["role"] == "tool":
                said.append(RESULT)
            elif message["role"] == "user":
                said += texts(message["content"])
        return Talk(tuple(said), tuple(each["function"]["name"] for each in body.get("tools", [])))

    def whole(self, reply: Reply) -> dict[str, Any]:
        message = {"role": "assistant", "content": "".join(reply.words), **self._calls(reply)}
        choice = {"index": 0, "message": message, "finish_reason": self._reason(reply)}
        return {"id": f"chat-{name()}", "object": "chat.completion", "created": 0, "model": MODEL, "choices": [choice], "usage": self._usage}  # fmt: skip

    def events(self, reply: Reply) -> Iterator[Event]:
        head = {"id": f"chat-{name()}", "object": "chat.completion.chunk", "created": 0, "model": MODEL}  # fmt: skip
        for word in reply.words:
            yield {**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": word}, "finish_reason": None}]}, reply.pause  # fmt: skip
        last = {"role": "assistant", **self._calls(reply)}
        yield {**head, "choices": [{"index": 0, "delta": last, "finish_reason": None}]}, 0
        yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": self._reason(reply)}], "usage": self._usage}, 0  # fmt: skip

    _usage = {"prompt_tokens": 1_000, "completion_tokens": 40, "total_tokens": 1_040}  # noqa: RUF012

    def _reason(self, reply: Reply) -> str:
        return "tool_calls" if reply.tool else "stop"

    def _calls(self, reply: Reply) -> dict[str, Any]:
        function = {"name": reply.tool, "arguments": json.dumps(reply.given)}
        call = {"index": 0, "id": f"call_{name()}", "type": "function", "function": function}
        return {"tool_calls": [call]} if reply.tool else {}


class Contents:
    """``POST …:streamGenerateContent``, as Gemini CLI talks."""

    named = False

    def read(self, body: dict[str, Any]) -> Talk:
        said: list[str | None] = []
        for content in body.get("contents", []):
            for part in content.get("parts", []) if content.get("role") == "user" else ():
                said += [RESULT] if "functionResponse" in part else texts([part])
        tools = [
            each["name"]
            for group in body.get("tools", [])
            for each in group.get("functionDeclarations", [])
        ]
        config = body.get("generationConfig", {})
        wanted = config.get("responseJsonSchema") or config.get("responseSchema") or {}
        return Talk(tuple(said), tuple(tools), wanted)

    def whole(self, reply: Reply) -> dict[str, Any]:
        parts: list[dict[str, Any]] = [{"text": "".join(reply.words)}] if reply.words else []
        if reply.tool:
            parts.append({"functionCall": {"name": reply.tool, "args": reply.given}})
        return self._answer(parts, "STOP")

    def events(self, reply: Reply) -> Iterator[Event]:
        for word in reply.words:
            yield self._answer([{"text": word}], None), reply.pause
        call = [{"functionCall": {"name": reply.tool, "args": reply.given}}] if reply.tool else []
        yield self._answer(call or [{"text": ""}], "STOP"), 0

    def _answer(self, parts: list[dict[str, Any]], reason: str | None) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if reason:
            candidate["finishReason"] = reason
        usage = {"promptTokenCount": 1_000, "candidatesTokenCount": 40, "totalTokenCount": 1_040}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL}


Dialect = Messages | Responses | Chat | Contents


def dialect_of(path: str) -> Dialect | None:
    """How a program talks that posts to a path; None where that is no way that is known."""
    if path.endswith("/messages"):
        return Messages()
    if path.endswith("/responses"):
        return Responses()
    if path.endswith("/chat/completions"):
        return Chat()
    return Contents() if path.endswith("enerateContent") else None


def name() -> str:
    return secrets.token_hex(8)
