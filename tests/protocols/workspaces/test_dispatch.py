"""A run is prepared and dispatched; what the programs return is kept."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path

import pytest

from acp_core.agents import presets
from acp_core.protocols.workspaces.conduct import advance as conduct_advance
from acp_core.protocols.workspaces.conduct import agent
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.conduct.advance import Advanced, advance
from tests.protocols.workspaces.running import (
    acp,
    begun,
    entries,
    now,
    prepare,
    program,
    states,
    told,
)
from tests.support.private import open_to_others

COORD = "agent-workspaces/.coord"


def test_the_layout_stands_before_anything_is_dispatched(tmp_path: Path) -> None:
    root = tmp_path / "run"
    dry = acp("init", root, "--task", "queues", "-a", "ann=Look", "--dry-run")
    assert dry.code == 0
    assert not root.exists()
    prepare(root, "ann", "ben", scope="Queues only", format="json")
    for name in ("ann", "ben", "shared", ".coord/prompts", ".coord/returns", ".coord/history"):
        assert (root / "agent-workspaces" / name).is_dir()
    spec = json.loads((root / "agent-workspaces/shared/task-spec.json").read_text())
    assert (spec["scope"], spec["output_format"]) == ("Queues only", "json")
    assert states(root) == {"ann": "not dispatched", "ben": "not dispatched"}
    assert now(root).headline == "preparing: 2 not dispatched"
    again = acp("init", root, "--task", "queues", "-a", "ann=Look")
    assert again.code == 2
    assert "already contains a run" in again.text


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ({"agents": []}, "has no agents"),
        ({"agents": [{"agent": "../x", "task": "Look"}]}, "is not a valid name"),
        ({"agents": [{"agent": "shared", "task": "Look"}]}, "is a reserved name"),
        ({"agents": [{"agent": "a", "task": "Look"}, {"agent": "A", "task": "See"}]}, "two agents"),
        ({"agents": [{"agent": "a", "task": "One.\n\nTwo."}]}, "one paragraph"),
        ({"agents": [{"agent": "a", "task": "Look", "format": "../x"}]}, "not a file extension"),
        ({"agents": [{"agent": "a", "task": "Look", "task_id": "a/b"}]}, "name of a task"),
        ({"agents": [{"agent": "a", "task": "Look", "after": ["b"]}]}, "not in the plan"),
        ({"agents": [{"agent": "a", "task": "L", "after": ["a"]}]}, "wait for each other"),
        ({"agents": [{"agent": "a", "task": "Look", "timeout_s": -1}]}, "number of seconds"),
        ({"agents": [{"agent": "a\udcff", "task": "Look"}]}, "contains an invalid character"),
        ({"agents": ["a"]}, "not an object"),
        ({"agents": [{"agent": "a", "task": "Look"}], "format": "exe"}, "unknown (formats: md"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(
    tmp_path: Path, plan: dict[str, object], why: str
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"task": "queues", **plan}))
    ended = acp("init", tmp_path / "run", "--plan", path)
    assert ended.code == 2
    assert why in ended.text
    assert ended.text.count("\n") == 1
    assert not (tmp_path / "run" / "agent-workspaces").exists()


def test_agents_work_in_parallel_and_their_returns_are_kept(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run with spaces", "ann", "ben")
    words = program(tmp_path / "own", ben="contradict")
    ended = acp("dispatch", root, "--", *words)
    assert ended.code == 0, ended.text
    assert states(root) == {"ann": "success", "ben": "success"}
    assert sorted(begun(tmp_path / "own")) == ["ann", "ben"]
    prompt = (root / COORD / "prompts/ann-compare-queues.md").read_text()
    assert f"Write your primary output to: {root}/agent-workspaces/ann/output.md" in prompt
    assert "You are the ann agent on a 2-agent team" in prompt
    kept = {path.name for path in (root / COORD / "returns").iterdir()}
    assert kept == {"ann-compare-queues.json", "ben-compare-queues.txt"}
    assert open_to_others() == []
    assert {f.code for f in now(root).findings} == set()
    assert acp("dispatch", root).code == 0  # nothing is left to do
    assert len(begun(tmp_path / "own")) == 2
    assert acp("check-prompt", *(root / COORD / "prompts").iterdir()).code == 0


def test_who_works_on_anothers_output_is_told_where_it_is(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann", "ben", after="ben=ann", naming="prefixed")
    ended = acp("dispatch", root, "--", *program(tmp_path / "own", ann="partial"))
    assert ended.code == 1
    assert states(root) == {"ann": "partial", "ben": "not dispatched"}
    assert "needs your decision: ann" in ended.text
    triage = {"agent": "ann", "task_id": "ann-compare-queues", "decision": "accept"}
    (root / COORD / "triage.json").write_text(json.dumps({"decisions": [triage]}))
    assert acp("dispatch", root).code == 1  # ann is partial still, as was accepted
    assert begun(tmp_path / "own") == ["ann", "ben"]
    assert states(root) == {"ann": "partial (accept)", "ben": "success"}
    prompt = (root / COORD / "prompts/ben-compare-queues.md").read_text()
    assert f"- {root}/agent-workspaces/ann/ann-output.md (required)" in prompt
    assert not {"B48", "B49"} & {finding.code for finding in now(root).findings}


def test_what_cannot_be_dispatched_is_held_and_said(tmp_path: Path) -> None:
    root, wanted = tmp_path / "run", tmp_path / "facts.md"
    assert acp("init", root, "--task", "queues", "-a", "ann=Look", "--input", wanted).code == 0
    words = program(tmp_path / "own")
    ended = acp("dispatch", root, "--", *words)
    assert f"the required input {wanted} does not exist" in ended.text
    assert begun(tmp_path / "own") == []
    wanted.write_text("Facts.\n")
    assert acp("dispatch", root).code == 0
    bracket = tmp_path / "bracket"
    assert acp("init", bracket, "--task", "queues", "-a", "ann=Look at [AGENT-ROLE]").code == 0
    ended = acp("dispatch", bracket, "--", *words)
    assert "[AGENT-ROLE], which was not filled in" in ended.text
    assert acp("dispatch", bracket, "--program", "no such").code == 2
    assert acp("dispatch", bracket, "--", "/no/such/program").code == 2
    unprepared = acp("dispatch", tmp_path, "--", *words)
    assert unprepared.code == 2
    assert "acp workspaces init" in unprepared.text


def test_no_program_is_started_for_what_stands_in_the_run(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann")
    ended = acp("dispatch", root)
    assert ended.code == 2
    assert "no program was chosen" in ended.text
    manifest = root / COORD / "manifest.json"
    value = json.loads(manifest.read_text())
    value["program"] = value["agents"][0]["program"] = ["/bin/sh"]
    value["agents"][0]["output"] = "/etc/passwd"
    manifest.write_text(json.dumps(value))
    assert acp("dispatch", root, "--", *program(tmp_path / "own")).code == 0
    assert entries(root)["ann"]["output"] == f"{root}/agent-workspaces/ann/output.md"


@pytest.mark.parametrize("name", ["ann", ".coord/prompts", "shared", "../integration"])
def test_nothing_is_written_through_a_symbolic_link(tmp_path: Path, name: str) -> None:
    root, outside = prepare(tmp_path / "run", "ann"), tmp_path / "outside"
    outside.mkdir()
    place = root / "agent-workspaces" / name
    if place.is_dir():
        for each in place.iterdir():
            each.unlink()
        place.rmdir()
    os.symlink(outside, place)
    ended = acp("dispatch", root, "--", *program(tmp_path / "own"))
    assert "is a symbolic link" in ended.text
    assert list(outside.iterdir()) == []
    assert begun(tmp_path / "own") == []


@pytest.mark.slow
def test_an_agent_that_is_not_through_in_time_is_stopped(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann", "ben", timeout="1")
    ended = acp("dispatch", root, "--", *program(tmp_path / "own", ben="silent"))
    assert ended.code == 1
    assert states(root) == {"ann": "success", "ben": "missing"}
    assert "not finished after 1 s" in entries(root)["ben"]["exit"]
    assert now(root).headline.startswith("collecting")


def test_writes_outside_of_the_workspace_are_told(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann", "ben")
    acp("dispatch", root, "--limit", "1", "--", *program(tmp_path / "own", ben="stray"))
    found = [f for f in now(root).findings if f.code == "B08"]
    assert [f.message for f in found] == ["stray.md changed outside its workspace while ben worked"]
    assert "outside" not in str([f for f in now(root).findings if "ann" in f.message])


@pytest.mark.slow
def test_only_a_few_work_at_the_same_time(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann", "ben", "cat")
    ended = acp("dispatch", root, "--limit", "1", "--", *program(tmp_path / "own"))
    assert ended.code == 0
    assert "ben: limit reached: 1 working" in ended.text
    assert begun(tmp_path / "own") == ["ann", "ben", "cat"]


def test_whom_a_watcher_starts_just_before_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else dispatched everybody a moment ago: whoever follows finds nobody to begin."""
    root = prepare(tmp_path / "run", "ann", "ben")
    teams.save_team(teams.team_of(root, words=program(tmp_path / "own")))

    def a_moment_ago(folder: Path, now: datetime) -> Advanced:
        advance(folder, now)
        return Advanced()

    monkeypatch.setattr(conduct_advance, "advance", a_moment_ago)
    last = {news.agent: news.state for news in conduct_advance.follow(root)}
    assert last == {"ann": "success", "ben": "success"}


