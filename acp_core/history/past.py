"""A collaboration at any moment of its past: from its recording, from git, and from its files.

Its folder as it was is built again in a private place, and read by what reads the real folder: so
the past is judged by the very rules of the present, whatever the protocol. Going forward writes
only what differs. Also which document changed at a step, and the collaborations that continue each
other, as one story.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from acp_core.history import store
from acp_core.history.moments import (
    DOCUMENT,
    END_OF_SECOND,
    EVENT,
    Moment,
    end_of,
    event_times,
    ids,
    moments,
)
from acp_core.history.schema import LoopChange, Seen, Span
from acp_core.history.store import BadRecording, LineEnds, Store
from acp_core.history.versions import (
    PRESENT,
    RECORDED,
    Known,
    Versions,
    digest,
    short_name,
    text_of,
)
from acp_core.model import DocumentText, Event, Finding, Link, Matter, Snapshot, Status, Verdict
from acp_core.model.matter import NOBODY, OWNER, Move
from acp_core.model.past import Count, Derivation, Evidence, PastLog, Request, marks
from acp_core.model.text import clean_line
from acp_core.protocols import registry
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.discovery import DiscoveredCollaboration, identify

_DEEP = ("1", "2", "3", "4", "5", "6", "7", "8")  # folders above: names may begin with ".."


class Stage:
    """The rebuilt folder. Used from one thread at a time; `close` removes it.

    Args:
        key: The collaboration's path, whose last part names the folder.
    """

    def __init__(self, key: str) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="acp-past-"))
        self.folder = self._root.joinpath(*_DEEP, os.path.basename(key) or "collaboration")
        self.folder.mkdir(parents=True, mode=0o700)
        self._shown: dict[str, tuple[str, int]] = {}  # name -> key and size of what stands there
        self._opened: Collaboration | None = None
        self._place = -1

    def close(self) -> None:
        """Remove everything."""
        self._leave()
        shutil.rmtree(self._root, ignore_errors=True)

    def set(
        self, place: int, files: Mapping[str, tuple[str, bytes, float]], logs: frozenset[str]
    ) -> None:
        """Let these files, and no others, stand there.

        Args:
            place: of the moment among all; going back, everything is read anew: who follows
                files must never see a log shrink, or a file vanish that was there.
            files: by name: a key that is the same for the same content, the content, and when it
                was written (seconds since 1970).
            logs: those of them that are only appended to.

        Raises:
            ValueError: a name leads out of the folder.
        """
        if place < self._place:
            self._leave()
        self._place = place
        for name in self._shown.keys() - files.keys():
            self._path(name).unlink(missing_ok=True)
            del self._shown[name]
        for name, (key, data, since) in files.items():
            before = self._shown.get(name)
            if before is not None and before[0] == key:
                continue
            nanoseconds = round(since * 1_000_000) * 1_000  # exactly what the time says
            path = self._path(name)
            if name in logs and before is not None:
                with path.open("r+b") as log:
                    log.seek(min(before[1], len(data)))
                    log.write(data[before[1] :])
                    log.truncate()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                written = path.with_name(f".{path.name}.new")
                written.write_bytes(data)
                os.utime(written, ns=(nanoseconds, nanoseconds))
                os.replace(written, path)
            os.utime(path, ns=(nanoseconds, nanoseconds))
            self._shown[name] = (key, len(data))

    def collaboration(self) -> Collaboration | None:
        """What reads the folder; None where nothing that acp knows stands there."""
        if self._opened is None:
            found = identify(self.folder, registry.installed())
            self._opened = found.open() if found else None
        return self._opened

    def refresh(self, moment: datetime) -> Snapshot | None:
        """The folder, read as of a moment."""
        opened = self.collaboration()
        return opened.refresh(moment) if opened is not None else None

    def _path(self, name: str) -> Path:
        """Where a file stands: never outside of the private place.

        Raises:
            ValueError: its name leads out.
        """
        path = Path(os.path.normpath(self.folder / name))
        if not path.is_relative_to(self._root) or path == self._root:
            raise ValueError(f"{name!r} leads out of the folder")
        return path

    def _leave(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


_LAST = (
    253_402_300_799.0  # the last second of the year 9999: numbers near it have no such fractions
)


def log_of(events: Sequence[Event], versions: Versions, *, exact: bool = False) -> PastLog:
    """The log with all that it holds; of the name "" where the protocol has none.

    Args:
        events: of the present.
        versions: of the tracked files.
        exact: whether a time without a fraction is that instant, and not its whole second.
    """
    name = next((each for each in versions.files if each in versions.logs), "")
    data = _newest(versions.files.get(name, []))
    latest = datetime.timestamp if exact else _latest
    times = (latest(event.at) if event.at else None for event in marks(events))
    return PastLog(name, data, tuple(event_ends(events, data)), tuple(times))


def _newest(versions: Sequence[Known]) -> bytes:
    for known in reversed(versions):
        if known.size is not None:
            try:
                return known.read()
            except (OSError, KeyError, BadRecording):
                continue
    return b""


def _latest(at: datetime) -> float:
    """The latest moment that a time stands for: one of whole seconds, for all of its second."""
    second = at.timestamp()
    return min(second + (0.0 if at.microsecond else END_OF_SECOND / 1_000_000), max(_LAST, second))


def event_ends(events: Sequence[Event], log: bytes) -> list[int]:
    """Where in the log each event's line ends, its newline included."""
    lines = LineEnds()
    lines.add(log)
    ends = (lines.of_event(events, number) for number in range(len(events)))
    return [len(log) if end is None else end for end in ends]


