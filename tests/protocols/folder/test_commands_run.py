"""A whole collaboration with nothing but the commands that agents use."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from acp_core.protocols.folder.schema import records
from tests.protocols.folder.acting import Ran, acp, append, spawn
from tests.protocols.folder.support import make_v1, make_v2

PEOPLE = ("server", "reader", "reviewer")


class Run:
    """A collaboration from init on; every step must succeed and leave it valid."""

    def __init__(self, folder: Path, *more: str) -> None:
        self.folder = folder
        self.seq = 1
        people = [word for name in PEOPLE for word in ("--participant", name)]
        self.check(
            acp("init", "--folder", folder, *people, "--objective", "Choose a cache",
                "--completion", "The contract is agreed", *more)
        )  # fmt: skip

    def check(self, ran: Ran) -> None:
        assert ran.code == 0 and not ran.err, ran
        assert acp("validate", "--folder", self.folder) == Ran(0, "ACP validation passed\n", "")

    def say(self, who: str, event: str, doc: str, **more: object) -> None:
        ran = append(self.folder, who, event, self.seq, f"{who} says {event}.", doc=doc, **more)
        self.seq += 1
        assert ran.out == f"appended seq {self.seq}: {event}\n", ran
        self.check(ran)

    def next(self, who: str) -> str:
        ran = acp("next", "--folder", self.folder, "--participant", who)
        assert ran.code == 0
        return ran.out.splitlines()[-1].removeprefix("next action: ")

    def edit(self, name: str, pattern: str, new: str) -> None:
        path = self.folder / name
        text, count = re.subn(pattern, new, path.read_text(encoding="utf-8"), flags=re.M)
        assert count, (pattern, text)
        path.write_text(text, encoding="utf-8")

    def review(self, who: str, body: str) -> None:
        file = self.folder.parent / f"{who}.md"
        file.write_text(body, encoding="utf-8")
        self.say(who, "review_submitted", "review.md", review_file=file)
        assert f" - {who} - seq {self.seq}\n\n{body}" in (self.folder / "review.md").read_text()

    def conclude(self, titles: list[str], *more: str) -> None:
        sections = "".join(f"\n## {title}\n\nAs agreed.\n" for title in titles)
        (self.folder / "conclusion.md").write_text(
            f"# Conclusion\n\n## Decision Outcome\n\n- [proceed] Build it.\n{sections}"
            + "".join(more)
        )


BODY = "Context:\n- Read `proposal.md`.\n\nPosition:\n- In favour.\n"


def test_a_v1_collaboration_from_init_to_completed(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    assert run.next("server").startswith("update proposal.md, then append proposal_submitted.")
    run.edit("proposal.md", r"^Not written yet\.$", "Push, then poll.")
    run.say("server", "proposal_submitted", "proposal.md")
    assert run.next("reader").startswith("append a structured review to review.md")
    run.review("reader", BODY)
    run.review("reviewer", BODY)
    assert run.next("server").startswith("revise proposal.md, address required changes")
    run.say("server", "proposal_submitted", "proposal.md")  # another review round
    run.review("reviewer", BODY)
    run.review("reader", BODY)
    run.say("server", "proposal_revised", "proposal.md")
    assert "classify every open question" in run.next("server")
    early = append(run.folder, "reader", "decision_accepted", run.seq)
    assert "requires question_classified" in early.err
    open_yet = append(run.folder, "server", "question_classified", run.seq, doc="readiness.md")
    run.seq += 1
    assert open_yet.code == 0 and "still holds unresolved questions" in open_yet.err
    blocked = append(run.folder, "reader", "decision_accepted", run.seq, doc="decisions.md")
    assert "unresolved readiness questions must be classified first" in blocked.err
    run.edit("readiness.md", r"^- \[unresolved\].*$", "- [resolved] Who starts? The server.")
    run.edit("decisions.md", r"^None yet.*$", "- Push, then poll.")
    for who in PEOPLE:
        assert "append decision_accepted" in run.next(who)
        run.say(who, "decision_accepted", "decisions.md")
    assert run.next("server").startswith("complete the final design checklist")
    run.edit("readiness.md", r"^- \[ \]", "- [x]")
    run.say("server", "readiness_passed", "readiness.md")
    assert run.next("server").startswith("write conclusion.md with the final outcome")
    run.conclude(
        ["Rationale", "Accepted Decisions", "Implementation Approach", "Assumptions",
         "Deferred Follow-ups", "Implementation Blockers", "Next Action"]
    )  # fmt: skip
    assert run.next("server").startswith("run acp validate, then append completed")
    run.say("server", "completed", "conclusion.md")
    assert run.next("reader") == "stop; collaboration is complete."
    protocol = records.decode_protocol((run.folder / "protocol.json").read_bytes())
    assert (protocol["currentPhase"], protocol["waitingFor"]) == ("completed", [])


def test_next_tells_phase_owner_and_who_is_waited_for(folder: Path) -> None:
    ran = acp("next", "--folder", folder, "--participant", "server")
    assert ran.code == 0 and ran.out == (
        "phase: reviewing\n"
        "proposal owner: server\n"
        "waiting for: reader, reviewer\n"
        "last event: seq 2 proposal_submitted from server\n"
        "next action: wait for the listed reviewer(s); do not edit proposal.md, decisions.md, "
        "readiness.md, or protocol.json unless blocking the collaboration.\n"
    )
    told = json.loads(acp("next", "--folder", folder, "--participant", "reader", "--json").out)
    assert told["schema"] == "acp.next/1" and told["yourTurn"] is True
    assert told["waitingFor"] == ["reader", "reviewer"] and told["lastEvent"]["seq"] == 2


def test_next_follows_the_log_when_protocol_json_lags(folder: Path) -> None:
    old = (folder / "protocol.json").read_bytes()
    append(folder, "reader", "review_submitted", 2)
    append(folder, "reviewer", "review_submitted", 2)
    (folder / "protocol.json").write_bytes(old)
    assert acp("next", "--folder", folder, "--participant", "server").out.startswith(
        "phase: revising"
    )
    ready = acp("wait", "--folder", folder, "--participant", "server", "--timeout", "5")
    assert ready.code == 0 and ready.out.startswith("ready: server is listed in waitingFor\n")


def test_an_event_that_only_lacks_its_newline_counts(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "revising")
    log = (folder / "events.jsonl").read_bytes()
    (folder / "events.jsonl").write_bytes(log[:-1])
    ready = acp("wait", "--folder", folder, "--participant", "server", "--interval", "0.05")
    assert ready.code == 0 and "last event: seq 4 review_submitted from reviewer" in ready.out
    (folder / "events.jsonl").write_bytes(log[:-20])
    ran = acp("wait", "--folder", folder, "--participant", "server", "--interval", "0.1",
              "--timeout", "0.4")  # fmt: skip
    assert ran == Ran(
        1,
        "waiting: waiting for reviewer after seq 3\n",
        "timeout: waiting for reviewer after seq 3\n",
    )


def test_next_without_an_event_says_that_the_phase_is_unknown(fresh: Path) -> None:
    (fresh / "events.jsonl").write_bytes(b"")
    ran = acp("next", "--folder", fresh, "--participant", "server")
    assert ran.code == 1 and "phase: unknown" in ran.out and "last event: none" in ran.out


@pytest.mark.parametrize("command", ["next", "wait"])
def test_what_cannot_be_read_ends_with_one_line(tmp_path: Path, folder: Path, command: str) -> None:
    (tmp_path / "empty").mkdir()
    for where, who, said in (
        (folder, "ghost", "participant 'ghost' is not listed in protocol.json"),
        (tmp_path / "nowhere", "reader", "missing protocol.json in"),
        (tmp_path / "empty", "reader", "missing protocol.json in"),
    ):
        ran = acp(command, "--folder", where, "--participant", who)
        assert ran.code == 2 and said in ran.err and ran.err.count("\n") == 1
    (folder / "protocol.json").write_bytes(b"{")
    assert "invalid protocol.json" in acp(command, "--folder", folder, "--participant", "x").err


def test_wait_says_for_whom_and_gives_up_after_its_timeout(folder: Path) -> None:
    flags = ("wait", "--folder", folder, "--participant", "server", "--interval", "0.01")
    ran = acp(*flags, "--timeout", "0.05")
    said = "waiting for reader, reviewer after seq 2"
    assert ran == Ran(1, f"waiting: {said}\n", f"timeout: {said}\n")
    told = json.loads(acp(*flags, "--timeout", "0.05", "--json").out)
    assert (told["schema"], told["outcome"], told["reason"]) == ("acp.wait/1", "timeout", said)
    assert acp(*flags[:-1], "0").code == acp(*flags, "--timeout", "-1").code == 2
    assert acp(*flags[:-1], "nan").code == 2


@pytest.mark.parametrize("upto", ["completed", "blocked"])
def test_wait_returns_when_the_collaboration_has_ended(tmp_path: Path, upto: str) -> None:
    blocked = "No budget." if upto == "blocked" else ""
    folder = make_v1(tmp_path / "run", "completed" if not blocked else "reviewing", blocked=blocked)
    ran = acp("wait", "--folder", folder, "--participant", "reader")
    assert ran.code == 0 and ran.out.startswith(f"ready: phase is {upto}\nphase: {upto}\n")


def test_wait_sees_each_change_and_ends_with_the_turn(folder: Path) -> None:
    """A real process waits while two reviewers answer, and protocol.json is caught half written."""
    waiting = spawn(
        "wait", "--folder", folder, "--participant", "server", "--interval", "0.02", "--timeout", "60"
    )  # fmt: skip
    assert waiting.stdout
    assert waiting.stdout.readline() == "waiting: waiting for reader, reviewer after seq 2\n"
    assert append(folder, "reviewer", "review_submitted", 2).code == 0
    assert waiting.stdout.readline() == "waiting: waiting for reader after seq 3\n"
    protocol = (folder / "protocol.json").read_bytes()
    (folder / "protocol.json").write_bytes(b"")
    time.sleep(0.1)
    (folder / "protocol.json").write_bytes(protocol)
    assert append(folder, "reader", "review_submitted", 2).code == 0
    out, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 0 and not err
    assert out.startswith("ready: server is listed in waitingFor\nphase: revising\n")


def test_wait_can_be_interrupted(folder: Path) -> None:
    waiting = spawn("wait", "--folder", folder, "--participant", "server")
    assert waiting.stdout
    waiting.stdout.readline()
    waiting.send_signal(2)
    out, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 130 and "Traceback" not in err + out


def test_wait_has_no_timeout_of_its_own_with_deliverables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from acp_core.protocols.folder.conduct import waiting

    monkeypatch.setattr(waiting, "V1_TIMEOUT", 0.01)
    first, second = make_v1(tmp_path / "1", "reviewing"), make_v2(tmp_path / "2", "reviewing")
    flags = ("--participant", "server", "--interval", "0.01")
    assert acp("wait", "--folder", first, *flags).code == 1
    looks = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 20:
            append(second, "reader", "blocked", 2)

    monkeypatch.setattr(waiting.time, "sleep", sleep)
    assert acp("wait", "--folder", second, *flags).code == 0


def test_validate_prints_errors_then_warnings_then_advice(folder: Path) -> None:
    text = (folder / "readiness.md").read_text().replace("Reason: not needed yet.", "")
    (folder / "readiness.md").write_text(text + "\n* [Blocking] In capitals\n")
    ran = acp("validate", "--folder", folder)
    lines = ran.out.splitlines()
    assert ran.code == 1 and lines[0] == "ACP validation passed with warnings"
    assert lines[1] == "WARNING: deferred_nonblocking readiness items should include a reason"
    assert lines[2].startswith("ADVICE: ")
    (folder / "readiness.md").write_text("- [resolved] Who?\n* [Blocking] In capitals\n")
    assert acp("validate", "--folder", folder).code == 0
    assert acp("validate", "--folder", folder, "--strict").code == 1
    (folder / "decisions.md").unlink()
    failed = acp("validate", "--folder", folder)
    assert failed.code == 2
    assert failed.out.startswith("ACP validation failed\nERROR: missing decisions.md\n")
    told = json.loads(acp("validate", "--folder", folder, "--json").out)
    assert (told["schema"], told["verdict"]) == ("acp.validate/1", "invalid")
    first = told["findings"][0]
    assert first["severity"] == "error" and first["file"] == "decisions.md" and first["code"]


def test_the_folder_goes_by_position_too(folder: Path) -> None:
    """The same for agents as for people: what takes a folder takes it in both ways."""
    who = ("--participant", "reader")
    for command in ("next", "wait"):
        named = acp(command, "--folder", folder, *who)
        assert (named.code, acp(command, folder, *who)) == (0, named)
    said = ("--event", "blocked", "--summary", "No access", "--reply-to", "2")
    assert acp("append", folder, *who, *said).out == "appended seq 3: blocked\n"
