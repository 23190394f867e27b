"""A relay of another make: it rewrites frames, and gives each to everybody."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.protocols.wire.support import Served, served, until


class Room(BaseHTTPRequestHandler):
    """As the relays out there behave: ``ts`` becomes milliseconds, ``id`` and ``seq`` are added."""

    messages: list[dict[str, Any]]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])) or "{}")
        action = urlsplit(self.path).path.rsplit("/", 1)[-1]
        if action == "join":
            body = {"type": "acp.agent_joined", "from": body["name"]}
        if action in ("join", "send"):
            seq = len(self.messages) + 1
            self.messages.append(
                {**body, "ts": int(time.time() * 1000), "seq": seq, "id": f"i{seq}"}
            )
        self.told({"ok": True, "session_id": "s", "seq": len(self.messages)})

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        after = int(query.get("after_id", ["i0"])[0][1:])
        found = self.messages[after : after + 50]
        last = found[-1]["id"] if found else f"i{after}"
        self.told({"messages": found, "count": len(found), "last_id": last})

    def told(self, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def address() -> Iterator[str]:
    handler = type("OneRoom", (Room,), {"messages": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def texts(agent: Served) -> list[str]:
    found = agent.get("/messages", direction="in", limit=1000)["messages"]
    return [each["parts"][0]["content"] for each in found]


@pytest.mark.slow
def test_two_agents_meet_there_and_nothing_is_called_forged(address: str, tmp_path: Path) -> None:
    signing = {"secret": "shared", "identity": str(tmp_path / "key.json")}
    with served(tmp_path, "A", relay=address, **signing) as a:
        link = str(a.agent.relay_link)
        for round in range(2):  # the second time it joins anew, and what waited arrives
            with served(tmp_path, "B", **signing) as b:
                b.post("/peers/connect", {"link": link})
                until(lambda: any(p["connected"] for p in b.get("/peers")), "B's connection")
                until(lambda: any(p["connected"] for p in a.get("/peers")), "A's connection")
                id = a.get("/peers")[0]["id"]
                assert len(a.get("/peers")) == 1
                for n in range(3):
                    assert a.post(f"/peer/{id}/send", {"text": f"a{round}{n}"}).is_success
                    assert b.post("/message:send", {"text": f"b{round}{n}"}).is_success
                until(lambda o=b, n=round: len(texts(o)) == 3 * n + 3, "all at B")
                until(lambda n=round: len(texts(a)) == 3 * n + 3, "all at A")
                expected = [f"a{r}{n}" for r in range(round + 1) for n in range(3)]
                until(lambda o=b, e=expected: texts(o) == e, "all at B, in order")
                kept = b.get("/messages", direction="in")["messages"][-1]
                assert kept["_unverifiable"] is True
                assert "_sig_invalid" not in kept
                assert "_ed25519_invalid" not in kept
        assert texts(a) == [f"b{r}{n}" for r in range(2) for n in range(3)]
