"""What rows show of finished collaborations is kept between runs, and never believed too long."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import acp_core
from acp_core.cli import status
from acp_core.files import tree_state
from acp_core.fleet import Fleet, kept_rows, overview, snapshot_cache
from acp_core.fleet.cached_snapshot import CachedSnapshot, is_at_rest
from acp_core.fleet.overview import Seen
from acp_core.history.forecast import Forecast
from acp_core.history.recorder import Recorder
from acp_core.history.store import Store, recording_path
from acp_core.model import Status
from acp_core.person import paths
from acp_core.protocols.folder.collaboration import FolderCollaboration
from tests.fleet.test_fleet import PATIENCE, watching
from tests.support.examples import MANY, PATIENT
from tests.support.rows import SIZE

NOW = datetime.now(UTC) + timedelta(hours=1)

pytestmark = pytest.mark.usefixtures("long_ago")


def look(work: Path) -> dict[str, Any]:
    """What `acp status --json` says of them, by their names."""
    fleet = Fleet([work], clock=lambda: NOW, rows=True)
    entries = overview.arrange(fleet.read(), lambda one: Seen(one.needs, 0, False), recent=True)
    told = status.as_fields(entries, [], NOW, Forecast())
    return json.loads(json.dumps(told))


def afresh(work: Path) -> dict[str, Any]:
    """The same, without anything that was kept."""
    kept = os.environ["ACP_CACHE"]
    os.environ["ACP_CACHE"] = f"{kept}-of-nobody"
    try:
        shutil.rmtree(os.environ["ACP_CACHE"], ignore_errors=True)
        return look(work)
    finally:
        os.environ["ACP_CACHE"] = kept


def tick(work: Path) -> None:
    """Wait until a file that is changed bears another time than those that were changed before."""
    probe = work.parent / "probe"
    probe.touch()
    before = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns == before:
        os.utime(probe)


def kept_files() -> list[Path]:
    return [*(paths.cache_folder() / "snapshots").glob("*.json")]


def test_a_second_look_reads_nothing_and_says_the_same(work: Path, read: list[str]) -> None:
    first = look(work)
    assert len(read) == SIZE
    read.clear()
    assert look(work) == first == afresh(work) | {}
    assert sorted(set(read)) == sorted(f"c{n:02}" for n in range(SIZE))  # by `afresh` alone
    assert len(read) == SIZE
    assert first["counts"]["done"] == SIZE


def test_details_are_there_when_they_are_looked_at(work: Path, read: list[str]) -> None:
    full = Fleet([work], clock=lambda: NOW).read()[3]
    look(work)
    read.clear()
    row = Fleet([work], clock=lambda: NOW, rows=True).read()[3]
    assert isinstance(row, CachedSnapshot)
    assert (row.name, len(row.events), row.events[-1]) == (
        full.name,
        len(full.events),
        full.events[-1],
    )
    assert row.participants == full.participants
    assert read == []
    assert row.documents == full.documents
    assert read == [row.name]
    assert list(row.events) == list(full.events)
    assert (row.phases, row.panels, row.findings) == (full.phases, full.panels, full.findings)
    assert (row.gates, row.outcome, row.next_actions) == (
        full.gates,
        full.outcome,
        full.next_actions,
    )
    assert read == [row.name]


def test_what_is_asked_of_one_that_was_not_read(work: Path) -> None:
    look(work)
    fleet = Fleet([work], clock=lambda: NOW, rows=True)
    key = fleet.read()[0].key
    text = fleet.call_sync(key, lambda opened: opened.load("conclusion.md").text)
    assert "Conclusion" in text
    assert fleet.call_sync(key, lambda opened: opened.raw_event("1")).startswith('{"seq":1')


def rewrite(path: Path) -> None:
    """Exchange two letters, and set the time of before: neither size nor time tells of it."""
    data, times = path.read_bytes(), path.stat()
    path.write_bytes(data[:-3] + data[-2:-1] + data[-3:-2] + data[-1:])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def exchange(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def go_on(folder: Path) -> None:
    """As if it had not ended: the last event is gone, and protocol.json as it was before it."""
    log = folder / "events.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))


CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda one: None,
    "a document": lambda one: (one / "review.md").write_text("# Review\n"),
    "a document without its size or time": lambda one: rewrite(one / "conclusion.md"),
    "the log": go_on,
    "the log without its size or time": lambda one: rewrite(one / "events.jsonl"),
    "no conclusion": lambda one: (one / "conclusion.md").unlink(missing_ok=True),
    "no log": lambda one: (one / "events.jsonl").unlink(missing_ok=True),
    "no protocol": lambda one: (one / "protocol.json").unlink(missing_ok=True),
    "a broken protocol": lambda one: (one / "protocol.json").write_text("{"),
    "a new file": lambda one: (one / "status.json").write_text("{}"),
    "a folder": lambda one: (one / "notes").mkdir(exist_ok=True),
    "a link": lambda one: (one / "link").is_symlink() or (one / "link").symlink_to("x"),
    "no right to read": lambda one: (one / "review.md").exists() and (one / "review.md").chmod(0),
    "another folder of that name": lambda one: exchange(one, one.with_name("c30")),
    "gone": lambda one: shutil.rmtree(one),
    "anew": lambda one: (shutil.rmtree(one), shutil.copytree(one.with_name("c31"), one)),
    "touched": lambda one: os.utime(one / "review.md"),
}  # fmt: skip


def test_every_change_between_two_runs_shows(work: Path, read: list[str]) -> None:
    """Each kind of change in a folder of its own: those alone are read again."""
    look(work)
    tick(work)
    for number, change in enumerate(CHANGES.values()):
        change(work / f"c{number:02}")
    read.clear()
    found = look(work)
    assert set(read) < {f"c{number:02}" for number in (*range(len(CHANGES)), 30)}
    assert "c00" not in read  # where nothing happened
    assert found == afresh(work)


Step = tuple[int, str]


@PATIENT
@pytest.mark.slow
@settings(
    max_examples=max(10, MANY // 10),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    steps=st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.sampled_from([*CHANGES])), max_size=4), max_size=4
    )
)
def test_whatever_happens_between_runs_both_say_the_same(
    tmp_path: Path, pattern: Path, steps: list[list[Step]]
) -> None:
    work = tmp_path / "work"
    shutil.rmtree(work, ignore_errors=True)
    for number in range(SIZE):
        shutil.copytree(pattern, work / f"c{number:02}")
    look(work)
    for changes in steps:
        tick(work)
        for number, name in changes:
            one = work / f"c{number:02}"
            if one.is_dir():
                try:
                    CHANGES[name](one)
                except FileNotFoundError:  # another change took it away
                    continue
        assert look(work) == afresh(work)


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "one bit": damage,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "empty": lambda path: path.write_bytes(b""),
    "no JSON": lambda path: path.write_bytes(b"\xff\n["),
    "other JSON": lambda path: path.write_bytes(b"[1]\n[2]"),
    "deep": lambda path: path.write_bytes(b"[" * 200_000),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "others can write it": lambda path: path.chmod(0o666),
    "gone": lambda path: path.unlink(),
}  # fmt: skip


@pytest.mark.slow
def test_a_damaged_file_counts_as_none(work: Path, read: list[str]) -> None:
    first = look(work)
    (kept,) = kept_files()
    whole = kept.read_bytes()
    for harm in DAMAGES.values():
        if kept.is_dir():
            kept.rmdir()
        kept.unlink(missing_ok=True)
        kept.write_bytes(whole)
        kept.chmod(0o600)
        harm(kept)
        read.clear()
        assert look(work) == first
        assert len(read) == SIZE


def other_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    file = paths.config_folder() / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('humans = ["reader"]\n')


@pytest.mark.parametrize(
    "differ",
    [
        lambda patch: patch.setattr(acp_core, "__version__", "99"),
        lambda patch: patch.setattr(snapshot_cache, "_code", lambda: "changed"),
        lambda patch: patch.setattr(os, "geteuid", lambda: 4_242),
        lambda patch: patch.setenv("ACP_STATE", os.environ["ACP_STATE"] + "-other"),
        other_settings,
    ],
    ids=["another version", "changed code", "another account", "another state", "settings"],
)
def test_what_another_one_kept_is_not_believed(
    work: Path, read: list[str], monkeypatch: pytest.MonkeyPatch,
    differ: Callable[[pytest.MonkeyPatch], object],
) -> None:  # fmt: skip
    look(work)
    differ(monkeypatch)
    read.clear()
    found = look(work)
    assert len(read) == SIZE
    assert found == afresh(work)


def test_it_is_bounded(work: Path) -> None:
    look(work)
    (kept,) = kept_files()
    folder = kept.parent
    for number in range(20):
        (folder / f"{number}.json").write_text("{}")
        os.utime(folder / f"{number}.json", (number, number))
    kept.unlink()
    look(work)
    assert len(kept_files()) == snapshot_cache.FILES
    assert kept in kept_files()


def test_few_are_not_kept(tmp_path: Path, pattern: Path) -> None:
    shutil.copytree(pattern, tmp_path / "work" / "one")
    look(tmp_path / "work")
    assert kept_files() == []


def test_nothing_is_kept_of_what_changed_just_now(work: Path) -> None:
    found = tree_state.read(str(work / "c00"))
    assert found is not None
    at = found.newest / 1e9
    assert not found.is_settled(at)
    assert not found.is_settled(at + 2.0)  # a file system may count in steps of two seconds
    assert not found.is_settled(at - 100)  # its time lies ahead
    assert found.is_settled(at + 4.0)


def test_times_in_whole_seconds_are_not_trusted(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.lstat

    def coarse(found: os.stat_result) -> Any:
        whole = found.st_ctime_ns // 10**9 * 10**9
        return type("Coarse", (), {
            **{name: getattr(found, name) for name in dir(found) if name.startswith("st_")},
            "st_ctime_ns": whole, "st_mtime_ns": whole,
        })()  # fmt: skip

    stat = os.stat
    monkeypatch.setattr(tree_state.os, "lstat", lambda path: coarse(real(path)))
    monkeypatch.setattr(tree_state.os, "stat", lambda path, **more: coarse(stat(path, **more)))
    assert tree_state.read(str(work / "c00")) is None


def test_reading_touches_nothing_outside_the_folder(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is said to follow from the folder alone is: every file that is asked for lies there."""
    touched: set[str] = set()

    def traced(name: str) -> None:
        real = getattr(os, name)

        def call(path: Any = ".", *rest: Any, **more: Any) -> Any:
            if isinstance(path, str | os.PathLike):
                touched.add(os.path.abspath(os.fspath(path)))
            return real(path, *rest, **more)

        monkeypatch.setattr(os, name, call)

    folder = work / "c00"
    opened = FolderCollaboration(str(folder))
    opened.refresh(NOW)  # whatever is imported is imported now
    for name in ("stat", "lstat", "open", "scandir", "listdir", "readlink", "access", "statvfs"):
        traced(name)
    opened = FolderCollaboration(str(folder))
    snapshot = opened.refresh(NOW)
    agreed = paths.pins_folder()  # a folder that is shared follows from more, and says so
    monkeypatch.undo()
    assert snapshot.status is Status.COMPLETED
    assert opened.follows_from_folder()
    above = {str(each) for each in folder.parents}  # asked whether one of them is a link
    outside = {each for each in touched if not f"{each}/".startswith(f"{folder}/")}
    assert outside <= {*above, agreed}


