"""Many lines taken at one go lead to the very same as each line taken for itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from acp_core.files.journal import Lines, blocks
from acp_core.model.past import Mark
from acp_core.protocols.folder.read.log import History
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import V1, V2, Entry
from acp_core.protocols.folder.state import Machine
from acp_core.protocols.folder.view.timeline import EventLog

PEOPLE = ("ana", "ben", "zoë")
ODD = (
    b"", b"\r", b"  ", b"{", b"[1]", b'{"seq":1}', b"\xff\xfe", b'"text"', b"{}" * 40,
    b'{"seq":2,"seq":2,"from":"ana","event":"blocked","at":"x","summary":"s","reply_to":1}',
)  # fmt: skip
KINDS = (
    "line", "seq", "back", "event", "summary", "at", "doc", "no reply", "reply", "key", "form",
    "breaker", "return", "none", "control", "quote", "newline",
)  # fmt: skip
SUMMARIES = ("Done", "…", 'a "b" \\', " ", "", " spaced", "x" * 2_050, "\n", "\u007f", None, 7)
UNESCAPED = {"control": b"\t", "quote": b'"', "newline": b"\n"}  # which nothing may be in a text
TIMES = ("2026-02-30T10:00:00Z", "x", "2026-02-28T10:00", "2026-02-28T24:00:00Z", "", 5)
ANY = [(sender, event) for sender in (*PEOPLE, "nobody") for event in records.EVENTS_V2]


def told(history: History) -> dict[str, Any]:
    """Everything that a history says."""
    history.was_ever(("nowhere", None, []))  # here and below: all is derived by now
    assert len(history.machine.stays) == len(history.machine.starts)
    check = dict(vars(history.check))
    check.pop("_last_time" if check["last_at"] else "", None)  # read again where it is wanted
    machine = dict(vars(history.machine))
    machine["waits"] = list(history.machine.waits.items())  # their order counts too
    return {
        "entries": list(history.entries),
        "lines": [history.entries.line_of(i) for i in range(len(history.entries))],
        "machine": machine,
        "check": check,
        "problems": history.problems,
        "reviews": history.reviews,
        "deliverables": history.deliverables,
        "latest": history.latest,
        "said": history.said,
        "recent": [tuple(state) for state in history.recent],
        "states": history._states,
    }


def line_by_line(data: bytes, dialect: str) -> History:
    history = History(PEOPLE, dialect)
    history.feed(records.parse_lines(data))
    return history


def a_log(chance: Random, dialect: str, kind: str) -> bytes:
    """Mostly what may happen, in the usual form; in between, one kind of other lines."""
    machine = Machine(PEOPLE, dialect)
    lines: list[bytes] = []
    seq, second = 0, 0
    for _ in range(chance.randrange(8, 50)):
        odd = kind if seq and not chance.randrange(12) else ""
        if odd == "line":
            lines.append(chance.choice(ODD))
            continue
        seq += chance.choice((-1, 0, 2)) if odd == "seq" else 1
        second += -chance.randrange(8) if odd == "back" else chance.randrange(3)
        said = ANY if odd == "event" else _legal(machine, max(seq, 1)) or ANY
        sender, event = chance.choice(said)
        fields: dict[str, Any] = {
            "seq": seq,
            "from": sender,
            "event": event,
            "at": f"2026-02-28T10:{second // 60 % 60:02}:{second % 60:02}Z",
            "summary": chance.choice(SUMMARIES) if odd == "summary" else "Done.",
            "doc": chance.choice(("review.md", None)),
        }
        if odd == "at":
            fields["at"] = chance.choice(TIMES)
        if odd == "doc":
            fields["doc"] = chance.choice(("../x", "other.md", "", 5, "~"))
        if event == "completed":
            fields["doc"] = "conclusion.md"
        if seq > 1 and odd != "no reply":
            fields["reply_to"] = seq - 1
        if odd == "reply":
            fields["reply_to"] = chance.choice((0, 1, seq, seq + 1))
        if event.startswith("deliverable"):
            fields["role"] = chance.choice(("primary", "supporting"))
        if odd == "key":
            fields["key"] = "k1"
        raw = json.dumps(fields).encode() if odd == "form" else records.encode_event(fields)[:-1]
        if odd == "breaker":
            raw = raw.replace(b"Done", "Done\u2028".encode())
        if odd in UNESCAPED:
            raw = raw.replace(b"Done", b"Do" + UNESCAPED[odd] + b"ne")
        lines.append(raw + b"\r" if odd == "return" else raw)
        parsed = records.parse_line(raw, len(lines)) if b"\n" not in raw else None
        if isinstance(parsed, records.Entry):
            machine.feed(parsed)
    return b"\n".join([*lines, b""])


def _legal(machine: Machine, seq: int) -> list[tuple[str, str]]:
    found = [
        (sender, event)
        for sender in PEOPLE
        for event in records.EVENTS_V2
        if not machine.problems(
            records.Entry(1, seq, sender, event, "", "-", "conclusion.md", 1, "primary", None, None)
        )
    ]
    rare = ("blocked", "completed", *records.DELIVERABLE_EVENTS)
    usual = [each for each in found if each[1] not in rare]
    return usual or [each for each in found if each[1] == "deliverable_drafted"] or found


def cut(data: bytes, places: list[int]) -> Iterator[Lines]:
    """The lines in blocks that end at these lines."""
    lines = data.split(b"\n")[:-1]
    start = 0
    for end in [*sorted(place for place in places if place < len(lines)), len(lines)]:
        if end > start:
            part = lines[start:end]
            yield Lines(b"".join(line + b"\n" for line in part), start + 1)
            start = end


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", [V1, V2])
def test_blocks_say_what_single_lines_say(dialect: str, kind: str) -> None:
    chance = Random(f"{dialect} {kind}")
    for _ in range(40):
        log = a_log(chance, dialect, kind)
        one = line_by_line(log, dialect)
        history = History(PEOPLE, dialect)
        for block in cut(log, [chance.randrange(60) for _ in range(chance.randrange(4))]):
            history.read(block)
        assert told(history) == told(one), log.decode(errors="replace")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", [V1, V2])
def test_outlines_say_what_the_events_say_but_for_summaries(dialect: str, kind: str) -> None:
    """Figures of the past are worked out of outlines; no event is made or kept for them."""
    chance = Random(f"outlines {dialect} {kind}")
    for _ in range(20):
        log = a_log(chance, dialect, kind)
        history = History(PEOPLE, dialect)
        for block in cut(log, [chance.randrange(60) for _ in range(chance.randrange(4))]):
            history.read(block)
        outlines = list(history.entries.outlines())
        whole = list(line_by_line(log, dialect).entries)
        assert [_outline(each) for each in outlines] == [_outline(each) for each in whole]
        marks = list(EventLog(history.entries, {}, {}).marks())
        events = EventLog(line_by_line(log, dialect).entries, {}, {})
        assert marks == [Mark(e.id, e.source, e.actor, e.kind, e.at) for e in events]


def _outline(entry: Entry) -> Entry:
    return entry._replace(summary="", key=None, doc=entry.doc or None)


@pytest.mark.parametrize("kind", KINDS)
def test_other_participants_change_what_a_log_says(kind: str) -> None:
    chance = Random(kind)
    for _ in range(10):
        log = a_log(chance, V1, kind)
        history = line_by_line(log, V1)
        assert told(history.again(PEOPLE, V1)) == told(history) == told(history.copy())
        fewer = History(PEOPLE[:2], V1)
        fewer.feed(records.parse_lines(log))
        assert told(history.again(PEOPLE[:2], V1)) == told(fewer)


def rounds(events: int) -> bytes:
    """A log of review rounds."""
    at = "2026-02-28T10:00:00Z"
    lines = [b'{"seq":1,"from":"ana","event":"initialized","at":"%b","summary":"-"}' % at.encode()]
    steps = (
        ("ana", "proposal_submitted"),
        ("ben", "review_submitted"),
        ("zoë", "review_submitted"),
    )
    for seq in range(2, events + 1):
        sender, event = steps[(seq - 2) % 3]
        fields: dict[str, object] = {
            "seq": seq, "from": sender, "event": event, "at": at, "summary": f"Nr. {seq}",
            "doc": "review.md", "reply_to": seq - 1,
        }  # fmt: skip
        lines.append(records.encode_event(fields)[:-1])
    return b"".join(line + b"\n" for line in lines)


def test_a_long_log_in_blocks_is_the_same_log() -> None:
    log = rounds(20_000)
    history = History(PEOPLE, V1)
    parts = list(blocks(log))
    assert len(parts) > 1 and b"".join(part.data for part in parts) == log
    for block in parts:
        history.read(block)
    assert told(history) == told(line_by_line(log, V1))
    assert not history.findings and history.machine.round == 6_667


def test_walking_through_outlines_makes_no_event_and_cuts_nothing_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A log of a gigabyte is gone through in the memory of its bytes."""
    history = History(PEOPLE, V1)
    for block in blocks(rounds(5_000)):
        history.read(block)
    monkeypatch.setattr("acp_core.protocols.folder.read.log.parse_line", None)
    assert [entry.seq for entry in history.entries.outlines()] == list(range(1, 5_001))
    pieces = [piece for piece in history.entries._pieces if not isinstance(piece, list)]
    assert any(isinstance(piece._held, bytes) for piece in pieces)


