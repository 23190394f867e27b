"""A run of sub-agents is read as it stands, whatever form it has."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_core.protocols.workspaces.collaboration import open_workspaces
from acp_core.protocols.workspaces.read.scan import detect
from acp_core.protocols.workspaces.schema import parse_return
from tests.protocols.workspaces.making import (
    NOW,
    ORIGIN,
    agent,
    codes,
    read,
    returned,
    run,
    states,
    status,
    write,
)

OWN = "agent-workspaces/ann"


def test_a_run_is_found_and_an_ordinary_repository_is_not(tmp_path: Path) -> None:
    assert not detect(tmp_path / "none")
    repository = tmp_path / "repository"
    write(repository, "workspaces/app/package.json", {"name": "app"})
    write(repository, "workspaces/app/status.json", {"status": "ok"})
    write(repository, "agent-workspaces/README.md", "Nothing yet.")
    assert not detect(repository)
    assert detect(run(tmp_path / "run"))
    write(tmp_path / "other", "workspaces/ann/ann-status.json", status("ann"))
    assert detect(tmp_path / "other")
    write(tmp_path / "planned", "agent-workspaces/.coord/manifest.json", {"agents": []})
    assert detect(tmp_path / "planned")


def test_the_newer_of_two_status_files_holds(tmp_path: Path) -> None:
    run(tmp_path)
    later = status("ann", "partial", completed_at="2026-03-01T11:00:00Z")
    write(tmp_path, f"{OWN}/ann-status.json", later, 5000)
    assert "B12 error" in codes(tmp_path)
    triage = read(tmp_path).panels[2].rows[0].cells
    assert triage == ("ann", "partial", "undecided", "reason unknown", "ann-part")


def test_a_moved_run_finds_its_files_and_reads_nothing_outside(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("secret")
    root = run(tmp_path / "moved")
    told = [finding.message for finding in read(root).findings]
    place = f"{ORIGIN}/{OWN}/output.md"
    assert told == [f"the run was moved: {place} was found at its new path, and 1 more"]
    for written in (
        str(outside),
        f"{ORIGIN}/agent-workspaces/../../outside.md",
        "../../../outside.md",
    ):
        listed = status("ann")
        listed["outputs"][0]["file"] = written
        write(root, f"{OWN}/status.json", listed)
        assert codes(root) & {"B06 error", "B08 error"}
        assert all(str(outside) != each.path for each in read(root).documents)
    os.symlink(outside, root / OWN / "link.md")
    link = read(root).document(f"{OWN}/link.md")
    assert link is not None
    assert link.path is None


def test_a_status_file_that_is_being_written_is_no_error_yet(tmp_path: Path) -> None:
    write(run(tmp_path), f"{OWN}/status.json", '{"agent": "ann", "sta', 1)
    opened = open_workspaces(str(tmp_path))
    early = opened.refresh(NOW)
    assert [finding.code for finding in early.findings] == ["B17"]
    assert states(tmp_path)["ann"] == "working"
    assert early.recheck_at == NOW + timedelta(seconds=1)
    late = opened.refresh(NOW + timedelta(seconds=2))
    assert [finding.code for finding in late.findings] == ["B01", "B17"]


def test_a_return_is_found_in_what_was_said() -> None:
    one, other = json.dumps(returned("ann")), json.dumps(returned("ann", "partial"))
    assert parse_return(one) == (returned("ann"), False)
    assert parse_return(f"```json\n{one}\n```") == (returned("ann"), False)
    assert parse_return(f"Use {{braces}}.\n```json\n{one}\n```\nBye.") == (returned("ann"), True)
    assert parse_return(f"{one}\n{other}")[0] == returned("ann", "partial")
    assert parse_return("STATUS: DONE\nTASK_ID: 3\nAGENT: ann\n\nText")[0] == {
        "status": "DONE",
        "task_id": "3",
        "agent": "ann",
    }
    assert parse_return("All is fine.") == (None, False)
    assert parse_return("{" * 100_000)[0] is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(), below, max_size=4),
    max_leaves=10,
)
_KEYS = st.sampled_from(
    ["agent", "status", "task_id", "outputs", "agents", "files_written", "conflicts", "gaps"]
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.dictionaries(_KEYS, _JSON), st.sampled_from(["success", "partial", "\ud800", "\x1b[2J"]))
def test_whatever_agents_write_is_read(tmp_path: Path, value: dict[str, object], word: str) -> None:
    run(tmp_path)
    said = json.dumps({**status("ann"), **value, "outputs": [{"file": word}, value]})
    coord = "agent-workspaces/.coord"
    write(tmp_path, f"{OWN}/status.json", said)
    for name in ("returns/ann-part.json", f"{coord}/manifest.json", f"{coord}/triage.json"):
        write(tmp_path, name, json.dumps({"status": word, **value}))
    write(tmp_path, "integration/status.json", json.dumps(value))
    snapshot = read(tmp_path)
    shown = [finding.message for finding in snapshot.findings]
    shown += [cell for panel in snapshot.panels for row in panel.rows for cell in row.cells]
    assert not any("\x1b" in text or "\ud800" in text for text in shown)


@pytest.mark.parametrize(("ago", "wanted"), [(0.5, False), (10.0, True)])
def test_a_status_that_is_just_being_written_is_waited_for(
    tmp_path: Path, ago: float, wanted: bool
) -> None:
    run(tmp_path)
    entry = {"agent": "ben", "task_id": "ben-part", "task": "Compare.", "attempt": 1}
    times = {"dispatched_at": "2026-03-01T09:00:00Z", "ended_at": "2026-03-01T10:00:00Z"}
    write(tmp_path, "agent-workspaces/.coord/manifest.json", {"agents": [entry | times]})
    write(tmp_path, "agent-workspaces/ben/status.json", '{"agent": "ben", "sta', ago)
    found = read(tmp_path)
    about = [each for each in found.needs if each.about.participant == "ben"]
    assert [each.code for each in about] == (["undecided"] if wanted else [])
    assert all("ended with a status file that cannot be read" in each.sentence for each in about)


@pytest.mark.parametrize("word", ["partial", "failure"])
def test_an_agent_that_is_undecided_and_contradicts_itself_is_one_need(
    tmp_path: Path, word: str
) -> None:
    run(tmp_path)
    agent(tmp_path, "ben", word)
    write(tmp_path, "agent-workspaces/.coord/returns/ben-return.json", returned("ben"))
    assert states(tmp_path)["ben"] == "inconsistent"
    (need,) = [each for each in read(tmp_path).needs if each.about.participant == "ben"]
    assert need.code == "inconsistent"
    write(
        tmp_path,
        "agent-workspaces/.coord/triage.json",
        {"decisions": [{"agent": "ben", "decision": "accept", "reason": "x"}]},
    )
    left = [each.code for each in read(tmp_path).needs if each.about.participant == "ben"]
    assert left == (["undecided"] if word == "failure" else [])
