"""What a human does in runs and initiatives, as commands and as what can be done now; what is seen then.

Tests of governed runs reach the product through this, and through what is a contract.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.model import Snapshot
from acp_core.model.action import Action
from acp_core.model.clock import utc_now
from acp_core.protocols.governed import collaboration, schema
from acp_core.protocols.governed.acts import common
from acp_core.protocols.governed.acts.table import COMMANDS, COORDINATOR
from acp_core.protocols.governed.collaboration import Governed as Governed
from acp_core.protocols.governed.write import decide, init, initiative_decide, restore, turns
from acp_core.protocols.governed.write.decide import Recovery
from acp_core.protocols.governed.write.hooks import carry_out
from acp_core.protocols.governed.write.init import Started
from acp_core.protocols.governed.write.initiative_decide import (
    Decision,
    StepOutcome,
    carry_out_in_initiative,
)
from acp_core.protocols.governed.write.opened import Opened, RunPlan
from acp_core.protocols.governed.write.turns import Dispatched
from tests.protocols.governed import making, playing
from tests.protocols.governed.making import Object

governed = COMMANDS.main
coordinator = COORDINATOR.main
NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
"""When something is done, where nothing else is said."""
YES = ("--as", "olga", "--yes")
SEEN = datetime(2026, 3, 1, 11, tzinfo=UTC)
"""When it is looked at: an hour after the runs that are made by hand began."""


def _run(words: Sequence[str | Path]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    main = governed
    if words[0] == "coordinator":
        main, words = coordinator, words[1:]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    return code, out.getvalue(), err.getvalue()


def acted(*words: str | Path) -> str:
    """``acp governed ...`` that is done; what it printed."""
    code, out, err = _run(words)
    assert code == 0, (words, out, err)
    return out


def refused(*words: str | Path) -> str:
    """``acp governed ...`` that is refused; the reason."""
    code, out, err = _run(words)
    assert code == 2, (words, out, err)
    return err


def open_folder(root: Path | str) -> Governed:
    """The run or initiative in a folder."""
    return collaboration.open_folder(str(root))


def seen(root: Path | str, now: datetime = SEEN) -> Snapshot:
    """What is seen of it when it is opened."""
    return open_folder(root).refresh(now)


def state(root: Path) -> Object:
    """What the state of a run holds."""
    read: Object = json.loads((root / ".agentxchain/state.json").read_text())
    return read


def turn_of(root: Path) -> Object:
    """The one turn that is under way."""
    (turn,) = state(root)["active_turns"].values()
    return dict(turn)


def hand_in(root: Path, **more: object) -> None:
    """Whoever has the turn stages a result."""
    turn = turn_of(root)
    given = making.result(
        run_id=turn["run_id"], turn_id=turn["turn_id"], role=turn["assigned_role"],
        runtime_id=turn["runtime_id"], **{"phase_transition_request": None} | more,
    )  # fmt: skip
    making.write(root / f".agentxchain/staging/{turn['turn_id']}/turn-result.json", given)


def told(root: Path, name: str) -> list[Object]:
    """The lines of a log of the run."""
    text = (root / ".agentxchain" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def start(root: Path, **behaviours: str) -> Path:
    """A repository with a run that has scripted agents beside it."""
    playing.repository(root)
    words = ["init", str(root), "--goal", "Light the hall"]
    for role, command in playing.agents(root.parent / "bin", **behaviours).items():
        words += ["--agent", f"{role}={command}"]
    acted(*words)
    return root


def run_actions(root: Path | str) -> Sequence[Action]:
    """What can be done in the run now."""
    return common.run_actions(str(root), utc_now())


def initiative_actions(root: Path | str) -> Sequence[Action]:
    """What can be done in the initiative now."""
    return common.initiative_actions(str(root), utc_now())


def dispatch(root: Path, role: str | None = None, now: datetime = NOW) -> Dispatched:
    """Give out the next turn."""
    return turns.dispatch(root, role, now)


class Accepted(NamedTuple):
    """An accepted turn, and where the run is then."""

    turn_id: str
    role: str
    status: str
    phase: str
    warnings: tuple[str, ...]
    news: tuple[str, ...]


def accept(
    root: Path, turn: str | None = None, now: datetime = NOW, excluded: Iterable[str] = ()
) -> Accepted:
    """Accept the staged result."""
    made, news = turns.accept(root, turn, now, excluded)
    assert made.move is not None
    state, about = made.move.state, made.after
    id, role = str(about["turn_id"]), str(about["role"])
    return Accepted(id, role, str(state["status"]), str(state["phase"]), made.said, news)


def carried_out(root: Path, act: str, plan: Callable[[Opened], RunPlan]) -> Object:
    """What is planned, done under the lock; the state that it leads to."""
    made = carry_out(root, act, plan)
    return made.move.state if made.move else {}


def correct(root: Path, turn: str | None) -> object:
    """Make the corrections that are offered."""
    return carried_out(root, schema.CORRECT, lambda opened: turns.correcting(opened, turn))


def approve_gate(
    root: Path, kind: str = "", by: str = "Ann", comment: str = "", now: datetime = NOW
) -> Object:
    """Open the gate that waits."""
    return carried_out(
        root, schema.APPROVE_GATE, lambda opened: decide.approving(opened, kind, by, comment, now)
    )


def reject_gate(root: Path, comment: str, by: str = "Ann", now: datetime = NOW) -> Object:
    """Keep it shut."""
    return carried_out(
        root, schema.REJECT_GATE, lambda opened: decide.rejecting_gate(opened, by, comment, now)
    )


def reject_turn(
    root: Path, reason: str, turn: str | None = None, by: str = "Ann", now: datetime = NOW
) -> object:
    """Send a turn back."""
    return carried_out(
        root, schema.REJECT, lambda opened: decide.rejecting_turn(opened, turn, by, reason, now)
    )


def escalate(
    root: Path, reason: str, detail: str = "", by: str = "Ann", now: datetime = NOW
) -> Object:
    """Stop the run."""
    return carried_out(
        root, schema.ESCALATE, lambda opened: decide.escalating(opened, reason, detail, by, now)
    )


def unblock(root: Path, by: str = "Ann", comment: str = "", now: datetime = NOW) -> Object:
    """Let it go on."""
    return carried_out(
        root, schema.UNBLOCK, lambda opened: decide.unblocking(opened, by, comment, now)
    )


def mark_objection(
    root: Path, id: str, status: str, by: str = "Ann", comment: str = "", now: datetime = NOW
) -> object:
    """Say what became of an objection."""
    return carried_out(
        root, schema.OBJECTION,
        lambda opened: decide.marking(opened, id, status, by, comment, now),
    )  # fmt: skip


def talk(root: Path, words: str, by: str = "Ann", now: datetime = NOW) -> None:
    """Say something to all."""
    carried_out(root, schema.LEAVE_MESSAGE, lambda opened: decide.talking(opened, words, by, now))


def bring_back(root: Path, now: datetime = NOW) -> None:
    """Bring back what acp wrote last."""
    carried_out(root, schema.BRING_BACK, lambda opened: decide.bringing_back(opened, now))


def set_aside(root: Path, now: datetime = NOW) -> object:
    """Set aside what the existing program left half written; where it is kept."""
    plan = restore.setting_aside
    return carry_out(root, schema.SET_ASIDE, lambda opened: plan(opened, now)).after["set_aside"]


def migrate(root: Path, by: str, now: datetime = NOW) -> object:
    """Bring a run of an earlier version to this one; what that changed."""
    plan = init.migrating
    return carry_out(root, schema.MIGRATE, lambda opened: plan(opened, by, now)).after["steps"]


def recover(root: Path, now: datetime = NOW) -> Recovery:
    """Finish what was interrupted, or make a lost state again."""
    return decide.recover(root, now)


def take_files(root: Path) -> object:
    """Take the files as they are."""
    return decide.take_files(root)


def initialise(
    root: Path, name: str = "Lamp", goal: str = "Light", now: datetime = NOW, **more: Any
) -> Started:
    """Begin a run."""
    return init.initialise(root, init.Wish(name, goal, **more), now)


def step(root: Path, now: datetime = NOW) -> StepOutcome:
    """Let an initiative take its next step."""
    return initiative_decide.step(root, now)


def synchronise(root: Path, now: datetime = NOW) -> StepOutcome:
    """Bring the workstreams of an initiative to where it is."""
    plan = partial(initiative_decide.plan_resync, now=now)
    return carry_out_in_initiative(root, schema.RESYNC, plan, now, crosses=True)


def approve_barrier(
    root: Path, barrier: str = "", comment: str = "All agreed.", now: datetime = NOW
) -> StepOutcome:
    """Ann opens the gate of a barrier."""
    decision = Decision(barrier, "Ann", comment)
    plan = partial(initiative_decide.plan_approval, decision=decision, now=now)
    return carry_out_in_initiative(root, schema.APPROVE_BARRIER, plan, now, crosses=True)


def reject_barrier(
    root: Path,
    comment: str,
    names: Sequence[str] = (),
    barrier: str = "",
    now: datetime = NOW,
) -> StepOutcome:
    """Ann sends workstreams back, or all."""
    decision = Decision(barrier, "Ann", comment)
    plan = partial(initiative_decide.plan_rejection, decision=decision, workstreams=names, now=now)
    return carry_out_in_initiative(root, schema.REJECT_BARRIER, plan, now)


poll = initiative_decide.poll


def mend_workstream(root: Path, name: str) -> StepOutcome:
    """Bring a workstream back to where it may be."""
    plan = partial(initiative_decide.plan_mending, name=name, by="Ann", now=NOW)
    return carry_out_in_initiative(root, schema.MEND, plan, NOW)
