"""An initiative from its start through its barriers: held, approved, rejected, completed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema
from tests.protocols.governed import making, multi
from tests.protocols.governed.acting import (
    acted,
    coordinator,
    mend_workstream,
    open_folder,
    poll,
    refused,
    reject_barrier,
    seen,
    step,
    synchronise,
)
from tests.protocols.governed.multi import NAMES, NOW, SUPER, approve, asks, begin, ledger, state


def kinds(root: Path) -> list[str]:
    return [line["type"] for line in ledger(root)]


def test_the_start_links_every_run(tmp_path: Path) -> None:
    begin(tmp_path)
    told = state(tmp_path)
    assert set(told) == {
        "schema_version", "super_run_id", "status", "barriers", "workstreams", "updated_at"
    }  # fmt: skip
    assert (told["schema_version"], told["status"]) == ("1.0", "active")
    assert told["barriers"]["plan-sync"] == {
        "phase": "planning", "status": "pending", "reached_by": [], "reached_at": None,
        "approved_at": None, "approved_by": None, "comment": None,
    }  # fmt: skip
    for name in NAMES:
        run = state(tmp_path, name)
        assert (run["super_run_id"], run["status"], run["phase"]) == (SUPER, "active", "planning")
        assert run["barriers"] == {"planning": "plan-sync", "verification": "ship-sync"}
        record = told["workstreams"][name]
        assert set(record) == {"path", "run_id", "phase", "status", "last_turn"}
        assert (record["path"], record["run_id"]) == (name, run["run_id"])
    assert kinds(tmp_path) == ["initiative_started", *["workstream_linked"] * 3]
    assert all(line["super_run_id"] == SUPER and line["at"] for line in ledger(tmp_path))


def test_the_runs_that_are_new_are_given_the_agents(tmp_path: Path) -> None:
    for name in NAMES:
        multi.repository(tmp_path / name)
    (tmp_path / "web/agentxchain.json").unlink()
    making.write(tmp_path / "agentxchain-multi.json", multi.configuration())
    words = ["init", str(tmp_path), "--as", "Ann", "--yes"]
    for wrong, said in (
        (["--agent", "builder"], "an agent must be ROLE=COMMAND"),
        (["--agent", "baker=bake"], "no role 'baker' for the agent"),
        (["--agent", "dev=say 'so"], "the command line of dev cannot be parsed"),
        (["--agent", "dev=a", "--agent", "dev=b"], "the role dev has two agents"),
    ):
        assert said in refused("coordinator", *words, *wrong)
    assert not (tmp_path / "web/agentxchain.json").exists()
    given = ["--agent", "pm=planner --deep", "--agent", "dev=builder {prompt}"]
    assert "planner --deep plays pm; builder {prompt} plays dev" in acted(
        "coordinator", *words, *given
    )
    runtimes = json.loads((tmp_path / "web/agentxchain.json").read_text())["runtimes"]
    assert runtimes["local-pm"]["type"] == runtimes["local-dev"]["type"] == "local_cli"
    assert (runtimes["local-pm"]["command"], runtimes["local-pm"]["args"]) == (
        "planner",
        ["--deep"],
    )
    assert runtimes["manual-qa"] == {"type": "manual"}
    known = json.loads((tmp_path / "auth/agentxchain.json").read_text())["runtimes"]
    assert set(known) == {"manual-pm", "manual-dev", "manual-qa"}, "one that is there stays"


def test_an_initiative_that_has_not_begun_asks_for_its_start(tmp_path: Path) -> None:
    multi.repository(tmp_path / "auth")
    making.write(tmp_path / "agentxchain-multi.json", multi.configuration(("auth",)))
    [need] = seen(tmp_path, NOW).needs
    assert (need.sentence, need.remedy) == ("The initiative has not started", "start_initiative")
    (action,) = open_folder(tmp_path).actions(NOW)
    assert action.name == need.remedy
    making.write(tmp_path / "agentxchain-multi.json", multi.configuration(("auth",), barriers=3))
    broken = open_folder(tmp_path)
    assert "start_initiative" not in [need.remedy for need in broken.refresh(NOW).needs]
    assert not broken.actions(NOW)
    making.write(tmp_path / "agentxchain-multi.json", multi.configuration(("auth",)))
    acted("coordinator", "init", tmp_path, "--as", "Ann", "--yes")
    assert "START" not in [need.code for need in seen(tmp_path, NOW).needs]


def test_agents_that_no_run_needs_are_said_to_be_unused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    multi.repository(tmp_path / "auth")
    making.write(tmp_path / "agentxchain-multi.json", multi.configuration(("auth",)))
    words = ["init", str(tmp_path), "--dry-run"]
    assert coordinator([*words, "--agent", "pm=planner"]) == 0
    assert "! every workstream has its own configuration: acp ignores" in capsys.readouterr().out
    assert coordinator(words) == 0
    assert "acp ignores the agents" not in capsys.readouterr().out


def test_a_step_that_sees_nothing_new_writes_nothing(tmp_path: Path) -> None:
    begin(tmp_path)
    asks(tmp_path, "auth")
    step(tmp_path)
    files = [tmp_path / ".coordinator/state.json", tmp_path / ".coordinator/ledger.jsonl",
             tmp_path / "auth/.agentxchain/state.json"]  # fmt: skip
    before = [(path.stat().st_ino, path.read_bytes()) for path in files]
    assert step(tmp_path).messages == ("nothing new",)
    assert [(path.stat().st_ino, path.read_bytes()) for path in files] == before


def test_the_coordinator_polls_until_all_is_over(tmp_path: Path) -> None:
    begin(tmp_path, ("auth",))
    acts = iter([lambda: asks(tmp_path, "auth"), lambda: approve(tmp_path),
                 lambda: multi.by_hand(tmp_path, "auth",
                                       state(tmp_path, "auth") | {"phase": "verification"}),
                 lambda: asks(tmp_path, "auth"), lambda: approve(tmp_path)])  # fmt: skip
    told = [done.messages for done in poll(tmp_path, pause=lambda _: next(acts)())]
    assert [said[0] for said in told] == [
        "auth reached plan-sync", "auth reached ship-sync"
    ]  # fmt: skip
    assert state(tmp_path)["status"] == "completed"
    acted("coordinator", "poll", tmp_path, "--every", "0.1")
    assert "'soon' is not a duration" in refused("coordinator", "poll", tmp_path, "--every", "soon")
    assert "--every: must be at most 3600" in refused(
        "coordinator", "poll", tmp_path, "--every", "2h"
    )


def test_a_phase_without_a_barrier_is_left_by_the_run_alone(tmp_path: Path) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    approve(tmp_path)
    asks(tmp_path, "auth")  # leaves implementation, which no barrier ends
    step(tmp_path)
    assert state(tmp_path, "auth")["status"] == "paused"
    assert state(tmp_path)["barriers"]["ship-sync"]["reached_by"] == []


def test_a_rejection_sends_back_who_is_named(tmp_path: Path) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    step(tmp_path)
    with pytest.raises(Refused, match="needs a comment"):
        reject_barrier(tmp_path, " ")
    with pytest.raises(Refused, match="no workstream 'nobody'"):
        reject_barrier(tmp_path, "No.", ["nobody"])
    reject_barrier(tmp_path, "Tokens expire too late.", ["gateway"])
    run = state(tmp_path, "gateway")
    assert (run["status"], run["phase"], run["next_recommended_role"]) == (
        "active", "planning", "pm"
    )  # fmt: skip
    assert state(tmp_path, "auth")["blocked_on"] == "barrier:plan-sync"
    record = state(tmp_path)["barriers"]["plan-sync"]
    assert (record["status"], record["reached_by"]) == ("rejected", ["auth", "web"])
    with pytest.raises(Refused, match="no cross-repo gate is open"):
        approve(tmp_path)
    asks(tmp_path, "gateway")
    assert not approve(tmp_path).failed
    assert state(tmp_path, "gateway")["phase"] == "implementation"


def test_a_failed_workstream_is_noted_once_and_when_it_is_well_again(tmp_path: Path) -> None:
    begin(tmp_path)
    run = state(tmp_path, "web")
    blocked = {"status": "blocked", "blocked_on": "human:no bulb", "blocked_reason": {}}
    making.write(tmp_path / "web/.agentxchain/state.json", run | blocked)
    step(tmp_path)
    step(tmp_path)
    assert kinds(tmp_path)[4:] == ["workstream_failed"]
    assert ledger(tmp_path)[-1]["barrier"] == "plan-sync"
    making.write(tmp_path / "web/.agentxchain/state.json", run)
    step(tmp_path)
    assert kinds(tmp_path)[4:] == ["workstream_failed", "workstream_recovered"]


def test_a_request_without_accepted_work_reaches_nothing(tmp_path: Path) -> None:
    begin(tmp_path)
    asks(tmp_path, "auth")
    (tmp_path / "auth/.agentxchain/history.jsonl").write_text("")
    step(tmp_path)
    assert state(tmp_path, "auth")["status"] == "paused"
    assert state(tmp_path)["barriers"]["plan-sync"]["reached_by"] == []


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ('{"status": "blo', "its state cannot be read"),
        ("[]", "its state cannot be read"),
        (None, "its state cannot be read"),
        ({"super_run_id": "another"}, "lacks the super_run_id"),
        ({"run_id": "run_other"}, "its run is run_other"),
        ({"active_turns": {"turn_1": {"assigned_role": "pm"}}}, "turn_1 is active"),
    ],
)
def test_what_cannot_be_resynced_blocks_all_and_is_mended(
    tmp_path: Path, damage: str | making.Object | None, reason: str
) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    step(tmp_path)
    place = tmp_path / "web/.agentxchain/state.json"
    good = place.read_bytes()
    if damage is None:
        place.unlink()
    elif isinstance(damage, dict):
        multi.by_hand(tmp_path, "web", json.loads(good) | damage)
    else:
        place.write_text(damage)
    done = approve(tmp_path)
    assert len(done.failed) == 1 and done.failed[0].startswith("web: ") and reason in done.failed[0]
    told = state(tmp_path)
    assert (told["status"], told["barriers"]["plan-sync"]["status"]) == (
        "blocked:resync_failed", "approved"
    )  # fmt: skip
    assert {state(tmp_path, name)["phase"] for name in ("auth", "gateway")} == {"planning"}
    assert ledger(tmp_path)[-1]["failures"][0]["workstream"] == "web"
    again = synchronise(tmp_path)
    assert again.failed and "is still not crossed" in again.messages[0]
    place.write_bytes(good)
    assert not synchronise(tmp_path).failed
    assert {state(tmp_path, name)["phase"] for name in NAMES} == {"implementation"}
    assert state(tmp_path)["status"] == "active"


def test_a_state_that_cannot_be_written_takes_all_back_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    step(tmp_path)
    from acp_core.files import atomic

    replace = atomic.replace

    def full(path: Path, data: bytes, **more: bool) -> None:
        if "web" in str(path) and b'"implementation"' in data and b'"status": "active"' in data:
            raise OSError(28, "No space left on device")
        replace(path, data, **more)

    monkeypatch.setattr(atomic, "replace", full)
    done = approve(tmp_path)
    assert "No space left" in done.failed[0]
    assert {state(tmp_path, name)["phase"] for name in NAMES} == {"planning"}
    assert state(tmp_path)["status"] == "blocked:resync_failed"
    assert state(tmp_path)["barriers"]["plan-sync"]["approved_by"] == "Ann"
    monkeypatch.setattr(atomic, "replace", replace)
    assert not synchronise(tmp_path).failed
    assert {state(tmp_path, name)["phase"] for name in NAMES} == {"implementation"}


def test_a_plan_that_cannot_be_read_at_one_look_does_not_empty_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    step(tmp_path)
    before = state(tmp_path)
    read = schema.read_object
    for failing in (1, 2):
        looks = iter(range(1, 100))

        def once(
            path: Path,
            limit: int = schema.JSON_LIMIT,
            looks: Iterator[int] = looks,
            failing: int = failing,
        ) -> schema.Loaded:
            if path.name == schema.MULTI_CONFIG and next(looks) == failing:
                return schema.Loaded({}, "cannot be read: Interrupted system call")
            return read(path, limit)

        monkeypatch.setattr(schema, "read_object", once)
        with pytest.raises(Refused, match=r"agentxchain-multi\.json:? cannot be read"):
            step(tmp_path)
        assert state(tmp_path) == before
    assert not approve(tmp_path).failed


@pytest.mark.parametrize("damage", [b'{"status": "blo', None])
def test_a_lost_state_is_made_again_and_crosses(
    tmp_path: Path, damage: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    step(tmp_path)
    place = tmp_path / "web/.agentxchain/state.json"
    good = state(tmp_path, "web")
    place.write_bytes(damage) if damage else place.unlink()
    assert approve(tmp_path).failed
    words = ["mend", str(tmp_path), "--workstream", "web", "--as", "Ann", "--yes"]
    assert coordinator([*words[:4], "--dry-run"]) == 0
    assert "Make the state of web from its history: planning, barrier:plan-sync" in (
        capsys.readouterr().out
    )
    assert coordinator(words) == 0
    assert "no obstacle is left at plan-sync: resync" in capsys.readouterr().out
    made = state(tmp_path, "web")
    same = set(good) - {"blocked_reason", "barrier_request", "accepted_integration_ref"}
    assert {key: made[key] for key in same} == {key: good[key] for key in same}
    assert made["barrier_request"]["to"] == "implementation"
    kept = list((tmp_path / "web/.acp/kept").glob("state.json.damaged-*"))
    assert [path.read_bytes() for path in kept] == ([damage] if damage else [])
    assert not synchronise(tmp_path).failed
    assert {state(tmp_path, name)["phase"] for name in NAMES} == {"implementation"}
    assert coordinator(words) == 2
    assert "its state is readable" in capsys.readouterr().err


def test_a_lost_state_past_a_barrier_is_made_again(tmp_path: Path) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    approve(tmp_path)
    good = state(tmp_path, "web")
    (tmp_path / "web/.agentxchain/state.json").write_text("")
    mend_workstream(tmp_path, "web")
    made = state(tmp_path, "web")
    assert (made["phase"], made["status"]) == ("implementation", "active")
    assert made["barrier_approvals"] == good["barrier_approvals"]
    assert made["phase_entered_at"] == good["phase_entered_at"]
    assert made["phase_gate_status"]["planning_done"] == "passed"
    assert kinds(tmp_path)[-2:] == ["workstream_mended", "workstream_recovered"]


def test_a_history_that_is_damaged_too_makes_no_state(tmp_path: Path) -> None:
    begin(tmp_path)
    for name in ("state.json", "history.jsonl"):
        (tmp_path / "web/.agentxchain" / name).write_text("{")
    with pytest.raises(Refused, match=r"history.jsonl: is not valid JSON"):
        mend_workstream(tmp_path, "web")


def test_a_lost_state_does_not_bring_back_a_barrier_that_was_crossed(tmp_path: Path) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    approve(tmp_path)
    for name in NAMES:
        moved = state(tmp_path, name) | {"phase": "verification"}
        making.write(tmp_path / name / ".agentxchain/state.json", moved)
    multi.all_ask(tmp_path)
    step(tmp_path)
    place = tmp_path / "web/.agentxchain/state.json"
    good = place.read_bytes()
    place.write_bytes(good[:50])
    assert approve(tmp_path, "ship-sync").failed
    assert "ship-sync is still not crossed" in " ".join(synchronise(tmp_path).messages)
    failed = [line for line in ledger(tmp_path) if line["type"] == "resync_failed"]
    assert [line["barrier"] for line in failed] == ["ship-sync"] * 2
    place.write_bytes(good)
    assert not synchronise(tmp_path).failed
    assert state(tmp_path)["status"] == "completed"
