"""What the messages of a session say, in the forms of the programs, and whatever else comes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from acp_core.agents import streams
from acp_core.agents.live import updates
from acp_core.agents.live.updates import (
    AGENT,
    CLIENT,
    LONGEST,
    MOST_CALLS,
    RUNNER,
    Journal,
    SessionState,
    apply,
    begin_turn,
)


def update(kind: str, /, **fields: Any) -> tuple[str, dict[str, Any]]:
    params = {"sessionId": "s", "update": {"sessionUpdate": kind, **fields}}
    return AGENT, {"method": "session/update", "params": params}


def text(said: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return update("agent_message_chunk", content={"type": "text", "text": said}, **more)


def call(name: str, kind: str = "tool_call_update", /, **fields: Any) -> tuple[str, dict[str, Any]]:
    return update(kind, toolCallId=name, **fields)


PROMPT = (CLIENT, {"id": 3, "method": "session/prompt", "params": {}})


def answer(**result: Any) -> tuple[str, dict[str, Any]]:
    return AGENT, {"id": 3, "result": result}


def read(*messages: tuple[str, dict[str, Any]]) -> SessionState:
    state = SessionState()
    for direction, message in messages:
        state = apply(state, direction, message)
    return state


def test_a_plan_and_what_is_said() -> None:
    steps = [{"content": "read", "status": "completed"}, {"content": "write", "status": "pending"}]
    state = read(
        update("plan", entries=steps), text("I re", messageId="m"), text("ad.", messageId="m")
    )
    assert [(each.content, each.status) for each in state.plan] == [("read", "completed"), ("write", "pending")]  # fmt: skip
    assert state.text == "I read."


def test_a_call_is_known_without_its_announcement() -> None:
    asked = {"toolCallId": "c", "title": "touch x", "kind": "execute", "status": "pending"}
    state = read(
        (AGENT, {"id": 1, "method": "session/request_permission", "params": {"toolCall": asked}})
    )
    assert state.running and state.running.title == "touch x"
    direction, message = call("c", status="completed")
    assert apply(state, direction, message).running is None


def test_what_a_command_printed_in_each_form() -> None:
    parts = [{"type": "content", "content": {"type": "text", "text": "done"}}]
    forms = [
        [call("c", content=parts)],
        [call("c", rawOutput="done")],
        [call("c", rawOutput={"output": "done", "exitCode": 0})],
        [call("c", _meta={"terminal_output_delta": {"data": each}}) for each in ("do", "ne")],
    ]
    assert [read(*form).calls["c"].output for form in forms] == ["done"] * 4


def test_the_cost_of_a_turn_is_the_difference() -> None:
    first = read(PROMPT, update("usage_update", cost={"amount": 0.07, "currency": "USD"}), answer())
    assert first.cost == 0.07
    second = begin_turn(first)
    for message in (PROMPT, update("usage_update", cost={"amount": 0.10, "currency": "USD"})):
        second = apply(second, *message)
    assert second.cost is not None and round(second.cost, 6) == 0.03
    resumed = begin_turn(second)
    for message in (PROMPT, update("usage_update", cost={"amount": 0.02, "currency": "USD"})):
        resumed = apply(resumed, *message)
    assert resumed.cost == 0.02
    euros = read(PROMPT, update("usage_update", cost={"amount": 5, "currency": "EUR"}))
    assert euros.cost is None


def test_tokens_in_each_form() -> None:
    whole = {"inputTokens": 900, "cachedReadTokens": 100, "outputTokens": 50}
    quota = {"quota": {"token_count": {"input_tokens": 1000, "output_tokens": 50}}}
    piece = {"usage": {"inputTokens": 500, "outputTokens": 25}}
    forms = [
        [PROMPT, answer(usage=whole)],
        [PROMPT, answer(_meta=quota)],
        [PROMPT, text("", _meta=piece), text("", _meta=piece), answer()],
    ]
    states = [read(*form) for form in forms]
    assert [(each.tokens_in, each.tokens_out) for each in states] == [(1000, 50)] * 3


def test_the_model_and_the_mode_in_each_form() -> None:
    options = [{"id": "mode", "currentValue": "default"}, {"id": "model", "currentValue": "m"}]
    forms = [
        [(AGENT, {"id": 1, "result": {"modes": {"currentModeId": "default"}, "models": {"currentModelId": "m"}}})],
        [(AGENT, {"id": 1, "result": {"configOptions": options}})],
        [update("config_option_update", configOptions=options)],
        [update("current_mode_update", currentModeId="default"), update("usage_update", _meta={"_claude/model": "m"})],
        [(CLIENT, {"id": 2, "method": "session/set_mode", "params": {"modeId": "default"}}), (AGENT, {"id": 1, "result": {"models": {"currentModelId": "m"}}})],
    ]  # fmt: skip
    assert [(read(*each).mode, read(*each).model) for each in forms] == [("default", "m")] * 5


def test_an_error_that_is_told_as_a_text() -> None:
    broken = update(
        "session_info_update", _meta={"codex": {"threadStatus": {"type": "systemError"}}}
    )
    state = read(
        PROMPT, text("A warning.\n\n"), text("HTTP 500"), broken, answer(stopReason="end_turn")
    )
    assert (state.error, state.answered) == ("HTTP 500", True)


def test_an_error_keeps_what_stands_beside_it() -> None:
    error = {
        "code": -32603,
        "message": "Internal error",
        "data": {"details": "429 slow down", "errorKind": "rate_limit"},
    }
    state = read(PROMPT, (AGENT, {"id": 3, "error": error}))
    assert (state.error, state.code, state.data["errorKind"]) == (
        "Internal error: 429 slow down",
        -32603,
        "rate_limit",
    )


def test_an_error_before_the_turn_is_not_the_turns() -> None:
    refused = (AGENT, {"id": 1, "error": {"code": -32002, "message": "Resource not found"}})
    assert read(refused, PROMPT, answer(stopReason="end_turn")).error == ""


def test_calls_are_forgotten_when_they_are_too_many() -> None:
    state = read(*(call(f"c{number}") for number in range(MOST_CALLS + 5)))
    assert len(state.calls) == MOST_CALLS
    assert "c4" not in state.calls and "c5" in state.calls


def test_the_stream_says_it_in_lines_for_people() -> None:
    parser = streams.parser(streams.LIVE)
    messages = [
        PROMPT,
        text("I read.", messageId="m"),
        call("c", "tool_call", name="Bash", rawInput={"command": "acp append"}, status="pending"),
        call("c", status="completed", rawOutput="error: it is not your turn"),
        (RUNNER, {"refused": "rm -rf /"}),
        answer(stopReason="end_turn"),
    ]
    lines: list[str] = []
    for direction, message in messages:
        record = {"at": 1.0, "direction": direction, "message": message}
        lines += parser.feed(json.dumps(record).encode(), 1.0)
    assert lines == [
        "I read.",
        "uses Bash: acp append",
        "error: it is not your turn",
        "not allowed: rm -rf /",
    ]
    progress = parser.progress
    assert progress.refusals == ["error: it is not your turn"]
    assert progress.refused == ["rm -rf /"]
    assert progress.finished and not progress.is_error and not progress.tool


SOMETHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["method", "params", "update", "sessionUpdate", "content", "_meta", "toolCallId", "rawInput",
         "cost", "amount", "result", "error", "id", "configOptions", "entries", "turn", "codex"]
    ), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
KINDS = [
    "plan",
    "tool_call",
    "usage_update",
    "agent_message_chunk",
    "session_info_update",
    "new",
    7,
]


@given(st.lists(st.dictionaries(st.text(max_size=9), SOMETHING, max_size=4) | st.builds(
    lambda kind, more: {"method": "session/update", "params": {"update": {**more, "sessionUpdate": kind}}},
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(["toolCallId", "content", "entries", "cost", "_meta", "rawInput"]), SOMETHING),
), max_size=6), st.sampled_from([AGENT, CLIENT, RUNNER]))  # fmt: skip
def test_whatever_comes_is_read(messages: list[dict[str, Any]], direction: str) -> None:
    parser = streams.parser(streams.LIVE)
    for message in messages:
        record = {"direction": direction, "message": message}
        for line in parser.feed(json.dumps(record).encode(), 1.0):
            assert isinstance(line, str)


def test_a_journal_cuts_and_masks(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    commands = [{"name": f"command-{number}"} for number in range(500)]
    Journal(path).write(AGENT, {"availableCommands": commands, "text": "x" * 2 * LONGEST, "api_key": "0123456789abcdef"}, 1.0)  # fmt: skip
    message = json.loads(path.read_text())["message"]
    assert len(message["availableCommands"]) == updates.MOST
    assert len(message["text"]) < LONGEST + 100 and message["text"].endswith("characters)")
    assert "0123456789abcdef" not in path.read_text()


def test_a_full_journal_says_so_once(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with path.open("wb") as file:
        file.truncate(updates.LIMIT)
    written = Journal(path)
    for _ in range(3):
        written.write(AGENT, {"method": "session/update"}, 1.0)
    with path.open("rb") as file:
        file.seek(updates.LIMIT)
        lines = file.read().splitlines()
    assert [json.loads(line)["direction"] for line in lines] == [RUNNER]


def test_a_field_says_when_a_limit_is_reset_in_each_form_of_claude() -> None:
    rejected = {"status": "rejected", "resetsAt": 1795603200, "rateLimitType": "five_hour"}
    allowed = {"status": "allowed", "resetsAt": 1795700000}

    def raw(limit: object) -> tuple[str, dict[str, Any]]:
        message = {"type": "rate_limit_event", "rate_limit_info": limit}
        return AGENT, {"method": "_claude/sdkMessage", "params": {"message": message}}

    def usage(limit: object) -> tuple[str, dict[str, Any]]:
        return update("usage_update", used=1, size=9, _meta={"_claude/rateLimit": limit})

    for form in (raw, usage):
        state = read(form(allowed), form(rejected), form(allowed))
        assert state.resets_at == 1795603200
        assert begin_turn(state).resets_at is None
        assert read(form({"status": "rejected", "resetsAt": "soon"})).resets_at is None
        assert read(form(7)).resets_at is None
    other = {"method": "_claude/sdkMessage", "params": {"message": {"type": "x"}}}
    assert read((AGENT, other)) == SessionState()
