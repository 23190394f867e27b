"""The same over every binding: messages, tasks and artifacts between real processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from acp_core.protocols.wire.network.identity import load_or_make, sign_message
from tests.protocols.wire.rogue import reply, rogue
from tests.protocols.wire.support import Process, refused, served, until
from tests.protocols.wire.teams import ANY_PORT, BINDINGS, Member, found, team


def delegate(one: Member, other: Member, text: str) -> str:
    """Let one give a task to the other; its id, once it is there."""
    body = {"text": text, "create_task": True, "context_id": "plan", "role": "user"}
    sent = one.post(f"/peer/{one.peer(other.name)['id']}/send", **body)
    place = f"/tasks/{sent['task']['id']}"
    until(lambda: other.http.get(place).is_success, f"the task's arrival at {other.name}")
    return place


def finish(worker: Member, asker: Member, place: str, text: str) -> None:
    """Let the worker hand in an artifact; wait until the asker has it."""
    artifact = {"parts": [{"type": "text", "content": text}, {"type": "data", "content": [1.5]}]}
    worker.post(f"{place}:update", status="completed", artifact=artifact)
    until(lambda: asker.get(place)["status"] == "completed", f"the end of {place}")
    assert asker.get(place)["artifact"] == artifact


def plain(message: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if not name.startswith("_")}


def unchanged(one: Member, other: Member, message_id: str) -> None:
    """The envelope stands at both alike, and both of its signatures were verified."""
    came = next(m for m in other.arrived() if m["message_id"] == message_id)
    sent = one.get("/messages", direction="out", limit=1000)["messages"]
    assert plain(came) == plain(next(m for m in sent if m["message_id"] == message_id))
    assert came["sig"]
    assert came["identity"]["sig"]
    assert (came["_sig_verified"], came["_ed25519_verified"]) == (True, True)


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_chain_hands_a_task_on_and_the_result_back(binding: str, tmp_path: Path) -> None:
    with team(tmp_path, binding, [("A", "B"), ("B", "C")]) as members:
        a, b, c = members["A"], members["B"], members["C"]
        first = delegate(a, b, "Übersetze: 漢字 \U0001f600 \u2028")
        asked = b.arrived()[0]
        second = delegate(b, c, asked["parts"][0]["content"])
        finish(c, b, second, "fertig")
        finish(b, a, first, b.get(second)["artifact"]["parts"][0]["content"])
        for one, other in ((a, b), (b, c)):
            unchanged(one, other, other.arrived()[0]["message_id"])
            assert one.peer(other.name)["proven"] is other.peer(one.name)["proven"] is True
        back = a.arrived()
        b.post(f"/peer/{b.peer('A')['id']}/send", text="thanks")
        until(lambda: len(a.arrived()) == len(back) + 1, "the word of thanks")
        unchanged(b, a, a.arrived()[-1]["message_id"])
        assert c.peer("A") is None


@pytest.mark.slow
@pytest.mark.parametrize("binding", BINDINGS)
def test_three_agents_one_of_them_knows_both(binding: str, tmp_path: Path) -> None:
    with team(tmp_path, binding, [("A", "B"), ("A", "C")]) as members:
        a, b, c = members["A"], members["B"], members["C"]
        for n in range(50):
            for other in (b, c):
                a.post(f"/peer/{a.peer(other.name)['id']}/send", text=f"{other.name}{n}")
                other.post("/message:send", text=f"{other.name}{n}")
        for other in (b, c):
            until(lambda o=other: len(o.arrived()) == 50, f"all at {other.name}")
            said = [m["parts"][0]["content"] for m in other.arrived()]
            assert said == [f"{other.name}{n}" for n in range(50)]
        until(lambda: len(a.arrived()) == 100, "all at A")
        for other in (b, c):
            said = [m["parts"][0]["content"] for m in a.arrived() if m["from"] == other.name]
            assert said == [f"{other.name}{n}" for n in range(50)]
            finish(other, a, delegate(a, other, "work"), other.name)


def test_over_http_alone_envelopes_tasks_and_artifacts_arrive_unchanged(tmp_path: Path) -> None:
    """Binding D: nobody has a connection; each posts to the next, and follows its stream."""
    identity = load_or_make(tmp_path / "sender.json")
    with ExitStack() as stack:
        names = ("A", "B", "C")
        started = [stack.enter_context(Process(n, *ANY_PORT, "--secret", "shared")) for n in names]
        a, b, c = (Member(each.name, each.url, each.pid) for each in started)
        for sender, receiver in (("me", a), (a.name, b), (b.name, c)):
            envelope = {
                "type": "acp.message", "message_id": f"m-{receiver.name}", "server_seq": 7,
                "ts": "2026-03-21T07:00:00Z", "from": sender, "role": "user", "task_id": "t1",
                "context_id": "plan", "parts": [{"type": "data", "content": {"é": [1.0, None]}}],
            }  # fmt: skip
            signed = sign_message(envelope, "shared", identity)
            for _ in range(2):  # asked again, it arrives once
                assert receiver.post("/message:send", **signed)["task"]["id"] == "t1"
            (kept,) = receiver.arrived()
            assert plain(kept) == signed
            assert (kept["_sig_verified"], kept["_ed25519_verified"]) == (True, True)
        artifact = {"parts": [{"type": "text", "content": "done"}]}
        for worker in (c, b, a):
            worker.post("/tasks/t1:update", status="completed", artifact=artifact)
            assert worker.get("/tasks/t1")["artifact"] == artifact
            kinds = told_by(worker)
            assert kinds.index("acp.message") < kinds.index("acp.artifact")


def told_by(member: Member) -> list[str]:
    """The kinds of events that a follower gets from the beginning, until an artifact comes."""
    kinds: list[str] = []
    with member.http.stream("GET", "/stream?since=0") as answer:
        for line in answer.iter_lines():
            kinds += [line[7:]] if line.startswith("event: ") else []
            if kinds and kinds[-1] == "acp.artifact":
                break
    return kinds


@pytest.mark.slow
@pytest.mark.parametrize("binding", ["acp", "tcp"])
def test_a_peer_that_is_killed_gets_all_when_it_is_back(binding: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        more = ("--tcp-port", "0") if binding == "tcp" else ()
        b = stack.enter_context(Process("B", *ANY_PORT, *more))
        a = stack.enter_context(Process("A", *ANY_PORT, "--join", b.links[binding]))
        one = Member("A", a.url, a.pid)
        peer = until(lambda: one.peer("B"), "the connection")["id"]
        ports = [str(urlsplit(link).port) for link in (b.link, b.url, b.links["tcp"]) if link]
        b.options = tuple(
            word
            for pair in zip(("--port", "--http-port", "--tcp-port"), ports, strict=False)
            for word in pair
        )
        for n in range(60):
            if n % 20 == 10:
                b.kill()
            if n % 20 == 15:
                b.start()
            one.post(f"/peer/{peer}/send", text=f"{n}", message_id=f"m{n}")
        two = Member("B", b.url, b.pid)
        until(lambda: len(two.arrived()) == 60, "the arrival of all")
        assert [m["message_id"] for m in two.arrived()] == [f"m{n}" for n in range(60)]


def test_an_http_address_leads_to_the_link_of_its_card(tmp_path: Path) -> None:
    with (
        served(tmp_path, "A") as a,
        served(tmp_path, "B", open_loopback=True) as b,
        served(tmp_path, "C") as c,
    ):
        id = a.post("/peers/connect", {"link": b.url + "/"}).json()["peer_id"]
        until(lambda: a.get(f"/peer/{id}")["connected"], "the connection")
        assert a.get(f"/peer/{id}")["link"] == b.link
        for wrong in (f"{b.url}/none", "http://127.0.0.1:1", "http://", "http://u@127.0.0.1"):
            refused(a.post("/peers/connect", {"link": wrong}), 400, "ERR_INVALID_REQUEST")
        said = refused(a.post("/peers/connect", {"link": c.url}), 400, "ERR_INVALID_REQUEST")
        assert said["error"].startswith("the agent at this address shows no link: ask its owner")


def test_an_agent_of_the_same_user_is_joined_by_its_address() -> None:
    with Process("B", *ANY_PORT) as b, Process("A", *ANY_PORT, "--join", b.url) as a:
        until(lambda: Member("A", a.url, a.pid).peer("B"), "the connection")


def test_an_agent_whose_card_has_no_link_is_asked_for_it(tmp_path: Path) -> None:
    """An older agent wraps its card, and tells its link apart from it."""
    with served(tmp_path, "A") as a, served(tmp_path, "B") as b:
        answers = {"/.well-known/acp.json": {"self": {"name": "B"}, "peer": None}}
        answers["/link"] = {"link": b.link, "session_id": "x"}

        def answer(path: str, client: socket.socket) -> None:
            found = answers.get(path)
            reply(client, json.dumps(found).encode(), "200 OK" if found else "418 Teapot")

        with rogue(answer) as older:
            id = a.post("/peers/connect", {"link": older.url}).json()["peer_id"]
            until(lambda: a.get(f"/peer/{id}")["connected"], "the connection")
            answers.clear()
            wrong = a.post("/peers/connect", {"link": older.url})
            said = refused(wrong, 400, "ERR_INVALID_REQUEST")["error"]
            nobody = a.post("/peers/connect", {"link": "http://127.0.0.1:1"})
            assert said == refused(nobody, 400, "ERR_INVALID_REQUEST")["error"]
            assert "418" not in said


@pytest.mark.slow
def test_a_program_that_is_killed_is_started_again_and_gets_all(tmp_path: Path) -> None:
    with team(tmp_path, "stdio", [("A", "B")]) as members:
        a, first = members["A"], members["B"].pid
        peer = a.peer("B")["id"]
        for n in range(30):
            if n % 10 == 5:
                os.kill(found("B").pid, signal.SIGKILL)
            a.post(f"/peer/{peer}/send", text=f"{n}", message_id=f"m{n}")
            time.sleep(0.01)

        def all_there() -> bool:
            try:
                return len(found("B").arrived()) == 30
            except httpx.HTTPError:  # it is being started again
                return False

        until(all_there, "the arrival of all")
        assert [m["message_id"] for m in found("B").arrived()] == [f"m{n}" for n in range(30)]
        assert found("B").pid != first


def test_a_process_started_by_another_ends_with_it(tmp_path: Path) -> None:
    with team(tmp_path, "stdio", [("A", "B")]) as members:
        os.kill(members["A"].pid, signal.SIGKILL)
        pid = members["B"].pid

        def gone() -> bool:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return True
            try:
                return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
            except FileNotFoundError:  # it has gone meanwhile
                return False

        until(gone, "the end of B")
