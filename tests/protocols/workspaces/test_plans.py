"""What an orchestrator's record says of its agents, read and judged without a process."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from acp_core.files import transaction
from acp_core.model.errors import Refused
from acp_core.protocols.workspaces import state
from acp_core.protocols.workspaces.read import manifest, scan
from acp_core.protocols.workspaces.read.manifest import layout, read_json
from acp_core.protocols.workspaces.schema import Layout, Run
from acp_core.protocols.workspaces.write import dispatch, integration
from acp_core.protocols.workspaces.write.step import locked
from tests.protocols.workspaces.making import NOW, ORIGIN, agent, prompt, run, write

COORD = "agent-workspaces/.coord"


def read(root: Path) -> Run:
    return scan.scan(root, scan.listed(root), NOW)


def entry(name: str, *after: str, **more: Any) -> dict[str, Any]:
    return {"agent": name, "task_id": f"{name}-part", "task": "Do it", "after": list(after)} | more


def planned(root: Path, *entries: dict[str, Any]) -> manifest.Manifest:
    write(root, f"{COORD}/manifest.json", {"agents": list(entries)}, 10)
    return manifest.read_manifest(layout(root))


def decided(root: Path, *decisions: tuple[str, str]) -> None:
    made = [{"agent": name, "decision": word, "reason": "So"} for name, word in decisions]
    write(root, f"{COORD}/triage.json", {"decisions": made}, 5)


def test_two_entries_for_one_agent_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="two entries for ann"):
        planned(run(tmp_path), entry("ann"), entry("ben"), entry("ann"))


def test_an_attempt_that_makes_no_sense_is_the_first() -> None:
    assert [manifest.attempt_of({"attempt": n}) for n in (None, 0, 1, 3, 10_000)] == [1, 1, 1, 3, 1]


def test_who_is_still_to_be_dispatched(tmp_path: Path) -> None:
    root = run(tmp_path)
    plan = planned(
        root, entry("ann"), entry("ben"), entry("cy"), entry("dan"), entry("eve", dispatched_at="x")
    )
    assert dispatch.waiting_agents(plan, read(root)) == ["cy", "dan"]
    decided(root, ("ann", "rerun"), ("dan", "gap"))
    assert dispatch.waiting_agents(plan, read(root)) == ["ann", "cy"]


def test_an_agent_waits_for_those_before_it_unless_they_were_given_up_on(tmp_path: Path) -> None:
    root = run(tmp_path)
    agent(root, "cy", "partial")
    plan = planned(root, entry("ann"), entry("cy"), entry("dan"), entry("ben", "ann", "cy", "dan"))
    assert (
        dispatch.why_not_dispatched(plan, "ben", read(root)) == "is waiting for your decision on cy"
    )
    decided(root, ("cy", "accept"))
    assert dispatch.why_not_dispatched(plan, "ben", read(root)) == "is waiting for dan"
    decided(root, ("cy", "accept"), ("dan", "gap"))
    assert dispatch.why_not_dispatched(plan, "ben", read(root)) == ""
    decided(root, ("cy", "rerun"), ("dan", "gap"))
    assert (
        dispatch.why_not_dispatched(plan, "ben", read(root))
        == "is waiting for cy, which will rerun"
    )


def test_everybody_who_holds_up_the_integration_is_named(tmp_path: Path) -> None:
    root = run(tmp_path)
    dispatch.require_all(read(root))
    agent(root, "cy", "partial")
    agent(root, "dan", "failed")
    with pytest.raises(Refused, match="without a final result or decision: cy, dan "):
        dispatch.require_all(read(root))


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
        integration.resolve_conflict(place, "c1", category="factual", keep="")
    with pytest.raises(Refused, match="give the reason why the version holds"):
        integration.resolve_conflict(place, "c1", category="factual", keep="ann", because="louder")


def test_a_link_is_no_part_of_a_text(tmp_path: Path) -> None:
    root = run(tmp_path)
    (root / "agent-workspaces/ben/more.md").symlink_to(root / "agent-workspaces/ann/output.md")
    files = {file.path.name: file for each in read(root).agents for file in each.files}
    assert integration.text_of(files["more.md"]) == ("", "is a symbolic link")


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
    material = integration.Material([("ann", path, 1)], [], ["x" * 9_000], [])
    text = integration.draft_text(found, planned(root, entry("ann"), entry("ben")), material)
    assert "### Ann\n```\n# no heading\n```\n#### More" in text
    assert max(map(len, text.splitlines())) == 8_000


def test_who_compared_is_recorded_and_what_people_recorded_stays(tmp_path: Path) -> None:
    root = run(tmp_path)
    about = {"agents": ["ann", "ben"], "category": "factual"}
    stale = about | {"id": "c1", "topic": "gone", "hint": True}
    told = about | {"id": "c2", "topic": "port"}
    write(root, f"{COORD}/conflicts.json", {"conflicts": [stale, told]}, 5)
    for by, said in (("", dispatch.this_person()), ("Ann Lee", "Ann Lee")):
        (made,) = integration.record_hints(layout(root), by).writes
        kept = json.loads(made.data)
        assert kept["by"] == said and [each["id"] for each in kept["conflicts"]] == ["c2"]
        (made,) = integration.dismiss_conflict(layout(root), "c2", "The same port", by).writes
        assert json.loads(made.data)["conflicts"][1]["by"] == said


def listing(root: Path, name: str, *files: str) -> list[dict[str, str]]:
    """Files of an agent's workspace, as it lists them; they need not be there."""
    own = root / "agent-workspaces" / name
    return [{"file": str(own / file), "description": "A part"} for file in files]