def test_hardly_an_event_is_made_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    parse = records.parse_line
    monkeypatch.setattr(
        "acp_core.protocols.folder.read.log.parse_line",
        lambda raw, line: made.append(line) or parse(raw, line),  # type: ignore[func-returns-value]
    )
    history = History(PEOPLE, V1)
    for block in blocks(rounds(5_000)):
        history.read(block)
    assert made == [1]
    assert history.last and history.last.seq == 5_000
    assert history.entries[-1] is history.last
    assert made == [1, 5_000]


@pytest.mark.parametrize("key", ["k7", 'k"7', "k\\7", "ké7", "7", ""])
def test_an_event_is_found_by_its_key_and_few_others_are_made(key: str) -> None:
    lines = rounds(2_000).splitlines(keepends=True)
    for place in (700, 1_500):
        lines[place] = records.encode_event({**json.loads(lines[place]), "key": key})
    lines[1_000] = lines[1_000].replace(b'"Nr. 1001"', json.dumps("k7 é\n").encode())
    history = History(PEOPLE, V1)
    for block in cut(b"".join(lines), [100, 1_200]):
        history.read(block)
    found = [*history.entries.naming(key)]
    assert [entry.seq for entry in found if entry.key == key] == [701, 1_501]
    assert len(found) <= 10 or key in ("7", "")
    assert [*history.entries.naming(key)] == found  # the lines are taken apart by now


