"""A run grows: an agent is added for what another left open, and agents may manage runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from acp_core.model import OutcomeState
from acp_core.model.clock import utc_now
from acp_core.protocols.workspaces.collaboration import open_workspaces
from acp_core.protocols.workspaces.schema import Run
from acp_core.protocols.workspaces.write.setup import free_name
from tests.protocols.workspaces import making
from tests.protocols.workspaces.running import acp, begun, entries, now, prepare, program, states

BASE = "agent-workspaces"


@pytest.mark.slow
def test_what_a_partial_lacks_is_done_by_one_more(tmp_path: Path) -> None:
    root, own = prepare(tmp_path / "run", "ann", "ben"), tmp_path / "own"
    assert acp("dispatch", root, "--", *program(own, ben="partial")).code == 1
    assert acp("triage", root, "ben", "accept", "--reason", "the rest is added").code == 0
    assert acp("conflicts", root, "--find").code == 0
    assert now(root).phase == "synthesise" or now(root).needs[0].code == "conflict"
    before = (root / BASE / ".coord/manifest.json").read_text()
    dry = acp("add", root, "--of", "ben", "--dry-run")
    assert dry.code == 0
    assert (root / BASE / ".coord/manifest.json").read_text() == before
    assert acp("add", root, "--of", "ben").code == 0
    assert states(root)["ben-rest"] == "not dispatched"
    assert acp("dispatch", root).code == 1  # ben stays a partial
    assert begun(own) == ["ann", "ben", "ben-rest"]
    prompt = Path(entries(root)["ben-rest"]["prompt_file"]).read_text()
    assert "Do what ben left open: The rest is missing." in prompt
    assert f"- {root}/{BASE}/ben/output.md (optional)" in prompt
    assert acp("integrate", root, "--draft").code == 2
    late = acp("integrate", root, "--draft").text
    assert "the outputs were not compared since the last agent ended" in late
    assert now(root).phase == "conflicts"
    assert acp("conflicts", root, "--find").code == 0
    assert now(root).phase == "synthesise"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--task", "Look"), "agent"),
        (("--agent", "ann", "--task", "Look"), "two agents"),
        (("--agent", "../x", "--task", "Look"), "is not a valid name"),
        (("--agent", "cat", "--task", "One.\n\nTwo."), "one paragraph"),
        (("--agent", "cat", "--task", "Look", "--after", "zoe"), "not in the plan"),
        (("--agent", "cat", "--task", "Look", "--format", "a/b"), "not a file extension"),
        (("--of", "zoe"), "no agent 'zoe'"),
        (("--of", "ann"), "does not report what is missing"),
    ],
)
def test_whoever_cannot_be_added_is_refused(
    tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    root = prepare(tmp_path / "run", "ann", "ben")
    ended = acp("add", root, *words)
    assert ended.code == 2
    assert why in ended.text
    assert list(states(root)) == ["ann", "ben"]


def test_whoever_comes_late_makes_the_comparison_stale(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann", "ben")
    again = "the outputs have to be compared again when the new agent has finished"
    assert again not in acp("add", root, "--agent", "cat", "--task", "Look").text
    making.write(root, f"{BASE}/.coord/conflicts.json", {"conflicts": []})
    assert again in acp("add", root, "--agent", "dora", "--task", "Look").text


def test_a_name_is_found_however_many_rests_there_are() -> None:
    names = ["ben", "ben-rest", *(f"ben-rest{number}" for number in range(2, 120))]
    run = SimpleNamespace(agents=[SimpleNamespace(name=name) for name in names])
    assert free_name(cast(Run, run), "ben") == "ben-rest120"


def test_nobody_is_added_to_what_is_integrated(tmp_path: Path) -> None:
    making.integrate(making.run(tmp_path))
    assert "already integrated" in acp("add", tmp_path, "--agent", "cat", "--task", "Look").text


def test_the_form_adds_and_dispatches(tmp_path: Path) -> None:
    root, own = prepare(tmp_path / "run", "ann"), tmp_path / "own"
    assert acp("dispatch", root, "--", *program(own, ann="failure")).code == 1
    opened = open_workspaces(str(root))
    opened.refresh(utc_now())
    action = next(each for each in opened.actions(utc_now()) if each.called("add_agent"))
    shown = action.preview(action.inputs())
    assert shown.sentence == "Add ann-rest: Do what ann left open: The rest is missing."
    assert shown.command[2:] == ("add", str(root), "--of", "ann", "--start")
    nobody = action.preview(action.inputs(agent="nobody"))
    assert nobody.refused
    done = action.perform(action.inputs(name="cat", task="Look again."))
    assert (done.state, "Started cat" in done.sentence) == (OutcomeState.DONE, True)
    assert "cat" in entries(root)
    assert acp("dispatch", root).code == 1
    assert begun(own) == ["ann", "cat"]


def test_an_agent_may_manage_a_run_which_is_a_part(tmp_path: Path) -> None:
    root = making.run(tmp_path)
    assert making.read(root).parts == ()
    own = making.run(root / BASE / "ann")
    snapshot = making.read(root)
    assert snapshot.parts == (str(own),)
    assert "manages its own run" in snapshot.participants[0].role
    assert list(making.states(root)) == ["ann", "ben"]
    assert open_workspaces(snapshot.parts[0]).refresh(making.NOW).headline.startswith("ready")


def test_no_run_is_deeper_than_that_of_a_manager(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann", "ben")
    assert acp("add", root, "--agent", "cat", "--task", "Lead.", "--may-launch").code == 0
    own = prepare(root / BASE / "ann", "dan")
    late = acp("add", own, "--agent", "eve", "--task", "Lead.", "--may-launch")
    assert (late.code, late.text) == (
        2,
        "error: eve may not launch agents: this run already belongs to a manager\n",
    )
    plan = tmp_path / "plan.json"
    plan.write_text('{"task": "x", "agents": [{"agent": "fay", "task": "x", "may_launch": true}]}')
    assert acp("init", root / BASE / "ben", "--plan", plan).code == 2
    deep = acp("init", own / BASE / "dan", "--task", "x", "--agent", "gus=Look.")
    assert deep.code == 2
    assert "runs cannot be nested so deeply" in deep.text
    assert not (own / BASE / "dan" / BASE).exists()
    manifest = own / BASE / ".coord/manifest.json"
    manifest.write_text(manifest.read_text().replace('"may_launch": false', '"may_launch": true'))
    held = acp("dispatch", own, "--", *program(tmp_path / "own"))
    assert "dan may not launch agents" in held.text
    assert begun(tmp_path / "own") == []


def test_a_manager_of_managers_is_told_of(tmp_path: Path) -> None:
    root = making.run(tmp_path)
    own = making.run(root / BASE / "ann")
    for place, severity in ((root, "advice"), (own, "warning")):
        text = making.prompt("ann").replace("may not launch", "may launch")
        making.write(place, "prompts/ann-part.md", text)
        assert f"B55 {severity}" in making.codes(place)