def test_a_program_that_is_gone_is_told(tmp_path: Path) -> None:
    root, gone = prepare(tmp_path / "run", "ann"), tmp_path / "gone"
    gone.write_text("#!/bin/sh\n")
    gone.chmod(0o755)
    teams.save_team(teams.team_of(root, words=[str(gone)]))
    gone.unlink()
    ended = acp("dispatch", root)
    assert ended.code == 1
    assert "could not be started" in entries(root)["ann"]["exit"]
    assert states(root) == {"ann": "missing"}


def test_a_dry_run_starts_nothing(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann")
    before = sorted(path for path in root.rglob("*"))
    value = told("dispatch", root, "--dry-run", "--", *program(tmp_path / "own"))
    assert value["would"][0]["agent"] == "ann"
    assert "YOUR TASK:" in value["would"][0]["prompt"]
    assert sorted(path for path in root.rglob("*")) == before
    assert begun(tmp_path / "own") == []


def test_a_prompt_is_checked_before_it_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "prompt.md"
    path.write_text("You are [AGENT-ROLE].\n\nYOUR TASK:\nLook\n\nINPUTS:\n- /no/such (required)\n")
    ended = acp("check-prompt", path)
    assert ended.code == 2
    assert "B50 [AGENT-ROLE] was not filled in" in ended.text
    assert "B52 the section OUTPUTS is missing" in ended.text
    assert "B49 the required input /no/such does not exist" in ended.text
    assert acp("check-prompt", tmp_path / "none").code == 2


def test_a_return_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "said.txt"
    value = {"status": "DONE", "agent": "ann", "task_id": "ann-x", "files_written": []}
    back = json.dumps(value | {"summary": "Did it.", "errors": []})
    path.write_text(
        f"First {json.dumps({'status': 'x'})}, then:\n```json\n{back}\n```\nBye \x1b[2J"
    )
    ended = told("parse-return", path)
    assert (ended["ok"], ended["status"]) == (True, "success")
    assert [each["code"] for each in ended["findings"]] == ["B32"]
    path.write_text("All is fine.")
    assert acp("parse-return", path).code == 2


def test_the_last_message_of_a_stream_is_what_is_returned(tmp_path: Path) -> None:
    value = json.dumps({"status": "success", "agent": "ann"})
    records = [
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "Working"}]}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": value}]}},
        {"type": "result", "subtype": "success", "is_error": False, "result": value},
    ]
    path = tmp_path / "out"
    path.write_text("\n".join(json.dumps(each) for each in records))
    assert agent.read_return(path, "claude") == value
    assert agent.read_return(tmp_path / "none", "claude") == ""
    assert "claude" in presets.bundled()