def test_protocol_json_that_lags_far_behind_is_known_again() -> None:
    history = History(PEOPLE, V1)
    for block in blocks(rounds(100)):
        history.read(block)
    assert history.was_ever(("drafting", "ana", ["ana"]))
    assert history.was_ever(("reviewing", "ana", ["zoë"]))
    assert not history.was_ever(("completed", "ana", []))
    assert not history.was_ever(("drafting", "ana", [{}]))  # type: ignore[list-item]


def test_more_states_than_are_remembered_are_walked_through() -> None:
    people = tuple(f"p{number:02}" for number in range(14))
    history = History(people, V1)
    at, lines = "2026-02-28T10:00:00Z", []

    def add(sender: str, event: str) -> None:
        fields: dict[str, object] = {
            "seq": len(lines) + 1, "from": sender, "event": event, "at": at, "summary": "-",
            "reply_to": len(lines) or None,
        }  # fmt: skip
        lines.append(records.encode_event(fields))

    add("p00", "initialized")
    for number in range(500):  # each round in another order
        add("p00", "proposal_submitted")
        order = [people[1 + (number * 7 + place * (1 + number % 5)) % 13] for place in range(13)]
        for sender in dict.fromkeys([*reversed(order), *people[1:]]):
            add(sender, "review_submitted")
    first_wait = ["p01"]
    for block in blocks(b"".join(lines)):
        history.read(block)
    alone = History(people, V1)
    alone.feed(records.parse_lines(b"".join(lines)))
    assert told(history) | {"states": 0} == told(alone) | {"states": 0}
    assert history.was_ever(("drafting", "p00", ["p00"]))
    assert history.was_ever(("reviewing", "p00", first_wait)) == alone.was_ever(
        ("reviewing", "p00", first_wait)
    )
