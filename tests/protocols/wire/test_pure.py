"""What a stranger sends is taken apart or refused with one clear line, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.protocols.wire.network import links
from acp_core.protocols.wire.schema import basics, bodies
from acp_core.protocols.wire.schema.basics import (
    STATUS,
    TERMINAL,
    Code,
    TaskState,
    WireError,
    decode,
    decode_object,
    encode,
    outside,
    time_of,
    too_deep,
)
from acp_core.protocols.wire.schema.bodies import check_parts, parts_of, shown_text
from acp_core.protocols.wire.schema.observed import PeerReport, Task
from acp_core.protocols.wire.state import resumed, steps, task_state

STATES = {state.value for state in TaskState}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def refused(call: Any, *arguments: Any) -> WireError:
    with pytest.raises(WireError) as caught:
        call(*arguments)
    envelope = caught.value.envelope()
    assert envelope["ok"] is False
    assert envelope["error"] == envelope["message"]
    assert time_of(envelope["ts"]) is not None
    return caught.value


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"nul", b"\xff\xfe", b"[1,]", b'{"a":NaN}', b'{"a":1e999}', b"Infinity",
        b'{"a":"\\ud800"}', b"[" * 65 + b"]" * 65, b"[" * 200_000, b"9" * 5000, b'\xef\xbb\xbf{}',
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused(body: bytes) -> None:
    assert refused(decode, body).status == 400


def test_what_is_json_is_taken_as_it_is() -> None:
    assert decode(b"[" * 64 + b"]" * 64)
    assert decode('{"a":"\\ud83d\\ude00"}') == {"a": "😀"}
    assert decode_object(b" ", empty=True) == {}
    assert refused(decode_object, b"[1]").code is Code.INVALID


@given(JSON)
def test_json_survives_coding_and_decoding(value: Any) -> None:
    try:
        data = encode(value)
    except UnicodeEncodeError:  # a lone surrogate, which decoding would not let in
        return
    if not too_deep(value):
        assert decode(data) == value


@given(JSON)
def test_no_body_does_more_than_be_refused(value: Any) -> None:
    for body in (value, {"parts": value}, {"parts": [value], "role": "user"}, {"text": value}):
        if isinstance(body, dict):
            try:
                bodies.draft(body)
            except WireError as refusal:
                assert refusal.status == 400
    bodies.read_card(value)
    shown_text(value)


@pytest.mark.parametrize(
    "body",
    [
        {"parts": [{"type": "text", "content": "x"}]},
        {"parts": [{"type": "text", "content": "x"}], "role": "system"},
        {"parts": [{"type": "text", "content": "x"}], "role": ["user"]},
        {"text": "x", "role": ""},
        {"role": "user"},
        {"role": "user", "parts": []},
        {"role": "user", "parts": "abc"},
        {"role": "user", "parts": ["a"]},
        {"role": "user", "parts": [{"type": "text"}]},
        {"role": "user", "parts": [{"type": "data"}]},
        {"role": "user", "parts": [{"type": ["text"], "content": "x"}]},
        {"role": "user", "parts": [{"type": "video", "url": "http://x/"}]},
        {"text": "x", "message_id": 5},
        {"text": "x", "message_id": ""},
        {"text": "x", "message_id": "a" * 257},
        {"text": "x", "task_id": "a/b"},
        {"text": "x", "timeout": "abc"},
        {"text": "x", "timeout": -1},
        {"text": "x", "sync": "yes"},
    ],
)
def test_a_message_that_is_not_one(body: dict[str, Any]) -> None:
    assert refused(bodies.draft, body).code is Code.INVALID


def test_the_short_form_is_a_text_of_a_user() -> None:
    draft = bodies.draft({"text": "hello", "unknown": [1]})
    assert (draft.role, draft.parts) == ("user", [{"type": "text", "content": "hello"}])
    assert bodies.draft({"parts": draft.parts, "role": "agent"}).role == "agent"


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "ftp://x/y", "javascript:alert(1)", "http://", "https:///x", "/x", "",
        "http://a b/", "http://x/\n", "http://[::1", "http://x:99999/", 5, None,
    ],
)  # fmt: skip
def test_a_file_is_a_web_address(url: Any) -> None:
    refused(check_parts, [{"type": "file", "url": url}])


def test_parts_pass_unchanged() -> None:
    parts = [
        {"type": "text", "content": "", "more": 1},
        {"type": "file", "url": "https://example.com/report.pdf", "media_type": "application/pdf"},
        {"type": "file", "url": "http://[::1]:8000/x"},
        {"type": "data", "content": None},
    ]
    assert check_parts(parts) is parts
    assert parts_of({"content": "x"}) == [{"type": "text", "content": "x"}]
    assert (
        shown_text(parts)
        == "[file https://example.com/report.pdf] [file http://[::1]:8000/x] [data null]"
    )


@pytest.mark.parametrize(
    ("text", "websocket"),
    [
        ("acp://127.0.0.1:7801/tok_1", "ws://127.0.0.1:7801/tok_1"),
        ("acp://host/tok_1", "ws://host:7801/tok_1"),
        ("acp://[::1]:7801//tok_1/", "ws://[::1]:7801/tok_1"),
    ],
)
def test_a_link_leads_to_a_websocket(text: str, websocket: str) -> None:
    link = links.parse(text)
    assert link.websocket == websocket
    assert links.parse(str(link)) == link
    assert link.token not in link.safe


@pytest.mark.parametrize(
    "text",
    [
        "", "acp://", "acp://host", "acp://host:x/t", "acp://host:70000/t", "acp://host:0/t",
        "http://host/t", "acp://u@host/t", "acp://host/t?x=1", "acp://host/a/b", "acp://ho st/t",
        "acp://[::1/t", "acp://host/t\x1b", "acp://hést/t", "acp://-x/t",
    ],
)  # fmt: skip
def test_what_is_no_link(text: str) -> None:
    with pytest.raises(links.LinkError):
        links.parse(text)


@given(st.text(max_size=40).map("acp://".__add__))
def test_no_link_does_more_than_be_refused(text: str) -> None:
    try:
        link = links.parse(text)
    except links.LinkError:
        return
    assert links.parse(str(link)) == link


def test_only_an_error_about_a_message_names_it() -> None:
    assert "failed_message_id" in WireError(Code.TOO_LARGE, "x", failed="m").envelope()
    assert "failed_message_id" not in WireError(Code.INVALID, "x", failed="m").envelope()
    assert {STATUS[code] for code in Code} == {503, 413, 404, 400, 408, 500, 429, 401, 403}


def test_flags_from_outside_are_taken_off() -> None:
    assert outside({"a": 1, "_ed25519_verified": True}) == {"a": 1}


ALLOWED = {
    ("submitted", "working"), ("submitted", "completed"), ("submitted", "failed"),
    ("submitted", "input_required"), ("submitted", "canceled"), ("working", "completed"),
    ("working", "failed"), ("working", "input_required"), ("working", "canceled"),
    ("input_required", "working"), ("input_required", "canceled"),
}  # fmt: skip


@pytest.mark.parametrize("current", TaskState)
@pytest.mark.parametrize("wanted", TaskState)
def test_the_transitions_of_a_task(current: TaskState, wanted: TaskState) -> None:
    if current is wanted:
        assert steps(current, wanted) == ()
    elif (current.value, wanted.value) in ALLOWED:
        way = steps(current, wanted)
        assert way[-1] is wanted
        assert TaskState.WORKING in (current, *way) or wanted is TaskState.CANCELED
    else:
        assert refused(steps, current, wanted).code is Code.INVALID


def test_only_a_task_that_waits_for_input_is_continued() -> None:
    assert resumed(TaskState.INPUT_REQUIRED) is TaskState.WORKING
    for state in set(TaskState) - {TaskState.INPUT_REQUIRED}:
        refused(resumed, state)
    assert {state.value for state in TERMINAL} == {"completed", "failed", "canceled"}
    for name in ("bogus", None, ["working"], 1):
        refused(task_state, name)


def test_a_card_tells_what_the_specification_asks_for() -> None:
    made = bodies.make_card(
        bodies.About(name="A", instance_id="i", skills=bodies.skill_from_option("a, b,a"))
    )
    assert made["acp_version"] == "0.8"
    assert [skill["id"] for skill in made["skills"]] == ["a", "b"]
    assert made["trust"] == {"scheme": "none", "enabled": False}
    assert made["capabilities"]["max_msg_bytes"] == 1_048_576
    json.dumps(made)
    peer = bodies.read_card({"self": made})
    assert (peer.name, peer.identity, peer.acks) == ("A", "instance:i", True)


def test_an_older_card_is_read_too() -> None:
    peer = bodies.read_card(
        {"name": "Old", "acp_version": "0.5", "future": 1, "capabilities": {"x": 1}}
    )
    assert (peer.name, peer.identity, peer.acks, peer.max_message) == ("Old", "", False, 65536)


def test_skills_are_found_by_what_they_are_called() -> None:
    known = [
        {"id": "summarize", "name": "summarize", "description": "shorten a text"},
        {"id": "translate", "name": "Translate", "tags": ["language"]},
    ]
    assert [s["id"] for s in bodies.find_skills(known, "summarize", 5)] == ["summarize"]
    assert bodies.find_skills(known, "sumarize", 5)[0]["match_score"] < 1
    assert [s["id"] for s in bodies.find_skills(known, "language", 5)] == ["translate"]
    assert [s["id"] for s in bodies.find_skills(known, "shorten text", 5)] == ["summarize"]
    assert len(bodies.find_skills(known, "", 5)) == 2
    assert bodies.find_skills(known, "cook", 5) == []
    small = {"constraints": {"file_size_bytes": 10**9}}
    assert bodies.support(known, "translate", "A", small, 1000)["support_level"] == "partial"
    assert bodies.support(known, "cook", "A", {}, 1000)["support_level"] == "unsupported"


@given(JSON)
def test_whatever_stands_for_a_task_or_a_peer_can_be_shown(value: Any) -> None:
    fields = ("id", "status", "direction", "updated_at", "error", "input", "artifact", "peer_id")
    for made in (value, dict.fromkeys(fields, value), {"input": {"parts": [value]}}):
        task = basics.read_as(Task, made)
        assert "\n" not in task.sentence
        assert task.is_whole is (task.raw.get("id") == task.id != "" and task.status in STATES)
        assert task.raw == (made if isinstance(made, dict) else {})
    peer = basics.read_as(PeerReport, dict.fromkeys(("id", "name", "queued", "connected"), value))
    assert peer.name
    assert peer.queued >= 0


def test_what_is_not_of_its_kind_in_a_task_is_as_if_it_were_absent() -> None:
    task = basics.read_as(
        Task,
        {"id": "t1", "status": "working", "peer_id": 7, "updated_at": [], "input": "do it",
         "artifact": {"parts": [{"type": "text", "content": "done"}]}, "theirs": {"a": 1}},
    )  # fmt: skip
    assert (task.peer_id, task.since, task.about) == ("", None, "")
    assert task.artifact is not None
    assert task.artifact.text == "done"
    assert task.raw["theirs"] == {"a": 1}


@pytest.mark.parametrize(
    ("given", "wanted"), [(0, 0), (2**63 - 1, 2**63 - 1), (2**63, None), (-1, None), (True, None),
                          (1.0, None), ("1", None)],
)  # fmt: skip
def test_a_number_counts_only_where_sqlite_can_hold_it(given: object, wanted: int | None) -> None:
    assert basics.count(given) == wanted
