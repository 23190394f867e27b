"""A message to a peer that is away arrives once and in order, whoever is killed, and when."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.protocols.wire.support import OWNER, PATIENCE, Process, refused, until
from tests.protocols.wire.teams import BINDINGS, Member, command, found, relay


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=PATIENCE, trust_env=False, auth=OWNER) as one:
        yield one


def pair() -> tuple[Process, Process]:
    options = ("--port", "0", "--http-port", "0", "--sync", "normal")
    return Process("A", *options), Process("B", *options)


def fixed(agent: Process) -> None:
    """Let it come back at the same place: its link stays as it is."""
    port, web = agent.link.split(":")[2].split("/")[0], agent.url.rsplit(":", 1)[1]
    agent.options = ("--port", port, "--http-port", web, *agent.options[4:])


def here(client: httpx.Client, agent: Process) -> int:
    try:
        return int(client.get(f"{agent.url}/status").json()["peer_count"])
    except httpx.HTTPError:
        return 0


def arrived(client: httpx.Client, agent: Process | Member) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        query: dict[str, Any] = {"direction": "in", "limit": 1000, "offset": len(found)}
        page = client.get(f"{agent.url}/messages", params=query).json()
        found += page["messages"]
        if not page["has_more"]:
            return found


def test_a_peer_that_was_away_gets_everything_once_and_in_order(client: httpx.Client) -> None:
    a, b = pair()
    with a, b:
        fixed(a)
        fixed(b)
        client.post(f"{a.url}/peers/connect", json={"link": b.link})
        until(lambda: here(client, a) and here(client, b), "the connection")
        link = b.link
        b.kill()
        until(lambda: not here(client, a), "the end of the connection")
        for n in range(20):
            sent = client.post(
                f"{a.url}/message:send", json={"text": f"{n}", "message_id": f"m{n}"}
            )
            assert (sent.status_code, sent.json()["queued"]) == (202, True)
        a.kill()
        a.start()  # what waits outlives the sender too
        again = client.post(f"{a.url}/message:send", json={"text": "19", "message_id": "m19"})
        assert again.status_code == 202
        b.start()
        assert b.link == link
        until(lambda: len(arrived(client, b)) == 20, "the arrival of all")
        found = arrived(client, b)
        assert [each["message_id"] for each in found] == [f"m{n}" for n in range(20)]
        numbers = [each["server_seq"] for each in found]
        assert numbers == sorted(set(numbers))
        until(lambda: client.get(f"{a.url}/peers").json()[0]["queued"] == 0, "the acknowledgements")
        assert client.get(f"{a.url}/peers").json()[0]["messages_sent"] == 20
        delivered = client.post(f"{a.url}/message:send", json={"text": "19", "message_id": "m19"})
        assert delivered.status_code == 200
        assert delivered.json()["server_seq"] == numbers[-1]
        assert [len(client.get(f"{one.url}/peers").json()) for one in (a, b)] == [1, 1]
        for one in (a, b):
            assert one.stop() == (0, "")


def test_one_name_stands_for_one_process() -> None:
    a, _ = pair()
    with a:
        second = Process("A", "--port", "0")
        with pytest.raises(AssertionError, match="is already running"):
            second.start()
        second.kill()


def test_an_agent_comes_back_at_the_same_place(client: httpx.Client) -> None:
    with Process("Again") as agent:
        link = agent.link
        refused(
            client.post(f"{agent.url}/message:send", json={"text": "x"}), 503, "ERR_NOT_CONNECTED"
        )
        agent.kill()
        assert agent.start().link == link


@pytest.mark.slow
def test_ten_thousand_messages_with_kills_at_random(client: httpx.Client) -> None:
    """None is lost, none comes twice, none out of order; each side is killed again and again."""
    count, seed = 10_000, random.randrange(10**6)
    print(f"seed {seed}")
    dice, over = random.Random(seed), threading.Event()
    a, b = pair()
    lock = threading.Lock()
    with a, b:
        fixed(a)
        fixed(b)
        client.post(f"{a.url}/peers/connect", json={"link": b.link})
        until(lambda: here(client, a) and here(client, b), "the connection")
        kills = {a.name: 0, b.name: 0}

        def killer() -> None:
            while not over.wait(dice.uniform(0.5, 3.0)):
                missed = [each for each in (a, b) if not kills[each.name]]
                victim = dice.choice(missed or (a, b))  # each side at least once
                with lock:
                    victim.kill()
                    time.sleep(dice.uniform(0, 0.3))
                    victim.start()
                    kills[victim.name] += 1

        thread = threading.Thread(target=killer)
        thread.start()
        try:
            for n in range(count):
                body = {"text": f"{n}", "message_id": f"m{n}"}
                while True:  # a sender that got no answer asks again, with the same id
                    try:
                        sent = client.post(f"{a.url}/message:send", json=body)
                    except httpx.TransportError:
                        time.sleep(0.02)
                        continue
                    assert sent.status_code in (200, 202), sent.text
                    break
        finally:
            over.set()
            thread.join()

        def all_there() -> bool:
            found = client.get(f"{b.url}/messages?direction=in&limit=1").json()
            return int(found["total"]) >= count

        until(all_there, "the arrival of all")
        found = arrived(client, b)
    print(f"killed: {kills}")
    assert [each["message_id"] for each in found] == [f"m{n}" for n in range(count)]
    numbers = [each["server_seq"] for each in found]
    assert numbers == sorted(set(numbers))
    assert min(kills.values()) > 0


class Pair:
    """A and B over one of the bindings; each can be killed, and comes back at its place."""

    def __init__(self, stack: ExitStack, binding: str) -> None:
        fast = ("--sync", "normal")
        more = ("--tcp-port", "0") if binding == "tcp" else ()
        if binding == "relay":
            more = ("--relay", stack.enter_context(relay()))
        self.b: Process | None = None
        join = ("--run-peer", command("B", *fast))
        if binding != "stdio":
            b = self.b = Process("B", "--port", "0", "--http-port", "0", *fast, *more)
            stack.enter_context(b)
            join = ("--join", b.links[binding])
            b.options = ("--port", _port(b.link), "--http-port", _port(b.url), *b.options[4:])
            if binding == "tcp":
                b.options = (*b.options[:-1], _port(b.links["tcp"]))
        self.a = Process("A", "--port", "0", "--http-port", "0", *fast, *join)
        stack.enter_context(self.a)
        self.a.options = (
            "--port",
            _port(self.a.link),
            "--http-port",
            _port(self.a.url),
            *self.a.options[4:],
        )

    def receiver(self) -> Member:
        """B as it runs now."""
        return Member("B", self.b.url, self.b.pid) if self.b else found("B")

    def kill(self, name: str) -> None:
        """End one at once, and start it again where nobody else does."""
        process = {"A": self.a, "B": self.b}[name]
        if process is None:
            os.kill(found("B").pid, signal.SIGKILL)
            return
        process.kill()
        process.start()

    def arrived(self) -> list[dict[str, Any]]:
        """What B has; nothing while it cannot be asked."""
        try:
            with httpx.Client(timeout=PATIENCE, trust_env=False, auth=OWNER) as client:
                return arrived(client, self.receiver())
        except httpx.HTTPError:
            return []


def _port(link: str) -> str:
    return str(urlsplit(link).port)


@pytest.mark.slow
@pytest.mark.parametrize("binding", [each for each in BINDINGS if each != "acp"])
def test_two_thousand_messages_over_each_binding_with_kills_at_random(
    client: httpx.Client, binding: str
) -> None:
    """None is lost, none comes twice, none out of order; each side is killed three times."""
    count, seed = 2_000, random.randrange(10**6)
    print(f"seed {seed}")
    dice = random.Random(seed)
    places = dict(zip(dice.sample(range(100, count - 100), 6), "ABABAB", strict=True))
    with ExitStack() as stack:
        pair = Pair(stack, binding)
        a = pair.a
        until(lambda: here(client, a), "the connection")
        peer = client.get(f"{a.url}/peers").json()[0]["id"]
        killers: list[threading.Thread] = []
        for n in range(count):
            if n in places:
                if killers:
                    killers[-1].join()
                killers.append(threading.Thread(target=pair.kill, args=(places[n],)))
                killers[-1].start()
            body = {"text": f"{n}", "message_id": f"m{n}"}
            while True:  # a sender that got no answer asks again, with the same id
                try:
                    sent = client.post(f"{a.url}/peer/{peer}/send", json=body)
                except httpx.TransportError:
                    time.sleep(0.02)
                    continue
                assert sent.status_code in (200, 202), sent.text
                break
        for each in killers:
            each.join()
        until(lambda: len(pair.arrived()) >= count, "the arrival of all")
        came = pair.arrived()
        assert [each["message_id"] for each in came] == [f"m{n}" for n in range(count)]
        numbers = [each["server_seq"] for each in came]
        assert numbers == sorted(set(numbers))
        until(lambda: not client.get(f"{a.url}/peers").json()[0]["queued"], "the acknowledgements")
