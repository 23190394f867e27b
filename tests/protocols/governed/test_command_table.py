"""Every command says what it does as JSON, and every one that writes can be tried before."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_core.protocols.governed import schema
from acp_core.protocols.governed.acts.table import COMMANDS, COORDINATOR
from tests.hygiene.sources import ROOT
from tests.protocols.governed import making, multi
from tests.protocols.governed.acting import acted, step
from tests.protocols.governed.test_seals import edit, planned
from tests.protocols.governed.test_unfinished import left

READING = ("status", "check")
BY = ("--as", "Ann", "--yes")
Make = Callable[[Path], None]

SPECS = {f"{name}": spec for name, spec in COMMANDS.specs.items()} | {
    f"coordinator {name}": spec for name, spec in COORDINATOR.specs.items()
}


def nothing(root: Path) -> None:
    root.mkdir()


def idle(root: Path) -> None:
    making.make_run(root, of_state=making.state(run_id=None, status="idle"))


def staged(root: Path) -> None:
    of_state = making.under_way(baseline={"kind": "none"})
    making.make_run(root, of_state=of_state)
    place = root / f".agentxchain/staging/{making.TURN}/turn-result.json"
    making.write(place, making.result())


def sloppy(root: Path) -> None:
    staged(root)
    place = root / f".agentxchain/staging/{making.TURN}/turn-result.json"
    making.write(place, making.result(status="done"))


def hooked(root: Path) -> None:
    staged(root)
    hooks = {"after_dispatch": [{"name": "tell", "type": "process", "command": ["true"]}]}
    making.configure(root, making.config(hooks=hooks))


def at_gate(root: Path) -> None:
    asked = {"from": "planning", "to": "implementation", "gate": "planning_done",
             "requested_by_turn": making.TURN}  # fmt: skip
    of_state = making.state(
        status="paused", blocked_on="human_approval:planning_done", pending_phase_transition=asked
    )
    making.make_run(root, of_state=of_state, history=(making.accepted(),))


def at_end(root: Path) -> None:
    asked = {"gate": "verification_done", "requested_by_turn": making.TURN}
    of_state = making.state(
        status="paused", phase="verification", pending_run_completion=asked,
        blocked_on="human_approval:verification_done",
    )  # fmt: skip
    making.make_run(root, of_state=of_state, history=(making.accepted(phase="verification"),))


def blocked(root: Path) -> None:
    reason = {"category": "operator_escalation", "blocked_at": making.AT, "turn_id": None,
              "recovery": {"typed_reason": "operator_escalation", "owner": "human",
                           "recovery_action": "Resolve it", "turn_retained": False}}  # fmt: skip
    of_state = making.state(
        status="blocked", blocked_on="escalation:operator:lamp", blocked_reason=reason
    )
    making.make_run(root, of_state=of_state)


def edited(root: Path) -> None:
    planned(root)
    edit(root, phase="verification")


def configured(root: Path) -> None:
    for name in multi.NAMES:
        multi.repository(root / name)
    making.write(root / "agentxchain-multi.json", multi.configuration())


def begun(root: Path) -> None:
    multi.begin(root)


def all_there(root: Path) -> None:
    multi.begin(root)
    multi.all_ask(root)
    step(root)


def corrupt(root: Path) -> None:
    multi.begin(root)
    (root / "web/.agentxchain/state.json").write_text("{")


def forgotten(root: Path) -> None:
    multi.begin(root)
    (root / ".coordinator/state.json").write_text("{")


WRITING: dict[str, tuple[Make, tuple[str, ...]]] = {
    "init": (nothing, ()),
    "step": (idle, ()),
    "correct-result": (sloppy, ()),
    "accept-turn": (staged, ()),
    "reject-turn": (staged, ("--reason", "Dull", *BY)),
    "approve-gate": (at_gate, BY),
    "approve-transition": (at_gate, BY),
    "approve-completion": (at_end, BY),
    "reject-gate": (at_gate, ("--comment", "No", *BY)),
    "escalate": (staged, ("--reason", "Legal", *BY)),
    "unblock": (blocked, BY),
    "mark-objection": (at_gate, ("--id", "OBJ-001", *BY)),
    "talk": (staged, ("--text", "Hello")),
    "recover": (staged, ()),
    "bring-back": (edited, ()),
    "take-files": (edited, ()),
    "set-aside": (left, ()),
    "trust": (hooked, BY),
    "migrate": (staged, BY),
    "coordinator init": (configured, BY),
    "coordinator step": (all_there, ()),
    "coordinator poll": (begun, ()),
    "coordinator approve-barrier": (all_there, BY),
    "coordinator reject-barrier": (all_there, ("--comment", "No", *BY)),
    "coordinator resync": (begun, ()),
    "coordinator mend-workstream": (corrupt, ("--workstream", "web", *BY)),
    "coordinator mend-state": (forgotten, BY),
    "coordinator trust-hooks": (begun, ()),
}


def test_no_writing_verb_is_left_out() -> None:
    """What a program's end takes with it is shown in test_engine_actions, with a real one."""
    writing = {verb for verb in SPECS if verb.split()[-1] not in READING}
    assert set(WRITING) == writing - {"stop-turn"}


@pytest.mark.parametrize("verb", WRITING)
def test_a_dry_run_says_what_it_would_do_and_writes_nothing(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, more = WRITING[verb]
    root = tmp_path / "lamp"
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    make(root)
    before = _files(tmp_path)
    words = verb.split()
    assert acted(*words, root, *more, "--dry-run"), "it says nothing"
    told = json.loads(acted(*words, root, *more, "--dry-run", "--json"))
    assert told["command"] == words[-1] and told["dry_run"] is True
    assert _files(tmp_path) == before


def _files(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path): path.read_bytes() for path in found}


def test_rules_causes_and_views_take_the_names_of_acts_from_one_place() -> None:
    """An act that is renamed is renamed for the needs, causes and findings that name it."""
    room = ROOT / "acp_core/protocols/governed"
    acts = set(schema.ACTS)
    places = [*room.glob("rules/*.py"), *room.glob("view/*.py"), room / "matters.py"]
    found = [
        (path.name, node.lineno, each.value)
        for path in places
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.keyword) and node.arg in ("action", "remedy", "others")
        for each in ast.walk(node.value)
        if isinstance(each, ast.Constant) and each.value in acts
    ]
    assert found == []
