"""The past of an agent of this machine, as far as the log in its own store tells it."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from acp_core.history.past import Past, Then
from acp_core.model import Status
from acp_core.protocols.discovery import DiscoveredCollaboration
from acp_core.protocols.wire import PROTOCOL
from acp_core.protocols.wire.collaboration import open_agent
from acp_core.protocols.wire.read import folder as reading
from acp_core.protocols.wire.schema.basics import Json
from acp_core.protocols.wire.write import records
from acp_core.protocols.wire.write.database import Tx, connect
from tests.cli.support import Acp
from tests.protocols.wire.support import panel

START = datetime(2026, 3, 21, 7, 0, tzinfo=UTC)


class Store:
    """An agent's store, written as the agent writes it, at times of our own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.db = connect(folder / reading.FILE)
        self.tx = Tx(self.db)

    def log(self, kind: str, minute: float, **fields: Any) -> int:
        task = fields.get("task_id")
        return records.add_log_entry(
            self.tx, kind, {"type": kind, "ts": text(minute), **fields}, task
        )

    def message(self, minute: float, direction: str, peer: str, said: str, **more: Any) -> int:
        def make(seq: int) -> tuple[Json, Json]:
            parts = [{"type": "text", "content": said}]
            body = {"type": "acp.message", "message_id": f"m{seq}", "ts": text(minute)}
            return {**body, "from": "B", "role": "agent", "parts": parts, **more}, {}

        seq = records.add_message(self.tx, direction, "o", f"{said}{minute}", peer, make).seq
        at = (START + timedelta(minutes=minute)).timestamp()
        self.db.execute("UPDATE messages SET at = ? WHERE seq = ?", (at, seq))
        return seq

    def task(self, minutes: dict[str, float], **fields: Any) -> Json:
        """A task of which every step stands in the log."""
        history = [{"status": state, "at": text(at)} for state, at in minutes.items()]
        last = history[-1]
        asked = {"parts": [{"type": "text", "content": "count the words"}]}
        task = {
            "id": "t1", "direction": "received", "peer_id": "peer_001", "context_id": None,
            "input": asked, "created_at": history[0]["at"], "updated_at": last["at"],
            "status": last["status"], "history": history, **fields,
        }  # fmt: skip
        records.save_task(self.tx, task)
        return task

    def step(self, minute: float, state: str, **fields: Any) -> int:
        common = {"task_id": "t1", "peer_id": "peer_001", "direction": "received"}
        return self.log("acp.status", minute, state=state, **{**common, **fields})


def text(minute: float) -> str:
    return (START + timedelta(minutes=minute)).isoformat().replace("+00:00", "Z")


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """Met, asked to work, asking back, done; then alone."""
    folder = tmp_path / "A"
    store = Store(folder)
    row = records.add_peer(store.tx, "id-b", "B", None, False)
    records.save_peer(store.tx, row._replace(connected_at=text(0), disconnected_at=text(20)))
    common = {"peer_id": "peer_001", "name": "B"}
    store.log("acp.peer", 0, event="connected", peer_count=1, **common)
    # its clock is years ahead: that the message says so must move nothing
    store.message(2, "in", "peer_001", "count them", ts="2097-01-01T00:00:00Z")
    steps = {"submitted": 3, "working": 4, "input_required": 6, "completed": 12}
    store.task(steps)
    store.step(3, "submitted")
    store.step(4, "working")
    store.step(6, "input_required")
    store.step(9, "working")
    artifact = {"parts": [{"type": "text", "content": "seven words"}]}
    store.log("acp.artifact", 11, task_id="t1", artifact=artifact)
    store.step(12, "completed")
    store.message(14, "out", "peer_001", "done")
    store.log("acp.peer", 20, event="disconnected", peer_count=0, **common)
    store.db.close()
    return folder


def past(folder: Path) -> Past:
    return Past(DiscoveredCollaboration(str(folder), PROTOCOL), datetime.now(UTC))


def moments(folder: Path) -> list[Then]:
    opened = past(folder)
    try:
        return [opened.at(place) for place in range(len(opened.moments))]
    finally:
        opened.close()


def test_it_is_shown_as_it_stood_after_each_entry(agent: Path) -> None:
    stood = moments(agent)
    minutes = [(each.moment.at - START.timestamp()) / 60 for each in stood]
    assert minutes == pytest.approx([0, 2, 3, 4, 6, 9, 11, 12, 14, 20])
    states = [(panel(each.snapshot, "tasks") or [("", "none")])[0][1] for each in stood]
    assert states == [
        "none", "none", "submitted", "working", "input_required", "working", "working",
        "completed", "completed", "completed",
    ]  # fmt: skip
    met = [panel(each.snapshot, "peers")[0] for each in stood]
    assert [cells[2] for cells in met] == ["connected"] * 9 + ["away"]
    assert [cells[4:6] for cells in met] == [("0", "0")] + [("0", "1")] * 7 + [("1", "1")] * 2
    assert [len(each.snapshot.events) for each in stood] == list(range(1, 11))
    artifacts = [len(panel(each.snapshot, "artifacts")) for each in stood]
    assert artifacts == [0] * 6 + [1] * 4
    asked = stood[4].snapshot
    assert [turn.participant for turn in asked.turns] == ["B"]
    assert "answer t1: count the words" in asked.turns[0].what
    assert (asked.phase, asked.status, asked.name) == ("running", Status.ACTIVE, "A")
    assert asked.headline == "1 of 1 peer connected; 1 task open"
    assert asked.key == str(agent)


