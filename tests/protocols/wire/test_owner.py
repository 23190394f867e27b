"""Whose an agent is: on its own machine, too, only who shows the owner's token is taken for the owner."""

from __future__ import annotations

import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from acp_core.protocols.wire.acts.table import COMMANDS
from acp_core.protocols.wire.network.agent_directory import folder_of
from tests.protocols.wire.support import OWNER, ROOT, START, Process, acp, refused, served, until

OPTIONS = ("--port", "0", "--http-port", "0", "--sync", "normal")
ASKED = ("/status", "/link", "/messages", "/recv", "/peers", "/tasks", "/stream", "/offline-queue")
MESSAGE = {"text": "delete it all", "from": "boss"}


def test_another_account_of_the_machine_is_not_the_owner(tmp_path: Path) -> None:
    with (
        Process(
            "A", *OPTIONS, "--on-message", "touch answered", "--workdir", str(tmp_path)
        ) as agent,
        httpx.Client(base_url=agent.url, trust_env=False) as other,
    ):
        for path in ASKED:
            said = refused(other.get(path), 401, "ERR_UNAUTHORIZED")["error"]
            assert "`acp wire token A`" in said
        for path in ("/message:send", "/tasks", "/peers/connect", "/webhooks/register", "/channel"):
            refused(other.post(path, json=MESSAGE), 401, "ERR_UNAUTHORIZED")
        assert acp("wire", "send", "A", "hello", "--from", "owner")[0] == 0
        until(lambda: (tmp_path / "answered").exists(), "the answer to what the owner said")
        _, told = acp("wire", "tasks", agent.url)
        assert "boss" not in told
        assert stat.S_IMODE((folder_of("A") / "agent.json").stat().st_mode) == 0o600
        code, said = acp("wire", "tasks", agent.url, ACP_STATE=str(tmp_path))
        assert (code, "a bearer token" in said) == (1, True)


def test_the_card_is_public_and_opens_nothing(tmp_path: Path) -> None:
    with served(tmp_path, "A") as a, served(tmp_path, "B") as b:
        b.meet(a)

        def card(token: str = "") -> Any:
            headers = {"authorization": f"Bearer {token}"} if token else {}
            return a.http.get("/card", auth=None, headers=headers).json()

        told = card()
        assert (told["name"], told["link"], told["self"]["link"]) == ("A", None, None)
        assert told["auth"] == {"schemes": ["bearer"]}
        assert a.agent.token not in repr(told)
        assert (card(a.agent.token)["link"], card(a.agent.token)["peer"]) == (a.link, None)
        assert card(a.agent.owner_token)["peer"]["link"] == b.link
        described = a.http.get("/openapi.json", auth=None).json()
        assert described["security"] == [{"bearer": []}]
        assert described["paths"]["/card"]["get"]["security"] == []


def test_the_owner_needs_no_token_in_commands_and_can_have_it_printed(tmp_path: Path) -> None:
    with Process("My agent", *OPTIONS) as agent:
        token = acp("wire", "token", "My agent")[1].strip()
        assert token == agent.owner_token
        shown = {"authorization": f"Bearer {token}"}
        assert httpx.get(f"{agent.url}/link", headers=shown, trust_env=False).json()["link"]
        for place in ("My agent", agent.url, agent.url.replace("127.0.0.1", "localhost")):
            assert acp("wire", "peers", place)[0] == 0, place
        assert acp("status", agent.url)[0] == 0
        assert "running: My agent" in acp("wire", "token", "Nobody")[1]
        assert shlex.quote("My agent") in httpx.get(f"{agent.url}/link", trust_env=False).text


def test_what_the_own_command_calls_an_input_works_in_act_too() -> None:
    with Process("A", *OPTIONS) as agent:
        for option in ("--to", "--peer"):
            words = ("send", option, "this agent", "--text", f"by {option}", "--yes")
            code, said = acp("act", agent.url, *words)
            assert code == 0, said
        kept = httpx.get(f"{agent.url}/messages", auth=OWNER, trust_env=False).json()["messages"]
        assert [each["parts"][0]["content"] for each in kept] == ["by --to", "by --peer"]
        assert "--to" not in acp("act", agent.url, "send", "--help")[1]


def test_open_loopback_lets_everybody_in_and_says_so() -> None:
    agent = Process("A", *OPTIONS, "--open-loopback")
    with agent, httpx.Client(base_url=agent.url, trust_env=False) as other:
        assert other.get("/link").json()["link"] == agent.link
        assert other.get("/card").json()["auth"] == {"schemes": ["none"]}
        assert other.post("/message:send", json=MESSAGE).json()["ok"] is True
        assert "security" not in other.get("/openapi.json").json()
        _, said = agent.stop()
    assert "any account on this machine can act as the owner of A" in said


def test_open_loopback_is_for_an_agent_that_only_this_machine_reaches(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, said = acp("agent", "--name", "A", "--open-loopback", "--host", "0.0.0.0")
    assert (code, "--open-loopback: other machines can reach" in said) == (2, True)
    assert COMMANDS.main(("token", "A")) == 2
    assert "no running agent" in capsys.readouterr().err


def test_where_it_listens_everywhere_the_link_for_others_is_said() -> None:
    words = [sys.executable, "-c", START, "agent", "--name", "A", *OPTIONS, "--host", "0.0.0.0"]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout
        lines = [started.stdout.readline() for _ in range(4)]
        started.send_signal(signal.SIGTERM)
    assert lines[2] == "token for the HTTP interface: acp wire token A\n"
    assert lines[3].startswith(
        "from other machines (insert this machine's name or address): acp://"
    )
    assert "127.0.0.1" not in lines[3]
