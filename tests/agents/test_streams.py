"""What each program prints, as one kind of progress; and nothing that it prints can hurt."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.agents import streams
from acp_core.agents.streams import Parser, Progress

NOW = 1_800_000_000.0
REFUSAL = "error: readiness.md must check 'Ready to implement' first"


def feed(name: str, *records: dict[str, Any] | bytes, end: bool = True) -> tuple[Parser, list[str]]:
    parser = streams.parser(name)
    said: list[str] = []
    for record in records:
        line = record if isinstance(record, bytes) else json.dumps(record).encode()
        said += parser.feed(line, NOW)
    if end:
        parser.end()
    return parser, said


def progress(name: str, *records: dict[str, Any] | bytes) -> Progress:
    return feed(name, *records)[0].progress


# --- claude and qwen -----------------------------------------------------------------------


def init(**more: object) -> dict[str, Any]:
    return {"type": "system", "subtype": "init", "session_id": "s-1", "model": "m-1", **more}


def assistant(*parts: dict[str, Any], message: str = "a", **usage: int) -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": message, "content": list(parts), "usage": usage}}


def bash(command: str, name: str = "t1") -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": command}}


def tool_result(content: object, *, error: bool = False, name: str = "t1") -> dict[str, Any]:
    part = {"type": "tool_result", "tool_use_id": name, "content": content, "is_error": error}
    return {"type": "user", "message": {"content": [part]}}


def test_claude_names_session_model_and_version_and_the_tool_in_use() -> None:
    found = progress("claude", init(claude_code_version="2.1.1"), assistant(bash("acp next")))
    assert (found.session, found.model, found.version) == ("s-1", "m-1", "2.1.1")
    assert found.tool == "Bash: acp next"


def test_a_tool_is_in_use_until_its_result_comes() -> None:
    found = progress("claude", assistant(bash("acp next")), tool_result("phase: drafting"))
    assert found.tool == ""


def test_a_refusal_is_quoted_from_what_the_tool_printed() -> None:
    parts = [{"type": "text", "text": f"Exit code 2\n{REFUSAL}"}]
    found = progress("claude", assistant(bash("acp append")), tool_result(parts, error=True))
    assert found.refusals == [REFUSAL]


def test_tokens_of_one_message_that_comes_in_pieces_count_once_until_the_result_says() -> None:
    text = {"type": "text", "text": "hello"}
    first = assistant(bash("ls"), message="m", input_tokens=1000, output_tokens=1)
    second = assistant(text, message="m", input_tokens=1000, output_tokens=7)
    found = progress("claude", first, second)
    assert (found.tokens_in, found.tokens_out, found.tokens_estimated) == (1000, 7, True)
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}
    result = {
        "type": "result",
        "is_error": False,
        "result": "done",
        "usage": usage,
        "total_cost_usd": 0.25,
    }
    found = progress("claude", first, second, result)
    assert (found.tokens_in, found.tokens_out, found.tokens_estimated) == (100, 5, False)
    assert (found.cost, found.finished, found.said) == (0.25, True, "done")


def test_a_result_that_is_an_error_is_one_although_its_subtype_says_success() -> None:
    result = {"type": "result", "subtype": "success", "is_error": True, "result": "Not logged in"}
    found = progress("claude", result)
    assert (found.is_error, found.error, found.finished) == (True, "Not logged in", True)


def test_refused_permissions_are_named() -> None:
    denial = {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "acp append"}}
    found = progress(
        "claude", {"type": "result", "is_error": False, "permission_denials": [denial]}
    )
    assert found.refused == ["Bash: acp append"]


def test_a_retry_says_when_the_next_one_is_and_ends_with_the_next_answer() -> None:
    retry = {
        "type": "system", "subtype": "api_retry", "attempt": 3, "max_retries": 10,
        "retry_delay_ms": 4000, "error_status": 401, "error": "authentication_error",
    }  # fmt: skip
    parser, said = feed("claude", retry)
    assert parser.progress.retrying_until == NOW + 4
    assert parser.progress.retry_reason == "401 authentication_error"
    assert said == ["retry 3 of 10: 401 authentication_error"]
    parser.feed(json.dumps(assistant()).encode(), NOW)
    assert (parser.progress.retrying, parser.progress.retrying_until) == (False, None)
    assert parser.progress.retries == 1


def test_qwen_prints_the_same_records() -> None:
    error = {"type": "result", "is_error": True, "error": {"message": "401 no key"}}
    found = progress("claude", init(qwen_code_version="0.24"), error)
    assert (found.version, found.error) == ("0.24", "401 no key")


# --- codex ---------------------------------------------------------------------------------


def item(kind: str, what: str, **more: object) -> dict[str, Any]:
    return {"type": f"item.{kind}", "item": {"id": "i", "type": what, **more}}


def test_codex_runs_a_command_and_finishes() -> None:
    usage = {"input_tokens": 7, "cached_input_tokens": 3, "output_tokens": 2}
    parser, _ = feed(
        "codex",
        {"type": "thread.started", "thread_id": "th"},
        item("completed", "error", message="only a warning"),
        item("started", "command_execution", command="acp append", status="in_progress"),
        end=False,
    )
    assert parser.progress.tool == "acp append"
    assert not parser.progress.error
    parser.feed(
        json.dumps(
            item(
                "completed", "command_execution", command="acp append",
                aggregated_output=f"{REFUSAL}\n", exit_code=2, status="failed",
            )
        ).encode(),
        NOW,
    )  # fmt: skip
    parser.feed(json.dumps({"type": "turn.completed", "usage": usage}).encode(), NOW)
    found = parser.progress
    assert (found.session, found.tool, found.refusals) == ("th", "", [REFUSAL])
    assert (found.tokens_in, found.tokens_out, found.cost) == (7, 2, None)
    assert (found.finished, found.is_error) == (True, False)


def test_codex_that_waits_for_the_network_is_retrying_and_not_failed() -> None:
    error = {"type": "error", "message": "Reconnecting... 2/5 (waiting for network)"}
    found = progress("codex", error, error)
    assert (found.retries, found.is_error, found.finished) == (2, False, False)
    assert found.retrying
    assert "waiting for network" in found.retry_reason


def test_codex_says_why_a_turn_failed() -> None:
    found = progress("codex", {"type": "turn.failed", "error": {"message": "401 Unauthorized"}})
    assert (found.is_error, found.error) == (True, "401 Unauthorized")


# --- opencode ------------------------------------------------------------------------------


def step(reason: str, cost: float = 0.5) -> dict[str, Any]:
    tokens = {"input": 100, "output": 5, "reasoning": 1, "cache": {"read": 10, "write": 0}}
    return {
        "type": "step_finish",
        "sessionID": "ses",
        "part": {"reason": reason, "tokens": tokens, "cost": cost},
    }


def test_opencode_adds_its_steps_up() -> None:
    found = progress("opencode", {"type": "step_start"}, step("tool-calls"), step("stop"))
    assert (found.tokens_in, found.tokens_out, found.cost) == (220, 12, 1.0)
    assert (found.session, found.finished, found.cut_off) == ("ses", True, False)


def test_opencode_whose_last_step_asked_for_tools_was_cut_off() -> None:
    found = progress("opencode", step("tool-calls"))
    assert (found.finished, found.cut_off) == (False, True)


def test_opencode_tells_of_a_rejected_permission_on_its_standard_error() -> None:
    parser = streams.parser("opencode")
    told = b"\x1b[93m! \x1b[0mpermission requested: bash (acp append); auto-rejecting"
    assert parser.complain(told, NOW) == [
        "! permission requested: bash (acp append); auto-rejecting"
    ]
    state = {
        "status": "error",
        "error": "The user rejected permission",
        "input": {"command": "acp append"},
    }
    parser.feed(
        json.dumps({"type": "tool_use", "part": {"tool": "bash", "state": state}}).encode(), NOW
    )
    assert parser.progress.refused == ["bash: acp append"]


def test_an_error_of_opencode_is_an_error() -> None:
    error = {"type": "error", "error": {"name": "APIError", "data": {"message": "401 bad key"}}}
    assert progress("opencode", error).error == "401 bad key"


# --- gemini --------------------------------------------------------------------------------


def test_gemini_speaks_in_pieces_and_ends_with_its_counts() -> None:
    use = {
        "type": "tool_use",
        "tool_name": "run_shell_command",
        "tool_id": "1",
        "parameters": {"command": "acp next"},
    }
    stats = {"input_tokens": 20, "output_tokens": 4}
    parser, said = feed(
        "gemini",
        {"type": "init", "session_id": "g", "model": "gm"},
        {"type": "message", "role": "user", "content": "the prompt"},
        {"type": "message", "role": "assistant", "content": "I will ", "delta": True},
        {"type": "message", "role": "assistant", "content": "look.", "delta": True},
        use,
        {"type": "tool_result", "tool_id": "1", "status": "success", "output": "phase: drafting"},
        {"type": "result", "status": "success", "stats": stats},
    )
    found = parser.progress
    assert said == [
        "session g with gm",
        "I will look.",
        "uses run_shell_command: acp next",
        "finished",
    ]
    assert (found.tokens_in, found.tokens_out, found.finished, found.tool) == (20, 4, True, "")


def test_gemini_that_was_not_offered_a_tool_was_refused_it() -> None:
    use = {"type": "tool_use", "tool_name": "write_file", "tool_id": "1", "parameters": {}}
    error = {"message": 'Tool "write_file" not found in registry'}
    found = progress(
        "gemini", use, {"type": "tool_result", "tool_id": "1", "status": "error", "error": error}
    )
    assert found.refused == ["write_file"]


def test_an_error_result_of_gemini_says_why() -> None:
    result = {"type": "result", "status": "error", "error": {"message": "API key not valid"}}
    found = progress("gemini", result)
    assert (found.is_error, found.error) == (True, "API key not valid")


# --- text ----------------------------------------------------------------------------------


def test_aider_rounds_its_tokens_and_names_its_cost() -> None:
    found = progress(
        "text",
        b"Aider v0.86.2",
        b"Model: some/model with diff edit format",
        b"Applied edit to proposal.md",
        b"Tokens: 1.5k sent, 50 received. Cost: $0.01 message, $0.04 session.",
    )
    assert (found.version, found.model) == ("0.86.2", "some/model")
    assert (found.tokens_in, found.tokens_out, found.tokens_estimated) == (1500, 50, True)
    assert found.cost == 0.04


def test_a_command_that_could_not_be_run_is_a_refusal_too() -> None:
    assert progress("text", b"/bin/bash: line 1: acp: command not found").refusals


def test_any_program_may_print_the_refusal_it_got() -> None:
    assert progress("text", f"acp append: {REFUSAL}".encode()).refusals


# --- whatever comes ------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda each: (
        st.lists(each, max_size=4) | st.dictionaries(st.text(max_size=8), each, max_size=4)
    ),
    max_leaves=12,
)
KINDS = (
    "system", "assistant", "user", "result", "stream_event", "rate_limit_event", "error", "init",
    "thread.started", "turn.completed", "turn.failed", "item.started", "item.completed",
    "step_start", "step_finish", "tool_use", "tool_result", "text", "message",
)  # fmt: skip
FIELDS = (
    "message", "part", "item", "content", "usage", "error", "stats", "result", "subtype", "role",
    "permission_denials", "tool_result_meta", "state", "tokens", "status", "id", "model",
    "aggregated_output", "retry_delay_ms", "total_cost_usd", "rate_limit_info", "cost",
)  # fmt: skip
WORDS = st.sampled_from((*KINDS, "api_retry", "init", "tool_use", "tool_result", "text", "error"))
RECORDS = st.builds(
    lambda kind, rest: {"type": kind, **rest},
    st.sampled_from(KINDS),
    st.dictionaries(
        st.sampled_from(FIELDS),
        JSON | WORDS | st.dictionaries(st.sampled_from((*FIELDS, "type", "name", "input")), JSON | WORDS)
        | st.lists(st.dictionaries(st.sampled_from((*FIELDS, "type")), JSON | WORDS), max_size=2),
    ),
)  # fmt: skip


@pytest.mark.slow
@settings(deadline=None)
@given(name=st.sampled_from(streams.NAMES), records=st.lists(RECORDS, max_size=6))
def test_records_of_any_content_are_read(name: str, records: list[dict[str, Any]]) -> None:
    parser, said = feed(name, *records)
    assert all(len(line) <= 300 and "\n" not in line for line in said)
    assert parser.progress.tokens_in >= 0
    assert parser.progress.tokens_out >= 0


@settings(deadline=None)
@given(name=st.sampled_from(streams.NAMES), lines=st.lists(st.binary(max_size=200), max_size=6))
def test_bytes_of_any_kind_are_read(name: str, lines: list[bytes]) -> None:
    feed(name, *lines)
    parser = streams.parser(name)
    for line in lines:
        parser.complain(line, NOW)


@pytest.mark.parametrize("name", streams.NAMES)
def test_nesting_huge_numbers_and_long_lines_do_not_stop_it(name: str) -> None:
    deep = b'{"type":' * 100_000 + b"}" * 100_000
    digits = b'{"type":"result","total_cost_usd":' + b"9" * 5000 + b"}"
    odd = (
        b'{"type":"result","total_cost_usd":NaN,"usage":{"output_tokens":-1,"input_tokens":1e400}}'
    )
    long = b'{"type":"text","part":{"text":"' + b"x" * (9 << 20) + b'"}}'
    found = progress(name, deep, digits, odd, long)
    assert found.cost is None
    assert (found.tokens_in, found.tokens_out) == (0, 0)
