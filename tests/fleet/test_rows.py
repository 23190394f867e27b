"""Rows of an earlier run: more than a row is only read where nobody waits for it to be drawn."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from acp_core.files import tree_state
from acp_core.files.watch import Watcher
from acp_core.fleet import Fleet, cached_snapshot, live, readings, snapshot_cache, workers
from acp_core.fleet.cached_snapshot import CachedSnapshot
from acp_core.fleet.member import Member
from acp_core.fleet.workers import FIRST
from acp_core.history import archive, store
from acp_core.history.recorder import Recorder
from acp_core.model import Snapshot, Status
from acp_core.protocols.locations import find
from tests.fleet.test_fleet import PATIENCE, Reader, watching
from tests.fleet.test_snapshot_cache import NOW, afresh, go_on, look, tick
from tests.support.rows import SIZE

pytestmark = pytest.mark.usefixtures("long_ago")


async def test_details_of_a_row_are_never_read_by_who_draws(
    work: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked for by mistake: tests fail; elsewhere it is read in a worker, and comes as a change."""
    look(work)
    async with watching(work, rows=True) as reader:
        rows = [key for key, one in reader.shown.items() if isinstance(one, CachedSnapshot)]
        one = reader.shown[rows[0]]
        read.clear()
        with pytest.raises(AssertionError, match="nothing is read"):
            _ = one.documents
        with pytest.raises(AssertionError, match="nothing is read"):
            _ = one.events[0]
        assert one == one and one != reader.shown[rows[1]] and hash(one) and rows[0] in repr(one)
        monkeypatch.setattr(cached_snapshot, "strict", False)
        assert not one.documents
        assert not list(one.events)
        assert read == []
        await reader.until(lambda: not isinstance(reader.shown[one.key], CachedSnapshot))
        assert reader.shown[one.key].documents


def test_every_part_of_a_snapshot_is_in_its_row_or_read_later(work: Path, read: list[str]) -> None:
    look(work)
    read.clear()
    row = Fleet([work], clock=lambda: NOW, rows=True).read()[0]
    assert isinstance(row, CachedSnapshot)
    later = {"phases", "next_actions", "documents", "gates", "findings", "panels", "outcome"}
    for each in fields(row):
        assert each.name in later or getattr(row, each.name) is not NotImplemented, each.name
    assert read == []


async def test_who_never_asks_for_the_whole_sees_no_rows(work: Path) -> None:
    look(work)
    async with watching(work) as reader:
        assert not any(isinstance(each, CachedSnapshot) for each in reader.shown.values())
        assert all(each.documents for each in reader.shown.values())


