"""Many collaborations are read for the first time by several processes, and shown as ever."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from acp_core.cli import status
from acp_core.fleet import Fleet, kept_rows, overview, readers, readings
from acp_core.fleet.cached_snapshot import CachedSnapshot
from acp_core.fleet.overview import Seen
from acp_core.history.forecast import Forecast
from acp_core.protocols.processes import Process
from tests.bench.collaborations import fleet as live_ones
from tests.fleet.test_fleet import PATIENCE, Reader, watching
from tests.fleet.test_snapshot_cache import NOW
from tests.support import finished, odd_reader, rows
from tests.support.rows import SIZE

pytestmark = pytest.mark.usefixtures("long_ago")


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[int]]:
    """The ids of the reading processes so far: two from ten collaborations on, with small batches."""
    place = tmp_path / "readers"
    place.mkdir()
    monkeypatch.setenv("ACP_TESTS_READERS", str(place))
    monkeypatch.setattr(readers, "READER", Process(odd_reader.HERE, (), ""))
    monkeypatch.setattr(readers, "processors", lambda: 2)
    monkeypatch.setattr(readers, "BATCH", 3)
    monkeypatch.setattr(readings, "MANY", 10)
    monkeypatch.setattr(readings, "SAMPLE", 4)
    return lambda: sorted(int(each.name) for each in place.iterdir())


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process needs so long for each that there is much left when others can begin."""
    monkeypatch.setattr(kept_rows, "MANY", 4)
    monkeypatch.setattr(readings, "MANY", 4)
    monkeypatch.setattr(readings, "ENOUGH", 1)
    monkeypatch.setattr(readings, "PAUSE", 0.01)
    rows.readings(monkeypatch, lambda reading: time.sleep(0.05))


def look(*places: Path, learns: bool = False) -> dict[str, Any]:
    """What `acp status --json` says of them."""
    fleet = Fleet(places, clock=lambda: NOW, rows=True)
    found = fleet.read(teaches=learns)
    entries = overview.arrange(found, lambda one: Seen(one.needs, 0, False), recent=True)
    told = status.as_fields(entries, [], NOW, fleet.learn() if learns else Forecast())
    return dict(json.loads(json.dumps(told)))


def forget(name: str = "ACP_CACHE") -> None:
    """As if nothing had ever been read."""
    shutil.rmtree(os.environ[name], ignore_errors=True)


def alone(*places: Path, learns: bool = False) -> dict[str, Any]:
    """The same, read by this process alone."""
    forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "processors", lambda: 1)
        return look(*places, learns=learns)


def note_of(pid: int) -> dict[str, Any]:
    """What a reading process told of itself."""
    told = Path(os.environ["ACP_TESTS_READERS"], str(pid)).read_text()
    return dict(json.loads(told)) if told else {}


def until_gone(pids: list[int]) -> None:
    """Wait until none of these processes is there."""
    end = time.monotonic() + PATIENCE
    while pids and time.monotonic() < end:
        pids = [pid for pid in pids if is_running(pid)]
        time.sleep(0.02)
    assert pids == []


def is_running(pid: int) -> bool:
    with suppress(OSError):
        told = Path(f"/proc/{pid}/stat").read_text()
        return told.rpartition(")")[2].split()[0] != "Z"
    return False


def test_rows_of_other_processes_are_those_of_one(
    work: Path, read: list[str], started: Callable[[], list[int]]
) -> None:
    first = alone(work)
    assert len(read) == SIZE
    assert started() == []
    forget()
    read.clear()
    assert look(work) == first
    assert len(started()) == 2
    assert len(read) < SIZE // 3  # those that told what the others would be like
    until_gone(started())
    read.clear()
    assert look(work) == first  # and an earlier run kept all of them
    assert read == []
    assert len(started()) == 2


def test_every_protocol_and_what_goes_on_is_the_same(
    tmp_path: Path, work: Path, started: Callable[[], list[int]]
) -> None:
    for name, (make, _, _) in finished.KINDS.items():
        for number in range(3 if name != "wire" else 0):
            make(tmp_path / "mixed" / f"{name}{number}")
    live_ones(tmp_path / "live", 5)
    shutil.copytree(work, tmp_path / "mixed" / "folders")
    places = tmp_path / "mixed", tmp_path / "live"
    first = alone(*places)
    assert first["counts"]["done"] > SIZE
    assert first["counts"]["done"] < len(first["collaborations"])
    assert len({each["protocol"] for each in first["collaborations"]}) == 4
    forget()
    assert look(*places) == first
    assert len(started()) == 2
    assert look(*places) == first


