"""Agents that talk to each other: one connection, messages in order, tasks on both sides."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus

from acp_core.protocols.wire.conduct.agent import Limits
from acp_core.protocols.wire.conduct.peers import Peers
from acp_core.protocols.wire.network.links import parse
from acp_core.protocols.wire.schema import bodies
from tests.protocols.wire.support import PATIENCE, Served, refused, served, until

OLD_CARD = {"name": "Old", "acp_version": "0.5", "skills": [], "capabilities": {"streaming": True}}


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Served, Served]]:
    with served(tmp_path, "A") as a, served(tmp_path, "B") as b:
        yield a, b


def texts(agent: Served) -> list[str]:
    found = agent.get("/messages", direction="in", limit=1000)["messages"]
    return [each["parts"][0]["content"] for each in found]


def test_messages_go_both_ways_over_one_connection(two: tuple[Served, Served]) -> None:
    a, b = two
    to_b = a.meet(b)
    assert a.get(f"/peer/{to_b}")["name"] == "B"
    assert b.get("/peers")[0]["name"] == "A"
    sent = a.post("/message:send", {"text": "hello", "context_id": "c", "message_id": "m"})
    assert (sent.status_code, sent.json()["message_id"]) == (200, "m")
    again = a.post("/message:send", {"text": "hello", "context_id": "c", "message_id": "m"})
    assert again.json()["server_seq"] == sent.json()["server_seq"]
    until(lambda: texts(b) == ["hello"], "arrival")
    b.post("/peer/peer_001/send", {"parts": [{"type": "data", "content": None}], "role": "agent"})
    until(lambda: texts(a) == [None], "arrival of the answer")
    kept = b.get("/context/c/messages")["messages"][0]
    ours = a.get("/context/c/messages")["messages"][0]
    assert {k: v for k, v in kept.items() if k[0] != "_"} == {
        k: v for k, v in ours.items() if k[0] != "_"
    }
    counted = ("messages_sent", "messages_received", "queued")
    for one, other in ((a, b), (b, a)):
        until(lambda o=one: [[p[n] for n in counted] for p in o.get("/peers")] == [[1, 1, 0]])
        assert one.get("/card")["peer"]["name"] == other.get("/card")["name"]


def test_one_connection_although_both_call_again_and_again(two: tuple[Served, Served]) -> None:
    a, b = two
    first = a.post("/peers/connect", {"link": b.link}).json()
    b.post("/peers/connect", {"link": a.link})
    again = a.post("/peers/connect", {"link": b.link}).json()
    assert again["already_connected"] is True
    until(lambda: a.get("/status")["connected"] and b.get("/status")["connected"])

    def settled() -> bool:
        counts = [len(one.get("/peers")) for one in two]
        return counts == [1, 1] and all(one.get("/status")["peer_count"] == 1 for one in two)

    until(settled, "one peer on each side")
    for n in range(20):
        assert a.post("/message:send", {"text": f"{n}"}).is_success
        assert b.post("/message:send", {"text": f"{n}"}).is_success
    for one in two:
        until(lambda o=one: texts(o) == [str(n) for n in range(20)], "all messages")
    assert a.get(f"/peer/{first['peer_id']}")["connected"] is True


def test_three_agents_and_a_choice(tmp_path: Path) -> None:
    with (
        served(tmp_path, "A") as a,
        served(tmp_path, "B") as b,
        served(tmp_path, "C") as c,
    ):
        to_b, to_c = a.meet(b), a.meet(c)
        b.meet(c)
        error = refused(a.post("/message:send", {"text": "who?"}), 400, "ERR_AMBIGUOUS_PEER")
        assert {peer["peer_id"] for peer in error["connected_peers"]} == {to_b, to_c}
        a.post("/message:send", {"text": "to b", "peer_id": to_b})
        a.post(f"/peer/{to_c}/send", {"text": "to c"})
        until(lambda: (texts(b), texts(c)) == (["to b"], ["to c"]), "arrival")
        c.close()
        until(lambda: a.get("/status")["peer_count"] == 1, "the end of one connection")
        assert a.post("/message:send", {"text": "who is left"}).status_code == 200
        until(lambda: texts(b) == ["to b", "who is left"], "arrival at the one that is left")


def test_a_task_lives_on_both_sides(two: tuple[Served, Served]) -> None:
    a, b = two
    a.meet(b)
    task = a.post("/tasks", {"text": "do it", "delegate": True, "context_id": "c"}).json()
    place = f"/tasks/{task['id']}"
    until(lambda: b.http.get(place).is_success, "the task's arrival")
    assert b.get(place)["direction"] == "received"
    refused(a.post(f"{place}:update", {"status": "completed"}), 403, "ERR_FORBIDDEN")
    b.post(f"{place}:update", {"status": "input_required"})
    until(lambda: a.get(place)["status"] == "input_required", "the question")
    assert a.post(f"{place}:continue", {"text": "this"}).json()["status"] == "working"
    until(lambda: b.get(place)["status"] == "working", "the answer")
    b.post(
        f"{place}:update",
        {"status": "completed", "artifact": {"parts": [{"type": "text", "content": "done"}]}},
    )
    until(lambda: a.get(place)["status"] == "completed", "the result")
    assert a.get(place)["artifact"]["parts"][0]["content"] == "done"
    states = [step["status"] for step in a.get(place)["history"]]
    assert states == ["submitted", "working", "input_required", "working", "completed"]
    other = a.post("/message:send", {"text": "more", "create_task": True}).json()["task"]["id"]
    until(lambda: b.http.get(f"/tasks/{other}").is_success, "the other task")
    assert a.post(f"/tasks/{other}:cancel").json()["status"] == "canceled"
    until(lambda: b.get(f"/tasks/{other}")["status"] == "canceled", "the cancellation")


def test_a_question_over_the_network_is_answered(two: tuple[Served, Served]) -> None:
    a, b = two
    a.meet(b)
    assert a.post("/message:send", {"text": "?", "message_id": "q"}).is_success
    until(lambda: texts(b) == ["?"], "the question")
    assert b.post("/reply", {"correlation_id": "q", "text": "!"}).is_success
    reply = a.get("/wait/q?timeout=20")["reply"]
    assert (reply["from"], reply["parts"][0]["content"]) == ("B", "!")


def test_signatures_are_verified_and_told(tmp_path: Path) -> None:
    key = {"identity": str(tmp_path / "a.json")}
    with (
        served(tmp_path, "A", secret="s", **key) as a,
        served(tmp_path, "B", secret="s") as b,
        served(tmp_path, "C", secret="other") as c,
    ):
        for other in (b, c):
            to = a.meet(other)
            a.post(f"/peer/{to}/send", {"text": "Grüße 😀"})
            until(lambda o=other: texts(o), "arrival")
        (at_b,) = b.get("/messages", direction="in")["messages"]
        (at_c,) = c.get("/messages", direction="in")["messages"]
        assert at_b["_sig_verified"] and at_b["_ed25519_verified"]
        assert at_c["_sig_invalid"] and at_c["_ed25519_verified"]
        b.post("/message:send", {"text": "x", "from": "Stranger", "context_id": "unsigned"})
        assert b.get("/context/unsigned/messages")["messages"][0]["_sig_missing"]
        card = b.get("/peers")[0]["agent_card"]
        assert card["capabilities"]["identity"] == "ed25519" == card["identity"]["scheme"]
        assert card["trust"] == {"scheme": "hmac-sha256", "enabled": True}


@pytest.mark.slow
def test_connecting_to_what_is_no_agent(two: tuple[Served, Served]) -> None:
    a, b = two
    for link in ("", "http://x/", "acp://host", "acp://127.0.0.1:99999/t", "acp://h:1/a b", a.link):
        refused(a.post("/peers/connect", {"link": link}), 400, "ERR_INVALID_REQUEST")
    refused(a.post("/peers/connect", {}), 400, "ERR_INVALID_REQUEST")
    wrong = b.link[:-1] + ("0" if b.link[-1] != "0" else "1")
    id = a.post("/peers/connect", {"link": wrong, "name": "B?"}).json()["peer_id"]
    until(lambda: "invalid_token" in (a.get(f"/peer/{id}")["error"] or ""), "the refusal")
    for _ in range(100):  # it tries again: the refusal may not be hidden by the end that follows
        assert "closed" not in a.get(f"/peer/{id}")["error"]
        time.sleep(0.02)
    assert a.get(f"/peer/{id}")["connected"] is False
    refused(a.post(f"/peer/{id}/send", {"text": "x"}), 503, "ERR_NOT_CONNECTED")
    renamed = a.post(f"/peer/{id}/rename", {"name": "Nobody"}).json()
    assert (renamed["old_name"], renamed["new_name"]) == ("B?", "Nobody")
    assert a.http.delete(f"/peer/{id}").is_success
    assert a.get("/peers") == []
    assert b.get("/peers") == []


def test_a_name_that_no_system_can_look_up_is_tried_again(two: tuple[Served, Served]) -> None:
    a, _ = two
    for host in ("a..b", f"{'x' * 80}.example"):
        id = a.post("/peers/connect", {"link": f"acp://{host}/t"}).json()["peer_id"]
        until(lambda i=id: a.get(f"/peer/{i}")["error"], "the failure")
        assert not a.agent.peers._dialers[id].done()


def test_a_full_disk_ends_the_connection_and_loses_nothing(two: tuple[Served, Served]) -> None:
    """What cannot be stored is not acknowledged; it comes again when there is room."""
    a, b = two
    a.meet(b)
    store = b.agent.store
    pages = b.run(store.write(lambda tx: tx.db.execute("PRAGMA max_page_count=1").fetchone()[0]))
    text = "x" * 20_000
    for n in range(5):
        assert a.post("/message:send", {"text": text, "message_id": f"m{n}"}).is_success
    error = b.post("/message:send", {"text": text * 5, "from": "Other"})
    refused(error, 500, "ERR_INTERNAL")
    b.run(store.write(lambda tx: tx.db.execute(f"PRAGMA max_page_count={pages * 1000}").fetchone()))
    until(lambda: len(texts(b)) == 5, "the arrival of all")
    found = b.get("/messages", direction="in")["messages"]
    assert [each["message_id"] for each in found] == [f"m{n}" for n in range(5)]


# What follows speaks to an agent frame by frame, as programs of others do.


async def card_of(socket: ClientConnection | ServerConnection) -> dict[str, Any]:
    frame: dict[str, Any] = json.loads(await socket.recv())
    assert frame["type"] == "acp.agent_card"
    return frame


def guest(
    agent: Served, talk: Callable[[ClientConnection], Awaitable[None]], name: str = "Old"
) -> None:
    """Connect as an agent of an older version, and talk."""

    async def run() -> None:
        async with (
            asyncio.timeout(PATIENCE),
            connect(parse(agent.link).websocket, proxy=None) as socket,
        ):
            assert (await card_of(socket))["card"]["name"] == "A"
            card = {**OLD_CARD, "name": name, "future": {"x": 1}}
            await socket.send(json.dumps({"type": "acp.agent_card", "card": card}))
            await talk(socket)

    asyncio.run(run())


def test_an_older_agent_connects_and_is_understood(tmp_path: Path) -> None:
    async def talk(socket: ClientConnection) -> None:
        base = {"ts": "2026-03-19T07:00:00Z", "from": "Old", "role": "agent"}
        for frame in (
            {
                "type": "acp.message",
                "id": "m1",
                **base,
                "parts": [{"type": "text", "content": "one"}],
            },
            {
                "type": "acp.message",
                "message_id": "m2",
                **base,
                "parts": [{"type": "hologram", "x": 1}],
            },
            {"type": "message", "id": "m3", "content": "three"},
            {"type": "whatever", "message_id": "m4", "answer": 42},
            {
                "type": "acp.message",
                "id": "m1",
                **base,
                "parts": [{"type": "text", "content": "one"}],
            },
        ):
            await socket.send(json.dumps(frame))
        await asyncio.to_thread(until, lambda: agent.get("/messages")["total"] >= 4, "arrival")
        (peer,) = await asyncio.to_thread(agent.get, "/peers")
        assert (peer["name"], peer["connected"], peer["messages_received"]) == ("Old", True, 4)
        sent = await asyncio.to_thread(agent.post, "/message:send", {"text": "hello"})
        assert sent.status_code == 200
        frame = json.loads(await socket.recv())
        assert (frame["type"], frame["from"], frame["parts"][0]["content"]) == (
            "acp.message",
            "A",
            "hello",
        )
        await asyncio.to_thread(
            until, lambda: agent.get("/peers")[0]["messages_sent"] == 1, "the answer to a ping"
        )

    with served(tmp_path) as agent:
        guest(agent, talk)
        found = agent.get("/messages", direction="in")["messages"]
        assert [each["message_id"] for each in found] == ["m1", "m2", "m3", "m4"]
        assert found[1]["parts"] == [{"type": "hologram", "x": 1}]
        assert found[2]["parts"] == [{"type": "text", "content": "three"}]
        assert '"answer":42' in found[3]["parts"][0]["content"]
        assert agent.get("/status")["messages_deduped"] == 1


@pytest.mark.parametrize(
    "frame",
    [
        "nope", "[1,2]", "null", "5", '"x"', "[" * 100_000, '{"a":NaN}', "{}" * 2, "\x00",
        '{"type":"acp.message","message_id":5,"parts":[]}',
        '{"type":"acp.message","message_id":"m","parts":[],"task_id":["t"]}',
        '{"type":"task.updated","task_id":"unknown","status":"completed"}',
        '{"type":"task.updated","task_id":["x"],"status":{}}',
        '{"type":"task.updated","task_id":"mine","status":"completed"}',
        '{"type":"acp.message","message_id":"m","identity":"x","sig":[1],"parts":"abc"}',
    ],
)  # fmt: skip
def test_a_bad_frame_ends_nothing(tmp_path: Path, frame: str) -> None:
    async def talk(socket: ClientConnection) -> None:
        await socket.send(frame)
        await socket.send(b"\xff\xfe")
        for text in (
            '{"type":"acp.ack","message_ids":[1,"x",null]}',
            '{"type":["x"]}',
            '{"type":"error"}',
        ):
            await socket.send(text)
        good = {
            "type": "acp.message",
            "message_id": "good",
            "parts": [{"type": "text", "content": "x"}],
        }
        await socket.send(json.dumps(good))

        def there() -> bool:
            found = agent.get("/messages", direction="in")["messages"]
            return any(each["message_id"] == "good" for each in found)

        await asyncio.to_thread(until, there, "the good message")

    with served(tmp_path) as agent:
        agent.post("/tasks", {"text": "x", "task_id": "mine"})
        guest(agent, talk)
        assert agent.get("/tasks/mine")["status"] == "submitted"


def test_a_card_that_is_too_large_is_not_kept(tmp_path: Path) -> None:
    async def run() -> None:
        async with connect(parse(agent.link).websocket, proxy=None) as socket:
            await card_of(socket)
            card = {**OLD_CARD, "description": "x" * 70_000}
            await socket.send(json.dumps({"type": "acp.agent_card", "card": card}))
            with pytest.raises(ConnectionClosed):
                await socket.recv()

    with served(tmp_path) as agent:
        asyncio.run(run())
        assert agent.get("/peers") == []


def test_only_who_knows_the_token_is_let_in(tmp_path: Path) -> None:
    async def refusal(path: str) -> tuple[dict[str, Any], int | None]:
        base = parse(agent.link).websocket.rsplit("/", 1)[0]
        async with connect(f"{base}/{path}", proxy=None) as socket:
            frame = json.loads(await socket.recv())
            with pytest.raises(ConnectionClosed):
                await socket.recv()
            return frame, socket.close_code

    async def taken(path: str) -> None:
        base = parse(agent.link).websocket.rsplit("/", 1)[0]
        async with connect(f"{base}/{path}", proxy=None) as socket:
            await card_of(socket)

    async def page() -> None:
        await connect(parse(agent.link).websocket, proxy=None, origin="https://evil.example")  # type: ignore[arg-type]

    with served(tmp_path) as agent:
        token = parse(agent.link).token
        for path in ("", "x", token[:-1], f"{token}?x=1", "é"):
            assert asyncio.run(refusal(path)) == ({"type": "error", "code": "invalid_token"}, 1000)
        for path in (f"/{token}", f"{token}/"):
            asyncio.run(taken(path))
        with pytest.raises(InvalidStatus):
            asyncio.run(page())
        assert agent.get("/peers") == []


@pytest.mark.parametrize("size", [2 << 20, 20 << 20])
def test_a_stranger_s_fault_touches_nobody_else(tmp_path: Path, size: int) -> None:
    """A message that is too large is refused alone, a huge one ends its connection: others go on."""
    said: list[str] = []

    async def talk(socket: ClientConnection) -> None:
        # The library fails in another way where a connection breaks while it still sends.
        with suppress(ConnectionClosed, AttributeError):
            await socket.send(json.dumps({"type": "acp.message", "text": "é" * (size // 2)}))
            await socket.send(json.dumps({"type": "acp.message", "text": "a good one"}))
            while not said:
                frame = json.loads(await socket.recv())
                said.append(frame.get("code", frame["type"]))
            until(lambda: "a good one" in texts(agent), "the good one")
            assert socket.close_code is None
            return
        assert size > 16 << 20

    with served(tmp_path) as agent, served(tmp_path, "B") as other:
        agent.meet(other)
        guest(agent, talk)
        other.post("/message:send", {"text": "still here"})
        until(lambda: "still here" in texts(agent), "arrival")
        until(lambda: agent.get("/status")["peer_count"] == 1, "the leave of the stranger")
        assert ("ERR_MSG_TOO_LARGE" in said) is (size < 16 << 20)


def test_too_much_for_one_peer_is_refused_before_it_is_taken(tmp_path: Path) -> None:
    with served(tmp_path, limits=Limits(queue=3)) as agent, served(tmp_path, "B") as other:
        to = agent.meet(other)
        other.close()
        until(lambda: agent.get("/status")["peer_count"] == 0, "the end of the connection")
        for n in range(3):
            body = {"text": f"{n}", "message_id": f"m{n}"}
            sent = agent.post("/message:send", body)
            assert (sent.status_code, sent.json()["queued"]) == (202, True)
            assert (
                agent.post("/message:send", body).json()["server_seq"] == sent.json()["server_seq"]
            )
        refused(agent.post(f"/peer/{to}/send", {"text": "more"}), 429, "ERR_BUSY")
        queue = agent.get("/offline-queue")
        assert (queue["total_queued"], queue["queue"][to]["depth"]) == (3, 3)
        assert [m["message_id"] for m in queue["queue"][to]["messages"]] == ["m0", "m1", "m2"]


def test_a_peer_that_takes_less_gets_no_more(tmp_path: Path) -> None:
    with served(tmp_path) as agent, served(tmp_path, "B", limits=Limits(message=5000)) as other:
        agent.meet(other)
        error = refused(agent.post("/message:send", {"text": "x" * 6000}), 413, "ERR_MSG_TOO_LARGE")
        assert error["max_bytes"] == 5000


def test_a_host_of_an_older_version_is_dialled_again(tmp_path: Path) -> None:
    """It acknowledges nothing: what it took is known by its answers to pings."""
    got: list[str] = []

    async def host(socket: ServerConnection) -> None:
        await socket.send(json.dumps({"type": "acp.agent_card", "card": OLD_CARD}))
        await card_of(socket)
        async for text in socket:
            got.append(json.loads(text)["parts"][0]["content"])
            if len(got) == 3:
                await socket.close()

    async def run(agent: Served) -> None:
        async with serve(host, "127.0.0.1", 0) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            link = f"acp://127.0.0.1:{port}/tok_old"
            await asyncio.to_thread(agent.post, "/peers/connect", {"link": link})
            await asyncio.to_thread(until, lambda: agent.get("/status")["connected"], "connection")
            for n in range(6):
                sent = await asyncio.to_thread(agent.post, "/message:send", {"text": f"{n}"})
                assert sent.is_success
            await asyncio.to_thread(until, lambda: len(set(got)) == 6, "all six")
            assert len(await asyncio.to_thread(agent.get, "/peers")) == 1

    with served(tmp_path) as agent:
        asyncio.run(run(agent))
    assert list(dict.fromkeys(got)) == [str(n) for n in range(6)]


def test_those_of_one_name_are_told_apart_however_many_there_are() -> None:
    names = ["name:Old", *(f"name:Old#{number}" for number in range(2, 1_200))]
    here = [SimpleNamespace(row=SimpleNamespace(identity=name), connected=True) for name in names]
    peers: Any = SimpleNamespace(every=lambda: here)
    told_none: Any = None
    assert Peers._guest(peers, told_none, bodies.read_card(OLD_CARD), None) == "name:Old#1200"
