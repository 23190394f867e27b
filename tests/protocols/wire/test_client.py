"""The client library and the commands that stand on it, against agents that really run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.protocols.wire.acts.table import COMMANDS
from acp_core.protocols.wire.network.client import AgentError, Client, Event
from tests.protocols.wire.support import Process, Served, served, until


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Served, Served]]:
    with served(tmp_path, "A") as a, served(tmp_path, "B") as b:
        a.meet(b)
        yield a, b


def as_owner(agent: Served) -> Client:
    """Its owner, who is not on the list of those that run: it runs in the test itself."""
    return Client(agent.url, agent.agent.owner_token)


async def test_a_program_talks_to_an_agent(two: tuple[Served, Served]) -> None:
    a, b = two
    async with as_owner(a) as here, as_owner(b) as there:
        assert (await here.card())["name"] == "A"
        receipt = await here.send("hello", message_id="m", context_id="c")
        assert (receipt.message_id, receipt.queued) == ("m", False)
        assert (await here.send("hello", message_id="m")).server_seq == receipt.server_seq
        peer = (await here.peers())[0]
        sent = await here.send([{"type": "data", "content": 1}], to=peer["id"], create_task=True)
        assert sent.task
        id = sent.task["id"]
        async for event in there.stream(since=0):
            if event.kind == "acp.status":
                break
        assert event.data["task_id"] == id
        await there.update(id, "input_required")
        async for event in here.stream(since=0):
            if event.data.get("state") == "input_required":
                break
        assert (await here.resume(id, "more"))["status"] == "working"
        other = await here.send("stop this", create_task=True)
        assert other.task
        assert (await here.cancel(other.task["id"]))["status"] == "canceled"
        assert {task["id"] for task in await here.tasks()} == {id, other.task["id"]}
        assert (await here.messages(context_id="c"))["total"] == 1
        assert (await there.skills()) == []


async def test_a_question_waits_for_its_answer(two: tuple[Served, Served]) -> None:
    a, b = two
    async with as_owner(a) as here, as_owner(b) as there:

        async def answer() -> None:
            async for event in there.stream(since=0):
                if event.kind == "acp.message":
                    await there.reply(event.data["correlation_id"], "42")
                    return

        answering = asyncio.create_task(answer())
        receipt = await here.send("how much?", wait=20)
        await answering
        assert receipt.reply
        assert receipt.reply["parts"] == [{"type": "text", "content": "42"}]
        with pytest.raises(AgentError) as late:
            await here.send("and now?", wait=0)
        assert (late.value.code, late.value.status) == ("ERR_TIMEOUT", 408)


async def test_what_goes_wrong_is_told_in_one_line(two: tuple[Served, Served]) -> None:
    a, _ = two
    async with Client(a.url) as client:
        with pytest.raises(AgentError, match="no such") as error:
            await client.task("none/../x")
        assert (error.value.code, error.value.status) == ("ERR_NOT_FOUND", 404)
    async with Client(a.url, token="wrong") as client:
        with pytest.raises(AgentError, match="not a token"):
            await client.card()
        with pytest.raises(AgentError, match="not a token"):
            await anext(aiter(client.stream()))
    async with Client("http://127.0.0.1:9") as client:
        with pytest.raises(AgentError, match="cannot be reached") as gone:
            await client.card()
        assert gone.value.status == 0
    for location in ("acp://x", "ftp://x/", "http://", "Nobody"):
        with pytest.raises(AgentError):
            Client(location)


async def test_a_stream_is_taken_up_again(tmp_path: Path) -> None:
    """The agent goes away and comes back at the same place: nothing is missed, nothing twice."""
    with Process("A", "--port", "0", "--http-port", "0", "--sync", "normal") as agent:
        web, seen = agent.url.rsplit(":", 1)[1], []
        agent.options = ("--port", "0", "--http-port", web, "--sync", "normal")

        async def follow() -> list[Event]:
            async with Client(agent.url) as client:
                async for event in client.stream(since=0):
                    if event.kind == "acp.message":
                        seen.append(event)
                    if len(seen) == 6:
                        return seen
            return seen

        following = asyncio.create_task(follow())
        for n in range(6):
            if n == 3:
                await asyncio.to_thread(until, lambda: len(seen) == 3)
                agent.kill()
                await asyncio.to_thread(agent.start)
            async with Client(agent.url) as client:
                await client.send(f"{n}", sender="Other")
        found = await following
        assert [event.data["parts"][0]["content"] for event in found] == list("012345")


def test_the_commands_do_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--port", "0", "--http-port", "0", "--sync", "normal")

    def wire(*arguments: str) -> str:
        assert COMMANDS.main(arguments) == 0
        return capsys.readouterr().out

    def refused(*arguments: str, code: int = 2) -> str:
        assert COMMANDS.main(arguments) == code
        return capsys.readouterr().err

    with Process("Here", *options, "--skills", "cook") as here, Process("There", *options) as there:
        assert [each["name"] for each in json.loads(wire("agents", "--json"))["agents"]] == [
            "Here",
            "There",
        ]
        assert "the agent has no peer; use --from NAME" in refused("send", "Here", "x", code=1)
        assert "connecting" in wire("connect", "Here", there.link)
        until(lambda: "connected" in wire("peers", "Here"), "the connection")
        assert "sent" in wire("send", "Here", "hello \x1b[31m red", "--new-task", "--context", "c")
        assert "sent" in wire("send", "Here", "by its name", "--to", "There")
        assert "no such peer" in refused("send", "Here", "x", "--to", "Nobody", code=1)
        assert "skill: cook" in wire("card", "Here")
        assert "cook" in wire("skills", here.url, "cook")
        (task,) = json.loads(wire("tasks", "Here", "--json"))["tasks"]
        until(lambda: task["id"] in wire("tasks", "There"), "the task's arrival")
        shown = wire("tasks", "There")
        assert "\x1b" not in shown
        assert "submitted" in shown
        assert "canceled" in wire("cancel", "Here", task["id"])
        assert wire("tasks", "Here", "--status", "submitted") == ""
        sent = json.loads(wire("send", "There", "--data", "[1]", "--file", "http://h/x", "--json"))
        assert (sent["schema"], sent["command"], sent["task"]) == ("acp.wire/1", "send", None)
        assert (
            wire("send", "Here", "x", "--from", "me", "--dry-run")
            == "would do: Send a text to Here.\n"
        )
        assert "not JSON" in refused("send", "Here", "--data", "{")
        assert "nothing to send" in refused("send", "Here")
        assert "no such task" in refused("answer", "Here", "none", "x", code=1)
        assert "would do: Forget There" in wire("forget", "Here", "There", "--dry-run")
        assert "forgotten" in wire("forget", "Here", "There")
        until(lambda: "There" not in wire("peers", "Here"), "that it is forgotten")
        assert "no such peer" in refused("forget", "Here", "There", code=1)
    assert "no running agent" in refused("card", "Here")
