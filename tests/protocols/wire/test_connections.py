"""Connections that never ask, never finish, come in crowds, or speak no HTTP at all."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.protocols.wire.conduct.agent import Limits
from tests.protocols.wire.support import PATIENCE, Served, served, until


def connected(agent: Served) -> socket.socket:
    """A connection to its HTTP interface."""
    port = agent.agent.http_port
    assert port
    line = socket.create_connection(("127.0.0.1", port), PATIENCE)
    line.settimeout(PATIENCE)
    return line


def ended(line: socket.socket) -> bool:
    """Wait until the other side ends it."""
    try:
        while line.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Served]:
    """An agent of little patience."""
    with served(tmp_path, limits=Limits(head_seconds=0.3, body_seconds=0.3)) as agent:
        yield agent


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET /status HT",
        b"GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    ],
)
def test_who_never_asks_is_not_waited_for(quick: Served, said: bytes) -> None:
    with contextlib.closing(connected(quick)) as line:
        line.sendall(said)
        assert ended(line)
    assert quick.get("/status")["ok"]


def test_who_asked_once_and_never_finishes_the_next_question_is_not_waited_for(
    quick: Served,
) -> None:
    with contextlib.closing(connected(quick)) as line:
        line.sendall(b"GET /card HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert line.recv(65536).startswith(b"HTTP/1.1 200")
        line.sendall(b"GET /ca")
        assert ended(line)


def test_a_head_that_comes_in_drops_gets_no_more_time(quick: Served) -> None:
    with contextlib.closing(connected(quick)) as line, contextlib.suppress(ConnectionError):
        line.settimeout(0.05)
        head = b"GET /status HTTP/1.1\r\n" + b"X-Drop: " + b"a" * 1000
        for place in range(len(head)):
            line.sendall(head[place : place + 1])
            try:
                assert line.recv(1) == b""
                break
            except TimeoutError:
                continue
        else:
            raise AssertionError("it went on waiting")


def test_a_body_that_never_comes_is_refused_while_others_are_served(quick: Served) -> None:
    with contextlib.closing(connected(quick)) as line:
        line.sendall(
            b"POST /message:send HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
            b"Authorization: Bearer %s\r\n\r\n{" % quick.agent.owner_token.encode()
        )
        assert quick.get("/status")["ok"]
        answer = b""
        while b"ERR_TIMEOUT" not in answer and (more := line.recv(65536)):
            answer += more
        assert b" 408 " in answer.split(b"\r\n")[0]
        assert b"ERR_TIMEOUT" in answer


def test_a_stream_and_a_patient_question_may_take_as_long_as_they_need(quick: Served) -> None:
    with quick.http.stream("GET", "/stream") as stream:
        lines = stream.iter_lines()
        assert any("acp.ready" in line for line in lines)
        assert quick.http.get("/wait/nothing", params={"timeout": 1}).status_code == 408
        quick.post("/message:send", {"text": "still here", "from": "B"})
        assert any("still here" in line for line in lines)


def test_only_so_many_connections_are_held(tmp_path: Path) -> None:
    with served(tmp_path, limits=Limits(connections=4)) as agent:
        agent.http.close()  # the one that it holds itself
        lines = [connected(agent) for _ in range(4)]
        with contextlib.closing(connected(agent)) as more:
            assert ended(more)
        lines[0].sendall(b"GET /card HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert lines[0].recv(12) == b"HTTP/1.1 200"
        for line in lines:
            line.close()

        def again() -> bool:
            with contextlib.closing(connected(agent)) as line, contextlib.suppress(OSError):
                line.sendall(b"GET /card HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                return line.recv(12) == b"HTTP/1.1 200"
            return False

        until(again, "that there is room again")


@pytest.mark.slow
def test_questions_whose_asker_is_gone_count_as_long_as_they_go_on(tmp_path: Path) -> None:
    with served(tmp_path, limits=Limits(connections=4)) as agent:
        agent.http.close()
        head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {agent.agent.owner_token}\r\n\r\n"
        ask = f"GET /wait/nothing?timeout=60 HTTP/1.1\r\n{head}".encode()

        def refused() -> bool:
            with contextlib.closing(connected(agent)) as line:
                line.sendall(ask)  # and nobody waits for the answer
            with contextlib.closing(connected(agent)) as line, contextlib.suppress(OSError):
                line.sendall(b"GET /card HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                return line.recv(12) == b"HTTP/1.1 429"
            return False

        until(refused, "that it is too much")


@pytest.mark.parametrize(
    "said", [b"\x16\x03\x01\x02\x00\x01", b"bogus\r\n\r\n", b"GET / HTTP/9\r\nA\r\n\r\n"]
)
def test_what_is_no_http_is_refused_as_everything_else_is(tmp_path: Path, said: bytes) -> None:
    with served(tmp_path) as agent, contextlib.closing(connected(agent)) as line:
        line.sendall(said + b"\r\n" * 4)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while data := line.recv(65536):
                answer += data
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert json.loads(body)["error_code"] == "ERR_INVALID_REQUEST"
