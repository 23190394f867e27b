"""An agent elsewhere in the dashboard: reached by its address, followed, lost and found again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import httpx
import pytest

from acp_core.fleet import Fleet
from acp_core.history.past import Past
from acp_core.history.recorder import Recorder
from acp_core.model import OutcomeState, Snapshot, SourceState, Status
from acp_core.protocols import locations
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from acp_core.protocols.locations import BadLocation
from acp_core.protocols.wire.collaboration import RemoteAgent, open_agent
from acp_core.protocols.wire.network.links import TOKEN_VARIABLE
from acp_core.protocols.wire.read.known import recording_folder
from tests.protocols.wire.support import OWNER, ROOT, Process, do, panel, post, until

OPTIONS = ("--port", "0", "--http-port", "0", "--sync", "normal")


def free() -> str:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


@pytest.fixture
def two() -> Iterator[tuple[Process, Process]]:
    with Process("A", *OPTIONS, "--secret", "s") as a, Process("B", *OPTIONS) as b:
        post(a, "/peers/connect", {"link": b.link})
        until(
            lambda: len(httpx.get(f"{b.url}/peers", trust_env=False, auth=OWNER).json()) == 1,
            "connection",
        )
        yield a, b


@contextlib.contextmanager
def opened(location: str) -> Iterator[RemoteAgent]:
    agent = RemoteAgent(locations.resolve(location))
    try:
        yield agent
    finally:
        agent.close()


def look(agent: RemoteAgent, after: float = 0.0) -> Snapshot:
    return agent.refresh(datetime.now(UTC) + timedelta(seconds=after))


def test_all_that_an_agent_does_is_seen_and_steered_from_elsewhere(
    two: tuple[Process, Process],
) -> None:
    a, b = two
    with opened(a.url) as here, opened(b.link) as there:
        first = look(here)
        assert (first.key, first.name, first.phase) == (a.url, "A", "running")
        assert (first.status, first.source.state) == (Status.ACTIVE, SourceState.LIVE)
        assert first.headline == "1 of 1 peer connected"
        assert look(here) is first
        assert look(there).name == "B"
        assert "tok_" not in repr(look(there))

        sent = do(here, "send", peer="peer_001", text="Boil \x1b[31m[b]it", context="k", task=True)
        assert sent.state is OutcomeState.DONE, sent
        (row,) = until(lambda: panel(look(there), "tasks"), "the task's arrival")
        task = row[0]
        seen = until(lambda: look(here) if panel(look(here), "tasks") else None, "the task")
        message = next(event for event in seen.events if event.kind.startswith("message"))
        assert (message.kind, "Boil" in message.summary) == ("message to B", True)
        assert "\x1b" not in repr(seen)
        assert f'"task_id":"{task}"' in here.raw_event(message.id)
        assert panel(seen, "contexts")[0][:3] == ("k", "1", "A")

        post(b, f"/tasks/{task}:update", {"status": "input_required"})
        asked = until(lambda: look(here) if look(here).needs else None, "the question")
        assert (asked.needs[0].remedy, asked.needs[0].given) == ("answer", (("task", task),))
        assert not look(there).needs
        assert do(here, "answer", task=task, text="ten minutes").state is OutcomeState.DONE
        post(b, f"/tasks/{task}:update", {"status": "completed", "artifact": "boiled"})
        until(
            lambda: (
                [(row[0], row[-1]) for row in panel(look(here), "artifacts")] == [(task, "boiled")]
            ),
            "the artifact",
        )
        until(lambda: panel(look(here), "tasks")[0][1] == "completed", "its state")

        post(b, "/message:send", {"text": "unsigned"})
        until(lambda: ("B", "0", "0", "1", "0") in panel(look(here), "signatures"), "the message")
        other = do(here, "send", peer="this agent", data='{"n": 1}', file="http://x.example/y")
        assert other.state is OutcomeState.DONE
        until(lambda: any(e.actor == "human" for e in look(here).events), "the person's message")


def test_it_is_lost_and_found_again_without_a_gap(tmp_path: Path) -> None:
    ports = ("--port", free(), "--http-port", free(), "--sync", "normal")
    with Process("A", *ports) as a:
        with opened(a.url) as here:
            changed: list[int] = []
            here.subscribe(lambda: changed.append(1))
            look(here)
            until(lambda: look(here).source.state is SourceState.LIVE, "the first answer")
            for n in range(3):
                post(a, "/message:send", {"text": f"{n}", "from": "C"})
            until(lambda: len(look(here).events) == 3, "three messages")
            until(lambda: changed, "that it is told")
            a.kill()
            lost = until(lambda: look(here) if look(here).phase != "running" else None, "its end")
            assert (lost.source.state, lost.status) == (SourceState.STALE, Status.UNKNOWN)
            assert lost.headline == "not reachable"
            assert lost.source.note.endswith("trying again")
            assert len(lost.events) == 3
            assert not here.actions(datetime.now(UTC))
            a.start()
            for n in range(3, 6):
                post(a, "/message:send", {"text": f"{n}", "from": "C"})
            until(lambda: len(look(here).events) == 6, "the rest")
            back = look(here)
            assert back.source.state is SourceState.LIVE
            assert [event.summary for event in back.events] == list("012345")
        a.kill()
        with opened(a.url) as again:  # what is known of it outlives both
            assert len(look(again).events) == 6
            assert "cannot reach 127.0.0.1:" in look(again).source.note


def test_a_fleet_shows_it_at_once_and_as_it_changes(two: tuple[Process, Process]) -> None:
    a, _ = two
    nobody = f"http://127.0.0.1:{free()}"

    async def follow() -> None:
        fleet = Fleet([locations.resolve(a.url), locations.resolve(nobody)])
        posted = False
        try:
            async with asyncio.timeout(90):
                async for _ in fleet.changes():
                    here, there = fleet.snapshots.get(a.url), fleet.snapshots.get(nobody)
                    if here and here.phase == "running" and not posted:
                        posted = True
                        await asyncio.to_thread(post, a, "/message:send", {"text": "x"})
                    said = here and any(
                        (event.kind, event.summary) == ("message to B", "x")
                        for event in here.events
                    )
                    if said and there and "cannot reach" in there.source.note:
                        assert there.source.state is SourceState.UNREACHABLE
                        break
        finally:
            await fleet.close()

    asyncio.run(follow())
    with opened(nobody) as again:  # that it was tried before is no answer
        assert look(again).source.state is SourceState.UNREACHABLE


@pytest.mark.parametrize(
    "link",
    [
        "acp://", "acp://host:0/t", "acp://ho st:1/t", "acp://u:p@h:1/t", "acp://h:1/t?x=1",
        "acp://h:65500/t", "http://", "http://h:1/?q=1", "http://u:secret@h/", "gopher://h/",
        "tcp://h:1/tok_1", "acp://h:1/\x1b[31m", "http://h:99999", "https://[::1", "x" * 99 + "://",
    ],
)  # fmt: skip
def test_what_is_no_link_is_told_in_one_line(link: str) -> None:
    with pytest.raises(BadLocation) as caught:
        locations.resolve(link)
    said = str(caught.value)
    assert said
    assert "\n" not in said
    assert "secret" not in said


LOOKED = """
import atexit, sys, threading
atexit.register(lambda: print([each.name for each in threading.enumerate()]))
from datetime import UTC, datetime
from acp_core.protocols.wire.collaboration import RemoteAgent
agent = RemoteAgent(sys.argv[1])
print(agent.refresh(datetime.now(UTC)).source.state.value)
agent.close()
"""


def test_nothing_is_at_work_in_a_thread_when_a_process_ends_that_looked_once(
    tmp_path: Path,
) -> None:
    """What the interpreter tears off in the middle of its work may end the process with SIGABRT."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    words = [sys.executable, "-c", LOOKED, f"http://127.0.0.1:{port}"]
    env = {**os.environ, "ACP_STATE": str(tmp_path)}
    ran = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "unreachable\n['MainThread']\n"), ran


