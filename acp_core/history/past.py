"""A collaboration at any moment of its past: from its recording, from git, and from its files."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TypeVar

from acp_core.history import library
from acp_core.history.git import digest
from acp_core.history.moments import EVENT, Moment, end_of, event_times, ids, moments
from acp_core.history.schema import LoopChange, Seen, Span
from acp_core.history.stage import Stage
from acp_core.history.store import Store
from acp_core.history.versions import PRESENT, RECORDED, Known, Versions, short_name
from acp_core.history.whole_log import last_generation, log_of
from acp_core.model import DocumentText, Snapshot, Status, Verdict
from acp_core.model.derivation import Derivation, Evidence
from acp_core.model.story import Count, Request
from acp_core.protocols import registry
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.discovery import DiscoveredCollaboration

T = TypeVar("T")

BACK = 16  # moments before one that are read with it when going back
KEPT = 64  # Snapshots of the past that are held
_BEFORE = 1e-6  # seconds
_TICK = 0.01
_NAMED = 6  # files that are named where more are not recorded
SETTLE = 2.0  # seconds after an event within which files are written that follow from it


@dataclass(frozen=True, slots=True)
class Then:
    """How it stood at a moment.

    Attributes:
        moment: which.
        snapshot: as it would have been read then.
        missing: files of which the content at that moment is not known.
        sources: by file: where the content is known from.
        alive: what participants' loops did, by participant, as far as recorded: JSON texts.
    """

    moment: Moment
    snapshot: Snapshot
    missing: tuple[str, ...]
    sources: dict[str, str]
    alive: dict[str, str]


class Past:
    """One collaboration's past. Used from one thread at a time; `close` when done.

    Args:
        found: The collaboration.
        now: The present time.

    Raises:
        BadRecording: there is a recording, and it cannot be read.
    """

    def __init__(self, found: DiscoveredCollaboration, now: datetime) -> None:
        self.key = found.key
        self._protocol = found.protocol
        present = found.open()
        self.present = present.refresh(now)
        self.story = present.story()
        tracked, past_log = present.tracked_files(), present.past_log()
        self._follows = frozenset(file.name for file in tracked if file.follows)
        present.close()
        self._store: Store | None = library.find(self.key)
        self._versions = Versions(tracked, self._store)
        if past_log is None:
            self._log = log_of(self.present.events, self._versions, exact=present.has_fractions)
        else:
            self._log = past_log
        if past_log is not None:
            self._versions.files[past_log.name] = []
        self.observations: list[Seen] = self._store.observations() if self._store else []
        self.loops: list[LoopChange] = self._store.loops() if self._store else []
        self.spans: list[Span] = self._store.spans() if self._store else []
        self.moments: list[Moment] = self._moments()
        self._event_times = [each.at for each in self.moments if each.kind == EVENT]
        self._snapshots: OrderedDict[int, Then] = OrderedDict()
        self._stage: Stage | None = None
        self._derivation: Derivation | None = None
        self._place = -1  # that was built last

    def close(self) -> None:
        """Let go of the recording and of the rebuilt folder."""
        if self._stage is not None:
            self._stage.close()
        if self._store is not None:
            self._store.close()

    @cached_property
    def ids(self) -> list[str]:
        """A name for each of `moments`, in their order (see `acp_core.history.moments.ids`)."""
        return ids(self.moments)

    @property
    def recorded(self) -> bool:
        """Whether anything of it was recorded."""
        return self._store is not None

    def versions(self, document: str) -> list[Known]:
        """The known versions of a document, oldest first."""
        names = [n for n, known in self._versions.documents.items() if known == document]
        return [known for name in names for known in self._versions.files.get(name, [])]

    def document_of(self, file: str) -> str | None:
        """The id of the document that a file holds; None where it holds none."""
        return self._versions.documents.get(file)

    def between(
        self, document: str, since: int | None, until: int
    ) -> tuple[Known | None, Known | None]:
        """A document's version at an earlier moment, and at a later one.

        Args:
            document: its id.
            since: the place of the earlier moment; None: the version before the later one's.
            until: the place of the later one. The two may be given in either order.

        Raises:
            KeyError: there is no such document.
        """
        names = [n for n, known in self._versions.documents.items() if known == document]
        if not names:
            raise KeyError(document)
        name = names[0]
        if since is not None:
            first, last = sorted((since, until))
            return _unless_lost(self._known(first, name)), _unless_lost(self._known(last, name))
        new = self._known(until, name)
        versions = self._versions.files.get(name, [])
        place = versions.index(new) if new in versions else 0
        return _unless_lost(versions[place - 1]) if place else None, _unless_lost(new)

    def requests(self, old: Known | None, new: Known | None) -> list[Request]:
        """What reviews asked for between two versions of a document."""
        after = old.since if old is not None else float("-inf")
        until = new.since if new is not None else float("inf")
        at = {each.name: each.at for each in self.moments if each.kind == EVENT}
        return [
            each
            for each in self.story.requests
            if after <= at.get(each.event, float("-inf")) <= until
        ]

    def index(self, event: str) -> int | None:
        """The place of an event among the moments, by its id."""
        return next(
            (n for n, each in enumerate(self.moments) if each.kind == EVENT and each.name == event),
            None,
        )

    def place(self, name: str) -> int | None:
        """The place of the moment of this id; None where there is none."""
        return self.ids.index(name) if name in self.ids else self.index(name)

    def nearest(self, at: datetime) -> int | None:
        """The last moment that is not later than a time; None where there is none.

        A time without a fraction of a second is that whole second.
        """
        until = end_of(at)
        places = [
            n
            for n, each in enumerate(self.moments)
            if datetime.fromtimestamp(each.at, UTC) <= until
        ]
        return places[-1] if places else None

    def at(self, place: int, when: datetime | None = None) -> Then:
        """How it stood at a moment.

        Args:
            place: among `moments`.
            when: a later time, before the next moment: nothing happened, and time went by.

        Raises:
            IndexError: there is no such moment.
            BadRecording: the recording is damaged there.
        """
        if not 0 <= place < len(self.moments):
            raise IndexError(place)
        if when is not None and when > self.moments[place].time:
            return self._then(place, when)
        if place not in self._snapshots:
            # going back means reading anew: then some moments before it are read on the way
            first = max(0, place - BACK) if place < self._place else place
            for each in range(first, place + 1):
                self._snapshots[each] = self._then(each)
        self._snapshots.move_to_end(place)
        while len(self._snapshots) > KEPT:
            self._snapshots.popitem(last=False)
        return self._snapshots[place]

    def held(self, place: int) -> Then | None:
        """A moment that was read already; None where it was not. From any thread."""
        return self._snapshots.get(place)

    def text(self, place: int, document: str) -> DocumentText:
        """A document's text at a moment.

        Raises:
            IndexError, KeyError: there is no such moment, or document.
        """
        return self._staged(place, lambda opened: opened.load(document))

    def raw_event(self, place: int, event: str) -> str:
        """An event as the source held it then, safe to show; "" where unknown.

        Args:
            place: of the moment, among `moments`.
            event: the event's id.

        Raises:
            IndexError: there is no such moment.
            KeyError: nothing that can be read stood there then.
        """
        return self._staged(place, lambda opened: opened.raw_event(event))

    def counts(self, place: int) -> tuple[Count, ...]:
        """What could be counted at a moment; nothing where nothing that can be read stood there."""
        try:
            return self._staged(place, lambda opened: opened.story().counts)
        except KeyError:
            return ()

    def totals(self, place: int) -> Mapping[str, int | None]:
        """What the counts at a moment came to in all; nothing where nothing that can be read stood there."""
        try:
            return self._staged(place, lambda opened: opened.totals())
        except KeyError:
            return {}

    def phase_changes(self) -> list[int]:
        """The places of the events at which a phase began."""
        began = {
            visit.entered.timestamp()
            for phase in self.present.phases
            for visit in phase.visits
            if visit.entered is not None
        }
        times = {
            event.id: event.at.timestamp() for event in self.present.events if event.at is not None
        }
        return [
            place
            for place, each in enumerate(self.moments)
            if each.kind == EVENT and times.get(each.name) in began
        ]

    def content(self, place: int, file: str) -> bytes | None:
        """A file's content at a moment; None where it was not there, or is not known."""
        known = self._known(place, file)
        if file == self._log.name:
            return self._log.until(self.moments[place].events)
        return known.read() if known is not None and known.size is not None else None

    # building

    def _moments(self) -> list[Moment]:
        states = last_generation(self._versions.files.get(self._log.name, []))
        times = event_times(self._log.times, self._log.ends, states)
        documents = [
            known
            for name, versions in self._versions.files.items()
            if name != self._log.name and name not in self._follows
            for known in versions
        ]
        return moments(self.present.events, times, documents, self.observations, self.loops)

    def _known(self, place: int, file: str) -> Known | None:
        """The content that a file had at a moment.

        What follows from an event is written after it, and so is everything at the beginning.
        """
        moment = self.moments[place]
        until, follows = moment.at, file in self._follows
        after = self._event_times[moment.events : moment.events + 1]
        settled = min([until + SETTLE, *(at - _before(at - until) for at in after)])
        known = self._versions.at(file, settled if follows else until)
        if known is None and moment.events == 1:
            versions = self._versions.files[file]
            known = versions[0] if versions and versions[0].since <= settled else None
        last = moment.events == len(self._event_times)
        if follows and known is not None and known.source == PRESENT and not last:
            return None  # its time is too coarse to tell: what follows from the log is known better
        return known

    def _then(self, place: int, when: datetime | None = None) -> Then:
        moment = self.moments[place]
        stage, missing, sources = self._set(place)
        at = when or moment.time
        snapshot = stage.refresh(at)
        if snapshot is None:
            note = "the earlier content is not recorded"
            snapshot = replace(
                self.present, events=(), documents=(), findings=(), turns=(), phases=(), gates=(),
                next_actions=(), needs=(), causes=(), questions=(), notices=(), panels=(),
                phase="", status=Status.UNKNOWN, outcome=(), summary="", headline=note, doubt=note,
                as_of=at, verdict=Verdict.UNKNOWN,
            )  # fmt: skip
        else:
            snapshot = self._as_it_was(snapshot, missing, at)
        alive = {each.participant: each.content for each in self.loops if each.at <= moment.at}
        return Then(moment, snapshot, missing, sources, alive)

    def _as_it_was(self, snapshot: Snapshot, missing: tuple[str, ...], at: datetime) -> Snapshot:
        """With the collaboration's own name and place, and without what nobody can know."""
        unknown = {self._versions.documents.get(name, name) for name in missing}
        documents = tuple(
            replace(each, state="not recorded", note="not recorded", path=None)
            if each.id in unknown
            else each
            for each in snapshot.documents
        )
        doubt = [snapshot.doubt] if snapshot.doubt else []
        verdict, findings, gates = snapshot.verdict, snapshot.findings, snapshot.gates
        if unknown:
            names = [short_name(name) for name in sorted(unknown)]
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            doubt.append(f"not recorded: {', '.join(names[:_NAMED])}{more}")
            findings = tuple(each for each in findings if each.document not in unknown)
            gates = tuple(
                replace(each, met=None, evidence="not recorded") if each.label in unknown else each
                for each in gates
            )
            verdict = Verdict.UNKNOWN
        return replace(
            snapshot,
            key=self.key,
            location=self.present.location,
            as_of=at,
            documents=documents,
            findings=findings,
            gates=gates,
            verdict=verdict,
            doubt="; ".join(doubt),
            lineage=self.present.lineage,
            recheck_at=None,
        )

    def _staged(self, place: int, function: Callable[[Collaboration], T]) -> T:
        stage, _, _ = self._set(place)
        stage.refresh(self.moments[place].time)
        opened = stage.collaboration()
        if opened is None:
            raise KeyError(place)
        return function(opened)

    def _set(self, place: int) -> tuple[Stage, tuple[str, ...], dict[str, str]]:
        """Build the folder; which files are not known, and where the others are known from."""
        moment = self.moments[place]
        self._place = place
        if self._stage is None:
            self._stage = Stage(self.key)
        files: dict[str, tuple[str, bytes, float]] = {}
        missing: list[str] = []
        sources: dict[str, str] = {}
        log = self._log.until(moment.events)
        if self._log.name and moment.events:
            files[self._log.name] = (f"{moment.events}", log, moment.time.timestamp())
        for name in self._versions.files:
            if name == self._log.name:
                continue
            known = self._known(place, name)
            if known is None:
                first = self._versions.files[name]
                if first and (first[0].source != RECORDED or self._was_there_before(first[0])):
                    missing.append(name)
                continue
            if known.lost:
                missing.append(name)
                continue
            sources[name] = known.source
            if known.size is not None:
                files[name] = (known.key, known.read(), known.since)
        files |= self._derived(log, files, missing, moment.time.timestamp())
        self._stage.set(place, files, frozenset({self._log.name}))
        return self._stage, tuple(missing), sources

    def _was_there_before(self, known: Known) -> bool:
        """Whether a file stood there already when recording began."""
        return not self.spans or known.since < self.spans[0].began

    def _derived(
        self, log: bytes, files: dict[str, tuple[str, bytes, float]], missing: list[str], at: float
    ) -> dict[str, tuple[str, bytes, float]]:
        """What the protocol can tell of files that are not known, from what is."""
        if self._protocol.past is None or not missing:
            return {}
        present: dict[str, bytes] = {}
        for name in missing:
            versions = [each for each in self._versions.files[name] if each.size is not None]
            if versions:
                present[name] = versions[0].read()
        if self._derivation is None:
            self._derivation = registry.load(self._protocol.past)()
        there = {name: (data, since) for name, (_, data, since) in files.items()}
        moment = datetime.fromtimestamp(at, UTC)
        made = self._derivation.derive(Evidence(moment, log, present, there))
        for name in made:
            if name in missing:
                missing.remove(name)
            if made[name] is None:
                files.pop(name, None)
        known = {name: data for name, data in made.items() if data is not None}
        return {name: (digest(data), data, at) for name, data in known.items()}


def _unless_lost(known: Known | None) -> Known | None:
    """A version of which the content is known."""
    return None if known is None or known.lost else known


def _before(gap: float) -> float:
    """How long before the next event what follows from it may stand there, by its file's time.

    File times are those of the system's last tick: up to 10 ms older than the write.
    """
    return max(_BEFORE, min(_TICK, gap / 2))


def gaps(spans: Sequence[Span], start: float, end: float) -> list[tuple[float, float]]:
    """The times between ``start`` and ``end`` in which nobody recorded, in seconds since 1970."""
    found, since = [], start
    for span in sorted(spans, key=lambda each: each.began):
        if span.began > since:
            found.append((since, min(span.began, end)))
        since = max(since, span.until)
        if since >= end:
            break
    if since < end:
        found.append((since, end))
    return [(left, right) for left, right in found if right > left]
