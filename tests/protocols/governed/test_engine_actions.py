"""A human carries a governed run by the dashboard's actions alone, seeing beforehand what they do."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from acp_core.model import Action, Outcome, OutcomeState, Preview, Snapshot
from acp_core.protocols.governed.read.own_writes import interrupted
from acp_core.protocols.governed.write.opened import json_document
from tests.protocols.governed import making, playing
from tests.protocols.governed.acting import (
    acted,
    dispatch,
    open_folder,
    refused,
    start,
    state,
    told,
)
from tests.protocols.governed.making import Object
from tests.protocols.governed.test_read import NOW

PATIENCE = 60.0  # seconds that a scripted agent may take on a busy machine


def actions(root: Path) -> dict[str, Action]:
    return {each.name: each for each in open_folder(root).actions(datetime.now(UTC))}


def given(action: Action, **values: Any) -> Any:
    return action.inputs.model_validate(dict(action.defaults) | values)


def preview(root: Path, name: str, **values: Any) -> Preview:
    action = actions(root)[name]
    return action.preview(given(action, **values))


def do(root: Path, name: str, **values: Any) -> Outcome:
    action = actions(root)[name]
    inputs = given(action, **values)
    shown = action.preview(inputs)
    assert not shown.refused, shown.refused
    outcome = action.perform(inputs)
    assert outcome.state is OutcomeState.DONE, outcome.sentence
    return outcome


def seen(root: Path) -> Snapshot:
    return open_folder(root).refresh(datetime.now(UTC))


def stepped(root: Path) -> None:
    """Give out the next turn, and wait until its program has staged the result."""
    do(root, "step")
    until = time.monotonic() + PATIENCE
    while not any(need.code == "STAGED" for need in seen(root).needs):
        assert time.monotonic() < until, seen(root).headline
        time.sleep(0.05)


def test_the_evidence_stands_beside_the_gate(root: Path) -> None:
    stepped(root)
    do(root, "accept_turn")
    (root / ".planning/ROADMAP.md").unlink()
    shown = preview(root, "approve_gate", by="olga")
    assert "requested by pm" in shown.sentence and "pm did its part." in shown.sentence
    assert "Verification: skipped." in shown.sentence
    assert any(".planning/ROADMAP.md" in warning for warning in shown.warnings)
    assert any("OBJ-001" in warning for warning in shown.warnings)
    assert [Path(change.path).name for change in shown.changes] == [
        "decision-ledger.jsonl", "events.jsonl", "state.json",
    ]  # fmt: skip
    do(root, "approve_gate", by="olga")
    line = next(x for x in told(root, "decision-ledger.jsonl") if x.get("type") == "gate_approved")
    assert line["unmet"] == [".planning/ROADMAP.md: there is no such file"] or line["unmet"]


def test_a_staged_result_needs_no_verdict_while_none_can_be_given(root: Path) -> None:
    stepped(root)
    assert [need.remedy for need in seen(root).needs] == ["accept_turn"]
    do(root, "escalate", by="olga", reason="Legal review")
    assert "accept_turn" not in actions(root)
    assert "accept_turn" not in {need.remedy for need in seen(root).needs}
    do(root, "unblock", by="olga", comment="Fine.")
    assert [need.remedy for need in seen(root).needs] == ["accept_turn"]


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["", "TALK.md", "both"])
def test_what_a_red_line_offers_for_an_interrupted_write_works(root: Path, changed: str) -> None:
    dispatch(root, now=datetime.now(UTC))
    talk, other = root / "TALK.md", root / "NOTES.md"
    size = len(talk.read_bytes())
    other.write_text("old", encoding="utf-8")
    writes = [
        {"path": "TALK.md", "verb": "append", "data": "one\n", "before": None, "size": size},
        {"path": "NOTES.md", "verb": "replace", "data": "new", "before": "old", "size": 0},
    ]
    left = {"what": "talk", "at": making.AT, "homes": [".agentxchain"], "writes": writes}
    (root / ".agentxchain/acp-journal.json").write_bytes(json_document(left))
    with talk.open("a", encoding="utf-8") as file:
        file.write("one\n" + ("two\n" if changed else ""))
    if changed == "both":
        other.write_text("of somebody else", encoding="utf-8")
    need = seen(root).needs[0]
    cure = "take_files" if changed == "both" else "recover"
    assert need.remedy == cure and list(actions(root)) == [cure]
    assert do(root, cure).state is OutcomeState.DONE
    assert interrupted(root) is None
    assert "interrupted write" not in str([each.sentence for each in seen(root).needs])


STAND_IN = """#!{python}
import json, pathlib, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
if "--fail" in pathlib.Path({log!r} + ".mode").read_text():
    print("Cannot do that", file=sys.stderr)
    sys.exit(1)
