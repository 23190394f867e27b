"""What every protocol implements.

The way of data is one circle: a change source signals, `Collaboration.refresh` makes
a new Snapshot, panes redraw; an Action writes files, and the same circle shows it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from acp_core.model import Action, DocumentText, Matter, Outcome, Snapshot
from acp_core.model.past import PastLog, Story, TrackedFile, summed
from acp_core.model.turn import Brief, TurnState

if TYPE_CHECKING:
    from acp_core.agents.live.requests import OwnCommand
    from acp_core.model.card import Card
    from acp_core.protocols.kit.diagnosis import DiagnosisContext

T = TypeVar("T")


class Collaboration(ABC):
    """One thing being coordinated, opened for reading and for acting in it.

    An instance keeps what it has read, so that `refresh` costs only what changed. It is
    used from one thread at a time, not always the same.
    """

    protocol: str
    key: str  # an absolute path or a URL, as it is
    has_turns = False  # whether loops can take its participants' turns (see `turn`)
    has_fractions = False  # whether its files hold fractions of a second, so that .000 is one

    @abstractmethod
    def refresh(self, now: datetime) -> Snapshot:
        """Read what changed and return the Snapshot as of ``now`` (aware, UTC).

        Returns the very object of the last call when nothing changed. Never raises for what
        the files or the network hold: that becomes findings, or the Snapshot's source.
        """

    @abstractmethod
    def watched(self) -> frozenset[Path]:
        """The folders in which a change may matter, each watched by itself (not recursively)."""

    def follows_from_folder(self) -> bool:
        """Whether the last Snapshot, and its causes, follow from what lies in its folder alone.

        From no other folder, process, service or time, then; the person's settings, and whether
        the disk can be written, are others' to ask for. Such a Snapshot may be shown again in a
        later run as long as no file in or below the folder has changed.
        """
        return False

    def subscribe(self, changed: Callable[[], None]) -> None:  # noqa: B027 - most have none
        """Have ``changed`` called, from any thread, when `refresh` would tell something new.

        For what no watched folder tells. Called at most once, before the first `refresh`.
        """

    @abstractmethod
    def load(self, document: str) -> DocumentText:
        """The text of a document of the last Snapshot, safe to show.

        Raises:
            KeyError: the last Snapshot has no such document.
        """

    def tracked_files(self) -> tuple[TrackedFile, ...]:
        """The files of which a recording keeps every version, as of the last `refresh`.

        Returns:
            Those below its folder or beside it, never one that a symbolic link leads to.
        """
        return ()

    def is_edit(self, document: str, before: bytes, after: bytes) -> bool:
        """Whether a document's change is somebody's edit, and not what follows from an event.

        Args:
            document: its id.
            before, after: the whole content of its file.
        """
        return before != after

    def past_log(self) -> PastLog | None:
        """Its past as a log, where no tracked file holds it, as of the last `refresh`.

        Returns:
            The log, or None where `tracked_files` are enough to read the past from.
        """
        return None

    def raw_event(self, event: str) -> str:
        """The event of this id as the source holds it: one line, safe to show; "" where unknown."""
        return ""

    def actions(self, now: datetime) -> Sequence[Action]:
        """What a human can do now, most useful first. May load heavy modules."""
        return ()

    def action(self, name: str, now: datetime) -> Action | None:
        """One action by its name, new or old; None where there is none of that name.

        A protocol whose acts are described builds it without the others.

        Raises:
            Refused: there is one, and it cannot be done now; the message says why.
            OSError: what it is about cannot be read.
        """
        return next((each for each in self.actions(now) if each.called(name)), None)

    def cards(self, now: datetime) -> Sequence[Card]:
        """The matters that a human has to decide now, the most urgent first."""
        return ()

    def causes(self, case: DiagnosisContext) -> Sequence[Matter]:
        """Why it does not go on, as far as only the protocol can know; in any order.

        Participants' loops are looked at by others: what was found there is in ``case.found``.
        It tells of what the last `refresh` read, and never raises for that.
        """
        return ()

    def durations(self, participant: str) -> Sequence[float]:
        """How many seconds a participant's latest turns took, oldest first, as far as known.

        ``participant`` is an id as the Snapshot shows it.
        """
        return ()

    def story(self) -> Story:
        """Whose turn it was when, and what can be counted, as of the last `refresh`."""
        return Story()

    def totals(self) -> Mapping[str, int | None]:
        """What the counts of `story` come to in all, by what is counted; None: not known.

        Asked at many moments of the past: what costs much there is worth a way of its own.
        """
        return summed(self.story().counts)

    def turn(self, participant: str, now: datetime, brief: Brief | None = None) -> TurnState | None:
        """Where a participant stands, read now; cheaper than `refresh`, and never raises.

        Args:
            participant: an id as the files have it, which need not be safe to show.
            now: the time (aware, UTC).
            brief: how the turn will be taken, where that is known.

        Returns:
            None where this kind of collaboration has no turns that a loop could take.
        """
        return None

    def turn_signs(self) -> tuple[Path, ...]:
        """The files of which one changes whenever `turn` may tell something else.

        Empty where that cannot be said: then every change in the watched folders counts.
        """
        return ()

    def prompt(self, participant: str, brief: Brief) -> str:
        """What a program is told so that it takes the turn that `turn` told of last.

        Raises:
            NotImplementedError: this kind of collaboration has no turns that a loop could take.
        """
        raise NotImplementedError(f"{self.protocol} has no turns to take")

    def own_commands(self) -> Mapping[str, OwnCommand]:
        """The commands of acp by which a participant takes part, by name.

        A policy may let its program run them without asking a person; never a person's acts.
        """
        return {}

    def conclude(self, participant: str, brief: Brief, by: str, now: datetime) -> Outcome:
        """Record the turn of a program that changed documents but cannot record it itself.

        Says in the record that it was done for ``by``, the program's name. Never raises for what
        the files hold.

        Raises:
            NotImplementedError: this kind of collaboration has no turns that a loop could take.
        """
        raise NotImplementedError(f"{self.protocol} has no turns to take")

    def leave(self, participant: str) -> str:
        """Let others act for a participant whose loop has ended here, where that is for this host to do.

        Returns:
            "", or a sentence on why the others do not know it yet. Never raises for that.
        """
        return ""

    def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Let go of whatever is held."""


