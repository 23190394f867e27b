"""An agent of another make is back with a new link: what waits for it moves, where its owner says so."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from acp_core.model import OutcomeState
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from acp_core.protocols.wire.acts.table import COMMANDS
from acp_core.protocols.wire.collaboration import open_agent
from acp_core.protocols.wire.network.agent_directory import folder_of
from tests.protocols.wire.support import Process, refused, served, until
from tests.protocols.wire.teams import Member

OPTIONS = ("--port", "0", "--http-port", "0", "--sync", "normal")


@contextmanager
def host(name: str, token: str) -> Iterator[tuple[str, list[str]]]:
    """An agent of another make: no identity, a new token at each start; its link, and what it gets."""
    got: list[str] = []

    def taken(socket: ServerConnection) -> None:
        socket.send(json.dumps({"type": "acp.agent_card", "card": {"name": name}}))
        try:
            for text in socket:
                frame = json.loads(text)
                if frame.get("type") == "acp.message":
                    got.append(frame["parts"][0]["content"])
        except ConnectionClosed:
            return

    server = serve(taken, "127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"acp://127.0.0.1:{server.socket.getsockname()[1]}/{token}", got
    finally:
        server.shutdown()
        thread.join()


def met(a: Member, link: str) -> str:
    id = str(a.post("/peers/connect", link=link)["peer_id"])
    until(lambda: a.get(f"/peer/{id}")["connected"], "the connection")
    return id


def connected(a: Member, id: str) -> bool:
    return bool(a.get(f"/peer/{id}")["connected"])


@pytest.mark.parametrize("by_command", [False, True])
def test_what_waits_moves_to_the_peer_that_it_is_now(
    by_command: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with Process("A", *OPTIONS) as agent:
        a = Member("A", agent.url, agent.pid)
        with host("Elder", "tok_1") as (link, _):
            old = met(a, link)
        until(lambda: not connected(a, old), "the end of the connection")
        for n in range(3):
            a.post(f"/peer/{old}/send", text=f"{n}", create_task=n == 0)
        with host("Elder", "tok_2") as (link, got):
            new = met(a, link)
            here = open_agent(str(folder_of("A")))
            snapshot = here.refresh(datetime.now(UTC))
            later = DiagnosisContext(snapshot, Clock(snapshot.as_of + timedelta(hours=1)))
            (cause,) = (each for each in here.causes(later) if each.code == "wire-peer-away")
            assert (cause.remedy, dict(cause.given)) == ("move", {"peer": old, "to": new})
            assert f"move it to Elder ({new}), if that is the same agent" in cause.instruction
            if by_command:
                assert COMMANDS.main(("move", "A", old, new, "--dry-run")) == 0
                assert "acp cannot verify that" in capsys.readouterr().out
                assert not got
                assert COMMANDS.main(("move", "A", old, new)) == 0
                assert "3 waiting" in capsys.readouterr().out
            else:
                action = here.action("move", datetime.now(UTC))
                assert action
                done = action.perform(action.inputs(**dict(cause.given)))
                assert done.state is OutcomeState.DONE
            until(lambda: got == ["0", "1", "2"], "all, in their order")
            assert {each["peer_id"] for each in a.get("/tasks")} == {new}
            a.post(f"/peer/{new}/send", text="3")
            until(lambda: got == ["0", "1", "2", "3"], "what comes after")
            until(lambda: not any(peer["queued"] for peer in a.get("/peers")), "an empty queue")
            here.close()


def test_nothing_moves_where_it_makes_no_sense(tmp_path: Path) -> None:
    with served(tmp_path, "A") as a, served(tmp_path, "B") as b:
        id = a.meet(b)

        def wrong(peer: str, body: dict[str, Any], status: int, code: str, why: str = "") -> None:
            assert why in refused(a.post(f"/peer/{peer}/move", body), status, code)["error"]

        wrong(id, {}, 400, "ERR_INVALID_REQUEST")
        wrong(id, {"to": id}, 400, "ERR_INVALID_REQUEST", "must be another peer")
        wrong(id, {"to": "peer_009"}, 404, "ERR_NOT_FOUND")
        never = a.post("/peers/connect", {"link": "acp://127.0.0.1:9/tok_x"}).json()["peer_id"]
        wrong(id, {"to": never}, 400, "ERR_INVALID_REQUEST", "B is connected")
        other = a.post("/peers/connect", {"link": "acp://127.0.0.1:9/tok_y"}).json()["peer_id"]
        wrong(never, {"to": other}, 400, "ERR_INVALID_REQUEST", "has never been connected")
        link = {"authorization": f"Bearer {a.agent.token}"}
        refused(a.post(f"/peer/{never}/move", {"to": id}, headers=link), 403, "ERR_FORBIDDEN")
