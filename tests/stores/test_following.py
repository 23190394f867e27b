"""Shared folders that somebody looks at: one process keeps all of a store, for as long as they are wanted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from acp_core.files.locked import locked
from acp_core.fleet import Fleet
from acp_core.protocols.folder.conduct import synced, syncing
from acp_core.protocols.folder.read import following
from acp_core.stores.address import parse
from acp_core.stores.git import GitEngine
from acp_core.stores.git_objects import ObjectStore
from acp_core.stores.hosts import open_engine
from tests.agents.support import wait_for
from tests.stores.hosts import Host, repository, started


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Host, Host]:
    """Two hosts; what is done in this process is done on the second one."""
    a, b = Host("a", tmp_path), Host("b", tmp_path)
    for name in ("HOME", "ACP_CONFIG", "ACP_STATE", "ACP_CACHE"):
        monkeypatch.setenv(name, b.env[name])
    return a, b


def both_have(hosts: tuple[Host, Host], store: str, *ids: str) -> list[Path]:
    """Collaborations that the first host begins and the second one joins; the second one's folders."""
    a, b = hosts
    found = []
    for id in ids:
        a.folder = a.home / id
        started(a)
        a.done_here("share", store, "--id", id, "--yes")
        b.done("join", f"{store}#{id}", str(b.home / id))
        found.append(b.home / id)
    return found


