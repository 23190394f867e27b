"""Several agents as processes, connected over one of the bindings."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from acp_core.protocols.wire.network import agent_directory
from tests.protocols.wire.support import OWNER, PATIENCE, ROOT, START, Process, until

ANY_PORT = ("--port", "0", "--http-port", "0", "--sync", "normal")
BINDINGS = ("acp", "tcp", "stdio", "relay", "http")


class Member:
    """An agent that runs, asked over its HTTP interface."""

    def __init__(self, name: str, url: str, pid: int) -> None:
        self.name, self.url, self.pid = name, url, pid
        self.http = httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False, auth=OWNER)

    def get(self, path: str, **query: Any) -> Any:
        """The JSON at a path."""
        answer = self.http.get(path, params=query or None)
        assert answer.is_success, answer.text
        return answer.json()

    def post(self, path: str, **body: Any) -> Any:
        """The answer to JSON that is posted."""
        answer = self.http.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def peer(self, name: str) -> dict[str, Any] | None:
        """A peer that is connected."""
        found = [p for p in self.get("/peers") if p["name"] == name and p["connected"]]
        return found[0] if found else None

    def arrived(self) -> list[dict[str, Any]]:
        """The messages that came, oldest first."""
        found: list[dict[str, Any]] = self.get("/messages", direction="in", limit=1000)["messages"]
        return found


def options(folder: Path, name: str, binding: str, relay: str) -> tuple[str, ...]:
    """Options of an agent that signs in both ways."""
    signing = ("--secret", "shared", "--identity", str(folder / f"{name}.json"))
    more = {"tcp": ("--tcp-port", "0"), "relay": ("--relay", relay)}
    return (*ANY_PORT, *signing, *more.get(binding, ()))


@contextmanager
def relay(*given: str) -> Iterator[str]:
    """A relay as a process; its address."""
    child = subprocess.Popen(
        [sys.executable, "-c", START, "relay", "--json", *(given or ("--port", "0"))],
        stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        assert child.stdout
        yield json.loads(child.stdout.readline())["url"]
    finally:
        child.kill()
        child.communicate(timeout=PATIENCE)


def command(name: str, *given: str) -> str:
    """A command line that runs an agent for whoever starts it."""
    return shlex.join([sys.executable, "-c", START, "agent", "--name", name, "--stdio", *given])


@contextmanager
def team(folder: Path, binding: str, edges: list[tuple[str, str]]) -> Iterator[dict[str, Member]]:
    """Agents of which the first of each pair reached the second; all are connected."""
    names = sorted({name for edge in edges for name in edge}, reverse=True)  # A joins last
    with ExitStack() as stack:
        at = stack.enter_context(relay()) if binding == "relay" else ""
        members: dict[str, Member] = {}
        links: dict[str, str] = {}
        commands: dict[str, str] = {}
        for name in names:
            others = [other for one, other in edges if one == name]
            given = list(options(folder, name, binding, at))
            for other in others:
                given += ["--run-peer", commands[other]] if binding == "stdio" else []
                given += ["--join", links[other]] if binding != "stdio" else []
            if binding == "stdio" and name != names[-1]:
                commands[name] = command(name, *given)
                continue
            process = stack.enter_context(Process(name, *given))
            members[name] = Member(name, process.url, process.pid)
            links[name] = process.links.get(binding, "")
        for name in commands:
            members[name] = found(name)
        for one, other in edges:
            until(lambda o=one, p=other: members[o].peer(p), f"{one} knows {other}")
            until(lambda o=one, p=other: members[p].peer(o), f"{other} knows {one}")
        try:
            yield members
        finally:
            for member in members.values():
                member.http.close()


def found(name: str) -> Member:
    """An agent that somebody else has started."""
    about = until(lambda: agent_directory.find_running(name), f"the start of {name}")
    OWNER.learn(about.http_url, about.owner_token)
    return Member(name, about.http_url, about.pid)
