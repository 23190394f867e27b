"""Why initiatives are stuck: each cause fires where it should, and not where all is well."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from acp_core import model
from acp_core.protocols.governed.collaboration import open_folder
from acp_core.protocols.governed.write import initiative_decide
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.protocols.governed import making, multi
from tests.protocols.governed.multi import NOW, approve, asks, begin, state

LATER = NOW + timedelta(hours=2)
AT_WORK = {making.TURN: making.turn()}


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path_factory.mktemp("state")))


def stuck(root: Path, now: datetime = LATER) -> dict[str, model.Cause]:
    """The causes by their codes."""
    opened = open_folder(str(root))
    snapshot = opened.refresh(now)
    return {cause.code: cause for cause in opened.causes(DiagnosisContext(snapshot, Clock(now)))}


def names(root: Path) -> set[str]:
    """What can be done."""
    return {action.name for action in open_folder(str(root)).actions(LATER)}


def change(root: Path, name: str, **more: object) -> None:
    place = root / name / ".agentxchain/state.json" if name else root / ".coordinator/state.json"
    making.write(place, state(root, name) | more)
    multi.unseal(root / name)


def test_an_initiative_at_work_is_not_stuck(tmp_path: Path) -> None:
    begin(tmp_path)
    assert stuck(tmp_path) == {}
    assert names(tmp_path) == {"coordinate"}


def test_a_gate_that_waits_names_its_remedies(tmp_path: Path) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    initiative_decide.step(tmp_path, NOW)
    found = stuck(tmp_path)
    assert set(found) == {"D9"}
    gate = found["D9"]
    assert (gate.remedy, gate.others) == ("approve_barrier", ("reject_barrier",))
    assert dict(gate.given) == {"barrier": "plan-sync"} and gate.since == NOW
    [need] = open_folder(str(tmp_path)).refresh(LATER).needs
    assert gate.explains == (need.key,) and need.action == "approve_barrier"
    assert {"approve_barrier", "reject_barrier"} <= names(tmp_path)
    approve(tmp_path)
    assert "D9" not in stuck(tmp_path)


def test_who_lags_is_named_once_the_others_have_waited_long(tmp_path: Path) -> None:
    begin(tmp_path)
    asks(tmp_path, "auth")
    asks(tmp_path, "gateway")
    initiative_decide.step(tmp_path, NOW)
    assert stuck(tmp_path, NOW + timedelta(minutes=5)) == {}
    lags = stuck(tmp_path)["D7"]
    assert lags.headline == "auth, gateway: waiting at plan-sync for web"
    assert lags.participant == "web" and lags.since == NOW
    assert "dispatch the next turn" in lags.advice and lags.wanted
    change(tmp_path, "web", active_turns=AT_WORK)
    agent = stuck(tmp_path)["D7"]
    assert not agent.wanted and "take its turn" in agent.advice


def test_a_barrier_that_the_coordinator_has_not_seen_reached(tmp_path: Path) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    found = stuck(tmp_path)
    assert found["D10"].remedy == "coordinate"
    assert "all workstreams reached plan-sync" in found["D10"].headline
    initiative_decide.step(tmp_path, NOW)
    assert "D10" not in stuck(tmp_path)


def test_a_gate_that_a_workstream_left_is_shut_until_the_coordinator_looks(tmp_path: Path) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    initiative_decide.step(tmp_path, NOW)
    change(tmp_path, "web", status="active", blocked_on=None, pending_phase_transition=None)
    (cause,) = stuck(tmp_path).values()
    assert (cause.code, cause.remedy) == ("D10", "coordinate")
    assert cause.headline == "The coordinator has not noticed that web left plan-sync"
    assert names(tmp_path) == {"coordinate"}
    assert open_folder(str(tmp_path)).cards(LATER) == ()
    initiative_decide.step(tmp_path, NOW)
    assert "D10" not in stuck(tmp_path)


def test_a_failed_resync_says_what_failed(tmp_path: Path) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    initiative_decide.step(tmp_path, NOW)
    change(tmp_path, "web", super_run_id="another")
    approve(tmp_path)
    found = stuck(tmp_path)
    assert found["E2"].remedy == "resync"
    assert found["E2"].evidence == ("web: its state lacks the super_run_id super_run_lamp",)
    assert "A7" in found and "D11" not in found
    assert "resync" in names(tmp_path)
    snapshot = open_folder(str(tmp_path)).refresh(LATER)
    assert snapshot.status is model.Status.BLOCKED and snapshot.turns[0].participant == "you"
    change(tmp_path, "web", super_run_id=multi.SUPER)
    initiative_decide.synchronise(tmp_path, NOW)
    assert not {"E2", "A7"} & set(stuck(tmp_path))
    assert "resync" not in names(tmp_path)


def test_an_approval_that_moved_nobody(tmp_path: Path) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    initiative_decide.step(tmp_path, NOW)
    kept = state(tmp_path)["barriers"]
    approved = kept["plan-sync"] | {"status": "approved", "approved_at": making.AT}
    change(tmp_path, "", barriers=kept | {"plan-sync": approved})
    assert stuck(tmp_path)["D11"].remedy == "resync"
    initiative_decide.synchronise(tmp_path, NOW)
    assert "D11" not in stuck(tmp_path)


def test_a_barrier_that_a_workstream_can_never_reach(tmp_path: Path) -> None:
    begin(tmp_path)
    place = tmp_path / "web/agentxchain.json"
    config = making.config()
    routing = {"planning": config["routing"]["planning"]}
    making.write(place, config | {"routing": routing})
    found = stuck(tmp_path)
    assert "web can never reach barrier ship-sync" in found["D8"].headline
    making.write(place, config)
    assert "D8" not in stuck(tmp_path)
    change(tmp_path, "web", status="failed")
    assert "failed before barrier" in stuck(tmp_path)["D8"].headline


def test_a_crossed_barrier(tmp_path: Path) -> None:
    begin(tmp_path)
    change(tmp_path, "web", phase="implementation")
    initiative_decide.step(tmp_path, NOW)
    found = stuck(tmp_path)
    assert "web crossed the unapproved barrier plan-sync" in found["A5"].headline
    assert "E2" not in found
    change(tmp_path, "web", phase="planning")
    initiative_decide.step(tmp_path, NOW)
    assert "A5" not in stuck(tmp_path)


def test_a_workstream_that_cannot_be_read(tmp_path: Path) -> None:
    begin(tmp_path)
    place = tmp_path / "web/.agentxchain/state.json"
    good = place.read_bytes()
    place.write_bytes(b'{"status"')
    assert stuck(tmp_path)["A3"].participant == "web"
    assert stuck(tmp_path)["A3"].remedy == "mend_workstream" in names(tmp_path)
    place.write_bytes(good)
    assert "A3" not in stuck(tmp_path)
    change(tmp_path, "web", run_id="run_other")
    assert "web runs run_other" in stuck(tmp_path)["A4"].headline
    place.write_bytes(good)
    assert "A4" not in stuck(tmp_path)


Object = making.Object


def gate_pending(home: Path) -> None:
    gate = {"gate_type": "phase_transition", "gate": "phase_transition:planning->implementation",
            "from": "planning", "to": "implementation", "requested_at": making.AT}  # fmt: skip
    making.write(home / "state.json", {"status": "paused", "phase": "planning",
                                       "pending_gate": gate})  # fmt: skip


def half(home: Path, reached: list[str]) -> None:
    barrier = {"workstream_id": "plan", "type": "all_repos_accepted", "status":
               "partially_satisfied", "required_repos": ["hall", "attic"],
               "satisfied_repos": reached}  # fmt: skip
    making.write(home / "barriers.json", {"plan_completion": barrier})


def accepted(root: Path, *names: str) -> None:
    for name in names:
        making.write_lines(root / f"repos/{name}/.agentxchain/history.jsonl", making.accepted())


def blocked_child(root: Path) -> None:
    half(root / ".agentxchain/multirepo", ["hall"])
    reason = {"category": "needs_human", "recovery": {"detail": "no bulb"}}
    blocked = making.state(status="blocked", blocked_on="human:no bulb", blocked_reason=reason)
    making.write(root / "repos/hall/.agentxchain/state.json", blocked)


def half_done(root: Path) -> None:
    half(root / ".agentxchain/multirepo", ["hall"])
    accepted(root, "hall", "attic")


def corrupt_child(root: Path) -> None:
    (root / "repos/attic/.agentxchain/state.json").write_text('{"run_id": "ru')


def early(root: Path) -> None:
    told = {"status": "completed", "phase": "planning"}
    making.write(root / ".agentxchain/multirepo/state.json", told)


def empty_context(root: Path) -> None:
    told = root / ".agentxchain/multirepo/context/ctx_plan/COORDINATOR_CONTEXT.md"
    told.parent.mkdir(parents=True)
    told.write_text("Decisions: [object Object]\n")
    at_work = making.state(active_turns=AT_WORK)
    making.write(root / "repos/hall/.agentxchain/state.json", at_work)


@pytest.mark.parametrize(
    ("make", "kind", "code"),
    [
        (lambda root: None, "shared_human_gate", "D5"),
        (corrupt_child, "all_repos_accepted", "A3"),
        (blocked_child, "all_repos_accepted", "D4"),
        (half_done, "all_repos_accepted", "D6"),
        (empty_context, "all_repos_accepted", "C3"),
        (early, "all_repos_accepted", "D3"),
        (lambda root: gate_pending(root / ".agentxchain/multirepo"), "all_repos_accepted", "D9"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_stuck_states_of_the_existing_layout(
    tmp_path: Path, make: Callable[[Path], None], kind: str, code: str
) -> None:
    well = making.make_existing(tmp_path / "well", "all_repos_accepted",
                                hall=making.state(active_turns=AT_WORK), attic=making.state())  # fmt: skip
    assert stuck(well) == {}
    root = making.make_existing(tmp_path / "ill", kind, hall=making.state(), attic=making.state())
    make(root)
    found = stuck(root)
    assert code in found, found
    assert found[code].advice
    assert names(root) == set()  # the existing program acts on its own initiatives


@pytest.mark.parametrize(
    ("phase", "waits", "of_state"),
    [
        ("planning", "hall", {}),
        ("planning", "you", {"pending_gate": {"gate": "phase_transition:planning->implementation",
                                              "from": "planning", "to": "implementation"},
                             "status": "paused"}),
        ("completed", None, {"status": "completed", "phase": "verification"}),
    ],
)  # fmt: skip
def test_the_existing_layout_tells_phase_and_who_is_waited_for(
    tmp_path: Path, phase: str, waits: str | None, of_state: Object
) -> None:
    at_work = making.state(active_turns=AT_WORK)
    root = making.make_existing(tmp_path, "all_repos_accepted", hall=at_work, attic=making.state())
    place = root / ".agentxchain/multirepo/state.json"
    making.write(place, {"status": "active", "phase": "planning"} | of_state)
    if waits is None:
        for name in ("hall", "attic"):
            done = making.state(status="completed", phase="verification")
            making.write(root / f"repos/{name}/.agentxchain/state.json", done)
    snapshot = open_folder(str(root)).refresh(LATER)
    assert snapshot.phase == phase
    assert (snapshot.turns[0].participant if snapshot.turns else None) == waits
    board = next(p for p in snapshot.panels if p.id == "board")
    shown = {row.cells[0] for row in board.rows}
    assert {"hall", "attic", "planning", "═ plan_completion"} <= shown
    gate = next(p for p in snapshot.panels if p.id == "gate")
    assert bool(gate.rows) == ("pending_gate" in of_state)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"workstreams": {"plan": {"phase": "dreaming", "repos": []}}},
            "the unknown phase dreaming",
        ),
        ({"workstreams": {"plan": {"phase": "planning", "repos": ["x"]}}}, "unknown repository x"),
        ({"workstreams": {"p": {"phase": "planning", "entry_repo": "q"}}}, "enters at q"),
        (
            {"workstreams": {"p": {"phase": "planning", "depends_on": ["z"]}}},
            "depends on the unknown workstream z",
        ),
        ({"workstreams": {"p": {"phase": "planning", "completion_barrier": "?"}}}, "unknown kind"),
        ({"routing": {"planning": {}}}, "hall has the phases planning, implementation"),
    ],
)
def test_a_wrong_configuration_of_the_existing_layout_is_named(
    tmp_path: Path, more: Object, said: str
) -> None:
    root = making.make_existing(tmp_path, "all_repos_accepted", hall=making.state())
    place = root / "agentxchain-multi.json"
    good = json.loads(place.read_text())
    opened = open_folder(str(root))
    assert "MULTI_CONFIG" not in {f.code for f in opened.refresh(LATER).findings}
    making.write(place, good | more)
    told = [f.message for f in opened.refresh(LATER).findings if f.code == "MULTI_CONFIG"]
    assert any(said in each for each in told), told


def test_a_wrong_configuration_of_an_initiative_is_named(tmp_path: Path) -> None:
    begin(tmp_path, ("auth",))
    assert not open_folder(str(tmp_path)).refresh(LATER).findings
    hooks = {"on_lunch": "x.sh"}
    making.write(tmp_path / "agentxchain-multi.json", multi.configuration(("auth",), hooks=hooks))
    [finding] = open_folder(str(tmp_path)).refresh(LATER).findings
    assert finding.code == "MULTI_CONFIG" and "on_lunch" in finding.message
