"""Nothing is written over a run's damage; why, the commands and the files' verdict say the same."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core import model
from acp_core.diagnosis import actions
from acp_core.files.transaction import JOURNAL
from acp_core.model.errors import Refused
from acp_core.protocols.governed.read import initiative
from acp_core.protocols.governed.read.initiative import read_initiative
from acp_core.protocols.governed.read.run import read_run
from acp_core.protocols.governed.rules import guard
from acp_core.protocols.governed.schema import obj
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.diagnosis.support import problems
from tests.protocols.governed import making, multi, states
from tests.protocols.governed.acting import (
    accept,
    approve_gate,
    dispatch,
    escalate,
    hand_in,
    initialise,
    open_folder,
    recover,
    reject_barrier,
    reject_gate,
    reject_turn,
    state,
    step,
    synchronise,
    unblock,
)
from tests.protocols.governed.making import Object
from tests.protocols.governed.playing import acp

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
STATE = ".agentxchain/state.json"
BY = ("--by", "Ann", "--yes")


def looked_at(root: Path) -> tuple[model.Snapshot, tuple[model.Matter, ...]]:
    """The Snapshot of a run and why it does not go on."""
    collaboration = open_folder(root)
    snapshot = collaboration.refresh(NOW)
    return snapshot, problems(collaboration, DiagnosisContext(snapshot, Clock(NOW)))


def offered(root: Path) -> set[str]:
    collaboration = open_folder(root)
    snapshot = collaboration.refresh(NOW)
    found = actions.actions(collaboration, snapshot, NOW)
    return {each.name for each in found if not each.personal}


def cured(root: Path, cause: model.Matter) -> None:
    """The command that a cause names, run as it is printed."""
    words = shlex.split(cause.instruction)
    assert words[:2] == ["acp", "governed"], cause.instruction
    own = BY if "mend-workstream" in words else ()
    done = acp(*words[2:], *own)
    assert done.code == 0, done
    assert cause.key not in {each.key for each in looked_at(root)[1]}


# --- the state is there and whole --------------------------------------------------------------


@pytest.mark.parametrize("damage", ["deleted", "truncated", "no object"])
def test_a_lost_state_is_brought_back_as_acp_wrote_it(tmp_path: Path, damage: str) -> None:
    root = states.run_in(tmp_path, "building")
    before = (root / STATE).read_bytes()
    broken = {"truncated": before[:200], "no object": b"[]"}
    (root / STATE).unlink()
    if damage in broken:
        (root / STATE).write_bytes(broken[damage])
    for act in acts(root):
        with pytest.raises(Refused, match=r"state\.json .*: acp governed recover "):
            act()
    snapshot, (cause, *_) = looked_at(root)
    assert snapshot.verdict == model.Verdict.INVALID and cause.remedy == "recover"
    assert snapshot.status == model.Status.UNKNOWN and snapshot.turns == ()
    assert not snapshot.headline.startswith("no phase: not started")
    assert "recover" in offered(root) and "step" not in offered(root)
    assert acp("step", str(root)).code == 2 and acp("status", str(root)).code in (0, 1)
    cured(root, cause)
    assert (root / STATE).read_bytes() == before
    kept = list((root / ".acp/kept").glob("state.json.damaged-*"))
    assert [each.read_bytes() for each in kept] == ([broken[damage]] if damage in broken else [])


def acts(root: Path) -> list[Callable[[], object]]:
    """What may not be done over damage."""
    return [
        lambda: dispatch(root),
        lambda: accept(root),
        lambda: approve_gate(root),
        lambda: reject_gate(root, "No"),
        lambda: unblock(root),
        lambda: escalate(root, "Stop"),
    ]


@pytest.mark.parametrize("damage", [None, b"", b"{"])
def test_bringing_a_lost_state_back_says_that_it_did(tmp_path: Path, damage: bytes | None) -> None:
    root = states.run_in(tmp_path, "building")
    before = (root / STATE).read_bytes()
    (root / STATE).unlink() if damage is None else (root / STATE).write_bytes(damage)
    done = acp("bring-back", str(root))
    assert (done.code, done.out) == (0, "Restored the state that acp wrote last.\n"), done
    assert (root / STATE).read_bytes() == before


def test_without_a_copy_the_state_is_made_again_from_the_logs(tmp_path: Path) -> None:
    root = states.run_in(tmp_path / "run", "building")
    before = state(root)
    (root / STATE).unlink()
    multi.unseal(root)
    dry = acp("recover", str(root), "--dry-run")
    assert "Rebuild the state from the run's logs: implementation, active." in dry.out
    assert not (root / STATE).exists()
    _, (cause, *_) = looked_at(root)
    cured(root, cause)
    after = state(root)
    kept = ("run_id", "phase", "status", "last_completed_turn_id", "turn_sequence", "provenance",
            "phase_gate_status", "phase_entered_at", "created_at", "next_recommended_role")  # fmt: skip
    assert {k: after[k] for k in kept} == {k: before[k] for k in kept}
    assert dispatch(root).role == "dev"
    assert looked_at(root)[0].verdict != model.Verdict.INVALID


@pytest.mark.parametrize("moment", ["gate", "blocked", "rejected", "completed", "idle"])
def test_the_logs_tell_where_a_run_was(tmp_path: Path, moment: str) -> None:
    root = states.run_in(tmp_path, "building") if moment != "idle" else tmp_path
    if moment == "idle":
        initialise(root, goal="")
    else:
        asks: Object = {"phase_transition_request": "verification"}
        change = root / "src/lamp.py"
        change.parent.mkdir()
        dispatch(root)
        change.write_text("LIGHT = 1\n")
        (root / ".planning/IMPLEMENTATION_NOTES.md").write_text(
            "## Changes\n\nThe lamp.\n\n## Verification\n\nIt lights.\n"
        )
        more: Object = {
            "files_changed": ["src/lamp.py", ".planning/IMPLEMENTATION_NOTES.md"],
            "artifact": {"type": "workspace", "ref": None}, "verification": {"status": "pass"},
        }  # fmt: skip
        if moment == "blocked":
            asks = {"phase_transition_request": None, "status": "needs_human",
                    "needs_human_reason": "Which?"}  # fmt: skip
        hand_in(root, **more, **asks)
        accept(root)
    if moment in ("rejected",):
        reject_gate(root, "No test")
    if moment == "completed":
        approve_gate(root)
        now = state(root) | {"status": "completed"}
        event = {"event_type": "run_completed", "run_id": now["run_id"], "phase": now["phase"],
                 "status": "completed", "timestamp": making.AT, "turn": None, "payload": {}}  # fmt: skip
        with (root / ".agentxchain/events.jsonl").open("a") as log:
            log.write(json.dumps(event) + "\n")
        making.write(root / STATE, now)
    before = state(root)
    (root / STATE).write_text("{")
    multi.unseal(root)
    recover(root)
    after = state(root)
    for key in ("run_id", "phase", "status", "blocked_on", "pending_run_completion"):
        assert after.get(key) == before.get(key), key
    asked, again = (obj(each, "pending_phase_transition") for each in (before, after))
    assert again.keys() == asked.keys()
    assert all(again[key] == asked[key] for key in asked if key != "requested_at")


def test_a_repository_without_any_run_just_begins(tmp_path: Path) -> None:
    making.configure(tmp_path, making.config())
    assert dispatch(tmp_path).begun


def test_a_log_with_a_broken_line_is_named_by_why_and_by_every_refusal(tmp_path: Path) -> None:
    root = states.run_in(tmp_path, "building")
    with (root / ".agentxchain/history.jsonl").open("a") as log:
        log.write("{torn\n")
    for act in acts(root):
        with pytest.raises(
            Refused, match=r"history\.jsonl, line 2: it is not valid JSON.*correct line 2 by hand"
        ):
            act()
    snapshot, (cause, *_) = looked_at(root)
    assert cause.about.line == 2 and snapshot.verdict == model.Verdict.INVALID
    assert offered(root) <= {"stop_turn", "recover", "trust"}


# --- the barriers of an initiative -------------------------------------------------------------


def crossed(root: Path) -> Path:
    """Web is held at the barrier, and somebody takes it across."""
    multi.begin(root)
    multi.asks(root, "web")
    step(root)
    held = state(root / "web")
    assert held["blocked_on"] == "barrier:plan-sync"
    more = {"status": "active", "phase": "implementation", "blocked_on": None,
            "blocked_reason": None}  # fmt: skip
    making.write(root / "web" / STATE, held | more)
    return root


def test_a_workstream_past_a_shut_barrier_does_nothing_until_it_is_back(tmp_path: Path) -> None:
    root = crossed(tmp_path)
    web = root / "web"
    before = (web / STATE).read_bytes()
    for act in acts(web):
        with pytest.raises(Refused, match="web crossed the unapproved barrier plan-sync"):
            act()
    assert acp("step", str(web)).code == 2
    done = acp("accept-turn", str(web), "--exclude", STATE)
    assert done.code == 2 and "mend-workstream" in done.err
    assert (web / STATE).read_bytes() == before
    snapshot, causes = looked_at(web)
    cause = next(each for each in causes if each.code == "A5")
    assert snapshot.verdict == model.Verdict.INVALID
    assert not offered(web) & {"step", "accept_turn", "approve_gate", "unblock", "escalate"}
    cured(web, cause)
    assert state(web)["blocked_on"] == "barrier:plan-sync" and state(web)["phase"] == "planning"
    assert "A8" not in {each.code for each in looked_at(web)[1]}
    for name in ("auth", "gateway"):
        multi.asks(root, name)
    assert multi.approve(root).failed == ()
    assert {state(root / name)["phase"] for name in multi.NAMES} == {"implementation"}


def test_no_gate_of_the_initiative_opens_while_one_is_past_a_shut_barrier(tmp_path: Path) -> None:
    root = crossed(tmp_path)
    step(root)
    for act in (
        lambda: multi.approve(root, "plan-sync"),
        lambda: reject_barrier(root, "No", barrier="plan-sync"),
        lambda: synchronise(root),
    ):
        with pytest.raises(Refused, match="web crossed the unapproved barrier plan-sync"):
            act()
    assert acp("coordinator", "resync", str(root)).code == 2
    snapshot, causes = looked_at(root)
    (cause,) = (each for each in causes if each.code == "A5")
    assert (cause.remedy, cause.given) == ("mend_workstream", (("workstream", "web"),))
    assert snapshot.obstacles[0].sentence in acp("coordinator", "resync", str(root)).err
    assert {"approve_barrier", "resync"}.isdisjoint(offered(root))
    cured(root, cause)
    assert state(root / "web")["blocked_on"] == "barrier:plan-sync"


def test_bringing_the_state_back_undoes_a_crossing_too(tmp_path: Path) -> None:
    root = crossed(tmp_path)
    assert acp("bring-back", str(root / "web")).code == 0
    assert not {"A5", "A8"} & {each.code for each in looked_at(root / "web")[1]}


def test_the_lost_state_of_a_workstream_is_mended_by_its_coordinator(tmp_path: Path) -> None:
    root = crossed(tmp_path)
    web = root / "web"
    making.write(web / STATE, state(web) | {"phase": "planning"})
    (web / STATE).unlink()
    multi.unseal(web)
    with pytest.raises(Refused, match="mend-workstream --workstream web"):
        dispatch(web)
    refused = acp("recover", str(web))
    assert refused.code == 2 and "mend-workstream --workstream web" in refused.err
    cured(web, next(each for each in looked_at(web)[1] if each.code == "A1"))
    assert state(web)["blocked_on"] == "barrier:plan-sync"


# --- the runtime, and git ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["remote_agent", "telepathy", None])
def test_a_turn_for_an_unknown_runtime_is_not_assigned(tmp_path: Path, kind: str | None) -> None:
    root = states.run_in(tmp_path, "building")
    config = json.loads((root / "agentxchain.json").read_text())
    del config["runtimes"]["manual-dev"]
    if kind is not None:
        config["runtimes"]["manual-dev"] = {"type": kind}
    making.configure(root, config)
    before = (root / STATE).read_bytes()
    done = acp("step", str(root))
    assert done.code == 2 and "of dev is" in done.err and "manual, local_cli, api_proxy" in done.err
    assert (root / STATE).read_bytes() == before and state(root)["active_turns"] == {}
    _, causes = looked_at(root)
    assert "the runtime “manual-dev” of dev is" in " ".join(each.sentence for each in causes)
    assert "step" not in offered(root) and "escalate" in offered(root)
    assert dispatch(root, "qa").role == "qa"  # whose runtime is known


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not there")
def test_a_repository_of_another_account_is_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    root = states.run_in(tmp_path / "run", "building")
    dispatch(root)
    hand_in(root, status="completed", phase_transition_request=None, files_changed=["src/lamp.py"],
         artifact={"type": "workspace", "ref": None})  # fmt: skip
    for name in ("src/lamp.py", "src/undeclared.py"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("X = 1\n")
    subprocess.run(["chown", "-R", "12345", root], check=True)
    refusal = f"git config --global --add safe.directory {root}"
    with pytest.raises(Refused, match=refusal):
        accept(root)
    with pytest.raises(Refused, match=refusal):
        dispatch(root)
    _, causes = looked_at(root)
    cause = next(each for each in causes if "git refuses" in each.sentence)
    assert cause.instruction == refusal
    assert not offered(root) & {"step", "accept_turn"} and "escalate" in offered(root)
    subprocess.run(shlex.split(cause.instruction), check=True)
    with pytest.raises(Refused, match=r"Undeclared file changes detected .*src/undeclared\.py"):
        accept(root)


def test_an_empty_folder_named_git_is_no_repository(tmp_path: Path) -> None:
    """The sandboxes of some agent programs make one for a moment wherever the program may write."""
    root = tmp_path / "run"
    root.mkdir()
    initialise(root)
    (tmp_path / ".git").mkdir()
    dispatch(root)
    _, causes = looked_at(root)
    assert not [each for each in causes if "git refuses" in each.sentence]
    (tmp_path / ".git/config").touch()  # something is left of what may have been one
    assert [each for each in looked_at(root)[1] if "git refuses" in each.sentence]


def test_a_broken_repository_is_not_taken_for_none(tmp_path: Path) -> None:
    root = states.run_in(tmp_path, "building")
    (root / ".git/HEAD").unlink()
    with pytest.raises(Refused, match=r"git refuses to read the repository .*: not a git repo"):
        dispatch(root)


def hindered(root: Path) -> set[str]:
    return {each.key for each in guard.of_run(read_run(root))}


def test_a_run_that_does_not_go_on_needs_no_runtime(tmp_path: Path) -> None:
    root = making.make_run(tmp_path)
    config = making.config(runtimes={})
    making.configure(root, config)
    needed = hindered(root)
    for status in ("completed", "paused", "blocked"):
        making.write(root / STATE, making.state(status=status))
        assert len(needed - hindered(root)) == 1, status


def test_hooks_are_the_matter_of_the_program_that_made_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is done in its runs is handed to it where it is there, and it asks its hooks itself."""
    root = making.make_run(tmp_path / "run")
    hook = {"name": "veto", "command": ["false"], "mode": "blocking"}
    config = making.config(
        hooks={"before_acceptance": [hook], "after_dispatch": [hook]}, runtimes={}
    )
    making.configure(root, config)
    alone = hindered(root)
    assert {"obstacle:hooks", "obstacle:hooks:after_dispatch"} < alone
    (tmp_path / "agentxchain").write_text("#!/bin/sh\n")
    (tmp_path / "agentxchain").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert not hindered(root) & alone


