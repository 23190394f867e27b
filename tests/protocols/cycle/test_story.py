"""A whole cycle with real programs, by commands alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_core.model import Status
from acp_core.protocols.cycle import state as states
from acp_core.protocols.cycle.collaboration import open_cycles
from acp_core.protocols.cycle.read.scan import open_folder
from tests.protocols.cycle import conducting
from tests.protocols.cycle.conducting import acp, calls, done, progress, start, state
from tests.protocols.cycle.making import NOW, read

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.mark.slow
def test_a_cycle_asks_escalates_fails_its_tests_and_ends_with_a_verdict_that_matches_them(
    tmp_path: Path,
) -> None:
    start(tmp_path, cd=["ask ra", "ask user", "buggy"])

    asked = conducting.wait_for_status(tmp_path, "paused")
    decision = asked["coordination"]["pending_decisions"][0]
    assert (decision["description"], decision["options"]) == (
        "Large exports?",
        ["Stream", "Refuse"],
    )
    first, second = asked["coordination"]["blockers"]
    assert (first["status"], first["routed_to"]) == ("resolved", "ra")
    assert (second["status"], second["routed_to"]) == ("open", "user")
    assert asked["agents"]["ra"]["version"] == "1.1.0", "a clarification raises one version"
    assert asked["agents"]["cd"]["status"] == "waiting"
    told = done(tmp_path, "status")
    assert told["decisions"][0]["id"] == decision["id"] == "DEC-001"
    assert told["orchestrator"]

    said = done(tmp_path, "decide", "DEC-001", "1", "--rationale", "They are large")
    assert said["state"] == "requested"
    ended = conducting.wait_for_end(tmp_path)

    assert ended["status"] == "completed"
    assert ended["current_iteration"] == 2
    assert ended["completed_phases"] == ["ra", "ep", "cd", "vas"], "each once, however often"
    assert calls(tmp_path) == [
        "ra work", "ep work", "cd ask ra", "ra work", "cd ask user", "cd buggy", "vas work",
        "cd work", "vas work",
    ]  # fmt: skip
    assert ended["test_results"]["failed_tests"] == []
    assert ended["test_results"]["total_tests"] == 10
    one, two = ended["iterations"]
    assert (one["resolved"], one["issues_found"][:2]) == (False, ["quoting", "empty"])
    assert (two["resolved"], two["test_results"]["pass_rate"]) == (True, 100)
    found = open_folder(str(tmp_path)).selected
    assert states.verdict(found) == states.OK
    assert {each["status"] for each in ended["plan"]["tasks"]} == {"completed"}
    assert ended["coordination"]["pending_decisions"][0]["status"] == "implemented"
    assert all(each["picked_up_at"] for each in ended["coordination"]["requests"])
    assert all(each["answered_at"] for each in ended["coordination"]["feedback_log"])
    versions = {name: each["version"] for name, each in ended["agents"].items()}
    assert versions == dict.fromkeys(("ra", "ep", "cd", "vas"), "1.2.0")
    snapshot = read(tmp_path)
    assert snapshot.status is Status.COMPLETED
    assert [f for f in snapshot.findings if f.severity.value == "error"] == []
    assert snapshot.needs == ()
    cycles = open_cycles(str(tmp_path))
    events = cycles.refresh(NOW).events
    assert len({(e.at, e.actor, e.summary) for e in events}) == len(events), "each thing once"
    told = cycles.story()
    assert [turn.participant for turn in told.turns] == [
        each.split()[0] for each in calls(tmp_path)
    ]
    assert [turn.round for turn in told.turns] == [1] * 7 + [2] * 2
    assert all(turn.ended for turn in told.turns)
    assert len(cycles.durations("cd")) == 4
    counts = {count.what: count.value for count in told.counts}
    assert (counts["iterations"], counts["blockers"], counts["failing tests"]) == (2, 2, 0)


def test_what_failed_is_told_to_cd_in_a_message_with_seven_sections(tmp_path: Path) -> None:
    start(tmp_path, "--foreground", "--leave", cd=["buggy"])
    message = (progress(tmp_path) / "coordination/messages/2-cd.md").read_text()
    headings = [line for line in message.splitlines() if line.startswith("## ")]
    assert headings == [
        "## FEEDBACK FROM VAS",
        "## REFERENCED OUTPUT",
        "## REQUIRED ACTION",
        "## SUCCESS CRITERIA",
        "## NEXT STEP",
        "## CONTEXT",
    ]
    assert "2 of 10 tests fail: quoting, empty" in message.split("## REFERENCED OUTPUT")[0]
    assert "vas/test-results.json\nVersion: 1.0.0" in message
    assert "- [ ] quoting passes\n- [ ] empty passes" in message
    assert "Output PHASE_RESULT when complete." in message
    assert "Previous iteration: 1\nCurrent iteration: 2" in message
    assert message in (tmp_path / "prompt-cd-2.txt").read_text()
    assert state(tmp_path)["status"] == "completed"
    assert (progress(tmp_path) / "cd/history/implementation-v1.0.0.md").exists()
    assert (progress(tmp_path) / "ra/history/requirements-v1.0.0.md").exists()
    assert "v1.1.0" in (progress(tmp_path) / "ra/requirements.md").read_text()


def test_the_coordination_log_has_its_four_sections(tmp_path: Path) -> None:
    start(tmp_path, "--foreground", "--leave", cd=["ask ra"])
    folder = progress(tmp_path) / "coordination"
    text = (folder / "feedback.md").read_text()
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == [
        "# Feedback & Coordination Log - Version 1.0.0",
        "## Timeline",
        "## Decision Records",
        "## Blockers & Resolutions",
        "## Cross-Agent Dependencies",
    ]
    assert text.count("] Blocker: BLK-001: Which delimiter?") == 1
    assert "  - Status: Resolved" in text
    assert "- CD depends on: EP (v1.0.0)" in text
    timeline = (folder / "timeline.md").read_text().splitlines()
    assert timeline[0] == "# Timeline"
    assert len(timeline) == len(set(timeline)) + 0
    assert any(
        "ORCHESTRATOR" not in line and "Orchestrator: cycle complete" in line for line in timeline
    )


@pytest.mark.slow
def test_at_the_limit_a_person_is_asked_and_may_accept(tmp_path: Path) -> None:
    words = ["buggy"] * 9
    code, _, _ = acp("status", "--folder", str(tmp_path))
    assert code == 2
    conducting.behave(tmp_path, cd=words)
    code, out, err = acp(
        "start", conducting.WHAT, "--folder", str(tmp_path), "--cycle", conducting.ID,
        "--command", conducting.AGENT, "--max-iterations", "2", "--foreground", "--leave",
    )  # fmt: skip
    assert code == 4, (out, err)
    asked = state(tmp_path)
    assert (asked["status"], asked["current_iteration"]) == ("paused", 2)
    (decision,) = asked["coordination"]["pending_decisions"]
    assert decision["options"] == [
        "Allow another iteration", "Accept it as it is", "Stop the cycle",
    ]  # fmt: skip
    assert "2 of 10 tests fail" in decision["description"]
    assert "needs one of its options" in conducting.refused(tmp_path, "decide", "DEC-001", "maybe")
    done(tmp_path, "decide", "DEC-001", "2")
    ended = conducting.wait_for_end(tmp_path)
    assert ended["status"] == "completed"
    assert ended["test_results"]["failed_tests"] == ["quoting", "empty"], "never made better"
    found = open_folder(str(tmp_path)).selected
    assert states.verdict(found) == states.FAILURES
