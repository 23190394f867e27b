"""``acp watch`` and ``acp record``: collaborations followed, one line for every change until all is over,
or for nothing but their history.

What changed between two Snapshots is told by pure functions. The ``type`` of a change and its fields
are the schema ``acp.watch/1``: types and fields are only ever added.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from acp_core.cli import fields
from acp_core.cli.output import complain, dump, say, terminal, warn
from acp_core.cli.start import chosen_paths, load_settings, sort_out
from acp_core.files import interrupts
from acp_core.fleet import Batch, Fleet
from acp_core.history.recorder import Recorder
from acp_core.history.schema import Bounds
from acp_core.history.store import open_recording
from acp_core.model import Event, Finding, Matter, Snapshot, SourceState, Status, Turn, format
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.model.format import continued, names_in
from acp_core.protocols.kit.values import Values
from acp_core.protocols.locations import SearchRoot


class Change(NamedTuple):
    """One change: its type, what it says in a line, when it was, and its own fields."""

    type: str
    text: str
    at: datetime
    fields: fields.Fields


def first(snapshot: Snapshot) -> Iterator[Change]:
    """How a collaboration stands when watching it begins."""
    yield Change("state", snapshot.headline, snapshot.as_of, {"state": fields.summary(snapshot)})
    for need in snapshot.needs:
        yield _need(need, snapshot, snapshot.as_of)


def between(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    """What is different in ``new``: events first, then what follows from them."""
    now = new.as_of
    yield from _events(old, new)
    if (old.phase, old.round) != (new.phase, new.round):
        later = f", round {new.round}" if new.round and new.round > 1 else ""
        text = f"phase: {old.phase or '-'} → {new.phase or '-'}{later}"
        told = {"phase": new.phase, "round": new.round, "before": old.phase}
        yield Change("phase", text, now, told)
    if _waited(old.turns) != _waited(new.turns):
        turns = [fields.turn(each) for each in new.turns]
        yield Change("waiting", _waiting_text(new), now, {"waiting": turns})
    yield from _documents(old, new)
    yield from _findings(old, new)
    yield from _needs(old, new)
    if old.source != new.source:
        text = f"reading: {new.source.state.value}"
        note = new.source.note
        told = fields.picked(new.source, "state note")
        yield Change("source", f"{text}, {note}" if note else text, now, told)
    if old.status is not new.status:
        told = {"status": new.status.value, "before": old.status.value}
        yield Change("status", f"{new.status.value}: {new.headline}", now, told)


def gone(snapshot: Snapshot, now: datetime) -> Change:
    """The collaboration is not there any more."""
    return Change("gone", "gone: the folder was removed, or is no longer a collaboration", now, {})


def _events(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    if old.events is new.events:
        return
    had = len(old.events)
    grown = len(new.events) >= had and (had == 0 or old.events[-1] == new.events[had - 1])
    if grown:
        added = list(new.events[had:])
    else:  # the log was cut or rewritten: say it, then what was not there before
        known = {event.id: event for event in old.events}
        added = [e for e in new.events if known.get(e.id) != e]
        told = {"before": had, "event_count": len(new.events)}
        text = f"history changed: {format.count(had, 'event')} before, {len(new.events):,} now"
        yield Change("history", text, new.as_of, told)
    for event in added:
        at, whole = event.at or new.as_of, fields.event(event)
        yield Change("event", _event_text(event), at, {"event": whole})


def _event_text(event: Event) -> str:
    reply = f" (replies to {event.reply_to})" if event.reply_to else ""
    problem = f" [{event.problem}]" if event.problem else ""
    return f"{event.id} {event.actor} {event.kind}: {event.summary}{reply}{problem}"


def _waited(turns: tuple[Turn, ...]) -> list[tuple[str, str]]:
    return [(turn.participant, turn.what) for turn in turns]


def _waiting_text(new: Snapshot) -> str:
    if not new.turns:
        return "waiting for no participant"
    whats = dict.fromkeys(turn.what for turn in new.turns)
    names = ", ".join(dict.fromkeys(turn.participant for turn in new.turns))
    return f"waiting for {names}: {'; '.join(whats)}"


def _documents(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    if old.documents is new.documents:
        return
    before = {document.id: document for document in old.documents}
    for document in new.documents:
        was = before.pop(document.id, None)
        if was is document or document.group == "state":
            continue  # what the state files say shows as events and phases
        if was is None or was.state != document.state:
            what = document.state
        elif was.version != document.version:
            what = "changed"
        else:
            continue
        text = f"document: {document.id} {what}"
        if document.late:
            text += f" ({document.late})"
        told = {"what": what, "document": fields.document(document)}
        yield Change("document", text, document.changed or new.as_of, told)
    for document in before.values():
        told = {"what": "gone", "document": fields.document(document)}
        yield Change("document", f"document: {document.id} gone", new.as_of, told)


def _identity(finding: Finding) -> tuple[str, str, str | None, str | None]:
    """Findings that differ only in their line are the same one: text above it moved."""
    return finding.code, finding.message, finding.document, finding.event


def _findings(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    if old.findings is new.findings:
        return
    before = {_identity(finding): finding for finding in old.findings}
    after = {_identity(finding): finding for finding in new.findings}
    for key, finding in after.items():
        if key not in before:
            told = {"finding": fields.finding(finding)}
            yield Change("finding", _finding_text(finding), new.as_of, told)
    for key, finding in before.items():
        if key not in after:
            text = f"cleared: {finding.code} {finding.message}"
            yield Change("finding_cleared", text, new.as_of, {"finding": fields.finding(finding)})


def _finding_text(finding: Finding) -> str:
    place = finding.document or ""
    if place and finding.line:
        place += f":{finding.line}"
    return f"{finding.severity.value}: {finding.code} {place} {finding.message}".replace("  ", " ")


def _needs(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    before = {need.key: need for need in old.needs}
    for need in new.needs:
        if before.pop(need.key, None) is None:
            yield _need(need, new, new.as_of)
    for need in before.values():
        text = f"no longer needed: {continued(need.sentence, names_in(old))}"
        yield Change("need_met", text, new.as_of, {"need": {"key": need.key, "code": need.code}})


def _need(need: Matter, snapshot: Snapshot, now: datetime) -> Change:
    told = fields.need(need)
    told.pop("acknowledged")  # it stands in a person's own notes, not in the collaboration
    text = f"needs you: {continued(need.sentence, names_in(snapshot))}"
    return Change("need", text, now, {"need": told})


SCHEMA = "acp.watch/1"
COMPLETED, RUNNING, UNREADABLE, BLOCKED = 0, 1, 2, 5
WORST = (UNREADABLE, BLOCKED, RUNNING, COMPLETED)
PATIENCE = 2.0  # seconds for which something is unreadable before it counts as such
STYLES = {
    "need": "need",
    "finding": "warning",
    "history": "error",
    "source": "warning",
    "gone": "error",
    "phase": "head",
    "status": "head",
    "state": "head",
}


def watch(given: Values) -> int:
    """Print changes until all is over.

    Raises:
        CommandError: there is no collaboration, or no such place.
    """
    good, problems = sort_out(given.paths)
    if not good:
        raise CommandError("; ".join(problems))
    for problem in problems:
        complain(problem)
    settings = load_settings()
    recorder = Recorder("watch", Bounds.of(settings.recording))
    watching = Watching(_printer(given.json, given.utc or settings.utc), recorder=recorder)
    if given.once:
        watching.print_once(good)
    else:
        interrupts.run_loop(lambda: watching.follow(good))
    if not watching.codes:
        where = ", ".join(str(path) for path in good)
        raise CommandError(f"no collaboration in or below {where}")
    return worst([*watching.codes, *(UNREADABLE for _ in problems)])


def worst(codes: Iterable[int]) -> int:
    """The exit code that says most of what is wrong."""
    return min(codes, key=WORST.index)


class Watching:
    """Follows a fleet and prints what changes.

    Args:
        show: Prints a change of a collaboration.
        clock: Seconds that never go back; tests set it.
        recorder: Keeps what changes.
    """

    def __init__(
        self,
        show: Callable[[Snapshot, Change], None],
        clock: Callable[[], float] = time.monotonic,
        recorder: Recorder | None = None,
    ) -> None:
        self._show = show
        self._clock = clock
        self._recorder = recorder
        self._last: dict[str, Snapshot] = {}
        self._gone: set[str] = set()
        self._unreadable_since: dict[str, float] = {}
        self._complete = False  # whether everything was looked at once

    @property
    def codes(self) -> list[int]:
        """The exit code of each collaboration as it stands."""
        gone = [UNREADABLE for _ in self._gone]
        return gone + [_code(snapshot) for snapshot in self._last.values()]

    def print_once(self, paths: list[SearchRoot]) -> None:
        """Print how the collaborations under ``paths`` stand."""
        for snapshot in Fleet(paths, rows=True).read():
            self._take(snapshot)

    async def follow(self, paths: list[SearchRoot]) -> None:
        """Follow the collaborations under ``paths`` until all are over."""
        fleet = Fleet(paths, recorder=self._recorder)
        batches = fleet.changes()
        following = asyncio.ensure_future(anext(batches))
        try:
            while not self.over():
                done, _ = await asyncio.wait({following}, timeout=self._patience())
                if done:
                    self.take(following.result())
                    following = asyncio.ensure_future(anext(batches))
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await fleet.close()

    def take(self, batch: Batch) -> None:
        """Print what a batch brings."""
        self._complete = batch.complete
        if batch.note:
            warn(batch.note)
        for snapshot in batch.snapshots:
            self._take(snapshot)
        for key in batch.gone:
            last = self._last.pop(key, None)
            if last:
                self._gone.add(key)
                self._show(last, gone(last, utc_now()))

    def over(self) -> bool:
        """Whether everything has ended; what is unreadable only after a moment's patience."""
        running = any(_code(snapshot) == RUNNING for snapshot in self._last.values())
        return self._complete and not running and not self._patience()

    def _patience(self) -> float | None:
        """Seconds until the newest unreadable collaboration counts; None where none is new."""
        if not self._unreadable_since:
            return None
        left = max(self._unreadable_since.values()) + PATIENCE - self._clock()
        return max(0, left)

    def _take(self, snapshot: Snapshot) -> None:
        old = self._last.get(snapshot.key)
        self._gone.discard(snapshot.key)
        self._last[snapshot.key] = snapshot
        if _code(snapshot) == UNREADABLE:
            self._unreadable_since.setdefault(snapshot.key, self._clock())
        else:
            self._unreadable_since.pop(snapshot.key, None)
        for change in between(old, snapshot) if old else first(snapshot):
            self._show(snapshot, change)


