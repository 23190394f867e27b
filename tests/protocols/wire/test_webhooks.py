"""Events are posted where the owner says, and nowhere that was not allowed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.protocols.wire.support import refused, served, until


@pytest.fixture
def listener() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that keeps what is posted to it; the first post fails."""
    got: list[dict[str, Any]] = []
    tries: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            tries.append(1)
            if len(tries) == 1:
                self.send_response(503)
            else:
                got.append(json.loads(body))
                self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", got
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
def test_what_happens_is_posted(tmp_path: Path, listener: tuple[str, list[dict[str, Any]]]) -> None:
    url, got = listener

    def say(text: str) -> None:
        agent.post("/message:send", {"text": text, "from": "Other"})

    def texts() -> list[str]:
        return [each["parts"][0]["content"] for each in got]

    with served(tmp_path) as agent:
        say("before")
        assert agent.post("/webhooks/register", {"url": url}).json()["total"] == 1
        assert agent.post("/webhooks/register", {"url": url}).json()["total"] == 1
        for n in range(3):
            say(f"{n}")
        until(lambda: texts() == ["0", "1", "2"], "the posts")
    with served(tmp_path) as agent:  # it is known after a restart
        say("again")
        until(lambda: texts()[3:] == ["again"], "the post")
        assert agent.post("/webhooks/deregister", {"url": url}).json()["remaining"] == 0
        say("after")
    assert texts()[3:] == ["again"]


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("http://169.254.169.254/x", 403),
        ("http://example.com/", 403),
        ("http://localhost.example.com/", 403),
        ("file:///etc/passwd", 400),
        ("", 400),
        (None, 400),
        (5, 400),
    ],
)
def test_nothing_is_posted_to_strangers(tmp_path: Path, url: Any, status: int) -> None:
    with served(tmp_path) as agent:
        code = "ERR_FORBIDDEN" if status == 403 else "ERR_INVALID_REQUEST"
        refused(agent.post("/webhooks/register", {"url": url}), status, code)
        refused(
            agent.post("/webhooks/register", {"url": f"{agent.url}/send"}), 403, "ERR_FORBIDDEN"
        )


def test_a_host_can_be_allowed(tmp_path: Path) -> None:
    with served(tmp_path, webhook_hosts=("hooks.example",)) as agent:
        assert agent.post("/webhooks/register", {"url": "http://hooks.example/x"}).is_success
        refused(
            agent.post("/webhooks/register", {"url": "http://127.0.0.1:9/"}), 403, "ERR_FORBIDDEN"
        )