@pytest.mark.slow
def test_what_hangs_while_it_is_recalled_is_not_read_at_the_same_time(
    work: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    look(work)
    hangs, recall = threading.Event(), snapshot_cache.SnapshotCache.recall
    hung: list[str] = []

    def slow(self: snapshot_cache.SnapshotCache, key: str, *rest: Any) -> Any:
        if not key.endswith("c05"):
            return recall(self, key, *rest)
        if not hung:
            hung.append(key)
            assert hangs.wait(PATIENCE)
        return None

    monkeypatch.setattr(snapshot_cache.SnapshotCache, "recall", slow)
    monkeypatch.setattr(live, "PATIENCE", 0.2)
    read.clear()
    try:
        found = Fleet([work], clock=lambda: NOW, rows=True).read()
        assert read == []
    finally:
        hangs.set()
    assert [each.name for each in found] == sorted(each.name for each in found)
    assert "still reading" in found[5].source.note


def move_deliverables_out(one: Path) -> Path:
    """Let a finished collaboration's deliverables lie beside its folder; returns that place."""
    outside = one.parent / "deliverables"
    (one / "deliverables").rename(outside)
    for file in one.iterdir():
        if file.is_file():
            data, times = file.read_bytes(), file.stat()
            data = data.replace(b"deliverables/page-cursors.md", b"external:page-cursors.md")
            if file.name == "protocol.json":
                known = json.loads(data)
                external = known["deliverables"] | {"mode": "external"}
                data = json.dumps(known | {"deliverables": external, "repoRoot": ".."}).encode()
            file.write_bytes(data)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    return outside


def test_deliverables_outside_the_folder_are_read_each_time(work: Path, read: list[str]) -> None:
    """Nothing in the folder tells that one of them changed."""
    outside = move_deliverables_out(work / "c00") / "page-cursors.md"
    first = look(work)
    assert first["counts"]["done"] == SIZE
    read.clear()
    outside.write_text("# Unfinished\n")
    found = look(work)
    assert read == ["c00"]
    assert found == afresh(work) != first


def test_an_import_that_brings_a_recording_has_its_folder_read_again(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the recording tells is in no file of the folder: its stamp must be another one."""
    look(work)
    one, carried = work / "c00", tmp_path / "c00.acp"
    Fleet([one], discover=False, recorder=(recorder := Recorder("record"))).read()
    recorder.close()
    found = find(str(one))
    assert found is not None
    archive.export(found, carried)
    seen: list[Any] = []
    take = store.take_recording

    def taken(*given: Any) -> int:
        seen.append(tree_state.read(given[2]["key"]))  # a dashboard looks at it
        tick(work)
        return take(*given)

    monkeypatch.setattr(archive, "take_recording", taken)
    folder = archive.unpack(carried, tmp_path / "new").folder
    now = tree_state.read(str(folder))
    assert seen[0] is not None and now is not None
    assert now.digest != seen[0].digest


async def test_rows_that_come_together_are_recalled_in_one_job(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(work)
    refreshed: list[str] = []
    refresh = Member.refresh

    def noted(self: Member, now: datetime) -> Snapshot:
        refreshed.append(Path(self.key).name)
        return refresh(self, now)

    monkeypatch.setattr(Member, "refresh", noted)
    monkeypatch.setattr(Watcher, "replace", lambda *given: None)  # which has all of them read again
    async with watching(work, rows=True) as reader:
        assert len(reader.shown) == SIZE
        for number in range(FIRST, SIZE):
            assert isinstance(reader.shown[str(work / f"c{number:02}")], CachedSnapshot)
    alone = [f"c{number:02}" for number in range(FIRST)]  # until it is known that there are many
    assert sorted(refreshed) == alone


async def test_one_that_hangs_while_many_are_recalled_keeps_none_of_them(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(work)
    hangs, recall = threading.Event(), snapshot_cache.SnapshotCache.recall

    def slow(self: snapshot_cache.SnapshotCache, key: str, *rest: Any) -> Any:
        if key.endswith(f"c{FIRST}"):
            assert hangs.wait(PATIENCE)
        return recall(self, key, *rest)

    monkeypatch.setattr(snapshot_cache.SnapshotCache, "recall", slow)
    monkeypatch.setattr(Watcher, "replace", lambda *given: None)  # nor do other looks help
    monkeypatch.setattr(readings, "LEAST_BETWEEN_LOOKS", 10 * PATIENCE)
    monkeypatch.setattr(live, "NET", 10 * PATIENCE)
    monkeypatch.setattr(readings, "PATIENCE", 0.2)
    monkeypatch.setattr(readings, "HELP", 0.05)
    monkeypatch.setattr(workers, "STUCK", 0.2)
    try:
        async with watching(work, rows=True) as reader:
            waiting = str(work / f"c{FIRST}")

            together = [str(work / f"c{number}") for number in range(FIRST + 1, SIZE)]
            await reader.until(
                lambda: all(isinstance(reader.shown[each], CachedSnapshot) for each in together)
            )
            assert len(reader.shown) == SIZE
            assert "still reading" in reader.shown[waiting].source.note
            hangs.set()
            await reader.until(lambda: isinstance(reader.shown[waiting], CachedSnapshot))
    finally:
        hangs.set()


async def test_what_changes_unseen_while_many_are_recalled_is_looked_at_after_it(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is looked at once; whether before or after its change, nobody could say."""
    look(work)
    go_on_recalling, recall = threading.Event(), snapshot_cache.SnapshotCache.recall
    last = threading.Event()

    def slow(self: snapshot_cache.SnapshotCache, key: str, *rest: Any) -> Any:
        if key.endswith(f"c{SIZE - 1}"):
            last.set()
            assert go_on_recalling.wait(PATIENCE)
        return recall(self, key, *rest)

    monkeypatch.setattr(snapshot_cache.SnapshotCache, "recall", slow)
    monkeypatch.setattr(Watcher, "replace", lambda *given: None)
    for module, name in (
        (readings, "LEAST_BETWEEN_LOOKS"),
        (live, "NET"),
        (readings, "PATIENCE"),
    ):
        monkeypatch.setattr(module, name, 10 * PATIENCE)
    one = work / f"c{FIRST + 1}"  # it is recalled before the last one
    reader = Reader(Fleet([work], rows=True))
    shows = asyncio.create_task(
        reader.until(
            lambda: str(one) in reader.shown and reader.shown[str(one)].status is Status.ACTIVE
        )
    )
    try:
        assert await asyncio.to_thread(last.wait, PATIENCE)
        tick(work)
        go_on(one)
        reader.fleet._mail.post(reader.fleet._rechecks.everything)  # as soon as all is watched
        reader.fleet._mail.post(go_on_recalling.set)
        await shows
    finally:
        go_on_recalling.set()
        await reader.stop()


def test_paths_of_a_collaboration_are_seldom_resolved(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at each folder above costs as much as reading a document: one for the recording is
    made, and two for deliverables."""
    resolved: list[str] = []
    resolve = os.path.realpath

    def noted(path: Any, **given: Any) -> Any:
        if str(path).startswith(str(work / "c05")):
            resolved.append(str(path))
        return resolve(path, **given)

    monkeypatch.setattr(os.path, "realpath", noted)
    look(work)
    assert len(resolved) <= 3, resolved


async def test_the_thread_that_draws_resolves_no_path(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Discovery knows where each collaboration really is; one that is reached by a link, too."""
    look(work)
    link = work.parent / "link"
    link.symlink_to(work)
    resolved: list[str] = []
    resolve = os.path.realpath

    def noted(path: Any, **given: Any) -> Any:
        if threading.current_thread() is threading.main_thread() and "/c" in str(path):
            resolved.append(str(path))
        return resolve(path, **given)

    monkeypatch.setattr(os.path, "realpath", noted)
    async with watching(link, rows=True) as reader:
        found = [reader.fleet._members[key].real for key in sorted(reader.shown)]
    assert found == [str(work / f"c{number:02}") for number in range(SIZE)]
    assert resolved == []
