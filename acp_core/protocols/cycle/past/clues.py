"""What the state, the timeline and the logs tell of when: runs, versions, statuses, iterations.

Source: development cycle specification, "Iteration Flow with Communication" and "Coordination Log".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from acp_core.files.records import File, Record
from acp_core.model import Event
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.read import scan
from acp_core.protocols.cycle.schema import AGENTS, HOME, Cycle, Object, Version
from acp_core.protocols.cycle.view import timeline

T = TypeVar("T")

_RUN = re.compile(r"started, run ([\w.-]{1,80}), for version")
_VERSION = re.compile(r"(?<![\w.])v?(\d{1,6}\.\d{1,6}\.\d{1,6})(?![\w.]*\d)")
_COMPLETED = re.compile(r"completed, v[\d.]+: (.*)", re.S)
_ALL = re.compile(r"all documents go on with version ([\d.]+)")
_ITERATION = re.compile(r"iteration (\d{1,6}) begins(?:, with ([a-z, ]{1,40}))?")
_RERUN = re.compile(r"rerun: (ra|ep|cd|vas)$")
_NUMBERED = re.compile(r"iter-(\d{1,6})")
_LIMIT = re.compile(r"limit: (\d{1,9})$")
_SAME = timedelta(seconds=60)  # what is told twice of one end may differ so much
_USER = {"pause": "paused", "resume": "running", "stop": "failed", "accept": "completed"}
_PARTS = {"requirements": "ra", "exploration": "ep", "plan": "ep", "implementation": "cd",
          "test_results": "vas", "validation": "vas"}  # fmt: skip


@dataclass(slots=True)
class Run:
    """One run of an agent. ``key`` is its name, "" where it has none; ``how`` it ended."""

    agent: str
    began: datetime | None
    key: str = ""
    ended: datetime | None = None
    how: str = ""
    message: str = ""


@dataclass(slots=True)
class Clues:
    """What is known of when things were so. Each list is in the order of its times.

    ``versions`` are those of an agent's documents, ``limits`` the numbers of iterations that were
    allowed, ``begun_anew`` when agents were given something to do that they had not begun yet.
    """

    cycle: Cycle
    runs: dict[str, list[Run]]
    versions: dict[str, list[tuple[datetime, Version]]]
    statuses: list[tuple[datetime, str]]
    iterations: list[tuple[datetime, int]]
    limits: list[tuple[datetime, int]] = field(default_factory=list)
    begun_anew: list[tuple[datetime, str]] = field(default_factory=list)
    events: Sequence[Event] = ()

    def asked(self, id: str) -> datetime | None:
        """When something with this id was first told of."""
        return next((each.at for each in self.events if id and id in each.summary), None)

    def run(self, key: str) -> Run | None:
        """The run of this name."""
        return next((run for runs in self.runs.values() for run in runs if run.key == key), None)


def last(known: Iterable[tuple[datetime, T]], at: datetime) -> T | None:
    """The last of what began by a moment; None where nothing did."""
    found = None
    for since, value in known:
        if since <= at:
            found = value
    return found


def read(id: str, value: Object, texts: Mapping[str, str], now: datetime) -> Clues:
    """What can be known of a cycle.

    Args:
        id: the cycle's.
        value: its state, as it is known.
        texts: its logs and the documents of its coordination, by the names of their files.
        now: the present time.
    """
    name = f"{'/'.join(HOME)}/{id}.json"
    file = File(name, Path(name), 0, now)
    record = Record(file, value)
    cycle = Cycle(id, record, now, texts=dict(texts), shifted=scan.shifted(id, record, now))
    events = [each for each in timeline.timeline(cycle) if each.at is not None]
    begun = cycle.begun
    if begun is not None:  # what bears an earlier time is wrong about it
        events = [each for each in events if each.at is not None and each.at >= begun]
    return Clues(
        cycle,
        {agent: _runs(agent, events) for agent in AGENTS},
        {agent: _versions(agent, cycle, events) for agent in AGENTS},
        sorted(_statuses(cycle, events), key=lambda each: each[0]),
        sorted(_iterations(cycle, events)),
        [
            (each.at, int(found[1]))
            for each in events
            if each.at and each.actor == "user" and (found := _LIMIT.match(each.summary))
        ],
        [*_begun_anew(events)],
        events,
    )


def _begun_anew(events: Iterable[Event]) -> Iterator[tuple[datetime, str]]:
    for event in events:
        if event.at is None:
            continue
        iteration, again = _ITERATION.match(event.summary), _RERUN.match(event.summary)
        if iteration and iteration[2]:
            yield from ((event.at, name) for name in iteration[2].split(", "))
        elif again and event.actor == "user":
            yield from ((event.at, name) for name in AGENTS[AGENTS.index(again[1]) :])


def _runs(agent: str, events: Iterable[Event]) -> list[Run]:
    found: list[Run] = []
    for event in events:
        if event.actor != agent or event.at is None:
            continue
        open_one = found[-1] if found and found[-1].ended is None else None
        if event.kind == "started":
            named = _RUN.match(event.summary)
            if open_one is None:
                open_one = Run(agent, event.at)
                found.append(open_one)
            open_one.key = named[1] if named else open_one.key
        elif event.kind in ("completed", "failed"):
            if open_one is None:
                if found and found[-1].ended and event.at - found[-1].ended <= _SAME:
                    continue
                open_one = Run(agent, None)
                found.append(open_one)
            match = _COMPLETED.match(event.summary)
            open_one.ended, open_one.how = event.at, event.kind
            open_one.message = match[1] if match else ""
    return found


def _versions(agent: str, cycle: Cycle, events: Iterable[Event]) -> list[tuple[datetime, Version]]:
    """Since when an agent's documents had which version."""
    own: list[tuple[datetime, Version]] = []
    raised: list[tuple[datetime, Version]] = []
    for event in events:
        if event.at is None:
            continue
        if all_of_them := _ALL.match(event.summary):
            version = schema.version(all_of_them[1])
            raised += [(event.at, version)] if version and own else []
        elif event.actor == agent and event.kind in ("completed", "clarified", "note"):
            named = _VERSION.search(event.summary)
            version = schema.version(named[1]) if named else None
            own += [(event.at, version)] if version else []
    written = {version for _, version in own}  # those are raised when their agent writes them
    found = own + [each for each in raised if each[1] not in written]
    known = {version for _, version in found}
    return sorted(found + [each for each in _stamped(agent, cycle) if each[1] not in known])


