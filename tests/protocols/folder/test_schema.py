"""Lines of the log and protocol.json: read whatever stands there, written as every tool does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import BadLine, Entry

EVENT = {
    "seq": 2,
    "from": "server",
    "event": "proposal_submitted",
    "at": "2026-01-02T03:04:05Z",
    "summary": "Submitted it",
    "doc": "proposal.md",
    "reply_to": 1,
}


def parse(value: dict[str, Any] | bytes, line: int = 2) -> Entry | BadLine | None:
    raw = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
    return records.parse_line(raw, line)


def entry(**changes: Any) -> Entry:
    changed = {key: value for key, value in (EVENT | changes).items() if value is not ...}
    found = parse(changed)
    assert isinstance(found, Entry), found
    return found


def bad(raw: bytes) -> BadLine:
    found = parse(raw)
    assert isinstance(found, BadLine), found
    return found


TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
MAYBE = st.none() | TEXT


@given(
    st.integers(1, records.MAX_SEQ), TEXT, TEXT, TEXT, TEXT, MAYBE,
    st.none() | st.integers(1, records.MAX_SEQ), MAYBE, MAYBE, MAYBE,
)  # fmt: skip
def test_what_is_written_is_read_again(
    seq: int, sender: str, event: str, at: str, summary: str, doc: str | None,
    reply_to: int | None, role: str | None, sha256: str | None, key: str | None,
) -> None:  # fmt: skip
    fields: dict[str, object] = {
        "seq": seq, "from": sender, "event": event, "at": at, "summary": summary, "doc": doc,
        "reply_to": reply_to, "role": role, "sha256": sha256, "key": key,
    }  # fmt: skip
    raw = records.encode_event(fields)
    assert raw.endswith(b"\n") and len(raw.decode().splitlines()) == 1
    assert json.loads(raw) == {name: value for name, value in fields.items() if value is not None}
    wanted = (seq, sender, event, at, summary, doc, reply_to, role, sha256, key)
    assert parse(raw[:-1], 9) == Entry(9, *wanted)
    assert list(records.parse_lines(raw + b"half", 9)) == [Entry(9, *wanted)]


@given(
    st.dictionaries(
        st.sampled_from([*EVENT, "role", "x"]),
        st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.lists(TEXT),
        max_size=9,
    )
)
def test_the_two_ways_of_reading_agree(value: dict[str, Any]) -> None:
    """A line in the usual form takes a short cut; white space makes it take the long way."""
    compact = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    assert parse(compact) == parse(compact + b" ")


@given(st.binary(max_size=60))
def test_no_bytes_are_too_much(raw: bytes) -> None:
    found = records.parse_line(raw, 1)
    assert found is None or isinstance(found, Entry | BadLine)


def test_a_line_as_every_tool_writes_it() -> None:
    assert records.encode_event(dict(EVENT)) == (
        b'{"seq":2,"from":"server","event":"proposal_submitted","at":"2026-01-02T03:04:05Z",'
        b'"summary":"Submitted it","doc":"proposal.md","reply_to":1}\n'
    )
    assert (
        records.encode_event({"summary": "Zoë 你好", "seq": 1})
        == '{"seq":1,"summary":"Zoë 你好"}\n'.encode()
    )


def test_what_other_readers_take_for_line_ends_is_written_as_escapes() -> None:
    raw = records.encode_event({"seq": 1, "summary": "a\u2028b\u2029c\x85d\x0be"})
    assert raw == b'{"seq":1,"summary":"a\\u2028b\\u2029c\\u0085d\\u000be"}\n'
    for character in "\u2028\u2029\x85":
        found = bad(json.dumps(EVENT | {"summary": character}, ensure_ascii=False).encode())
        assert found.code == "ACP204"


@pytest.mark.parametrize("raw", [b"", b"  \t", b"\r"])
def test_blank_lines_are_allowed(raw: bytes) -> None:
    assert parse(raw) is None


def test_crlf_is_allowed() -> None:
    assert parse(json.dumps(EVENT).encode() + b"\r") == parse(EVENT)


@pytest.mark.parametrize(
    ("raw", "code", "words"),
    [
        (b"{", "ACP201", "events.jsonl line 2: invalid JSON: Expecting property name"),
        (b'{"a":1}{"b":2}', "ACP201", "events.jsonl line 2: invalid JSON: Extra data"),
        (b"\xff\xfe", "ACP201", "events.jsonl line 2: invalid JSON: not UTF-8 at byte 1"),
        (b"\xef\xbb\xbf{}", "ACP201", "events.jsonl line 2: invalid JSON"),
        (b'{"summary":"a\x1cb"}', "ACP201", "events.jsonl line 2: invalid JSON: Invalid control"),
        (b'{"seq":' + b"9" * 5_000 + b"}", "ACP201", "events.jsonl line 2: invalid JSON: Exceeds"),
        (b"[]", "ACP202", "events.jsonl line 2: event must be an object"),
        (b"null", "ACP202", "events.jsonl line 2: event must be an object"),
        (b"[" * 100 + b"]" * 100, "ACP203", "events.jsonl line 2: nested deeper than 32"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "ACP203", "events.jsonl line 2: nested deeper"),
        (
            b"{" + b" " * records.MAX_LINE,
            "ACP203",
            "events.jsonl line 2: longer than 1048576 bytes",
        ),
    ],
)
def test_a_line_that_is_no_event_says_why(raw: bytes, code: str, words: str) -> None:
    found = bad(raw)
    assert found.code == code
    assert found.text.startswith(words)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"seq": ...}, "ACP210"), ({"from": ...}, "ACP210"), ({"event": ...}, "ACP210"),
        ({"at": ...}, "ACP210"), ({"summary": ...}, "ACP210"),
        ({"from": ["b"]}, "ACP212"), ({"event": ["x"]}, "ACP211"), ({"at": 5}, "ACP214"),
        ({"reply_to": True}, "ACP213"), ({"reply_to": 1.0}, "ACP213"), ({"reply_to": "1"}, "ACP213"),
        ({"reply_to": 0}, "ACP213"), ({"reply_to": -1}, "ACP213"), ({"reply_to": 1 << 60}, "ACP213"),
        ({"summary": 5}, "ACP902"), ({"doc": 5}, "ACP902"),
    ],
)  # fmt: skip
def test_a_field_of_a_wrong_kind_is_a_fault(changes: dict[str, Any], code: str) -> None:
    assert [fault.code for fault in entry(**changes).faults] == [code]


@pytest.mark.parametrize("seq", [True, 1.0, "1", None, 0, -3, [], {}, 1 << 60])
def test_a_seq_of_another_kind_is_none(seq: object) -> None:
    found = entry(seq=seq)
    assert found.seq is None
    assert found.name == repr(seq)


def test_a_key_that_stands_twice_is_noticed() -> None:
    found = parse(b'{"seq":2,"seq":3,"from":"a","event":"b","at":"c","summary":"d"}')
    assert isinstance(found, Entry)
    assert (found.seq, [fault.code for fault in found.faults]) == (3, ["ACP901"])


def test_protocol_json_as_every_tool_writes_it() -> None:
    assert (
        records.encode_protocol({"b": ["Zoë"], "a": 1})
        == '{\n  "a": 1,\n  "b": [\n    "Zoë"\n  ]\n}\n'.encode()
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "Expecting value"),
        (b'{"a": 1', "Expecting"),
        (b"[]", "must be an object"),
        (b"\xff", "not UTF-8 at byte 1"),
        (b"[" * 100_000, "nested deeper than 32"),
        (b'{"a":' + b"1" * 5_000 + b"}", "Exceeds the limit"),
        (b" " * (records.MAX_PROTOCOL + 1), "larger than 4194304 bytes"),
    ],
)
def test_a_damaged_protocol_json_says_why(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        records.decode_protocol(data)


def test_the_dialect_follows_from_the_schema_version() -> None:
    assert records.dialect_of({}) == "v1"
    assert records.dialect_of({"schemaVersion": 2}) == "v2"
    for version in (1, 3, "2", 2.0, True, None, [2]):
        assert records.dialect_of({"schemaVersion": version}) == "unknown"


def test_participants_are_objects_or_texts_each_once() -> None:
    listed = [{"id": "a"}, "b", {"id": "a"}, {"name": "c"}, 5, None, "", {"id": 7}, "c - seq 9"]
    assert records.participant_ids({"participants": listed}) == ["a", "b", "c - seq 9"]
    for odd in (None, 5, "abc", {}):
        assert records.participant_ids({"participants": odd}) == []
    many = {"participants": [f"p{n}" for n in range(200_000)]}
    assert len(records.participant_ids(many)) == records.MAX_PARTICIPANTS


def test_gates_of_either_dialect() -> None:
    assert records.gate_texts({"completionGates": ["a", {"source": "x", "text": "b"}, 5]}) == [
        "a",
        "b",
    ]
    assert records.gate_texts({"completionGates": {"a": 1}}) == ["a"]
    assert records.gate_texts({"completionGates": 5}) == []


def test_times_are_understood_or_not() -> None:
    for at in ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05", "2026-01-02T12:04:05+09:00"):
        moment = records.parse_time(at)
        assert moment is not None and records.format_time(moment) == "2026-01-02T03:04:05Z"
    for at in ("", "yesterday", "9999-12-31T23:59:59-23:00", "2026-13-01T00:00:00Z", "٢٠٢٦"):
        assert records.parse_time(at) is None


def test_ids_that_init_accepts() -> None:
    for name in ("a", "agent-a", "Zoë", "_x", "a.b", "测试", "a" * 64):
        assert records.is_participant_id(name), name
    for name in ("", "-a", ".a", "a b", "a\n", "a" * 65, "../x", "a/b", "a\x1b"):
        assert not records.is_participant_id(name), name