@contextlib.contextmanager
def kept(store: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Thread]:
    """The process of a store, as a thread of this one."""
    monkeypatch.setattr(synced, "_ALONE", 0.5)
    monkeypatch.setattr(synced, "_EMPTY", 0.5)
    monkeypatch.setattr(synced, "_WANTS", 0.1)
    ready = threading.Event()
    lock = syncing.place_of(parse(store)) / "process.lock"
    lock.touch()

    def run() -> None:
        with locked(str(lock), timeout=5):
            synced.Store(parse(store)).run(ready.set)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(60)
    yield thread
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.slow
def test_one_process_keeps_all_folders_that_are_wanted(
    store: str, hosts: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, _ = hosts
    one, two, three = both_have(hosts, store, "one", "two", "three")
    address = parse(store)
    held = [syncing.note(str(each), address, hold=True) for each in (one, two)]
    with kept(store, monkeypatch):
        wait_for(lambda: following.is_synced(str(one)) and following.is_synced(str(two)), "both")
        assert not following.is_synced(str(three))
        for folder in (one, two):
            a.folder = a.home / folder.name
            a.appended("writer", "blocked", "--reply-to", "1")
            wait_for(
                lambda log=folder / "events.jsonl": b"blocked" in log.read_bytes(), "the event"
            )
        later = syncing.note(str(three), address, hold=True)
        wait_for(lambda: following.is_synced(str(three)), "a folder that is wanted later")
        syncing.Wanted(later).close()
        wait_for(lambda: not following.is_synced(str(three)), "the end of the want")
        assert following.is_synced(str(one))
        for each in held:
            syncing.Wanted(each).close()


@pytest.mark.slow
def test_what_changes_in_a_folder_leaves_and_what_is_handed_over_is_published(
    store: str, hosts: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = hosts
    [folder] = both_have(hosts, store, "one")
    b.folder = folder
    wanted = syncing.note(str(folder), parse(store), hold=True)
    with kept(store, monkeypatch):
        wait_for(lambda: following.is_synced(str(folder)), "the process")
        b.write("proposal.md", "# P\n\n## Objective\nChoose\n")
        b.appended("writer", "proposal_submitted", "--reply-to", "1")
        b.write(
            "proposal.md", "# P\n\n## Objective\nChoose well\n"
        )  # not while it is being reviewed
        b.write("README.md", "# Changed\n")
        a.sync()
        assert a.log()[-1]["event"] == "proposal_submitted"
        a.appended("reader", "review_submitted", "--reply-to", "2", "--review", "Change it.")
        wait_for(lambda: b.log()[-1]["event"] == "review_submitted", "the review")

        def came() -> bool:
            a.sync()
            return a.read("proposal.md").endswith(b"Choose well\n")

        wait_for(came, "the document, which the owner may change by now")
        syncing.Wanted(wanted).close()


@pytest.mark.slow
def test_one_look_serves_all_folders_of_a_repository(
    tmp_path: Path, hosts: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While nothing happens, no folder asks the repository by itself."""
    store = f"git+file://{repository(tmp_path)}"
    folders = both_have(hosts, store, "one", "two", "three")
    looks: list[str] = []
    reads: list[str] = []
    look, read = ObjectStore.remote_refs, GitEngine.read
    monkeypatch.setattr(
        ObjectStore, "remote_refs", lambda self, pattern: looks.append("") or look(self, pattern)
    )
    monkeypatch.setattr(
        GitEngine, "read", lambda self, since: reads.append(self.address.id) or read(self, since)
    )
    held = [syncing.note(str(each), parse(store), hold=True) for each in folders]
    with kept(store, monkeypatch):
        wait_for(lambda: set(reads) == {"one", "two", "three"}, "all to be read")

        def quiet() -> bool:
            before = len(reads), len(looks)
            wait_for(lambda: len(looks) >= before[1] + 3, "three looks")
            return len(reads) == before[0]

        wait_for(quiet, "three looks in a row without a reading")
        for each in held:
            syncing.Wanted(each).close()


@pytest.mark.slow
async def test_a_live_fleet_has_its_shared_folders_synchronized(
    store: str, hosts: tuple[Host, Host]
) -> None:
    """By a process of its own, which is there for the others, too."""
    a, b = hosts
    folders = both_have(hosts, store, "one", "two")
    fleet = Fleet([b.home])

    async def follow() -> None:
        async for _ in fleet.changes():
            if any(each.phase == "blocked" for each in fleet.snapshots.values()):
                return

    following_it = asyncio.ensure_future(follow())
    try:
        ready = asyncio.to_thread(
            wait_for, lambda: all(map(following.is_synced, map(str, folders))), "both"
        )
        await ready
        mine = {each.pid: each for each in psutil.process_iter() if _is_ours(each, b.home)}
        assert len([each for each in mine.values() if each.ppid() not in mine]) == 1
        a.folder = a.home / "two"
        await asyncio.to_thread(a.appended, "writer", "blocked", "--reply-to", "1")
        await asyncio.wait_for(following_it, 120)
    finally:
        following_it.cancel()
        await fleet.close()
        for each in psutil.process_iter():
            if _is_ours(each, b.home):
                each.kill()


def _is_ours(process: psutil.Process, home: Path) -> bool:
    with contextlib.suppress(psutil.Error):
        return synced.__name__ in process.cmdline() and process.environ().get("HOME") == str(home)
    return False


async def test_a_live_fleet_follows_a_store(store: str, hosts: tuple[Host, Host]) -> None:
    """Rows come and change; one that is looked at is read whole, and its documents with it."""
    a, b = hosts
    link = parse(store).link
    fleet = Fleet([link])
    seen: asyncio.Queue[None] = asyncio.Queue()

    async def follow() -> None:
        async for _ in fleet.changes():
            seen.put_nowait(None)

    task = asyncio.ensure_future(follow())

    async def until(found: str, phase: str) -> None:
        while (each := fleet.snapshots.get(f"{link}#{found}")) is None or each.phase != phase:
            await asyncio.wait_for(seen.get(), 120)

    try:
        a.folder = a.home / "one"
        await asyncio.to_thread(started, a)
        await asyncio.to_thread(a.done, "share", str(a.folder), store, "--id", "one", "--yes")
        await until("one", "drafting")
        assert fleet.snapshots[f"{link}#one"].documents == ()
        assert (
            await fleet.call(
                f"{link}#one",
                lambda opened: list(opened.actions(fleet.snapshots[f"{link}#one"].as_of)),
            )
            == []
        )
        assert not (b.home / "cache" / "joined").exists()
        fleet.look_at(f"{link}#one")
        while not fleet.snapshots[f"{link}#one"].documents:
            await asyncio.wait_for(seen.get(), 120)
        text = await fleet.call(f"{link}#one", lambda opened: opened.load("proposal.md"))
        assert "Proposal" in text.text
        await asyncio.to_thread(a.appended, "writer", "blocked", "--reply-to", "1")
        await until("one", "blocked")
        assert [each.kind for each in fleet.snapshots[f"{link}#one"].events][-1] == "blocked"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await fleet.close()
        for each in psutil.process_iter():
            if _is_ours(each, b.home):
                each.kill()


@pytest.mark.slow
def test_wants_name_nothing_but_folders_of_this_account(hosts: tuple[Host, Host], tmp_path: Path,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """A note that names a folder of another store, or one whose share.json was changed, is left alone."""
    store = f"git+file://{repository(tmp_path)}"
    folder, other = both_have(hosts, store, "one", "two")
    share = other / ".acp" / "share.json"
    share.write_text(json.dumps(json.loads(share.read_text()) | {"url": f"{store}#one"}))
    assert syncing.want(str(other)) is None
    held = [
        syncing.note(str(each), parse(store), hold=True)
        for each in (folder, other, tmp_path / "none")
    ]
    with kept(store, monkeypatch):
        wait_for(lambda: following.is_synced(str(folder)), "the folder that is pinned")
        assert not following.is_synced(str(other))
        for each in held:
            syncing.Wanted(each).close()


def test_a_request_that_is_just_being_made_is_waited_for(
    tmp_path: Path, hosts: tuple[Host, Host]
) -> None:
    """A new file has two names for a moment: that is no reason to take it for another account's."""
    store = f"git+file://{repository(tmp_path)}"
    [folder] = both_have(hosts, store, "one")
    address = parse(f"{store}#one")
    out = folder / ".acp" / "run" / "out"
    with syncing.alone(str(folder)), open_engine(address) as engine:
        process = syncing.Process(str(folder), address, engine, as_json=False, quiet=True)
        asked = out / f"{'0' * 24}.json"
        event = {"participant": "writer", "event": "blocked", "summary": "Wait", "reply_to": 1}
        asked.write_text(json.dumps(event))
        os.link(asked, out / "being-made")
        threading.Timer(0.05, (out / "being-made").unlink).start()
        assert process.serve()
    answer = json.loads((out / f"{'0' * 24}.done").read_text())
    assert answer["entry"]["event"] == "blocked"