# --- initiatives, and what links runs to them ---------------------------------------------------


def test_an_initiative_is_guarded_in_its_own_layout_once_it_has_begun(tmp_path: Path) -> None:
    other = making.make_existing(tmp_path / "other", "all_repos_accepted", web=making.state())
    (other / ".agentxchain/multirepo/state.json").write_text("{")
    assert guard.of_initiative(read_initiative(other)) == ()
    own = making.make_initiative(tmp_path / "own", web=making.state())
    assert guard.of_initiative(read_initiative(own)) == ()
    coordinator = own / ".coordinator/state.json"
    kept = coordinator.read_bytes()
    coordinator.unlink()
    assert guard.of_initiative(read_initiative(own)) == ()  # nothing was begun, nothing is lost
    coordinator.write_text("{")
    (lost,) = guard.of_initiative(read_initiative(own))
    assert "cannot be read" in lost.sentence
    coordinator.write_bytes(kept)
    (own / f".coordinator/{JOURNAL}").write_text("{")
    (stuck,) = guard.of_initiative(read_initiative(own))
    assert "can be neither finished nor undone" in stuck.sentence


def test_a_run_knows_its_workstream_and_the_barriers_that_nobody_approved(tmp_path: Path) -> None:
    root = making.make_initiative(tmp_path, web=making.state())
    config = json.loads((root / "agentxchain-multi.json").read_text())
    for path in ("agentxchain.json", "", None, 7):
        config["workstreams"][0]["config_path"] = path
        making.write(root / "agentxchain-multi.json", config)
        link = initiative.linked_workstream(read_run(root / "web"))
        assert link is not None and (link.name, link.barriers) == (
            "web",
            (("plan-sync", "planning"),),
        )
    (root / ".coordinator/state.json").unlink()
    line = {"type": "barrier_reached", "barrier": "plan-sync"}
    for kind, barriers in (
        ("barrier_reached", (("plan-sync", "planning"),)),
        ("barrier_approved", ()),
    ):
        making.write_lines(root / ".coordinator/ledger.jsonl", line | {"type": kind})
        link = initiative.linked_workstream(read_run(root / "web"))
        assert link is not None and link.barriers == barriers


