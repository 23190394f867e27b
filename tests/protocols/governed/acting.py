"""What a human does in runs and initiatives, as commands and as what can be done now; what is seen then.

Tests of governed runs reach the product through this, and through what is a contract.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from acp_core.model import Snapshot
from acp_core.model.action import Action
from acp_core.model.clock import utc_now
from acp_core.protocols.governed import collaboration
from acp_core.protocols.governed.acts import common
from acp_core.protocols.governed.acts.table import COMMANDS, COORDINATOR
from acp_core.protocols.governed.collaboration import Governed as Governed
from acp_core.protocols.governed.write import decide, initiative_decide, turns
from acp_core.protocols.governed.write.decide import Recovery
from acp_core.protocols.governed.write.initiative_decide import StepOutcome
from acp_core.protocols.governed.write.turns import Accepted, Dispatched
from tests.protocols.governed.making import Object

governed = COMMANDS.main
coordinator = COORDINATOR.main
NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
"""When something is done, where nothing else is said."""
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


def run_actions(root: Path | str) -> Sequence[Action]:
    """What can be done in the run now."""
    return common.run_actions(str(root), utc_now())


def initiative_actions(root: Path | str) -> Sequence[Action]:
    """What can be done in the initiative now."""
    return common.initiative_actions(str(root), utc_now())


def dispatch(root: Path, role: str | None = None, now: datetime = NOW) -> Dispatched:
    """Give out the next turn."""
    return turns.dispatch(root, role, now)


def accept(
    root: Path, turn: str | None = None, now: datetime = NOW, excluded: Iterable[str] = ()
) -> Accepted:
    """Accept the staged result."""
    return turns.accept(root, turn, now, excluded)


def correct(root: Path, turn: str | None) -> tuple[str, ...]:
    """Make the corrections that are offered."""
    return turns.correct(root, turn)


def approve_gate(
    root: Path, kind: str = "", by: str = "Ann", comment: str = "", now: datetime = NOW
) -> Object:
    """Open the gate that waits."""
    return decide.approve(root, kind, by, comment, now)


def reject_gate(root: Path, comment: str, by: str = "Ann", now: datetime = NOW) -> Object:
    """Keep it shut."""
    return decide.reject_gate(root, by, comment, now)


def reject_turn(
    root: Path, reason: str, turn: str | None = None, by: str = "Ann", now: datetime = NOW
) -> object:
    """Send a turn back."""
    return decide.reject_turn(root, turn, by, reason, now)


def escalate(
    root: Path, reason: str, detail: str = "", by: str = "Ann", now: datetime = NOW
) -> Object:
    """Stop the run."""
    return decide.escalate(root, reason, detail, by, now)


def unblock(root: Path, by: str = "Ann", comment: str = "", now: datetime = NOW) -> Object:
    """Let it go on."""
    return decide.unblock(root, by, comment, now)


def mark_objection(
    root: Path, id: str, status: str, by: str = "Ann", comment: str = "", now: datetime = NOW
) -> object:
    """Say what became of an objection."""
    return decide.mark_objection(root, id, status, by, comment, now)


def talk(root: Path, words: str, by: str = "Ann", now: datetime = NOW) -> None:
    """Say something to all."""
    decide.talk(root, words, by, now)


def bring_back(root: Path, now: datetime = NOW) -> None:
    """Bring back what acp wrote last."""
    decide.bring_back(root, now)


def recover(root: Path, now: datetime = NOW) -> Recovery:
    """Finish what was interrupted, or make a lost state again."""
    return decide.recover(root, now)


def take_files(root: Path) -> object:
    """Take the files as they are."""
    return decide.take_files(root)


def step(root: Path, now: datetime = NOW) -> StepOutcome:
    """Let an initiative take its next step."""
    return initiative_decide.step(root, now)


def synchronise(root: Path, now: datetime = NOW) -> StepOutcome:
    """Bring the workstreams of an initiative to where it is."""
    return initiative_decide.synchronise(root, now)
