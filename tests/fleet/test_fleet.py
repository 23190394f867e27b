"""Many collaborations at once: found, watched and read, and what changed comes as batches."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.files import claims, watch
from acp_core.fleet import Batch, Fleet, NoCollaboration, live, member, readings, workers
from acp_core.model import OutcomeState, Snapshot, SourceState, Status
from tests.support import toy

PATIENCE = 60  # s until a test gives up; nothing passes or fails by being quicker
NOW = datetime(2026, 5, 3, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def only_toys(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    toy.register(monkeypatch, tmp_path_factory.mktemp("site"), alone=True)


class Reader:
    """Somebody who looks at a fleet: what they would see now, and everything that was said."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.batches: list[Batch] = []
        self.shown: dict[str, Snapshot] = {}
        self._changes = fleet.changes()

    async def until(self, seen: Callable[[], object]) -> None:
        """Read on until the fleet looks like that."""
        async with asyncio.timeout(PATIENCE):
            while not seen():
                await self.next()

    async def next(self) -> Batch:
        """Read one batch."""
        batch = await anext(self._changes)
        self.batches.append(batch)
        for key in batch.gone:
            del self.shown[key]
        self.shown.update({snapshot.key: snapshot for snapshot in batch.snapshots})
        return batch

    async def first_look(self) -> None:
        await self.until(lambda: self.batches and self.batches[-1].complete)

    def events(self, folder: Path) -> int:
        """How many events are shown of the collaboration in ``folder``."""
        shown = self.shown.get(str(folder))
        return len(shown.events) if shown else 0

    async def stop(self) -> None:
        await self._changes.aclose()
        await self.fleet.close()


@asynccontextmanager
async def watching(*paths: Path, **settings: object) -> AsyncIterator[Reader]:
    """A fleet of these paths whose first look is over."""
    reader = Reader(Fleet(paths, **settings))  # type: ignore[arg-type]
    try:
        await reader.first_look()
        yield reader
    finally:
        await reader.stop()


# --- the first look ------------------------------------------------------------------------


async def test_the_first_look_shows_all_in_their_order_and_ends(tmp_path: Path) -> None:
    folders = [toy.make(tmp_path / f"c{number:02}") for number in range(60)]
    async with watching(tmp_path) as reader:
        assert sorted(reader.shown) == [str(folder) for folder in folders]
        for batch in reader.batches:
            names = [snapshot.key for snapshot in batch.snapshots]
            assert names == sorted(names)
        assert [batch.complete for batch in reader.batches[:-1]] == [False] * (
            len(reader.batches) - 1
        )
        assert dict(reader.fleet.snapshots) == reader.shown
        assert reader.fleet.note == ""


async def test_an_empty_path_ends_the_first_look_too(tmp_path: Path) -> None:
    async with watching(tmp_path) as reader:
        assert reader.batches == [Batch((), complete=True)]


async def test_many_come_in_several_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [toy.make(tmp_path / f"c{number:02}") for number in range(70)]
    shown = threading.Semaphore(26)  # the rest is read only after the first batch was seen
    refresh = toy.Toy.refresh

    def slow(self: toy.Toy, now: datetime) -> Snapshot:
        assert shown.acquire(timeout=PATIENCE)
        return refresh(self, now)

    monkeypatch.setattr(toy.Toy, "refresh", slow)
    reader = Reader(Fleet([tmp_path]))
    first = await reader.next()
    assert not first.complete
    assert 0 < len(first.snapshots) < len(folders)
    shown.release(10_000)
    await reader.first_look()
    assert len(reader.shown) == len(folders)
    await reader.stop()


async def test_overlapping_paths_show_each_collaboration_once(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "a" / "one")
    async with watching(tmp_path, tmp_path / "a", one) as reader:
        assert list(reader.shown) == [str(one)]


