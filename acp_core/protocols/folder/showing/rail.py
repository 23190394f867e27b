"""The phase rail: where a collaboration stands, and how long it stayed where."""

from __future__ import annotations

from datetime import datetime

from acp_core.model import Phase, PhaseState, Visit
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.state import Machine

LABELS = {
    "drafting": "drafting",
    "reviewing": "reviewing",
    "revising": "revising",
    "decision_review": "decision review",
    "readiness_check": "readiness",
    "completed": "completed",
}
_ORDER = tuple(LABELS)


class Rail:
    """Makes the phases of a Snapshot; each time only what is new in the log is looked at."""

    def __init__(self) -> None:
        self._machine: Machine | None = None
        self._taken = 0
        self._visits: dict[str, list[Visit]] = {}
        self._phases: dict[str, Phase] = {}

    def phases(self, machine: Machine) -> tuple[Phase, ...]:
        """The phases in their order, with every stay in each."""
        if machine is not self._machine:
            self._machine, self._taken = machine, 0
            self._visits = {name: [] for name in _ORDER}
            self._phases = {}
        touched = self._take_new(machine)
        current = current_phase(machine)
        position = _ORDER.index(current) if current else -1
        made = []
        for index, name in enumerate(_ORDER):
            visits = self._visits[name]
            if name == current:
                state = PhaseState.CURRENT
            elif index > position:
                state = PhaseState.AHEAD
            else:
                state = PhaseState.DONE if visits else PhaseState.SKIPPED
            known = self._phases.get(name)
            if known is None or known.state is not state or name in touched:
                self._phases[name] = Phase(name, LABELS[name], state, tuple(visits))
            made.append(self._phases[name])
        return tuple(made)

    def _take_new(self, machine: Machine) -> set[str]:
        """Take the stays that began since the last time; returns the phases concerned."""
        touched: set[str] = set()
        starts = machine.starts
        for index in range(self._taken, len(starts)):
            phase, number, _, at = starts[index]
            moment = schema.parse_time(at)
            if index:
                before = starts[index - 1][0]
                self._leave(before, moment)
                touched.add(before)
            if phase in self._visits:
                self._visits[phase].append(Visit(moment, None, number))
                touched.add(phase)
        self._taken = len(starts)
        return touched

    def _leave(self, phase: str, moment: datetime | None) -> None:
        visits = self._visits.get(phase)
        if visits:
            last = visits[-1]
            visits[-1] = Visit(last.entered, moment, last.round)


def current_phase(machine: Machine) -> str:
    """The phase in which the collaboration stands; of a blocked one, that in which it stopped."""
    if machine.phase in LABELS:
        return machine.phase
    return next((start[0] for start in reversed(machine.starts) if start[0] in LABELS), "")


def progress(machine: Machine) -> float | None:
    """How far it is, from 0 to 1: phases passed, and within one the answers that came in."""
    phase = current_phase(machine)
    if not phase:
        return None
    people = len(machine.participants)
    within = 0.0
    if phase == "reviewing" and machine.phase == phase and people > 1:
        within = 1 - len(machine.waiting) / (people - 1)
    elif phase == "decision_review" and machine.classified and people:
        within = (1 + len(machine.accepted)) / (people + 2)
    elif phase == "readiness_check" and machine.passed:
        within = 0.5
    share = (_ORDER.index(phase) + max(0.0, min(within, 0.95))) / (len(_ORDER) - 1)
    return min(1.0, share)
