"""Agents of other makes: their card, messages, tasks with text and artifacts are seen, live."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.model import SourceState, Verdict
from acp_core.protocols.wire.acts.table import COMMANDS
from acp_core.protocols.wire.network.client import Client
from acp_core.protocols.wire.read import elsewhere
from acp_core.protocols.wire.schema import observed
from tests.protocols.wire.others import First, Newest, running
from tests.protocols.wire.support import do, panel, until
from tests.protocols.wire.test_remote import look, opened


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask sooner than in earnest."""
    monkeypatch.setattr(elsewhere, "ASKING", 0.2)
    monkeypatch.setattr(elsewhere, "ALONE", 0.5)


def card(snapshot: Any) -> dict[str, str]:
    return dict(panel(snapshot, "card"))


@pytest.mark.slow
@pytest.mark.parametrize("make", [First, Newest])
def test_all_that_happens_there_is_seen_as_it_happens(make: type[First]) -> None:
    there = make()
    there.say("m0", "ended unobserved")
    with running(there) as url, opened(url) as here:
        first = look(here)
        own = there.card["self"]
        told = card(first)
        assert (first.name, first.phase) == (own["name"], "running")
        assert (first.source.state, first.verdict) == (SourceState.LIVE, Verdict.VALID)
        assert told["description"] == "does sums"
        assert told["skills"] == ("add, carry" if make is First else "add")
        assert told["protocol"] == "ACP v0.8-dev"
        assert told["capabilities"] == "streaming, multi_session"
        assert first.headline.startswith("1 of 1 peer connected")
        assert [each.summary for each in first.events] == ["ended unobserved"]
        assert first.events[0].actor == "Junior"

        there.say("m1", "while somebody looks")
        there.begin("task_1", "two and two")
        seen = until(lambda: look(here) if panel(look(here), "tasks") else None, "the task")
        assert panel(seen, "tasks")[0][1:3] == ("working", "two and two")
        until(lambda: any(e.summary == "while somebody looks" for e in look(here).events), "it")
        there.finish("task_1", "four")
        until(lambda: panel(look(here), "tasks")[0][1] == "completed", "its end")
        until(
            lambda: (
                [(row[0], row[-1]) for row in panel(look(here), "artifacts")]
                == [("task_1", "four")]
            ),
            "what it made",
        )
        last = look(here)
        assert last.verdict is Verdict.VALID
        assert "None" not in repr([each.summary for each in last.events])
        assert there.polled == 0  # what /recv gives, it gives to nobody else


def test_nothing_comes_twice_after_the_connection_broke_or_somebody_looks_again() -> None:
    there = Newest()
    there.say("m0", "one")
    there.begin("task_1", "two and two")
    with running(there) as url:
        with opened(url) as here:
            until(lambda: len(look(here).events) == 2, "both")
        with opened(url) as again:
            until(lambda: look(again).source.state is SourceState.LIVE, "that it is reached")
            there.say("m1", "two")
            until(lambda: len(look(again).events) >= 3, "the third")
            assert [each.kind.partition(" to ")[0] for each in look(again).events] == [
                "message",
                "task working",
                "message",
            ]


@pytest.mark.slow
def test_an_agent_that_answers_one_request_at_a_time_stays_free_for_others() -> None:
    there = First()
    with running(there) as url, opened(url) as here:
        seen = until(
            lambda: look(here) if "one request at a time" in look(here).headline else None, "that"
        )
        assert "asked every 0.2 s" in seen.headline
        assert seen.source.state is SourceState.LIVE
        for _ in range(3):
            assert httpx.get(f"{url}/status", trust_env=False, timeout=5).is_success
        there.say("m1", "while it is asked again and again")
        until(lambda: len(look(here).events) == 1, "it")
        assert there.asked.count("/stream") == 1


@pytest.mark.parametrize("make", [First, Newest])
def test_the_commands_read_it_too(make: type[First], capsys: pytest.CaptureFixture[str]) -> None:
    there = make()
    there.begin("task_1", "two and two")
    with running(there) as url:

        def wire(*arguments: str) -> str:
            assert COMMANDS.main(arguments) == 0
            return capsys.readouterr().out

        shown = wire("card", url)
        assert there.card["self"]["name"] in shown
        assert "does sums" in shown
        assert "skill: add" in shown
        assert "None" not in shown
        assert "two and two" in wire("tasks", url)
        assert "peer_001  Junior  connected" in wire("peers", url)
        assert json.loads(wire("card", url, "--json"))["description"] == "does sums"
        assert "sent" in wire("send", url, "hello")
        assert wire("cancel", url, "task_1").startswith("task_1")
        assert there.sent[-1][0].startswith("/tasks/task_1")


