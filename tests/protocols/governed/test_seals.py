"""Whoever but acp writes a run's own files is found, and no turn is accepted until a human looked."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import own_writes
from acp_core.protocols.governed.read.own_writes import SEAL
from acp_core.protocols.governed.write import restore, turns
from acp_core.protocols.governed.write.opened import read_unlocked
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.diagnosis.support import problems
from tests.protocols.governed import acting, making, multi, states
from tests.protocols.governed.acting import (
    accept,
    bring_back,
    correct,
    escalate,
    governed,
    mark_objection,
    open_folder,
    reject_turn,
    run_actions,
    seen,
    take_files,
    talk,
    unblock,
)

NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)
STATE = ".agentxchain/state.json"
LEDGER = ".agentxchain/decision-ledger.jsonl"


def planned(root: Path) -> tuple[Path, str]:
    """A run whose planner has staged its result; returns it and the turn."""
    states.run_in(root, "given out")
    acting.hand_in(root)
    (turn,) = acting.state(root)["active_turns"]
    return root, turn


def edit(root: Path, **more: object) -> None:
    state = json.loads((root / STATE).read_text())
    (root / STATE).write_text(json.dumps(state | more))


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str


def recover(capsys: pytest.CaptureFixture[str], root: Path, *words: str) -> Ran:
    capsys.readouterr()
    code = governed(["recover", str(root), *words])
    return Ran(code, capsys.readouterr().out)


def troubles(root: Path) -> list[str]:
    return [f.code for f in seen(root, NOW).findings if f.severity == "error"]


def test_an_agent_that_edits_the_state_is_found_and_its_turn_refused(tmp_path: Path) -> None:
    root, _ = planned(tmp_path)
    assert troubles(root) == []
    edit(root, phase="verification", last_gate_failure=None)
    assert "RESERVED_CHANGED" in troubles(root)
    edit(root, phase="planning", accepted_integration_ref="git:0")
    with pytest.raises(
        Refused, match=r"files changed outside acp: .*state.json: review the changes"
    ):
        accept(root)
    assert troubles(root) == ["RESERVED_CHANGED"]  # and nothing was written over it
    done = accept(root, excluded=[STATE])
    assert done.status == "active" and troubles(root) == []


def test_the_state_is_brought_back_as_acp_wrote_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, _ = planned(tmp_path)
    before = (root / STATE).read_bytes()
    assert recover(capsys, root, "--bring-back").code == 2
    edit(root, phase="verification")
    actions = {action.name: action for action in run_actions(str(root))}
    take = actions["take_files"]
    (change,) = take.preview(take.inputs()).changes
    assert '-  "phase": "planning",' in change.diff and '"phase": "verification"' in change.diff
    collaboration = open_folder(root)
    causes = problems(collaboration, DiagnosisContext(collaboration.refresh(NOW), Clock(NOW)))
    (cause,) = [each for each in causes if each.code == "A8"]
    assert (cause.remedy, cause.others) == ("bring_back", ("take_files",))
    dry = recover(capsys, root, "--bring-back", "--dry-run")
    assert '+  "phase": "planning",' in dry.out and (root / STATE).read_bytes() != before
    back = actions["bring_back"]
    assert back.perform(back.inputs()).state == "done"
    assert (root / STATE).read_bytes() == before and troubles(root) == []
    assert accept(root).status == "active"


def test_nothing_is_written_over_a_change_so_that_it_can_be_brought_back(tmp_path: Path) -> None:
    root, turn = planned(tmp_path)
    before = (root / STATE).read_bytes()
    edit(root, note="mine")
    for act in (
        lambda: reject_turn(root, "Again", turn),
        lambda: escalate(root, "Which lamp?"),
        lambda: mark_objection(root, "OBJ-001", "acknowledged"),
        lambda: correct(root, turn),
        lambda: acting.dispatch(root),
    ):
        with pytest.raises(Refused, match=r"state\.json: review the changes, then run `acp gov"):
            act()
    turns.note_failed_start(root, turn, "it ended", NOW)
    assert "failed_start" not in (root / STATE).read_text()
    bring_back(root)
    assert (root / STATE).read_bytes() == before


def test_a_line_that_an_agent_adds_to_the_ledger_is_found(tmp_path: Path) -> None:
    root, turn = planned(tmp_path)
    with (root / LEDGER).open("a") as log:
        log.write('{"type": "gate_approved", "gate_id": "planning_signoff", "by": "Ann"}\n')
    with pytest.raises(Refused, match="acp governed take-files"):
        reject_turn(root, "It writes what only acp writes", turn)
    assert troubles(root) == ["RESERVED_CHANGED"]
    collaboration = open_folder(root)
    snapshot = collaboration.refresh(NOW)
    cause = next(c for c in collaboration.causes(DiagnosisContext(snapshot, NOW)) if c.code == "A8")
    assert cause.remedy == "take_files" and LEDGER in cause.sentence
    action = next(a for a in run_actions(str(root)) if a.name == "take_files")
    given = action.inputs()
    assert LEDGER in action.preview(given).changes[0].path
    assert action.perform(given).state == "done"
    assert troubles(root) == []
    assert "take_files" not in {a.name for a in run_actions(str(root))}


def test_the_files_are_taken_as_they_are_by_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, _ = planned(tmp_path)
    assert recover(capsys, root, "--forget").out == "Nothing was interrupted or changed.\n"
    edit(root, accepted_integration_ref=None, note="by hand")
    dry = recover(capsys, root, "--forget", "--dry-run")
    assert f"  replace {STATE}\n" in dry.out and '"note": "by hand"' in dry.out, dry
    assert troubles(root) == ["RESERVED_CHANGED"]
    done = recover(capsys, root, "--forget")
    assert done.code == 0 and f"accepted as they are: changes of {STATE}." in done.out, done
    assert troubles(root) == []


def test_agents_do_not_excuse_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, turn = planned(tmp_path)
    edit(root, note="mine")
    monkeypatch.setenv("ACP_GOVERNED_TURN", turn)
    with pytest.raises(Refused, match="only a human can decide"):
        take_files(root)
    with pytest.raises(Refused, match="only a human can decide"):
        accept(root, excluded=[STATE])
    assert troubles(root) == ["RESERVED_CHANGED"]


def test_what_acp_writes_is_never_taken_for_another_s(tmp_path: Path) -> None:
    root, turn = planned(tmp_path)
    escalate(root, "Which lamp?")
    unblock(root)
    reject_turn(root, "Again", turn)
    talk(root, "Hello")
    assert troubles(root) == []


def test_a_barrier_seals_every_workstream(tmp_path: Path) -> None:
    root = multi.begin(tmp_path)
    multi.all_ask(root)  # by hand: no seal is left
    multi.approve(root)
    sealed = json.loads((root / "web" / SEAL).read_text())
    assert sealed["marked"] == [] and STATE in sealed["files"]
    assert "RESERVED_CHANGED" not in troubles(root / "web")


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"files": 3, "marked": {}}', '{"files": {"a": 1}}']
)
def test_a_damaged_seal_says_nothing(tmp_path: Path, content: str) -> None:
    root, _ = planned(tmp_path)
    (root / SEAL).write_text(content)
    assert troubles(root) == []
    assert accept(root).status == "active"


def test_a_run_of_the_existing_program_bears_no_seal(tmp_path: Path) -> None:
    root = making.make_run(tmp_path)
    escalate(root, "Which lamp?")
    assert not (root / SEAL).exists()


def test_while_acp_writes_and_where_nothing_is_sealed_nobody_changed_anything(
    tmp_path: Path,
) -> None:
    root, _ = planned(tmp_path / "run")
    edit(root, note="mine")
    journal = tmp_path / "journal"
    assert own_writes.changed_since_sealed(root, journal) == (STATE,)
    journal.write_text("{}")
    assert own_writes.changed_since_sealed(root, journal) == ()
    (root / SEAL).write_text("{")
    assert own_writes.read_seal(root) is None and own_writes.sound(root, [STATE]) is None
    (root / SEAL).unlink()
    assert own_writes.read_seal(root) is None and own_writes.sound(root, [STATE]) is None
    assert own_writes.changed_since_sealed(root, tmp_path / "none") == ()


def test_a_state_that_is_made_anew_is_no_longer_marked_and_other_files_are(tmp_path: Path) -> None:
    root, _ = planned(tmp_path)
    seal = json.loads((root / SEAL).read_text())
    making.write(root / SEAL, seal | {"marked": [STATE, LEDGER]})
    (root / STATE).unlink()
    (root / own_writes.STATE_COPY).unlink()
    acting.recover(root)
    assert json.loads((root / SEAL).read_text())["marked"] == [LEDGER]


def test_a_state_that_can_be_read_is_not_recovered(tmp_path: Path) -> None:
    root, _ = planned(tmp_path)
    before = (root / STATE).read_bytes()
    with pytest.raises(Refused, match=r"state\.json is readable"):
        restore.restored(read_unlocked(root, schema.RECOVER), NOW)
    assert acting.recover(root).restored is None
    assert (root / STATE).read_bytes() == before
