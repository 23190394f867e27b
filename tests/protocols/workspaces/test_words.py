"""What the commands say names whom it is about."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.protocols.workspaces.making import (
    agent,
    integrate,
    read,
    returned,
    run,
    write,
)
from tests.protocols.workspaces.running import acp, entries, prepare, program, states, told

BASE = "agent-workspaces"


def test_where_no_run_is_nothing_is_said_to_be_decided(tmp_path: Path) -> None:
    refused = acp("triage", tmp_path / "nosuch")
    assert refused.code == 2
    assert "no run of agents in this folder" in refused.text
    assert (
        "no agent 'eve'"
        in acp("triage", run(tmp_path / "run"), "eve", "accept", "--reason", "x").text
    )


def test_a_rule_that_many_break_stands_once_with_whom_it_is_about(tmp_path: Path) -> None:
    for number in range(12):
        agent(tmp_path, f"a{number:02}", completed_at=None)
    lines = [line for line in acp("status", tmp_path).text.splitlines() if " B02 " in line]
    names = ", ".join(f"a{number:02}" for number in range(8))
    assert lines == [f"  warning B02 {names} and 4 more: the status file lacks completed_at"]
    findings = told("status", tmp_path)["findings"]
    assert [each["agent"] for each in findings if each["code"] == "B02"][:2] == ["a00", "a01"]


def test_who_listed_an_output_that_is_not_there_is_named(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / BASE / "ben/output.md").unlink()
    refused = acp("draft", tmp_path)
    assert refused.code == 2
    assert "ben lists /elsewhere/project/agent-workspaces/ben/output.md" in refused.text
    assert "does not exist: rerun the agent, accept its result as it is, or skip it" in refused.text


def test_an_agent_that_contradicts_itself_is_not_called_a_success(tmp_path: Path) -> None:
    run(tmp_path)
    write(tmp_path, "returns/ann-part.json", returned("ann", "failure"))
    refused = acp("triage", tmp_path, "ann", "gap", "--reason", "x")
    assert "ann is inconsistent: decide accept, rerun, skip, not gap" in refused.text
    listed = acp("triage", tmp_path)
    assert listed.code == 1
    assert (
        listed.text
        == "ann: inconsistent: needs your decision: accept, rerun, skip (The rest is missing.)\n"
    )
    assert "ann" in told("triage", tmp_path)["undecided"]
    assert acp("triage", tmp_path, "ann", "accept", "--reason", "I read it").code == 0
    assert acp("triage", tmp_path).text.startswith("ann: inconsistent: accept")
    assert "ann" not in told("triage", tmp_path)["undecided"]


def test_who_approved_the_gaps_is_not_asked_again(tmp_path: Path) -> None:
    run(tmp_path)
    agent(tmp_path, "ben", "partial")
    for words in (
        ("triage", tmp_path, "ben", "accept", "--reason", "enough"),
        ("compare", tmp_path),
        ("draft", tmp_path),
    ):
        assert acp(*words).code == 0
    finished = acp("finish", tmp_path)
    assert "gap: ben (ben-part): partial, accepted" in finished.text
    snapshot = read(tmp_path)
    assert snapshot.headline.startswith("integrated with gaps")
    assert snapshot.needs == ()


def test_the_gaps_of_another_orchestrator_are_told_of(tmp_path: Path) -> None:
    run(tmp_path)
    integrate(tmp_path, gaps=["ben: nothing on latency"])
    assert [need.code for need in read(tmp_path).needs] == ["gaps"]


@pytest.mark.slow
def test_what_is_returned_with_prose_is_kept_as_text(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann", "ben")
    words = program(tmp_path / "own", ann=["contradict", "success"])
    assert acp("dispatch", root, "--", *words).code == 0
    kept = {each.name: each.read_text() for each in (root / BASE / ".coord/returns").iterdir()}
    assert set(kept) == {"ann-compare-queues.txt", "ben-compare-queues.json"}
    assert kept["ann-compare-queues.txt"].startswith("```json")
    assert json.loads(kept["ben-compare-queues.json"])["agent"] == "ben"
    assert acp("dispatch", root, "--again", "ann").code == 0
    assert (root / BASE / ".coord/history/ann/1/return-ann-compare-queues.txt").is_file()
    assert states(root) == {"ann": "success", "ben": "success"}


@pytest.mark.parametrize(("name", "what"), [("a/b", "an agent"), ("", "an agent")])
def test_a_name_that_cannot_be_one_is_said_in_english(tmp_path: Path, name: str, what: str) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"task": "x", "agents": [{"agent": name or "..", "task": "Do."}]}))
    refused = acp("init", tmp_path / "run", "--plan", plan)
    assert f"is not a valid name of {what}" in refused.text


@pytest.mark.slow
def test_a_limit_can_be_given_when_agents_are_dispatched(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann")
    words = program(tmp_path / "own", ann="silent")
    assert acp("dispatch", root, "--timeout", "1s", "--", *words).code == 1
    assert states(root) == {"ann": "missing"}
    assert "not finished after 1 s" in entries(root)["ann"]["exit"]


@pytest.mark.slow
def test_the_limit_of_the_settings_holds_for_agents_and_for_the_one_that_integrates(
    tmp_path: Path,
) -> None:
    config = Path(os.environ["ACP_CONFIG"])
    config.mkdir(parents=True)
    (config / "config.toml").write_text("[loops]\nturn_minutes = 0.02\n")
    root = prepare(tmp_path / "run", "ann")
    words = program(tmp_path / "own", ann=["silent", "success"])
    assert acp("dispatch", root, "--", *words).code == 1
    assert "not finished after 1.2 s" in entries(root)["ann"]["exit"]
    assert acp("dispatch", root, "--again", "ann", "--timeout", "1m").code == 0
    assert acp("compare", root).code == 0
    assert acp("dispatch", root, "--timeout", "1s", "--", *words).code == 0
    late = acp("synthesise", root, "--", "sleep", "600")
    assert late.code == 1
    assert "not finished after 1 s" in late.text
