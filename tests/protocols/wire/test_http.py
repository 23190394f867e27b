"""What a person with curl, or an existing client, finds at an agent's HTTP interface."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from acp_core.protocols.wire.conduct.agent import Limits
from acp_core.protocols.wire.network.links import parse
from acp_core.protocols.wire.schema.bodies import skill_from_option
from tests.protocols.wire.support import OWNER, Served, refused, served, until

TEXT = {"text": "hello"}
PARTS = {"parts": [{"type": "text", "content": "hello"}], "role": "user"}


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    skills = skill_from_option("summarize,translate")
    with served(tmp_path_factory.mktemp("alone"), "A", skills=skills) as one:
        yield one


def inbound(agent: Served, **fields: Any) -> dict[str, Any]:
    response = agent.post("/message:send", {**TEXT, "from": "Other", **fields})
    assert response.status_code == 200
    content: dict[str, Any] = response.json()
    return content


def test_the_card_is_flat_and_also_as_older_clients_read_it(agent: Served) -> None:
    card = agent.get("/.well-known/acp.json")
    assert card["acp_version"] == "0.8"
    assert card["protocol"] == "acp"
    assert card["capabilities"]["error_codes"] is True
    assert card["self"]["name"] == card["name"] == "A"
    assert card["peer"] is None
    assert parse(card["link"]).port == agent.get("/status")["ws_port"]
    assert agent.get("/card")["instance_id"] == card["instance_id"]


def test_without_a_peer_nothing_is_sent_and_nothing_is_kept(agent: Served) -> None:
    before = agent.get("/status")["server_seq"]
    error = refused(agent.post("/message:send", PARTS), 503, "ERR_NOT_CONNECTED")
    assert error["error"] == "No P2P connection"
    assert "failed_message_id" not in error
    assert agent.get("/status")["server_seq"] == before
    refused(agent.post("/peer/peer_001/send", PARTS), 404, "ERR_NOT_FOUND")
    refused(agent.post("/tasks", {**TEXT, "delegate": True}), 503, "ERR_NOT_CONNECTED")
    assert agent.get("/tasks") == []


def test_a_message_from_somebody_else_arrives_once(agent: Served) -> None:
    first = inbound(agent, message_id="once", context_id="ctx_once", unknown={"a": [1]})
    again = inbound(agent, message_id="once", context_id="ctx_once")
    assert first["server_seq"] == again["server_seq"]
    found = agent.get("/context/ctx_once/messages")
    assert (found["total"], found["has_more"], found["context_id"]) == (1, False, "ctx_once")
    kept = found["messages"][0]
    assert kept["parts"] == [{"type": "text", "content": "hello"}]
    assert kept["unknown"] == {"a": [1]}
    assert (kept["from"], kept["role"], kept["_direction"]) == ("Other", "user", "in")


def test_flags_of_the_receiver_cannot_be_sent(agent: Served) -> None:
    inbound(agent, message_id="flagged", context_id="flags", _ed25519_verified=True)
    kept = agent.get("/context/flags/messages")["messages"][0]
    assert "_ed25519_verified" not in kept


def test_a_message_that_is_too_large_is_named(agent: Served) -> None:
    body = {**TEXT, "message_id": "big"}
    for size in (1 << 20, 3 << 20):
        body["text"] = "x" * size
        error = refused(agent.post("/message:send", body), 413, "ERR_MSG_TOO_LARGE")
        assert error["failed_message_id"] == "big"
    body["text"] = "x" * (5 << 20)
    refused(agent.post("/message:send", body), 413, "ERR_MSG_TOO_LARGE")


@pytest.mark.parametrize("body", ["", "nope", "[]", "[[1]]", '"x"', "{", '{"text":1}', '{"a":NaN}'])
@pytest.mark.parametrize(
    "path", ["/message:send", "/tasks", "/peers/connect", "/reply", "/peer/peer_001/send"]
)
def test_a_body_that_is_none_is_a_bad_request(agent: Served, path: str, body: str) -> None:
    refused(agent.http.post(path, content=body), 400, "ERR_INVALID_REQUEST")


def test_full_messages_need_a_role(agent: Served) -> None:
    body = {"parts": PARTS["parts"], "from": "Other"}
    assert "role" in refused(agent.post("/message:send", body), 400, "ERR_INVALID_REQUEST")["error"]


@pytest.mark.parametrize(
    "query",
    [
        "/messages?limit=abc", "/messages?limit=0", "/messages?offset=-1", "/messages?role=x",
        "/messages?sort=bogus", "/messages?received_after=never", "/recv?limit=abc", "/recv?limit=-1",
        "/tasks?status=bogus", "/tasks?sort=name", "/tasks?created_after=x", "/tasks?limit=1e3",
        "/history?limit=%00", "/stream?since=abc", "/stream?since=-1", "/wait/x?timeout=abc",
        "/tasks?updated_after=1e999", "/skills?offset=x", "/skills/query?limit=x",
    ],
)  # fmt: skip
def test_a_query_that_is_none_is_a_bad_request(agent: Served, query: str) -> None:
    refused(agent.http.get(query), 400, "ERR_INVALID_REQUEST")


def test_what_is_not_there_is_not_found(agent: Served) -> None:
    for path in (
        "/nothing",
        "/tasks/none",
        "/peer/peer_9",
        "/peers/x",
        "/tasks/none:subscribe",
        "/",
    ):
        refused(agent.http.get(path), 404, "ERR_NOT_FOUND")
    for path in ("/tasks/none:cancel", "/tasks/none/cancel", "/peer/none/rename"):
        refused(agent.post(path, {"name": "x"}), 404, "ERR_NOT_FOUND")
    refused(agent.post("/tasks/none:update", {"status": "working"}), 404, "ERR_NOT_FOUND")
    refused(agent.post("/tasks/none:continue", TEXT), 404, "ERR_NOT_FOUND")
    refused(agent.post("/reply", {**TEXT, "correlation_id": "none"}), 404, "ERR_NOT_FOUND")
    refused(agent.http.put("/tasks"), 405, "ERR_INVALID_REQUEST")
    refused(agent.http.delete("/status"), 405, "ERR_INVALID_REQUEST")


def test_lists_are_bare_unless_json_is_asked_for_by_name(agent: Served) -> None:
    json = {"accept": "application/json"}
    for path, name in (("/tasks", "tasks"), ("/peers", "peers"), ("/skills", "skills")):
        assert isinstance(agent.get(path), list)
        assert isinstance(agent.http.get(path, headers=json).json()[name], list)
    assert agent.http.get("/peers", headers=json).json()["active"] == 0


def test_skills_are_listed_and_found(agent: Served) -> None:
    assert [skill["id"] for skill in agent.get("/skills")] == ["summarize", "translate"]
    assert agent.get("/skills?q=translate&limit=1")[0]["name"] == "translate"
    answer = agent.post("/skills/query", {"query": "summarize", "limit": 5}).json()
    assert answer["skills"] == [{"id": "summarize", "name": "summarize", "match_score": 1.0}]
    assert agent.get("/skills/query?query=summarize")["skills"] == answer["skills"]
    older = agent.post("/skills/query", {"skill_id": "cook"}).json()
    assert older["support_level"] == "unsupported"
    assert len(agent.post("/skills/query").json()["skills"]) == 2
    refused(agent.post("/skills/query", {"limit": "x"}), 400, "ERR_INVALID_REQUEST")


def test_a_task_of_ones_own_goes_through_its_life(agent: Served) -> None:
    made = agent.post("/tasks", {"payload": {"do": "it"}, "role": "user"})
    assert made.status_code == 201
    task = made.json()
    assert task["task"]["id"] == task["id"]
    assert (task["status"], task["direction"]) == ("submitted", "local")
    assert task["input"] == {"parts": [{"type": "data", "content": {"do": "it"}}]}
    place = f"/tasks/{task['id']}"
    refused(agent.post(f"{place}:continue", TEXT), 400, "ERR_INVALID_REQUEST")
    refused(agent.post(f"{place}:update", {"status": "bogus"}), 400, "ERR_INVALID_REQUEST")
    refused(agent.post(f"{place}:update", {}), 400, "ERR_INVALID_REQUEST")
    assert agent.post(f"{place}/update", {"state": "working"}).json()["status"] == "working"
    assert agent.post(f"{place}:update", {"status": "input_required"}).status_code == 200
    refused(agent.post(f"{place}:update", {"status": "completed"}), 400, "ERR_INVALID_REQUEST")
    assert agent.post(f"{place}/continue", TEXT).json()["status"] == "working"
    done = agent.post(f"{place}:update", {"status": "completed", "output": "yes"}).json()
    assert done["artifact"] == {"parts": [{"type": "text", "content": "yes"}]}
    again = agent.post(f"{place}:update", {"status": "completed", "output": "yes"})
    assert again.json()["updated_at"] == done["updated_at"]
    for state in ("working", "failed", "canceled"):
        refused(agent.post(f"{place}:update", {"status": state}), 400, "ERR_INVALID_REQUEST")
    refused(agent.post(f"{place}:cancel"), 400, "ERR_INVALID_REQUEST")
    states = [step["status"] for step in agent.get(place)["history"]]
    assert states == ["submitted", "working", "input_required", "working", "completed"]


def test_a_task_is_canceled_once_and_stays_so(agent: Served) -> None:
    id = agent.post("/tasks/create", {**TEXT, "task_id": "mine"}).json()["id"]
    assert id == "mine"
    refused(agent.post("/tasks", {**TEXT, "task_id": "mine"}), 400, "ERR_INVALID_REQUEST")
    first = agent.http.post(f"/tasks/{id}:cancel").json()
    assert (first["status"], first["task_id"]) == ("canceled", id)
    assert agent.post(f"/tasks/{id}/cancel").json()["updated_at"] == first["updated_at"]
    assert agent.http.delete(f"/tasks/{id}").json()["status"] == "canceled"


def test_a_message_with_an_unknown_task_makes_one(agent: Served) -> None:
    content = inbound(agent, task_id="t_from_outside", message_id="with-task")
    assert (content["task"]["status"], content["task"]["direction"]) == ("submitted", "received")
    agent.post("/tasks/t_from_outside:update", {"status": "failed", "error": "no"})
    task = agent.get("/tasks/t_from_outside/wait?timeout=5")["task"]
    assert (task["status"], task["error"]) == ("failed", "no")
    states = [step["status"] for step in task["history"]]
    assert states == ["submitted", "working", "failed"]


def test_waiting_for_a_task_ends_in_time(agent: Served) -> None:
    id = agent.post("/tasks", TEXT).json()["id"]
    slow = agent.http.get(f"/tasks/{id}/wait?timeout=0")
    assert (slow.status_code, slow.json()["timeout"]) == (202, True)


def test_pages_follow_each_other(agent: Served) -> None:
    for n in range(5):
        inbound(agent, message_id=f"page{n}", context_id="pages", role="agent" if n % 2 else "user")
    first = agent.get("/messages", context_id="pages", limit=2)
    assert (first["total"], first["has_more"], first["next_offset"]) == (5, True, 2)
    rest = agent.get("/messages", context_id="pages", limit=9, offset=2)
    ids = [each["message_id"] for each in first["messages"] + rest["messages"]]
    assert ids == [f"page{n}" for n in range(5)]
    newest = agent.get("/messages", context_id="pages", sort="desc", role="agent")
    assert [each["message_id"] for each in newest["messages"]] == ["page3", "page1"]
    since = first["messages"][1]["_seq"]
    assert agent.get("/messages", context_id="pages", since_seq=since)["total"] == 3
    assert agent.get("/messages", limit=10**30)["limit"] == 1000


def test_polling_tells_each_message_once(agent: Served) -> None:
    agent.get("/recv", limit=1000)
    inbound(agent, message_id="polled")
    told = agent.get("/recv")
    assert [each["id"] for each in told["messages"]] == ["polled"]
    assert told["messages"][0]["raw"]["from"] == "Other"
    assert agent.get("/recv")["count"] == 0
    assert agent.get("/history", limit=1)["history"][0]["message_id"] == "polled"


def test_a_question_by_http_is_answered(agent: Served) -> None:
    asked = {**TEXT, "from": "Other", "sync": True, "timeout": 0, "message_id": "late"}
    error = refused(agent.post("/message:send", asked), 408, "ERR_TIMEOUT")
    assert error["failed_message_id"] == "late"
    answered = agent.post("/reply", {"correlation_id": "late", "content": "42"})
    assert answered.status_code == 200
    reply = agent.post("/message:send", asked).json()["reply"]
    assert (reply["type"], reply["parts"][0]["content"]) == ("acp.reply", "42")
    refused(agent.http.get("/wait/none?timeout=0"), 408, "ERR_TIMEOUT")


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"}, {"host": "evil.example:80"}, {"host": ""}, {"host": "127.0.0.1@evil"},
        {"origin": "https://evil.example"}, {"origin": "null"}, {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"}, {"host": "[::1"}, {"host": "10.0.0.1"},
        {"host": "ann@127.0.0.1"}, {"host": "127.0.0.1/x"},
    ],
)  # fmt: skip
def test_web_pages_are_not_let_in(agent: Served, headers: dict[str, str]) -> None:
    for method, path in (("GET", "/status"), ("POST", "/peers/connect"), ("GET", "/stream")):
        response = agent.http.request(method, path, headers=headers)
        refused(response, 403, "ERR_FORBIDDEN")
        assert "access-control-allow-origin" not in response.headers


def test_no_answer_invites_a_web_page(agent: Served) -> None:
    host = agent.url.removeprefix("http://")
    for headers in ({}, {"host": host.replace("127.0.0.1", "localhost")}, {"origin": agent.url}):
        response = agent.http.get("/status", headers=headers)
        assert response.status_code == 200
        assert not any(name.startswith("access-control") for name in response.headers)
    assert agent.http.options("/message:send").status_code == 204


def test_tokens_tell_who_asks(agent: Served) -> None:
    def bearer(token: str) -> dict[str, str]:
        return {"authorization": f"Bearer {token}"}

    owner, peer = bearer(agent.agent.owner_token), bearer(agent.agent.token)
    assert agent.http.get("/status", headers=owner).status_code == 200
    for wrong in ("x", "x y", "é", agent.agent.token[:-1]):
        headers = {"authorization": b"Bearer " + wrong.encode()}
        response = agent.http.get("/status", headers=headers)  # type: ignore[arg-type]
        refused(response, 401, "ERR_UNAUTHORIZED")
        assert response.headers["www-authenticate"] == "Bearer"
    for path in ("/status", "/messages", "/peers", "/stream", "/link", "/recv", "/tasks"):
        refused(agent.http.get(path, headers=peer), 403, "ERR_FORBIDDEN")
    assert agent.http.get("/card", headers=peer).status_code == 200
    sent = agent.post("/message:send", {**TEXT, "message_id": "by-token"}, headers=peer)
    assert sent.status_code == 200
    own = agent.post("/tasks", TEXT).json()["id"]
    refused(agent.http.get(f"/tasks/{own}", headers=peer), 404, "ERR_NOT_FOUND")
    refused(agent.post(f"/tasks/{own}:cancel", headers=peer), 404, "ERR_NOT_FOUND")
    theirs = agent.post("/tasks", TEXT, headers=peer).json()
    assert theirs["direction"] == "received"
    assert agent.post(f"/tasks/{theirs['id']}:cancel", headers=peer).json()["status"] == "canceled"
    refused(
        agent.post(f"/tasks/{own}:update", {"status": "working"}, headers=peer),
        403,
        "ERR_FORBIDDEN",
    )


def test_an_agent_that_others_can_reach_asks_for_a_token(tmp_path: Path) -> None:
    with served(tmp_path, "Open", host="0.0.0.0", hosts=("agent.example",)) as agent:
        for path in ("/status", "/card", "/stream"):
            refused(agent.http.get(path, auth=None), 401, "ERR_UNAUTHORIZED")
        headers = {"authorization": f"Bearer {agent.agent.owner_token}"}
        assert agent.http.get("/status", headers=headers).status_code == 200
        named = {**headers, "host": "agent.example"}
        assert agent.http.get("/status", headers=named).status_code == 200
        refused(
            agent.http.get("/status", headers={**headers, "host": "other.example"}),
            403,
            "ERR_FORBIDDEN",
        )


def test_a_body_that_does_not_come_holds_up_nobody(tmp_path: Path) -> None:
    with served(tmp_path, limits=Limits(body_seconds=0.3)) as agent:
        address = parse(agent.link).host, int(agent.url.rsplit(":", 1)[1])
        with socket.create_connection(address) as slow:
            slow.sendall(
                b"POST /message:send HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
                b"Authorization: Bearer %s\r\n\r\n{" % agent.agent.owner_token.encode()
            )
            assert agent.get("/status")["ok"] is True
            assert b"408" in slow.recv(100)
        with socket.create_connection(address) as odd:
            odd.sendall(
                b"POST /message:send HTTP/1.1\r\nHost: localhost\r\nContent-Length: abc\r\n\r\n"
            )
            assert b" 400 " in odd.recv(100)


def test_too_many_requests_are_sent_away(tmp_path: Path) -> None:
    with served(tmp_path, limits=Limits(streams=1)) as agent:
        with agent.http.stream("GET", "/stream") as first:
            assert first.status_code == 200
            refused(httpx.get(f"{agent.url}/stream", trust_env=False, auth=OWNER), 429, "ERR_BUSY")
        until(lambda: agent.get("/status")["streams"] == 0, "the stream's end")
