"""Whom the others waited for at a barrier and when you were waited for, as an initiative tells it."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from acp_core.model.past import PastTurn
from tests.cli.support import Acp
from tests.protocols.governed import house, making, multi
from tests.protocols.governed.acting import (
    Governed,
    approve_barrier,
    open_folder,
    reject_barrier,
    step,
    synchronise,
)

Told = tuple[str, str, int, str]


def now() -> datetime:
    return datetime.now(UTC)


def opened(root: Path) -> Governed:
    found = open_folder(root)
    found.refresh(now())
    return found


def turns(root: Path) -> list[Told]:
    return [_told(turn) for turn in opened(root).story().turns]


def _told(turn: PastTurn) -> Told:
    return turn.participant, turn.phase, turn.round, turn.kind


def test_from_the_start_past_a_rejected_and_an_approved_barrier(tmp_path: Path) -> None:
    root = multi.begin(tmp_path)
    working = [(name, "planning", 1, "") for name in multi.NAMES]
    assert turns(root) == working
    multi.asks(root, "web")
    step(root, now())
    assert turns(root) == [("web", "planning", 1, "workstream_at_barrier"), *working[:2]]
    multi.asks(root, "auth")
    multi.asks(root, "gateway")
    step(root, now())
    arrived = [(n, "planning", 1, "workstream_at_barrier") for n in ("web", "auth", "gateway")]
    assert turns(root) == [*arrived, ("you", "planning", 1, "")]
    reject_barrier(root, "No test plan.", ["web"], now=now())
    rejected = ("you", "planning", 1, "barrier_rejected")
    assert turns(root) == [*arrived, rejected, ("web", "planning", 2, "")]
    multi.asks(root, "web")
    approve_barrier(root, now=now())
    there = ("web", "planning", 2, "workstream_at_barrier")
    approved = ("you", "planning", 2, "barrier_approved")
    assert turns(root) == [
        *arrived, rejected, there, approved,
        *((name, "implementation", 1, "") for name in multi.NAMES),
    ]  # fmt: skip
    counts = {(c.what, c.participant): c.value for c in opened(root).story().counts}
    assert counts["barriers approved", None] == counts["barriers rejected", None] == 1
    assert counts["accepted turns", "web"] == 2 and counts["decisions", None] == 4


def test_you_are_waited_for_until_a_failed_resync_is_mended(tmp_path: Path) -> None:
    root = multi.begin(tmp_path)
    multi.all_ask(root)
    step(root, now())
    path = root / "web/.agentxchain/state.json"
    sound = path.read_bytes()
    path.write_bytes(b'{"status":')
    approve_barrier(root, now=now())
    yours = [turn for turn in opened(root).story().turns if turn.participant == "you"]
    assert [turn.kind for turn in yours] == ["barrier_approved", "", ""]
    path.write_bytes(sound)
    synchronise(root, now())
    yours = [turn for turn in opened(root).story().turns if turn.participant == "you"]
    kinds = {turn.kind for turn in yours}
    assert kinds == {"barrier_approved", "resync", "workstream_recovered"}
    assert all(isinstance(turn.ended, datetime) for turn in yours)


def test_in_the_existing_program_s_layout(tmp_path: Path) -> None:
    barriers = tuple(("all_repos_accepted", "pending", ()) for _ in house.WORK)
    root = house.make_house(tmp_path, house.everywhere(making.state()), barriers=barriers)
    more = {"workstream_id": "plan", "repo_id": "hall", "repo_turn_id": making.TURN}
    making.write_lines(
        root / ".agentxchain/multirepo/history.jsonl",
        {"type": "turn_dispatched", "timestamp": "2026-03-01T10:00:00Z", **more},
        {"type": "acceptance_projection", "timestamp": "2026-03-01T10:20:00Z", **more},
        {"type": "phase_transition_requested", "timestamp": "2026-03-01T10:21:00Z",
         "from": "planning", "to": "implementation"},
        {"type": "phase_transition_approved", "timestamp": "2026-03-01T10:41:00Z"},
    )  # fmt: skip
    found = opened(root).story().turns
    assert [_told(turn) for turn in found] == [
        ("hall", "planning", 1, "acceptance_projection"),
        ("you", "planning", 1, "phase_transition_approved"),
    ]
    assert [(t.ended - t.since).total_seconds() for t in found if t.ended and t.since] == [1200] * 2


def test_a_report_tells_when_the_initiative_entered_each_phase(tmp_path: Path) -> None:
    root, acp = multi.begin(tmp_path / "house"), Acp(tmp_path)
    multi.all_ask(root)
    assert not approve_barrier(root, now=now()).failed
    approved = datetime.fromisoformat(multi.state(root)["barriers"]["plan-sync"]["approved_at"])
    phases = {phase.id: phase.visits for phase in opened(root).refresh(now()).phases}
    (planning,), (implementation,) = phases["planning"], phases["implementation"]
    assert planning.entered is not None and planning.left == implementation.entered == approved
    assert phases["verification"] == ()
    report = acp("report", str(root)).stdout
    assert "| planning |" in report and "| implementation |" in report
    assert "review" not in report


def test_the_existing_program_s_phases_and_gates_are_counted_once(tmp_path: Path) -> None:
    phases = ("planning", "implementation", "verification")
    root = making.make_existing(
        tmp_path, "all_repos_accepted", web=making.state(), auth=making.state()
    )
    home = root / ".agentxchain/multirepo"
    for name in ("web", "auth"):
        making.write_lines(
            root / f"repos/{name}/.agentxchain/history.jsonl",
            *(making.accepted(turn_id=f"turn_{name}_{phase}", phase=phase) for phase in phases),
        )
    told = {"super_run_id": "srun_1"}
    lines = [{"type": "acceptance_projection", "repo_id": name, "repo_turn_id": f"turn_{name}_{phase}"}
             for name in ("web", "auth") for phase in phases]  # fmt: skip
    lines += [
        {"type": "phase_transition_approved", "from": a, "to": b} for a, b in pairwise(phases)
    ]
    lines += [{"type": "run_completed", "gate": "initiative_ship"}]
    stamped = [
        line | told | {"timestamp": f"2026-03-01T10:0{n}:00Z"} for n, line in enumerate(lines)
    ]
    making.write_lines(home / "history.jsonl", *stamped)
    counts = opened(root).story().counts
    assert sum(each.value or 0 for each in counts if each.what == "accepted turns") == 6
    assert [each.value for each in counts if each.what == "gates approved"] == [3]
    shown = {phase.id: phase.visits for phase in opened(root).refresh(now()).phases}
    assert [visit.entered for visit in shown["verification"]] == [
        datetime(2026, 3, 1, 10, 7, tzinfo=UTC)
    ]
