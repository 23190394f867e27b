"""Nobody gets what waits for a peer by saying that it is that peer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from acp_core.protocols.wire import rules
from acp_core.protocols.wire.matters import causes
from acp_core.protocols.wire.network import identity
from acp_core.protocols.wire.network.identity import new_seed, of_seed
from acp_core.protocols.wire.network.links import parse
from acp_core.protocols.wire.read.folder import Reading, Source
from acp_core.protocols.wire.schema import bodies
from acp_core.protocols.wire.schema.basics import WireError
from acp_core.protocols.wire.view import snapshot
from tests.protocols.wire.support import PATIENCE, Served, served, until

Stranger = Callable[[ClientConnection, dict[str, Any]], Awaitable[Any]]


def visit(agent: Served, talk: Stranger) -> Any:
    """Connect by hand; ``talk`` gets the connection and the frame that the agent began with."""

    async def go() -> Any:
        async with connect(parse(agent.link).websocket, proxy=None) as socket:
            return await talk(socket, await heard(socket, "acp.agent_card"))

    return asyncio.run(asyncio.wait_for(go(), PATIENCE))


async def heard(socket: ClientConnection, *kinds: str) -> dict[str, Any]:
    while True:
        frame: dict[str, Any] = json.loads(await socket.recv())
        if frame.get("type") in kinds:
            return frame


async def say(socket: ClientConnection, kind: str, **fields: Any) -> None:
    await socket.send(json.dumps({"type": kind, "message_id": kind, **fields}))


def seen(folder: Path) -> Reading:
    source = Source(folder)
    try:
        return source.read()
    finally:
        source.close()


def wrongs(folder: Path) -> tuple[list[str], list[str]]:
    """The codes of the findings, and of the causes."""
    reading, now = seen(folder), datetime.now(UTC)
    found = causes(reading, DiagnosisContext(snapshot(reading, "A", now, None), Clock(now)))
    return [f.code for f in rules.check(reading)], [c.code for c in found]


def queue_for(a: Served, folder: Path) -> tuple[dict[str, Any], str]:
    """Let B meet A and go away, and one message wait for it; B's card, and its id at A."""
    with served(folder, "B", identity=str(folder / "b.json")) as b:
        id = a.meet(b)
        assert a.get(f"/peer/{id}")["proven"] is True
        card = b.get("/card")["self"]
    until(lambda: not a.get(f"/peer/{id}")["connected"], "B's end")
    assert a.post(f"/peer/{id}/send", {"text": "for B alone"}).status_code == 202
    return card, id


def test_a_copied_card_is_not_enough(tmp_path: Path) -> None:
    with served(tmp_path, "A") as a:
        card, id = queue_for(a, tmp_path)

        async def no_proof(socket: ClientConnection, _: dict[str, Any]) -> Any:
            await say(socket, "acp.agent_card", card=card)
            await say(socket, "acp.proof", sigs=["AAAA", 5, None])
            return await heard(socket, "error", "acp.message")

        async def own_key(socket: ClientConnection, first: dict[str, Any]) -> Any:
            await say(socket, "acp.agent_card", card=card)
            stranger = of_seed(bytes(32))
            other = bodies.read_card(first["card"])
            given = identity.signatures_for(first["nonce"], card, other, stranger, stranger)
            await say(socket, "acp.proof", **given)
            return await heard(socket, "error", "acp.message")

        async def no_instance(socket: ClientConnection, _: dict[str, Any]) -> Any:
            await say(socket, "acp.agent_card", card={**card, "instance_id": None})
            await say(socket, "acp.proof", sigs=[])
            return await heard(socket, "error", "acp.message")

        for talk in (no_proof, own_key, no_instance):
            frame = visit(a, talk)
            assert (frame["type"], frame["error_code"]) == ("error", "ERR_FORBIDDEN")
        assert a.get(f"/peer/{id}")["queued"] == 1
        assert len(a.get("/peers")) == 1
        with served(tmp_path, "B", identity=str(tmp_path / "b.json")) as b:
            b.post("/peers/connect", {"link": a.link})
            until(lambda: b.get("/messages", direction="in")["total"] == 1, "what waited")
            until(lambda: a.get(f"/peer/{id}")["queued"] == 0, "the acknowledgement")


