"""Binding D between agents: a channel over HTTP alone, by hand, and through what breaks it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from acp_core.protocols.wire.conduct import relay
from acp_core.protocols.wire.conduct.agent import Limits
from acp_core.protocols.wire.conduct.peers import resolve_link
from acp_core.protocols.wire.network.links import HttpLink, LinkError, parse, parse_any
from tests.protocols.wire.rogue import Answer, begin, reply, rogue, told
from tests.protocols.wire.support import PATIENCE, Served, refused, served, until

Frame = dict[str, Any]


class Visitor:
    """Somebody who reaches an agent over HTTP, by hand."""

    def __init__(self, agent: Served) -> None:
        headers = {"authorization": f"Bearer {agent.agent.token}"}
        self.http = httpx.Client(
            base_url=agent.url, headers=headers, timeout=PATIENCE, trust_env=False
        )
        told = self.http.post("/channel")
        assert told.status_code == 201
        self.path = f"/channel/{told.json()['channel']}"

    def say(self, *frames: Frame | str, **query: int) -> httpx.Response:
        lines = [each if isinstance(each, str) else json.dumps(each) for each in frames]
        return self.http.post(self.path, params=query, content="\n".join(lines).encode())

    @contextmanager
    def following(self, **options: Any) -> Iterator[Iterator[tuple[int, Frame]]]:
        with self.http.stream("GET", f"{self.path}/stream", **options) as answer:
            assert answer.status_code == 200
            yield _events(answer)


def _events(answer: httpx.Response) -> Iterator[tuple[int, Frame]]:
    number = 0
    for line in answer.iter_lines():
        number = int(line[4:]) if line.startswith("id: ") else number
        if line.startswith("data: "):
            yield number, json.loads(line[6:])


def message(id: str, text: str = "hi") -> Frame:
    return {
        "type": "acp.message", "message_id": id, "ts": "2026-03-21T07:00:00Z", "from": "Hand",
        "role": "user", "parts": [{"type": "text", "content": text}],
    }  # fmt: skip


def came(agent: Served) -> list[str]:
    return [m["message_id"] for m in agent.get("/messages", direction="in")["messages"]]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path, "B") as running:
        yield running


def test_frames_that_are_posted_again_come_once(agent: Served) -> None:
    visitor = Visitor(agent)
    with visitor.following() as events:
        assert next(events)[1]["type"] == "acp.agent_card"
        assert visitor.say(message("m1"), message("m2"), seq=1).json()["taken"] == 2
        assert visitor.say(message("m1"), message("m2"), message("m3"), seq=1).json()["taken"] == 3
        refused(visitor.say(message("m9"), seq=9), 400, "ERR_INVALID_REQUEST")
        until(lambda: came(agent) == ["m1", "m2", "m3"], "all three")
        assert agent.get("/peers")[0]["name"] == "Hand"


def test_who_comes_back_gets_what_it_has_not_said_to_have(agent: Served) -> None:
    visitor = Visitor(agent)
    card = {"name": "Hand", "capabilities": {"acks": True}}
    visitor.say({"type": "acp.agent_card", "card": card})
    until(lambda: agent.get("/status")["peer_count"], "the connection")
    sent = [agent.post("/message:send", {"text": f"{n}"}).json()["message_id"] for n in range(5)]
    with visitor.following() as events:
        seen = [next(events) for _ in range(3)]
        assert [number for number, _ in seen] == [1, 2, 3]
    with visitor.following(headers={"last-event-id": "3"}) as events:
        rest = [next(events) for _ in range(3)]
        assert [frame["message_id"] for _, frame in seen[1:] + rest] == sent
    told = visitor.http.get(f"{visitor.path}/stream", params={"since": 1})
    refused(told, 400, "ERR_INVALID_REQUEST")  # it was said to have more
    refused(visitor.say(seen=99), 400, "ERR_INVALID_REQUEST")
    assert agent.get("/peers")[0]["queued"] == 5
    visitor.say({"type": "acp.ack", "message_ids": sent}, seen=6)
    until(lambda: not agent.get("/peers")[0]["queued"], "the acknowledgement")


def test_who_acknowledges_nothing_says_what_has_come(agent: Served) -> None:
    visitor = Visitor(agent)
    visitor.say(message("m1"))
    until(lambda: agent.get("/status")["peer_count"], "the connection")
    agent.post("/message:send", {"text": "x"})
    with visitor.following() as events:
        assert [next(events)[0] for _ in range(2)] == [1, 2]
        assert agent.get("/peers")[0]["queued"] == 1
        visitor.say(seen=2)
        until(lambda: not agent.get("/peers")[0]["queued"], "the acknowledgement")


def test_one_follows_at_a_time(agent: Served) -> None:
    visitor = Visitor(agent)
    with visitor.following() as first:
        assert next(first)[0] == 1
        with visitor.following(params={"since": 0}) as second:
            assert list(first) == []
            assert next(second)[1]["type"] == "acp.agent_card"


def test_bad_frames_get_an_error_frame_and_end_nothing(agent: Served) -> None:
    visitor = Visitor(agent)
    with visitor.following() as events:
        next(events)
        visitor.say(message("m1"), "[1, 2]", "nonsense", message("m2"))
        said = [next(events)[1] for _ in range(2)]
        assert [each["error_code"] for each in said] == ["ERR_INVALID_REQUEST"] * 2
        large = visitor.say(message("m3", "x" * (2 << 20)))
        refused(large, 413, "ERR_MSG_TOO_LARGE")
        refused(visitor.http.post(visitor.path, content=b"\xff\xfe"), 400, "ERR_INVALID_REQUEST")
        visitor.say(message("m4"))
        until(lambda: came(agent) == ["m1", "m2", "m4"], "the good ones")


def test_a_flood_of_bad_frames_fills_no_log(
    agent: Served, caplog: pytest.LogCaptureFixture
) -> None:
    visitor = Visitor(agent)
    with visitor.following() as events:
        visitor.say(message("m0"), *["nonsense"] * 200, message("m1"))
        assert sum("error_code" in next(events)[1] for _ in range(201)) == 200
        until(lambda: came(agent) == ["m0", "m1"], "the good ones")
    assert len([each for each in caplog.records if "not JSON" in each.message]) == 20


def test_only_the_token_opens_a_channel(tmp_path: Path) -> None:
    with served(tmp_path, "B", limits=Limits(peers=1 - relay.GUESTS + 2)) as agent:
        wrong = {"authorization": "Bearer tok_other"}
        refused(agent.http.post("/channel", headers=wrong), 401, "ERR_UNAUTHORIZED")
        visitor = Visitor(agent)
        refused(visitor.http.post(f"{visitor.path}x", content=b"{}"), 404, "ERR_NOT_FOUND")
        for _ in range(2):
            Visitor(agent)
        refused(visitor.http.post("/channel"), 429, "ERR_BUSY")
        refused(visitor.http.get("/messages"), 403, "ERR_FORBIDDEN")  # a peer's rights only


def test_a_channel_ends_with_the_reason_told(agent: Served) -> None:
    visitor = Visitor(agent)
    proof = {"type": "acp.proof", "sigs": ["AAAA"]}
    visitor.say({"type": "acp.agent_card", "card": agent.agent.card(), "nonce": "0" * 32}, proof)
    with visitor.following() as events:
        frames = [frame for _, frame in events]
    assert frames[-2]["code"] == "not_welcome"
    assert "reason" in frames[-1]


def test_nobody_who_follows_is_nobody_there(agent: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "AWAY", 0.1)
    visitor = Visitor(agent)
    visitor.say(message("m1"))
    until(lambda: came(agent) == ["m1"], "the message")
    until(lambda: agent.get("/status")["peer_count"] == 0, "the end")
    assert agent.post("/message:send", {"text": "later"}).status_code == 202


class Cutting:
    """Passes bytes on to an agent, and cuts all connections when it is told to."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break every connection."""
        while self._open:
            with suppress(OSError):
                self._open.pop().shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End it."""
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                one = self._listener.accept()[0]
                other = socket.create_connection(("127.0.0.1", self._port))
                self._open += [one, other]
                for pair in ((one, other), (other, one)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def test_requests_that_are_cut_are_made_again_and_the_connection_goes_on(tmp_path: Path) -> None:
    with served(tmp_path, "A") as a, served(tmp_path, "B") as b:
        between = Cutting(int(b.url.rsplit(":", 1)[1]))
        try:
            link = f"http://127.0.0.1:{between.port}/{b.agent.token}"
            id = a.post("/peers/connect", {"link": link}).json()["peer_id"]
            until(lambda: a.get(f"/peer/{id}")["connected"], "the connection")
            since = until(lambda: b.get("/peers"), "the peer")[0]["connected_at"]
            until(lambda: a.get(f"/peer/{id}")["proven"], "the proof")
            for n in range(60):
                a.post(f"/peer/{id}/send", {"text": "out", "message_id": f"a{n}"})
                b.post("/message:send", {"text": "back", "message_id": f"b{n}"})
                if n % 20 == 10:
                    between.cut()
            for one, sign in ((b, "a"), (a, "b")):
                until(lambda o=one: o.get("/status")["messages_received"] == 60, "all")
                found = one.get("/messages", direction="in", limit=100)["messages"]
                assert [m["message_id"] for m in found] == [f"{sign}{n}" for n in range(60)]
            assert b.get("/peers")[0]["connected_at"] == since
        finally:
            between.close()


def _frames(*events: bytes) -> Answer:
    """An agent whose channel tells these bytes."""

    def answer(path: str, client: socket.socket) -> None:
        if path == "/channel":
            reply(client, b'{"ok":true,"channel":"chn_1"}', "201 Created")
        elif "/stream" in path:
            begin(client)
            for each in events:
                client.sendall(each)
        else:
            reply(client, b'{"ok":true,"taken":1}')

    return answer


CARD = b'{"type":"acp.agent_card","card":{"name":"Rogue"}}'
FLOOD = b"".join(b'id: %d\ndata: {"x":"%s"}\n\n' % (n, b"x" * 9999) for n in range(2, 3000))


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        _frames(b"id: 7\ndata: {}\n\n"),
        _frames(b"id: 1\ndata: %s\n\n" % CARD, b"data: " + b"x" * (3 << 20)),
        _frames(b'id: 1\nevent: acp.end\ndata: {"reason": 5}\n\n'),
        _frames(b"id: 1\ndata: %s\n\n" % CARD, FLOOD, b"id: 1\ndata: {}\n\n"),
        _frames(b"\xff\x00\n\n"),
        told([]),
        told({"channel": "../status?x="}),
        lambda path, client: reply(client, b"", "302 Found", "location: http://127.0.0.1:1/"),
    ],
)
def test_a_host_that_answers_as_none_should_ends_only_its_own_connection(
    tmp_path: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "FAILING", 0.3)
    with served(tmp_path, "A") as a, served(tmp_path, "B") as b, rogue(answer) as host:
        friend = a.meet(b)
        link = f"{host.url}/tok_1"
        id = a.post("/peers/connect", {"link": link}).json()["peer_id"]
        until(lambda: len(host.asked) > 3, "two tries")
        b.post("/message:send", {"text": "still here", "message_id": "good"})
        until(lambda: a.get("/messages", peer_id=friend, direction="in")["total"], "arrival")
        assert all(path.startswith("/channel") for path in host.asked)
        assert a.http.delete(f"/peer/{id}").is_success


def test_a_wrong_token_is_said(tmp_path: Path) -> None:
    with served(tmp_path, "A") as a, served(tmp_path, "B") as b:
        id = a.post("/peers/connect", {"link": f"{b.url}/tok_wrong"}).json()["peer_id"]
        trouble = until(lambda: a.get(f"/peer/{id}")["error"], "the refusal")
        assert "not a token" in trouble
        own = a.get("/link")["links"]["http-sse"]
        refused(a.post("/peers/connect", {"link": own}), 400, "ERR_INVALID_REQUEST")


def test_links_over_http() -> None:
    link = parse_any("https://agents.example/tok_1")
    assert link == HttpLink("https", "agents.example", 443, "tok_1")
    assert parse_any(str(link)) == link
    assert "tok_1" not in link.safe
    with pytest.raises(LinkError, match="for an agent"):
        parse("http://127.0.0.1:7901/tok_1")
    for wrong in ("http://127.0.0.1:7901", "http://h:0/tok_1", "http://h/a/tok_1"):
        with pytest.raises(LinkError):
            parse_any(wrong)


async def test_an_address_with_a_token_is_the_link() -> None:
    assert await resolve_link("http://[::1]:7901/tok_1/") == HttpLink("http", "::1", 7901, "tok_1")