def test_a_key_bears_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    assert locations.resolve("acp://Host:7801/tok_1") == "acp://host:7801"
    assert locations.resolve("acp://[::1]:7801/tok_1") == "acp://[::1]:7801"
    assert locations.resolve("http://Host:7901/tok_1/") == "http://host:7901"
    assert locations.resolve("HTTP://Host:7901/x/") == "http://host:7901/x"
    found = locations.find("acp://host:7801")
    assert found
    assert (found.key, found.protocol.name) == ("acp://host:7801", "wire")
    monkeypatch.setenv(TOKEN_VARIABLE, "no token")
    with pytest.raises(BadLocation, match=TOKEN_VARIABLE):
        locations.resolve("acp://host:7801/tok_1")


def test_the_past_of_an_agent_elsewhere_is_rebuilt(two: tuple[Process, Process]) -> None:
    a, b = two
    key = locations.resolve(a.url)

    async def record() -> None:
        fleet = Fleet([key], recorder=Recorder("test"))
        sent = False
        try:
            async with asyncio.timeout(90):
                async for _ in fleet.changes():
                    seen = fleet.snapshots.get(key)
                    if seen and seen.phase == "running" and not sent:
                        sent = True
                        await asyncio.to_thread(post, a, "/tasks", {"text": "x", "delegate": True})
                    tasks = panel(seen, "tasks") if seen else []
                    if tasks and tasks[0][1] == "submitted":
                        task = tasks[0][0]
                        done = {"status": "completed", "artifact": "y"}
                        await asyncio.to_thread(until, partial(arrived, b, task), "its arrival")
                        await asyncio.to_thread(post, b, f"/tasks/{task}:update", done)
                    if seen and panel(seen, "artifacts"):
                        break
        finally:
            await fleet.close()

    asyncio.run(record())
    found = locations.find(key)
    assert found
    a.kill()
    past = Past(found, datetime.now(UTC))
    try:
        assert past.recorded
        events = [each for each in past.moments if each.kind == "event"]
        assert len(events) == len(past.present.events) > 3
        last = past.at(len(past.moments) - 1).snapshot
        assert [(row[0], row[-1]) for row in panel(last, "artifacts")] == [
            (panel(last, "tasks")[0][0], "y")
        ]
        assert last.key == key
        first = past.at(past.index(events[0].name) or 0).snapshot
        assert (len(first.events), first.phase) == (1, "running")
        assert not panel(first, "tasks")
    finally:
        past.close()
    record = open_agent(str(recording_folder(key)))
    later = record.refresh(datetime.now(UTC) + timedelta(hours=1))
    assert (later.phase, later.status, later.needs) == ("not known", Status.UNKNOWN, ())
    assert later.doubt.startswith("the last contact was ")
    assert not record.causes(
        DiagnosisContext(later, Clock(later.as_of))
    )  # nothing can be done there now


def arrived(agent: Process, task: str) -> bool:
    return httpx.get(f"{agent.url}/tasks/{task}", trust_env=False, auth=OWNER).is_success


def test_what_is_known_survives_a_line_that_was_cut_short(two: tuple[Process, Process]) -> None:
    a, _ = two
    post(a, "/message:send", {"text": "x"})
    with opened(a.url) as here:
        count = len(look(here).events)
    a.kill()
    file = recording_folder(a.url) / "wire-log.jsonl"
    with file.open("ab") as log:
        log.write(b'[1]\n\xff\n{"what":"entry","seq":"x"}\n{"what":"entry","seq":99,"ki')
    with opened(a.url) as again:
        assert len(look(again).events) == count
    assert file.read_bytes().endswith(b"\n")
