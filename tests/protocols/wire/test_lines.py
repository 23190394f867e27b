"""Lines over TCP: whatever a stranger or a peer sends there, it harms only its own connection."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from acp_core.protocols.wire.conduct.agent import Limits
from acp_core.protocols.wire.network.links import LinkError, parse
from tests.protocols.wire.support import PATIENCE, Served, served, until


class Lines:
    """The other end of a TCP connection, spoken by hand."""

    def __init__(self, link: str) -> None:
        self.link = parse(link)
        self.socket = socket.create_connection((self.link.host, self.link.port), PATIENCE)
        self.file = self.socket.makefile("rb")

    def hello(self, token: str | None = None) -> None:
        self.say({"type": "acp.hello", "token": token or self.link.token})

    def say(self, frame: Any) -> None:
        self.raw(json.dumps(frame).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        self.socket.sendall(data)

    def next(self, *kinds: str) -> dict[str, Any]:
        """The next frame of these kinds; none at all where the connection ended."""
        for line in self.file:
            frame: dict[str, Any] = json.loads(line)
            if frame.get("type") in kinds:
                return frame
        return {}

    def close(self) -> None:
        self.file.close()
        self.socket.close()

    def ended(self) -> bool:
        return self.next("none") == {}


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Served]:
    limits = Limits(message=65536, hello_seconds=3.0)
    with served(tmp_path, "Host", tcp_port=0, limits=limits) as one:
        yield one


@contextmanager
def line(agent: Served) -> Iterator[Lines]:
    assert agent.agent.tcp_link
    one = Lines(agent.agent.tcp_link)
    try:
        yield one
    finally:
        one.close()


def said(agent: Served) -> list[str]:
    found = agent.get("/messages", direction="in", limit=1000)["messages"]
    return [each["parts"][0]["content"] for each in found]


def message(text: str, id: str, **more: Any) -> dict[str, Any]:
    part = {"type": "text", "content": text}
    return {"type": "acp.message", "message_id": id, "from": "Old", "role": "user",
            "ts": "2026-03-21T07:00:00Z", "parts": [part], **more}  # fmt: skip


def test_who_has_no_card_is_known_by_its_first_message(agent: Served) -> None:
    """Who only writes envelopes, as the older form of the binding has it, is understood."""
    with line(agent) as old:
        old.hello()
        assert old.next("acp.agent_card")["card"]["name"] == "Host"
        old.say(message("one", "m1"))
        old.raw(json.dumps(message("two", "m2")).encode() + b"\r\n\n  \n")
        until(lambda: said(agent) == ["one", "two"], "both")
        (peer,) = agent.get("/peers")
        assert (peer["name"], peer["connected"], peer["proven"]) == ("Old", True, False)
        assert agent.post(f"/peer/{peer['id']}/send", {"text": "back"}).status_code == 200
        assert old.next("acp.message")["parts"][0]["content"] == "back"


def test_frames_of_the_older_form_are_taken(agent: Served) -> None:
    with line(agent) as old:
        old.hello()
        card = {"name": "Old", "acp_version": "0.5", "skills": []}
        old.say({"type": "acp.agent_card", "message_id": "card_1", "card": {"self": card}})
        old.say({"type": "chat", "id": "1", "content": "from before"})
        old.say({"type": "task.delegate", "task": {"x": 1}})
        until(lambda: len(said(agent)) == 2, "both")
        assert said(agent)[0] == "from before"
        peer = agent.get("/peers")[0]
        for n in range(3):  # it acknowledges nothing: what it has taken is known all the same
            agent.post(f"/peer/{peer['id']}/send", {"text": f"{n}"})
        assert [old.next("acp.message")["parts"][0]["content"] for _ in range(3)] == list("012")
        until(lambda: agent.get("/peers")[0]["messages_sent"] == 3, "the end of the queue")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"[1,2]\n", "ERR_INVALID_REQUEST"),
        (b"{not json\n", "ERR_INVALID_REQUEST"),
        (b"\xff\xfe\n", "ERR_INVALID_REQUEST"),
        (b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}\n", "ERR_INVALID_REQUEST"),
        (b'{"type":"acp.message","message_id":7,"parts":[]}\n', "ERR_INVALID_REQUEST"),
        (b'{"a":"' + b"x" * 1_000_000 + b'"}\n', "ERR_MSG_TOO_LARGE"),
        (b'{"type":"acp.agent_card","card":{"instance_id":"other"}}\n', ""),
        (b'{"type":"acp.ack","message_ids":[[],{}]}\n{"type":"acp.proof"}\n', ""),
    ],
)
def test_a_bad_frame_is_answered_and_the_connection_goes_on(
    agent: Served, data: bytes, code: str
) -> None:
    with line(agent) as peer:
        peer.hello()
        peer.say({"type": "acp.agent_card", "card": {"name": "Peer"}})
        peer.raw(data)
        peer.say(message("still here", "m"))
        if code:
            error = peer.next("error")
            assert (error["error_code"], error["ok"]) == (code, False)
        until(lambda: said(agent) == ["still here"], "the next frame")


def test_without_the_token_nothing_is_told(agent: Served) -> None:
    with line(agent) as stranger:
        stranger.hello("tok_wrong")
        first = json.loads(stranger.file.readline())
        assert (first["type"], first["code"]) == ("error", "invalid_token")
        assert stranger.ended()
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 10 + b"\n", b'{"type":"acp.hello"}\n'):
        with line(agent) as stranger:
            stranger.raw(data)
            assert "invalid_token" in stranger.file.readline().decode()
    assert agent.get("/peers") == []


@pytest.mark.slow
def test_strangers_who_say_nothing_keep_nobody_out(agent: Served) -> None:
    assert agent.agent.tcp_link
    idle = [Lines(agent.agent.tcp_link) for _ in range(80)]
    try:
        with line(agent) as peer:
            peer.hello()
            peer.say(message("in", "m"))
            until(lambda: said(agent) == ["in"], "the message")
        assert all(one.ended() for one in idle)  # they were sent away
    finally:
        for one in idle:
            one.close()


def test_who_comes_by_once_makes_room_for_others(tmp_path: Path) -> None:
    with served(tmp_path, "Host", tcp_port=0, limits=Limits(peers=3)) as agent:
        for n in range(8):
            with line(agent) as guest:
                guest.hello()
                guest.say(message(f"{n}", f"m{n}", **{"from": f"Guest{n}"}))
                until(lambda n=n: len(said(agent)) == n + 1, "the message")
            until(lambda: not any(p["connected"] for p in agent.get("/peers")), "the end")
            if n == 0:  # what waits for the first one keeps its place
                first = agent.get("/peers")[0]["id"]
                assert agent.post(f"/peer/{first}/send", {"text": "later"}).status_code == 202
        known = agent.get("/peers")
        assert [p["name"] for p in known] == ["Guest0", "Guest6", "Guest7"]
        assert known[0]["queued"] == 1


def test_half_a_line_counts_for_nothing(agent: Served) -> None:
    with line(agent) as peer:
        peer.hello()
        peer.say(message("whole", "m1"))
        peer.raw(json.dumps(message("cut", "m2")).encode())
        until(lambda: said(agent) == ["whole"], "the first")
    until(lambda: not agent.get("/peers")[0]["connected"], "the end")
    assert said(agent) == ["whole"]


@pytest.mark.slow
def test_who_talks_too_fast_is_slowed_down_and_loses_nothing(tmp_path: Path) -> None:
    with served(tmp_path, "Host", tcp_port=0, limits=Limits(frames=50)) as agent:
        with line(agent) as fast, line(agent) as slow:
            fast.hello()
            slow.hello()
            for n in range(120):
                fast.say(message(f"{n}", f"m{n}"))
            slow.say(message("between", "m", **{"from": "Slow"}))
            until(lambda: len(said(agent)) == 121, "all of them")
            assert "between" in said(agent)[:120]
        assert [text for text in said(agent) if text != "between"] == [str(n) for n in range(120)]


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8), st.sampled_from(["user", "agent", "t1", "completed", "ed25519", "A" * 86]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KINDS = ("acp.message", "acp.reply", "acp.ack", "acp.agent_card", "acp.proof", "acp.hello",
         "task.updated", "task.delegate", "error", "chat")  # fmt: skip
FIELDS = ("message_id", "message_ids", "id", "ts", "from", "role", "parts", "task_id", "context_id",
          "sig", "identity", "card", "sigs", "nonce", "status", "artifact", "error", "server_seq",
          "correlation_id", "_raw", "task")  # fmt: skip
FRAMES = st.builds(
    lambda kind, fields: {"type": kind, **fields},
    st.one_of(st.sampled_from(KINDS), VALUES),
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6),
)


@pytest.mark.slow
def test_whatever_a_peer_says_the_connection_and_the_agent_go_on(tmp_path: Path) -> None:
    identity = str(tmp_path / "key.json")
    with (
        served(tmp_path, "Host", tcp_port=0, secret="s", identity=identity) as agent,
        line(agent) as peer,
    ):
        peer.hello()
        peer.say({"type": "acp.agent_card", "card": {"name": "Peer"}})

        @settings(max_examples=150, suppress_health_check=list(HealthCheck))
        @example([{"type": "acp.message", "message_id": None, "parts": []}])
        @example([{"type": "acp.reply", "message_id": None, "id": None, "parts": [1]}])
        @given(st.lists(FRAMES, max_size=4))
        def talk(frames: list[dict[str, Any]]) -> None:
            for frame in frames:
                if frame.get("code") != "not_welcome":
                    peer.say(frame)

        talk()
        peer.say(message("still here", "the-last"))
        query = {"direction": "in", "limit": "1", "sort": "desc"}
        until(lambda: agent.get("/messages", **query)["messages"][:1], "any")
        until(lambda: "still here" in json.dumps(agent.get("/messages", **query)), "the last")
        assert agent.get("/peers")[0]["connected"] is True
        assert agent.get("/status")["ok"] is True


def test_links_of_tcp() -> None:
    link = parse("tcp://[::1]:7/tok")
    assert (str(link), link.safe) == ("tcp://[::1]:7/tok", "tcp://[::1]:7/…")
    for text in ("tcp://host/tok", "tcp://host:7", "tcp://:7/tok", "udp://host:7/tok"):
        with pytest.raises(LinkError):
            parse(text)
