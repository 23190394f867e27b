"""A host that lies, floods, never ends or leads elsewhere does no harm to who looks at it."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from acp_core.model import Snapshot, SourceState
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from acp_core.protocols.wire.collaboration import RemoteAgent, open_agent
from acp_core.protocols.wire.network import client as network_client
from acp_core.protocols.wire.read import elsewhere as read_elsewhere
from acp_core.protocols.wire.read import known
from tests.protocols.wire.rogue import HOSTILE, Rogue, begin, event, plain, reply, rogue, told
from tests.protocols.wire.support import panel, until
from tests.protocols.wire.test_remote import look, opened

ODD: list[Any] = [
    [], "x", 7, None, True, {"a": [[[]]]}, {"peers": 5, "tasks": "x", "server_seq": "y"},
    {"peers": [1, None, {"id": 5, "name": [], "queued": -3, "connected": "yes"}],
     "tasks": [7, {"id": None}, {"id": {}, "status": []}], "server_seq": -1},
    {"peers": [{"id": HOSTILE, "name": HOSTILE, "queued": 10**30, "error": HOSTILE,
                "connected_at": HOSTILE, "queued_since": "9999-99-99"}],
     "tasks": [{"id": HOSTILE, "status": HOSTILE, "input": {"parts": [HOSTILE]},
                "artifact": {"parts": [{"type": "text", "content": HOSTILE}]},
                "updated_at": HOSTILE, "error": {"x": HOSTILE}}],
     "name": HOSTILE, "skills": [{"id": HOSTILE}, 4], "capabilities": {HOSTILE: True},
     "trust": HOSTILE, "server_seq": 2**80},
]  # fmt: skip


def whole(agent: RemoteAgent) -> Snapshot:
    """What is shown, all of it looked at."""
    snapshot = look(agent)
    said = repr(snapshot) + repr(list(snapshot.events))
    assert "\x1b" not in said
    assert "\x9b" not in said
    assert "\u202e" not in said
    list(agent.causes(DiagnosisContext(snapshot, Clock(datetime.now(UTC)))))
    for action in agent.actions(datetime.now(UTC)):
        assert action.inputs.model_json_schema()
    for each in snapshot.events:
        agent.raw_event(each.id)
    return snapshot


@pytest.mark.parametrize("odd", range(len(ODD)))
def test_json_that_lies_is_shown_as_far_as_it_goes(odd: int) -> None:
    with rogue(told(ODD[odd])) as host, opened(host.url) as here:
        whole(here)
        until(lambda: "/status" in host.asked, "a question")
        until(lambda: here.refresh(datetime.now(UTC)).source.note or host.asked[5:], "an answer")
        whole(here)


def test_a_log_of_odd_things_is_shown_as_it_is() -> None:
    bodies: list[Any] = [
        {"from": HOSTILE, "parts": [{"type": "text", "content": HOSTILE}], "ts": HOSTILE},
        {"from": [1], "parts": 5, "task_id": {}, "context_id": HOSTILE, "_direction": "out"},
        {"state": {}, "error": HOSTILE, "task_id": HOSTILE},
        [], 7, "x", {"_sig_invalid": [1]}, {"context_id": "x" * 10_000, "identity": "\ud800"},
    ]  # fmt: skip
    kinds = ("acp.message", "acp.status", "acp.peer", HOSTILE.replace("\n", ""), "acp.artifact")
    events = [
        event(n * 10 + k, kind, body)
        for n, body in enumerate(bodies)
        for k, kind in enumerate(kinds)
    ]
    events += [
        b"id: x\ndata: {}\n\n", b"id: 99999999999999999999\ndata: {}\n\n", b"data: [\n\n",
        b"id: 500\ndata: " + b"[" * 100_000 + b"\n\n", b"\xff\xfe\n\n", b":\n" * 1000,
        b"id: 600\ndata: {\"n\": NaN}\n\n", event(700, "acp.message", {"from": "last"}),
    ]  # fmt: skip
    with rogue(plain(events)) as host, opened(host.url) as here:
        until(lambda: [e for e in look(here).events if e.actor == "last"], "the last event")
        snapshot = whole(here)
        orders = [each.order for each in snapshot.events]
        assert orders == sorted(set(orders))
        assert snapshot.source.state is SourceState.LIVE


def test_what_has_no_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_client, "LARGEST", 100_000)
    monkeypatch.setattr(network_client.read_body, "__defaults__", (100_000,))
    monkeypatch.setattr(network_client.read_lines, "__defaults__", (100_000,))
    monkeypatch.setattr(read_elsewhere, "TIMEOUT", 1.0)
    hosts: list[Rogue] = []

    def body_without_end(path: str, client: socket.socket) -> None:
        begin(client, "application/json")
        while not hosts[0].closed:
            client.sendall(b"[" * 10_000)

    def slowly(path: str, client: socket.socket) -> None:
        begin(client, "application/json")
        while not hosts[0].closed:
            client.sendall(b" ")
            time.sleep(0.1)

    def line_without_end(path: str, client: socket.socket) -> None:
        if not path.startswith("/stream"):
            plain([])(path, client)
            return
        begin(client)
        while not hosts[0].closed:
            client.sendall(b"x" * 10_000)

    def bomb(path: str, client: socket.socket) -> None:
        data = gzip.compress(b" " * 10_000_000)
        reply(client, data, "200 OK", "content-encoding: gzip")

    words = {
        body_without_end: "cannot reach", slowly: "cannot reach",
        line_without_end: "a line of more than", bomb: "cannot reach",
    }  # fmt: skip
    for answer, said in words.items():
        with rogue(answer) as host:
            hosts[:] = [host]
            with opened(host.url) as here:
                note = until(lambda: _lost(here), "its loss")
                assert said in note


def _lost(agent: RemoteAgent) -> str:
    note = look(agent).source.note
    return note if "trying again" in note else ""


def test_an_answer_that_leads_elsewhere_is_not_followed() -> None:
    with rogue(told({})) as trap:

        def elsewhere(path: str, client: socket.socket) -> None:
            reply(client, b"", "307 Temporary Redirect", f"location: {trap.url}{path}")

        with rogue(elsewhere) as host, opened(host.url) as here:
            note = until(lambda: _lost(here), "its refusal")
            assert "a redirect, which acp does not follow" in note
            assert not trap.asked


def test_a_token_goes_to_no_other_host(monkeypatch: pytest.MonkeyPatch) -> None:
    from acp_core.protocols import locations

    with rogue(told({})) as one, rogue(told({})) as other:
        locations.resolve(one.url, "mine")
        with opened(one.url) as first, opened(other.url) as second:
            until(lambda: one.heads and other.heads, "questions to both")
            assert any("Bearer mine" in head for head in one.heads)
            assert "mine" not in "".join(other.heads)
            assert "mine" not in repr(look(first)) + repr(look(second))


def test_a_flood_is_bounded_and_slowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "EVENTS", 50)
    monkeypatch.setattr(known, "BYTES", 20_000)
    monkeypatch.setattr(read_elsewhere, "BURST", 400)
    monkeypatch.setattr(read_elsewhere, "RATE", 100)
    body = {"from": "x", "parts": [{"type": "text", "content": "y" * 1000}]}
    flood = [b"".join(event(n, "acp.message", body) for n in range(1, 3000))]
    with rogue(plain(flood, status={"server_seq": 1})) as host, opened(host.url) as here:
        until(lambda: look(here).events, "events")
        time.sleep(1.0)
        snapshot = look(here)
        assert len(snapshot.events) <= 50
        assert snapshot.events[-1].order < 1500


def test_a_log_that_begins_anew_is_read_anew() -> None:
    first = [event(n, "acp.message", {"from": f"old{n}"}) for n in range(1, 6)]
    with rogue(plain(first, status={"server_seq": 5})) as host, opened(host.url) as here:
        until(lambda: len(look(here).events) == 5, "the old log")
        again = [event(1, "acp.message", {"from": "new"})]
        host.answer = plain(again, status={"server_seq": 1})
        here._following._work.cancel()
        here._following.start()
        until(lambda: [e.actor for e in look(here).events] == ["new"], "the new log")
        assert panel(look(here), "card")[0][0] == "name"
    assert json.dumps("new") in (here._following._writer.folder / "wire-log.jsonl").read_text()


def test_nobody_chooses_where_in_time_a_message_stands() -> None:
    """What is heard live stands where it was heard; what is older lies between what is known."""
    go_on, now = threading.Event(), datetime.now(UTC)
    hour_ago = now - timedelta(hours=1)

    def message(seq: int, ts: str) -> bytes:
        parts = [{"type": "text", "content": f"m{seq}"}]
        return event(seq, "acp.message", {"from": "Eve", "ts": ts, "parts": parts})

    def answer(path: str, client: socket.socket) -> None:
        if not path.startswith("/stream"):
            plain([], status={"server_seq": 4})(path, client)
            return
        begin(client)
        client.sendall(event(1, "acp.peer", {"event": "connected", "ts": hour_ago.isoformat()}))
        client.sendall(message(2, "2097-01-01T00:00:00Z"))
        client.sendall(message(3, (hour_ago + timedelta(minutes=1)).isoformat()))
        client.sendall(message(4, "1970-01-01T00:00:00Z"))
        go_on.wait(20)
        client.sendall(message(5, "1970-01-01T00:00:00Z"))
        client.sendall(message(6, datetime.now(UTC).isoformat()))
        time.sleep(20)

    with rogue(answer) as host, opened(host.url) as here:
        until(lambda: len(look(here).events) == 4, "its past")
        time.sleep(read_elsewhere.SETTLED)
        go_on.set()
        until(lambda: len(look(here).events) == 6, "the rest")
        shown = list(look(here).events)
        assert [each.order for each in shown] == [1, 2, 3, 4, 5, 6]
        assert [each.at_source for each in shown] == [
            "recorded", "inferred", "said by its sender", "inferred", "recorded", "recorded",
        ]  # fmt: skip
        assert [each.at for each in shown[:4]] == [
            hour_ago, hour_ago, hour_ago + timedelta(minutes=1), hour_ago,
        ]  # fmt: skip
        assert all(each.at and each.at >= now for each in shown[4:])
        dated = ["2097-01-01" in shown[1].summary, "1970-01-01" in shown[4].summary]
        assert dated == [True, True]
        assert all("by its sender" not in shown[place].summary for place in (0, 2, 5))
        file = here._following._writer.folder
    again = open_agent(str(file)).refresh(datetime.now(UTC))
    assert [(e.at, e.at_source) for e in again.events] == [(e.at, e.at_source) for e in shown]
