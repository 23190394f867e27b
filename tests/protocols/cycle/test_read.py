"""A development cycle is read as it stands, whatever its status claims."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_core.fleet.member import nothing_at
from acp_core.model import SourceState, Status
from acp_core.protocols import registry
from acp_core.protocols.cycle.collaboration import detect, open_cycles
from tests.protocols.cycle.conducting import acp
from tests.protocols.cycle.making import (
    HOME,
    ID,
    NOW,
    PROGRESS,
    STATE,
    agent,
    agents,
    coordination,
    cycle,
    read,
    state,
    task,
    write,
)


def cells(root: Path, panel: str) -> list[tuple[str, ...]]:
    found = next(each for each in read(root).panels if each.id == panel)
    return [row.cells for row in found.rows]


def test_a_cycle_is_found_and_an_ordinary_repository_is_not(tmp_path: Path) -> None:
    assert not detect(tmp_path / "none")
    write(tmp_path, ".workflow/config.json", {})
    assert not detect(tmp_path)
    write(tmp_path, f"{HOME}/prep-package.json", {})
    (tmp_path / HOME / "cycle-auto-1.progress").mkdir()
    assert not detect(tmp_path)
    assert detect(cycle(tmp_path))
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/.workflow").symlink_to(tmp_path / ".workflow")
    assert not detect(tmp_path / "linked")


FAILING = {"pass_rate": 90, "failed_tests": ["a", "b"], "total_tests": 20}


def test_what_the_state_alone_claims_is_not_proven(tmp_path: Path) -> None:
    (cycle(tmp_path, "completed") / f"{PROGRESS}/vas/test-results.json").unlink()
    snapshot = read(tmp_path)
    assert snapshot.headline.startswith("marked completed, but not proven;")
    assert "only the state claims that tests ran" in snapshot.needs[0].sentence
    assert "A33" in {each.code for each in snapshot.findings}


def test_of_two_sources_that_disagree_the_worse_counts(tmp_path: Path) -> None:
    cycle(tmp_path, "completed")
    write(tmp_path, f"{PROGRESS}/vas/test-results.json", FAILING)
    snapshot = read(tmp_path)
    assert snapshot.headline.startswith("marked completed, but with failures;")
    assert {"A34", "A61"} <= {each.code for each in snapshot.findings}


def test_runs_of_which_only_the_records_of_the_iterations_tell_are_counted(tmp_path: Path) -> None:
    ended = {name: {"status": "completed"} for name in ("ra", "ep", "cd", "vas")}
    records = [
        {"number": n, "started_at": f"2026-03-0{n + 1}T18:00:00+08:00",
         "completed_at": f"2026-03-0{n + 1}T18:30:00+08:00", "agent_results": ended}
        for n in (1, 2, 2, 3)
    ]  # fmt: skip
    cycles = open_cycles(str(cycle(tmp_path, "completed", current_iteration=3, iterations=records)))
    cycles.refresh(NOW)
    turns = [(each.participant, each.round) for each in cycles.story().turns]
    assert sorted(turns) == sorted((name, n) for name in ended for n in (1, 2, 3))


def test_steps_of_a_cycle_are_nobody_who_acts(tmp_path: Path) -> None:
    lines = ["- 2026-03-02T18:00:00+08:00 INIT: created", "- 2026-03-02T18:01:00+08:00 ITER-2: on"]
    write(cycle(tmp_path), f"{PROGRESS}/coordination/timeline.md", "\n".join(lines))
    assert {each.actor for each in read(tmp_path).events if each.line} == {"orchestrator"}


def test_one_detection_holds_for_every_command(tmp_path: Path) -> None:
    write(tmp_path, f"{PROGRESS}/coordination/timeline.md", "- created cycle\n")
    assert detect(tmp_path)
    assert read(tmp_path).causes == () and read(tmp_path).obstacles
    assert acp("status", str(tmp_path))[0] == 0
    other = tmp_path / "other"
    (other / HOME / "cycle-auto-1.progress").mkdir(parents=True)
    assert not detect(other)
    assert "no cycle here" in acp("status", str(other))[2]


def test_a_folder_of_workflows_without_a_cycle_is_not_said_to_lack_them(tmp_path: Path) -> None:
    write(tmp_path, ".workflow/config.json", {})
    told = nothing_at(tmp_path, registry.installed())
    assert "it contains .workflow, but no collaboration" in told


def test_a_cycle_in_which_nothing_is_written_any_more_stalls(tmp_path: Path) -> None:
    opened = open_cycles(str(cycle(tmp_path)))
    first = opened.refresh(NOW)
    assert opened.refresh(NOW + timedelta(minutes=1)) is first
    assert first.recheck_at == NOW + timedelta(minutes=29)
    later = opened.refresh(first.recheck_at)
    assert [need.code for need in later.needs] == ["stalled"]


def test_a_cycle_that_failed_says_why(tmp_path: Path) -> None:
    cycle(tmp_path, "failed", agents=agents(cd=agent("failed", 15)), failure_reason="No disk")
    assert read(tmp_path).headline.startswith("failed (No disk);")


def test_feedback_that_nobody_answers_and_an_end_without_proof_want_a_person(
    tmp_path: Path,
) -> None:
    sent = [{"timestamp": f"2026-03-02T19:{m}:00+08:00", "source": "vas", "target": "ra"}
            for m in ("20", "10")]  # fmt: skip
    fed = coordination(feedback_log=sent)
    plan = {"tasks": [task("T1"), task("T2", "pending")]}
    needs = read(cycle(tmp_path, "completed", coordination=fed, plan=plan)).needs
    assert [(n.code, n.about.participant, n.sentence) for n in needs] == [
        ("unanswered", "ra", "ra has not answered its feedback"),
        ("unproven", None, "Completed, but 1 of 2 tasks of the plan is not done"),
    ]
    assert needs[0].since == NOW - timedelta(minutes=50) and needs[0].remedy == ""
    (need, *_) = read(cycle(tmp_path, "paused", coordination=fed, plan=plan)).needs
    assert (need.code, need.remedy, need.given) == ("unanswered", "feedback", (("agent", "ra"),))


def test_a_discovery_is_told_by_what_it_is_about(tmp_path: Path) -> None:
    cycle(tmp_path)
    row = {"ts": "2026-03-02T18:40:00+08:00", "agent": "cd", "type": "blocker",
           "data": {"issue": "No data", "impact": "untested"}}  # fmt: skip
    write(tmp_path, f"{PROGRESS}/coordination/discoveries.ndjson", json.dumps(row))
    told = [event.summary for event in read(tmp_path).events if event.kind == "log"]
    assert told == ["blocker No data untested"]


def test_the_timeline_merges_what_the_files_tell(tmp_path: Path) -> None:
    said = {"timestamp": "2026-03-02T18:40:00+08:00", "source": "vas", "target": "cd"}
    cycle(tmp_path, coordination=coordination(feedback_log=[said | {"content": "Fix it"}]))
    write(tmp_path, f"{PROGRESS}/coordination/feedback.md", "# F\n- [18:30:00] RA: Clarified\n")
    write(tmp_path, f"{PROGRESS}/coordination/timeline.md", "- 2026-03-02T18:35:00+08:00 COMPLETE")
    row = {"timestamp": "2026-03-02 18:32", "action": "create", "file": "csv.py"}
    write(tmp_path, f"{PROGRESS}/cd/changes.log", json.dumps(row) + "\nnot a row\n")
    events = read(tmp_path).events
    told = [(e.actor, e.summary, e.at_source) for e in events if e.line or e.kind not in _STAMPS]
    assert told == [
        ("ra", "Clarified", "inferred"),
        ("cd", "create csv.py", "recorded"),
        ("orchestrator", "COMPLETE", "recorded"),
        ("vas", "to cd: Fix it", "recorded"),
    ]
    assert len({event.id for event in events}) == len(events)


_STAMPS = ("started", "completed")


def test_a_z_behind_the_local_time_is_taken_as_such(tmp_path: Path) -> None:
    cycle(tmp_path, created_at="2026-03-02T19:30:00Z", updated_at="2026-03-02T19:59:00Z")
    started = read(tmp_path).started
    assert started is not None and started == NOW - timedelta(minutes=30)


def test_the_cycle_that_goes_on_is_shown_and_all_are_listed(tmp_path: Path) -> None:
    cycle(tmp_path)
    other = "cycle-v1-20260303T180000-later"
    ended = state("completed", cycle_id=other, updated_at="2026-03-03T19:00:00+08:00")
    write(tmp_path, f"{HOME}/{other}.json", ended)
    (tmp_path / HOME / "cycle-auto-7.progress").mkdir()
    names = [(row[4], row[1], row[3]) for row in cells(tmp_path, "cycles")]
    assert names == [
        (ID, "running", "shown"),
        (other, "completed", ""),
        ("cycle-auto-7", "no state file", ""),
    ]


def test_a_torn_state_is_bridged_by_the_last_good_one(tmp_path: Path) -> None:
    opened = open_cycles(str(cycle(tmp_path)))
    opened.refresh(NOW)
    write(tmp_path, STATE, '{"cycle_id', ago=0.5)
    torn = opened.refresh(NOW)
    assert (torn.findings, torn.phase, torn.source.state) == ((), "cd", SourceState.LIVE)
    assert torn.recheck_at is not None
    late = opened.refresh(NOW + timedelta(seconds=3))
    assert [finding.code for finding in late.findings] == ["A01"]
    assert (late.phase, late.source.state) == ("cd", SourceState.STALE)


def test_documents_load_and_links_are_not_followed(tmp_path: Path) -> None:
    secret = write(tmp_path / "other", "secret.md", "# Secret\n")
    project = cycle(tmp_path / "project")
    write(project, f"{PROGRESS}/ra/requirements.md", "# Requirements\n\x1b[31mred\n")
    (project / PROGRESS / "ra/edge-cases.md").symlink_to(secret)
    (project / PROGRESS / "ep").symlink_to(tmp_path / "other")
    opened = open_cycles(str(project))
    snapshot = opened.refresh(NOW)
    assert "Secret" not in str(snapshot)
    text = opened.load(f"{PROGRESS}/ra/requirements.md")
    assert text.headings[0].title == "Requirements" and "\x1b" not in text.text
    link = opened.load(f"{PROGRESS}/ra/edge-cases.md")
    assert (link.text, link.note) == ("", "a symbolic link, which is not followed")
    with pytest.raises(KeyError):
        opened.load("../other/secret.md")
    assert f"{PROGRESS}/ra/edge-cases.md" not in {each.name for each in opened.tracked_files()}
    assert all(str(folder).startswith(str(project)) for folder in opened.watched())


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=6), below, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(key=st.sampled_from(sorted(state())), value=_VALUES, inner=st.booleans())
def test_whatever_stands_in_the_state_it_is_read(
    tmp_path: Path, key: str, value: object, inner: bool
) -> None:
    changed = state()
    held = changed[key]
    if inner and isinstance(held, dict):
        changed[key] = held | dict.fromkeys(list(held)[:2], value)
    else:
        changed[key] = value
    write(tmp_path, STATE, changed)
    write(tmp_path, f"{PROGRESS}/vas/test-results.json", {"summary": value, "coverage": value})
    write(tmp_path, f"{PROGRESS}/ep/plan.json", {"tasks": [value], "total_tasks": value})
    assert read(tmp_path).key == str(tmp_path)


@pytest.mark.parametrize("cut", [0, 1, 40, 200, 700])
def test_a_truncated_state_is_a_finding(tmp_path: Path, cut: int) -> None:
    write(tmp_path, STATE, json.dumps(state())[:cut])
    snapshot = read(tmp_path)
    assert [finding.code for finding in snapshot.findings] == ["A01"]
    assert snapshot.status is Status.UNKNOWN


def test_deep_and_foreign_json_is_a_finding(tmp_path: Path) -> None:
    for content in ("[" * 100_000, "[]", '{"a":' * 60 + "1" + "}" * 60, "\x00\xff"):
        write(tmp_path, STATE, content)
        code = "A02" if content == "[]" else "A01"
        assert [finding.code for finding in read(tmp_path).findings] == [code]


def test_a_pipe_in_place_of_a_state_is_a_finding(tmp_path: Path) -> None:
    os.mkfifo(cycle(tmp_path) / HOME / "cycle-v1-20260301-pipe.json")
    write(tmp_path, f"{HOME}/cycle-v1-20260301-ahead.json", "{", ago=-3600)
    assert [finding.code for finding in read(tmp_path).findings] == ["A01", "A01"]
