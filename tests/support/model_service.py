"""A model service on loopback whose model follows a script: what real agent programs talk to in tests.

``python -m tests.support.model_service FOLDER`` listens on a port of its own, which it writes into
``FOLDER/port``, in a network that has nothing but loopback. Programs join that network (see
`tests.support.real_programs`), so that none of them reaches anything else. What the model does is
decided from the prompt by `tests.support.script`; each request is a line of ``FOLDER/requests``.
While ``FOLDER/away`` is there the service answers nobody; ``FOLDER/limited`` names the paths (a part of
each, a line) for which a quota is used up.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.dialects import Dialect, Reply, dialect_of
from tests.support.script import Script

_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_SET_FLAGS, _GET_FLAGS, _UP = 0x8914, 0x8913, 1
_WORTHLESS = {"error": {"type": "not_found_error", "message": "there is no such path"}}
_AWAY = {"error": {"type": "api_error", "message": "The service is unavailable."}}
_RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "600s"}
_LIMITED = {
    "error": {
        "code": 429,
        "type": "rate_limit_error",
        "message": "You exceeded your current quota. Please retry in 600s.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [_RETRY],
    }
}


def leave_the_network() -> None:
    """Have nothing but loopback from here on.

    Raises:
        OSError: this account may not do that.
    """
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "no network of its own")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = bytearray(struct.pack("16sh14x", b"lo", 0))
        fcntl.ioctl(any_socket, _GET_FLAGS, request)
        (flags,) = struct.unpack_from("h", request, 16)
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", flags | _UP))


class Service(ThreadingHTTPServer):
    """Listens, and has its script answer."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.script = Script(folder)
        self.lock = threading.Lock()

    def refusal(self, path: str) -> tuple[int, dict[str, Any]] | None:
        """The status and the answer where nothing is done for this path now."""
        if (self.folder / "away").exists():
            return 503, _AWAY
        limited = self.folder / "limited"
        parts = limited.read_text().split() if limited.exists() else []
        return (429, _LIMITED) if any(each in path for each in parts) else None

    def note(self, **facts: object) -> None:
        with self.lock, (self.folder / "requests").open("a") as file:
            file.write(json.dumps(facts) + "\n")


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: Service

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: requests are noted."""

    def do_HEAD(self) -> None:
        self._send(b"")

    def do_GET(self) -> None:
        models = {"object": "list", "data": []}
        known = self.path.split("?")[0].endswith("/models")
        self.server.note(path=self.path)
        self._send(json.dumps(models if known else _WORTHLESS).encode(), 200 if known else 404)

    def do_POST(self) -> None:
        body = json.loads(self._body() or b"{}")
        path = self.path.split("?")[0].replace(":", "/")
        dialect = dialect_of(path)
        if dialect is None:
            self.server.note(path=self.path)
            tokens = json.dumps({"input_tokens": 100, "totalTokens": 100}).encode()
            counts = path.endswith(("count_tokens", "countTokens"))
            self._send(
                tokens if counts else json.dumps(_WORTHLESS).encode(), 200 if counts else 404
            )
            return
        if refusal := self.server.refusal(path):
            self.server.note(path=path, refused=refusal[0])
            self._send(json.dumps(refusal[1]).encode(), refusal[0])
            return
        talk = dialect.read(body)
        with self.server.lock:
            reply = self.server.script.reply(talk)
        self.server.note(path=path, tools=talk.tools, said=len(talk.said), use=reply.tool, given=reply.given, words="".join(reply.words)[:200])  # fmt: skip
        if body.get("stream") or path.endswith("streamGenerateContent"):
            self._stream(dialect, reply)
        else:
            self._send(json.dumps(dialect.whole(reply)).encode())

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _send(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, dialect: Dialect, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for event, pause in dialect.events(reply):
                self._event(event, dialect.named)
                time.sleep(pause)
            if not dialect.named:
                self.wfile.write(b"data: [DONE]\n\n" if "choices" in event else b"")
        except OSError:
            self.server.note(path=self.path, left=True)  # the program went away
        self.close_connection = True

    def _event(self, event: dict[str, Any], named: bool) -> None:
        head = f"event: {event['type']}\n" if named else ""
        self.wfile.write(f"{head}data: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()


def main(folder: str) -> None:
    leave_the_network()
    service = Service(Path(folder))
    written = Path(folder, "port.new")
    written.write_text(str(service.server_address[1]))
    os.replace(written, Path(folder, "port"))
    service.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
