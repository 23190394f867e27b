"""Why programs fail, by what each of them says: over the Agent Client Protocol, and run once."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.agents import failures, presets, session
from acp_core.agents.failures import Failure, FailureClass, Report, classify, of_json_rpc, of_run
from acp_core.agents.output import Output
from acp_core.agents.processes import myself
from acp_core.agents.program import Exit
from acp_core.agents.state import Run

NOW = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)
WEEKLY = datetime(2026, 11, 25, 10, 40, tzinfo=UTC)
LOGIN, LIMIT, SERVICE = FailureClass.LOGIN, FailureClass.LIMIT, FailureClass.SERVICE
MODEL, CONTEXT, CREDIT = FailureClass.MODEL, FailureClass.CONTEXT, FailureClass.CREDIT
AGENT = FailureClass.AGENT
TEN_MINUTES = NOW + timedelta(minutes=10)


def rpc(code: int, message: str, /, **data: Any) -> dict[str, Any]:
    return {"code": code, "message": message, **({"data": data} if data else {})}


RPC_ERRORS = [
    ("claude", rpc(-32000, "Authentication required"), LOGIN, None),
    ("codex", rpc(-32000, "Authentication required"), LOGIN, None),
    ("gemini", rpc(-32000, "Gemini API key is missing or not configured."), LOGIN, None),
    ("qwen", rpc(-32000, "Authentication required: log in first.", authMethods=[]), LOGIN, None),
    ("opencode", rpc(-32603, "Internal error: Incorrect API key provided: x.",
                     service="session", errorName="APIError"), LOGIN, None),
    ("gemini", rpc(401, '{"error":{"code":401,"message":"Request had invalid credentials."}}'),
     LOGIN, None),
    ("qwen", rpc(-32603, "Internal error", details="401 Incorrect API key provided."), LOGIN, None),
    ("claude", rpc(-32603, "Internal error: API Error: Request rejected (429) · Please try again "
                   "later.", errorKind="rate_limit"), SERVICE, None),
    ("gemini", rpc(429, "You exceeded your current quota. Please retry in 600s.\nSuggested retry "
                   "after 600s."), LIMIT, TEN_MINUTES),
    ("claude", rpc(-32603, "Internal error: You've hit your weekly limit · resets Nov 25, 10:40am "
                   "(UTC)", errorKind="rate_limit"), LIMIT, WEEKLY),
    ("codex", rpc(-32603, "Internal error", codexErrorInfo="usageLimitExceeded",
                  message="You’ve hit your usage limit. Visit https://example.invalid/usage to "
                  "purchase more credits or try again at Nov 25th, 2026 10:40 AM."), LIMIT, WEEKLY),
    ("codex", rpc(-32603, "Internal error", message="Something odd happened.",
                  codexErrorInfo={"httpConnectionFailed": {"httpStatusCode": 503}}), SERVICE, None),
    ("claude", rpc(-32603, "Internal error: It may not exist or you may not have access to it.",
                   errorKind="model_not_found"), MODEL, None),
    ("gemini", rpc(500, "models/x-9 is not found for API version v1beta."), MODEL, None),
    ("opencode", rpc(-32603, "Internal error: The model `x-9` does not exist or you do not have "
                     "access to it.", errorName="APIError"), MODEL, None),
    ("qwen", rpc(-32603, "Internal error", details="404 The model `x-9` does not exist."), MODEL,
     None),
    ("claude", rpc(-32603, "Internal error: Prompt is too long · the request is ~212345 tokens",
                   errorKind="invalid_request"), CONTEXT, None),
    ("gemini", rpc(400, '{"error":{"code":400,"message":"The input token count (1148576) exceeds '
                   'the maximum number of tokens allowed (1048576)."}}'), CONTEXT, None),
    ("opencode", rpc(-32603, "Internal error: Session too large to compact",
                     errorName="ContextOverflowError"), CONTEXT, None),
    ("qwen", rpc(-32603, "Internal error", details="400 This model's maximum context length is "
                 "128000 tokens. However, your messages resulted in 131072 tokens."), CONTEXT, None),
    ("claude", rpc(-32603, "Internal error: Credit balance is too low", errorKind="billing_error"),
     CREDIT, None),
    ("codex", rpc(-32603, "Internal error", codexErrorInfo="usageLimitExceeded",
                  message="Quota exceeded. Check your plan and billing details."), CREDIT, None),
    ("any", rpc(-32603, "Internal error"), AGENT, None),
]  # fmt: skip


@pytest.mark.parametrize(("agent", "error", "kind", "until"), RPC_ERRORS)
def test_an_error_of_a_live_session_has_a_class(
    agent: str, error: dict[str, Any], kind: FailureClass, until: datetime | None
) -> None:
    found = classify(of_json_rpc(error), NOW, UTC)
    assert (found.kind, found.until) == (kind, until)
    assert found.certain


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("We’re currently experiencing high demand, which may cause temporary errors.", SERVICE),
        ("The model `x-9` does not exist or you do not have access to it.", MODEL),
        (
            '{"error": {"message": "This model\'s maximum context length is 128000 tokens."}}',
            CONTEXT,
        ),
    ],
)
def test_a_turn_that_ended_with_a_text_instead_of_an_error(text: str, kind: FailureClass) -> None:
    found = classify(Report(printed=(text,)), NOW)
    assert (found.kind, found.reason, found.certain) == (kind, text, False)


# --- programs that are run once ----------------------------------------------------------------


def claude(text: str, name: str, status: int) -> list[dict[str, Any]]:
    """What Claude Code prints when a request fails for good."""
    content = [{"type": "text", "text": text}]
    message = {"id": "m", "model": "<synthetic>", "content": content}
    return [
        {"type": "assistant", "message": message, "error": name, "api_error_status": status},
        {"type": "result", "subtype": "success", "is_error": True, "result": text,
         "api_error_status": status},
    ]  # fmt: skip


def codex(text: str) -> list[dict[str, Any]]:
    return [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": {
            "type": "error", "message": "Model metadata for `x-1` not found."}},
        {"type": "error", "message": text},
        {"type": "turn.failed", "error": {"message": text}},
    ]  # fmt: skip


def gemini(text: str) -> list[dict[str, Any]]:
    error = {"type": "unknown", "message": f"[API Error: {text}]"}
    return [{"type": "result", "status": "error", "error": error, "stats": {}}]


def opencode(text: str, name: str = "APIError", status: int = 0) -> list[dict[str, Any]]:
    data = {"message": text, **({"statusCode": status} if status else {})}
    return [{"type": "error", "error": {"name": name, "data": data}}]


LIMITED = {"status": "rejected", "resetsAt": int(WEEKLY.timestamp()), "rateLimitType": "seven_day"}
GEMINI_404 = (
    "[Routing] NumericalClassifierStrategy failed: Error: Failed to generate content: "
    "models/x-9 is not found for API version v1beta."
)
GEMINI_429 = (
    'Attempt 4 failed with status 429. Retrying with backoff... {"error":{"type":'
    f'"usage_limit_reached","resets_at":{int(WEEKLY.timestamp())}}}}}'
)
RUNS = [
    ("claude", claude("Invalid API key", "authentication_failed", 401), (), 1, LOGIN, None),
    ("claude", [{"type": "rate_limit_event", "rate_limit_info": LIMITED},
                *claude("You've hit your weekly limit", "rate_limit", 429)], (), 1, LIMIT, WEEKLY),
    ("claude", claude("You've hit your weekly limit · resets Nov 25, 10:40am (UTC)", "rate_limit",
                      429), (), 1, LIMIT, WEEKLY),
    ("claude", claude("API Error: Request rejected (429) · try again later.", "rate_limit", 429),
     (), 1, SERVICE, None),
    ("claude", claude("API Error: 529 Overloaded", "overloaded", 529), (), 1, SERVICE, None),
    ("claude", claude("API Error: 500 Internal server error", "server_error", 500), (), 1, SERVICE,
     None),
    ("claude", claude("There's an issue with the selected model (x-9).", "model_not_found", 404),
     (), 1, MODEL, None),
    ("claude", claude("Prompt is too long", "invalid_request", 400), (), 1, CONTEXT, None),
    ("claude", claude("Credit balance is too low", "billing_error", 400), (), 1, CREDIT, None),
    ("codex", codex("unexpected status 401 Unauthorized"), (), 1, LOGIN, None),
    ("codex", codex("You’ve hit your usage limit. Purchase more credits or try again at "
                    "Nov 25th, 2026 10:40 AM."), (), 1, LIMIT, WEEKLY),
    ("codex", codex("exceeded retry limit, last status: 500"), (), 1, SERVICE, None),
    ("codex", codex("The model `x-9` does not exist."), (), 1, MODEL, None),
    ("codex", codex("Quota exceeded. Check your plan and billing details."), (), 1, CREDIT, None),
    ("codex", codex("Codex ran out of room in the model's context window."), (), 1, CONTEXT, None),
    ("codex", codex('{"error": {"message": "maximum context length is 9 tokens"}}'), (), 1, CONTEXT,
     None),
    ("gemini", [], ("Please set an Auth method",), 41, LOGIN, None),
    ("gemini", gemini("models/x-9 is not found for API version v1beta"), (GEMINI_404,), 1, MODEL,
     None),
    ("gemini", [], (GEMINI_429,), 1, LIMIT, WEEKLY),
    ("gemini", [], ('Attempt 2 failed with status 429. {"type":"insufficient_quota"}',
                    "  status: 429", "}"), 1, CREDIT, None),
    ("text", [], ("RuntimeError: no", "    at run (file:///x/chunk.js:401:12)"), 1, AGENT, None),
    ("gemini", gemini("You exceeded your current quota, please check your plan and billing "
                      "details."), (), 1, CREDIT, None),
    ("opencode", opencode("Incorrect API key provided", status=401), (), 1, LOGIN, None),
    ("opencode", opencode("too large", "ContextOverflowError"), (), 1, CONTEXT, None),
    ("opencode", opencode("The model `x-9` does not exist.", status=404), (), 1, MODEL, None),
    ("text", [], ("litellm.APIConnectionError: Connection error.",), 1, SERVICE, None),
    ("text", [], ("just wrong",), 3, AGENT, None),
]  # fmt: skip


def ran(
    folder: Path, stream: str, out: list[dict[str, Any]], err: tuple[str, ...], code: int
) -> Run:
    """A run that printed this and ended so."""
    (folder / "out").write_text("".join(json.dumps(each) + "\n" for each in out))
    (folder / "err").write_text("".join(f"{each}\n" for each in err))
    output = Output(folder / "out", folder / "err", stream)
    output.end(NOW.timestamp())
    run = session.measured(Run(1, myself(), NOW), output, (None, None), NOW)
    return session.ended(run, Exit(code, None), NOW)


@pytest.mark.parametrize(("program", "out", "err", "code", "kind", "until"), RUNS)
def test_a_run_that_failed_has_a_class(
    tmp_path: Path,
    program: str,
    out: list[dict[str, Any]],
    err: tuple[str, ...],
    code: int,
    kind: FailureClass,
    until: datetime | None,
) -> None:
    assert failure_of(ran(tmp_path, program, out, err, code), program) == (kind, until)


def failure_of(run: Run, program: str) -> tuple[FailureClass, datetime | None]:
    preset = presets.bundled().get(program)
    report = of_run(run, preset.exits if preset else {})
    assert report is not None
    found = classify(report, NOW, UTC)
    return found.kind, found.until


def printed(
    folder: Path, out: str, err: str = "", started: datetime = NOW, ended: datetime = NOW
) -> Run:
    """A run of a command that prints text for people, and ends with 1."""
    (folder / "out").write_text(out)
    (folder / "err").write_text(err)
    output = Output(folder / "out", folder / "err", "text")
    output.end(ended.timestamp())
    run = session.measured(Run(1, myself(), started), output, (None, None), ended)
    return session.ended(run, Exit(1, None), ended)


WORK = [
    "Ready: 3 tests, 429 lines read",
    "AssertionError: expected 401 Unauthorized, got 200",
    "The client now waits when the rate limit is reached.",
    "Documented what happens if the weekly limit resets at 5pm.",
    "No API key is needed for the sandbox",
    "Renamed quota to allowance in 12 files",
    "Unknown models are ignored by the importer",
    "Connection reset handling moved into client.py",
    "Checked: the gateway answers 502 and 504 as before",
    "Added a test: prompt longer than the context window",
    "overloaded functions were merged",
    "credits: none of the images needs any",
    "login and logout are covered, unauthorized access is not",
    "see https://example.invalid/errors/503",
    "ValueError: insufficient arguments",
    '{"cases": 429, "failed": 1}',
]


@pytest.mark.parametrize("line", WORK)
def test_what_a_commands_work_is_about_is_not_why_it_failed(tmp_path: Path, line: str) -> None:
    for run in (printed(tmp_path, line), printed(tmp_path, "done\n", line + "\n")):
        assert failure_of(run, "command") == (AGENT, None)


def test_only_the_last_line_of_a_commands_output_may_say_why_it_failed(tmp_path: Path) -> None:
    error = "Error: 503 Service Unavailable"
    assert failure_of(printed(tmp_path, f"{error}\nKeyError: 'draft'\n"), "x") == (AGENT, None)
    assert failure_of(printed(tmp_path, f"working\n{error}\n\n"), "x") == (SERVICE, None)
    assert failure_of(printed(tmp_path, "KeyError\n", f"{error}\nx\n"), "x") == (SERVICE, None)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("ERROR: You've hit your usage limit. Upgrade or try again at 11:30 AM.", LIMIT),
        ("2026-11-23T10:00:00Z ERROR Claude AI usage limit reached|1795437600", LIMIT),
        ("✗ Sorry, you've hit your daily limit for chat requests. Try again in 2 hours.", LIMIT),
        ("HTTP 429: Too Many Requests", SERVICE),
        ('429 {"error": {"type": "rate_limit_error", "message": "Slow down"}}', SERVICE),
        ('{"error": {"code": 401, "message": "Request had invalid credentials."}}', AGENT),
        ("openai.AuthenticationError: Incorrect API key provided: sk-...", LOGIN),
        ("Error: Not logged in. Please run `tool login`.", LOGIN),
        ("[API Error: Connection error.]", SERVICE),
        ("litellm.InternalServerError: AnthropicException - Overloaded", SERVICE),
        ("TypeError: fetch failed", SERVICE),
        ("Error: connect ECONNREFUSED 127.0.0.1:443", SERVICE),
        ("error: model 'stand-9' not found", MODEL),
        ("Error: Prompt is too long", CONTEXT),
        ("Out of credits.", CREDIT),
    ],
)
def test_a_line_that_is_an_error_as_a_whole_says_why_a_command_failed(
    tmp_path: Path, line: str, kind: FailureClass
) -> None:
    assert failure_of(printed(tmp_path, line), "x")[0] is kind
    assert failure_of(printed(tmp_path, "", line), "x")[0] is kind


def test_a_time_is_read_as_of_when_it_was_printed(tmp_path: Path) -> None:
    """Whoever looks later must not take it for a later time."""
    late = NOW + timedelta(hours=9)
    run = printed(tmp_path, "You've hit your usage limit. Try again at 10:20 AM (UTC)")
    found = failures.failure_of(run, {}, late)
    assert (found.until, found.printed) == (NOW.replace(minute=20), NOW)


def test_a_record_that_bears_its_time_says_when_it_was_printed(tmp_path: Path) -> None:
    text = "Usage limit reached, try again at 10:20 AM (UTC)"
    error = {"name": "APIError", "data": {"message": text}}
    told = NOW + timedelta(minutes=19)
    stamped = [{"type": "error", "timestamp": 1000 * told.timestamp(), "error": error}]
    run = ran(tmp_path, "opencode", stamped, (), 1)
    seen = replace(run, ended=NOW + timedelta(hours=2))  # nobody looked for long
    assert failures.failure_of(seen, {}, NOW).until == NOW.replace(minute=20)
    assert failures.failure_of(seen, {}, NOW).printed == told
    odd = replace(seen, told_at=NOW - timedelta(days=9))  # a clock of its own
    assert failures.failure_of(odd, {}, NOW).printed == seen.ended


def test_a_field_says_for_certain_when_a_limit_is_reset_and_a_text_does_not(
    tmp_path: Path,
) -> None:
    later = "You've hit your weekly limit · resets Nov 25, 11:40am (UTC)"
    fields = [{"type": "rate_limit_event", "rate_limit_info": LIMITED}]
    dated = failures.failure_of(
        ran(tmp_path, "claude", [*fields, *claude(later, "rate_limit", 429)], (), 1), {}, NOW
    )
    assert (dated.until, dated.is_dated) == (WEEKLY, True)
    told = failures.failure_of(
        ran(tmp_path, "claude", claude(later, "rate_limit", 429), (), 1), {}, NOW
    )
    assert (told.until, told.is_dated) == (WEEKLY.replace(hour=11), False)
    body = json.dumps({"error": {"resets_at": int(WEEKLY.timestamp())}})
    data = {"message": "Usage limit reached, resets 11:40am", "responseBody": body}
    error = [{"type": "error", "error": {"name": "APIError", "data": data}}]
    found = failures.failure_of(ran(tmp_path, "opencode", error, (), 1), {}, NOW)
    assert (found.until, found.is_dated) == (WEEKLY, True)
    answer = rpc(
        -32603, f"Internal error: {later}", errorKind="rate_limit", resetsAt=WEEKLY.timestamp()
    )
    assert classify(of_json_rpc(answer), NOW, UTC).until == WEEKLY


def test_a_field_that_has_just_passed_goes_before_a_text_that_may_be_tomorrows() -> None:
    report = Report("rate_limit", 429, NOW, ("You've hit your limit · resets 10am (UTC)",))
    for late in (0, 1, 60, 900, 1000, 3000):
        found = classify(report, NOW + timedelta(seconds=late), UTC)
        assert (found.kind, found.until, found.is_dated) == (LIMIT, NOW, True)


def test_the_reset_of_a_limit_is_not_the_end_of_an_outage() -> None:
    report = Report("overloaded_error", 529, WEEKLY, ("Overloaded",))
    assert classify(report, NOW).until is None


def test_a_run_that_ended_well_did_not_fail(tmp_path: Path) -> None:
    assert of_run(ran(tmp_path, "text", [], ("429 Too Many Requests",), 0), {}) is None


def test_what_the_model_says_about_limits_is_no_limit(tmp_path: Path) -> None:
    """The agents of a collaboration about rate limits talk about nothing else."""
    content = [{"type": "text", "text": "Answer 429 Too Many Requests, and 401 without a login."}]
    said = [{"type": "assistant", "message": {"id": "m", "content": content}}]
    assert failure_of(ran(tmp_path, "claude", said, (), 3), "claude") == (AGENT, None)


def test_a_program_that_was_ended_while_it_retried_did_not_reach_its_service(
    tmp_path: Path,
) -> None:
    retry = {"type": "system", "subtype": "api_retry", "error": "no answer", "attempt": 4}
    assert failure_of(ran(tmp_path, "claude", [retry], (), 143), "claude") == (SERVICE, None)


def test_the_error_of_a_program_is_no_refusal_of_the_protocol(tmp_path: Path) -> None:
    run = ran(tmp_path, "gemini", gemini("models/x-9 is not found"), (GEMINI_404,), 1)
    assert run.refusals == ()


@given(st.dictionaries(st.text(), st.none() | st.text() | st.integers() | st.dictionaries(
    st.sampled_from(["codexErrorInfo", "errorKind", "details", "message"]),
    st.none() | st.integers() | st.text() | st.lists(st.text()))))  # fmt: skip
def test_no_error_leads_astray(error: dict[str, Any]) -> None:
    assert isinstance(classify(of_json_rpc(error), NOW), Failure)
