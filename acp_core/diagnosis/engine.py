"""From a Snapshot and the loops of its participants to the Snapshot that says why it is stuck.

Everybody who reads it, the sentence on top, the fleet's order and number, the commands, reads
the same causes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from acp_core.diagnosis import turns
from acp_core.diagnosis.processes import busy
from acp_core.history import charged
from acp_core.loops.acts.names import NAMES
from acp_core.model import Cause, Need, Runner, Snapshot
from acp_core.model.sentence import continued, is_said, names_in
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit import guard
from acp_core.protocols.kit.diagnosis import Case, Clock, Patience, Stranger

if TYPE_CHECKING:
    from acp_core.agents.live.answers import OpenRequest
    from acp_core.agents.state import RunnerState

_log = logging.getLogger(__name__)
_CODE = re.compile(r"([A-Z]+)(\d*)")


def diagnose(collaboration: Collaboration, case: Case) -> tuple[Cause, ...]:
    """Every cause, the one that counts most first.

    What wants a human goes before what may pass by itself, and of that the damage over which acp
    writes nothing before everything else: no other remedy gets anybody on. Then the order of the
    codes holds: a broken log blocks everybody, so it is named before a program that ended. The reason of what
    else is said of a participant goes before that. A fault in a protocol's causes is logged, and
    hides nothing else.
    """
    found = list(turns.causes(case))
    case = replace(case, found=tuple(found))
    if case.loops and not case.has_turns:
        from acp_core.diagnosis import spending

        found += spending.of_assignments(case)
    if case.permissions:  # no fault: who asks is at work
        from acp_core.diagnosis import permissions

        found += permissions.causes(case.permissions)
    try:
        found += collaboration.causes(case)
    except Exception:  # somebody else's code, or ours: the rest is still worth saying
        _log.info("the causes of %s failed", collaboration.key, exc_info=True)
    found += _of_obstacles(case.snapshot, found)
    damage = {each.key for each in case.snapshot.obstacles}
    return tuple(_in_order([_within(case.snapshot, cause) for cause in found], damage))


def _within(snapshot: Snapshot, cause: Cause) -> Cause:
    """The cause without the acts that an obstacle refuses: nobody is sent to do them."""
    obstacles = snapshot.obstacles
    names = [name for name in (cause.remedy, *cause.others) if name]
    refused = {name for name in names if guard.blocking(obstacles, name)} - NAMES
    if not refused:
        return cause
    others = tuple(name for name in cause.others if name not in refused)
    if cause.remedy not in refused:
        return replace(cause, others=others)
    if cause.advice:
        first, then = (_continued(each, snapshot) for each in (obstacles[0].cure, cause.advice))
        advice = f"first {first}; then {then}"
    else:
        advice = ""
    return replace(cause, remedy=None, given=(), others=others, advice=advice)


def _of_obstacles(snapshot: Snapshot, found: Iterable[Cause]) -> list[Cause]:
    """A cause for each obstacle that no other cause tells in more detail."""
    known = {cause.key for cause in found}
    made = map(guard.cause, snapshot.obstacles)
    return [cause for cause in made if cause.key not in known]


def _in_order(causes: Sequence[Cause], damage: Set[str]) -> list[Cause]:
    def place(cause: Cause) -> tuple[bool, bool, tuple[str, int]]:
        return (not cause.wanted, cause.key not in damage, _rank(cause))

    def place_of_reason(cause: Cause) -> tuple[bool, bool, tuple[str, int], bool]:
        if not cause.root:
            return (*place(cause), True)
        follow = (
            place(each)
            for each in causes
            if cause.participant in (None, each.participant) and not each.code.startswith("A")
        )
        return (*min(follow, default=place(cause)), False)

    return sorted(causes, key=place_of_reason)


def _rank(cause: Cause) -> tuple[str, int]:
    match = _CODE.fullmatch(cause.code)
    return (match[1], int(match[2] or 0)) if match else (cause.code, 0)


def with_causes(
    snapshot: Snapshot, causes: tuple[Cause, ...], recheck: datetime | None
) -> Snapshot:
    """The Snapshot with its causes, and with the needs and the headline that follow from them."""
    times = [at for at in (snapshot.recheck_at, recheck) if at is not None]
    soonest = min(times, default=None)
    if not causes:
        return snapshot if soonest == snapshot.recheck_at else replace(snapshot, recheck_at=soonest)
    return replace(
        snapshot,
        causes=causes,
        needs=_needs(snapshot, causes),
        headline=_headline(snapshot, causes[0]),
        summary=snapshot.summary or snapshot.headline,
        recheck_at=soonest,
    )


def _needs(snapshot: Snapshot, causes: Iterable[Cause]) -> tuple[Need, ...]:
    """Causes that want a human, and what the protocol itself wants one for; each thing once."""
    wanted = {
        cause.key: Need(
            key=cause.key,
            code=cause.code,
            text=cause.headline,
            participant=cause.participant,
            since=cause.since,
            action=cause.remedy,
            given=cause.given,
        )
        for cause in causes
        if cause.wanted
    }
    explained = {key for cause in causes for key in cause.explains} | wanted.keys()
    return (*wanted.values(), *(need for need in snapshot.needs if need.key not in explained))


def _headline(snapshot: Snapshot, cause: Cause) -> str:
    """How it stands, why it does not go on, and what to do."""
    said = snapshot.headline
    if not is_said(cause.headline, said):
        why = _continued(cause.headline, snapshot)
        said = f"{said.removesuffix('.')} — {why}" if said else why
    parts = [_sentence(said)]
    if cause.advice and cause.wanted:
        parts.append(f"What to do: {_continued(cause.advice, snapshot)}.")
    return " ".join(parts)


def _continued(text: str, snapshot: Snapshot) -> str:
    return continued(text, names_in(snapshot))


def _sentence(text: str) -> str:
    return text + ("" if not text or text.endswith((".", "!", "?")) else ".")


def _sharing(old: Snapshot | None, new: Snapshot) -> Snapshot:
    """``new`` with the causes and needs of ``old`` where they are equal, or all of ``old``."""
    if old is None or new == old:
        return old or new
    causes = old.causes if new.causes == old.causes else new.causes
    needs = old.needs if new.needs == old.needs else new.needs
    if causes is new.causes and needs is new.needs:
        return new
    return replace(new, causes=causes, needs=needs)


class Diagnosis:
    """The diagnosis of one collaboration, look after look; one thread at a time.

    Args:
        patience: How long things may last.
    """

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._for: tuple[Snapshot, tuple[object, ...]] | None = None
        self._recheck: datetime | None = None
        self._result: Snapshot | None = None

    def diagnose(
        self,
        collaboration: Collaboration,
        snapshot: Snapshot,
        loops: tuple[RunnerState, ...],
        strangers: tuple[Stranger, ...],
        now: datetime,
        runners: tuple[Runner, ...] = (),
        waiting: tuple[OpenRequest, ...] = (),
    ) -> Snapshot:
        """Find why a collaboration does not go on.

        Args:
            collaboration: as it was opened.
            snapshot: what was read of it.
            loops: those of its participants.
            strangers: processes that acp did not start, and that act for a participant.
            now: the time (aware, UTC).
            runners: who runs it now, of every account.
            waiting: requests for permission of its participants' programs.

        Returns:
            ``snapshot`` with its causes and runners; the very object of the last call where nothing changed.
        """
        seen = (loops, strangers, runners, waiting)
        last, due = self._for, self._recheck is not None and self._recheck <= now
        if (
            self._result is not None
            and last is not None
            and last[0] is snapshot
            and last[1] == seen
            and not due
        ):
            return self._result
        clock = Clock(now)
        case = Case(
            snapshot=snapshot,
            clock=clock,
            loops=loops,
            strangers=strangers,
            patience=self._patience,
            has_turns=collaboration.has_turns,
            durations=collaboration.durations,
            busy=busy,
            permissions=waiting,
        )
        causes = diagnose(collaboration, case)
        made = with_causes(snapshot, causes, clock.recheck)
        cost = charged.cost(loops, snapshot)
        if runners or cost:
            made = replace(made, runners=runners, cost=cost)
        made = _sharing(self._result, made)
        self._for, self._recheck, self._result = (snapshot, seen), clock.recheck, made
        return made
