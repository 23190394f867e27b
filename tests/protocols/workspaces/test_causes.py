"""How a run gets stuck: each cause is found where it is, and only there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from acp_core.agents.processes import Identity
from acp_core.agents.state import Phase, Run, RunnerState, Saved
from acp_core.diagnosis.actions import actions as offered
from acp_core.diagnosis.engine import Diagnosis
from acp_core.model import Matter
from acp_core.model.clock import utc_now
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext, Patience
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.acts.binding import actions
from acp_core.protocols.workspaces.collaboration import open_workspaces
from tests.agents.support import wait_for
from tests.diagnosis.support import problems
from tests.protocols.workspaces.making import (
    NOW,
    agent,
    integrate,
    read,
    returned,
    run,
    status,
    write,
)
from tests.protocols.workspaces.running import acp, prepare, program

COORD = "agent-workspaces/.coord"
Make = Callable[[Path], object]


def causes(root: Path, *loops: RunnerState, at: datetime = NOW) -> list[Matter]:
    """What is found, with these processes of this machine."""
    opened = open_workspaces(str(root))
    seen = opened.refresh(at)
    return list(problems(opened, DiagnosisContext(seen, Clock(at), tuple(loops), has_turns=False)))


def codes(root: Path, *loops: RunnerState, at: datetime = NOW) -> list[str]:
    return [each.code for each in causes(root, *loops, at=at)]


def watcher(root: Path, name: str, *, alive: bool, program: bool = False) -> RunnerState:
    """The process that watches an agent, as others see it."""
    begun = NOW - timedelta(hours=1)
    ran = Run(1, Identity(4, 1.0), begun, lines=("Connecting…", "no network"))
    saved = Saved(str(root), name, Identity(3, 1.0), begun, phase=Phase.RUNNING, run=ran)
    return RunnerState(str(root), name, saved, alive, program, "log", "place")


def manifest(root: Path, **changed: dict[str, object]) -> None:
    """Ann and ben, dispatched an hour ago, with what is different for each."""
    entries = []
    for name in ("ann", "ben"):
        entry: dict[str, object] = {
            "agent": name,
            "task": "Compare them.",
            "task_id": f"{name}-part",
            "dispatched_at": "2026-03-01T10:30:00Z",
            "ended_at": None,
        }
        entries.append(entry | changed.get(name, {}))
    write(root, f"{COORD}/manifest.json", {"agents": entries}, 10)


def partial(root: Path) -> None:
    agent(root, "ann", "partial")


def contradiction(root: Path) -> None:
    write(root, "returns/ann-part.json", returned("ann", "failure"))


def silent(root: Path) -> None:
    write(root, "agent-workspaces/cat/notes.md", "x", 3600)


def works(root: Path) -> None:
    write(root, "agent-workspaces/cat/notes.md", "x", 60)


def missing(root: Path) -> None:
    (root / "agent-workspaces/ann/status.json").unlink()
    over = {"ended_at": "2026-03-01T11:00:00Z", "exit": "exit code 1"}
    manifest(root, ann=over, ben={"after": ["ann"], "dispatched_at": None})
    (root / "agent-workspaces/ben/status.json").unlink()
    for path in (root / "agent-workspaces/ben").iterdir():
        path.unlink()


def to_begin(root: Path) -> None:
    for path in (root / "agent-workspaces/ben").iterdir():
        path.unlink()
    manifest(root, ben={"dispatched_at": None})


def conflict(root: Path) -> None:
    item = {"id": "c1", "agents": ["ann", "ben"], "topic": "cost", "category": "factual"}
    write(root, f"{COORD}/conflicts.json", {"conflicts": [item]})


def resolved(root: Path) -> None:
    sentence = "Conflict between ann and ben on cost. Resolved by the factual rule."
    item = {"id": "c1", "agents": ["ann", "ben"], "topic": "cost", "sentence": sentence}
    write(root, f"{COORD}/conflicts.json", {"conflicts": [item]})


def draft(root: Path) -> None:
    resolved(root)
    write(root, f"{COORD}/draft/final-output.md", "# All\n")


def decided(root: Path) -> None:
    partial(root)
    entry = {"agent": "ann", "task_id": "ann-part", "decision": "accept"}
    write(root, f"{COORD}/triage.json", {"decisions": [entry]})


def broken(root: Path) -> None:
    write(root, f"{COORD}/triage.json", "{")


def torn(root: Path) -> None:
    write(root, f"{COORD}/triage.json", "{", 1)


def nothing(root: Path) -> None:
    """All is well."""


@pytest.mark.parametrize(
    ("code", "fires", "not_here", "remedy"),
    [
        ("A5", broken, torn, "repair"),
        ("E51", contradiction, nothing, "rerun"),
        ("E52", partial, decided, "triage"),
        ("E53", missing, to_begin, "triage"),
        ("E54", silent, works, "triage"),
        ("E56", to_begin, missing, "dispatch"),
        ("E57", nothing, silent, "compare"),
        ("E57", resolved, conflict, "synthesise"),
        ("E58", conflict, resolved, "resolve"),
        ("E59", draft, resolved, "finish"),
    ],
)
def test_a_cause_is_found_where_it_is(
    tmp_path: Path, code: str, fires: Make, not_here: Make, remedy: str | None
) -> None:
    fires(run(tmp_path / "here"))
    (found,) = [each for each in causes(tmp_path / "here") if each.code == code]
    assert found.remedy == remedy
    assert found.evidence and found.instruction
    not_here(run(tmp_path / "elsewhere"))
    assert code not in codes(tmp_path / "elsewhere")


@pytest.mark.parametrize("make", [partial, silent, to_begin, conflict, draft, contradiction])
def test_a_remedy_can_be_done_and_its_form_is_filled_in(tmp_path: Path, make: Make) -> None:
    make(run(tmp_path))
    found = causes(tmp_path)[0]
    action = next(each for each in actions(str(tmp_path), NOW) if each.name == found.remedy)
    schema = action.inputs.model_json_schema()["properties"]
    for name, value in found.given:
        offered = schema[name]
        assert value in offered.get("enum", [offered.get("const")]), (name, value, offered)


def test_a_killed_watcher_is_seen_and_replaced_by_a_dispatch(tmp_path: Path) -> None:
    root = run(tmp_path)
    (root / "agent-workspaces/ann/status.json").unlink()
    manifest(root)
    dead, alive = watcher(root, "ann", alive=False), watcher(root, "ann", alive=True, program=True)
    (found,) = [each for each in causes(root, dead) if each.code == "E55"]
    assert found.remedy == "dispatch"
    assert "the supervised program has exited, too" in found.evidence
    assert "| no network" in found.evidence
    assert "E55" not in codes(root, alive)
    assert "E54" in codes(root, alive)


def test_who_waits_for_a_limit_is_not_silent(tmp_path: Path) -> None:
    """Its silence is no need of its own while a living process will try it again, and is one after that."""
    root = run(tmp_path)
    (root / "agent-workspaces/ann/status.json").unlink()
    manifest(root)
    seen = watcher(root, "ann", alive=True)
    assert seen.run is not None
    ran = replace(seen.run, ended=NOW, exit_code=1, lines=("Usage limit reached.",))
    shown = replace(
        seen.shown, phase=Phase.PAUSING, run=ran, failure="limit", retry_at=NOW + timedelta(hours=9)
    )
    paused = replace(seen, shown=shown)
    found = causes(root, paused)
    assert [(each.code, each.wanted) for each in found] == [("E54", False), ("B4", False)]
    opened = open_workspaces(str(root))
    looked = Diagnosis(Patience())
    snapshot = looked.diagnose(opened, opened.refresh(NOW), (paused,), (), NOW)
    assert snapshot.needs == () and snapshot.recheck_at == shown.retry_at
    found = causes(root, paused, at=NOW + timedelta(hours=10))  # and it was not tried again
    assert "its next attempt was due at" in found[0].sentence
    assert [each.code for each in found if each.wanted] == ["B4"]


def test_a_draft_that_nobody_watches_any_more_is_taken_over(tmp_path: Path) -> None:
    root = run(tmp_path)
    resolved(root)
    begun = {"begun_at": "2026-03-01T11:50:00Z", "ended_at": None}
    write(root, f"{COORD}/draft/synthesis.json", begun)
    dead = watcher(root, "orchestrator", alive=False)
    (found,) = [each for each in causes(root, dead) if each.code == "E59"]
    assert found.remedy == "synthesise"
    assert codes(root, watcher(root, "orchestrator", alive=True)) == []


def test_decisions_come_first_and_nothing_is_said_of_a_run_that_is_over(
    tmp_path: Path,
) -> None:
    root = run(tmp_path / "stuck")
    contradiction(root)
    agent(root, "ben", "partial")
    silent(root)
    assert codes(root) == ["E51", "E52", "E54"]
    over = run(tmp_path / "over")
    integrate(over)
    assert codes(over) == []


def test_each_cause_is_counted_once_with_the_need_that_it_explains(tmp_path: Path) -> None:
    root = run(tmp_path)
    agent(root, "ben", "partial")
    opened = open_workspaces(str(root))
    looked = Diagnosis(Patience()).diagnose(opened, opened.refresh(NOW), (), (), NOW)
    assert [need.code for need in looked.needs] == ["E52"]
    assert "What to do: accept the result as it is or rerun it or skip it." in looked.headline
    hostile = status("ben", "partial") | {"errors": ["\x1b[2Jno"]}
    write(root, "agent-workspaces/ben/status.json", hostile)
    write(root, "returns/ben-part.json", returned("ben", "partial", errors=["\x1b]2;x\x07"]))
    told = str(causes(root))
    assert "\\x1b" not in told and "\x1b" not in told


def test_what_really_went_wrong_is_told_of_a_real_program(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann", "ben", after="ben=ann")
    assert codes(root, at=utc_now()) == ["E56"]
    acp("dispatch", root, "--", *program(tmp_path / "own", ann="lost"))
    (found,) = causes(root, at=utc_now())
    assert found.code == "E53"
    assert "program: exit code 0" in found.evidence
    assert "ben is waiting for this result" in found.evidence


def test_what_settles_one_cause_is_not_blamed_for_another(tmp_path: Path) -> None:
    root = run(tmp_path)
    agent(root, "ann", "partial")
    agent(root, "ben", "failure")
    opened = open_workspaces(str(root))
    seen = replace(opened.refresh(utc_now()), causes=tuple(causes(root, at=utc_now())))
    assert [cause.about.participant for cause in seen.causes] == ["ann", "ben"]
    triage = next(each for each in offered(opened, seen) if each.name == "triage")
    done = triage.perform(triage.inputs(agent="ann", decision="accept", reason="enough"))
    assert done.sentence == "Decide on ann (attempt 1): accept. Fixed."


def test_an_agent_that_only_begins_again_is_not_called_fixed(tmp_path: Path) -> None:
    """Whatever it returned last time: how it ends this time is not known when it begins."""
    root = prepare(tmp_path / "run", "ann")
    acp("dispatch", root, "--", *program(tmp_path / "own", ann=["partial", "partial"]))
    opened = open_workspaces(str(root))
    seen = replace(opened.refresh(utc_now()), causes=tuple(causes(root, at=utc_now())))
    assert [cause.code for cause in seen.causes] == ["E52"]
    rerun = next(each for each in offered(opened, seen) if each.name == "rerun")
    done = rerun.perform(rerun.inputs(agent="ann"))
    assert done.sentence.startswith("Started ann.") and "Fixed" not in done.sentence
    wait_for(lambda: codes(root, at=utc_now()) == ["E52"], "its second partial result")


def test_the_age_of_the_last_write_goes_on_while_nothing_changes(tmp_path: Path) -> None:
    works(run(tmp_path))
    panel = read(tmp_path).panels[0]
    row = panel.rows[2]
    assert (row.cells[3], panel.columns[3]) == ("1m", "last write")
    assert row.ages == ((3, NOW - timedelta(seconds=60)),)


def test_a_decision_says_what_it_means(tmp_path: Path) -> None:
    root = run(tmp_path)
    agent(root, "ann", "failure")
    triage = next(each for each in actions(str(root), utc_now()) if each.name == "triage")
    labels = triage.inputs.model_json_schema()["properties"]["decision"]["labels"]
    assert set(labels) == {word for words in schema.DECISIONS.values() for word in words}