print("done by the program")
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of the existing one's name on the PATH, which notes its arguments."""
    import os
    import sys

    folder = tmp_path / "bin"
    folder.mkdir()
    log = folder / "log"
    (folder / "log.mode").write_text("")
    program = folder / "agentxchain"
    program.write_text(STAND_IN.format(python=sys.executable, log=str(log)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return log


def its(**more: Any) -> Object:
    """The state of a run that the existing program made."""
    return making.state(provenance={"created_by": "operator"}, **more)


def asked(log: Path) -> list[list[str]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def test_a_run_of_the_existing_program_is_left_to_it(tmp_path: Path, stand_in: Path) -> None:
    from tests.protocols.governed.test_read import PENDING

    paused = making.make_run(tmp_path / "paused", of_state=its(**PENDING))
    shown = preview(paused, "approve_gate", by="olga", comment="Good")
    assert shown.command == ("agentxchain", "approve-transition")
    assert shown.changes == ()
    assert any("stores no comments" in warning for warning in shown.warnings)
    before = (paused / ".agentxchain/state.json").read_bytes()
    outcome = do(paused, "approve_gate", by="olga")
    assert outcome.sentence == "agentxchain: done by the program"
    assert "cannot reject" in preview(paused, "reject_gate", comment="No").refused
    turns = {"active_turns": {making.TURN: making.turn()}}
    active = making.make_run(tmp_path / "active", of_state=its(**turns))
    making.write(active / f".agentxchain/staging/{making.TURN}/turn-result.json", making.result())
    do(active, "accept_turn")
    do(active, "reject_turn", by="olga", reason="Dull")
    do(active, "escalate", by="olga", reason="Legal")
    idle = making.make_run(tmp_path / "idle", of_state=its())
    do(idle, "step", role="pm")
    reason = {"category": "needs_human", "recovery": {"detail": "x"}}
    stopped = {"status": "blocked", "blocked_on": "human:x", "blocked_reason": reason}
    blocked = making.make_run(tmp_path / "blocked", of_state=its(**stopped))
    do(blocked, "unblock", by="olga")
    making.write_lines(
        blocked / ".agentxchain/human-escalations.jsonl",
        {"kind": "raised", "escalation_id": "hesc_1"},
        {"kind": "raised", "escalation_id": "hesc_2"},
        {"kind": "resolved", "escalation_id": "hesc_1"},
    )
    do(blocked, "unblock", by="olga")
    assert asked(stand_in) == [
        ["approve-transition"], ["accept-turn"], ["reject-turn", "--reason", "Dull"],
        ["escalate", "--reason", "Legal"], ["resume", "--role", "pm"], ["resume"],
        ["unblock", "hesc_2"],
    ]  # fmt: skip
    assert (paused / ".agentxchain/state.json").read_bytes() == before


def test_its_refusal_is_shown_and_our_own_runs_are_not_handed_over(
    tmp_path: Path, stand_in: Path
) -> None:
    from tests.protocols.governed.acting import YES
    from tests.protocols.governed.test_read import PENDING

    paused = making.make_run(tmp_path / "paused", of_state=its(**PENDING))
    (stand_in.parent / "log.mode").write_text("--fail")
    action = actions(paused)["approve_gate"]
    outcome = action.perform(given(action, by="olga"))
    assert (outcome.state, outcome.sentence) == (
        OutcomeState.REFUSED,
        "agentxchain: Cannot do that",
    )
    refused("approve-transition", paused, *YES)
    acted("approve-transition", paused, "--dry-run")
    assert asked(stand_in) == [["approve-transition"]] * 2
    root = start(tmp_path / "lamp")
    stepped(root)
    do(root, "accept_turn")
    do(root, "approve_gate", by="olga")
    assert state(root)["phase"] == "implementation"
    assert len(asked(stand_in)) == 2


def test_a_run_is_started_by_an_action(tmp_path: Path) -> None:
    from acp_core.protocols import registry
    from acp_core.protocols.governed import PROTOCOL

    assert PROTOCOL.create is not None
    root = playing.repository(tmp_path / "lamp")
    action = registry.load(PROTOCOL.create)(root)
    agents = [f"{role}={line}" for role, line in playing.agents(tmp_path / "bin").items()]
    assert action.preview(given(action, agents=["pm"])).refused
    inputs = given(action, objective="Light\nthe hall", agents=agents)
    shown = action.preview(inputs)
    assert not (root / "agentxchain.json").exists()
    assert "agentxchain.json" in shown.changes[0].path and "Light the hall" in shown.changes[0].diff
    outcome = action.perform(inputs)
    assert (outcome.state, outcome.location) == (OutcomeState.DONE, str(root))
    assert action.perform(inputs).state is OutcomeState.REFUSED
    stepped(root)


@pytest.mark.slow
def test_a_program_that_hangs_is_stopped_and_the_turn_given_out_again(tmp_path: Path) -> None:
    import psutil

    from acp_core.protocols.governed.read import run

    root = start(tmp_path / "lamp", pm="hangs")
    do(root, "step")
    until = time.monotonic() + PATIENCE

    def mine() -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                if str(root) in process.environ().get("AGENTXCHAIN_PROJECT_ROOT", ""):
                    found.append(process)
            except psutil.Error:
                continue
        return [each for each in found if each.status() != psutil.STATUS_ZOMBIE]

    while len(mine()) < 2:  # it, and what it started
        assert time.monotonic() < until
        time.sleep(0.05)
    [id] = state(root)["active_turns"]
    assert run.is_program_running(root, id)
    assert preview(root, "reject_turn", by="olga", reason="Late").refused
    do(root, "stop_turn")
    while mine():
        assert time.monotonic() < until
        time.sleep(0.05)
    assert state(root)["active_turns"][id]["status"] == "failed_start"
    assert "stop_turn" not in actions(root)
    config = json.loads((root / "agentxchain.json").read_text())
    config["runtimes"]["local-pm"]["args"].pop()
    (root / "agentxchain.json").write_text(json.dumps(config))
    stepped(root)


def test_what_is_typed_at_once_into_a_form_is_no_name(tmp_path: Path) -> None:
    """Who decides is known already; whoever begins to type a comment must not overwrite it."""
    turn = making.turn(status="dispatched")
    under_way = making.state(active_turns={making.TURN: turn})
    gate = {"from": "planning", "to": "implementation", "gate": "planning_done"}
    waits = making.state(status="paused", pending_phase_transition=gate)
    for name, stands in (("turn", under_way), ("gate", waits)):
        root = making.make_run(tmp_path / name, of_state=stands)
        for action in open_folder(root).actions(NOW):
            fields = list(action.inputs.model_fields)
            assert "by" not in fields[:-1], (action.name, fields)
