"""A relay: rooms that only their token opens, frames as they came, and no way into another's."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from acp_core.protocols.wire.network.links import LinkError, parse, parse_any, relay_at
from acp_core.protocols.wire.schema.basics import WireError
from acp_core.protocols.wire.serving.relay import Bounds, Rooms
from tests.protocols.wire.support import PATIENCE, Process, refused, until
from tests.protocols.wire.teams import ANY_PORT, Member, found, relay

ODD = '{"b":1.0, "a":1e2,"b2":12345678901234567890,"text":"\\u00e9 é \\u2028","type":"acp.message"}'


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with relay() as url, httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as client:
        yield client


class Seat:
    """A place in a room, by hand."""

    def __init__(self, http: httpx.Client, room: str, name: str, **body: Any) -> None:
        self.http, self.room = http, f"/acp/{room}"
        told = http.post(f"{self.room}/join", json={"name": name, **body}).json()
        self.told, self.id, self.session = told, told["member"], told["session_id"]
        self.after = 0

    def send(self, to: str | None, text: str) -> httpx.Response:
        query = {"session": self.session, **({"to": to} if to else {})}
        return self.http.post(f"{self.room}/send", params=query, content=text.encode())

    def poll(self, wait: int = 0, after: int | None = None) -> list[dict[str, Any]]:
        place = self.after if after is None else after
        query = {"session": self.session, "wait": str(wait), "after": str(place)}
        answer = self.http.get(f"{self.room}/poll", params=query)
        assert answer.status_code == 200, answer.text
        self.after = answer.json()["last"]
        found: list[dict[str, Any]] = answer.json()["messages"]
        return found


def room(http: httpx.Client, name: str, key: str | None = "host") -> str:
    body = {} if key is None else {"key": key}
    assert http.post("/acp/new", params={"token": name}, json=body).status_code == 200
    return name


def test_a_frame_arrives_as_the_text_that_it_was(http: httpx.Client) -> None:
    host = Seat(http, room(http, "as-it-was"), "Host", key="host")
    one, two = (Seat(http, "as-it-was", name) for name in ("One", "Two"))
    assert one.told["host"] == host.id
    assert [(e["from"], e["event"]) for e in host.poll()] == [
        (one.id, "joined"),
        (two.id, "joined"),
    ]
    assert one.send(host.id, ODD).json()["ok"] is True
    (entry,) = host.poll(wait=5)
    assert (entry["from"], entry["text"], entry["shared"]) == (one.id, ODD, False)
    assert host.send(two.id, ODD).status_code == 200
    assert [e["text"] for e in two.poll(wait=5)] == [ODD]
    assert one.poll() == []  # what is for another one is not told


def test_an_answer_that_was_lost_is_given_again(http: httpx.Client) -> None:
    host = Seat(http, room(http, "lost-answer"), "Host", key="host")
    guest = Seat(http, "lost-answer", "Guest")
    for n in range(3):
        guest.send(host.id, f'{{"n":{n}}}')
    assert len(host.poll(after=0)) == len(host.poll(after=0)) == 4
    assert [e["text"] for e in host.poll()] == []


def test_plain_curl_can_talk_in_a_room(http: httpx.Client) -> None:
    token = http.post("/acp/new").json()["token"]
    for n in range(3):
        body = {"type": "acp.message", "id": f"id{n}", "ts": "2026-03-21T07:00:00Z", "n": n}
        assert http.post(f"/acp/{token}/send", json=body).json()["ok"] is True
        assert http.post(f"/acp/{token}/send", json=body).json()["deduped"] is True
    first = http.get(f"/acp/{token}/poll").json()
    assert [(m["n"], m["ts"]) for m in first["messages"]] == [
        (n, "2026-03-21T07:00:00Z") for n in range(3)
    ]
    query = {"after_id": first["last_id"]}
    assert http.get(f"/acp/{token}/poll", params=query).json()["messages"] == []


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"[1]", 400, "ERR_INVALID_REQUEST"),
        (b"{", 400, "ERR_INVALID_REQUEST"),
        (b"\xff", 400, "ERR_INVALID_REQUEST"),
        (b'{"a":NaN}', 400, "ERR_INVALID_REQUEST"),
        (b'{"a":' + b"[" * 3000 + b"]" * 3000 + b"}", 400, "ERR_INVALID_REQUEST"),
        (b'{"a":"' + b"x" * 1_200_000 + b'"}', 413, "ERR_MSG_TOO_LARGE"),
    ],
)
def test_what_is_no_frame_is_refused(
    http: httpx.Client, data: bytes, status: int, code: str
) -> None:
    room(http, "no-frames")
    refused(http.post("/acp/no-frames/send", content=data), status, code)
    refused(http.post("/acp/no-frames/join", content=data), status, code)


def test_rooms_are_not_listed_and_not_taken_over(http: httpx.Client) -> None:
    host = Seat(http, room(http, "mine-alone"), "Host", key="host")
    guest = Seat(http, "mine-alone", "Guest")
    stranger = {"session": "sess_x"}
    forbidden = (
        http.post("/acp/unknown-room/join", json={"name": "X"}),
        http.get("/acp/unknown-room/poll"),
        http.post("/acp/new", params={"token": "mine-alone"}, json={"key": "other"}),
        http.post("/acp/mine-alone/join", json={"name": "X", "key": "other"}),
        http.get("/acp/mine-alone/poll", params=stranger),
        http.post("/acp/mine-alone/send", params=stranger, json={}),
        http.post("/acp/mine-alone/leave", params={"session": guest.session, "member": host.id}),
        http.request("DELETE", "/acp/mine-alone", json={"key": "other"}),
        http.get("/acp/mine-alone/status", headers={"origin": "https://page.example"}),
    )
    for answer in forbidden:
        refused(answer, 403, "ERR_FORBIDDEN")
    for answer in (
        http.post("/acp/new", params={"token": "a b"}),
        http.post("/acp/mine-alone/join", json={"name": "a\nb"}),
        http.get("/acp/mine-alone/poll", params={"session": host.session, "after": "x"}),
        http.post("/acp/new", json={"key": 5}),
    ):
        refused(answer, 400, "ERR_INVALID_REQUEST")
    assert http.get("/acp/rooms").status_code in (404, 405)
    refused(guest.send("m_nobody", "{}"), 404, "ERR_NOT_FOUND")
    told = http.get("/acp/mine-alone/status").json()
    assert (told["members"], told["host"]) == (2, True)
    assert host.session not in str(told)


def test_a_key_can_be_asked_for() -> None:
    with relay("--port", "0", "--key", "open sesame") as url:
        refused(httpx.post(f"{url}/acp/new", trust_env=False), 401, "ERR_UNAUTHORIZED")
        shown = {"authorization": "Bearer open sesame"}
        answer = httpx.post(f"{url}/acp/new", headers=shown, trust_env=False)
        assert answer.status_code == 200


def test_a_question_waits_until_something_is_there(http: httpx.Client) -> None:
    host = Seat(http, room(http, "patience"), "Host", key="host")
    came: list[str] = []
    asking = threading.Thread(target=lambda: came.extend(e["event"] for e in host.poll(wait=20)))
    asking.start()
    Seat(http, "patience", "Guest")
    asking.join(PATIENCE)
    assert came == ["joined"]


@pytest.mark.slow
def test_who_is_killed_is_soon_gone(http: httpx.Client) -> None:
    host = Seat(http, room(http, "soon-gone"), "Host", key="host")
    guest = Seat(http, "soon-gone", "Guest")
    host.poll()
    link = urlsplit(str(http.base_url))
    asking = socket.create_connection((link.hostname or "", link.port or 0), PATIENCE)
    path = f"/acp/soon-gone/poll?session={guest.session}&wait=30"
    asking.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    threading.Timer(0.5, asking.close).start()
    (left,) = host.poll(wait=30)
    assert (left["from"], left["event"]) == (guest.id, "left")


def test_bounds_hold_and_refuse_before_anything_is_taken() -> None:
    rooms = Rooms(Bounds(rooms=2, members=3, frames=4, bytes=100, rate=10, silent=60, idle=100))
    one, _ = rooms.open("room-1", "k", 0.0)
    rooms.open("room-2", None, 0.0)
    with pytest.raises(WireError, match="too many rooms"):
        rooms.open("room-3", None, 0.0)
    host, guest, other = (one.join("x", key, 0.0) for key in ("k", None, None))
    with pytest.raises(WireError, match="full"):
        one.join("y", None, 0.0)
    host.after(99, 9)
    for n in range(4):
        one.send(guest, host.id, f"{n}", 0.0)
    with pytest.raises(WireError, match="too many frames"):
        one.send(guest, host.id, "4", 0.0)
    one.send(guest, other.id, "x" * 200, 0.0)  # one large frame is taken, a second one is not
    with pytest.raises(WireError, match="too many frames"):
        one.send(guest, other.id, "x", 0.0)
    assert [entry.text for entry in host.after(0, 9)] == ["0", "1", "2", "3"]
    host.after(host.waiting[-1].seq, 9)
    for n in range(5):
        one.send(guest, host.id, f"{n}", 0.0) if n < 4 else None
        host.after(one.seq, 9)
    with pytest.raises(WireError, match="a second"):
        for _ in range(4):
            one.send(guest, host.id, "fast", 0.0)
            host.after(one.seq, 9)
    one.send(guest, host.id, "later", 1.0)
    host.seen = 61.0
    assert rooms.get("room-1", 62.0) is one
    assert list(one.members.values()) == [host]
    again = one.join("x", "k", 63.0)
    assert one.host is again
    rooms.sweep(500.0)
    assert len(rooms) == 0


def test_links_of_relays() -> None:
    for text, http_address in (
        ("acp+wss://relay.example/acp/tok_123456", "https://relay.example"),
        ("acp+ws://[::1]:7700/acp/tok_123456", "http://[::1]:7700"),
    ):
        link = parse_any(text)
        assert (str(link), link.http) == (text, http_address)
        assert "tok" not in link.safe
        assert relay_at(http_address + "/", "tok_123456") == link
        with pytest.raises(LinkError, match="relay"):
            parse(text)
    for wrong in ("acp+wss://h/x/tok_123456", "acp+wss://h/acp/a", "acp+wss:///acp/tok_123456"):
        with pytest.raises(LinkError):
            parse_any(wrong)
    for wrong in ("relay.example", "ftp://h", "http://h/path", "http://u@h", "http://"):
        with pytest.raises(LinkError):
            relay_at(wrong, "tok_123456")


@pytest.mark.slow
def test_what_is_sent_while_the_relay_or_the_peer_is_gone_arrives_once(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        url = first.enter_context(relay())
        b = stack.enter_context(Process("B", *ANY_PORT, "--relay", url))
        a = stack.enter_context(Process("A", *ANY_PORT, "--join", b.links["relay"]))
        one, two = (Member(each.name, each.url, each.pid) for each in (a, b))
        until(lambda: one.peer("B") and two.peer("A"), "the connection")
        peer, numbers = one.peer("B")["id"], iter(range(1000))

        def say(count: int) -> None:
            for n in islice(numbers, count):
                one.post(f"/peer/{peer}/send", text=f"{n}", message_id=f"m{n}")

        say(10)
        b.kill()
        say(10)
        b.start()
        say(10)
        first.close()  # the relay is killed
        say(10)
        stack.enter_context(relay("--port", url.rsplit(":", 1)[1]))
        say(10)
        two = found("B")
        until(lambda: len(two.arrived()) == 50, "all of them")
        assert [m["message_id"] for m in two.arrived()] == [f"m{n}" for n in range(50)]


def test_an_odd_address_of_a_relay_is_told_in_one_line() -> None:
    agent = Process("A", *ANY_PORT, "--relay", "relay.example")
    with pytest.raises(AssertionError, match="--relay: a relay's address is"):
        agent.start()
    agent.kill()