def last_generation(versions: Sequence[Known]) -> list[Known]:
    """The states of the log since it was last cut or rewritten."""
    states: list[Known] = []
    for known in versions:
        if known.size is None or known.source == PRESENT:
            continue
        if states and (states[-1].size or 0) > known.size:
            states = []
        states.append(known)
    return states


T = TypeVar("T")
BACK = 16  # moments before one that are read with it when going back
KEPT = 64  # Snapshots of the past that are held
_BEFORE = 1e-6  # seconds
_TICK = 0.01
_NAMED = 6  # files that are named where more are not recorded
_SENTENCE = 500  # characters of what was recorded
AS_RECORDED = "as recorded"
"""The evidence of what is told in the words in which it was recorded."""
SETTLE = 2.0  # seconds after an event within which files are written that follow from it


@dataclass(frozen=True, slots=True)
class Then:
    """How it stood at a moment.

    Attributes:
        moment: which.
        snapshot: as it would have been read then. Its needs and causes are those that were recorded,
            without acts: what reads the rebuilt folder sees no loop, no repository, and no file
            that was not recorded, and would make up damage.
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
        self._store: Store | None = store.open_recording(self.key)
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

    @cached_property
    def _seen(self) -> list[tuple[float, dict[str, Any]]]:
        """When each reading was recorded, and what it told."""
        return [(each.at, json.loads(each.content)) for each in self.observations]

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
        needs, causes = self._recorded_matters(place, when)
        snapshot = replace(snapshot, needs=needs, causes=causes, obstacles=())
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
        notices, next_actions = snapshot.notices, snapshot.next_actions
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
            notices = tuple(each for each in notices if each.about.document not in unknown)
            next_actions = ()  # what would be next may depend on what is in them
        return replace(
            snapshot,
            key=self.key,
            location=self.present.location,
            as_of=at,
            documents=documents,
            findings=tuple(self._in_place(each) for each in findings),
            gates=gates,
            verdict=verdict,
            notices=notices,
            next_actions=next_actions,
            doubt="; ".join(doubt),
            lineage=self.present.lineage,
            recheck_at=None,
        )

    def _in_place(self, finding: Finding) -> Finding:
        """The finding with the collaboration's own place where it names the rebuilt folder."""
        rebuilt = str(self._stage.folder) if self._stage is not None else ""
        if not rebuilt or rebuilt not in finding.message:
            return finding
        return replace(finding, message=finding.message.replace(rebuilt, self.present.location))

    def _recorded_matters(
        self, place: int, when: datetime | None
    ) -> tuple[tuple[Matter, ...], tuple[Matter, ...]]:
        """Needs and causes at a moment, as they were recorded.

        What is recorded of an event is recorded after it: what was seen next belongs to it, too.
        A recording of acp 0.2 has the causes alone, and does not say whose move they were.
        """
        moment = self.moments[place]
        until = when.timestamp() if when else moment.at
        soon = min([until + SETTLE, *(each.at for each in self.moments[place + 1 : place + 2])])
        first, last = (bisect_right(self._seen, at, key=itemgetter(0)) for at in (until, soon))
        nearest = (*self._seen[max(0, first - 1) : first], *self._seen[first:last])
        told = next((told for _, told in nearest if told.get("events") == moment.events), {})
        needs = told.get("needs", ())
        wanted = {sentence for _, sentence in needs}
        causes = told.get("causes", ())
        return (
            tuple(_as_recorded(code, sentence, OWNER) for code, sentence in needs),
            tuple(
                _as_recorded(code, sentence, OWNER if sentence in wanted else NOBODY)
                for code, sentence in causes
            ),
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


def _as_recorded(code: str, sentence: str, move: Move) -> Matter:
    told = clean_line(sentence, _SENTENCE)
    key = f"recorded:{clean_line(code, 40)}:{told}"
    return Matter(clean_line(code, 40), told, move=move, evidence=(AS_RECORDED,), key=key)


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


class DocumentChange(NamedTuple):
    """A document that changed, and its text before that; "" where it is new or was not recorded."""

    document: str
    before: str


def changed_document(past: Past, place: int) -> str | None:
    """The document that changed at a step; at an event the last one since the event before.

    Args:
        past: of the collaboration.
        place: of the step, among ``past.moments``.
    """
    for number in range(place, -1, -1):
        moment = past.moments[number]
        if moment.kind == DOCUMENT:
            document = past.document_of(moment.name)
            if document is not None:
                return document
        elif moment.kind == EVENT and number < place:
            break
    return None


def change_of(past: Past, place: int, document: str) -> DocumentChange:
    """A document that changed at a step, with its text before.

    Raises:
        KeyError: there is no such document.
        BadRecording: the recording is damaged there.
    """
    old, _ = past.between(document, None, place)
    return DocumentChange(document, text_of(old))


MOST_CONTINUED = 100
"""Collaborations of one chain."""


def chain(found: DiscoveredCollaboration, now: datetime) -> list[DiscoveredCollaboration]:
    """A collaboration with those that it continues and those that continue it, oldest first.

    What a link names and is no collaboration, and what stands in the chain already, ends it.

    Args:
        found: one of them.
        now: the present time.
    """
    seen = {_real(found)}
    before = _follow(found, "continues", now, seen)
    return [*reversed(before), found, *_follow(found, "continued_by", now, seen)]


def _follow(
    found: DiscoveredCollaboration, relation: str, now: datetime, seen: set[str]
) -> list[DiscoveredCollaboration]:
    others: list[DiscoveredCollaboration] = []
    at: DiscoveredCollaboration | None = found
    while at is not None and len(others) < MOST_CONTINUED:
        opened = at.open()
        try:
            links = opened.refresh(now).lineage
        finally:
            opened.close()
        at = _linked(links, relation)
        if at is None or _real(at) in seen:
            break
        seen.add(_real(at))
        others.append(at)
    return others


def _linked(links: Iterable[Link], relation: str) -> DiscoveredCollaboration | None:
    for link in links:
        if link.relation == relation and link.found:
            return identify(Path(link.location), registry.installed())
    return None


def _real(found: DiscoveredCollaboration) -> str:
    return os.path.realpath(found.key)
