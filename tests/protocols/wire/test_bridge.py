"""A folder, served as an agent: what others see of it, when, and what they can do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from acp_core.fleet.live import watch
from acp_core.protocols.wire.bridge.serving import BridgeSetup
from acp_core.protocols.wire.network.client import address
from tests.loops import support as loops
from tests.protocols.wire.support import (
    OWNER,
    PATIENCE,
    ROOT,
    Process,
    Served,
    refused,
    served,
    until,
)


def bridge(tmp_path: Path, *allowed: str, **more: Any) -> Any:
    """A bridge to a new folder, in a thread."""
    folder = loops.make(tmp_path / "run")
    setup = BridgeSetup(str(folder), watch, frozenset(allowed))
    return served(tmp_path, "B", bridge=setup, **more)


def peer(agent: Served) -> httpx.Client:
    """Somebody who has the link and nothing else."""
    headers = {"authorization": f"Bearer {agent.agent.token}"}
    return httpx.Client(base_url=agent.url, headers=headers, timeout=PATIENCE, trust_env=False)


def events_of(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events among messages."""
    contents = [each["parts"][-1]["content"] for each in messages]
    return [each["event"] for each in contents if "event" in each]


def propose(folder: Path) -> None:
    """The server submits its proposal."""
    proposal = folder / "proposal.md"
    proposal.write_text(proposal.read_text() + "\n## Cache\n\nInvalidate by key.\n")
    loops.append(folder, "server", "proposal_submitted", 1)


def test_events_and_documents_are_messages_and_turns_are_tasks(tmp_path: Path) -> None:
    with bridge(tmp_path) as agent, peer(agent) as remote:
        card = remote.get("/card").json()
        assert (card["bridge"]["protocol"], card["bridge"]["name"]) == ("folder", "run")
        known = remote.get("/messages", params={"limit": 100}).json()["messages"]
        assert events_of(known)[0]["kind"]
        texts = {
            each["parts"][0]["content"]["document"]["id"]: each["parts"][0]["content"]["document"]
            for each in known
            if "document" in each["parts"][0].get("content", {})
        }
        assert "# Proposal" in texts["proposal.md"]["text"]
        assert "path" not in texts["proposal.md"]
        turns = remote.get("/tasks", params={"status": "working"}).json()
        assert [each["input"]["parts"][0]["content"].split(":")[0] for each in turns] == ["server"]
        assert str(tmp_path) not in json.dumps([card, known, turns])

        propose(tmp_path / "run")
        until(lambda: _phase(remote) == "reviewing", "the new phase")
        ids = [each["id"] for each in turns]
        until(lambda: ids == _ids(remote, "completed"), "the end of the turn")
        later = remote.get("/messages", params={"limit": 100}).json()["messages"]
        assert events_of(later)[-1]["kind"] == "proposal_submitted"
        assert [each["_seq"] for each in later] == sorted(each["_seq"] for each in later)


def _ids(remote: httpx.Client, status: str) -> list[str]:
    return [each["id"] for each in remote.get("/tasks", params={"status": status}).json()]


def _phase(remote: httpx.Client) -> Any:
    return remote.get("/bridge/snapshot").json()["snapshot"]["phase"]


def test_the_snapshot_brings_what_the_reader_lacks_and_no_path_of_this_machine(
    tmp_path: Path,
) -> None:
    with bridge(tmp_path) as agent, peer(agent) as remote:
        whole = remote.get("/bridge/snapshot").json()
        assert str(tmp_path) not in json.dumps(whole)
        assert whole["begin"] == 0
        assert len(whole["events"]) == whole["total"]
        propose(tmp_path / "run")
        until(lambda: remote.get("/bridge/snapshot").json()["total"] > whole["total"], "the event")
        query = {"have": whole["total"], "digest": whole["digest"]}
        more = remote.get("/bridge/snapshot", params=query).json()
        assert (more["begin"], len(more["events"])) == (whole["total"], 1)
        other = remote.get("/bridge/snapshot", params={**query, "digest": "x"}).json()
        assert other["begin"] == 0
        text = remote.get("/bridge/document", params={"id": "proposal.md"}).json()
        assert "Invalidate by key." in text["text"]
        raw = remote.get("/bridge/event", params={"id": more["events"][0]["id"]}).json()["raw"]
        assert json.loads(raw)["event"] == "proposal_submitted"
        refused(remote.get("/bridge/document", params={"id": "../x"}), 404, "ERR_NOT_FOUND")
        refused(remote.get("/bridge/event"), 400, "ERR_INVALID_REQUEST")
        refused(remote.get("/recv"), 403, "ERR_FORBIDDEN")
        refused(remote.get("/bridge/snapshot", params={"have": "x"}), 400, "ERR_INVALID_REQUEST")


def test_an_agent_that_is_no_bridge_shows_who_has_its_link_no_more_than_before(
    tmp_path: Path,
) -> None:
    with served(tmp_path) as agent, peer(agent) as remote:
        refused(remote.get("/stream"), 403, "ERR_FORBIDDEN")
        refused(remote.get("/messages"), 403, "ERR_FORBIDDEN")
        refused(remote.get("/bridge/snapshot"), 404, "ERR_NOT_FOUND")


def asked(remote: httpx.Client, action: str, **inputs: Any) -> dict[str, Any]:
    """Ask for an action as a task; the task at its end."""
    part = {"type": "data", "content": {"action": action, "inputs": inputs}}
    task = remote.post("/tasks", json={"parts": [part], "role": "user"}).json()
    return dict(remote.get(f"/tasks/{task['id']}/wait").json()["task"])