async def test_a_path_that_does_not_exist_is_said_and_waited_for(tmp_path: Path) -> None:
    later = tmp_path / "later"
    async with watching(later) as reader:
        assert reader.batches[-1].note == f"{later}: No such file or directory"
        assert reader.fleet.problems == {str(later): "No such file or directory"}
        one = toy.make(later / "one")
        await reader.until(lambda: str(one) in reader.shown)
        await reader.until(lambda: reader.batches[-1].note == "")


async def test_given_places_that_hold_nothing_say_so_and_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "CHECK", 0.1)
    empty, none, file = tmp_path / "empty", tmp_path / "none", tmp_path / "file"
    empty.mkdir()
    file.write_text("")
    async with watching(empty, none, file, discover=False) as reader:
        said = {Path(key).name: shown.source.note for key, shown in reader.shown.items()}
        assert said == {
            "empty": "not a collaboration (no toy.json)",
            "none": "no such folder",
            "file": "this is a file, not the folder of a collaboration",
        }
        for shown in reader.shown.values():
            assert (shown.status, shown.source.state) == (Status.UNKNOWN, SourceState.UNREACHABLE)
        with pytest.raises(NoCollaboration):
            await reader.fleet.call(str(empty), lambda one: one.load("notes.md"))
        toy.make(empty)
        toy.make(none)
        await reader.until(
            lambda: all(reader.shown[str(one)].protocol == "toy" for one in (empty, none))
        )


# --- changes -------------------------------------------------------------------------------


async def test_every_change_is_seen_and_only_what_changed_is_new(tmp_path: Path) -> None:
    one, other = toy.make(tmp_path / "one"), toy.make(tmp_path / "other")
    async with watching(tmp_path) as reader:
        before = reader.shown[str(other)]
        for number in range(1, 6):
            toy.say(one, "ann", "said", f"number {number}")
            await reader.until(lambda number=number: reader.events(one) == number)
        assert reader.shown[str(other)] is before
        (one / "notes.md").write_text("# Other notes\n")
        version = reader.shown[str(one)].document("notes.md").version
        await reader.until(lambda: reader.shown[str(one)].document("notes.md").version != version)
        text = await reader.fleet.call(str(one), lambda c: c.load("notes.md").text)
        assert text == "# Other notes\n"


async def test_a_flood_is_coalesced_and_its_end_is_seen(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "one")
    async with watching(tmp_path) as reader:
        reader.batches.clear()

        def flood() -> None:
            for number in range(400):
                toy.say(one, "ann", "said", str(number))

        await asyncio.gather(
            asyncio.to_thread(flood), reader.until(lambda: reader.events(one) == 400)
        )
        assert len(reader.batches) < 200


async def test_a_stream_of_changes_is_read_a_few_times_a_second(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "one")
    async with watching(tmp_path) as reader:
        reader.batches.clear()
        begun = time.monotonic()

        def stream() -> None:
            for number in range(60):
                toy.say(one, "ann", "said", str(number))
                time.sleep(0.02)

        await asyncio.gather(
            asyncio.to_thread(stream), reader.until(lambda: reader.events(one) == 60)
        )
        read = sum(str(one) in {each.key for each in batch.snapshots} for batch in reader.batches)
        assert read <= member.AT_ONCE + (time.monotonic() - begun) / member.STEADY + 1


