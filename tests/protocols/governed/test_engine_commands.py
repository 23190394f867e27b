"""A human carries a governed run from its first line to its completion by commands alone."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from acp_core.files.reading import Unreadable
from acp_core.protocols.governed.acts.table import COMMANDS
from acp_core.protocols.governed.read import repository, run
from tests.protocols.governed import making, playing
from tests.protocols.governed.acting import (
    YES,
    acted,
    governed,
    open_folder,
    refused,
    seen,
    start,
    state,
    told,
    turn_of,
)
from tests.protocols.governed.test_read import NOW, codes


@pytest.mark.slow
def test_a_whole_run_with_real_commits_by_commands_alone(tmp_path: Path) -> None:
    root, agents = playing.repository(tmp_path / "lamp"), playing.agents(tmp_path / "bin")
    words = [part for role, line in agents.items() for part in ("--agent", f"{role}={line}")]
    assert playing.acp("init", str(root), "--goal", "Light the hall", *words).code == 0
    for approve in ("approve-transition", "approve-transition", "approve-completion"):
        stepped = playing.acp("step", str(root), "--json").json()
        assert stepped["staged"], stepped
        assert playing.acp("accept-turn", str(root)).code == 0
        approved = playing.acp(approve, str(root), *YES, "--comment", "Seen.")
        assert approved.code == 0, approved.err
        if approve == "approve-transition":
            playing.git(root, "add", "-A")
            playing.git(root, "commit", "-qm", "A phase is done", "--allow-empty")
    stands = playing.acp("status", str(root), "--json").json()
    assert (stands["status"], stands["headline"]) == ("completed", "completed.")
    assert stands["findings"] == []
    assert "Add the lamp" in playing.git(root, "log", "--format=%s")
    assert [line["role"] for line in told(root, "history.jsonl")] == ["pm", "dev", "qa"]
    kinds = [line.get("type", "decision") for line in told(root, "decision-ledger.jsonl")]
    assert kinds == ["decision", "objection_raised", "gate_approved"] * 3
    gates = [line for line in told(root, "decision-ledger.jsonl") if "gate_id" in line]
    assert {(line["by"], line["comment"]) for line in gates} == {("olga", "Seen.")}
    assert not any("id" in line for line in gates)
    events = [line["event_type"] for line in told(root, "events.jsonl")]
    assert events[:5] == ["run_started", "turn_dispatched", "turn_accepted", "gate_pending",
                          "gate_approved"]  # fmt: skip
    assert events[-1] == "run_completed"
    seen = told(root, "history.jsonl")[1]["observed_artifact"]
    assert seen["files_changed"] == [".planning/IMPLEMENTATION_NOTES.md", "src/lamp.py"]
    assert seen["baseline_ref"] != seen["accepted_ref"]
    refused = playing.acp("step", str(root))
    assert (refused.code, refused.err.count("\n")) == (2, 1)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_gate_whose_files_cannot_be_read_now_is_neither_met_nor_failed(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    """A disk that fails once makes no decision of the run."""
    acted("step", root)
    bytes_before = (root / ".agentxchain/decision-ledger.jsonl").read_bytes()
    read = run.read_bounded

    def failing(path: Path, limit: int) -> bytes:
        if path.name == "SYSTEM_SPEC.md":
            raise Unreadable("input/output error", number)
        return read(path, limit)

    with monkeypatch.context() as disk:
        disk.setattr(run, "read_bounded", failing)
        said = refused("accept-turn", root)
        assert said.count("\n") == 1 and "SYSTEM_SPEC.md: input/output error" in said
        assert (root / ".agentxchain/decision-ledger.jsonl").read_bytes() == bytes_before
        doubted = {gate.label: gate.met for gate in seen(root).gates}
        assert doubted[".planning/SYSTEM_SPEC.md"] is None
    acted("accept-turn", root)
    with monkeypatch.context() as disk:
        disk.setattr(run, "read_bounded", failing)
        assert "cannot be read now" in refused("approve-transition", root, *YES)
    acted("approve-transition", root, *YES)


def test_a_git_that_does_not_answer_now_fails_no_turn(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither is a turn given out that could not be compared, nor a result said to have failed."""
    slow = tmp_path / "outage" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)

    def refused(*words: str) -> None:
        before = run_files(root)
        with monkeypatch.context() as outage:
            outage.setenv("PATH", str(slow.parent), prepend=os.pathsep)
            outage.setattr(repository, "PATIENCE", 0.2)
            capsys.readouterr()
            assert governed([*words, str(root)]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and "read now: git did not answer within 0.2 s. Try" in said, (
            said
        )
        assert run_files(root) == before

    refused("step")
    assert governed(["step", str(root)]) == 0
    refused("accept-turn")
    assert governed(["accept-turn", str(root)]) == 0


def test_a_bundle_that_cannot_be_read_now_fails_no_turn(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acted("step", root)
    before, read = run_files(root), run.read_bounded

    def failing(path: Path, limit: int) -> bytes:
        if path.name == "CONTEXT.md":
            raise Unreadable("input/output error", errno.EIO)
        return read(path, limit)

    with monkeypatch.context() as disk:
        disk.setattr(run, "read_bounded", failing)
        said = refused("accept-turn", root)
        assert "CONTEXT.md: input/output error. Try again" in said, said
    assert run_files(root) == before
    acted("accept-turn", root)


def run_files(root: Path) -> dict[str, bytes]:
    """The state of the run, its events and decisions."""
    home = root / ".agentxchain"
    return {each.name: each.read_bytes() for each in home.iterdir() if each.is_file()}


def test_what_fails_is_mended_or_rejected_and_the_attempts_run_out(tmp_path: Path) -> None:
    root = start(tmp_path / "lamp", pm="careless")
    acted("step", root)
    assert "must raise at least one objection" in refused("accept-turn", root)
    turn = turn_of(root)
    assert turn["status"] == "failed_acceptance"
    assert "TURN_FAILED" in codes(seen(root))
    acted("reject-turn", root, "--reason", "No objection", *YES)
    [kept] = (root / ".agentxchain/dispatch/rejected").iterdir()
    assert json.loads(kept.read_text())["objections"] == []
    acted("step", root)  # its second attempt is better
    prompt = root / ".agentxchain/dispatch/turns" / turn["turn_id"] / "PROMPT.md"
    assert "Attempt 1 was rejected: No objection" in prompt.read_text(encoding="utf-8")
    acted("reject-turn", root, "--reason", "Dull", *YES)
    assert state(root)["blocked_on"] == "escalation:retries-exhausted:pm"
    refused("step", root)
    acted("unblock", root, "--comment", "Once more", *YES)
    acted("step", root)
    acted("accept-turn", root)
    assert state(root)["status"] == "paused"
    kinds = [
        line.get("type") or line.get("decision") for line in told(root, "decision-ledger.jsonl")
    ]
    assert kinds[:3] == ["turn_rejected", "turn_rejected", "escalation_resolved"]


def test_a_change_that_was_not_declared_is_found(tmp_path: Path) -> None:
    root = start(tmp_path / "lamp", pm="sneaky", dev="sneaky")
    config = json.loads((root / "agentxchain.json").read_text("utf-8"))
    config["roles"]["pm"]["write_authority"] = "review_only"
    making.configure(root, config)
    acted("step", root)
    assert "review_only role modified product files" in refused("accept-turn", root)
    acted("accept-turn", root, "--exclude", "src/secret.py")
    assert told(root, "history.jsonl")[0]["observed_artifact"]["excluded"] == ["src/secret.py"]
    acted("approve-transition", root, *YES)
    (root / "src/secret.py").unlink()
    acted("step", root)
    assert "Undeclared file changes detected" in refused("accept-turn", root)
    acted("correct", root)
    acted("accept-turn", root)
    assert "src/secret.py" in told(root, "history.jsonl")[1]["files_changed"]


def test_corrections_are_offered_and_applied_only_on_a_human_s_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = start(tmp_path / "lamp", pm="sloppy")
    assert governed(["step", str(root)]) == 0
    capsys.readouterr()
    assert governed(["check", str(root), "--json"]) == 1
    judged = json.loads(capsys.readouterr().out)
    offered = {each["field"]: each["value"] for each in judged["corrections"]}
    assert offered == {"status": "completed", "decisions[0].rationale": "pm decided."}
    assert governed(["correct", str(root), "--dry-run"]) == 0
    assert governed(["check", str(root)]) == 1
    assert governed(["correct", str(root)]) == 0
    assert governed(["check", str(root)]) == 0
    assert governed(["correct", str(root)]) == 2
    assert governed(["accept-turn", str(root)]) == 0


def test_a_gate_that_is_not_met_stops_a_run_that_does_not_progress(root: Path) -> None:
    for turn in range(3):
        acted("step", root)
        (root / ".planning/PM_SIGNOFF.md").write_text("# PM Signoff\n\nApproved: NO\n")
        staged = next((root / ".agentxchain/staging").glob("*/turn-result.json"))
        planned = [] if turn else [".planning/ROADMAP.md", ".planning/SYSTEM_SPEC.md"]
        result = json.loads(staged.read_text()) | {"files_changed": planned}
        staged.write_text(json.dumps(result))
        acted("accept-turn", root)
        assert state(root)["non_progress_count"] == turn + 1
        if turn < 2:
            assert state(root)["status"] == "active"
            assert "GATE_FAILED" in codes(seen(root))
    assert state(root)["blocked_on"] == "non_progress:planning_signoff"
    assert state(root)["blocked_reason"]["category"] == "non_progress"


def test_a_rejected_gate_tells_the_next_agent_what_is_missing(root: Path) -> None:
    acted("step", root)
    acted("accept-turn", root)
    refused("reject", root, *YES)  # it must say why
    acted("reject", root, "--comment", "No switch is planned.", *YES)
    assert state(root)["status"] == "active"
    acted("step", root, "--no-run")
    context = next((root / ".agentxchain/dispatch/turns").glob("*/CONTEXT.md"))
    assert "No switch is planned." in context.read_text(encoding="utf-8")


def test_a_program_that_comes_to_nothing_can_be_started_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = start(tmp_path / "lamp", pm="fails")
    assert governed(["step", str(root)]) == 1
    assert "no such model" in capsys.readouterr().out
    opened = open_folder(root)
    snapshot = opened.refresh(NOW)
    assert "TURN_GHOST" in codes(snapshot)
    [printed] = [each.id for each in snapshot.documents if each.id.endswith("stderr.log")]
    assert "no such model" in opened.load(printed).text
    assert printed not in {each.document for each in opened.tracked_files()}
    config = json.loads((root / "agentxchain.json").read_text())
    config["runtimes"]["local-pm"]["args"].pop()
    (root / "agentxchain.json").write_text(json.dumps(config))
    assert governed(["step", str(root)]) == 0
    assert governed(["accept-turn", str(root)]) == 0  # what was edited in between is not its own


def test_a_goal_that_the_other_program_would_not_open_is_refused(tmp_path: Path) -> None:
    root = playing.repository(tmp_path / "lamp")
    assert "the goal is longer than 500 characters" in refused("init", root, "--goal", "x" * 501)
    assert not (root / "agentxchain.json").exists()
    acted("init", root, "--goal", "x" * 500)


def test_objections_are_followed_from_raised_to_resolved(root: Path) -> None:
    acted("step", root)
    assert "the result of pm is staged: accept or reject it" in refused("step", root)
    assert "Turn already assigned" in refused("step", root, "--role", "dev")
    acted("accept-turn", root)
    words = ["objection", str(root), "--id", "OBJ-001", "--comment", "It is big enough", *YES]
    refused(*words[:3], "OBJ-9", *words[4:])
    assert governed(words) == 0
    assert governed(words) == 2
    [objection] = (p for p in seen(root).panels if p.id == "objections")
    assert objection.rows[0].cells[2] == "resolved by human"
    assert objection.rows[0].cells[6] == "olga"


def test_only_a_human_decides(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acted("step", root)
    acted("accept-turn", root)
    before = state(root)
    refused("approve-transition", root)  # nobody can be asked here
    refused("approve-transition", root, "--yes")  # nor is it said who
    monkeypatch.setenv("ACP_GOVERNED_TURN", "turn_1")
    assert "only a human can decide" in refused("approve-transition", root, *YES)
    assert state(root) == before


@pytest.mark.parametrize("verb", list(COMMANDS.specs))
def test_bad_input_gets_one_line(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {"escalate": ["--reason", "x"], "mark-objection": ["--id", "OBJ-1"], "talk": ["--text", "x"],
            "init": ["--phase", "Bad Name=pm"]}.get(verb, [])  # fmt: skip
    for folder in (tmp_path / "nothing", tmp_path):
        assert governed([verb, str(folder), *more]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith("error: ") and shown.err.count("\n") == 1
    (tmp_path / "agentxchain.json").write_text("{", encoding="utf-8")
    assert governed([verb, str(tmp_path), *more]) in (0, 2)
    assert "Traceback" not in capsys.readouterr().err


def test_a_human_takes_a_turn_by_hand_in_a_run_of_the_other_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.defpath)  # where that program is not
    reserved = {"budget_reservations": {"turn_x": {"reserved_usd": 2}}, "delegation_queue": []}
    its = {"status": "idle", "run_id": None, "provenance": {"created_by": "operator"}}
    root = making.make_run(tmp_path, of_state=making.state(**its, **reserved))
    config = making.config()
    config["gates"]["planning_done"] = {"requires_human_approval": False}
    making.configure(root, config)
    acted("step", root)
    snapshot = seen(root)
    assert [turn.participant for turn in snapshot.turns] == ["pm"]
    assert "TURN_LOST" not in codes(snapshot)
    refused("step", root)
    turn = turn_of(root)
    ids = {"run_id": turn["run_id"], "turn_id": turn["turn_id"]}
    path = root / f".agentxchain/staging/{turn['turn_id']}/turn-result.json"
    making.write(path, making.result(**ids))
    acted("accept-turn", root)
    after = state(root)
    assert (after["status"], after["phase"]) == ("active", "implementation")  # nobody is asked
    assert after["budget_reservations"] == reserved["budget_reservations"]
    assert after["delegation_queue"] == []
    assert not path.exists()