def test_actions_are_refused_unless_they_were_allowed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with bridge(tmp_path, "append", "block") as agent, peer(agent) as remote:
        before = (folder / "events.jsonl").read_bytes()
        listed = remote.get("/bridge/actions").json()
        assert listed["allowed"] == ["append", "block"]
        names = [each["name"] for each in listed["actions"]]
        assert set(names) <= {"append", "block"}
        for action, inputs, said in (
            ("unblock", {}, "not allowed here"),
            ("\x1b[2J", {}, "not allowed here"),
            (names[0], {"bogus-input-name": 1, "reason": 5}, ""),
        ):
            failed = asked(remote, action, **inputs)
            assert failed["status"] == "failed"
            assert said in failed["error"]
        plain = remote.post("/tasks", json={"text": "do something"}).json()
        ended = remote.get(f"/tasks/{plain['id']}/wait").json()["task"]
        assert (ended["status"], "this is a bridge" in ended["error"]) == ("failed", True)
        assert (folder / "events.jsonl").read_bytes() == before
        done = asked(remote, "block", reason="Waiting for a decision")
        assert done["status"] == "completed", done
        assert (folder / "events.jsonl").read_bytes() != before


def test_what_an_act_would_do_is_told_of_those_that_are_allowed_alone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with bridge(tmp_path, "block") as agent, peer(agent) as remote:
        before = (folder / "events.jsonl").read_bytes()
        ask = {"action": "block", "inputs": {"reason": "Wait"}}
        shown = remote.post("/bridge/preview", json=ask).json()["preview"]
        assert [each["path"] for each in shown["changes"]] == ["events.jsonl", "protocol.json"]
        assert str(tmp_path) not in json.dumps(shown)
        ask = {"action": "check_gates", "inputs": {}}
        other = remote.post("/bridge/preview", json=ask).json()["preview"]
        assert (other["sentence"], "not allowed here" in other["refused"]) == ("", True)
        refused(remote.post("/bridge/preview", json={"action": 5}), 400, "ERR_INVALID_REQUEST")
        part = {"type": "data", "content": {**ask, "action": "block", "dry_run": True}}
        part["content"]["inputs"] = {"reason": "Wait"}
        task = remote.post("/tasks", json={"parts": [part], "role": "user"}).json()
        ended = remote.get(f"/tasks/{task['id']}/wait").json()["task"]
        told = ended["artifact"]["parts"][0]["content"]["preview"]
        assert told["sentence"] == shown["sentence"]
        assert [each["path"] for each in told["changes"]] == ["events.jsonl", "protocol.json"]
        assert (folder / "events.jsonl").read_bytes() == before


class Bridge(Process):
    """``acp bridge`` as a process of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        super().__init__("", *options)
        self._folder = folder

    def words(self) -> list[str]:
        """See `Process.words`."""
        return ["bridge", str(self._folder), "--json", *self.options]


@pytest.mark.slow
def test_as_a_process_it_tells_nothing_twice_after_it_was_killed(tmp_path: Path) -> None:
    folder = loops.make(tmp_path / "run")
    agent = Bridge(folder, "--port", "0")
    with agent:
        first = httpx.get(f"{agent.url}/messages?limit=100", trust_env=False, auth=OWNER).json()
        agent.kill()
        propose(folder)
        agent.start()
        at = address(agent.link)
        assert at.token
        until(
            lambda: len(events_of(_all(agent.url))) == len(events_of(first["messages"])) + 1,
            "the event that came meanwhile",
        )
        ids = [each["message_id"] for each in _all(agent.url)]
        assert len(ids) == len(set(ids))
        assert agent.stop() == (0, "")


def _all(url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.get(
        f"{url}/messages?limit=100", trust_env=False, auth=OWNER
    ).json()["messages"]
    return found


def test_what_cannot_be_served_is_told_in_one_line(tmp_path: Path) -> None:
    for words, told in (
        ([str(tmp_path)], "no collaboration"),
        ([str(tmp_path / "none")], "no collaboration"),
    ):
        ran = subprocess.run(
            [sys.executable, "-m", "acp_core", "bridge", *words],
            capture_output=True, text=True, cwd=ROOT, check=False, timeout=60,
        )  # fmt: skip
        assert (ran.returncode, told in ran.stderr) == (2, True), ran.stderr


@pytest.mark.slow
def test_a_folder_that_was_begun_anew_is_told_anew_and_another_one_not_under_this_link(
    tmp_path: Path,
) -> None:
    folder = loops.make(tmp_path / "run")
    setup = BridgeSetup(str(folder), watch)
    with served(tmp_path, "B", bridge=setup) as agent:
        assert len(events_of(_all(agent.url))) == 1
    shutil.rmtree(folder)
    time.sleep(1.1)  # events bear whole seconds: the same one could not be told from the first
    loops.make(folder, objective="Another question")
    with served(tmp_path, "B", bridge=setup) as agent:
        until(lambda: len(events_of(_all(agent.url))) == 2, "the event of the new beginning")
    other = Bridge(loops.make(tmp_path / "other"), "--port", "0", "--name", "One")
    with other:
        other.stop()
    ran = subprocess.run(
        [sys.executable, "-m", "acp_core", "bridge", str(folder), "--name", "One", "--port", "0"],
        capture_output=True, text=True, cwd=ROOT, check=False, timeout=60,
    )  # fmt: skip
    assert (ran.returncode, "choose another --name" in ran.stderr) == (2, True), ran.stderr
