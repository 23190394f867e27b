"""Why an agent does not go on: each cause in a situation that is really so, and one that is not."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect

from acp_core.model import Matter, OutcomeState
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from acp_core.protocols.wire import collaboration, matters
from acp_core.protocols.wire.collaboration import open_agent
from acp_core.protocols.wire.network.agent_directory import folder_of
from acp_core.protocols.wire.network.links import parse
from tests.protocols.wire.support import OWNER, PATIENCE, Process, until

OPTIONS = ("--port", "0", "--http-port", "0", "--sync", "normal")
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


@pytest.fixture
def a() -> Iterator[Process]:
    with Process("A", *OPTIONS) as agent:
        yield agent


@pytest.fixture(params=["folder", "address"])
def seen(a: Process, request: pytest.FixtureRequest) -> Iterator[Collaboration]:
    """A as its owner sees it: by its folder, and by its address."""
    by_folder = request.param == "folder"
    found = open_agent(str(folder_of("A"))) if by_folder else collaboration.RemoteAgent(a.url)
    try:
        yield found
    finally:
        found.close()


def why(agent: Collaboration, after: float = 0.0) -> dict[str, Matter]:
    """The causes so many seconds from now."""
    agent.refresh(datetime.now(UTC))
    now = datetime.now(UTC) + timedelta(seconds=after)
    snapshot = agent.refresh(now)
    found = {cause.code: cause for cause in agent.causes(DiagnosisContext(snapshot, Clock(now)))}
    actions = {action.name: action for action in agent.actions(now)}
    for cause in found.values():
        assert cause.sentence
        assert cause.evidence
        assert all(cause.evidence)
        for name in filter(None, (cause.remedy, *cause.others)):
            assert actions[name].label  # each remedy can be done now, and has a name for people
        if cause.remedy:
            actions[cause.remedy].inputs(**dict(cause.given))  # nothing is left to be filled in
    return found


def mend(agent: Collaboration, cause: Matter) -> None:
    """Do what the cause asks for."""
    now = datetime.now(UTC)
    (action,) = (each for each in agent.actions(now) if each.name == cause.remedy)
    outcome = action.perform(action.inputs(**dict(cause.given)))
    assert outcome.state is OutcomeState.DONE, outcome.sentence


def post(agent: Process, path: str, **body: Any) -> Any:
    response = httpx.post(f"{agent.url}{path}", json=body, trust_env=False, auth=OWNER)
    assert response.is_success, response.text
    return response.json()


def peers(agent: Process) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.get(
        f"{agent.url}/peers", trust_env=False, auth=OWNER
    ).json()
    return found


def met(agent: Process, other: Process) -> str:
    """Connect them; the other's id."""
    id = str(post(agent, "/peers/connect", link=other.link)["peer_id"])
    until(lambda: peers(agent) and peers(agent)[0]["connected"], "the connection")
    return id


def gone(agent: Process, other: Process) -> None:
    other.kill()
    until(lambda: not peers(agent)[0]["connected"], "the end of the connection")


class Slow:
    """A peer that takes what it gets, and acknowledges it when it is told to."""

    def __init__(self, socket: ClientConnection, loop: asyncio.AbstractEventLoop) -> None:
        self._socket, self._loop = socket, loop

    def acknowledge(self, *ids: str) -> None:
        frame = json.dumps({"type": "acp.ack", "message_id": ids[-1], "message_ids": ids})
        asyncio.run_coroutine_threadsafe(self._socket.send(frame), self._loop).result(PATIENCE)


