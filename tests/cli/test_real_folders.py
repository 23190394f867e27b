"""The commands over real collaborations: started, carried on and stopped by acp itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import Acp
from tests.cli.test_watch import watch


def append(acp: Acp, who: str, event: str, summary: str, reply_to: int) -> None:
    ran = acp(
        "append", "--folder", "queue", "--participant", who, "--event", event,
        "--summary", summary, "--reply-to", str(reply_to),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


@pytest.fixture
def queue(acp: Acp) -> Path:
    """A collaboration in review."""
    ran = acp(
        "init", "--folder", "queue", "--participant", "writer", "--participant", "reader",
        "--objective", "Choose a queue", "--completion", "Queue chosen",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    proposal = acp.home / "queue/proposal.md"
    proposal.write_text(proposal.read_text().replace("Not written yet.", "Take the simple one."))
    append(acp, "writer", "proposal_submitted", "Take the simple one", 1)
    return acp.home / "queue"


@pytest.mark.slow
def test_watching_ends_with_5_when_a_person_blocks_it(acp: Acp, queue: Path) -> None:
    with watch(acp, "queue", "--json") as watched:
        assert watched.change("state")["state"]["phase"] == "reviewing"
        with (queue / "proposal.md").open("a") as proposal:
            proposal.write("\nMore.\n")
        assert watched.change("document")["document"]["id"] == "proposal.md"
        ran = acp("act", "queue", "block", "--reason", "The budget is gone", "--yes")
        assert ran.returncode == 0, ran.stderr
        assert watched.change("event")["event"]["kind"] == "blocked"
        assert watched.change("phase")["phase"] == "blocked"
        assert watched.change("waiting")["waiting"] == []
        assert "The budget is gone" in watched.change("need")["need"]["text"]
        assert watched.change("status")["status"] == "blocked"
        assert watched.end() == 5
    assert acp("watch", "queue", "--once").returncode == 5
    assert acp("status").stdout.splitlines()[1].startswith("! needs you  queue")
    acp("ack", "queue", "--all")
    assert acp("status").stdout.splitlines()[1].startswith("■ blocked  queue")


def test_damage_is_shown_and_everything_else_still_too(acp: Acp, queue: Path) -> None:
    (queue / "protocol.json").write_text("{")
    (queue / "readiness.md").write_bytes(b"\xff\xfe")
    for command in (["status"], ["show", "queue"], ["show", "queue", "--json"]):
        ran = acp(*command)
        assert ran.returncode == 0
        assert "Traceback" not in ran.stdout + ran.stderr
    [one] = json.loads(acp("status", "--json").stdout)["collaborations"]
    assert one["finding_counts"]["error"] > 0
    assert one["event_count"] == 2


def test_hostile_text_in_every_field_is_harmless(acp: Acp, queue: Path) -> None:
    """Escape sequences in the log, the state and the documents, printed by every command."""
    bad = "x\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\u202e[@click=app.quit][/x]"
    state = json.loads((queue / "protocol.json").read_text())
    state |= {"objective": bad, "completionGates": [bad], "currentPhase": bad}
    (queue / "protocol.json").write_text(json.dumps(state))
    event = {"seq": 3, "from": bad, "event": bad, "at": bad, "summary": bad, "doc": bad}
    with (queue / "events.jsonl").open("a") as log:
        log.write(json.dumps(event, ensure_ascii=False) + "\n")
    (queue / "readiness.md").write_text(f"- [unresolved] {bad}\n- [ ] {bad}\n")
    for command in (
        ["status"], ["status", "--json"], ["show", "queue"], ["show", "queue", "--json"],
        ["watch", "queue", "--once"], ["watch", "queue", "--once", "--json"],
        ["act", "queue"], ["act", "queue", "--json"], ["find", "click"],
        ["find", "click", "--json"], ["next", "--folder", "queue", "--participant", "reader"],
        ["validate", "--folder", "queue"],
    ):  # fmt: skip
        ran = acp(*command)
        printed = ran.stdout + ran.stderr
        assert not set("\x1b\x07\x9b\u202e") & set(printed), command
        assert "Traceback" not in printed
