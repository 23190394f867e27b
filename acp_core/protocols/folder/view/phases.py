"""The phase rail: where a collaboration stands, and how long it stayed where."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import overload

from acp_core.model import Phase, PhaseState, Visit
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.list_summary import PHASES, current_phase
from acp_core.protocols.folder.state import Machine

LABELS = {name: name for name in PHASES} | {
    "decision_review": "decision review",
    "readiness_check": "readiness",
}
_ORDER = PHASES


class Ended:
    """The stays in one phase that ended; only ever appended to.

    A `Visit` is made when it is looked at: 100,000 of them take longer than the log does.

    Attributes:
        seconds: how long they lasted together; None where of none that is known.
    """

    __slots__ = ("entered", "left", "made", "rounds", "seconds")

    def __init__(self) -> None:
        self.entered: list[datetime | None] = []
        self.left: list[datetime | None] = []
        self.rounds: list[int] = []
        self.made: dict[int, Visit] = {}
        self.seconds: float | None = None

    def visit(self, index: int) -> Visit:
        """The stay at an index; the same object every time."""
        made = self.made.get(index)
        if made is None:
            made = Visit(self.entered[index], self.left[index], self.rounds[index])
            made = self.made.setdefault(index, made)
        return made


class Stays(Sequence[Visit]):
    """The stays in one phase, in order.

    Several of them share what ended, of which each shows the first ``count``: a copy for each
    Snapshot of a long log would be 100,000 entries at every event.

    Args:
        ended: the stays that ended.
        lasting: the one that lasts, after them.
    """

    __slots__ = ("_count", "_ended", "_lasting")

    def __init__(self, ended: Ended, lasting: Visit | None) -> None:
        self._ended = ended
        self._count = len(ended.rounds)
        self._lasting = lasting

    def __len__(self) -> int:
        return self._count + (self._lasting is not None)

    @overload
    def __getitem__(self, index: int) -> Visit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Visit]: ...
    def __getitem__(self, index: int | slice) -> Visit | Sequence[Visit]:
        if isinstance(index, slice):
            return tuple(self._visit(i) for i in range(*index.indices(len(self))))
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self._visit(index % len(self))

    def _visit(self, index: int) -> Visit:
        if index == self._count and self._lasting is not None:
            return self._lasting
        return self._ended.visit(index)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stays):
            return NotImplemented
        if len(self) != len(other) or self._lasting != other._lasting:
            return False
        return self._ended is other._ended or tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash((len(self), self._lasting))


class Rail:
    """Makes the phases of a Snapshot; each time only what is new in the log is looked at."""

    def __init__(self) -> None:
        self._machine: Machine | None = None
        self._begin()

    def _begin(self) -> None:
        self._taken = 0
        self._ended = {name: Ended() for name in _ORDER}
        self._phases: dict[str, Phase] = {}
        self._last: tuple[str, Visit] | None = None  # the phase that lasts, and its visit
        self._at: tuple[str, datetime | None] = ("", None)  # a time as written, and what it is

    def phases(self, machine: Machine) -> tuple[Phase, ...]:
        """The phases in their order, with every stay in each."""
        if machine is not self._machine:
            self._machine = machine
            self._begin()
        touched = self._take_new(machine)
        current = current_phase(machine)
        position = _ORDER.index(current) if current else -1
        made = []
        for index, name in enumerate(_ORDER):
            stays = Stays(self._ended[name], self._lasting(name))
            if name == current:
                state = PhaseState.CURRENT
            elif index > position:
                state = PhaseState.AHEAD
            else:
                state = PhaseState.DONE if stays else PhaseState.SKIPPED
            known = self._phases.get(name)
            if known is None or known.state is not state or name in touched:
                spent = self._ended[name].seconds
                self._phases[name] = Phase(name, LABELS[name], state, stays, spent)
            made.append(self._phases[name])
        return tuple(made)

    def _lasting(self, name: str) -> Visit | None:
        return self._last[1] if self._last is not None and self._last[0] == name else None

    def _take_new(self, machine: Machine) -> set[str]:
        """Take the stays that began since the last time; returns the phases concerned."""
        starts, every = machine.starts, self._ended
        if self._taken == len(starts):
            return set()
        counts = {name: len(ended.rounds) for name, ended in every.items()}
        touched = {self._last[0]} if self._last is not None else set()
        name, entered, rounds = "", None, 0
        if self._last is not None:
            name, entered, rounds = self._last[0], self._last[1].entered, self._last[1].round
        written, moment = self._at
        for phase, number, _, at in starts[self._taken :]:
            if at != written:
                written, moment = at, schema.parse_time(at)
            ended = every.get(name)
            if ended is not None:
                ended.entered.append(entered)
                ended.left.append(moment)
                ended.rounds.append(rounds)
                if entered is not None and moment is not None:
                    seconds = 0.0 if moment is entered else (moment - entered).total_seconds()
                    ended.seconds = (ended.seconds or 0.0) + max(0.0, seconds)
            name, entered, rounds = phase, moment, number
        self._last = (name, Visit(entered, None, rounds)) if name in every else None
        self._taken, self._at = len(starts), (written, moment)
        touched.update(each for each, count in counts.items() if len(every[each].rounds) != count)
        return touched | {name}
