"""Every way in which a run or an initiative is known to get stuck is named, and only then."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.protocols.governed import making
from tests.protocols.governed.acting import open_folder
from tests.protocols.governed.making import Object
from tests.protocols.governed.test_read import NOW

Make = Callable[[Path], object]


def turns(**more: Any) -> Object:
    return making.under_way(**more)


def blocked(on: str, category: str, **more: Any) -> Object:
    recovery = {"typed_reason": category, "owner": "human", "detail": on, "recovery_action": "Do."}
    reason = {"category": category, "recovery": recovery, "blocked_at": making.AT}
    return making.state(status="blocked", blocked_on=on, blocked_reason=reason, **more)


def run(of_state: Object, *, bundle: bool = True, staged: bool = False) -> Make:
    def make(root: Path) -> None:
        making.make_run(root, of_state=of_state)
        place = root / ".agentxchain/dispatch/turns" / making.TURN
        if not bundle and place.exists():
            (place / "ASSIGNMENT.json").unlink()
            place.rmdir()
        if staged:
            path = root / f".agentxchain/staging/{making.TURN}/turn-result.json"
            making.write(path, making.result())

    return make


def events(*kinds: str) -> Make:
    def make(root: Path) -> None:
        making.make_run(root, history=(making.accepted(),))
        lines = [{"event_type": kind, "timestamp": making.AT, "payload": {}} for kind in kinds]
        making.write_lines(root / ".agentxchain/events.jsonl", *lines)

    return make


def barriers(kind: str, *, reached: tuple[str, ...] = (), of: Object | None = None,
             status: str = "", worked: bool = False, **streams: Any) -> Make:  # fmt: skip
    """An initiative of the existing program."""

    def make(root: Path) -> None:
        making.make_existing(root, kind, **streams)
        home = root / ".agentxchain/multirepo"
        kept = json.loads((home / "barriers.json").read_text())
        kept["plan_completion"] |= {"satisfied_repos": list(reached)}
        if status:
            kept["plan_completion"]["status"] = status
        making.write(home / "barriers.json", kept)
        if of is not None:
            told = json.loads((home / "state.json").read_text())
            making.write(home / "state.json", told | of)
        if worked:
            for name in streams:
                path = root / "repos" / name / ".agentxchain/history.jsonl"
                making.write_lines(path, making.accepted())

    return make


def corrupt(text: str) -> Make:
    def make(root: Path) -> None:
        barriers("all_repos_accepted", web=turns())(root)
        (root / "repos/web/.agentxchain/state.json").write_text(text)

    return make


def context(text: str) -> Make:
    def make(root: Path) -> None:
        barriers("all_repos_accepted", web=turns())(root)
        place = root / ".agentxchain/multirepo/context/ctx_1"
        place.mkdir(parents=True)
        (place / "COORDINATOR_CONTEXT.md").write_text(f"Decisions: {text}\n")

    return make


NEEDS_HUMAN = blocked("human:which lamp?", "needs_human")
GHOST = blocked(
    "turn:failed_start:x",
    "ghost_turn",
    active_turns={making.TURN: making.turn(status="failed_start")},
)
PAUSED = making.state(
    status="paused", blocked_on="human_approval:g",
    pending_run_completion={"gate": "g", "requested_by_turn": making.TURN},
)  # fmt: skip


class Story(NamedTuple):
    """One stuck state: ``stuck`` fires ``code``, ``sound`` does not."""

    code: str
    stuck: Make
    sound: Make
    remedy: str | None = None


STORIES = {
    "a shared human gate that nothing asks for": Story(
        "BARRIER_NO_GATE",
        barriers("shared_human_gate", web=making.state(), api=making.state()),
        barriers("shared_human_gate", web=turns(), api=making.state()),
    ),
    "a workstream whose state is corrupt": Story("CHILD_STATE", corrupt("{"), corrupt(
        json.dumps(turns()))),
    "a barrier that counts a blocked workstream as done": Story(
        "BARRIER_FALSE",
        barriers("all_repos_accepted", reached=("web",), web=NEEDS_HUMAN, api=turns()),
        barriers("all_repos_accepted", reached=("web",), web=making.state(), api=turns()),
    ),
    "a barrier half satisfied with no work left": Story(
        "BARRIER_STUCK",
        barriers("ordered_repo_sequence", status="partially_satisfied", worked=True,
                 web=making.state(), api=making.state()),
        barriers("ordered_repo_sequence", status="partially_satisfied",
                 web=making.state(), api=making.state()),
    ),
    "a turn that was assigned and never dispatched": Story(
        "TURN_NO_BUNDLE",
        run(turns(status="assigned"), bundle=False),
        run(turns(status="assigned")),
        "step",
    ),
    "a run blocked by a turn that nobody took": Story(
        "RUN_BLOCKED", run(GHOST, staged=True), run(turns(), staged=True), "unblock",
    ),
    "a request that was dropped silently": Story(
        "REQUEST_DROPPED",
        events("turn_dispatched", "gate_transition_request_auto_stripped", "turn_accepted"),
        events("gate_transition_request_auto_stripped", "turn_accepted", "turn_dispatched"),
        "step",
    ),
    "an initiative that is completed before its runs": Story(
        "COMPLETED_EARLY",
        barriers("all_repos_accepted", of={"status": "completed"}, web=PAUSED),
        barriers("all_repos_accepted", of={"status": "completed"},
                 web=making.state(status="completed")),
    ),
    "a gate that is asked for and not met": Story(
        "GATE_FAILED",
        run(making.state(last_gate_failure={"phase": "planning", "gate_id": "g", "reasons": ["x"]})),
        run(making.state(last_gate_failure=None)),
        "step",
    ),
    "a turn in conflict": Story(
        "TURN_CONFLICTED", run(turns(status="conflicted")), run(turns()), "reject_turn",
    ),
    "a result that was not accepted": Story(
        "TURN_FAILED", run(turns(status="failed_acceptance")), run(turns()), "step",
    ),
    "a turn that was rejected and not given out again": Story(
        "TURN_RETRY", run(turns(status="retrying")), run(turns(status="dispatched")), "step",
    ),
    "a turn whose program stalled": Story(
        "TURN_GHOST", run(turns(status="stalled")), run(turns(status="dispatched")),
    ),
    "a turn whose last attempt failed, in a run that is active": Story(
        "TURN_HELD", run(turns(status="failed")), run(turns(status="running")), "reject_turn",
    ),
    "a turn of a status that nobody knows": Story(
        "TURN_HELD", run(turns(status="thinking")), run(turns(status="reissued")), "reject_turn",
    ),
    "a turn that says nothing, without a deadline": Story(
        "TURN_QUIET",
        run(turns(status="running")),
        run(turns(status="running", deadline_at="2026-03-01T11:30:00Z")),
        "reject_turn",
    ),
    "a turn that has only just been given out": Story(
        "TURN_QUIET",
        run(turns(status="running")),
        run(turns(status="running", assigned_at="2026-03-01T10:50:00Z")),
    ),
    "a turn that is overdue": Story(
        "TURN_OVERDUE",
        run(turns(deadline_at="2026-03-01T10:30:00Z")),
        run(turns(deadline_at="2026-03-01T11:30:00Z")),
        "reject_turn",
    ),
}  # fmt: skip


def found(root: Path) -> dict[str, str | None]:
    """The causes' remedies, by the codes of what they are about."""
    opened = open_folder(root)
    snapshot = opened.refresh(NOW)
    causes = opened.causes(DiagnosisContext(snapshot, Clock(NOW)))
    return {cause.key.split(":")[1]: cause.remedy for cause in causes}


@pytest.mark.parametrize("name", list(STORIES))
def test_what_keeps_it_from_going_on_is_named_and_only_then(name: str, tmp_path: Path) -> None:
    story = STORIES[name]
    story.stuck(tmp_path / "stuck")
    story.sound(tmp_path / "sound")
    stuck = found(tmp_path / "stuck")
    assert story.code in stuck
    if story.remedy:
        assert stuck[story.code] == story.remedy
    assert story.code not in found(tmp_path / "sound")
