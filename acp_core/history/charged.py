"""What is charged to a collaboration of all that was noted at its place.

A run that was deleted, or stands beside this one, had figures of its own at the same place. Figures
that bear no run count as long as nothing speaks against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from acp_core.model import Cost, OutcomeState, Snapshot

if TYPE_CHECKING:
    from acp_core.agents.state import Figures, RunnerState
    from acp_core.history.schema import Seen
    from acp_core.person.journal import Act


def figures(loops: Iterable[RunnerState], snapshot: Snapshot) -> list[Figures]:
    """The figures of the loops that belong to this very run.

    Args:
        loops: of the place.
        snapshot: the collaboration as it is read now.
    """
    return [each for loop in loops for each in _of(loop, snapshot)]


def unpriced(loops: Sequence[RunnerState], snapshot: Snapshot) -> tuple[str, ...]:
    """Who took part at a cost that is not known: their programs did not tell it, or run elsewhere.

    Args:
        loops: of the place.
        snapshot: the collaboration as it is read now.
    """
    told = {loop.participant: [each.is_partial for each in _of(loop, snapshot)] for loop in loops}
    return tuple(
        person.id
        for person in snapshot.participants
        if person.kind != "human" and any(told.get(person.id, [person.last_event is not None]))
    )


def cost(loops: Sequence[RunnerState], snapshot: Snapshot) -> Cost | None:
    """What the loops' programs cost so far in this very run; None where none took anything yet.

    Args:
        loops: of the place.
        snapshot: the collaboration as it is read now.
    """
    found = figures(loops, snapshot)
    if not any(each.turns or each.tokens_in or each.tokens_out or each.cost for each in found):
        return None
    known = [each.cost for each in found if each.cost is not None]
    return Cost(sum(known) if known else None, unpriced(loops, snapshot))


def _of(loop: RunnerState, snapshot: Snapshot) -> list[Figures]:
    """The figures of one loop that belong to this very run."""
    noted = (*loop.shown.earlier, loop.shown.figures)
    return [each for each in noted if _belongs(each, snapshot)]


def acts(noted: Sequence[Act], snapshot: Snapshot) -> list[Act]:
    """A person's acts that can have been in this very run; what was refused was none."""
    done = (each for each in noted if each.state != OutcomeState.REFUSED.value)
    return [each for each in done if is_of_run(each.at, snapshot)]


def observations(seen: Sequence[Seen], snapshot: Snapshot) -> list[Seen]:
    """What a recording saw of this very run."""
    return [each for each in seen if is_of_run(datetime.fromtimestamp(each.at, UTC), snapshot)]


def is_of_run(at: datetime, snapshot: Snapshot) -> bool:
    """Whether what was noted at the place at this time can belong to this very run."""
    return not snapshot.run_id or snapshot.started is None or at >= snapshot.started


def _belongs(noted: Figures, snapshot: Snapshot) -> bool:
    if noted.run_id and snapshot.run_id:
        return noted.run_id == snapshot.run_id
    if noted.run_id == snapshot.run_id or noted.until is None or snapshot.started is None:
        return True
    return noted.until >= snapshot.started