async def test_changes_in_another_folder_that_matters_are_seen(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    one = str(toy.make(tmp_path / "work" / "one", deliverable="../../elsewhere/result.md"))
    async with watching(tmp_path / "work") as reader:
        for text in ("a", "ab", "abc"):
            (elsewhere / "result.md").write_text(text)
            await reader.until(lambda text=text: reader.shown[one].documents[1].size == len(text))


@pytest.mark.slow
async def test_who_runs_it_is_seen_from_when_they_begin_to_when_they_end(tmp_path: Path) -> None:
    """A claim of a loop that this account's own state folder does not know."""
    home = toy.make(tmp_path / "talk")
    program = "import sys\nfrom acp_core.files import claims\n"
    program += "with claims.take(sys.argv[1], 'loops/ann', 'agent', 'ann'): sys.stdin.read()"
    account = claims.account(os.getuid())

    def runners() -> list[tuple[str, str]]:
        shown = reader.shown[str(home)].runners
        return [(each.participant, each.account) for each in shown]

    async with watching(tmp_path) as reader:
        assert runners() == []
        words = [sys.executable, "-c", program, str(home)]
        held = await asyncio.create_subprocess_exec(*words, stdin=subprocess.PIPE)
        await reader.until(lambda: runners() == [("ann", account)])
        assert held.stdin is not None
        held.stdin.close()
        await reader.until(lambda: runners() == [])
        assert await held.wait() == 0


async def test_new_ones_are_found_and_vanished_ones_go(tmp_path: Path) -> None:
    old = toy.make(tmp_path / "old")
    async with watching(tmp_path) as reader:
        new = toy.make(tmp_path / "new")
        await reader.until(lambda: str(new) in reader.shown)
        deep = toy.make(tmp_path / "a" / "b" / "deep")
        await reader.until(lambda: str(deep) in reader.shown)
        toy.say(deep, "ann", "said", "hello")
        await reader.until(lambda: reader.events(deep) == 1)
        shutil.rmtree(old)
        (new / "toy.json").unlink()
        deep.rename(tmp_path / "a" / "renamed")
        renamed = str(tmp_path / "a" / "renamed")
        await reader.until(lambda: set(reader.shown) == {renamed})
        assert set(reader.fleet.snapshots) == {renamed}
        with pytest.raises(KeyError):
            await reader.fleet.call(str(old), lambda one: one.load("notes.md"))


async def test_a_folder_exchanged_for_another_is_read_anew(tmp_path: Path) -> None:
    one, spare = toy.make(tmp_path / "one", "Old"), toy.make(tmp_path / ".cache" / "new", "New")
    async with watching(tmp_path) as reader:
        one.rename(tmp_path / ".cache" / "old")
        spare.rename(one)
        await reader.until(lambda: reader.shown.get(str(one)) and
                           reader.shown[str(one)].objective == "New")  # fmt: skip
        toy.say(one, "ann", "said", "hello")
        await reader.until(lambda: reader.events(one) == 1)


async def test_a_missed_change_is_noticed_by_the_slow_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "NET", 0.2)
    one = toy.make(tmp_path / "one")
    async with watching(tmp_path) as reader:
        reader.fleet._watch_list._watcher.close()
        toy.say(one, "ann", "said", "hello")
        new = toy.make(tmp_path / "new")
        await reader.until(lambda: reader.events(one) == 1 and str(new) in reader.shown)


async def test_what_is_known_is_looked_at_sooner_where_it_is_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings, "LEAST_BETWEEN_LOOKS", 0.2)
    one = toy.make(tmp_path / "one")
    async with watching(tmp_path) as reader:
        reader.fleet._watch_list._watcher.close()
        toy.say(one, "ann", "said", "hello")
        await reader.until(lambda: reader.events(one) == 1)


async def test_touching_asks_for_a_look_now(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "one")
    async with watching(tmp_path) as reader:
        reader.fleet._watch_list._watcher.close()
        toy.say(one, "ann", "said", "hello")
        reader.fleet.touch(str(one))
        reader.fleet.touch("no such one")
        await reader.until(lambda: reader.events(one) == 1)


async def test_one_can_be_taken_in_from_elsewhere(tmp_path: Path) -> None:
    one, other = toy.make(tmp_path / "work" / "one"), toy.make(tmp_path / "elsewhere")
    async with watching(tmp_path / "work") as reader:
        assert reader.fleet.add(other) == str(other)
        reader.fleet.add(one)
        await reader.until(lambda: str(other) in reader.shown)
        toy.say(other, "ann", "said", "hello")
        await reader.until(lambda: reader.events(other) == 1)