# --- what a state may say ----------------------------------------------------------------------


def migrated(root: Path, **more: object) -> Path:
    """A run as the existing program's migration leaves it: without an id."""
    waits = {"status": "paused", "blocked_on": "human:migration-review", "run_id": None}
    return making.make_run(root, of_state=making.state(**waits | more))


def test_a_migrated_run_gets_its_id_with_its_first_step(tmp_path: Path) -> None:
    root = migrated(tmp_path)
    _, causes = looked_at(root)
    cause = next(each for each in causes if each.code == "A2" and each.remedy)
    assert (cause.sentence, cause.remedy) == (
        "The run is paused, but no gate is pending",
        "unblock",
    )
    assert acp("unblock", str(root), *BY).code == 0
    (cause,) = (each for each in looked_at(root)[1] if each.code == "A2")
    assert (cause.sentence, cause.remedy) == ("The run has started but has no id", "step")
    turn = dispatch(root).turn_id
    now = state(root)
    assert now["run_id"].startswith("run_") and now["active_turns"][turn]["run_id"] == now["run_id"]
    bundle = root / f".agentxchain/dispatch/turns/{turn}/ASSIGNMENT.json"
    assert json.loads(bundle.read_text())["run_id"] == now["run_id"]
    hand_in(root, files_changed=[], phase_transition_request="implementation")
    assert accept(root).status in ("active", "paused")
    assert looked_at(root)[0].verdict != model.Verdict.INVALID