@pytest.mark.parametrize("make", [First, Newest])
def test_its_stream_is_printed_by_the_names_of_the_specification(make: type[First]) -> None:
    there = make()

    async def follow(url: str) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        async with Client(url) as client:
            stream = client.stream(again=False)
            reading = asyncio.create_task(anext(stream))
            await asyncio.to_thread(until, lambda: "/stream" in there.asked, "the stream")
            await asyncio.sleep(0.2)
            await asyncio.to_thread(there.say, "m1", "hello")
            event = await reading
            found.append((event.kind, event.data["message_id"]))
            await asyncio.to_thread(there.begin, "t", "x")
            event = await anext(stream)
            found.append((event.kind, (event.data["task_id"], event.data["state"])))
            await stream.aclose()  # type: ignore[attr-defined]
        return found

    with running(there) as url:
        assert asyncio.run(follow(url)) == [("acp.message", "m1"), ("acp.status", ("t", "working"))]


@pytest.mark.slow
def test_what_can_be_done_is_done_there() -> None:
    there = First()
    there.begin("task_1", "two and two")
    with ExitStack() as stack:
        here = stack.enter_context(opened(stack.enter_context(running(there))))
        until(lambda: panel(look(here), "tasks"), "the task")
        assert do(here, "send", peer="peer_001", text="add this").state.value == "done"
        assert ("/peer/peer_001/send" in dict(there.sent)) is True
        assert do(here, "cancel", task="task_1").state.value == "done"
        assert there.sent[-1][0] == "/tasks/task_1/cancel"


@pytest.mark.parametrize(
    ("told", "parts"),
    [
        ({"payload": {"parts": [{"type": "text", "content": "x"}]}}, ["x"]),
        ({"payload": {"text": "x"}}, ["x"]),
        ({"payload": {"input": {"payload": "x"}}}, ["x"]),
        ({"payload": "x"}, ["x"]),
        ({"payload": {"n": 1}}, [{"n": 1}]),
        ({"input": {"parts": [{"kind": "text", "text": "x"}]}}, ["x"]),
        ({"parts": ["x", {"type": "data", "data": [1]}]}, ["x", [1]]),
    ],
)
def test_a_task_tells_what_it_is_about(told: dict[str, Any], parts: list[Any]) -> None:
    read = observed.task({"id": "t", "state": "working", **told})
    assert read["status"] == "working"
    assert [each["content"] for each in read["input"]["parts"]] == parts


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["parts", "text", "type", "kind", "payload", "artifacts", "task", "id",
                             "ts", "from", "content", "self", "skills", "raw", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)  # fmt: skip
_OBJECT = st.dictionaries(
    st.text(max_size=3) | st.sampled_from(["task", "payload", "parts", "type"]), _JSON
)


@pytest.mark.slow
@given(st.text(max_size=12) | st.sampled_from(["message", "task", "status"]), _OBJECT)
def test_whatever_a_stranger_says_is_read_without_a_failure(name: str, told: Any) -> None:
    kind, body = observed.event(name, told)
    assert isinstance(kind, str)
    assert isinstance(body, dict)
    for read in (observed.card, observed.task, observed.peer, observed.message):
        assert isinstance(read(told), dict)


def test_what_has_the_form_of_the_specification_stays_as_it_is() -> None:
    parts = [{"type": "text", "content": "x", "more": 1}, {"type": "data", "content": None}]
    task = {"id": "t", "status": "working", "created_at": "2026-03-21T07:00:00Z", "message_id": "m",
            "updated_at": "2026-03-21T07:00:05Z", "input": {"parts": parts}, "direction": "own"}  # fmt: skip
    assert observed.task(task) == task
    event = {"type": "acp.message", "message_id": "m", "from": "A", "odd": {"text": 1}}
    assert observed.event("acp.message", event) == ("acp.message", event)
