"""`acp mcp`: agents' programs start it and use its tools, by the library's own client."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent

from acp_core.agents.live.answers import MARK
from acp_core.agents.loop_directory import place
from acp_core.files import claims
from tests.cli.support import Acp

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def folder(acp: Acp) -> Path:
    words = ["--participant", "server", "--participant", "reviewer"]
    words += ["--objective", "Decide how checkout retries", "--completion", "Policy chosen"]
    assert acp("init", "--folder", "checkout", *words).returncode == 0
    return acp.home / "checkout"


@asynccontextmanager
async def tools(acp: Acp, participant: str, *more: str) -> AsyncIterator[Client]:
    """A program's client, with the tools of a participant."""
    words = acp.command("mcp", "--folder", "checkout", "--participant", participant, *more)
    started = StdioServerParameters(
        command=words[0], args=words[1:], env=acp.env, cwd=str(acp.home)
    )
    async with Client(stdio_client(started)) as client:
        yield client


async def use(client: Client, name: str, **given: Any) -> str:
    """What a tool answers; a refusal begins with "refused: "."""
    result = await client.call_tool(name, given)
    assert isinstance(result, CallToolResult)
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert result.structured_content is None
    return f"refused: {content.text}" if result.is_error else content.text


@pytest.mark.slow
async def test_two_programs_take_their_turns_by_tools(acp: Acp, folder: Path) -> None:
    async with tools(acp, "server") as server, tools(acp, "reviewer") as reviewer:
        offered = {each.name: each for each in (await server.list_tools()).tools}
        assert set(offered) == {"next", "read", "validate", "ask_human", "append", "wait"}
        hints = {
            name: each.annotations.read_only_hint
            for name, each in offered.items()
            if each.annotations
        }
        assert hints == dict.fromkeys(["next", "read", "validate", "wait"], True) | dict.fromkeys(
            ["ask_human", "append"], False
        )
        assert "your turn: yes: submit the proposal" in await use(server, "next")
        assert "your turn: no; waiting for server" in await use(reviewer, "next")
        (folder / "proposal.md").write_text("# Proposal\n\n## Current Proposal\n\nRetry twice.\n")
        early = await use(reviewer, "append", event="review_submitted", summary="x", reply_to=1)
        assert early.startswith("refused: ")
        said = await use(server, "append", event="proposal_submitted", summary="First", reply_to=1)
        assert said.startswith("Appended seq 2: proposal_submitted from server.")
        assert "your turn: yes" in await use(reviewer, "wait")
        assert "Retry twice." in await use(reviewer, "read", document="proposal.md")
        review = "## Position\n\nAgreed: twice is enough.\n"
        said = await use(
            reviewer, "append", event="review_submitted", summary="Agreed", reply_to=2,
            review=review, key="r1",
        )  # fmt: skip
        assert said.startswith("Appended seq 3: review_submitted from reviewer.")
        assert "twice is enough" in (folder / "review.md").read_text()
        assert "verdict: " in await use(reviewer, "validate")
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert [(each["from"], each["event"]) for each in events[1:]] == [
        ("server", "proposal_submitted"),
        ("reviewer", "review_submitted"),
    ]


async def test_a_model_cannot_act_as_another_or_elsewhere(acp: Acp, folder: Path) -> None:
    before = (folder / "events.jsonl").read_bytes()
    async with tools(acp, "reviewer") as reviewer:
        given = {"event": "proposal_submitted", "summary": "x", "reply_to": 1}
        for more in ({"participant": "server"}, {"folder": "/tmp"}, {"unlocked": True}):
            said = await use(reviewer, "append", **given, **more)
            assert said.startswith(f"refused: {next(iter(more))}: is not an input of append"), said
        assert (await use(reviewer, "answer")).startswith("refused: there is no tool answer")
    assert (folder / "events.jsonl").read_bytes() == before


async def test_a_person_answers_a_question(acp: Acp, folder: Path) -> None:
    def person() -> None:
        wait_until(lambda: "--request " in acp("card", "checkout").stdout)
        request = acp("card", "checkout").stdout.partition("--request ")[2].split()[0]
        done = acp("answer", "checkout", request, "reject", "--message", "Thirty days")
        assert done.returncode == 0, done.stderr

    async with tools(acp, "server") as server:
        somebody = threading.Thread(target=person)
        somebody.start()
        said = await use(
            server, "ask_human", question="How long do we keep logs?", options=["A week"]
        )
        somebody.join()
        assert said.endswith("answers: Thirty days"), said


@pytest.mark.slow
async def test_a_question_is_taken_back_when_the_program_ends(acp: Acp, folder: Path) -> None:
    process = serve(acp, "server")
    send(process, INITIALIZE, INITIALIZED, called("ask_human", {"question": "Which account?"}))
    wait_until(lambda: "Which account?" in acp("card", "checkout").stdout)
    assert "server's agent asks you: Which account?" in acp("why", "checkout").stdout
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(20) == 0
    assert "Which account?" not in acp("card", "checkout").stdout


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_also_while_a_tool_waits(
    acp: Acp, folder: Path, end: signal.Signals
) -> None:
    process = serve(acp, "reviewer")
    send(process, INITIALIZE, INITIALIZED, called("wait", {}))
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["id"] == 1
    process.send_signal(end)
    assert process.wait(20) == 0