def test_what_the_log_does_not_tell_is_said_to_be_unknown(agent: Path) -> None:
    opened = past(agent)
    try:
        then = opened.at(3).snapshot
        assert "does not contain" in then.doubt
        assert panel(then, "peers")[0][6:8] == ("not known", "not known")
        assert ("the rest", "not known") in panel(then, "card")
        assert opened.raw_event(2, "1").startswith('{"type":"acp.peer"')
        # back again, and to a moment at which nothing was written: whether it ran nobody knows
        assert len(opened.at(0).snapshot.events) == 1
        later = START + timedelta(minutes=17)
        between = opened._stage and opened._stage.refresh(later)
        assert between is not None
        assert (between.phase, between.status) == ("not known", Status.UNKNOWN)
    finally:
        opened.close()


def test_a_canceled_task_ends_the_turn_without_an_event(tmp_path: Path) -> None:
    store = Store(tmp_path / "A")
    store.step(1, "submitted", direction="delegated")
    store.step(2, "canceled", direction="delegated")
    store.step(3, "working", task_id="t2", direction="local")
    store.db.close()
    here = open_agent(str(tmp_path / "A"))
    here.refresh(datetime.now(UTC))
    first, second = here.story().turns
    here.close()
    assert (first.participant, first.event, first.ended) == (
        "somebody", None, START + timedelta(minutes=2),
    )  # fmt: skip
    assert (second.participant, second.ended) == ("A", None)


def test_a_log_that_was_cut_begins_with_what_is_known_of_before(agent: Path) -> None:
    db = sqlite3.connect(agent / reading.FILE, isolation_level=None)
    db.execute("DELETE FROM messages WHERE seq < 6")
    db.execute("DELETE FROM log WHERE seq < 6")
    db.close()
    first = moments(agent)[0].snapshot
    assert "entries before 6 are not read" in first.doubt
    assert panel(first, "peers")[0][2] == "connected"
    assert panel(first, "tasks")[0][1] == "working"


def test_hostile_entries_keep_nobody_from_the_past(agent: Path) -> None:
    db = sqlite3.connect(agent / reading.FILE, isolation_level=None)
    deep = "[" * 60 + "]" * 60
    bodies = (
        "[]", "nope", '{"parts":5,"from":[1],"ts":7}', '{"type":"x","state":{},"task_id":"x"}',
        '{"ts":"9999-12-31T23:59:59Z","event":"connected","peer_id":"\\u001b[2J"}',
        '{"task_id":"\\ud800","state":"working"}', f'{{"task_id":"d","parts":{deep}}}',
        '{"task_id":"n","state":NaN,"artifact":{"parts":[NaN]}}', '{"_peer_id":"p","_direction":5}',
    )  # fmt: skip
    for body in bodies:
        for kind in ("acp.message", "acp.status", "acp.artifact", "acp.peer", "\x1b[2J"):
            db.execute("INSERT INTO log (kind, body) VALUES (?, ?)", (kind, body.encode()))
    db.execute("UPDATE messages SET at = 'x' WHERE seq = 2")
    db.execute("UPDATE tasks SET content = json_set(content, '$.history', 7)")
    db.close()
    stood = moments(agent)
    assert len(stood) == 10 + 5 * len(bodies)
    assert len(stood[-1].snapshot.events) == len(stood)
    assert "\x1b" not in repr(stood[-1].snapshot)


def test_a_large_log_is_told_within_bounds(agent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acp_core.protocols.wire.past.BYTES", 800)
    last = moments(agent)[-1].snapshot
    assert len(last.events) == 10
    assert last.events[1].kind.startswith("message to ")


def test_the_commands_tell_of_it(agent: Path, tmp_path: Path) -> None:
    acp = Acp(tmp_path)

    def shown(*words: str) -> str:
        done = acp(words[0], str(agent), *words[1:])
        assert done.returncode == 0, done.stderr
        return done.stdout

    at = shown("replay", "--at", "5", "--utc")
    assert "1 task open" in at
    assert "does not contain" in at
    assert at.count("2097") == at.count("dated 2097-01-01 00:00:00 +0000 by its sender") == 1
    stats = shown("stats")
    assert "messages sent" in stats
    assert "20 min" in stats.split("lead time")[1].splitlines()[0]
    assert "B" in shown("chart")
    assert "tasks completed" in shown("report", "--format", "md")
    refused = acp("launch", str(agent), "A=claude")
    assert (refused.returncode, "have no turns" in refused.stderr) == (2, True)


def test_it_is_carried_elsewhere_without_its_keys(agent: Path, tmp_path: Path) -> None:
    (agent / "agent.json").write_text('{"token": "tok_secret"}')
    acp, carried = Acp(tmp_path), tmp_path / "carried"
    done = acp("export", str(agent), "-o", str(tmp_path / "A.zip"))
    assert done.returncode == 0, done.stderr
    assert acp("import", str(tmp_path / "A.zip"), str(carried)).returncode == 0
    assert [each.name for each in carried.iterdir()] == ["wire-log.jsonl"]
    assert b"tok_secret" not in (carried / "wire-log.jsonl").read_bytes()
    here, there = open_agent(str(agent)), open_agent(str(carried))
    was, shown = here.refresh(START), there.refresh(START + timedelta(days=1))
    assert list(shown.events) == list(was.events)
    assert (shown.phase, shown.needs, there.actions(START)) == ("not known", (), ())
    assert panel(shown, "tasks") == panel(was, "tasks")
    at = acp("replay", str(carried), "--at", "5")
    assert "1 task open" in at.stdout, at.stderr
