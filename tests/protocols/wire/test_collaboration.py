"""An agent in the dashboard: read from its own folder, live, and acted in through itself."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from acp_core.fleet import Fleet
from acp_core.model import OutcomeState, Snapshot, SourceState, Status, Verdict
from acp_core.person.paths import state_folder
from acp_core.protocols.discovery import discover
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from acp_core.protocols.wire.collaboration import AgentFolder, detect, open_agent
from acp_core.protocols.wire.network.agent_directory import folder_of
from acp_core.protocols.wire.read import folder
from acp_core.protocols.wire.rules import RULES
from acp_core.protocols.wire.write import connect
from acp_tui.widgets.lines import text_of
from acp_tui.widgets.panel_view import items
from tests.protocols.wire.support import OWNER, Process, do, panel, post, until

OPTIONS = ("--port", "0", "--http-port", "0", "--sync", "normal")


@pytest.fixture
def two() -> Iterator[tuple[Process, Process]]:
    with Process("A", *OPTIONS, "--skills", "cook") as a, Process("B", *OPTIONS) as b:
        post(a, "/peers/connect", {"link": b.link})
        until(lambda: len(get(b, "/peers")) == 1, "the connection")
        yield a, b


def get(agent: Process, path: str) -> Any:
    return httpx.get(f"{agent.url}{path}", trust_env=False, auth=OWNER).json()


def opened(name: str) -> AgentFolder:
    return open_agent(str(folder_of(name)))


def look(agent: AgentFolder, after: float = 0.0) -> Snapshot:
    return agent.refresh(datetime.now(UTC) + timedelta(seconds=after))


def test_agents_are_found_and_what_they_do_is_seen(two: tuple[Process, Process]) -> None:
    a, b = two
    found = {each.key for each in discover([state_folder()]).found}
    assert found == {str(folder_of("A")), str(folder_of("B"))}
    here, there = opened("A"), opened("B")
    first = look(here)
    assert look(here) is first
    assert (first.name, first.status, first.phase) == ("A", Status.ACTIVE, "running")
    assert first.headline == "1 of 1 peer connected"
    assert ("skills", "cook") in panel(first, "card")

    outcome = do(here, "send", peer="peer_001", text="Boil \x1b[31m[b]it[/b]", task=True)
    assert outcome.state is OutcomeState.DONE
    task = get(a, "/tasks")[0]["id"]
    until(lambda: panel(look(there), "tasks"), "the task's arrival")
    second = look(here)
    (tasks,) = (each for each in second.panels if each.id == "tasks")
    heading = text_of(items(tasks, cells=50)[0].pieces)
    assert heading.split() == ["id", "state", "about"], "what it is about, however narrow"
    assert second.events[0] is first.events[0]
    message = next(event for event in second.events if event.kind.startswith("message"))
    assert (message.kind, "Boil" in message.summary) == ("message to B", True)
    assert "\x1b" not in message.summary
    assert f'"task_id":"{task}"' in here.raw_event(message.id)
    assert [turn.participant for turn in second.turns] == ["B"]

    post(b, f"/tasks/{task}:update", {"status": "input_required"})
    asked = until(lambda: look(here) if look(here).needs else None, "the question")
    assert asked.needs[0].given == (("task", task),)
    assert "B needs input" in asked.headline
    assert asked.needs[0].sentence.endswith(": Boil ␛[31m[b]it[/b]")
    assert not look(there).needs
    assert do(here, "answer", task=task, text="ten minutes").state is OutcomeState.DONE
    post(b, f"/tasks/{task}:update", {"status": "completed", "artifact": "boiled"})
    done = until(lambda: look(here) if panel(look(here), "artifacts") else None, "the result")
    assert [(row[0], row[-1]) for row in panel(done, "artifacts")] == [(task, "boiled")]
    assert [event.actor for event in done.events if event.kind == "task completed"] == ["B"]
    said = {event.kind: event.summary for event in done.events}
    assert said["task submitted"] == said["task completed"] == "Boil ␛[31m[b]it[/b]"
    assert said["artifact"] == "boiled [Boil ␛[31m[b]it[/b]]"
    assert not any(task in summary for summary in said.values())
    assert {each.name for each in here.actions(datetime.now(UTC))} == {
        "send", "connect", "forget",
    }  # fmt: skip
    refusal = do(here, "connect", link=a.link)
    assert (refusal.state, "own link" in refusal.sentence) == (OutcomeState.REFUSED, True)
    for one in (here, there):
        one.close()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b"SQLite format 3\x00" + b"x" * 5000),
        lambda path: path.write_bytes(b""),
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[:8192]),
        lambda path: tables(path, "DROP TABLE log"),
        lambda path: tables(path, "PRAGMA user_version=77"),
        lambda path: tables(path, "INSERT INTO tasks VALUES ('x','y','z',NULL,NULL,'','','[[[')"),
        lambda path: tables(path, "INSERT INTO peers (name, card) VALUES (x'ff', '{')"),
    ],
)
def test_a_store_that_is_none_is_told_in_one_line(tmp_path: Path, spoil: Any) -> None:
    connect(tmp_path / folder.FILE).close()
    here = open_agent(str(tmp_path))
    good = look(here)
    assert (good.source.state, good.status) == (SourceState.LIVE, Status.COMPLETED)
    here.close()
    spoil(tmp_path / folder.FILE)
    after = look(here)
    assert after.source.state is SourceState.STALE
    assert after.source.note.startswith("wire.sqlite3")
    anew = look(open_agent(str(tmp_path)))
    assert (anew.source.state, anew.status) == (SourceState.UNREACHABLE, Status.UNKNOWN)
    fleet = Fleet([tmp_path], discover=False)
    (read,) = fleet.read()
    asyncio.run(fleet.close())
    assert read.source.state is SourceState.UNREACHABLE


def tables(path: Path, statement: str) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(statement)
    db.close()


def test_odd_things_in_a_store_are_shown_as_they_are(tmp_path: Path) -> None:
    """Strangers' rows: JSON of another shape, a task without anything, hostile names."""
    path = tmp_path / folder.FILE
    db = connect(path)
    for body in ("[]", "nope", '{"parts":5,"from":[1],"ts":7}', '{"type":"x","state":{}}'):
        for kind in ("acp.message", "acp.status", "acp.artifact", "acp.peer", "\x1b[2J"):
            db.execute("INSERT INTO log (kind, body) VALUES (?, ?)", (kind, body.encode()))
    db.execute("INSERT INTO tasks VALUES ('t','w','l',NULL,NULL,'a','b','{}')")
    db.execute(
        "INSERT INTO tasks VALUES ('u','w','l','p',NULL,'a','b',?)",
        ('{"status":"input_required"}',),
    )
    db.execute("INSERT INTO peers (name, card) VALUES (?, '[]')", ("\x1b]0;x\x07[b]",))
    db.close()
    here = open_agent(str(tmp_path))
    snapshot = look(here)
    assert snapshot.source.state is SourceState.LIVE
    assert len(snapshot.events) == 20
    assert "\x1b" not in repr(snapshot)
    list(here.causes(DiagnosisContext(snapshot, Clock(snapshot.as_of))))
    here.close()


