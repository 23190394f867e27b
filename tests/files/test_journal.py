"""The log is read by what is new; what was read before is watched over."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_core.files import journal
from acp_core.files.journal import GROWN, RESTARTED, SAME, UNREADABLE, UNSETTLED, Reader, read_line
from tests.files.test_locked import bytes_read


class Look(NamedTuple):
    change: str
    items: list[tuple[int, bytes]]
    reason: str


def look(reader: Reader, now: float) -> Look:
    poll = reader.poll(now)
    for block in poll.blocks:
        assert block.data == b"".join(line + b"\n" for line in block.lines)
    numbered = (each for block in poll.blocks for each in enumerate(block.lines, block.first))
    return Look(poll.change, [(number, line) for number, line in numbered if line], poll.reason)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"one\ntwo\n")
    return path


def add(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_each_look_gives_what_was_appended(log: Path) -> None:
    reader = Reader(log)
    assert look(reader, 0) == (GROWN, [(1, b"one"), (2, b"two")], "")
    assert look(reader, 1).change == SAME
    add(log, b"three\n\n\nsix\n")
    assert look(reader, 2) == (GROWN, [(3, b"three"), (6, b"six")], "")
    assert (reader.lines, reader.offset, reader.tail) == (6, log.stat().st_size, b"")


def test_half_a_line_is_not_there_yet(log: Path) -> None:
    reader = Reader(log)
    look(reader, 0)
    add(log, b"thr")
    assert look(reader, 5) == (SAME, [], "")
    assert (reader.tail, reader.since) == (b"thr", 5)
    assert look(reader, 6).change == SAME
    assert reader.since == 5
    add(log, b"ee\nfo")
    assert look(reader, 7) == (GROWN, [(3, b"three")], "")
    assert reader.tail == b"fo"
    add(log, b"ur\n")
    assert look(reader, 8) == (GROWN, [(4, b"four")], "")


def test_nothing_is_read_while_nothing_changes(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(log)
    look(reader, 0)

    def forbidden(*_: object) -> None:
        raise AssertionError("the file was opened")

    monkeypatch.setattr(journal, "open_regular", forbidden)
    assert look(reader, 1).change == SAME


def test_a_truncated_log_is_read_again(log: Path) -> None:
    reader = Reader(log)
    look(reader, 0)
    log.write_bytes(b"one\n")
    assert look(reader, 1) == (RESTARTED, [(1, b"one")], "truncated")


def test_a_rewritten_log_is_read_again(log: Path) -> None:
    for content in (b"ONE\ntwo\n", b"ONE\ntwo\nthree\n", b"one\nTWO\nthree\n"):
        log.write_bytes(b"one\ntwo\n")
        reader = Reader(log)
        look(reader, 0)
        log.write_bytes(content)
        poll = look(reader, 1)
        assert (poll.change, poll.reason) == (RESTARTED, "rewritten"), content
        assert poll.items == [(n, line) for n, line in enumerate(content.split(b"\n")[:-1], 1)]


def test_another_file_in_its_place_is_read_again_only_if_it_differs(log: Path) -> None:
    reader = Reader(log)
    look(reader, 0)
    other = log.with_suffix(".new")
    other.write_bytes(b"one\ntwo\nthree\n")
    other.replace(log)
    assert look(reader, 1) == (GROWN, [(3, b"three")], "")
    other.write_bytes(b"uno\ntwo\nthree\n")
    other.replace(log)
    poll = look(reader, 2)
    assert (poll.change, poll.reason) == (RESTARTED, "replaced by another file")


def test_a_touched_log_is_the_same(log: Path) -> None:
    reader = Reader(log)
    look(reader, 0)
    os.utime(log)
    assert look(reader, 1).change == SAME


def test_a_line_that_came_in_pieces_is_known_again(log: Path) -> None:
    """What was read of it ahead counts: a touched log would else look rewritten."""
    reader = Reader(log)
    look(reader, 0)
    for number, part in enumerate((b"thr", b"ee", b"\nfo", b"ur\n"), 1):
        add(log, part)
        look(reader, number)
    os.utime(log, ns=(1, 1))
    assert look(reader, 9) == (SAME, [], "")


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the system does not count reads")
@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("nothing", (SAME, [], "")),
        ("grown", (GROWN, [(3, b"three")], "")),
        ("rewritten", (RESTARTED, [(1, b"ONE"), (2, b"two"), (3, b"three")], "rewritten")),
        ("same size", (RESTARTED, [(1, b"ONE"), (2, b"two")], "rewritten")),
        ("replaced", (RESTARTED, [(1, b"ONE"), (2, b"two")], "replaced by another file")),
        ("the same in its place", (SAME, [], "")),
        ("cut", (RESTARTED, [(1, b"one")], "truncated")),
    ],
)
def test_who_goes_on_after_lines_that_were_taken_elsewhere_notices_changes(
    log: Path, change: str, told: tuple[str, list[tuple[int, bytes]], str], verify: bool
) -> None:
    reader = Reader(log, verify=verify)
    data, found = reader.head(100)
    assert data == log.read_bytes() and reader.head(3)[0] == b"one"
    if change == "replaced":
        other = log.with_name("other")
        other.write_bytes(b"ONE\ntwo\n")
        other.replace(log)
    elif change == "the same in its place":
        shutil.copy(log, log.with_name("other")).replace(log)
    elif change == "cut":
        log.write_bytes(b"one\n")
    elif change in ("rewritten", "same size"):
        log.write_bytes(b"ONE\ntwo\n" + b"three\n" * (change == "rewritten"))
        os.utime(log, (5, 5))
    elif change == "grown":
        add(log, b"three\n")
    reader.resume(data, 2, found, hashlib.sha256(data))
    assert look(reader, 0) == told
    add(log, b"more\n")
    assert look(reader, 1).items == [(reader.lines, b"more")]


def test_a_long_log_that_grew_is_not_read_anew(log: Path) -> None:
    """All that a look costs is what is new, and the beginning and the end of what was known."""
    add(log, (b"x" * 1023 + b"\n") * 16_384)
    reader = Reader(log)
    look(reader, 0)
    before = bytes_read()
    for number in range(1, 5):
        add(log, b"more\n")
        assert look(reader, number).change == GROWN
    assert bytes_read() - before < 8 << 20


def test_a_log_that_is_being_replaced_is_waited_for(log: Path) -> None:
    reader = Reader(log, grace=2.0)
    look(reader, 0)
    log.write_bytes(b"")
    assert look(reader, 10) == (UNSETTLED, [], "truncated")
    assert look(reader, 11.9).change == UNSETTLED
    log.write_bytes(b"one\ntwo\nthree\n")  # the writer has finished
    assert look(reader, 12.5) == (GROWN, [(3, b"three")], "")
    log.unlink()
    assert look(reader, 20) == (UNSETTLED, [], "missing")
    assert look(reader, 22) == (UNREADABLE, [], "missing")
    log.write_bytes(b"one\ntwo\nthree\nfour\n")
    assert look(reader, 23) == (GROWN, [(4, b"four")], "")


def test_a_log_that_stays_truncated_is_given_up(log: Path) -> None:
    reader = Reader(log, grace=2.0)
    look(reader, 0)
    log.write_bytes(b"one\n")
    assert look(reader, 1).change == UNSETTLED
    assert look(reader, 3) == (RESTARTED, [(1, b"one")], "truncated")


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    path = tmp_path / "log"
    reader = Reader(path, grace=2.0)
    assert look(reader, 0) == (UNREADABLE, [], "missing")
    os.mkfifo(path)
    assert look(reader, 1) == (UNREADABLE, [], "is a pipe, not a regular file")
    path.unlink()
    path.write_bytes(b"one\n")
    assert look(reader, 2).items == [(1, b"one")]


def test_long_lines_are_cut_and_cost_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"a" * 5_000_000 + b"\nok\n" + b"b" * 3_000_000)
    reader = Reader(path, max_line=1_000)
    assert look(reader, 0).items == [(1, b"a" * 1_001), (2, b"ok")]
    assert reader.tail == b"b" * 1_001
    add(path, b"c\nlast\n")
    assert look(reader, 1).items == [(3, b"b" * 1_001), (4, b"last")]
    add(path, b"more\n")
    assert look(reader, 2).items == [(5, b"more")]


def test_a_log_without_end_is_read_up_to_the_bounds(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"\n" * 1_000_000 + b"x\n" * 10)
    reader = Reader(path, max_lines=1_000_005)
    assert [number for number, _ in look(reader, 0).items] == list(range(1_000_001, 1_000_006))
    assert reader.full
    add(path, b"y\n")
    assert look(reader, 1).items == []
    whole = Reader(path, max_lines=1_000_011)
    assert look(whole, 0).items[-1] == (1_000_011, b"y") and not whole.full
    small = Reader(path, max_size=1_000)
    small.poll(0)
    assert small.full


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=12).map(lambda data: ("append", data)),
            st.lists(st.sampled_from([b"a\n", b"bb\n", b"\n", b"skip\n", b"c"]), max_size=4).map(
                lambda parts: ("append", b"".join(parts))
            ),
            st.integers(0, 30).map(lambda size: ("truncate", size)),
            st.binary(max_size=20).map(lambda data: ("rewrite", data)),
            st.just(("look", None)),
        ),
        max_size=14,
    )
)
def test_whatever_happens_the_lines_are_those_in_the_file(
    tmp_path: Path, steps: list[tuple[str, object]]
) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    reader = Reader(path)
    held: list[tuple[int, bytes]] = []
    for number, (what, value) in enumerate([*steps, ("look", None)]):
        if what == "append":
            assert isinstance(value, bytes)
            add(path, value)
        elif what == "truncate":
            assert isinstance(value, int)
            os.truncate(path, min(value, path.stat().st_size))
        elif what == "rewrite":
            assert isinstance(value, bytes)
            path.write_bytes(value)
        os.utime(path, ns=(number, number))  # a clock's tick passes
        if what != "look":
            continue
        poll = look(reader, number)
        held = poll.items if poll.change == RESTARTED else held + poll.items
        lines = path.read_bytes().split(b"\n")
        assert held == [(n, line) for n, line in enumerate(lines[:-1], 1) if line]
        assert reader.tail == lines[-1]


def test_one_line_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = [b"first", b"x" * 2_500_000, b"", b"y" * 1_500_000, b"last"]
    path.write_bytes(b"\n".join(lines))
    for number, line in enumerate(lines, 1):
        assert read_line(path, number, 3_000_000) == line
        assert read_line(path, number, 10) == line[:10]
    assert read_line(path, 6) == b""