def test_a_proof_serves_once_and_for_one_asker() -> None:
    seed = new_seed()
    instance = identity.instance_of(seed)
    own = {"instance_id": identity.instance_id(instance), "session_id": "s", "name": "B"}
    asker = {"instance_id": "ed25519_other", "session_id": "t", "name": "A"}
    nonce = identity.nonce()
    given = identity.signatures_for(nonce, own, bodies.read_card(asker), instance)
    identity.check_proofs(given, nonce, asker, bodies.read_card(own))
    for wrong in (
        (given, identity.nonce(), asker, own),
        (given, nonce, {**asker, "instance_id": "ed25519_me"}, own),
        (given, nonce, {**asker, "session_id": "later"}, own),
        (given, nonce, asker, {**own, "session_id": "later"}),
        ({}, nonce, asker, own),
        ({"sigs": "x"}, nonce, asker, own),
        (given, nonce, asker, {**own, "instance_id": "ed25519_short"}),
        (given, nonce, asker, {**own, "identity": {"public_key": of_seed(bytes(32)).public_text}}),
    ):
        with pytest.raises(WireError, match="did not prove"):
            identity.check_proofs(*wrong[:3], bodies.read_card(wrong[3]))
    assert not identity.owes(bodies.read_card({"name": "Old", "instance_id": "anything"}))


def test_another_key_for_a_known_peer_is_refused_and_told(tmp_path: Path) -> None:
    with served(tmp_path, "A") as a:
        _, id = queue_for(a, tmp_path)
        with served(tmp_path, "B", identity=str(tmp_path / "other.json")) as b:
            b.post("/peers/connect", {"link": a.link})
            until(lambda: "W09" in wrongs(tmp_path / "A")[0], "the finding")
            assert a.get(f"/peer/{id}")["queued"] == 1
            assert a.get(f"/peer/{id}")["connected"] is False
            until(lambda: "a different key" in str(b.get("/peers")[0]["error"]), "the reason at B")
            assert "wire-stranger" in wrongs(tmp_path / "A")[1]
            assert a.http.delete(f"/peer/{id}").is_success  # a person says that it is right so
            until(lambda: any(p["connected"] for p in a.get("/peers")), "the connection")
        kept = [e for e in seen(tmp_path / "A").entries if b'"refused"' in e.body]
        assert len(kept) == 1  # told once, however often it tried


def test_another_agent_at_a_peer_s_link_gets_nothing_of_its_queue(tmp_path: Path) -> None:
    with served(tmp_path, "A") as a:
        with served(tmp_path, "B") as b:
            id, place = a.meet(b), parse(b.link)
        until(lambda: not a.get(f"/peer/{id}")["connected"], "B's end")
        assert a.post(f"/peer/{id}/send", {"text": "for B alone"}).status_code == 202
        with served(tmp_path / "elsewhere", "B", at=place.port) as thief:
            thief.agent.token = place.token
            until(lambda: thief.get("/peers"), "its connection")
            until(lambda: "W09" in wrongs(tmp_path / "A")[0], "the finding")
            assert thief.get("/messages", direction="in")["total"] == 0
            assert a.get(f"/peer/{id}")["queued"] == 1
            assert "another agent" in a.get(f"/peer/{id}")["error"]


def test_a_card_cannot_become_another_one_later(tmp_path: Path) -> None:
    with served(tmp_path, "A") as a:

        async def turncoat(socket: ClientConnection, _: dict[str, Any]) -> Any:
            key = of_seed(bytes(32)).public_text
            await say(socket, "acp.agent_card", card={"name": "X", "instance_id": "plain"})
            card = {"name": "X", "instance_id": "plain", "identity": {"public_key": key}}
            await say(socket, "acp.agent_card", card=card)
            return await heard(socket, "error")

        assert "cannot change" in visit(a, turncoat)["error"]


def test_who_has_no_key_is_known_by_what_it_says(tmp_path: Path) -> None:
    """An agent of another make proves nothing: its name, or the key it shows, is all there is."""
    with served(tmp_path, "A") as a:

        async def old(socket: ClientConnection, _: dict[str, Any]) -> Any:
            await say(socket, "acp.agent_card", card={"name": "Old", "acp_version": "0.8"})
            return await asyncio.to_thread(
                until, lambda: [p for p in a.get("/peers") if p["connected"]]
            )

        (peer,) = visit(a, old)
        assert (peer["name"], peer["proven"]) == ("Old", False)