async def test_the_live_view_shows_rows_and_then_changes(work: Path, read: list[str]) -> None:
    look(work)
    read.clear()
    one = work / "c07"
    async with watching(work, rows=True) as reader:
        assert len(reader.shown) == SIZE
        assert sum(isinstance(each, CachedSnapshot) for each in reader.shown.values()) > SIZE // 2
        tick(work)
        go_on(one)
        await reader.until(lambda: reader.shown[str(one)].status is Status.ACTIVE)
        other = next(k for k, s in reader.shown.items() if isinstance(s, CachedSnapshot))
        assert reader.fleet.whole(other) is None  # somebody looks at it
        await reader.until(lambda: not isinstance(reader.shown[other], CachedSnapshot))
        assert reader.fleet.whole(other) is reader.shown[other]
        assert reader.shown[other].documents


def test_what_depends_on_other_folders_is_not_kept(work: Path) -> None:
    """Deliverables may lie in a repository around the folder; a continuation lies beside it."""
    place = work / "c00" / "protocol.json"
    protocol = json.loads(place.read_bytes())
    outside = protocol["deliverables"] | {"mode": "external"}
    place.write_text(json.dumps(protocol | {"deliverables": outside, "repoRoot": ".."}))
    opened = FolderCollaboration(str(work / "c00"))
    opened.refresh(NOW)
    assert not opened.follows_from_folder()
    place.write_text(json.dumps(protocol | {"continued_by": {"path": "../c01"}}))
    opened = FolderCollaboration(str(work / "c00"))
    snapshot = opened.refresh(NOW)
    assert snapshot.status is Status.COMPLETED
    assert snapshot.lineage[0].found
    assert not is_at_rest(snapshot)


async def test_what_was_only_recalled_is_recorded_at_leisure(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(work)  # which records nothing
    monkeypatch.setattr(kept_rows, "PAUSE", 0.0)
    recorder = Recorder("dashboard")
    async with watching(work, recorder=recorder, rows=True) as reader:
        rows = [key for key, one in reader.shown.items() if isinstance(one, CachedSnapshot)]
        assert rows
        going_on = asyncio.create_task(reader.until(lambda: False))
        async with asyncio.timeout(PATIENCE):
            while not all(recording_path(key).exists() for key in rows):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        going_on.cancel()
        await asyncio.wait([going_on])
        assert all(isinstance(reader.fleet.snapshots[key], CachedSnapshot) for key in rows)
    with contextlib.closing(Store(recording_path(rows[0]), read_only=True)) as store:
        assert "conclusion.md" in store.latest()


def test_what_was_only_a_row_before_is_recorded_when_that_is_asked_for(work: Path) -> None:
    """A row of an earlier run has nothing that can be recorded."""
    look(work)
    Fleet([work], recorder=(recorder := Recorder("record"))).read()
    recorder.close()
    assert all(recording_path(str(work / f"c{number:02}")).exists() for number in range(SIZE))
