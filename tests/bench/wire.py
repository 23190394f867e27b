"""How fast an agent is, beside a bare starlette application measured in the same run.

python -m tests.bench.wire [--messages N] [--subscribers N]

The agent and the bare application run as processes of their own and are asked by the same client
over keep-alive connections. Nothing here passes or fails: figures are printed, and how loaded the
machine was. Lower message counts give rougher figures, sooner.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

TEXT = "x" * 64
BODY = json.dumps({"text": TEXT, "from": "Bench"}).encode()
AT_ONCE = 16
BURST = 50
PACED = 400
_ROOT = str(Path(__file__).resolve().parents[2])

BARE = """
import asyncio, sys, uvicorn, socket
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
waiting = set()
async def send(request):
    body = await request.json()
    for queue in waiting:
        queue.put_nowait(body["text"])
    return JSONResponse({"ok": True})
async def stream(scope, receive, send):
    queue = asyncio.Queue(); waiting.add(queue)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    await send({"type": "http.response.body", "body": b": ready\\n\\n", "more_body": True})
    while True:
        text = await queue.get()
        await send({"type": "http.response.body", "body": b"data: %s\\n\\n" % text.encode(), "more_body": True})
class Stream:
    def __init__(self): pass
    async def __call__(self, scope, receive, send): await stream(scope, receive, send)