@contextmanager
def slow(agent: Process, acks: bool = True) -> Iterator[Slow]:
    """Such a peer, connected; ``acks``: its card says that it acknowledges."""
    loop, ready, over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    made: list[Slow] = []

    async def go() -> None:
        async with connect(parse(agent.link).websocket, proxy=None) as socket:
            card = {"name": "Slow", "instance_id": "slow", "capabilities": {"acks": acks}}
            await socket.send(json.dumps({"type": "acp.agent_card", "card": card}))
            made.append(Slow(socket, loop))
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(go()))
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        until(lambda: [p for p in peers(agent) if p["connected"]], "the connection")
        yield made[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(PATIENCE)
        loop.close()


def shown(agent: Collaboration, what: Callable[[tuple[str, ...]], bool]) -> bool:
    """Whether the first peer is shown so."""
    snapshot = agent.refresh(datetime.now(UTC) + timedelta(seconds=10))
    (panel,) = (each for each in snapshot.panels if each.id == "peers")
    return bool(panel.rows) and what(panel.rows[0].cells)


@pytest.mark.slow
def test_a_peer_that_is_connected_and_acknowledges_nothing(a: Process, seen: Collaboration) -> None:
    with slow(a) as peer:
        for n in range(3):
            post(a, "/message:send", text=f"{n}", message_id=f"m{n}")
        until(lambda: shown(seen, lambda cells: cells[6].startswith("3")), "the queue")
        assert why(seen) == {}
        assert why(seen, matters.UNREAD - 10) == {}
        (cause,) = why(seen, 2 * MINUTE).values()
        assert cause.code == "wire-queue"
        assert cause.sentence == "Slow is connected but acknowledges nothing: 3 messages wait"
        assert cause.wanted
        assert not cause.certain
        assert (cause.remedy, cause.given) == ("forget", (("peer", "peer_001"),))
        peer.acknowledge("m0", "m1")
        until(lambda: shown(seen, lambda cells: cells[6].startswith("1")), "the queue")
        first = cause.since
        (cause,) = why(seen, 2 * MINUTE).values()
        assert cause.sentence.endswith("1 message waits")
        assert first and cause.since and cause.since >= first
        peer.acknowledge("m2")
        until(lambda: shown(seen, lambda cells: cells[6] == "-"), "the acknowledgement")
        assert why(seen, 2 * MINUTE) == {}


def test_a_peer_that_does_not_acknowledge_by_its_make_has_no_queue(
    a: Process, seen: Collaboration
) -> None:
    with slow(a, acks=False):
        post(a, "/message:send", text="x")
        until(lambda: peers(a)[0]["messages_sent"] == 1, "its way")
        until(lambda: shown(seen, lambda cells: cells[4] == "1"), "the count")
        assert why(seen, HOUR) == {}


def test_a_peer_that_is_gone_with_nothing_waiting_is_told_and_wants_nobody(
    a: Process, seen: Collaboration
) -> None:
    with Process("B", *OPTIONS) as b:
        met(a, b)
        until(lambda: shown(seen, lambda cells: cells[2] == "connected"), "it")
        assert why(seen, HOUR) == {}
        gone(a, b)
        until(lambda: shown(seen, lambda cells: cells[2] == "away"), "its end")
        assert why(seen, 4 * MINUTE) == {}
        (cause,) = why(seen, 6 * MINUTE).values()
        assert (cause.code, cause.wanted) == ("wire-peer-gone", False)
        assert cause.sentence == "B is away"
        assert "the connection ended" in cause.evidence[0]
        assert why(seen, 2 * DAY) == {}  # it has simply left


def test_a_peer_whose_name_is_blank_is_named_by_what_can_be_seen(
    a: Process, seen: Collaboration
) -> None:
    with Process("\u2800\u2800", *OPTIONS) as b:  # blanks that count as printable
        met(a, b)
        until(lambda: shown(seen, lambda cells: cells[2] == "connected"), "it")
        gone(a, b)
        until(lambda: shown(seen, lambda cells: cells[1:3] == ("␣␣", "away")), "its end")
        (cause,) = why(seen, 6 * MINUTE).values()
        assert cause.sentence == "␣␣ is away"
        assert "␣␣" in {each.id for each in seen.refresh(datetime.now(UTC)).participants}


def test_a_peer_that_is_gone_in_the_middle_of_its_work(a: Process, seen: Collaboration) -> None:
    with Process("B", *OPTIONS) as b:
        met(a, b)
        task = post(a, "/tasks", text="Boil it", delegate=True)["id"]
        until(lambda: peers(a)[0]["queued"] == 0, "its arrival")
        gone(a, b)
        until(lambda: shown(seen, lambda cells: cells[2] == "away"), "its end")
        assert why(seen, 4 * MINUTE) == {}
        until(lambda: why(seen, HOUR)["wire-peer-gone"].wanted, "the task, which comes by itself")
        found = why(seen, HOUR)
        assert found.keys() == {"wire-peer-gone"}  # once, not as a task without progress as well
        cause = found["wire-peer-gone"]
        assert (cause.wanted, cause.sentence) == (True, "B is away with 1 open task")
        assert f"open: {task}, submitted: Boil it" in cause.evidence
        assert (cause.remedy, cause.given) == ("cancel", (("task", task),))
        mend(seen, cause)
        until(lambda: "wire-peer-away" in why(seen, HOUR), "the word of it, which waits for B")


def test_a_peer_that_is_gone_with_messages_waiting(a: Process, seen: Collaboration) -> None:
    with Process("B", *OPTIONS) as b:
        id = met(a, b)
        b.options = ("--port", b.link.split(":")[2].split("/")[0], *OPTIONS[2:])
        gone(a, b)
        post(a, f"/peer/{id}/send", text="hello")
        until(lambda: shown(seen, lambda cells: cells[6].startswith("1")), "the queue")
        assert why(seen, 4 * MINUTE) == {}
        (cause,) = why(seen, 6 * MINUTE).values()
        assert (cause.code, cause.sentence) == (
            "wire-peer-away",
            "1 message waits for B, which is away",
        )
        assert (cause.remedy, cause.given) == ("forget", (("peer", id),))
        assert "restart that agent" in cause.instruction
        b.start()
        until(lambda: shown(seen, lambda cells: cells[2] == "connected"), "its return")
        until(lambda: shown(seen, lambda cells: cells[6] == "-"), "the message's arrival")
        assert why(seen, HOUR) == {}


def test_a_task_without_progress(a: Process, seen: Collaboration) -> None:
    with Process("B", *OPTIONS) as b:
        met(a, b)
        task = post(a, "/tasks", text="Boil it", delegate=True)["id"]
        until(
            lambda: httpx.get(f"{b.url}/tasks/{task}", trust_env=False, auth=OWNER).is_success,
            "arrival",
        )
        post(b, f"/tasks/{task}:update", status="working")

        def state() -> str:
            now = datetime.now(UTC) + timedelta(seconds=10)
            (panel,) = (each for each in seen.refresh(now).panels if each.id == "tasks")
            return panel.rows[0].cells[1] if panel.rows else ""

        until(lambda: state() == "working", "the news")
        assert why(seen, matters.STILL - MINUTE) == {}
        (cause,) = why(seen, HOUR).values()
        assert (cause.code, cause.about.participant, cause.certain) == (
            "wire-task-still",
            "B",
            False,
        )
        assert cause.sentence == f"B has not reported on {task} (working)"
        assert cause.instruction == "ask B, or cancel it"
        mend(seen, cause)
        until(lambda: state() == "canceled", "its end")
        until(lambda: why(seen, HOUR) == {}, "the word of it that goes to B")


def test_what_mends_a_cause_is_offered_as_long_as_the_cause_is_shown(
    a: Process, seen: Collaboration
) -> None:
    task = post(a, "/tasks", text="Boil it")["id"]
    until(lambda: why(seen, HOUR), "the task")
    later = datetime.now(UTC) + timedelta(seconds=HOUR)
    snapshot = seen.refresh(datetime.now(UTC))
    other = (
        open_agent(str(folder_of("A"))) if seen.key != a.url else collaboration.RemoteAgent(a.url)
    )
    other.subscribe(lambda: None)
    post(a, f"/tasks/{task}:cancel")
    try:  # it is known here by now that nothing has to be done; what is shown is of before
        until(lambda: not why(other, HOUR), "the end of the task")
    finally:
        other.close()
    (cause,) = seen.causes(DiagnosisContext(snapshot, Clock(later)))
    assert cause.remedy in {each.name for each in seen.actions(later)}
    assert seen.actions(later)
    until(lambda: not why(seen, HOUR), "the end of the task")


@pytest.mark.slow
def test_an_agent_that_does_not_answer(a: Process) -> None:
    seen = collaboration.RemoteAgent(a.url)
    try:
        port, where = a.link.split(":")[2].split("/")[0], a.url.removeprefix("http://")
        a.options = ("--port", port, "--http-port", a.url.rsplit(":", 1)[1], *OPTIONS[4:])
        seen.subscribe(lambda: None)
        until(lambda: seen.refresh(datetime.now(UTC)).phase == "running", "an answer")
        assert why(seen, HOUR) == {}
        a.kill()
        until(lambda: seen.refresh(datetime.now(UTC)).phase == "unreachable", "its end")
        assert why(seen, matters.UNREACHED - 10) == {}
        said = f"cannot reach {where}"
        until(lambda: why(seen, HOUR)["wire-unreachable"].sentence == said, "another try")
        (cause,) = why(seen, HOUR).values()
        assert cause.evidence[1].startswith("last contact ")
        first = cause.since
        time.sleep(1.2)  # it is tried again meanwhile, and that is no new beginning
        assert why(seen, HOUR)["wire-unreachable"].since == first
        a.start()
        until(lambda: seen.refresh(datetime.now(UTC)).phase == "running", "its return")
        assert why(seen, HOUR) == {}
    finally:
        seen.close()


def test_an_address_at_which_nobody_ever_answered() -> None:
    seen = collaboration.RemoteAgent("http://127.0.0.1:9")
    try:
        (cause,) = why(seen, HOUR).values()
        assert cause.sentence == "cannot reach 127.0.0.1:9"
        assert "the agent has never answered" in cause.evidence
    finally:
        seen.close()


def test_an_agent_that_is_stopped_while_something_waits_for_it(a: Process) -> None:
    seen = open_agent(str(folder_of("A")))
    task = post(a, "/tasks", text="Boil it")["id"]
    assert why(seen) == {}
    a.kill()
    (cause,) = why(seen).values()
    assert cause.sentence == "1 open task waits until the agent runs again"
    assert "acp agent --name A" in cause.instruction
    assert cause.evidence == (f"open: {task}, submitted: Boil it",)
    a.start()
    post(a, f"/tasks/{task}:cancel")
    a.kill()
    assert why(seen) == {}  # nothing waits: it is done with
    a.start()
    post(a, "/tasks", text="Boil another")
    a.kill()
    (later,) = why(seen).values()
    assert later.sentence == cause.sentence
    assert later.key != cause.key  # who acknowledged the first has not seen this one
    seen.close()


def test_a_signature_that_is_wrong_and_one_that_is_none() -> None:
    message = {"role": "user", "from": "Eve", "parts": [{"type": "text", "content": "pay me"}]}
    with Process("A", *OPTIONS, "--secret", "s") as a:
        seen = open_agent(str(folder_of("A")))
        post(a, "/message:send", **message)
        assert why(seen) == {}  # not signed at all: a finding, and no forgery
        post(a, "/message:send", **message, sig="00", ts="2001-01-01T00:00:00Z")
        (cause,) = why(seen).values()
        assert (cause.code, cause.certain) == ("wire-signature", True)
        assert cause.sentence == "a message claiming to be from Eve has a wrong signature"
        assert cause.evidence[1:] == ("text: pay me", "1 of the latest 2 messages that arrived")
        assert cause.since and datetime.now(UTC) - cause.since < timedelta(minutes=5)
        (event,) = (e for e in seen.refresh(datetime.now(UTC)).events if e.id == cause.about.event)
        assert event.problem == "the shared secret's signature is wrong"
        seen.close()


def test_somebody_else_in_a_peer_s_place_is_forgotten_by_a_person(
    a: Process, seen: Collaboration, tmp_path: Any
) -> None:
    key = ("--identity", str(tmp_path / "one.json"))
    with Process("B", *OPTIONS, *key) as b:
        met(a, b)
        b.kill()
        b.options = (*OPTIONS, "--identity", str(tmp_path / "two.json"), "--join", a.link)
        until(lambda: shown(seen, lambda cells: cells[2] == "away"), "its end")
        b.start()
        cause = until(lambda: why(seen).get("wire-stranger"), "the refusal")
        assert cause.given == (("peer", "peer_001"),)
        mend(seen, cause)
        until(lambda: why(seen) == {}, "peace")