def _stamped(agent: str, cycle: Cycle) -> Iterator[tuple[datetime, Version]]:
    """The versions of which the agent's log, and the state, tell the time."""
    begun = cycle.begun or datetime.min.replace(tzinfo=UTC)
    for name, content in cycle.texts.items():
        if name.startswith(f"{cycle.progress}{agent}/"):
            for _, row in timeline.numbered(content):
                at, version = cycle.at(row.get("timestamp")), schema.version(row.get("version"))
                if at and version and at >= begun:
                    yield at, version
    for part, owner in _PARTS.items():
        held = schema.obj(cycle.value.get(part))
        at = cycle.at(held.get("last_updated") or held.get("last_run"))
        version = schema.version(held.get("version"))
        if owner == agent and at and version:
            yield at, version


def _statuses(cycle: Cycle, events: Iterable[Event]) -> Iterator[tuple[datetime, str]]:
    if cycle.begun:
        yield cycle.begun, "running"
    for record in schema.objects(cycle.value.get("iterations")):
        if at := cycle.at(record.get("started_at")):
            yield at, "running"
    for event in events:
        if event.at is None:
            continue
        word = event.summary.partition(":")[0].strip().lower()
        if event.actor == "user" and word in _USER:
            yield event.at, _USER[word]
        elif event.kind == "escalated":
            yield event.at, "paused"
        elif event.kind in ("iteration", "decided") or word.startswith("applied "):
            yield event.at, "running"
        elif event.kind == "completed" and event.actor not in AGENTS:
            yield event.at, "completed"
    ended = cycle.at(cycle.value.get("completed_at"))
    if ended and cycle.status in ("completed", "failed"):
        yield ended, cycle.status


def _iterations(cycle: Cycle, events: Iterable[Event]) -> Iterator[tuple[datetime, int]]:
    for record in schema.objects(cycle.value.get("iterations")):
        number = schema.count(record.get("number", record.get("iteration")))
        at = cycle.at(record.get("started_at"))
        if at and number:
            yield at, number
    for event in events:
        named = _ITERATION.match(event.summary) or _NUMBERED.fullmatch(event.actor)
        if event.at and named:
            yield event.at, int(named[1])


def status_of(known: Clues, run: Run, at: datetime) -> str:
    """An agent's status by its latest run: "running" until that ended."""
    if run.ended is None or run.ended > at:
        return "running"
    if any(n == run.agent and run.ended <= since <= at for since, n in known.begun_anew):
        return "idle"
    return "failed" if run.how == "failed" else "completed"


def latest(runs: Iterable[Run], at: datetime) -> Run | None:
    """The latest run that had begun by a moment."""
    found = None
    for run in runs:
        began = run.began or run.ended
        if began and began <= at:
            found = run
    return found


def done_by(runs: Iterable[Run], at: datetime) -> list[Run]:
    """The runs that had completed by a moment."""
    return [run for run in runs if run.ended and run.ended <= at and run.how == "completed"]