def test_messages_are_held_against_the_specification(tmp_path: Path) -> None:
    good = {
        "type": "acp.message", "message_id": "m", "ts": "2026-03-21T07:00:00Z", "from": "A",
        "role": "user", "parts": [{"type": "text", "content": "x"}],
    }  # fmt: skip
    bodies: dict[str, dict[str, Any]] = {
        "": good,
        "W01": {**good, "from": None},
        "W02": {**good, "role": "system"},
        "W03": {**good, "ts": "yesterday"},
        "W04": {**good, "parts": [{"type": "file", "url": "file:///x"}]},
        "W05": {**good, "_ed25519_invalid": True},
        "W06": {**good, "_sig_missing": True},
        "W07": {**good, "_legacy": True},
        "W10": {**good, "_sig_verified": True, "_sig_old": True},
        "W11": {**good, "_ed25519_missing": "B"},
        "W12": {**good, "_other_name": True, "_sender": "B"},
        "W19": {**good, "parts": [{"type": "text", "content": "x\U000e0041"}]},
    }
    db = connect(tmp_path / folder.FILE)
    for body in bodies.values():
        data = json.dumps(body).encode()
        db.execute("INSERT INTO log (kind, body) VALUES ('acp.message', ?)", (data,))
    moved = json.dumps({"event": "moved", "name": "B", "peer_id": "peer_001"}).encode()
    db.execute("INSERT INTO log (kind, body) VALUES ('acp.peer', ?)", (moved,))
    task = json.dumps({"id": "t", "status": "bogus"})
    db.execute("INSERT INTO tasks VALUES ('t','bogus','local',NULL,NULL,'a','b',?)", (task,))
    here = open_agent(str(tmp_path))
    snapshot = look(here)
    codes = [finding.code for finding in snapshot.findings]
    assert sorted(codes) == sorted(RULES)
    assert codes[:-2] == [code for code in bodies if code]
    assert snapshot.verdict is Verdict.INVALID
    assert snapshot.findings[0].event == "2"
    data = json.dumps(bodies["W06"]).encode()
    for _ in range(50):
        db.execute("INSERT INTO log (kind, body) VALUES ('acp.message', ?)", (data,))
    many = [finding for finding in look(here).findings if finding.code == "W06"]
    assert len(many) == 21
    assert many[0].message == "31 earlier ones of this kind"
    db.execute("DELETE FROM tasks")
    db.execute("DELETE FROM log WHERE seq > 1")
    db.close()
    here.close()
    assert look(open_agent(str(tmp_path))).verdict is Verdict.VALID


def test_only_a_folder_with_a_store_is_an_agent(tmp_path: Path) -> None:
    assert not detect(tmp_path)
    (tmp_path / folder.FILE).write_text("text")
    assert not detect(tmp_path)
    (tmp_path / folder.FILE).unlink()
    connect(tmp_path / folder.FILE).close()
    assert detect(tmp_path)
