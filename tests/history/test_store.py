"""A recording keeps every version once, whoever writes it, and gives each back as it was."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.history.observing import Observing
from acp_core.history.schema import MISSING, PRESENT, LoopChange, Observed, Seen
from acp_core.history.store import BadRecording, OutOfStep, Store
from acp_core.model.past import TrackedFile


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "a.recording")


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def whole(name: str, data: bytes, changed: int = 0, **more: object) -> Observed:
    return Observed(name, False, name, changed, len(data), digest(data), data, **more)  # type: ignore[arg-type]


def appended(before: bytes, added: bytes, changed: int) -> Observed:
    data = before + added
    return Observed(
        "log", True, "", changed, len(data), digest(data), added, len(before), digest(before)
    )


def test_versions_come_back_as_they_were(store: Store) -> None:
    for number, text in enumerate((b"first", b"second", b"first")):
        store.add([whole("proposal.md", text, changed=number)], now=float(number))
    versions = store.versions("proposal.md")
    assert [store.content(each.id) for each in versions] == [b"first", b"second", b"first"]
    assert [each.whole for each in versions] == [
        digest(b"first"),
        digest(b"second"),
        digest(b"first"),
    ]


def test_the_same_version_is_kept_once_whoever_saw_it(store: Store) -> None:
    other = Store(store.path)
    assert store.add([whole("proposal.md", b"one", 1)], now=10.0) == 1
    assert other.add([whole("proposal.md", b"one", 1)], now=11.0) == 0
    assert other.add([whole("proposal.md", b"two", 2)], now=12.0) == 1
    assert store.add([whole("proposal.md", b"one", 1)], now=13.0) == 0, "it looked earlier"
    assert [store.content(each.id) for each in other.versions()] == [b"one", b"two"]


def test_of_a_log_only_what_was_added_is_kept(store: Store) -> None:
    log = b""
    for number in range(50):
        line = b'{"seq": %d}\n' % number
        store.add([appended(log, line, number)], now=float(number))
        log += line
    versions = store.versions("log")
    assert store.content(versions[-1].id) == log
    assert store.content(versions[9].id) == log[: versions[9].size]
    sizes = sqlite3.connect(store.path).execute("SELECT sum(size) FROM content").fetchone()[0]
    assert sizes == len(log)


def test_an_addition_to_another_log_is_refused_whole(store: Store) -> None:
    store.add([appended(b"", b"one\n", 1)], now=1.0)
    with pytest.raises(OutOfStep):
        store.add([whole("a.md", b"new", 2), appended(b"two\n", b"three\n", 2)], now=2.0)
    assert list(store.files()) == ["log"]


def test_a_log_that_was_cut_is_another_version(store: Store) -> None:
    store.add([appended(b"", b"one\ntwo\n", 1)], now=1.0)
    store.add([appended(b"", b"one\n", 2)], now=2.0)
    assert [store.content(each.id) for each in store.versions()] == [b"one\ntwo\n", b"one\n"]


def test_a_file_that_vanished_is_told(store: Store) -> None:
    gone = Observed("a.md", False, "a.md", None, 0, b"", b"", state=MISSING)
    store.add([gone], now=0.0)
    assert store.versions() == []
    store.add([whole("a.md", b"text", 1)], now=1.0)
    store.add([gone], now=2.0)
    store.add([whole("a.md", b"text", 3)], now=3.0)
    assert [each.state for each in store.versions()] == [PRESENT, MISSING, PRESENT]
    with pytest.raises(KeyError):
        store.content(store.versions()[1].id)


def test_since_is_the_files_own_time_only_where_that_can_be(store: Store) -> None:
    second = 1_000_000_000
    store.add([whole("a.md", b"1", changed=5 * second)], now=10.0)
    store.add([whole("a.md", b"2", changed=12 * second)], now=13.0)
    store.add([whole("a.md", b"3", changed=2 * second)], now=20.0)  # copied with its old time
    store.add([whole("a.md", b"4", changed=99 * second)], now=30.0)  # a clock that is ahead
    assert [each.since for each in store.versions()] == [5.0, 12.0, 20.0, 30.0]


def test_observations_and_loops_are_kept_when_they_change(store: Store) -> None:
    for at in range(3):
        store.add(
            observations=[Seen(float(at), '{"phase":"drafting"}', "[]")],
            loops=[LoopChange(float(at), "reader", '{"phase":"waiting"}')],
            now=float(at),
            span=("me", "watch"),
        )
    store.add(
        observations=[Seen(3.0, '{"phase":"drafting"}', '[["ACP1"]]')],
        now=3.0,
        span=("me", "watch"),
    )
    assert [(look.at, look.findings) for look in store.observations()] == [
        (0.0, "[]"),
        (3.0, '[["ACP1"]]'),
    ]
    assert [change.at for change in store.loops()] == [0.0]
    assert [(span.program, span.began, span.until) for span in store.spans()] == [
        ("watch", 0.0, 3.0)
    ]


def test_names_need_not_be_text(store: Store) -> None:
    strange = "/tmp/\udcff\ud800'; DROP TABLE file;"
    store.add([whole(strange, b"x", 1)], now=1.0, meta=[("key", strange)])
    assert list(store.files()) == [strange]
    assert store.meta() == {"key": strange}
    assert store.versions(strange)[0].file == strange


def test_what_is_no_recording_is_said_in_one_line(tmp_path: Path) -> None:
    for name, data in (("text", b"not a database at all" * 100), ("empty", b"")):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(BadRecording) as caught:
            Store(path, read_only=True)
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)
    other = tmp_path / "other"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE things(a)")
    for read_only in (True, False):
        with pytest.raises(BadRecording):
            Store(other, read_only=read_only)
    with pytest.raises(BadRecording):
        Store(tmp_path / "nothing", read_only=True)


def test_a_newer_recording_is_left_alone(store: Store) -> None:
    store.close()
    with sqlite3.connect(store.path) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(BadRecording, match="newer"):
        Store(store.path)


@settings(max_examples=60, deadline=None)
@given(
    changes=st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.binary(min_size=1, max_size=30)),
            st.tuples(st.just("write"), st.binary(max_size=30)),
            st.tuples(st.just("remove"), st.just(b"")),
        ),
        max_size=15,
    ),
    lookers=st.lists(st.integers(0, 1), max_size=15),
)
def test_two_recorders_of_a_real_file_agree(
    tmp_path_factory: pytest.TempPathFactory,
    changes: list[tuple[str, bytes]],
    lookers: list[int],
) -> None:
    """Whoever looks after a change, each content is kept once, in order, and comes back."""
    folder = tmp_path_factory.mktemp("log")
    file = folder / "log"
    store = Store(folder / "a.recording")
    lookers = (lookers + [0, 1] * len(changes))[: len(changes)]
    observers = [Observing({}), Observing({})]
    expected: list[bytes | None] = []
    now = 1_000
    for (kind, data), looker in zip(changes, lookers, strict=True):
        if kind == "remove":
            file.unlink(missing_ok=True)
        else:
            with file.open("ab" if kind == "append" else "wb") as out:
                out.write(data)
        now += 1_000_000_000
        if file.exists():
            os.utime(file, ns=(now, now))  # no two changes within a tick of the file system
        kept = (TrackedFile("log", str(file), True),)
        found = observers[looker].read_changes(kept, now + 1_000_000_000)
        try:
            store.add(found, now=now / 1e9)
        except OutOfStep:
            observers[looker].forget(store.latest())
            store.add(observers[looker].read_changes(kept, now + 1_000_000_000), now=now / 1e9)
        content = file.read_bytes() if file.exists() else None
        if (expected[-1] if expected else None) != content:
            expected.append(content)
    versions = store.versions("log")
    assert [store.content(each.id) if each.present else None for each in versions] == expected
