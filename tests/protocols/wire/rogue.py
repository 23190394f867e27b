"""A host that answers as no agent should."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

HOSTILE = "\x1b]0;pwned\x07[@click=app.quit]x[/] \u202e\x9b2J"
Answer = Callable[[str, socket.socket], None]


class Rogue:
    """Listens on loopback; each request is answered by the function that is set."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.heads: list[str] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self._closed = False
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._one, args=(client,), daemon=True).start()

    def _one(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            client.settimeout(30)
            data = b""
            while b"\r\n\r\n" not in data:
                more = client.recv(65536)
                if not more:
                    return
                data += more
            path = data.split(b" ", 2)[1].decode()
            self.asked.append(path)
            self.heads.append(data.partition(b"\r\n\r\n")[0].decode())
            self.answer(path, client)

    @property
    def closed(self) -> bool:
        """Whether it is over: for answers that do not end by themselves."""
        return self._closed

    def close(self) -> None:
        """Listen no more."""
        self._closed = True
        self._server.close()


@contextmanager
def rogue(answer: Answer) -> Iterator[Rogue]:
    """A host that answers so."""
    host = Rogue(answer)
    try:
        yield host
    finally:
        host.close()


def reply(client: socket.socket, body: bytes, status: str = "200 OK", *more: str) -> None:
    """A whole answer."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *more]
    client.sendall("\r\n".join([*lines, "", ""]).encode() + body)


def begin(client: socket.socket, kind: str = "text/event-stream") -> None:
    """The head of an answer that has no end of its own."""
    client.sendall(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n".encode())


def told(value: object) -> Answer:
    """The same JSON, whatever is asked."""
    body = json.dumps(value).encode()
    return lambda path, client: reply(client, body)


def plain(events: list[bytes], **answers: Any) -> Answer:
    """An agent whose stream tells these bytes; ``answers`` by the first word of the path."""

    def answer(path: str, client: socket.socket) -> None:
        word = path.strip("/").partition("?")[0].partition("/")[0]
        if word == "stream":
            begin(client)
            for each in events:
                client.sendall(each)
            time.sleep(20)
            return
        usual: dict[str, Any] = {
            "status": {"server_seq": 10**6},
            ".well-known": {"name": HOSTILE, "description": HOSTILE, "instance_id": "x"},
        }
        reply(client, json.dumps(answers.get(word, usual.get(word, {}))).encode())

    return answer


def event(seq: object, kind: str, body: object) -> bytes:
    """One event of a stream."""
    return f"id: {seq}\nevent: {kind}\ndata: {json.dumps(body)}\n\n".encode()
