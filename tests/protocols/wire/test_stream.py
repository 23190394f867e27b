"""Whoever follows an agent gets every event once: now, later, and after having been away."""

from __future__ import annotations

import asyncio
import http.client
import json
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from acp_core.protocols.wire.write import Retention
from tests.protocols.wire.support import OWNER, PATIENCE, Process, Served, served, until


@contextmanager
def following(agent: Served, query: str = "", **headers: str) -> Iterator[Iterator[dict[str, Any]]]:
    """The events of a stream, from the first one on."""
    with (
        httpx.Client(timeout=PATIENCE, trust_env=False, auth=OWNER) as client,
        client.stream("GET", f"{agent.url}/stream{query}", headers=headers) as response,
    ):
        assert response.status_code == 200
        yield events(response.iter_lines())


def events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    event: dict[str, Any] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if not line and "data" in event:
            yield event
            event = {}
        elif name == "data":
            event["data"] = json.loads(value)
        elif name in ("id", "event"):
            event[name] = value


def say(agent: Served, *texts: str) -> None:
    for text in texts:
        agent.post("/message:send", {"text": text, "from": "Other", "message_id": text})


def ids(stream: Iterator[dict[str, Any]], count: int) -> list[str]:
    return [next(stream)["data"]["message_id"] for _ in range(count)]


def test_events_come_as_they_happen(tmp_path: Path) -> None:
    with served(tmp_path) as agent, following(agent) as stream:
        ready = next(stream)
        assert (ready["event"], ready["data"]["type"]) == ("acp.ready", "acp.ready")
        say(agent, "m0")
        message = next(stream)
        assert (message["event"], message["data"]["from"]) == ("acp.message", "Other")
        assert int(message["id"]) == message["data"]["_seq"] == 1
        task = agent.post("/tasks", {"text": "x"}).json()["id"]
        agent.post(f"/tasks/{task}:update", {"status": "completed", "artifact": [1]})
        told = [next(stream) for _ in range(4)]
        assert [each["event"] for each in told] == ["acp.status"] * 2 + [
            "acp.artifact",
            "acp.status",
        ]
        assert [each["data"].get("state") for each in told] == [
            "submitted", "working", None, "completed",
        ]  # fmt: skip
        assert all(each["data"]["type"] == each["event"] for each in told)


def test_what_was_missed_comes_again_and_nothing_twice(tmp_path: Path) -> None:
    with served(tmp_path) as agent:
        say(agent, "m1", "m2", "m3")
        with following(agent, "?since=1") as stream:
            assert next(stream)["data"]["since"] == 1
            say(agent, "m4")
            assert ids(stream, 3) == ["m2", "m3", "m4"]
        last = {"Last-Event-ID": "3"}
        with following(agent, **last) as stream:
            next(stream)
            say(agent, "m5")
            assert ids(stream, 2) == ["m4", "m5"]
        with following(agent, "?since=99") as stream:  # of another store, or made up
            assert next(stream)["data"]["since"] == 5
            say(agent, "m6")
            assert ids(stream, 1) == ["m6"]


def test_a_task_is_followed_to_its_end(tmp_path: Path) -> None:
    with served(tmp_path) as agent:
        id = agent.post("/tasks", {"text": "x"}).json()["id"]
        with httpx.stream(
            "GET", f"{agent.url}/tasks/{id}:subscribe", trust_env=False, auth=OWNER
        ) as response:
            stream = events(response.iter_lines())
            next(stream)
            say(agent, "other")
            agent.post(f"/tasks/{id}:update", {"status": "completed", "artifact": "y"})
            assert [each["event"] for each in stream] == [
                "acp.status",
                "acp.artifact",
                "acp.status",
            ]
        over = httpx.get(f"{agent.url}/tasks/{id}:subscribe", trust_env=False, auth=OWNER)
        assert over.text.count("event: ") == 1  # ready, and nothing will come


def test_what_became_of_a_task_that_is_over_is_told_again(tmp_path: Path) -> None:
    with served(tmp_path) as agent:
        id = agent.post("/tasks", {"text": "x"}).json()["id"]
        say(agent, *(f"m{n}" for n in range(300)))  # more than a page of other entries
        agent.post(f"/tasks/{id}:update", {"status": "completed", "artifact": "y"})
        say(agent, "after")
        url = f"{agent.url}/tasks/{id}:subscribe"
        whole = list(
            events(httpx.get(f"{url}?since=0", trust_env=False, auth=OWNER).text.splitlines())
        )
        kinds = ["acp.status", "acp.status", "acp.artifact", "acp.status"]
        assert [each["event"] for each in whole] == ["acp.ready", *kinds]
        assert [e["data"].get("state") for e in whole[1:]] == [
            "submitted", "working", None, "completed",
        ]  # fmt: skip
        rest = httpx.get(
            url, headers={"Last-Event-ID": whole[2]["id"]}, trust_env=False, auth=OWNER
        ).text
        assert list(events(rest.splitlines()))[1:] == whole[3:]


@pytest.mark.slow
def test_what_is_no_longer_kept_is_told(tmp_path: Path) -> None:
    with served(tmp_path, retention=Retention(log=100, slack=0)) as agent:
        for n in range(11):  # 1100 entries: pruning happens at each thousand
            body = [{"text": "x", "from": "Other", "message_id": f"{n}.{i}"} for i in range(100)]
            for one in body:
                agent.post("/message:send", one)

        def missed() -> Any:
            with following(agent, "?since=0") as stream:
                return next(stream)["data"]["missed"]

        assert until(missed, "pruning") >= 900
        assert agent.get("/messages")["total"] <= 201


