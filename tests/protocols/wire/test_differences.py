"""docs/wire.md lists where acp is stricter or laxer than the existing programs: each is so.

What a row needs a network of peers for is done by another test, which the row names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from acp_core.protocols.wire.conduct.agent import Limits
from acp_core.protocols.wire.network.links import LinkError, parse
from tests.hygiene.sources import ROOT
from tests.protocols.wire.support import Served, refused, served, until
from tests.protocols.wire.test_lines import line, message

BAD = (400, "ERR_INVALID_REQUEST")
FORBIDDEN = (403, "ERR_FORBIDDEN")
Done = Callable[[Served], None] | tuple[str, ...]
"""What shows a row: it is done here, or by the tests of these names."""


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    limits = Limits(message=65_536)
    with served(tmp_path_factory.mktemp("other"), "A", tcp_port=0, limits=limits) as one:
        yield one


def parts(*given: Any) -> dict[str, Any]:
    return {"role": "user", "from": "B", "parts": list(given)}


def came(agent: Served, body: dict[str, Any]) -> dict[str, Any]:
    """A message is taken, and how it is kept."""
    answer = agent.post("/message:send", {"from": "B"} | body)
    assert answer.status_code == 200, answer.text
    kept = agent.get("/messages", sort="desc", limit=1)["messages"][0]
    assert kept["message_id"] == answer.json()["message_id"]
    return dict(kept)


def ids(agent: Served) -> set[str]:
    return {each["message_id"] for each in agent.get("/messages", limit=1000)["messages"]}


def task(agent: Served, *states: str) -> str:
    """The address of a new task, taken through states."""
    place = f"/tasks/{agent.post('/tasks', {'text': 'do it'}).json()['id']}"
    for state in states:
        assert agent.post(f"{place}:update", {"status": state}).status_code == 200
    return place


def a_token(agent: Served) -> None:
    for path in ("/status", "/messages", "/peers", "/tasks", "/link", "/stream"):
        refused(agent.http.get(path, auth=None), 401, "ERR_UNAUTHORIZED")
    for path in ("/card", "/.well-known/acp.json", "/openapi.json"):
        assert agent.http.get(path, auth=None).status_code == 200


def no_web_page(agent: Served) -> None:
    for headers in (
        {"origin": "https://evil.example"},
        {"host": "evil.example"},
        {"sec-fetch-site": "cross-site"},
    ):
        answer = agent.http.get("/status", headers=headers)
        refused(answer, *FORBIDDEN)
        assert "access-control-allow-origin" not in answer.headers


def no_stranger_is_asked(agent: Served) -> None:
    refused(agent.post("/webhooks/register", {"url": "http://example.com/"}), *FORBIDDEN)
    refused(
        agent.http.get("/peers/discover", params={"subnet": "10.0.0.0/24"}), 404, "ERR_NOT_FOUND"
    )


def a_role(agent: Served) -> None:
    text = {"type": "text", "content": "x"}
    for role in ({"role": "system"}, {"role": 5}, {}):
        refused(agent.post("/message:send", {"from": "B", "parts": [text]} | role), *BAD)
    assert came(agent, {"text": "x"})["role"] == "user"


def parts_of_a_known_kind(agent: Served) -> None:
    for given in (
        {"parts": "x"}, parts({"type": "song"}), parts({"type": "file", "url": "file:///etc/passwd"})
    ):  # fmt: skip
        refused(agent.post("/message:send", {"role": "user", "from": "B"} | given), *BAD)
    with line(agent) as peer:
        peer.hello()
        odd = message("", "odd") | {"parts": [{"type": "song", "notes": 3}]}
        peer.say(odd)
        until(lambda: "odd" in ids(agent), "the message")
    found = agent.get("/messages", limit=1000)["messages"]
    assert next(each for each in found if each["message_id"] == "odd")["parts"] == odd["parts"]


def a_body(agent: Served) -> None:
    for body in ("[]", "nope", "[" * 5_000, '{"text":"x","from":"B","n":NaN}'):
        refused(agent.http.post("/message:send", content=body), *BAD)
    for ts in (5, "yesterday", "2026-02-30T00:00:00Z", [], {}):
        for body in ({"text": "x", "from": "B"}, parts({"type": "text", "content": "x"})):
            refused(agent.post("/message:send", body | {"ts": ts}), *BAD)
    for query in ("/messages?limit=x", "/messages?received_after=never"):
        refused(agent.http.get(query), *BAD)
    large = agent.post("/message:send", {"text": "x" * 70_000, "from": "B"})
    refused(large, 413, "ERR_MSG_TOO_LARGE")


def a_link(agent: Served) -> None:
    for link in (
        "acp://", "acp://h:0/tok_x", "acp://u@h:1/tok_x", "acp://h:1/tok_x?a=b", "acp://h:1/tok_x#a"
    ):  # fmt: skip
        with pytest.raises(LinkError):
            parse(link)
        refused(agent.post("/peers/connect", {"link": link}), 400, "ERR_INVALID_REQUEST")


def a_task_s_life(agent: Served) -> None:
    for state in ("bogus", "completed"):  # of one that waits for input
        refused(
            agent.post(f"{task(agent, 'working', 'input_required')}:update", {"status": state}),
            *BAD,
        )
    refused(
        agent.post(f"{task(agent, 'working', 'completed')}:update", {"status": "working"}), *BAD
    )
    failed = agent.post(f"{task(agent, 'working')}:update", {"status": "failed", "artifact": "x"})
    refused(failed, *BAD)


STRICTER: dict[str, Done] = {
    "a bearer token for everything": a_token,
    "an `Origin` of another site": no_web_page,
    "webhooks at hosts": no_stranger_is_asked,
    "a role other than `user` and `agent`": a_role,
    "parts that are not a list": parts_of_a_known_kind,
    "bodies that are not a JSON object": a_body,
    "invalid links, port 0": a_link,
    "an unknown state of a task": a_task_s_life,
    "a peer with a different key": (
        "test_another_key_for_a_known_peer_is_refused_and_told",
        "test_a_bad_frame_is_answered_and_the_connection_goes_on",
    ),
    "more than 50,000 waiting messages": (
        "test_too_much_for_one_peer_is_refused_before_it_is_taken",
        "test_who_talks_too_fast_is_slowed_down_and_loses_nothing",
        "test_only_so_many_connections_are_held",
    ),
}


def spellings(agent: Served) -> None:
    for body in ({"text": "x"}, {"content": "x"}, parts({"type": "text", "content": "x"})):
        assert came(agent, body)["parts"] == [{"type": "text", "content": "x"}]
    place = task(agent)
    assert agent.post(f"{place}/update", {"state": "working"}).json()["status"] == "working"
    done = agent.post(f"{place}:update", {"status": "completed", "output": "yes"}).json()
    assert done["artifact"] == {"parts": [{"type": "text", "content": "yes"}]}
    for cancel in (
        lambda at: agent.post(f"{at}:cancel"),
        lambda at: agent.post(f"{at}/cancel"),
        lambda at: agent.http.delete(at),
    ):
        assert cancel(task(agent)).json()["status"] == "canceled"
    assert agent.post("/skills/query", {"query": "x"}).status_code == 200
    assert agent.http.get("/skills/query?query=x").status_code == 200
    assert agent.post("/skills/query", {"skill_id": "x"}).status_code == 200
    with line(agent) as peer:
        peer.hello()
        peer.say(message("hello", "named"))
        until(lambda: "named" in ids(agent), "the message")
        id = next(each["id"] for each in agent.get("/peers") if each["connected"])
        for path in (f"/peer/{id}", f"/peers/{id}"):
            assert agent.get(path)["id"] == id


def ids_and_times(agent: Served) -> None:
    kept = came(agent, {"text": "x"})
    assert kept["message_id"] and kept["ts"]
    once, again = (agent.post("/message:send", {"text": "x", "from": "B", "message_id": "same"}).json()
                   for _ in range(2))  # fmt: skip
    assert once["server_seq"] == again["server_seq"]


def done_already(agent: Served) -> None:
    place = task(agent)
    assert [agent.post(f"{place}:cancel").status_code for _ in range(2)] == [200, 200]


def frames(agent: Served) -> None:
    with line(agent) as peer:
        peer.hello()
        peer.say({"type": "acp.agent_card", "card": {"name": "Odd"}})
        peer.say({"type": "chat", "id": "chat-1", "content": "from before"})
        peer.raw(b"[1,2]\n")
        assert peer.next("error")["error_code"] == "ERR_INVALID_REQUEST"
        peer.say(message("still here", "still"))
        until(lambda: "still" in ids(agent), "the next frame")
    texts = [str(each["parts"]) for each in agent.get("/messages", limit=1000)["messages"]]
    assert any("from before" in each for each in texts)
    assert any("still here" in each for each in texts)


def signatures(agent: Served) -> None:
    assert came(agent, {"text": "old", "ts": "2020-01-01T00:00:00Z"})["ts"].startswith("2020")
    assert came(agent, {"text": "x", "sig": "wrong"})["parts"][0]["content"] == "x"


LAXER: dict[str, Done] = {
    "`text`, `content` or `parts`": spellings,
    "a message without a `message_id`": ids_and_times,
    "cancelling a canceled task": done_already,
    "frames of other forms": frames,
    "a wrong, missing or old signature": signatures,
    "flat cards, and cards inside `self`": (
        "test_an_older_card_is_read_too",
        "test_the_card_is_flat_and_also_as_older_clients_read_it",
        "test_skills_are_found_by_what_they_are_called",
    ),
}


def card_and_errors(agent: Served) -> None:
    card = agent.get("/card")
    assert card["name"] == card["self"]["name"] == "A"
    error = agent.post("/message:send", {}).json()
    assert error["error"] == error["message"] != ""


def several_peers(agent: Served) -> None:
    with line(agent) as first, line(agent) as second:
        for number, peer in enumerate((first, second)):
            peer.hello()
            peer.say({"type": "acp.agent_card", "card": {"name": f"Of several {number}"}})
        until(lambda: sum(each["connected"] for each in agent.get("/peers")) == 2, "both")
        refused(agent.post("/message:send", {"text": "x"}), 400, "ERR_AMBIGUOUS_PEER")
        assert agent.post("/message:send", {"text": "x", "peer_id": "peer_none"}).status_code == 404


def canceled(agent: Served) -> None:
    place = task(agent, "working")
    assert agent.post(f"{place}:cancel").json()["status"] == "canceled"
    assert agent.get(place)["status"] == "canceled"


DIFFERENT: dict[str, Done] = {
    "lists (`/peers`, `/tasks`, `/skills`) are plain": (
        "test_lists_are_bare_unless_json_is_asked_for_by_name",
    ),
    "the card is flat and also contained in `self`": card_and_errors,
    "acp stores a message for an offline peer": (
        "test_a_peer_that_was_away_gets_everything_once_and_in_order",
        "test_another_agent_at_a_peer_s_link_gets_nothing_of_its_queue",
        "test_without_a_peer_nothing_is_sent_and_nothing_is_kept",
    ),
    "with several peers and no `peer_id`": several_peers,
    "the state of a canceled task is `canceled`": canceled,
    "after a restart, an agent has the same link": (
        "test_an_agent_comes_back_at_the_same_place",
        "test_a_follower_of_a_killed_agent_goes_on_where_it_was",
        "test_a_peer_that_is_killed_gets_all_when_it_is_back",
    ),
    "events of `/stream` are named": (
        "test_events_come_as_they_happen",
        "test_what_was_missed_comes_again_and_nothing_twice",
        "test_the_first_block_of_a_stream_holds_its_first_event",
        "test_clients_that_read_in_blocks_see_each_event_at_once",
    ),
    "announcements on the local network": (
        "test_agents_hear_of_each_other_and_tokens_stay_at_home",
    ),
}  # fmt: skip


def test_what_the_page_says_that_acp_does_not_have_is_not_there(agent: Served) -> None:
    for method, path in (
        ("GET", "/availability"), ("PATCH", "/availability"), ("GET", "/.well-known/did.json"),
        ("PATCH", "/.well-known/acp.json"), ("PATCH", "/card"), ("GET", "/ws/stream"),
    ):  # fmt: skip
        answer = agent.http.request(method, path, json={})
        assert answer.status_code in (404, 405), (method, path)


def rows(lead: str) -> list[str]:
    """The rows of the list below a sentence of the page."""
    text = (ROOT / "docs/wire.md").read_text("utf-8").split(lead, 1)[1]
    found = re.search(r"\n\n((?:\* .+\n(?:  .+\n)*)+)", text)
    assert found
    return [" ".join(each.split()) for each in re.split(r"^\* ", found[1], flags=re.M)[1:]]


ALL = STRICTER | LAXER | DIFFERENT


@pytest.mark.parametrize(
    ("lead", "known"),
    [
        ("acp is stricter.", STRICTER),
        ("acp is laxer.", LAXER),
        ("acp answers differently:", DIFFERENT),
    ],
)
def test_each_row_of_the_page_is_shown_and_no_other(lead: str, known: dict[str, Done]) -> None:
    listed = rows(lead)
    assert len(listed) == len(known)
    assert all(row.startswith(name) for row, name in zip(listed, known, strict=True))
    there = {
        node.name
        for path in Path(__file__).parent.glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    assert [name for each in known.values() if isinstance(each, tuple)
            for name in each if name not in there] == []  # fmt: skip


@pytest.mark.parametrize(
    "row", [name for name, shown in ALL.items() if not isinstance(shown, tuple)]
)
def test_each_row_is_as_the_page_says(agent: Served, row: str) -> None:
    shown = ALL[row]
    assert callable(shown)
    shown(agent)