def test_a_turn_that_was_given_out_without_an_id_gets_one_when_it_is_given_out_again(
    tmp_path: Path,
) -> None:
    turn = making.turn(run_id=None)
    root = migrated(tmp_path, status="active", blocked_on=None, active_turns={making.TURN: turn})
    (cause,) = (each for each in looked_at(root)[1] if each.code == "A2")
    assert cause.remedy == "reject_turn"
    reject_turn(root, "It bears no id")
    dispatch(root)
    now = state(root)
    assert now["active_turns"][making.TURN]["run_id"] == now["run_id"]
    assert now["run_id"].startswith("run_")


@pytest.mark.parametrize(
    ("more", "said"),
    [({"phase": "dreaming"}, "the phase “dreaming”"), ({"status": "asleep"}, "status “asleep”")],
)
def test_no_agent_runs_in_a_phase_or_status_that_there_is_not(
    tmp_path: Path, more: Object, said: str
) -> None:
    root = making.make_run(tmp_path, of_state=making.state(**more))
    for act in acts(root):
        with pytest.raises(Refused, match=f"state.json names .*{said}"):
            act()
    snapshot, causes = looked_at(root)
    assert said in causes[0].sentence and snapshot.verdict == model.Verdict.INVALID


def test_a_state_that_is_active_and_blocked_at_once_can_go_on(tmp_path: Path) -> None:
    root = making.make_run(tmp_path, of_state=making.state(blocked_on="human:which lamp?"))
    cause = next(each for each in looked_at(root)[1] if each.code == "A2")
    assert cause.remedy == "unblock" and "unblock" in offered(root)
    unblock(root)
    assert looked_at(root)[0].verdict != model.Verdict.INVALID