@pytest.mark.parametrize(
    "kind",
    [
        "cannot start", "killed", "hangs", "garbage", "other JSON", "a damaged entry",
        "a line without an end", "another folder", "exchanged", "changed",
    ],
)  # fmt: skip
def test_a_process_that_fails_only_costs_time(
    work: Path, read: list[str], started: Callable[[], list[int]],
    monkeypatch: pytest.MonkeyPatch, kind: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(readers, "START", PATIENCE if kind != "hangs" else 2.0)
    monkeypatch.setattr(readers, "LINE", 4_000)
    monkeypatch.setenv("ACP_TESTS_READER", kind)
    told = look(work)
    assert len(started()) == 2
    read_here = sorted(set(read))
    assert told == alone(work)  # after it: one of them was changed meanwhile
    if kind not in ("changed",):
        assert len(read_here) == SIZE
    until_gone(started())


def test_what_a_killed_process_had_is_read_while_another_goes_on(
    work: Path, read: list[str], started: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "START", 10 * PATIENCE)  # what it had is not waited for so long
    monkeypatch.setenv("ACP_TESTS_READER", "one killed")
    told = look(work)
    assert len(started()) == 2
    assert len(set(read)) < SIZE // 2
    assert told == alone(work)


def test_what_was_meant_for_a_process_that_cannot_be_started_is_read(
    work: Path, started: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system has room for one more process, and not for two."""
    monkeypatch.setattr(readers, "START", 10 * PATIENCE)
    begin, begun = subprocess.Popen, threading.Lock()

    def refuse(*given: Any, **more: Any) -> Any:
        if begun.acquire(blocking=False):
            raise BlockingIOError("Resource temporarily unavailable")
        return begin(*given, **more)

    monkeypatch.setattr(subprocess, "Popen", refuse)
    told = look(work)
    assert len(started()) == 1
    assert told == alone(work)


def test_what_changes_between_reading_and_recall_is_read_anew(
    work: Path, read: list[str], started: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_TESTS_READER", "changed")
    look(work)
    late = {each.parent.name for each in work.glob("*/review.md") if "Late" in each.read_text()}
    assert late
    assert late <= set(read)
    assert len(set(read)) < SIZE


def test_who_is_killed_takes_its_reading_processes_along(
    work: Path, started: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They hang while they read, and it can tell them nothing any more."""
    monkeypatch.setenv("ACP_TESTS_READER", "hangs")
    code = (
        "import sys, time\n"
        "from acp_core.files import tree_state\n"
        "from acp_core.fleet import Fleet, readers, readings\n"
        "from acp_core.protocols.processes import Process\n"
        f"readers.READER = Process({odd_reader.HERE!r}, (), '')\n"
        "readers.processors = lambda: 2\n"
        "readers.BATCH, readings.MANY, readings.SAMPLE = 3, 10, 4\n"
        "tree_state.now = lambda: time.time() + 3600\n"
        "Fleet([sys.argv[1]], rows=True).read()\n"
    )
    looking = subprocess.Popen([sys.executable, "-c", code, str(work)])
    end = time.monotonic() + PATIENCE
    while len(started()) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    assert all(is_running(pid) for pid in started())
    looking.send_signal(signal.SIGKILL)
    looking.wait()
    assert len(started()) == 2
    until_gone(started())


def test_a_reading_process_has_nothing_of_the_one_it_reads_for(
    work: Path, tmp_path: Path, started: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_TESTS_READER", "told")
    with (tmp_path / "claim.lock").open("w"):
        look(work)
    for told in map(note_of, started()):
        first, others = told["files"][:3], told["files"][3:]
        assert set(first) == {"/dev/null"}
        assert {name.partition(":")[0] for name in others} <= {"/dev/null", "pipe"}
        assert told["nice"] == os.nice(0)
        assert {"textual", "rich", "pydantic"} & set(told["modules"]) == set()


def test_few_are_read_by_one_process(
    work: Path, started: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings, "MANY", SIZE + 1)
    look(work)
    assert started() == []


def test_one_processor_is_used_by_one_process(work: Path, started: Callable[[], list[int]]) -> None:
    alone(work)
    assert started() == []


@pytest.mark.parametrize(
    ("processors", "expected"), [(1, 0), (2, 2), (3, 3), (readers.PROCESSES + 5, readers.PROCESSES)]
)
def test_the_number_follows_from_the_processors(
    monkeypatch: pytest.MonkeyPatch, processors: int, expected: int
) -> None:
    monkeypatch.setattr(readers, "processors", lambda: processors)
    assert readers.number() == expected


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system pins no process")
def test_only_processors_that_this_process_may_use_count() -> None:
    code = (
        "import os\n"
        "from acp_core.fleet import readers\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "print(readers.processors(), readers.number())\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["1", "0"]


@pytest.mark.parametrize(
    ("quota", "least"), [("max 100000", 2), ("150000 100000", 1), ("50000 100000", 1), ("", 2)]
)
def test_a_quota_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, least: int
) -> None:
    place = tmp_path / "cpu.max"
    place.write_text(quota)
    monkeypatch.setattr(readers, "QUOTA", place)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "process_cpu_count", lambda: 2, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    assert readers.processors() == least


def test_what_goes_on_has_no_other_process_started(
    tmp_path: Path, started: Callable[[], list[int]]
) -> None:
    look(live_ones(tmp_path / "live", SIZE))
    assert started() == []


def test_processes_that_bring_no_rows_end(
    work: Path, tmp_path: Path, started: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is read twice for long where what comes is not like what was read first."""
    monkeypatch.setattr(readers, "SAMPLE", 6)
    monkeypatch.setattr(readings, "SHARE", 1_000)
    asked: list[str] = []
    line = readers.Readers._line

    def noted(self: readers.Readers, batch: dict[str, Any]) -> bytes:
        asked.extend(batch)
        return line(self, batch)

    monkeypatch.setattr(readers.Readers, "_line", noted)
    live = live_ones(tmp_path / "live", 60)
    shutil.copytree(work / "c00", live / "a")  # the very first is one of those
    found = look(live)
    assert started()
    assert len(asked) < 40
    assert found == alone(live)


def test_nothing_is_read_again_to_learn_from_it(
    work: Path, read: list[str], started: Callable[[], list[int]]
) -> None:
    first = alone(work, learns=True)
    forget()
    forget("ACP_STATE")
    read.clear()
    assert look(work, learns=True) == first
    assert len(started()) == 2
    assert len(read) < SIZE // 3


# while a fleet is followed


async def test_a_fleet_that_is_followed_is_read_by_others_too(
    work: Path, slow: None, started: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings, "IDLE", 0.1)
    monkeypatch.setenv("ACP_TESTS_READER", "told")
    async with watching(work, rows=True) as reader:
        assert len(reader.shown) == SIZE
        assert any(isinstance(each, CachedSnapshot) for each in reader.shown.values())
        assert len(started()) == 2
        going_on = asyncio.create_task(reader.until(lambda: False))
        await asyncio.to_thread(until_gone, started())  # they are not needed any more
        going_on.cancel()
        await asyncio.wait([going_on])
    told = [note for note in map(note_of, started()) if note]
    assert told
    assert {note["nice"] for note in told} == {os.nice(0) + readers.NICE}


async def test_what_somebody_asks_for_waits_for_no_other_process(
    work: Path, slow: None, started: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_TESTS_READER", "hangs")
    monkeypatch.setattr(readers, "START", 10 * PATIENCE)
    reader = Reader(Fleet([work], rows=True))
    fleet = reader.fleet
    looking = asyncio.create_task(reader.until(lambda: False))
    try:
        async with asyncio.timeout(PATIENCE):
            while len(started()) < 2 or not any(one.away for one in fleet._members.values()):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            changed, asked = [key for key, one in fleet._members.items() if one.away][-2:]
            assert await fleet.call(asked, lambda opened: opened.refresh(NOW).key) == asked
            fleet.touch(changed)
            while changed not in reader.shown:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            assert reader.shown[changed].documents
    finally:
        looking.cancel()
        await asyncio.wait([looking])
        await reader.stop()
    assert len(reader.shown) < SIZE
    until_gone(started())


async def test_a_fleet_that_is_followed_reads_itself_what_others_do_not(
    work: Path, slow: None, started: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_TESTS_READER", "killed")
    async with watching(work, rows=True) as reader:
        assert len(reader.shown) == SIZE
        assert len(started()) == 2
        assert {each.source.note for each in reader.shown.values()} == {""}
    until_gone(started())


def test_the_limit_of_rows_lies_below_that_of_processes() -> None:
    assert kept_rows.MANY < readings.MANY
