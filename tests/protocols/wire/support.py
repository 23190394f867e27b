"""Agents for the tests: in a thread of the test, or as processes that can be killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx

from acp_core.model import Outcome, Snapshot
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.wire.conduct.agent import Agent, Config
from acp_core.protocols.wire.serving.process import bind, listening, open_agent
from tests.support import forked
from tests.support.waiting import until as until

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 60.0
START = """
import sys
from acp_core.__main__ import no_dashboard
from acp_core.cli.main import run
sys.exit(run(sys.argv[1:], no_dashboard))
"""


class _Owner(httpx.Auth):
    """Shows each agent of the tests its owner's token."""

    def __init__(self) -> None:
        self._tokens: dict[str, str] = {}

    def learn(self, url: str, token: str) -> None:
        """Show this token to the agent at an address."""
        self._tokens[httpx.URL(url).netloc.decode()] = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        """See httpx."""
        token = self._tokens.get(request.url.netloc.decode())
        if token and "authorization" not in request.headers:
            request.headers["authorization"] = f"Bearer {token}"
        yield request


OWNER = _Owner()


def acp(*arguments: str, **variables: str) -> tuple[int, str]:
    """Run a command, with more variables in its environment; its exit code, and all that it says."""
    ran = forked.run(arguments, ROOT, {**os.environ, "PYTHONPATH": str(ROOT), **variables}, "")
    return ran.returncode, ran.stdout + ran.stderr


class Served:
    """An agent in a thread of this process, reached over real sockets."""

    def __init__(self, folder: Path, config: Config, at: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._config = config
        self._at = at
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._end: asyncio.Event
        self.agent: Agent
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._run()))
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        self.url = self.agent.http_url or ""
        self.link = self.agent.link or ""
        OWNER.learn(self.url, self.agent.owner_token)
        self.http = httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False, auth=OWNER)

    async def _run(self) -> None:
        self._end = asyncio.Event()
        self.agent = await open_agent(self._config, self._folder)
        try:
            host = self._config.host
            async with listening(self.agent, bind(host, self._at), bind(host, 0)):
                self.agent.peers.start()
                self._ready.set()
                await self._end.wait()
        finally:
            await self.agent.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the agent's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def post(self, path: str, content: Any = None, **options: Any) -> httpx.Response:
        """POST JSON."""
        return self.http.post(path, json={} if content is None else content, **options)

    def get(self, path: str, **query: Any) -> Any:
        """The JSON at a path."""
        response = self.http.get(path, params=query or None)
        assert response.status_code == 200, response.text
        return response.json()

    def meet(self, other: Served) -> str:
        """Connect to another agent; its id here, once both know of the connection."""
        before = other.get("/status")["peer_count"]
        id = self.post("/peers/connect", {"link": other.link}).json()["peer_id"]
        until(lambda: self.get(f"/peer/{id}")["connected"], "the connection")
        until(lambda: other.get("/status")["peer_count"] > before, "the other side's connection")
        return str(id)

    def close(self) -> None:
        """End it."""
        self.http.close()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(PATIENCE)
        self._loop.close()


@contextmanager
def served(folder: Path, name: str = "A", at: int = 0, **settings: Any) -> Iterator[Served]:
    """An agent in a thread; ``at``: the port for peers."""
    agent = Served(folder / name, Config(name=name, sync="normal", **settings), at)
    try:
        yield agent
    finally:
        agent.close()


class Process:
    """An agent as a process of its own, in the test's own state folder."""

    def __init__(self, name: str, *options: str) -> None:
        self.name = name
        self.options = options
        self._child: forked.Started | None = None
        self.link = self.url = ""
        self.links: dict[str, str] = {}
        self.owner_token = ""

    def start(self) -> Process:
        """Start it, and wait until it can be reached."""
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._child = forked.start(tuple(self.words()), ROOT, env)
        line = self._child.line()
        assert line, self._child.said()
        about = json.loads(line)
        assert "link" in about, self._child.said()
        self.link, self.url = about["link"], about["http_url"]
        self.owner_token = about["owner_token"]
        OWNER.learn(self.url, self.owner_token)
        self.links = {"acp": self.link, "tcp": about["tcp_link"], "relay": about["relay_link"]}
        self.links["http"] = f"{self.url}/{self.link.rsplit('/', 1)[1]}"
        return self

    @property
    def pid(self) -> int:
        """The process."""
        assert self._child
        return self._child.pid

    def words(self) -> list[str]:
        """The words behind ``acp``."""
        named = [] if "--config" in self.options else ["--name", self.name]
        return ["agent", *named, "--json", *self.options]

    def kill(self) -> None:
        """End it at once, without a chance to do anything."""
        self._end(signal.SIGKILL)

    def stop(self) -> tuple[int, str]:
        """Ask it to end; its exit code, and what it wrote to the standard error."""
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> tuple[int, str]:
        child, self._child = self._child, None
        return child.end(number) if child else (0, "")

    def __enter__(self) -> Process:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()


def refused(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Check that an answer is the error envelope of a code."""
    content: dict[str, Any] = response.json()
    assert response.status_code == status, content
    assert content["ok"] is False
    assert content["error_code"] == code
    assert content["error"] == content["message"] != ""
    assert response.headers["content-type"] == "application/json; charset=utf-8"
    return content


def post(agent: Process, path: str, body: dict[str, Any]) -> Any:
    """POST JSON to an agent that must take it; what it answers."""
    response = httpx.post(f"{agent.url}{path}", json=body, trust_env=False, auth=OWNER)
    assert response.is_success, response.text
    return response.json()


def panel(snapshot: Snapshot, id: str) -> list[tuple[str, ...]]:
    """The cells of a panel."""
    return next([row.cells for row in p.rows] for p in snapshot.panels if p.id == id)


def do(agent: Collaboration, name: str, **inputs: object) -> Outcome:
    """Perform an action that is offered now, and is not refused beforehand."""
    action = next(each for each in agent.actions(datetime.now(UTC)) if each.name == name)
    given = action.inputs(**inputs)
    assert not action.preview(given).refused
    return action.perform(given)
