"""The state machine's usual steps, learned from it and taken again at the cost of a look-up.

A step depends on what decides legality and on who says what, not on the log's length. Each is
tried once on a machine beside the real one; only what is legal is learned. Standard library only.
"""

from __future__ import annotations

from acp_core.model.light import NamedTuple
from acp_core.protocols.folder.read.lines import author_and_event
from acp_core.protocols.folder.schema import Entry
from acp_core.protocols.folder.state import Core, Machine, Wait

_MOST = 4_096  # steps that are kept: more would be a log in which hardly one comes twice
_BEFORE = Wait(None, "before")


class Step(NamedTuple):
    """What an event does.

    Attributes:
        then: the place that it leads to.
        sender, event: who says what.
        enters: the phase that begins, "" for none.
        proposes: whether a round begins.
        reviews: whether it is a review.
        anew: whether those who are waited for are so from now on.
    """

    then: Place
    sender: str
    event: str
    enters: str
    proposes: bool
    reviews: bool
    anew: bool


class Place:
    """Where a log may stand, and the steps that are known to lead on.

    Attributes:
        core: what decides which events are legal.
        steps: sender and event as a line holds them -> the step; None where it is none to take.
        state: phase, owner and who is waited for.
    """

    __slots__ = ("core", "state", "steps")

    def __init__(self, core: Core) -> None:
        self.core = core
        self.steps: dict[bytes, Step | None] = {}
        self.state = (core.phase, core.owner, list(core.waiting))


class Course:
    """The places and steps of one collaboration.

    Args:
        machine: the state machine from whose rules they are learned.
        events: the events of which nothing beyond legality is to be said.
    """

    def __init__(self, machine: Machine, events: frozenset[str]) -> None:
        self._people, self._dialect = machine.participants, machine.dialect
        self._listed = frozenset(machine.participants)
        self._events = events
        self._places: dict[Core, Place] = {}
        self._learned = 0

    def place(self, machine: Machine) -> Place:
        """Where a machine stands."""
        return self._place(machine.core())

    def _place(self, core: Core) -> Place:
        place = self._places.get(core)
        if place is None:
            if len(self._places) >= _MOST:
                self._places.clear()
            place = self._places[core] = Place(core)
        return place

    def learn(self, place: Place, said: bytes) -> Step | None:
        """The step that an event is from a place; None where it must be looked at for itself."""
        if said in place.steps or self._learned >= _MOST:
            return place.steps.get(said)
        self._learned += 1
        sender, event = author_and_event(said)
        step = None
        if sender in self._listed and event in self._events:
            step = self._tried(place, sender, event)
        place.steps[said] = step
        return step

    def _tried(self, place: Place, sender: str, event: str) -> Step | None:
        core = place.core
        machine = Machine(self._people, self._dialect)
        machine.stand(core)
        machine.count = 2
        machine.waits = dict.fromkeys(core.waiting, _BEFORE)
        entry = Entry(3, 3, sender, event, "now", "-", None, 2, None, None, None)
        if machine.feed(entry):
            return None
        kept = [wait is _BEFORE for wait in machine.waits.values()]
        if any(kept) and not all(kept):
            return None
        return Step(
            then=self._place(machine.core()),
            sender=sender,
            event=event,
            enters=machine.phase if machine.phase != core.phase else "",
            proposes=machine.round > 0,
            reviews=bool(machine.reviews),
            anew=not all(kept) or not kept,
        )