def _code(snapshot: Snapshot) -> int:
    if snapshot.source.state is SourceState.UNREACHABLE:
        return UNREADABLE
    return {Status.COMPLETED: COMPLETED, Status.BLOCKED: BLOCKED}.get(snapshot.status, RUNNING)


def _printer(as_json: bool, utc: bool) -> Callable[[Snapshot, Change], None]:
    shown_on = terminal()

    def as_object(snapshot: Snapshot, change: Change) -> None:
        told = {
            "schema": SCHEMA,
            "type": change.type,
            "at": fields.time(change.at),
            "collaboration": snapshot.key,
            "name": snapshot.name,
        }
        say(dump(told | change.fields, indent=None), now=True)

    def as_line(snapshot: Snapshot, change: Change) -> None:
        at = format.zoned(change.at, utc).strftime("%H:%M:%S")
        text = shown_on.paint(change.text, STYLES.get(change.type, ""))
        say(f"{shown_on.paint(at, 'dim')}  {snapshot.name}  {text}", now=True)

    return as_object if as_json else as_line


def record(given: Values) -> int:
    """Record until it is over, or interrupted.

    Raises:
        CommandError: there is no collaboration, or not everything was recorded.
    """
    settings = load_settings()
    good, problems = sort_out(chosen_paths(given.paths, settings))
    for problem in problems:
        complain(problem)
    if not good:
        return 2
    bounds = replace(Bounds.of(settings.recording), on=True)  # it was asked for
    recorder = Recorder("record", bounds)
    if given.once:
        found = Fleet(good, recorder=recorder).read()
        recorder.close()
        for snapshot in found:
            say(_describe_recording(snapshot))
    else:
        found = interrupts.run_loop(lambda: _follow(good, recorder, given.until_over))
    if not found:
        raise CommandError(f"no collaboration in or below {', '.join(map(str, good))}")
    if recorder.problem:
        raise CommandError(f"some changes were not recorded: {recorder.problem}")
    return 2 if problems else 0


async def _follow(
    paths: list[SearchRoot], recorder: Recorder, until_over: bool
) -> tuple[Snapshot, ...]:
    """Record until it is over, or for ever; says which collaborations, as they are found."""
    fleet = Fleet(paths, recorder=recorder)
    watching = Watching(lambda snapshot, change: None)
    known: set[str] = set()
    problem = ""
    try:
        async for batch in fleet.changes():
            watching.take(batch)
            for snapshot in batch.snapshots:
                if snapshot.key not in known:
                    known.add(snapshot.key)
                    say(f"recording {snapshot.name} ({snapshot.location})", now=True)
            if recorder.problem != problem:
                problem = recorder.problem
                warn(problem or "recording continues")
            if batch.complete and until_over and (not known or watching.over()):
                break
    finally:
        await fleet.close()
    return tuple(fleet.snapshots.values())


def _describe_recording(snapshot: Snapshot) -> str:
    store = open_recording(snapshot.key)
    if store is None:
        return f"nothing recorded of {snapshot.name}: it cannot be read ({snapshot.source.note})"
    try:
        count = len(store.versions())
    finally:
        store.close()
    return f"recorded {snapshot.name}: {format.count(count, 'version')} of its files"