@pytest.mark.slow
async def test_its_output_is_messages_only_and_bad_lines_do_not_end_it(
    acp: Acp, folder: Path
) -> None:
    process = serve(acp, "server")
    assert process.stdin is not None
    process.stdin.write("not json\n123\n[]\n")
    send(process, INITIALIZE, INITIALIZED, called("next", {}))
    answered: dict[int, dict[str, Any]] = {}
    assert process.stdout is not None
    while 2 not in answered:
        message = json.loads(process.stdout.readline())
        assert message["jsonrpc"] == "2.0"
        if isinstance(message.get("id"), int):
            answered[message["id"]] = message
    assert answered[1]["result"]["protocolVersion"] == "2025-06-18"
    assert "your turn: yes" in answered[2]["result"]["content"][0]["text"]
    process.stdin.close()
    assert process.wait(20) == 0


def test_it_does_not_start_where_it_makes_no_sense(acp: Acp, folder: Path) -> None:
    def refused(*words: str) -> str:
        ran = acp("mcp", *words)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert len(ran.stderr.splitlines()) == 1
        return ran.stderr

    assert "the participants are server, reviewer" in refused("checkout", "nobody")
    assert "no collaboration" in refused("elsewhere", "server")


@pytest.mark.slow
def test_another_participant_is_refused_from_inside_a_session(acp: Acp, folder: Path) -> None:
    inside = {MARK: place(str(folder), "reviewer").folder.name}
    words = ["mcp", "checkout", "server"]
    with claims.take(folder, claims.of_participant("server")):
        ran = acp(*words, env=inside)
        assert ran.returncode == 2
        assert "another program takes the turns of server" in ran.stderr
    assert acp(*words, env=inside).returncode == 0  # its input is empty: it ends at once
    assert acp("mcp", "checkout", "reviewer", env=inside).returncode == 0


def test_an_event_of_another_participant_is_refused_from_inside_a_session(
    acp: Acp, folder: Path
) -> None:
    own = Path(acp.env["ACP_STATE"]) / "loops" / "reviewers"
    own.mkdir(parents=True)
    told = {"folder": str(folder.resolve()), "participant": "reviewer"}
    (own / "loop.json").write_text(json.dumps(told))
    inside = {MARK: str(own)}

    def append(who: str, env: dict[str, str]) -> tuple[int, str]:
        event = ("--event", "proposal_submitted", "--summary", "Mine", "--reply-to", "1")
        ran = acp("append", "--folder", "checkout", "--participant", who, *event, env=env)
        return ran.returncode, ran.stderr

    log = folder / "events.jsonl"
    before = log.read_bytes()
    with claims.take(folder, claims.of_participant("server")):
        code, said = append("server", inside)
        assert (code, log.read_bytes()) == (2, before)
        assert "another program takes the turns of server" in said
    with claims.take(folder, claims.of_participant("reviewer")):
        assert "takes the turns" not in append("reviewer", inside)[1]  # it is itself
    assert append("server", inside)[0] == 0  # nobody plays server


async def test_somebody_else_may_wait(acp: Acp, folder: Path) -> None:
    async with tools(acp, "server", "--no-wait") as server:
        assert "wait" not in {each.name for each in (await server.list_tools()).tools}
        assert (await use(server, "wait")).startswith("refused: there is no tool wait")


@pytest.mark.slow
async def test_programs_that_write_at_once_lose_nothing(acp: Acp, folder: Path) -> None:
    """Four programs submit a proposal: one event is written, three are refused."""
    running = [serve(acp, "server") for _ in range(4)]
    for number, process in enumerate(running):
        given = {"event": "proposal_submitted", "summary": f"Draft {number}", "reply_to": 1}
        send(process, INITIALIZE, INITIALIZED, called("append", given))
    results = []
    for process in running:
        assert process.stdin is not None and process.stdout is not None
        while (message := json.loads(process.stdout.readline())).get("id") != 2:
            pass
        results.append(message["result"].get("isError", False))
        process.stdin.close()
        process.wait(20)
    assert sorted(results) == [False, True, True, True]
    assert len((folder / "events.jsonl").read_text().splitlines()) == 2


def serve(acp: Acp, participant: str) -> subprocess.Popen[str]:
    """The server as a process whose messages a test reads and writes."""
    return subprocess.Popen(
        acp.command("mcp", "checkout", participant), cwd=acp.home, env=acp.env,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip


def send(process: subprocess.Popen[str], *messages: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write("".join(f"{json.dumps(each)}\n" for each in messages))
    process.stdin.flush()


def called(tool: str, given: dict[str, Any]) -> dict[str, Any]:
    params = {"name": tool, "arguments": given}
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_only_the_server_loads_the_library() -> None:
    code = "import sys, acp_core.cli.specs, acp_core.cli.tool_server, acp_tui.app\nprint('mcp' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "False\n"
