"""What a loop keeps: its log, its state, and what the program printed."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.agents import codec, logs
from acp_core.agents.loop_directory import LoopRunning, place
from acp_core.agents.output import Output, Tail
from acp_core.agents.processes import Identity
from acp_core.agents.progress import MAX_LINE
from acp_core.agents.state import Phase, Run, Saved

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOSTILE = "\x1b]52;c;Zm9v\x07 [@click=app.quit]x[/] \u202e end\r\nnext"


# --- the log -------------------------------------------------------------------------------


def test_a_line_of_the_log_is_one_safe_line(tmp_path: Path) -> None:
    log = logs.Log(tmp_path / "log")
    log.write("out", HOSTILE, NOW)
    log.write("loop", "\ud800 lone", NOW.astimezone(timezone(timedelta(hours=2))))
    first, second = (tmp_path / "log").read_text().splitlines()
    assert first.startswith("2026-01-02T03:04:05Z out  ")
    assert "\x1b" not in first
    assert "[@click=app.quit]x[/]" in first
    assert second.startswith("2026-01-02T03:04:05Z loop ")


def test_a_log_that_is_full_begins_anew_and_keeps_some(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = logs.Log(path, limit=200)
    follower = logs.Follower(path)
    followed: list[str] = []
    for number in range(40):
        log.write("loop", f"line {number}", NOW)
        followed += follower.lines()
    names = sorted(each.name for each in tmp_path.iterdir())
    assert set(names) - {"log"} == {"log.1", "log.2", "log.3"}
    assert [line.rpartition(" ")[2] for line in followed] == [str(n) for n in range(40)]
    last = logs.last_lines(path, 3)
    assert [line.rpartition("line ")[2] for line in last] == ["37", "38", "39"]


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    logs.Log(tmp_path / "missing" / "log").write("loop", "lost", NOW)


def test_a_follower_can_begin_at_the_end(tmp_path: Path) -> None:
    log, follower = logs.Log(tmp_path / "log"), logs.Follower(tmp_path / "log")
    log.write("loop", "old", NOW)
    follower.start_at_end()
    log.write("loop", "new", NOW)
    assert [line[-3:] for line in follower.lines()] == ["new"]


# --- what the program prints ---------------------------------------------------------------


def test_lines_come_when_they_are_complete(tmp_path: Path) -> None:
    path = tmp_path / "out"
    tail = Tail(path)
    assert tail.lines() == []
    with path.open("ab", buffering=0) as file:
        file.write(b"one\ntw")
        assert tail.lines() == [b"one"]
        file.write(b"o\nthree")
        assert tail.lines() == [b"two"]
    assert tail.lines() == []
    assert tail.rest() == [b"three"]


def test_a_line_without_end_costs_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "out"
    tail = Tail(path)
    found: list[bytes] = []
    with path.open("ab", buffering=0) as file:
        for _ in range(5):
            file.write(b"x" * (4 << 20))
            found += tail.lines()
        file.write(b"\nafter\n")
    found += tail.lines() + tail.lines()
    assert [len(found[0]), *found[1:]] == [MAX_LINE + 1, b"after"]


@settings(deadline=None, max_examples=50)
@given(pieces=st.lists(st.binary(max_size=12), max_size=8))
def test_every_line_comes_once_however_it_is_written(
    pieces: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("tail") / "out"
    tail = Tail(path)
    found: list[bytes] = []
    for piece in pieces:
        with path.open("ab") as file:
            file.write(piece)
        found += tail.lines()
    found += tail.rest()
    whole = b"".join(pieces)
    lines = whole.split(b"\n")
    assert found == (lines if lines[-1] else lines[:-1])


def test_both_outputs_make_one_progress(tmp_path: Path) -> None:
    out, err = tmp_path / "out", tmp_path / "err"
    output = Output(out, err, "text")
    assert output.read(NOW.timestamp()) == []
    assert output.first is None
    err.write_bytes(b"warming up\n")
    os.utime(err, (100, 100))
    out.write_bytes(b"done")
    os.utime(out, (200, 200))
    assert output.end(NOW.timestamp()) == [("err", "warming up"), ("out", "done")]
    assert (output.first, output.last) == (100, 200)
    assert list(output.lines) == ["warming up", "done"]


# --- the state file ------------------------------------------------------------------------

MOMENTS = st.datetimes(
    min_value=datetime(1970, 1, 2), max_value=datetime(9000, 1, 1), timezones=st.just(UTC)
)
IDENTITIES = st.builds(Identity, st.integers(1, 1 << 22), st.floats(0, 1e10))
RUNS = st.builds(
    Run, number=st.integers(1, 99), process=IDENTITIES, started=MOMENTS, ended=st.none() | MOMENTS,
    exit_code=st.none() | st.integers(0, 255), refused=st.lists(st.text(max_size=5)).map(tuple),
    cost=st.none() | st.floats(0, 100), finished=st.none() | MOMENTS,
)  # fmt: skip
STATES = st.builds(
    Saved, folder=st.text(max_size=9), participant=st.text(max_size=9), process=IDENTITIES,
    started=MOMENTS, phase=st.sampled_from(Phase), run=st.none() | RUNS,
    left_over=st.lists(IDENTITIES, max_size=2).map(tuple), command=st.lists(st.text()).map(tuple),
)  # fmt: skip


@settings(deadline=None, max_examples=50)
@given(STATES)
def test_a_state_survives_its_file(saved: Saved) -> None:
    assert codec.decode(Saved, codec.encode(saved)) == saved


@settings(deadline=None)
@given(st.binary(max_size=60) | st.sampled_from([b"[]", b"{}", b'{"folder":1}', b"[" * 9999]))
def test_a_file_that_is_no_state_is_refused(data: bytes) -> None:
    with pytest.raises(codec.CodecError):
        codec.decode(Saved, data)


def test_a_state_of_a_newer_version_is_read() -> None:
    saved = Saved("/f", "p", Identity(1, 2.0), NOW)
    data = codec.encode(saved).replace(b'{"folder"', b'{"later":[1],"folder"', 1)
    assert codec.decode(Saved, data) == saved


# --- the place and its lock ----------------------------------------------------------------


def test_every_name_has_a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path))
    names = ["a", "A", "../a", "a/b", "a_b", "", ".", "..", "\u202e", "x" * 500, "\ud800"]
    places = {place("/some/folder", name).folder for name in names}
    assert len(places) == len(names)
    assert {each.parent for each in places} == {tmp_path / "loops"}
    assert place("/some/other", "a").folder not in places


def test_a_folder_has_one_place_however_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    assert place("link/../real/.", "a") == place(str(tmp_path / "link"), "a")
    assert place("http://host/x", "a") != place("http://host/y", "a")


def test_a_place_belongs_to_one_loop_and_to_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path))
    where = place("/f", "a")
    assert not where.is_locked()
    with where.locked():
        assert where.is_locked()
        with pytest.raises(LoopRunning), place("/f", "a").locked():
            pass
        with place("/f", "b").locked():
            pass
    assert not where.is_locked()
    assert where.folder.stat().st_mode & 0o077 == 0