def test_clients_that_read_in_blocks_see_each_event_at_once(tmp_path: Path) -> None:
    """`read(512)` waits for that many bytes: each piece fills whole blocks for such a client."""
    with served(tmp_path) as agent:
        address = agent.url.removeprefix("http://")
        connection = http.client.HTTPConnection(address, timeout=PATIENCE)
        token = f"Bearer {agent.agent.owner_token}"
        shown = {"User-Agent": "Python-urllib/3.11", "Authorization": token}
        connection.request("GET", "/stream", headers=shown)
        response = connection.getresponse()
        data = b""
        while b"acp.ready" not in data or not data.endswith(b"\n\n"):
            data += response.read(512)
        for n in range(3):
            say(agent, f"m{n}")
            data = b""
            while f'"m{n}"'.encode() not in data or not data.endswith(b"\n\n"):
                data += response.read(512)
        connection.close()


def test_the_first_block_of_a_stream_holds_its_first_event(tmp_path: Path) -> None:
    with served(tmp_path) as agent:
        connection = http.client.HTTPConnection(agent.url.removeprefix("http://"), timeout=PATIENCE)
        token = f"Bearer {agent.agent.owner_token}"
        connection.request("GET", "/stream", headers={"Authorization": token})
        assert b"event: acp.ready\ndata: {" in connection.getresponse().read(256)
        connection.close()


def test_a_follower_that_does_not_read_holds_up_nobody(tmp_path: Path) -> None:
    with served(tmp_path) as agent, following(agent) as slow:
        next(slow)
        with following(agent) as fast:
            next(fast)
            for n in range(40):
                body = {"text": "x" * 100_000, "from": "Other", "message_id": f"m{n}"}
                agent.post("/message:send", body)
            assert ids(fast, 40) == [f"m{n}" for n in range(40)]
        assert ids(slow, 40) == [f"m{n}" for n in range(40)]


def test_an_agent_ends_although_somebody_follows(tmp_path: Path) -> None:
    with served(tmp_path) as agent, following(agent) as stream:
        next(stream)
        agent.close()
        assert list(stream) == []


@pytest.mark.slow
def test_a_follower_of_a_killed_agent_goes_on_where_it_was() -> None:
    with Process("A", "--port", "0", "--sync", "normal") as agent:
        seen: list[str] = []
        place, ends = "0", threading.Event()

        def follow() -> None:
            nonlocal place
            while not ends.is_set():
                try:
                    with httpx.stream(
                        "GET", f"{agent.url}/stream", headers={"Last-Event-ID": place},
                        timeout=2, trust_env=False, auth=OWNER,
                    ) as response:  # fmt: skip
                        for event in events(response.iter_lines()):
                            place = event["id"]
                            if event["event"] == "acp.message":
                                seen.append(event["data"]["message_id"])
                except httpx.HTTPError:
                    ends.wait(0.05)

        thread = threading.Thread(target=follow)
        thread.start()
        try:
            for n in range(300):
                if n in (70, 140, 141, 230):
                    agent.kill()
                    agent.start()
                body = {"text": "x", "from": "Other", "message_id": f"m{n}"}
                assert httpx.post(
                    f"{agent.url}/message:send", json=body, trust_env=False, auth=OWNER
                ).is_success
            until(lambda: len(seen) >= 300, "the last message")
        finally:
            ends.set()
            agent.kill()
            thread.join()
    assert seen == [f"m{n}" for n in range(300)]


async def follower(agent: Process, opened: asyncio.Semaphore, count: int) -> list[str]:
    """The ids of the first messages of a stream, read from a plain socket."""
    host, port = agent.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
    head = f"GET /stream?since=0 HTTP/1.1\r\nHost: {host}\r\n"
    writer.write(f"{head}Authorization: Bearer {agent.owner_token}\r\n\r\n".encode())
    got: list[str] = []
    while len(got) < count:
        line = await reader.readline()
        assert line, "the stream ended"
        if line.startswith(b"data: ") and b"message_id" in line:
            got.append(json.loads(line[6:])["message_id"])
        elif b"event: acp.ready" in line:
            opened.release()
    writer.close()
    return got


@pytest.mark.slow
def test_a_thousand_follow_at_once() -> None:
    """In one burst, on real sockets; sends go on meanwhile, and every one gets everything."""
    count, messages = 1000, 20
    names = [f"m{n}" for n in range(messages)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * count:
        pytest.skip("this system gives too few files to one process")

    async def follow(agent: Process) -> list[list[str]]:
        opened = asyncio.Semaphore(0)
        tasks = [asyncio.create_task(follower(agent, opened, messages)) for _ in range(count)]
        async with httpx.AsyncClient(trust_env=False, auth=OWNER, timeout=PATIENCE) as client:
            for n, name in enumerate(names):
                if n == messages // 2:  # the second half is told to streams that are open
                    for _ in range(count):
                        await opened.acquire()
                body = {"text": name, "from": "Other", "message_id": name}
                assert (await client.post(f"{agent.url}/message:send", json=body)).is_success
        async with asyncio.timeout(2 * PATIENCE):
            return await asyncio.gather(*tasks)

    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * count), hard))
    try:
        with Process("A", "--port", "0", "--sync", "normal") as agent:
            assert all(got == names for got in asyncio.run(follow(agent)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