def test_an_agent_is_told_what_it_must_read_and_what_others_do(tmp_path: Path) -> None:
    root = run(tmp_path)
    agent(root, "ann", outputs=listing(root, "ann", "output.md"))
    plan = planned(
        root, entry("ann", task="Ask them."), entry("ben", task="x" * 130), entry("cy", "ann")
    )
    found = dict(dispatch.inputs_of(plan, plan.tasks["cy"], read(root)))
    assert found == {
        str(layout(root).spec): True, str(root / "agent-workspaces/ann/output.md"): True
    }  # fmt: skip
    told = dispatch.begin_attempt(plan, "cy", read(root), NOW).writes[-2].data.decode()
    assert f"You are NOT responsible for Ask them; {'x' * 119}…." in told
    assert "agent-workspaces/ann/output.md (required)" in told
    alone = planned(root, entry("cy"))
    told = dispatch.begin_attempt(alone, "cy", read(root), NOW).writes[-2].data.decode()
    assert "You are NOT responsible for anything else." in told


def test_what_is_put_away_gets_the_next_free_name(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    for wanted in ("status.json", "status-1.json", "status-2.json"):
        assert dispatch.free_path(path).name == wanted
        (tmp_path / wanted).touch()


def test_who_integrates_is_told_how_each_agent_ended_and_of_its_own_files_that_are_there(
    tmp_path: Path,
) -> None:
    root = run(tmp_path)
    listed = listing(root, "cy", "output.md", "gone.md") + listing(root, "ann", "output.md")
    agent(root, "cy", "partial", outputs=listed)
    planned(root, entry("ann"), entry("ben"), entry("cy"), entry("dan"))
    decided(root, ("cy", "accept"), ("dan", "gap"))
    looked = {"conflicts": [], "looked_at": NOW.isoformat()}
    write(root, f"{COORD}/conflicts.json", looked, 5)
    lines = integration.synthesis_prompt(layout(root)).splitlines()
    assert f"cy: partial, files: {root}/agent-workspaces/cy/output.md" in lines
    assert "dan: no result, files: none" in lines


def test_whoever_runs_again_goes_on_from_a_file_that_is_there_and_is_decided_on_once(
    tmp_path: Path,
) -> None:
    root = run(tmp_path)
    agent(root, "cy", "partial", outputs=listing(root, "cy", "gone.md", "output.md"))
    planned(root, entry("ann"), entry("ben"), entry("cy", dispatched_at=NOW.isoformat()))
    for feedback in ("Shorter.", "Shorter still."):
        dispatch.rerun(layout(root), "cy", feedback, go_on=True)
        kept = manifest.read_manifest(layout(root)).entries["cy"]
        assert kept["feedback"] == feedback
        assert kept["continue_from"] == str(root / "agent-workspaces/cy/output.md")
        made = json.loads((root / f"{COORD}/triage.json").read_text())["decisions"]
        assert [each["decision"] for each in made] == ["rerun"]


def test_who_read_what_another_wrote_comes_after_it_in_a_manifest_made_anew(tmp_path: Path) -> None:
    """Whatever their names: ben was told to begin before ann, who read what he had written."""
    root = run(tmp_path)
    base = f"{ORIGIN}/agent-workspaces"
    reads = prompt("ann").replace("INPUTS:\n", f"INPUTS:\n- {base}/ben/output.md (required)\n")
    write(root, "prompts/ann-part.md", reads, 1800)
    made = {
        each["agent"]: each["after"]
        for each in manifest.manifest_from_folders(read(root))["agents"]
    }
    assert made == {"ann": ["ben"], "ben": []}


def test_a_link_stands_for_no_file_and_no_folder_of_the_run(tmp_path: Path) -> None:
    root = run(tmp_path / "run")
    target = write(root, "elsewhere/triage.json", {"decisions": []})
    (link := root / "triage.json").symlink_to(target)
    with pytest.raises(Refused, match=r"triage\.json is a symbolic link"):
        read_json(link)
    other = tmp_path / "other"
    (other / "there").mkdir(parents=True)
    (other / "agent-workspaces").symlink_to(other / "there")
    with (
        pytest.raises(Refused, match="symbolic link"),
        locked(Layout(other, other / "agent-workspaces")),
    ):
        pass
    assert list((other / "there").iterdir()) == []


def test_a_folder_that_becomes_a_link_while_the_lock_is_waited_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = run(tmp_path / "run")
    planned(root, entry("ann"), entry("ben"))
    place, real = layout(root), transaction.begin

    @contextlib.contextmanager
    def begin(*given: Any, **more: Any) -> Iterator[transaction.Transaction]:
        with real(*given, **more) as opened:
            (root / "integration").symlink_to(tmp_path)
            yield opened

    monkeypatch.setattr("acp_core.protocols.workspaces.write.step.begin", begin)
    with pytest.raises(Refused, match="integration is a symbolic link"), locked(place):
        pass
