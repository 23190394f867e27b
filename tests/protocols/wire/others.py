"""Stand-ins for agents of other makes: what they say, in the shapes in which they say it.

`First` wraps its card, numbers nothing, tells events by the ``type`` of their data alone, and serves
one request at a time. `Newest` answers many at once, names its events, numbers them in their data, and
tells what was missed.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]
CARD = {
    "name": "Elder", "version": "1.0.0", "acp_version": "0.8-dev", "description": "does sums",
    "skills": ["add", "carry"], "capabilities": {"streaming": True, "multi_session": True},
    "identity": None, "trust": {"scheme": "none", "enabled": False},
}  # fmt: skip


def stamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + ".250000Z"


class Other:
    """An agent of another make; `say`, `begin` and `finish` are what happens there."""

    card: ClassVar[Json]
    one_at_a_time = False

    def __init__(self) -> None:
        self.events: list[tuple[str, Json]] = []
        self.inbox: list[Json] = []
        self.tasks: dict[str, Json] = {}
        self.sent: list[tuple[str, Json]] = []
        self.asked: list[str] = []
        self.polled = 0
        self.changed = threading.Condition()
        self.closed = False

    def tell(self, name: str, event: Json) -> None:
        with self.changed:
            self.events.append((name, event))
            self.changed.notify_all()

    def get(self, path: str, query: dict[str, list[str]]) -> Any:
        """What a question is answered by; None: nothing is there."""
        raise NotImplementedError

    def lines(self, name: str, event: Json) -> bytes:
        """An event on its stream."""
        raise NotImplementedError

    def say(self, id: str, text: str, sender: str = "Junior") -> None:
        raise NotImplementedError


class First(Other):
    card: ClassVar[Json] = {"self": CARD, "peer": None}
    one_at_a_time = True

    def get(self, path: str, query: dict[str, list[str]]) -> Any:
        if path == "/recv":
            self.polled += 1
            return {"messages": self.inbox, "count": len(self.inbox), "remaining": 0}
        return {
            "/.well-known/acp.json": self.card,
            "/status": {"agent_name": "Elder", "server_seq": 1, "connected": True},
            "/peers": {"peers": [self.peer], "count": 1, "active": 1},
            "/tasks": {"tasks": list(self.tasks.values()), "count": len(self.tasks)},
            "/history": {"history": self.inbox, "total": len(self.inbox)},
            **{f"/tasks/{id}": task for id, task in self.tasks.items()},
        }.get(path)

    @property
    def peer(self) -> Json:
        return {"id": "peer_001", "name": "Junior", "link": "acp://192.0.2.1:7801/tok_x",
                "connected": True, "connected_at": stamp(), "messages_sent": 2,
                "messages_received": 3, "agent_card": {"self": {"name": "Junior"}}}  # fmt: skip

    def lines(self, name: str, event: Json) -> bytes:
        return f"data: {json.dumps(event)}\n\n".encode()

    def say(self, id: str, text: str, sender: str = "Junior") -> None:
        parts = [{"type": "text", "content": text}]
        raw = {"type": "acp.message", "message_id": id, "ts": stamp(), "from": sender,
               "role": "user", "parts": parts}  # fmt: skip
        self.inbox.append({"id": id, "message_id": id, "received_at": time.time(), "role": "user",
                           "parts": parts, "task_id": None, "context_id": None, "raw": raw})  # fmt: skip
        self.tell("", {"type": "message", "ts": stamp(), "message_id": id, "role": "user",
                       "parts": parts, "task_id": None})  # fmt: skip

    def begin(self, id: str, text: str) -> None:
        self.tasks[id] = {"id": id, "status": "working", "created_at": stamp(),
                          "updated_at": stamp(), "payload": {"text": text}, "artifacts": [],
                          "history": [], "from_peer": True}  # fmt: skip
        self.tell("", {"type": "status", "ts": stamp(), "task_id": id, "state": "working"})

    def finish(self, id: str, text: str) -> None:
        artifact = {"parts": [{"type": "text", "content": text}]}
        self.tasks[id] |= {"status": "completed", "artifacts": [artifact], "updated_at": stamp()}
        self.tell("", {"type": "artifact", "ts": stamp(), "task_id": id, "artifact": artifact})
        self.tell("", {"type": "status", "ts": stamp(), "task_id": id, "state": "completed"})


class Newest(First):
    card: ClassVar[Json] = {"self": {**CARD, "name": "Newer", "skills": [
        {"id": "add", "name": "add", "tags": ["sums"]}]}, "peer": None, "extensions": []}  # fmt: skip
    one_at_a_time = False

    def get(self, path: str, query: dict[str, list[str]]) -> Any:
        if path == "/messages":
            listed = [{key: each["raw"].get(key, each.get(key)) for key in
                       ("message_id", "ts", "from", "role", "parts")} | {"direction": "inbound"}
                      for each in self.inbox]  # fmt: skip
            return {"messages": listed, "total": len(listed), "has_more": False}
        if path == "/tasks" and query.get("sort", ["created_at"])[0].startswith("-"):
            return 400
        return super().get(path, query)

    def lines(self, name: str, event: Json) -> bytes:
        return f"event: {name}\ndata: {json.dumps(event)}\n\n".encode()

    def tell(self, name: str, event: Json) -> None:
        super().tell(name or event["type"], {**event, "seq": len(self.events) + 1})

    def finish(self, id: str, text: str) -> None:
        artifact = {"parts": [{"type": "text", "content": text}]}
        self.tasks[id] |= {"status": "completed", "artifacts": [artifact], "updated_at": stamp()}
        self.tell("task", {"type": "task", "ts": stamp(), "task": self.tasks[id]})


class _Handler(BaseHTTPRequestHandler):
    other: Other

    def do_GET(self) -> None:
        other, asked = self.other, urlsplit(self.path)
        other.asked.append(asked.path)
        query = parse_qs(asked.query)
        if asked.path == "/stream":
            self._stream(int(query["since"][0]) if "since" in query else None)
            return
        found = other.get(asked.path, query)
        status = found if isinstance(found, int) else 200 if found is not None else 404
        self._answer(status, found if status == 200 else {"error": "not found"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))) or b"{}")
        self.other.sent.append((self.path, body))
        if ":" in self.path and self.other.one_at_a_time and self.path != "/message:send":
            self._answer(404, {"error": "not found"})
            return
        self._answer(200, {"ok": True, "message_id": body.get("message_id", "msg_1")})

    def _answer(self, status: int, content: Any) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, since: int | None) -> None:
        other = self.other
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        replays = since is not None and not other.one_at_a_time
        place = since or 0 if replays else len(other.events)
        with suppress(OSError):
            while not other.closed:
                with other.changed:
                    other.changed.wait(0.1)
                    news, place = other.events[place:], len(other.events)
                for each in news:
                    self.wfile.write(other.lines(*each))
                self.wfile.write(b": keepalive\n\n")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is said."""


@contextmanager
def running(other: Other) -> Iterator[str]:
    """Let it be asked at an address."""
    handler = type("Handler", (_Handler,), {"other": other})
    server = (HTTPServer if other.one_at_a_time else ThreadingHTTPServer)(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        other.closed = True
        server.shutdown()
        server.server_close()
        thread.join()
