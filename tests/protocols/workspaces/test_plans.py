"""What an orchestrator's record says of its agents, read and judged without a process."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from acp_core.model.errors import Refused
from acp_core.protocols.workspaces import state
from acp_core.protocols.workspaces.read import scan
from acp_core.protocols.workspaces.schema import Run
from acp_core.protocols.workspaces.write import (
    conflicts,
    dispatch,
    drafting,
    manifest,
    parts,
    triage,
)
from acp_core.protocols.workspaces.write.layout import layout
from tests.protocols.workspaces.making import NOW, agent, run, write

COORD = "agent-workspaces/.coord"


def read(root: Path) -> Run:
    return scan.scan(root, scan.listed(root), NOW)


def entry(name: str, *after: str, **more: Any) -> dict[str, Any]:
    return {"agent": name, "task_id": f"{name}-part", "task": "Do it", "after": list(after)} | more


def planned(root: Path, *entries: dict[str, Any]) -> manifest.Manifest:
    write(root, f"{COORD}/manifest.json", {"agents": list(entries)}, 10)
    return manifest.read(layout(root))


def decided(root: Path, *decisions: tuple[str, str]) -> None:
    made = [{"agent": name, "decision": word, "reason": "So"} for name, word in decisions]
    write(root, f"{COORD}/triage.json", {"decisions": made}, 5)


def test_two_entries_for_one_agent_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="two entries for ann"):
        planned(run(tmp_path), entry("ann"), entry("ben"), entry("ann"))


def test_an_attempt_that_makes_no_sense_is_the_first() -> None:
    assert [manifest.attempt({"attempt": n}) for n in (None, 0, 1, 3, 10_000)] == [1, 1, 1, 3, 1]


def test_who_is_still_to_be_dispatched(tmp_path: Path) -> None:
    root = run(tmp_path)
    plan = planned(
        root, entry("ann"), entry("ben"), entry("cy"), entry("dan"), entry("eve", dispatched_at="x")
    )
    assert dispatch.waiting(plan, read(root)) == ["cy", "dan"]
    decided(root, ("ann", "rerun"), ("dan", "gap"))
    assert dispatch.waiting(plan, read(root)) == ["ann", "cy"]


def test_an_agent_waits_for_those_before_it_unless_they_were_given_up_on(tmp_path: Path) -> None:
    root = run(tmp_path)
    agent(root, "cy", "partial")
    plan = planned(root, entry("ann"), entry("cy"), entry("dan"), entry("ben", "ann", "cy", "dan"))
    assert dispatch.obstacle(plan, "ben", read(root)) == "is waiting for your decision on cy"
    decided(root, ("cy", "accept"))
    assert dispatch.obstacle(plan, "ben", read(root)) == "is waiting for dan"
    decided(root, ("cy", "accept"), ("dan", "gap"))
    assert dispatch.obstacle(plan, "ben", read(root)) == ""
    decided(root, ("cy", "rerun"), ("dan", "gap"))
    assert dispatch.obstacle(plan, "ben", read(root)) == "is waiting for cy, which will rerun"


def test_everybody_who_holds_up_the_integration_is_named(tmp_path: Path) -> None:
    root = run(tmp_path)
    triage.require_all(read(root))
    agent(root, "cy", "partial")
    agent(root, "dan", "failed")
    with pytest.raises(Refused, match="without a final result or decision: cy, dan "):
        triage.require_all(read(root))


def test_outputs_that_changed_after_they_were_compared_are_compared_again(tmp_path: Path) -> None:
    root = run(tmp_path)
    looked = NOW - timedelta(minutes=30)
    for ended, compared in (
        (looked - timedelta(minutes=1), True),
        (looked + timedelta(minutes=1), False),
    ):
        planned(root, entry("ann", ended_at=ended.isoformat()), entry("ben"))
        write(
            root, f"{COORD}/conflicts.json", {"conflicts": [], "looked_at": looked.isoformat()}, 5
        )
        assert state.steps(read(root))[3] is compared


def test_a_fact_is_not_settled_without_whose_and_why(tmp_path: Path) -> None:
    root = run(tmp_path)
    item = {"id": "c1", "agents": ["ann", "ben"], "topic": "port", "category": "factual"}
    write(root, f"{COORD}/conflicts.json", {"conflicts": [item]}, 5)
    place = layout(root)
    with pytest.raises(Refused, match="choose whose version"):
        conflicts.resolve(place, "c1", category="factual", keep="")
    with pytest.raises(Refused, match="give the reason why the version holds"):
        conflicts.resolve(place, "c1", category="factual", keep="ann", because="louder")


def test_a_link_is_no_part_of_a_text(tmp_path: Path) -> None:
    root = run(tmp_path)
    (root / "agent-workspaces/ben/more.md").symlink_to(root / "agent-workspaces/ann/output.md")
    files = {file.path.name: file for each in read(root).agents for file in each.files}
    assert parts.text_of(files["more.md"]) == ("", "is a symbolic link")


def test_headings_go_down_and_comments_in_code_stay(tmp_path: Path) -> None:
    root = run(tmp_path)
    write(root, "agent-workspaces/ann/output.md", "# Ann\n```\n# no heading\n```\n## More\n")
    found = read(root)
    path = next(
        file.path
        for each in found.agents
        if each.name == "ann"
        for file in each.files
        if file.path.name == "output.md"
    )
    material = drafting.Material([("ann", path, 1)], [], [], [])
    text = drafting.text(found, planned(root, entry("ann"), entry("ben")), material)
    assert "### Ann\n```\n# no heading\n```\n#### More" in text


def test_who_compared_is_recorded_and_what_people_recorded_stays(tmp_path: Path) -> None:
    root = run(tmp_path)
    about = {"agents": ["ann", "ben"], "category": "factual"}
    stale = about | {"id": "c1", "topic": "gone", "hint": True}
    told = about | {"id": "c2", "topic": "port"}
    write(root, f"{COORD}/conflicts.json", {"conflicts": [stale, told]}, 5)
    for by, said in (("", triage.me()), ("Ann Lee", "Ann Lee")):
        (made,) = conflicts.record_hints(layout(root), by).writes
        kept = json.loads(made.data)
        assert kept["by"] == said and [each["id"] for each in kept["conflicts"]] == ["c2"]
        (made,) = conflicts.dismiss(layout(root), "c2", "The same port", by).writes
        assert json.loads(made.data)["conflicts"][1]["by"] == said
