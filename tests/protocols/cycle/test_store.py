"""The state file has one writer at a time, is whole at any moment, and is read again."""

from __future__ import annotations

import json
import os
import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.model.errors import Refused
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.collaboration import open_cycles
from acp_core.protocols.cycle.conduct import steps
from acp_core.protocols.cycle.read import progress as read_progress
from acp_core.protocols.cycle.read.scan import parse_state
from acp_core.protocols.cycle.schema import Object, encoded
from acp_core.protocols.cycle.write import changes, layout
from acp_core.protocols.cycle.write import store as write_store
from acp_core.protocols.cycle.write.store import Store, finish
from tests.protocols.cycle import conducting
from tests.protocols.cycle.conducting import ID, acp, done, path, progress, refused, state

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store.create_cycle(tmp_path, write_store.first_state(ID, NOW, "Export as CSV"))


def test_a_cycle_is_begun_with_its_folders_and_nothing_runs(tmp_path: Path) -> None:
    shown = done(tmp_path, "start", "Export", "--cycle", ID, "--no-run", "--dry-run")
    assert shown["cycle"] == ID
    assert f'+  "cycle_id": "{ID}",' in shown["changes"][0]["diff"]
    assert list(tmp_path.iterdir()) == []
    assert done(tmp_path, "start", "Export", "--cycle", ID, "--no-run")["state"] == "done"
    held = state(tmp_path)
    assert (held["status"], held["current_phase"], held["max_iterations"]) == ("running", "init", 5)
    assert held["created_at"].endswith("+08:00")
    assert held["agents"]["ra"]["can_start"] is True
    assert held["agents"]["cd"] | {"depends_on": ["ep"], "ready": False} == held["agents"]["cd"]
    folders = {each.name for each in progress(tmp_path).iterdir()}
    assert folders == {"ra", "ep", "cd", "vas", "coordination"}
    assert "already exists" in refused(tmp_path, "start", "Export", "--cycle", ID, "--no-run")
    assert "no program for ra, ep, cd, vas" in refused(tmp_path, "start", "Export")
    assert "not found on PATH" in refused(tmp_path, "start", "E", "--command", "no-such-program")
    assert "no preset 'x'" in refused(tmp_path, "run", "--program", "x")


