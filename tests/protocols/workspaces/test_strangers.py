"""What others write where orchestrators meet, and others who orchestrate at the same time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_core.model.clock import utc_now
from acp_core.protocols.workspaces.acts.binding import actions
from tests.agents.support import ROOT
from tests.protocols.workspaces.making import run, write
from tests.protocols.workspaces.running import acp, begun, prepare, program, states

COORD = "agent-workspaces/.coord"
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below, max_size=3)
    ),
    max_leaves=8,
)
_NAMES = st.sampled_from(["ann", "ben", "../x", "", "\x1b[2J", "a\nb", "shared"])
_ENTRY = st.fixed_dictionaries(
    {"agent": _NAMES | _JSON},
    optional={
        "task": st.sampled_from(["Look.", "a\n\nb", "[AGENT-ROLE]", "\ud800"]) | _JSON,
        "task_id": _NAMES | _JSON,
        "after": st.lists(_NAMES, max_size=2) | _JSON,
        "inputs": st.lists(st.sampled_from(["/etc/passwd", "../../x", "\0"]), max_size=2) | _JSON,
        "format": st.sampled_from(["md", "../md"]) | _JSON,
        "attempt": st.integers(-1, 10**6) | _JSON,
        "dispatched_at": st.sampled_from(["2026-03-01T10:00:00Z", "now"]) | _JSON,
        "ended_at": _JSON,
        "output": st.just("/etc/passwd") | _JSON,
        "prompt_file": st.just("/etc/passwd") | _JSON,
        "timeout_s": _JSON,
        "decision": st.sampled_from(["accept", "rerun", "gap"]) | _JSON,
        "agents": st.just(["ann", "ben"]) | _JSON,
        "topic": _NAMES | _JSON,
        "id": st.just("c1") | _JSON,
    },
)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(_ENTRY, max_size=3) | _JSON, st.lists(_ENTRY, max_size=3) | _JSON)
def test_whatever_stands_there_is_refused_in_one_line_or_used(
    tmp_path: Path, planned: object, said: object
) -> None:
    root = run(tmp_path / "run")
    write(root, f"{COORD}/manifest.json", json.dumps({"agents": planned, "order": said}))
    write(root, f"{COORD}/triage.json", json.dumps({"decisions": said}))
    write(root, f"{COORD}/conflicts.json", json.dumps({"conflicts": said}))
    before = sorted(path for path in tmp_path.rglob("*") if not path.is_relative_to(root))
    for words in (
        ("status", root),
        ("triage", root),
        ("triage", root, "ann", "rerun", "--reason", "more", "--dry-run"),
        ("conflicts", root),
        (
            "conflicts",
            root,
            "--resolve",
            "c1",
            "--keep",
            "ann",
            "--because",
            "sourced",
            "--dry-run",
        ),
        ("integrate", root),
        ("integrate", root, "--finish", "--dry-run"),
        ("dispatch", root, "--dry-run", "--", "true"),
    ):
        ended = acp(*words)
        assert ended.code in (0, 1, 2)
        assert "\x1b" not in ended.text
        assert ended.code != 2 or ended.text.count("\n") == 1, ended.text
    for action in actions(str(root), utc_now()):
        action.inputs.model_json_schema()
    assert sorted(p for p in tmp_path.rglob("*") if not p.is_relative_to(root)) == before


@pytest.mark.slow
def test_two_who_dispatch_at_the_same_time_start_nobody_twice(tmp_path: Path) -> None:
    root, own = prepare(tmp_path / "run", "ann", "ben", "cat", after="cat=ann"), tmp_path / "own"
    command = [sys.executable, "-m", "acp_tui", "workspaces", "dispatch", str(root), "--"]
    both = [
        subprocess.Popen([*command, *program(own, ann="slow")], cwd=ROOT, stdout=subprocess.DEVNULL)
        for _ in range(2)
    ]
    assert [process.wait() for process in both] == [0, 0]
    assert sorted(begun(own)) == ["ann", "ben", "cat"]
    assert set(states(root).values()) == {"success"}


@pytest.mark.parametrize("name", ["../x", "a/b", ".coord", "shared", "x" * 70])
def test_an_agent_of_a_manifest_cannot_lead_out_of_its_workspace(tmp_path: Path, name: str) -> None:
    root = prepare(tmp_path / "run", "ann")
    manifest = root / COORD / "manifest.json"
    value = json.loads(manifest.read_text())
    value["agents"][0]["agent"] = name
    manifest.write_text(json.dumps(value))
    before = sorted(tmp_path.rglob("*"))
    ended = acp("dispatch", root, "--", *program(tmp_path / "own"))
    assert ended.code == 2
    assert ended.text.count("\n") == 1
    left = [path for path in tmp_path.rglob("*") if not path.is_relative_to(tmp_path / "own")]
    assert sorted(left) == before
