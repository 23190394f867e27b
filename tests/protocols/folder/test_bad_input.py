"""Whatever stands in the folder: findings, never a traceback, never a hang, little memory."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import tracemalloc
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_core.files import reading
from acp_core.model import Severity, Snapshot, SourceState, Verdict
from acp_core.protocols.folder.read.detect import detect
from acp_core.protocols.folder.rules.checks import validate
from acp_core.protocols.folder.schema import records
from tests.protocols.folder.acting import open_folder
from tests.protocols.folder.support import (
    START,
    age,
    change_protocol,
    extend,
    line_of,
    make_v1,
    make_v2,
    say,
)

Damage = Callable[[Path], object]
NOW = datetime.now(UTC)
EVENT: dict[str, Any] = {
    "seq": 3,
    "from": "reader",
    "event": "blocked",
    "at": "2026-01-02T04:04:05Z",
    "summary": "x",
    "reply_to": 2,
}


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """A test that hangs must fail, not stop everything."""

    def ring(*_: object) -> None:
        raise TimeoutError("this took longer than 60 s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def put(name: str, data: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(data)


def add(data: bytes, name: str = "events.jsonl") -> Damage:
    def damage(folder: Path) -> None:
        extend(folder, data, name)

    return damage


def event(**changes: Any) -> Damage:
    """Append an event that says that reader is blocked, with some fields changed."""

    def damage(folder: Path) -> None:
        add(line_of(EVENT | changes))(folder)
        change_protocol(folder, currentPhase="blocked", waitingFor=[])

    return damage


def first(**changes: Any) -> Damage:
    def damage(folder: Path) -> None:
        lines = (folder / "events.jsonl").read_bytes().splitlines()
        lines[0] = line_of(json.loads(lines[0]) | changes)[:-1]
        put("events.jsonl", b"\n".join(lines) + b"\n")(folder)

    return damage


def instead(name: str, make: Callable[[Path], object]) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return damage


def long_line(folder: Path) -> None:
    with (folder / "events.jsonl").open("ab") as file:
        file.truncate(file.tell() + 100_000_000)  # NUL bytes, but for the disk
        file.seek(0, os.SEEK_END)
        file.write(b"\n")


def returns_only(folder: Path) -> None:
    put("events.jsonl", (folder / "events.jsonl").read_bytes().replace(b"\n", b"\r"))(folder)


def outside(folder: Path) -> None:
    (folder / "review.md").rename(folder.parent / "review.md")
    (folder / "review.md").symlink_to(folder.parent / "review.md")


RAW = json.dumps(EVENT, separators=(",", ":"))
# what stands in the folder -> the verdict
BAD: dict[str, tuple[Damage, int]] = {
    "events: not UTF-8": (add(b'{"seq":3,"from":"\xff"}\n'), 2),
    "protocol: not UTF-8": (put("protocol.json", b'{"objective":"\xff"}'), 2),
    "readiness: not UTF-8": (put("readiness.md", b"- [blocking] \xff\n"), 2),
    "events: nested 5000 deep": (add(b"[" * 5_000 + b"]" * 5_000 + b"\n"), 2),
    "events: nested a million deep": (add(b"[" * 1_000_000 + b"\n"), 2),
    "events: objects nested 100000 deep": (add(b'{"a":' * 100_000 + b"\n"), 2),
    "protocol: nested 100000 deep": (put("protocol.json", b"[" * 100_000), 2),
    "protocol: objects nested deep": (put("protocol.json", b'{"a":' * 100_000), 2),
    "seq of 5000 digits": (add(RAW.replace('"seq":3', '"seq":' + "3" * 5_000).encode() + b"\n"), 2),
    "reply_to of 5000 digits": (add(RAW.replace(":2}", ":" + "2" * 5_000 + "}").encode() + b"\n"), 2),
    "review heading of 5000 digits": (add(b"## t - reader - seq " + b"9" * 5_000 + b"\n", "review.md"), 2),
    "from is an object": (event(**{"from": {"id": "reader"}}), 2),
    "from is a list": (event(**{"from": ["reader"]}), 2),
    "event is a list": (event(event=["blocked"]), 2),
    "event is an object": (event(event={}), 2),
    "seq is a list": (event(seq=[3]), 2),
    "seq is null": (event(seq=None), 2),
    "at beyond the calendar": (event(at="9999-12-31T23:59:59-23:00"), 2),
    "at of the year 10000": (event(at="10000-01-01T00:00:00Z"), 2),
    "events: a folder": (instead("events.jsonl", Path.mkdir), 2),
    "protocol: a folder": (instead("protocol.json", Path.mkdir), 2),
    "readiness: a folder": (instead("readiness.md", Path.mkdir), 2),
    "events: a pipe": (instead("events.jsonl", os.mkfifo), 2),
    "protocol: a pipe": (instead("protocol.json", os.mkfifo), 2),
    "conclusion: a pipe": (instead("conclusion.md", os.mkfifo), 2),
    "events: endless": (instead("events.jsonl", lambda p: p.symlink_to("/dev/zero")), 2),
    "protocol: endless": (instead("protocol.json", lambda p: p.symlink_to("/dev/zero")), 2),
    "review: endless": (instead("review.md", lambda p: p.symlink_to("/dev/zero")), 2),
    "README: endless": (instead("README.md", lambda p: p.symlink_to("/dev/zero")), 0),
    "proposal: a link to itself": (instead("proposal.md", lambda p: p.symlink_to(p)), 2),
    "proposal: a link to nothing": (instead("proposal.md", lambda p: p.symlink_to("nowhere")), 2),
    "protocol: a list": (put("protocol.json", b"[]"), 2),
    "protocol: null": (put("protocol.json", b"null"), 2),
    "protocol: empty": (put("protocol.json", b""), 2),
    "protocol: a tail left over": (add(b'  "x": 1\n}\n', "protocol.json"), 2),
    "completionGates is a number": (lambda f: change_protocol(f, completionGates=5), 2),
    "completionGates holds numbers": (lambda f: change_protocol(f, completionGates=[1, [2], "a"]), 2),
    "currentPhase is a list": (lambda f: change_protocol(f, currentPhase=["reviewing"]), 2),
    "currentPhase is an object": (lambda f: change_protocol(f, currentPhase={}), 2),
    "waitingFor holds numbers": (lambda f: change_protocol(f, waitingFor=[1, 2]), 2),
    "waitingFor is an object": (lambda f: change_protocol(f, waitingFor={"reader": 1}), 2),
    "proposalOwner is a list": (lambda f: change_protocol(f, proposalOwner=["server"]), 2),
    "participants is a number": (lambda f: change_protocol(f, participants=7), 2),
    "participants are anything": (lambda f: change_protocol(f, participants=[{}, [], 1, None, {"id": []}]), 2),
    "objective is an object": (lambda f: change_protocol(f, objective={"a": 1}), 2),
    "continues is anything": (lambda f: change_protocol(f, continues={"path": "a\0b"}, continued_by=[1]), 0),
    "schemaVersion is anything": (lambda f: change_protocol(f, schemaVersion={"a": [1]}), 2),
    "an event holds U+2028": (event(summary="a\u2028b"), 2),
    "an event holds U+2029": (event(summary="a\u2029b"), 2),
    "an event holds U+0085": (event(summary="a\x85b"), 2),
    "an event holds a raw VT": (add(RAW.replace('"x"', '"\x0b"').encode() + b"\n"), 2),
    "an event holds a raw FS": (add(RAW.replace('"x"', '"\x1c"').encode() + b"\n"), 2),
    "a tail of NUL": (add(b"\0" * 5_000), 2),
    "a byte order mark": (lambda f: put("events.jsonl", b"\xef\xbb\xbf" + (f / "events.jsonl").read_bytes())(f), 2),
    "an array": (add(b"[1,2]\n"), 2),
    "a fused line": (add((RAW + RAW + "\n").encode()), 2),
    "a heading of spaces": (add(b"\n##" + b" " * 200_000 + b"\n", "review.md"), 0),
    "a heading of dashes": (add(b"\n## " + b"a - " * 50_000 + b"\n", "review.md"), 0),
    "200 kB of blank lines": (add(b"\n" * 200_000, "readiness.md"), 0),
    "100 MB in one line": (long_line, 2),
    "the first seq is true": (first(seq=True), 2),
    "seq is a float": (event(seq=3.0), 2),
    "reply_to is true": (event(reply_to=True), 2),
    "reply_to is a float": (event(reply_to=1.0), 2),
    "reply_to is its own seq": (event(reply_to=3), 2),
    "the author takes no part": (event(**{"from": "ghost"}), 2),
    "the log is empty": (put("events.jsonl", b""), 2),
    "the log is blank": (put("events.jsonl", b"\n\n\n"), 2),
    "a gap of 10^18": (event(seq=10**18), 2),
    "a duplicate seq": (event(seq=2), 2),
    # what other tools accept
    "a key stands twice": (lambda f: (event()(f), put("events.jsonl", (f / "events.jsonl").read_bytes().replace(b'"summary":"x"', b'"summary":"y","summary":"x"'))(f)), 0),
    "NaN": (lambda f: event(extra=float("nan"))(f), 0),
    "a lone surrogate": (lambda f: (event()(f), put("events.jsonl", (f / "events.jsonl").read_bytes().replace(b'"x"', b'"\\ud800"'))(f)), 0),
    "the summary is a number": (event(summary=5), 0),
    "the summary is empty": (event(summary=""), 0),
    "doc leads out": (event(doc="../../etc/passwd"), 0),
    "doc is absolute": (event(doc="/etc/passwd"), 0),
    "at in another zone": (event(at="2026-01-02T14:04:05+09:00"), 0),
    "at in the year 9999": (event(at="9999-12-31T23:59:59Z"), 0),
    "lines end in carriage returns": (returns_only, 0),
    "a link leads out": (outside, 0),
    "completionGates is an object": (lambda f: change_protocol(f, completionGates={"a": 1}), 0),
    "a participant stands twice": (lambda f: change_protocol(f, participants=["server", "reader", "reviewer", "reader"]), 0),
    "escapes in an event": (event(summary="\x1b]52;c;x\x07[/x][@click=app.quit]q[/]"), 0),
}  # fmt: skip


def strings(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a Snapshot that is shown, with its place."""
    if isinstance(value, str) and not isinstance(value, Enum):
        yield path, value
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if (type(value).__name__, field.name) not in RAW_FIELDS:
                yield from strings(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for each in value:
            yield from strings(each, path)


RAW_FIELDS = {("Snapshot", "key"), ("Document", "path"), ("Link", "location")}


BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def is_safe(text: str) -> bool:
    return all(unicodedata.category(c) not in ("Cc", "Cs", "Zl", "Zp") for c in text) and not (
        BIDI & set(text)
    )


def look(folder: Path) -> Snapshot:
    """What the dashboard would show after a while, everything in it looked at."""
    collaboration = open_folder(folder)
    collaboration.refresh(NOW)
    snapshot = collaboration.refresh(NOW + timedelta(seconds=10))
    assert collaboration.refresh(NOW + timedelta(seconds=11)) is snapshot
    for place, text in strings(snapshot):
        assert is_safe(text), (place, text)
    for shown in snapshot.documents:
        loaded = collaboration.load(shown.id)
        assert is_safe(loaded.text.replace("\n", "").replace("\t", "")), shown.id
        assert len(loaded.text) <= 4 << 20
    for each in snapshot.events:
        assert is_safe(collaboration.raw_event(each.id))
    assert collaboration.watched()
    return snapshot


@pytest.mark.parametrize(("damage", "verdict"), BAD.values(), ids=BAD)
def test_bad_input_is_judged_and_shown(folder: Path, damage: Damage, verdict: int) -> None:
    damage(folder)
    if (folder / "events.jsonl").is_file():
        age(folder)
    report = validate(folder)
    assert report.verdict == verdict, report.lines()
    assert all(line.isprintable() for line in (*report.lines(), *report.advice_lines()))
    assert detect(folder)
    snapshot = look(folder)
    shown = {Verdict.VALID: 0, Verdict.WARNINGS: 1, Verdict.INVALID: 2}[snapshot.verdict]
    assert shown == verdict
    assert (snapshot.count(Severity.ERROR) > 0) == (verdict == 2)
    assert [d.id for d in snapshot.documents][:2] == ["proposal.md", "review.md"]


def test_a_long_line_costs_little_memory(folder: Path) -> None:
    long_line(folder)
    age(folder)
    tracemalloc.start()
    try:
        assert validate(folder).verdict == 2
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


def test_a_log_without_end_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_LOG", 10_000_000)
    with (folder / "events.jsonl").open("ab") as file:
        file.truncate(1 << 40)  # no disk holds as much
    age(folder, at=START)
    codes = {finding.code for finding in validate(folder).findings}
    assert "ACP208" in codes
    assert look(folder).verdict is Verdict.INVALID


@pytest.mark.parametrize("name", ["protocol.json", "events.jsonl", "readiness.md", "README.md"])
def test_a_file_that_may_not_be_read(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / name).chmod(0)
    if os.geteuid() == 0:  # who may read everything
        real = os.open

        def refuse(path: Any, *args: Any, **kwargs: Any) -> int:
            if os.fspath(path) == str(folder / name):
                raise PermissionError(13, "Permission denied")
            return real(path, *args, **kwargs)

        monkeypatch.setattr(reading.os, "open", refuse)
    report = validate(folder)
    assert report.verdict == (0 if name == "README.md" else 2)
    snapshot = look(folder)
    if name != "README.md":
        assert "permission denied" in "\n".join(report.lines())
        assert [d.note for d in snapshot.documents if d.id == name and d.note] == (
            ["permission denied"] if name == "readiness.md" else []
        )


def test_escape_sequences_in_every_field_of_everything(tmp_path: Path) -> None:
    evil = "\x1b]52;c;aGk=\x07\x1b]0;t\x07\x9b31m\u202e\n[/x][@click=app.quit]q[/]"
    folder = make_v1(
        tmp_path / "run\x1b[31m",
        "reviewing",
        participants=("server", f"reader{evil}", "reviewer"),
        objective=evil,
        gates=(evil, "b"),
    )
    for name in ("proposal.md", "review.md", "decisions.md", "readiness.md", "conclusion.md"):
        text = f"## {evil}\n## {evil} - {evil} - seq 9\n- [blocking] {evil}\n- [x] {evil}\n* [open] {evil}\n"
        (folder / name).write_text(text, encoding="utf-8")
    fields = {"doc": evil, "role": evil, "sha256": evil, "key": evil}
    say(folder, f"{evil}", evil, evil, at="2026-01-03T00:00:00Z", **fields)
    say(folder, "reader" + evil, "blocked", evil, at=evil)
    change_protocol(folder, continues={"path": evil, "phase": evil}, waitingFor=[evil])
    snapshot = look(folder)
    assert "[@click=app.quit]q[/]" in snapshot.objective
    assert any("[@click=app.quit]" in finding.message for finding in snapshot.findings)
    assert snapshot.events[2].summary.startswith("␛]52;c;aGk=␇")


def test_paths_that_lead_out_are_never_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("the secret")
    folder = make_v2(tmp_path / "run", "reviewing")
    protocol = json.loads((folder / "protocol.json").read_text())
    for place in ("../secret.md", str(secret), "x/../../secret.md", "..\\secret.md", "a\0b.md"):
        protocol["deliverables"]["primary"]["file"] = place
        protocol["deliverables"]["attachments"] = [{"file": place}]
        change_protocol(folder, deliverables=protocol["deliverables"])
        snapshot = look(folder)
        assert all("secret" not in (d.path or "") for d in snapshot.documents)
        assert snapshot.verdict is Verdict.INVALID


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "none", tmp_path / "file", tmp_path):
        assert validate(place).verdict == 2
        assert not detect(place)
        collaboration = open_folder(place)
        snapshot = collaboration.refresh(NOW)
        assert snapshot.count(Severity.ERROR) == 1
        expected = SourceState.STALE if place == tmp_path else SourceState.UNREACHABLE
        assert snapshot.source.state is expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = [
    "objective",
    "participants",
    "completionGates",
    "currentPhase",
    "proposalOwner",
    "waitingFor",
    "schemaVersion",
    "protocol",
    "deliverables",
    "repoRoot",
    "continues",
    "continued_by",
    "version",
]
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(
    st.dictionaries(st.sampled_from(KEYS), JSON, max_size=5),
    st.dictionaries(
        st.sampled_from(["mode", "dir", "primary", "supporting", "attachments"]), JSON, max_size=4
    ),
)
def test_anything_in_protocol_json(
    tmp_path: Path, changes: dict[str, Any], declared: dict[str, Any]
) -> None:
    folder = make_v2(tmp_path / "run", "reviewing")
    protocol = json.loads((folder / "protocol.json").read_text())
    protocol["deliverables"] |= declared
    text = json.dumps(protocol | changes)
    (folder / "protocol.json").write_text(text)
    age(folder)
    assert validate(folder).verdict in (0, 1, 2)
    look(folder)


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(
                ["seq", "from", "event", "at", "summary", "doc", "reply_to", "role", "sha256"]
            ),
            JSON | st.sampled_from(["reader", "blocked", "2026-01-03T00:00:00Z", 3, 2]),
        ).map(lambda value: json.dumps(value).encode())
        | st.binary(max_size=20),
        max_size=5,
    )
)
def test_anything_in_the_log(tmp_path: Path, lines: list[bytes]) -> None:
    folder = make_v1(tmp_path / "run", "reviewing")
    add(b"\n".join(lines))(folder)
    age(folder)
    assert validate(folder).verdict in (0, 1, 2)
    snapshot = look(folder)
    ids = [each.id for each in snapshot.events]
    assert len(set(ids)) == len(ids)


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(
    st.lists(
        st.binary(max_size=40)
        | st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace")),
        min_size=4,
        max_size=4,
    )
)
def test_anything_in_the_documents(tmp_path: Path, contents: list[bytes]) -> None:
    folder = make_v1(tmp_path / "run", "completed")
    for name, content in zip(
        ("review.md", "decisions.md", "readiness.md", "conclusion.md"), contents, strict=True
    ):
        (folder / name).write_bytes(content)
    age(folder)
    assert validate(folder).verdict in (0, 1, 2)
    look(folder)