async def test_polling_shows_the_same_and_says_so(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "one")
    async with watching(tmp_path, poll=True) as reader:
        toy.say(one, "ann", "said", "hello")
        await reader.until(lambda: reader.events(one) == 1)
        await reader.until(lambda: reader.batches[-1].note.startswith("polling 2 folders: asked"))
        new = toy.make(tmp_path / "new")
        await reader.until(lambda: str(new) in reader.shown)


# --- the clock -----------------------------------------------------------------------------


async def test_what_depends_on_the_clock_is_read_again_in_time(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "one", remind_after=0.3)
    async with watching(tmp_path) as reader:
        toy.say(one, "ann", "asked", "red?", datetime.now(UTC) + timedelta(seconds=1))
        await reader.until(lambda: reader.events(one) == 1)
        await reader.until(lambda: "overdue" in reader.shown[str(one)].headline)


async def test_one_that_is_always_overdue_is_not_read_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A faulty protocol asks to be read again at a time that is past, every time."""
    from dataclasses import replace

    refresh, looks = toy.Toy.refresh, []

    def restless(self: toy.Toy, now: datetime) -> Snapshot:
        looks.append(now)
        return replace(refresh(self, now), recheck_at=now - timedelta(hours=1))

    monkeypatch.setattr(toy.Toy, "refresh", restless)
    monkeypatch.setattr(readings, "SOON", 3600.0)
    one = toy.make(tmp_path / "one")
    async with watching(tmp_path) as reader:
        toy.say(one, "ann", "said", "hello")
        await reader.until(lambda: reader.events(one) == 1)
        assert len(looks) < 20


# --- faults --------------------------------------------------------------------------------


async def test_a_fault_in_a_protocol_keeps_what_was_read_and_ends_nothing(tmp_path: Path) -> None:
    one, other = toy.make(tmp_path / "one"), toy.make(tmp_path / "other")
    toy.say(one, "ann", "said", "hello")
    settings = json.loads((one / "toy.json").read_text())
    async with watching(tmp_path) as reader:
        (one / "toy.json").write_text(json.dumps(settings | {"bug": "odd\x1b[2J"}))
        await reader.until(lambda: reader.shown[str(one)].source.state is SourceState.UNREACHABLE)
        shown = reader.shown[str(one)]
        assert shown.source.note == "reading failed because of a bug in acp: RuntimeError: odd␛[2J"
        assert [event.summary for event in shown.events] == ["hello"]
        toy.say(other, "ann", "said", "still here")
        await reader.until(lambda: reader.events(other) == 1)
        (one / "toy.json").write_text(json.dumps(settings))
        await reader.until(lambda: reader.shown[str(one)].source.state is SourceState.LIVE)


async def test_one_that_was_never_readable_is_shown_with_the_reason(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "one", bug="oh")
    async with watching(tmp_path) as reader:
        shown = reader.shown[str(one)]
        assert (shown.name, shown.protocol, shown.status) == ("one", "toy", Status.UNKNOWN)
        assert shown.headline == "reading failed because of a bug in acp: RuntimeError: oh"


async def test_one_that_does_not_answer_does_not_hold_up_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings, "PATIENCE", 0.1)
    monkeypatch.setattr(readings, "HELP", 0.1)
    monkeypatch.setattr(workers, "STUCK", 0.1)
    folders = [toy.make(tmp_path / f"c{number}") for number in range(12)]
    dead, answer, refresh = folders[:6], threading.Event(), toy.Toy.refresh

    def hang(self: toy.Toy, now: datetime) -> Snapshot:
        if Path(self.key) in dead:
            assert answer.wait(PATIENCE)
        return refresh(self, now)

    monkeypatch.setattr(toy.Toy, "refresh", hang)
    async with watching(tmp_path) as reader:
        for folder in folders:
            shown = reader.shown[str(folder)]
            assert (shown.source.state is SourceState.UNREACHABLE) == (folder in dead)
        answer.set()
        await reader.until(
            lambda: all(s.source.state is SourceState.LIVE for s in reader.shown.values())
        )


def slow(finished: threading.Event) -> Callable[[toy.Toy, datetime], Snapshot]:
    """A reading that computes until it may end."""
    refresh = toy.Toy.refresh

    def compute(self: toy.Toy, now: datetime) -> Snapshot:
        while not finished.is_set():
            sum(range(10_000))
        return refresh(self, now)

    return compute


async def test_one_that_is_large_is_not_said_to_be_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings, "PATIENCE", 0.5)
    monkeypatch.setattr(readings, "HELP", 0.1)
    finished = threading.Event()
    one = str(toy.make(tmp_path / "one"))
    monkeypatch.setattr(toy.Toy, "refresh", slow(finished))
    async with watching(tmp_path) as reader:
        source = reader.shown[one].source
        assert (source.state, source.note.partition(":")[0]) == (
            SourceState.STALE,
            "still reading",
        )
        finished.set()
        await reader.until(lambda: reader.shown[one].source.state is SourceState.LIVE)


@pytest.mark.slow
def test_a_command_waits_for_one_that_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PATIENCE", 0.5)
    finished = threading.Event()
    toy.make(tmp_path / "one")
    monkeypatch.setattr(toy.Toy, "refresh", slow(finished))
    threading.Timer(4.0, finished.set).start()
    fleet = Fleet([tmp_path])
    (read,) = fleet.read()
    asyncio.run(fleet.close())
    assert read.source.state is SourceState.LIVE


async def test_a_broken_installation_is_no_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ImportError("half an installation")

    monkeypatch.setattr("acp_core.protocols.registry.installed", fail)
    reader = Reader(Fleet([tmp_path]))
    with pytest.raises(ImportError):
        await reader.next()
    await reader.stop()


# --- acting --------------------------------------------------------------------------------


async def test_an_answer_given_here_is_read_back(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "one")
    toy.say(one, "ann", "asked", "red?")
    async with watching(tmp_path) as reader:
        assert [need.sentence for need in reader.shown[str(one)].needs] == ["ann asks: red?"]
        (action,) = await reader.fleet.call(str(one), lambda c: c.actions(NOW))
        inputs = action.inputs(text="blue")
        outcome = await reader.fleet.call(str(one), lambda _: action.perform(inputs))
        assert outcome.state is OutcomeState.DONE
        await reader.until(lambda: not reader.shown[str(one)].needs)
        assert reader.shown[str(one)].events[-1].summary == "blue"


async def test_calls_and_refreshes_of_one_never_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, running, most, refresh = toy.make(tmp_path / "one"), [], [], toy.Toy.refresh

    def busy(function: Callable[[], object]) -> object:
        running.append(1)
        most.append(len(running))
        threading.Event().wait(0.002)
        result = function()
        running.pop()
        return result

    monkeypatch.setattr(toy.Toy, "refresh", lambda self, now: busy(lambda: refresh(self, now)))
    async with watching(tmp_path) as reader:
        calls = [
            reader.fleet.call(str(one), lambda c: busy(lambda: c.load("notes.md")))
            for _ in range(50)
        ]
        for number in range(20):
            toy.say(one, "ann", "said", str(number))
        await asyncio.gather(*calls, reader.until(lambda: reader.events(one) == 20))
        assert max(most) == 1


async def test_an_error_in_a_call_belongs_to_the_caller(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "one")
    async with watching(tmp_path) as reader:
        with pytest.raises(KeyError):
            await reader.fleet.call(str(one), lambda c: c.load("no such document"))
        toy.say(one, "ann", "said", "hello")
        await reader.until(lambda: reader.events(one) == 1)


# --- its life ------------------------------------------------------------------------------


async def test_only_one_follows_the_changes_and_another_may_after(tmp_path: Path) -> None:
    one, gone = toy.make(tmp_path / "one"), toy.make(tmp_path / "gone")
    fleet = Fleet([tmp_path])
    first, second = Reader(fleet), Reader(fleet)
    await first.first_look()
    with pytest.raises(RuntimeError):
        await second.next()
    await first._changes.aclose()
    shutil.rmtree(gone)
    third = Reader(fleet)
    await third.first_look()
    await third.until(lambda: set(third.shown) == {str(one)})
    toy.say(one, "ann", "said", "hello")
    await third.until(lambda: third.events(one) == 1)
    await third.stop()


async def test_nothing_is_left_running_after_the_end(tmp_path: Path) -> None:
    toy.make(tmp_path / "one")
    before = set(threading.enumerate())
    async with watching(tmp_path):
        assert any(each.name.startswith("acp-") for each in {*threading.enumerate()} - before)
    for thread in {*threading.enumerate()} - before:
        if thread.name.startswith("acp-"):
            thread.join(PATIENCE)
            assert not thread.is_alive()


def test_one_look_without_watching(tmp_path: Path) -> None:
    folders = [toy.make(tmp_path / f"c{number}") for number in range(5)]
    fleet = Fleet([tmp_path, tmp_path / "none"], clock=lambda: NOW)
    snapshots = fleet.read()
    assert [snapshot.key for snapshot in snapshots] == [str(folder) for folder in folders]
    assert {snapshot.as_of for snapshot in snapshots} == {NOW}
    assert fleet.note == f"{tmp_path / 'none'}: No such file or directory"
    text = fleet.call_sync(str(folders[0]), lambda c: c.load("notes.md").text)
    assert text.startswith("# Choose a colour")
    shutil.rmtree(folders[0])
    assert [snapshot.key for snapshot in fleet.read()] == [str(folder) for folder in folders[1:]]
    asyncio.run(fleet.close())


def test_one_look_at_given_places(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "one")
    toy.make(one / "below")
    fleet = Fleet([one, tmp_path], discover=False)
    assert [snapshot.status for snapshot in fleet.read()] == [Status.ACTIVE, Status.UNKNOWN]
    asyncio.run(fleet.close())


@pytest.mark.parametrize("poll", [False, True], ids=["kernel", "polling"])
@pytest.mark.parametrize("seed", range(2))
async def test_after_a_storm_of_changes_what_is_shown_is_what_is_there(
    tmp_path: Path, seed: int, poll: bool
) -> None:
    chance = random.Random(seed)
    places = [tmp_path / name for name in ("a", "b", "b/c", "d/e/f", "d/e", ".cache/g")]

    def one_change() -> None:
        folder = chance.choice(places)
        there = toy.detect(folder)
        match chance.randrange(6):
            case 0 if not there and not folder.exists():
                toy.make(folder)
            case 1 if there and chance.random() < 0.5:
                shutil.rmtree(folder)
            case 2 if folder.exists() and not (other := chance.choice(places)).exists():
                if folder not in other.parents and other.parent.exists():
                    folder.rename(other)
            case 3 if there:
                (folder / "toy.json").unlink()
            case 4 if folder.exists() and not there:
                toy.make(folder)
            case _ if there:
                toy.say(folder, "ann", "said", "again")

    def storm() -> None:
        for _ in range(300):
            one_change()
            threading.Event().wait(chance.choice([0, 0, 0.001, 0.01]))

    async with watching(tmp_path, poll=poll) as reader:
        await asyncio.gather(
            asyncio.to_thread(storm), reader.until(lambda: len(reader.batches) > 3)
        )
        there = {snapshot.key: len(snapshot.events) for snapshot in Fleet([tmp_path]).read()}
        await reader.until(
            lambda: {key: len(shown.events) for key, shown in reader.shown.items()} == there
        )
