"""An agent that waits for permission on one host is answered from another one, by who is proven."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.stores import asking
from acp_core.stores.address import parse
from acp_core.stores.engine import Asked
from acp_core.stores.hosts import open_engine
from tests.e2e.test_hostile_requests import EVIL, is_text, shows, strings
from tests.stores.databases import as_role
from tests.stores.hosts import ROOT, Host
from tests.stores.mirrors import ID, account_of, conductor, configured, gated_run, key, reader
from tests.support.waiting import until


@pytest.fixture
def alpha(store: str, tmp_path: Path) -> Iterator[Host]:
    """A host that conducts a run, and answers requests about it."""
    host = conductor(tmp_path, gated_run)
    host.done_here("share", store, "--id", ID, "--yes")
    yield host
    host.acp_here("unshare", "--yes")


class Agent:
    """A program of a host that waits for a permission to run a command."""

    def __init__(self, host: Host, command: str) -> None:
        words = ["-m", "tests.agents.live.publisher", str(host.folder), "pm", "claude", command]
        self._process = subprocess.Popen(
            [sys.executable, *words], cwd=ROOT, env=host.env | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self._said = self._process.stdout
        self.id = self._said.readline().strip()

    def end(self) -> str:
        """What it says once it is answered."""
        said = self._said.read().strip()
        assert self._process.wait(timeout=60) == 0
        return said

    def stop(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait(timeout=60)
        self._said.close()


@pytest.mark.slow
def test_an_agent_is_answered_from_another_host(alpha: Host, store: str, tmp_path: Path) -> None:
    own, public = key(tmp_path, "anna")
    beta = reader(tmp_path, store, sign=own)
    agent = Agent(alpha, "touch allowed")
    try:

        def shown() -> bool:
            return f"touch allowed (request {agent.id})" in " ".join(
                beta.done_here("hosts").split()
            )

        until(shown, "the request to be seen")
        allow = ("ask", str(beta.folder), "alpha", "allow", agent.id)
        ran = beta.acp(*allow)
        assert "does not accept permit requests" in ran.stderr, ran.stderr
        configured(alpha, accept=["permit"])
        ran = beta.acp(*allow)
        assert ran.returncode == 2 and "who asks is not proven" in ran.stderr, ran.stderr
        deciders = [f"anna {public}", account_of(store)]
        configured(alpha, accept=["permit"], deciders=deciders)
        _forge(store, beta, agent.id)
        assert "Allowed once" in beta.done(*allow)
        by = "anna" if store.startswith("git") else account_of(store)
        assert agent.end().startswith(f"allow by {by}")
        assert (alpha.folder / "allowed").exists()
    finally:
        agent.stop()


@pytest.mark.slow
def test_on_another_host_a_hostile_request_is_text_and_can_be_answered(
    alpha: Host, store: str, tmp_path: Path
) -> None:
    own, public = key(tmp_path, "anna")
    beta = reader(tmp_path, store, sign=own)
    configured(alpha, accept=["permit"], deciders=[f"anna {public}", account_of(store)])
    agent = Agent(alpha, f"echo '{EVIL}'")
    try:
        until(lambda: agent.id in beta.done_here("hosts"), "the request to be seen")
        for words in (("hosts",), ("hosts", "--json"), ("status",), ("card",)):
            printed = beta.acp(words[0], str(beta.folder), *words[1:]).stdout
            assert is_text(printed), words
        assert shows(beta.done_here("hosts"))
        told = json.loads(beta.done_here("hosts", "--json"))
        assert all(map(is_text, strings(told)))
        answered = beta.acp_here("ask", "alpha", "reject", agent.id, EVIL)
        assert answered.returncode == 0 and is_text(answered.stdout + answered.stderr)
        by = "anna" if store.startswith("git") else account_of(store)
        assert agent.end().startswith(f"reject by {by}")
    finally:
        agent.stop()


def _forge(store: str, beta: Host, id: str) -> None:
    """Ask as somebody who can write to the store: in another's name, and about something else."""
    told = json.loads(beta.done_here("hosts", "--json"))
    (waiting,) = told["hosts"][0]["participants"]["pm"]["permissions"]
    given = {"id": id, "digest": waiting["digest"], "message": ""}
    forged = asking.about("alpha", asking.ALLOW, "pm", given, "anna on beta")
    seen = [each for each in told["requests"] if each["verb"] == asking.ALLOW]
    stolen = forged._replace(signature=seen[-1]["signature"], proven=seen[-1]["proven"])
    if not store.startswith("git"):
        store = as_role(store, "mallory")  # a database says itself who asks
    with open_engine(parse(f"{store}#{ID}")) as engine:
        for each in (forged, stolen._replace(id=f"{int(forged.id, 16) + 1:024x}")):
            asking.send(engine, each)

            def answered(each: Asked = each) -> str:
                (now,) = [e for e in engine.requests("alpha") if e.id == each.id]
                return f"{now.state}: {now.sentence}" if now.state else ""

            assert "refused: who asks is not proven" in until(answered, "the forged request")