class Rows(NamedTuple):
    """What changed in a list of collaborations.

    Attributes:
        snapshots: those that appeared or changed, as the list tells of them.
        folders: those of them that a folder here holds: its path stands for them.
        gone: the keys of those that are no longer in the list, or in a folder by now.
        note: what a reader should know of the list; "" for nothing.
        more: there is more to be told at once: a long list comes in parts, what needs somebody first.
    """

    snapshots: Sequence[Snapshot]
    folders: Sequence[str] = ()
    gone: Sequence[str] = ()
    note: str = ""
    more: bool = False


class Listing(Protocol):
    """Many collaborations behind one link, each told of in a row. For one thread at a time."""

    def refresh(self, now: datetime) -> Rows:
        """Read what changed; at first everything.

        Raises:
            Refused: the list cannot be read; the message says why.
        """

    def wait(self, seconds: float) -> None:
        """Wait until there may be something new, at most so long.

        Raises:
            Refused: it cannot be known any more.
        """

    def close(self) -> None:
        """Let go of everything."""


class Watched(Protocol):
    """One collaboration, read whenever it changes: handed to who serves it to others.

    It comes from above (see `acp_core.protocols.registry.hand_in`): a protocol makes none.
    """

    @property
    def snapshot(self) -> Snapshot | None:
        """The latest Snapshot, with its causes; None before the first."""

    def changes(self) -> AsyncIterator[object]:
        """Read it and watch it, for ever; something comes whenever there is a new Snapshot."""

    async def call(self, work: Callable[[Collaboration], T]) -> T:
        """Run ``work`` with the collaboration in a worker thread, apart from its refreshes."""

    def actions(self, opened: Collaboration) -> Sequence[Action]:
        """Everything that a person could do in it now; from within `call`."""

    def action(self, opened: Collaboration, name: str) -> Action | None:
        """One of them by its name, without the others; from within `call`.

        Raises:
            Refused: it cannot be done now; the message says why.
        """

    def knows(self, opened: Collaboration, name: str) -> bool:
        """Whether there is an act of that name, which may be possible at another time."""

    async def close(self) -> None:
        """Let go of everything."""