def test_an_orchestrator_that_has_written_puts_back_what_only_it_may_change(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever record another program leaves of its change: the orchestrator goes by its own."""
    store.change(lambda s: s.update(max_iterations=7), NOW)
    own = os.environ.get("ACP_STATE", "")
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "other-state"))
    Store(tmp_path, ID).change(lambda s: s.update(current_phase="cd"), NOW, "pause")
    monkeypatch.setenv("ACP_STATE", own)
    written = store.change(lambda s: s.update(max_iterations=8), NOW)
    assert written.refused == ("current_phase",)
    assert (written.state["current_phase"], written.state["max_iterations"]) == ("init", 8)


def test_unknown_fields_are_kept_and_the_rest_is_brought_up_to_date(store: Store) -> None:
    held = store.read()
    held["convergence"] = {"test_pass_rate": 95}
    held["agents"]["ra"]["mood"] = "good"  # type: ignore[index]
    store.path.write_text(json.dumps(held))
    written = store.change(lambda s: changes.pause(s, NOW), NOW, "pause")
    after = store.read()
    assert written.state == after
    assert after["convergence"] == {"test_pass_rate": 95}
    assert after["agents"]["ra"]["mood"] == "good"  # type: ignore[index]
    assert after["status"] == "paused"
    assert after["updated_at"] == "2026-03-02T18:00:00+08:00"


def test_a_version_comes_after_the_highest_and_begins_at_one() -> None:
    assert layout.raised() == layout.raised("none") == "1.0.0"
    assert layout.raised("1.2.3", "v2.4.0") == "2.5.0"


def test_a_write_that_was_cut_short_is_no_change_of_another_program(store: Store) -> None:
    store.change(lambda s: None, NOW)
    before = store.path.read_bytes()
    store.change(lambda s: s.update(max_iterations=9), NOW)
    store.path.write_bytes(before)  # as a loss of power leaves it: noted, and not written
    for conducts in (store, Store(store.root, ID)):
        written = conducts.change(lambda s: None, NOW)
        assert (written.refused, written.merged) == ((), ())
        assert written.state["max_iterations"] == 5
    assert store.path.read_bytes() == before


def test_a_change_that_another_program_writes_over_is_said(tmp_path: Path) -> None:
    done(tmp_path, "start", "Export", "--cycle", ID, "--no-run")
    old = path(tmp_path).read_bytes()
    stop = threading.Event()

    def write_from_memory() -> None:
        while not stop.is_set():
            if path(tmp_path).read_bytes() != old:
                path(tmp_path).write_bytes(old)

    thread = threading.Thread(target=write_from_memory)
    thread.start()
    try:
        code, out, _ = acp("pause", "--folder", str(tmp_path), "--json")
    finally:
        stop.set()
        thread.join()
    assert (code, json.loads(out)["state"]) == (3, "lost")


def test_many_writers_lose_nothing(store: Store) -> None:
    def write(number: int) -> None:
        own = Store(store.root, store.id)
        for turn in range(5):
            own.change(
                lambda s, t=turn: changes.feedback(s, NOW, "cd", f"{number} {t}", "clarification"),  # type: ignore[misc]
                NOW,
                "feedback",
            )

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    held = store.read()["coordination"]
    entries = held["feedback_log"]  # type: ignore[index,call-overload]
    assert len(entries) == 20
    assert len({each["id"] for each in entries}) == 20
    lines = (store.progress / "coordination/timeline.md").read_text().splitlines()
    assert sum("feedback to CD" in line for line in lines) == 20


BROKEN = {
    "cut off": (b"{", "not valid JSON"),
    "a list": (b"[]", "does not contain a JSON object"),
    "without agents": (b'{"a": 1}', "has no agents"),
    "too deep": (b"[" * 100_000, "not valid JSON"),
    "not UTF-8": (b"\xff", "not valid JSON"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_state_that_cannot_be_read_is_left_alone(
    store: Store, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_core.protocols.cycle.write.store._PATIENCE", 0.1)
    content, said = BROKEN[how]
    store.path.write_bytes(content)
    assert said in refused(store.root, "pause", "--cycle", ID)
    assert store.path.read_bytes() == content


def test_links_are_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    root = tmp_path / "project"
    (root / ".workflow").mkdir(parents=True)
    (root / ".workflow/.cycle").symlink_to(elsewhere)
    assert "symbolic link" in refused(root, "start", "Export", "--no-run")
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("id", ["../x", "cycle-a/../../x", "", "cycle-\n", "x"])
def test_names_that_are_no_cycle_are_refused(tmp_path: Path, id: str) -> None:
    if id:
        assert refused(tmp_path, "start", "Export", "--no-run", "--cycle", id)
    with pytest.raises(Refused):
        Store(tmp_path, id)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=10), JSON, max_size=6), JSON)
def test_a_state_is_written_as_it_is_read(value: dict[str, Any], coordination: object) -> None:
    state: Object = value | {"agents": {}, "coordination": coordination}
    assert parse_state(encoded(state)) == (state, "")


@given(st.dictionaries(st.sampled_from(["status", "agents", "coordination", "iterations", "plan",
       "max_iterations", "current_iteration", "test_results", "task_history"]), JSON))  # fmt: skip
def test_no_state_makes_a_change_fail_otherwise_than_by_refusing(value: dict[str, Any]) -> None:
    for change in (
        lambda s: changes.feedback(s, NOW, "cd", "x", "clarification"),
        lambda s: changes.decide(s, NOW, "DEC-001", "1"),
        lambda s: changes.extend(s, NOW, "more"),
        lambda s: changes.rerun(s, NOW, "ra"),
        lambda s: changes.stop(s, NOW),
    ):
        held = json.loads(json.dumps(value)) | {"status": "running"}
        try:
            change(held)
        except Refused:
            continue
        read_progress.feedback_text("", "", held)


def test_feedback_md_keeps_what_others_wrote_and_is_stable(store: Store) -> None:
    text = (
        "# Feedback & Coordination Log - Version 1.0.0\n\nA remark above.\n\n"
        "## Timeline\n- [10:00:00] RA: said by hand\n\n## Decision Records\n"
        "- [10:31:00] RA Clarification: optional?\n  - Decision: Optional\n\n## Mine\n- kept\n"
    )
    held = store.read()
    changes.add_feedback(held, NOW, "vas", "cd", "fix", "bug_report")
    once = read_progress.feedback_text(text, "- 2026-03-02T18:00:00+08:00 VAS: x\n", held)
    twice = read_progress.feedback_text(once, "- 2026-03-02T18:00:00+08:00 VAS: x\n", held)
    assert once == twice
    for line in ("A remark above.", "- [10:00:00] RA: said by hand", "  - Decision: Optional",
                 "## Mine", "- kept", "- [2026-03-02T18:00:00+08:00] VAS: x"):  # fmt: skip
        assert line in once.splitlines()


def test_a_decision_of_ours_takes_no_line_of_an_entry_of_others(store: Store) -> None:
    """An entry is its line and the indented ones below: `Decision:` stands in each."""
    state = store.read()
    asked = {"id": "DEC-001", "description": "Stream?", "status": "pending", "asked_at": "10:00"}
    state["coordination"] = {"pending_decisions": [asked]}
    theirs = ["- [09:00] RA Clarification: optional?", "  - Decision: pending", "\t- Impact: none"]
    text = read_progress.feedback_text("\n".join(["## Decision Records", *theirs]), "", state)
    asked |= {"chosen_option": "Yes"}
    lines = read_progress.feedback_text(text, "", state).splitlines()
    first = lines.index(theirs[0])
    assert lines[first : first + 5] == [
        *theirs, "- [10:00] DEC-001: Stream?", "  - Decision: Yes",
    ]  # fmt: skip


def test_what_stands_in_the_log_already_is_not_written_again(store: Store) -> None:
    """As after a crash between the log and the state, in which the lines still wait."""
    state = store.read()
    layout.note(state, NOW, "ra", "begun")
    layout.record(state, {"id": "DEC-001"})
    layout.flush(store.progress, state)
    folder = store.progress / "coordination"
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert b"RA: begun" in before["timeline.md"] and b"DEC-001" in before["decisions.log"]
    layout.flush(store.progress, state)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_nothing_is_written_through_a_link_in_place_of_the_coordination(
    store: Store, tmp_path: Path
) -> None:
    state = store.read()
    layout.note(state, NOW, "ra", "begun")
    folder, elsewhere = store.progress / "coordination", tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.rmtree(folder)
    folder.symlink_to(elsewhere)
    layout.flush(store.progress, state)
    assert list(elsewhere.iterdir()) == []
    folder.unlink()
    layout.flush(store.progress, state)  # none is made in the place of one that is gone
    assert not folder.exists()


def test_what_bears_no_time_is_told_with_the_time_since_which_it_is_known(store: Store) -> None:
    state = store.read()
    state["coordination"] = {
        "pending_decisions": [{"id": "DEC-001", "description": "Stream?", "status": "pending"}],
        "blockers": [{"id": "BLK-001", "description": "No limit", "timestamp": "2026-03-02T17:00"}],
    }
    steps.adopt(state, NOW)
    text = read_progress.feedback_text("", "", state)
    steps.adopt(state, NOW + timedelta(hours=1))
    assert read_progress.feedback_text(text, "", state) == text
    lines = text.splitlines()
    known = NOW.astimezone(schema.LOCAL).isoformat(timespec="seconds")
    assert f"- [{known}] DEC-001: Stream?" in lines
    assert "- [2026-03-02T17:00] Blocker: BLK-001: No limit" in lines


def test_versions_go_up_and_copies_are_never_overwritten(store: Store) -> None:
    folder = store.progress / "ra"
    (folder / "requirements.md").write_text("# Requirements - v1.0.0\n\nFirst\n")
    (folder / "notes.json").write_text("{}")
    assert layout.archive(store.progress, "ra") == [
        "history/notes-v1.0.0.json", "history/requirements-v1.0.0.md",
    ]  # fmt: skip
    assert layout.archive(store.progress, "ra") == []
    (folder / "requirements.md").write_text("# Requirements - v1.0.0\n\nSecond\n")
    assert layout.archive(store.progress, "ra") == ["history/requirements-v1.0.0-2.md"]
    assert "First" in (folder / "history/requirements-v1.0.0.md").read_text()
    assert layout.stamp(store.progress, "ra", "1.1.0") == ["requirements.md"]
    assert layout.stamp(store.progress, "ra", "1.1.0") == []
    assert (folder / "requirements.md").read_text() == "# Requirements - v1.1.0\n\nSecond\n"
    assert layout.raised("1.0.0", "1.3.0", "", "x") == "1.4.0"
    assert layout.raised("") == "1.0.0"


def test_however_many_texts_of_a_version_there_are_the_next_is_kept(store: Store) -> None:
    history = store.progress / "ra" / "history"
    history.mkdir(parents=True, exist_ok=True)
    for number in ("", *(f"-{n}" for n in range(2, 130))):
        (history / f"requirements-v1.0.0{number}.md").write_text(f"# Requirements - v1.0.0{number}")
    (store.progress / "ra" / "requirements.md").write_text("# Requirements - v1.0.0\n\nAnother\n")
    assert layout.archive(store.progress, "ra") == ["history/requirements-v1.0.0-130.md"]


def test_a_lost_state_is_rebuilt_from_the_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_core.protocols.cycle.write.store._PATIENCE", 0.1)
    conducting.behave(tmp_path, cd=["buggy"])
    code, _, err = acp("start", conducting.WHAT, "--folder", str(tmp_path), "--cycle", ID,
        "--command", conducting.AGENT, "--foreground", "--leave", "--max-iterations", "1")  # fmt: skip
    assert code == 4, err
    before = state(tmp_path)
    conducting.forget(tmp_path)
    path(tmp_path).write_text('{"cycle_id": "torn')
    shown = done(tmp_path, "rebuild", "--cycle", ID, "--dry-run")
    assert shown["state"] == "dry-run"
    assert path(tmp_path).read_text() == '{"cycle_id": "torn'
    done(tmp_path, "rebuild", "--cycle", ID)
    after = state(tmp_path)
    assert after["status"] == "paused"
    assert after["rebuilt_at"]
    assert after["test_results"]["failed_tests"] == before["test_results"]["failed_tests"]
    assert {n: a["version"] for n, a in after["agents"].items()} == dict.fromkeys(
        ("ra", "ep", "cd", "vas"), "1.0.0"
    )
    assert [each["id"] for each in after["plan"]["tasks"]] == ["TASK-001", "TASK-002"]
    kept = list(path(tmp_path).parent.glob("*.before-rebuild-*"))
    assert [each.read_text() for each in kept] == ['{"cycle_id": "torn']
    empty = tmp_path / "empty"
    empty.mkdir()
    done(empty, "start", "Export", "--cycle", ID, "--no-run")
    assert "no documents to rebuild from" in refused(empty, "rebuild", "--cycle", ID)


def test_what_is_rebuilt_says_what_the_results_say(tmp_path: Path) -> None:
    conducting.progress(tmp_path).joinpath("vas").mkdir(parents=True)
    results = {"version": "1.1.0", "iteration": 1, "summary": {"total": 20, "failed": 3},
               "by_suite": [{"tests": [{"name": "quoting", "status": "failed"}]}]}  # fmt: skip
    (progress(tmp_path) / "vas/test-results.json").write_text(json.dumps(results))
    done(tmp_path, "rebuild", "--cycle", ID)
    after = state(tmp_path)
    assert (after["current_iteration"], len(after["iterations"])) == (1, 1)
    named = ["quoting", "2 of 3, not named", "3 of 3, not named"]
    assert after["test_results"]["failed_tests"] == named
    found = {each.code for each in open_cycles(str(tmp_path)).refresh(NOW).findings}
    assert not found & {"A42", "A43", "A61"}


def test_what_is_rebuilt_invents_no_plan_and_no_results(tmp_path: Path) -> None:
    folder = progress(tmp_path) / "ra"
    folder.mkdir(parents=True)
    (folder / "requirements.md").write_text(f"# {'x' * 501}\n")
    done(tmp_path, "rebuild", "--cycle", ID)
    after = state(tmp_path)
    assert not after.get("test_results") and not after.get("plan")
    assert after["description"] == "x" * 500


def test_what_can_still_be_read_of_a_state_counts_more_than_the_documents(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_core.protocols.cycle.write.store._PATIENCE", 0.1)
    held = store.read()
    plan = {"version": "1.1.0", "tasks": [{"id": "TASK-007", "status": "completed"}]}
    results = {"version": "1.1.0", "failed_tests": ["empty"], "total_tests": 9}
    del held["agents"]
    store.path.write_text(json.dumps(held | {"plan": plan, "test_results": results}))
    conducting.forget(store.root)
    other = {"version": "1.0.0", "tasks": [{"id": "TASK-001"}], "summary": {"total": 2}}
    for name in ("ep/plan.json", "vas/test-results.json"):
        (store.progress / name).write_text(json.dumps(other))
    done(store.root, "rebuild")
    after = store.read()
    assert (after["plan"], after["test_results"]) == (plan, results)


def test_what_an_agent_printed_is_read_by_a_command(tmp_path: Path) -> None:
    file = tmp_path / "said.txt"
    file.write_bytes(b"PHASE_RESULT:\r\n- phase: vas\r\n- status: failed\r\n- coverage: 78%\r\n")
    code, out, _ = acp("phase-result", str(file), "--json", "--agent", "cd")
    told = json.loads(out)
    assert (code, told["fields"]["coverage"], told["blocks"]) == (4, 78.0, 1)
    assert "phase is 'vas', not 'cd'" in told["problems"]
    assert acp("phase-result", str(tmp_path / "none"))[0] == 2
    file.write_text("all good")
    assert acp("phase-result", str(file))[:2] == (1, "no PHASE_RESULT\n")


@pytest.mark.parametrize(
    ("began", "ended", "status", "kept"),
    [
        ("2026-03-02T18:00:00+08:00", "2024-03-02T18:00:00+08:00", "failed", "began"),
        ("2026-03-02T18:00:00+08:00", "2026-03-02T18:00:01+08:00", "failed", "ended"),
        ("2026-03-02T18:00:00+08:00", "2024-03-02T18:00:00+08:00", "running", "ended"),
        ("2026-03-02T18:00:00Z", "2024-03-02T18:00:00+08:00", "failed", "ended"),
        ("2026-03-02T18:00:00+08:00", None, "failed", "ended"),
    ],
)
def test_a_clock_that_was_put_back_ends_nothing_before_it_began(
    began: str, ended: str | None, status: str, kept: str
) -> None:
    agent = {"started_at": began, "completed_at": ended, "status": status}
    held: dict[str, object] = {
        "created_at": began, "completed_at": ended, "status": status, "agents": {"ra": agent}
    }  # fmt: skip
    finish(held, datetime(2024, 3, 2, 10, tzinfo=UTC))
    expected = began if kept == "began" else ended
    assert (held["completed_at"], agent["completed_at"]) == (expected, expected)