app = Starlette(routes=[Route("/message:send", send, methods=["POST"]), Route("/stream", Stream())])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical", backlog=2048, http="h11", loop="asyncio")
"""
AGENT = """
import sys
from acp_core.protocols.wire import agent_command
sys.exit(agent_command.agent(sys.argv[1:]))
"""


class Server:
    """A process that serves HTTP at a port."""

    def __init__(self, name: str, argv: list[str], port: int) -> None:
        self.name, self.port = name, port
        began = time.perf_counter()
        self.process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
        while not _answers(port):
            time.sleep(0.002)
        self.ready = time.perf_counter() - began

    def memory(self) -> float:
        """Resident memory in MB."""
        return float(psutil.Process(self.process.pid).memory_info().rss) / 1e6

    def end(self) -> None:
        """Stop it."""
        self.process.kill()
        self.process.wait(20)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 0.5).close()
    except OSError:
        return False
    return True


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Line:
    """A keep-alive connection that posts; as thin as can be, so that the server is measured."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> Line:
        """Connect."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def post(self, body: bytes) -> None:
        """Post a message and wait for the answer."""
        head = (
            b"POST /message:send HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        )
        self._writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in answer.split(b"\r\n")[0], answer
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await self._reader.readexactly(length)

    def close(self) -> None:
        """Let go."""
        self._writer.close()


class Stream:
    """One subscriber: when each message came."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.times: list[float] = []
        self._came = asyncio.Event()
        self.work: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, port: int) -> Stream:
        """Subscribe, and wait until it is served."""
        stream = cls(*await asyncio.open_connection("127.0.0.1", port))
        stream._writer.write(b"GET /stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await stream._reader.readuntil(b"\r\n\r\n")
        await stream._reader.readuntil(b"\n\n")
        stream.work = asyncio.create_task(stream._listen())
        return stream

    async def _listen(self) -> None:
        mark = TEXT.encode()
        while True:
            data = await self._reader.readuntil(b"\n\n")
            if mark in data:
                self.times.append(time.perf_counter())
                self._came.set()

    async def until(self, number: int) -> None:
        """Wait until so many messages have come."""
        while len(self.times) < number:
            self._came.clear()
            await self._came.wait()

    async def close(self) -> None:
        """Let go."""
        if self.work:
            self.work.cancel()
        self._writer.close()


async def sequential(port: int, count: int) -> float:
    """Messages per second, one after the other on one connection."""
    line = await Line.open(port)
    began = time.perf_counter()
    for _ in range(count):
        await line.post(BODY)
    line.close()
    return count / (time.perf_counter() - began)


async def concurrent(port: int, count: int) -> float:
    """Messages per second on `AT_ONCE` connections."""
    lines = [await Line.open(port) for _ in range(AT_ONCE)]

    async def send(line: Line) -> None:
        for _ in range(count // AT_ONCE):
            await line.post(BODY)

    began = time.perf_counter()
    await asyncio.gather(*map(send, lines))
    took = time.perf_counter() - began
    for line in lines:
        line.close()
    return count / took


async def latency(port: int, count: int, pause: float = 0.01) -> tuple[float, float]:
    """From the beginning of a POST to its event at a subscriber: p50 and p99 in ms, paced."""
    stream, line = await Stream.open(port), await Line.open(port)
    taken: list[float] = []
    for _ in range(count):
        seen = len(stream.times)
        began = time.perf_counter()
        await line.post(BODY)
        await stream.until(seen + 1)
        taken.append(1000 * (stream.times[-1] - began))
        await asyncio.sleep(pause)
    line.close()
    await stream.close()
    taken.sort()
    return statistics.median(taken), taken[int(0.99 * len(taken)) - 1]


async def subscribers(server: Server, count: int) -> tuple[int, float, float, float]:
    """Open so many in bursts: how many are served, MB with them, and ms until all have a message."""
    open_now: list[Stream] = []
    for start in range(0, count, BURST):
        some = min(BURST, count - start)
        found = await asyncio.gather(
            *(asyncio.wait_for(Stream.open(server.port), 25) for _ in range(some)),
            return_exceptions=True,
        )
        open_now += [each for each in found if isinstance(each, Stream)]
    memory = server.memory()
    line = await Line.open(server.port)
    taken = []
    for number in range(1, 6):
        began = time.perf_counter()
        await line.post(BODY)
        waits = [asyncio.create_task(stream.until(number)) for stream in open_now]
        await asyncio.wait(waits, timeout=20)
        taken += [1000 * (s.times[number - 1] - began) for s in open_now if len(s.times) >= number]
    line.close()
    for each in open_now:
        await each.close()
    taken.sort()
    return len(open_now), memory, statistics.median(taken), taken[int(0.99 * len(taken)) - 1]


async def measure(server: Server, count: int, streams: int) -> dict[str, str]:
    """All figures of one server."""
    before = server.memory()
    figures = {
        "start to ready": f"{1000 * server.ready:.0f} ms",
        "memory at start": f"{before:.0f} MB",
    }
    await sequential(server.port, 200)
    p50, p99 = await latency(server.port, PACED)
    figures["POST to SSE, paced, p50 / p99"] = f"{p50:.1f} / {p99:.1f} ms"
    figures["sequential"] = f"{await sequential(server.port, count // 2):.0f} messages/s"
    figures[f"on {AT_ONCE} connections"] = (
        f"{await concurrent(server.port, count // 2):.0f} messages/s"
    )
    figures[f"memory after {count} messages"] = f"{server.memory():.0f} MB"
    served, memory, p50, p99 = await subscribers(server, streams)
    figures[f"{streams} subscribers in bursts of {BURST}"] = f"{served} served"
    figures[f"memory with {streams} subscribers"] = f"{memory:.0f} MB"
    figures[f"POST to {streams} subscribers, p50 / p99"] = f"{p50:.0f} / {p99:.0f} ms"
    return figures


@asynccontextmanager
async def _ended(server: Server) -> AsyncIterator[Server]:
    try:
        yield server
    finally:
        server.end()


def disk(folder: str, count: int = 200) -> tuple[float, float]:
    """How long the disk takes for 8 kB, paced: p50 and p99 in ms. Each message waits for it once."""
    taken = []
    with open(Path(folder) / "disk", "wb") as file:
        for _ in range(count):
            began = time.perf_counter()
            file.write(b"x" * 8192)
            file.flush()
            os.fdatasync(file.fileno())
            taken.append(1000 * (time.perf_counter() - began))
            time.sleep(0.005)
    taken.sort()
    return statistics.median(taken), taken[int(0.99 * count) - 1]


async def _run(count: int, streams: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"ACP_STATE": folder, "ACP_CONFIG": folder}
        os.environ["PYTHONPATH"] = _ROOT
        port, web = free_port(), free_port()
        options = ["--name", "Measured", "--port", str(port), "--http-port", str(web)]
        made: dict[str, Callable[[], Awaitable[dict[str, str]]]] = {}

        async def of(name: str, argv: list[str], at: int) -> dict[str, str]:
            async with _ended(Server(name, argv, at)) as server:
                return await measure(server, count, streams)

        bare = free_port()
        made["bare"] = lambda: of("bare", [sys.executable, "-c", BARE, str(bare)], bare)
        made["agent"] = lambda: of("agent", [sys.executable, "-c", AGENT, *options], web)
        found = {name: await work() for name, work in made.items()}
        again = [*options, "--sync", "normal"]
        async with _ended(Server("agent", [sys.executable, "-c", AGENT, *again], web)) as server:
            await sequential(server.port, 200)
            p50, p99 = await latency(server.port, PACED)
            found["agent"]["the same, --sync normal"] = f"{p50:.1f} / {p99:.1f} ms"
        print("the disk, 8 kB brought to it, p50 / p99: {:.1f} / {:.1f} ms".format(*disk(folder)))
    width = max(map(len, found["agent"]))
    print(f"{'':{width}}  {'agent':>20}  {'bare starlette':>20}")
    for name, value in found["agent"].items():
        print(f"{name:{width}}  {value:>20}  {found['bare'].get(name, ''):>20}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--subscribers", type=int, default=1_000)
    given = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * given.subscribers + 200
    if soft < wanted:
        more = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
        print(f"files that may be open: {more} (were {soft})")
    print(f"load average at the beginning: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    asyncio.run(_run(given.messages, given.subscribers))
    print(f"load average at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
