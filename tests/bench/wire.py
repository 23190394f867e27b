"""Agents that talk over the network, beside a bare starlette application of the same run.

The agent and the bare application run as processes of their own and are asked by the same client
over keep-alive connections, in turn.
"""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import psutil

from tests.bench.bench import Bench
from tests.bench.figures import Aim, Figure, percentile
from tests.bench.programs import Failed, acp

P50, P99, MEMORY = 2.0, 5.0, 80.0  # ms, ms, MB after `MESSAGES` messages
MESSAGES, SUBSCRIBERS = 10_000, 1_000
BESIDE = "a bare starlette application"
TEXT = "x" * 64
BODY = json.dumps({"text": TEXT, "from": "Bench"}).encode()
AT_ONCE = 16
BURST = 50
PATIENCE = 60.0  # s for a start
QUICK = 10  # changes in a run; below it everything is measured roughly
PACED = 200  # messages in a run of latency

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


class Server:
    """A process that serves HTTP at a port."""

    def __init__(self, name: str, argv: Sequence[str], port: int) -> None:
        self.name, self.port = name, port
        began = time.perf_counter()
        self.process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
        while not _answers(port):
            if self.process.poll() is not None or time.perf_counter() > began + PATIENCE:
                self.end()
                raise Failed(f"{name} does not answer")
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
        if b" 200 " not in answer.split(b"\r\n")[0]:
            raise Failed(f"a message was refused: {answer.decode(errors='replace')}")
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


async def latency(port: int, count: int, pause: float = 0.01) -> list[float]:
    """Milliseconds from the beginning of each POST to its event at a subscriber, paced."""
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
    return taken


async def subscribers(server: Server, count: int) -> tuple[int, float]:
    """Open so many in bursts: how many get a message, and the MB that the server holds then."""
    open_now: list[Stream] = []
    for start in range(0, count, BURST):
        some = min(BURST, count - start)
        found = await asyncio.gather(
            *(asyncio.wait_for(Stream.open(server.port), 25) for _ in range(some)),
            return_exceptions=True,
        )
        open_now += [each for each in found if isinstance(each, Stream)]
    line = await Line.open(server.port)
    await line.post(BODY)
    waits = [asyncio.create_task(stream.until(1)) for stream in open_now]
    if waits:
        await asyncio.wait(waits, timeout=20)
    served, memory = sum(bool(each.times) for each in open_now), server.memory()
    for wait in waits:
        wait.cancel()
    line.close()
    for each in open_now:
        await each.close()
    return served, memory


def measure(bench: Bench) -> Iterator[Figure]:
    """Latency and throughput as often as the bench has runs; memory and subscribers once."""
    quick = bench.changes < QUICK
    messages, streams = (600, BURST) if quick else (MESSAGES, SUBSCRIBERS)
    streams = min(streams, _allowed(2 * streams + 200) // 2 - 100)
    if streams < SUBSCRIBERS and not quick:
        bench.say(f"the system allows {streams} subscribers at once only")
    other = free_port()
    with ExitStack() as ending:
        bare = Server("bare", [sys.executable, "-c", BARE, str(other)], other)
        ending.callback(bare.end)
        agents = []
        options = subprocess.run([*acp(), "agent", "--help"], capture_output=True, text=True).stdout
        # to an older copy any account of this machine is the owner without being told
        opened = ["--open-loopback"] if "--open-loopback" in options else []
        for sync in ("full", "normal"):
            port, web = free_port(), free_port()
            words = ["agent", "--name", f"Measured-{sync}", "--sync", sync]
            words += ["--port", str(port), "--http-port", str(web), *opened]
            agents.append(Server(sync, [*acp(), *words], web))
            ending.callback(agents[-1].end)
        yield from asyncio.run(_measure(bench, agents, bare, messages, streams))


async def _measure(
    bench: Bench, agents: Sequence[Server], bare: Server, messages: int, streams: int
) -> list[Figure]:
    agent, normal = agents
    servers = (agent, bare)
    paced: dict[str, list[list[float]]] = {each.name: [] for each in (*servers, normal)}
    speed: dict[str, list[float]] = {server.name: [] for server in servers}
    sent = messages // 10
    for number in range(bench.runs + 1):
        for server in servers:
            taken = await latency(server.port, PACED)
            rate = await sequential(server.port, sent)
            if number:
                paced[server.name].append(taken)
                speed[server.name].append(rate)
        taken = await latency(normal.port, PACED)
        if number:
            paced[normal.name].append(taken)
    rest = max(0, messages - (bench.runs + 1) * (sent + PACED))
    together = [await concurrent(server.port, max(rest, AT_ONCE)) for server in servers]
    less = [await concurrent(normal.port, max(rest, AT_ONCE)), together[1]]
    memory = [server.memory() for server in servers]
    crowds = [await subscribers(server, streams) for server in servers]

    def figure(name: str, unit: str, values: Sequence[float], aim: Aim | None = None) -> Figure:
        return Figure("wire", name, unit, values[0], BESIDE, values[1], aim)

    def middle(server: Server, share: float) -> float:
        return statistics.median(percentile(run, share) for run in paced[server.name])

    def pair(of: Server, share: float) -> list[float]:
        return [middle(of, share), middle(bare, share)]

    names = [server.name for server in servers]
    half, most = Aim(f"at most {P50:.0f} ms", P50), Aim(f"at most {P99:.0f} ms", P99)
    return [
        figure("POST to SSE, paced, p50", "ms", pair(agent, 0.5), half),
        figure("POST to SSE, paced, p99", "ms", pair(agent, 0.99), most),
        figure("the same, --sync normal, p50", "ms", pair(normal, 0.5)),
        figure("the same, --sync normal, p99", "ms", pair(normal, 0.99)),
        figure("one after the other", "messages/s", [statistics.median(speed[n]) for n in names]),
        figure(f"on {AT_ONCE} connections", "messages/s", together),
        figure("the same, --sync normal", "messages/s", less),
        figure(
            f"memory after {messages:,} messages", "MB", memory,
            Aim(f"at most {MEMORY:.0f} MB", MEMORY),
        ),
        figure(
            f"not served of {streams:,} subscribers in bursts of {BURST}", "",
            [streams - served for served, _ in crowds], Aim("none", 0.0),
        ),
        figure(f"memory with {streams:,} subscribers", "MB", [held for _, held in crowds]),
    ]  # fmt: skip


def _allowed(wanted: int) -> int:
    """Raise the number of files that may be open as far as the system lets; what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft
