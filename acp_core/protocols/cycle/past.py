"""What a cycle's files held at a time from which they are not known, as far as they tell it.

The state keeps when its entries came; timeline, logs and copies of earlier versions tell the rest:
runs, versions, statuses, iterations. What came later is left out, and what nobody wrote down is not
made up: it stays not recorded. Agents' documents are known by their versions (a copy in ``history/``
is what stood there until the next version), logs by the times of their rows, and what is written
once, for or after a run, by that run. Source: development cycle specification, "Iteration Flow with
Communication" and "Coordination Log".
"""

from __future__ import annotations

import copy
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from acp_core.files.records import File, Record
from acp_core.model import Event
from acp_core.model.past import Derivation, Evidence, Files, Held
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.read import progress, scan
from acp_core.protocols.cycle.read.progress import PhaseResult, parse_result
from acp_core.protocols.cycle.schema import (
    AGENTS,
    DEPENDS,
    HOME,
    Cycle,
    Object,
    Version,
    encoded,
    parse_object,
)
from acp_core.protocols.cycle.view import timeline

T = TypeVar("T")
Dated = tuple[datetime, Event]
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
    events: Sequence[Dated] = ()

    def asked(self, id: str) -> datetime | None:
        """When something with this id was first told of."""
        return next((at for at, each in self.events if id and id in each.summary), None)

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
    begun = cycle.begun  # what bears an earlier time is wrong about it
    told = ((each.at, each) for each in timeline.timeline(cycle))
    events = [(at, each) for at, each in told if at and (begun is None or at >= begun)]
    return Clues(
        cycle,
        {agent: _runs(agent, events) for agent in AGENTS},
        {agent: _versions(agent, cycle, events) for agent in AGENTS},
        sorted(_statuses(cycle, events), key=lambda each: each[0]),
        sorted(_iterations(cycle, events)),
        [
            (at, int(found[1]))
            for at, each in events
            if each.actor == "user" and (found := _LIMIT.match(each.summary))
        ],
        [*_begun_anew(events)],
        events,
    )


def _begun_anew(events: Iterable[Dated]) -> Iterator[tuple[datetime, str]]:
    for at, event in events:
        iteration, again = _ITERATION.match(event.summary), _RERUN.match(event.summary)
        if iteration and iteration[2]:
            yield from ((at, name) for name in iteration[2].split(", "))
        elif again and event.actor == "user":
            yield from ((at, name) for name in AGENTS[AGENTS.index(again[1]) :])


def _runs(agent: str, events: Iterable[Dated]) -> list[Run]:
    found: list[Run] = []
    for at, event in events:
        if event.actor != agent:
            continue
        open_one = found[-1] if found and found[-1].ended is None else None
        if event.kind == "started":
            named = _RUN.match(event.summary)
            if open_one is None:
                open_one = Run(agent, at)
                found.append(open_one)
            open_one.key = named[1] if named else open_one.key
        elif event.kind in ("completed", "failed"):
            if open_one is None:
                if found and found[-1].ended and at - found[-1].ended <= _SAME:
                    continue
                open_one = Run(agent, None)
                found.append(open_one)
            match = _COMPLETED.match(event.summary)
            open_one.ended, open_one.how = at, event.kind
            open_one.message = match[1] if match else ""
    return found


def _versions(agent: str, cycle: Cycle, events: Iterable[Dated]) -> list[tuple[datetime, Version]]:
    """Since when an agent's documents had which version."""
    own: list[tuple[datetime, Version]] = []
    raised: list[tuple[datetime, Version]] = []
    for at, event in events:
        if all_of_them := _ALL.match(event.summary):
            version = schema.version(all_of_them[1])
            raised += [(at, version)] if version and own else []
        elif event.actor == agent and event.kind in ("completed", "clarified", "note"):
            named = _VERSION.search(event.summary)
            version = schema.version(named[1]) if named else None
            own += [(at, version)] if version else []
    written = {version for _, version in own}  # those are raised when their agent writes them
    found = own + [each for each in raised if each[1] not in written]
    known = {version for _, version in found}
    return sorted(found + [each for each in _stamped(agent, cycle) if each[1] not in known])


def _stamped(agent: str, cycle: Cycle) -> Iterator[tuple[datetime, Version]]:
    """The versions of which the agent's log, and the state, tell the time."""
    begun = cycle.begun or datetime.min.replace(tzinfo=UTC)
    for name, content in cycle.texts.items():
        if name.startswith(f"{cycle.progress}{agent}/"):
            for _, row in schema.numbered_objects(content):
                at, version = cycle.at(row.get("timestamp")), schema.version(row.get("version"))
                if at and version and at >= begun:
                    yield at, version
    for part, owner in _PARTS.items():
        held = schema.obj(cycle.value.get(part))
        at = cycle.at(held.get("last_updated") or held.get("last_run"))
        version = schema.version(held.get("version"))
        if owner == agent and at and version:
            yield at, version


def _statuses(cycle: Cycle, events: Iterable[Dated]) -> Iterator[tuple[datetime, str]]:
    if cycle.begun:
        yield cycle.begun, "running"
    for record in schema.objects(cycle.value.get("iterations")):
        if at := cycle.at(record.get("started_at")):
            yield at, "running"
    for at, event in events:
        word = event.summary.partition(":")[0].strip().lower()
        if event.actor == "user" and word in _USER:
            yield at, _USER[word]
        elif event.kind == "escalated":
            yield at, "paused"
        elif event.kind in ("iteration", "decided") or word.startswith("applied "):
            yield at, "running"
        elif event.kind == "completed" and event.actor not in AGENTS:
            yield at, "completed"
    ended = cycle.at(cycle.value.get("completed_at"))
    if ended and cycle.status in ("completed", "failed"):
        yield ended, cycle.status


def _iterations(cycle: Cycle, events: Iterable[Dated]) -> Iterator[tuple[datetime, int]]:
    for record in schema.objects(cycle.value.get("iterations")):
        number = schema.count(record.get("number", record.get("iteration")))
        at = cycle.at(record.get("started_at"))
        if at and number:
            yield at, number
    for at, event in events:
        if named := _ITERATION.match(event.summary) or _NUMBERED.fullmatch(event.actor):
            yield at, int(named[1])


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


_BASE = "/".join(HOME) + "/"
_COPY = re.compile(r"(.+)-v(\d{1,6}\.\d{1,6}\.\d{1,6})(\.\w+)")
_HEAD = 64 << 10
_BELOW = re.compile(r"\s+\S")


class CycleDerivation(Derivation):
    """Tells what stood in a cycle's files at a moment."""

    def __init__(self) -> None:
        self._read_from: dict[str, bytes] = {}
        self._clues: Clues | None = None

    def derive(self, evidence: Evidence) -> Files:
        """See `Derivation`."""
        at, _, known, there = evidence
        name = next((each for each in (*known, *there) if _is_state(each)), None)
        value = parse_object(known[name] if name in known else there[name][0]) if name else None
        if name is None or value is None:
            return {}
        id = name.removeprefix(_BASE).removesuffix(".json")
        found = self._known(id, value, known, there)
        if _is_over(found, at):
            return dict(known)
        return _Then(found, at, known, there).files(name if name in known else "", value)

    def _known(
        self, id: str, value: Object, known: Mapping[str, bytes], there: Mapping[str, Held]
    ) -> Clues:
        """The clues of the whole cycle, read again only where there is more to read."""
        sources = {
            each: data for each, data in known.items() if progress.is_log(each) or _is_state(each)
        }
        sources |= {each: data for each, (data, _) in there.items() if progress.is_log(each)}
        if self._clues is None or sources != self._read_from:
            texts = {each: _text(data) for each, data in sources.items() if not _is_state(each)}
            self._clues = read(id, value, texts, datetime.now(UTC))
            self._read_from = sources
        return self._clues


def _is_state(name: str) -> bool:
    inside = name.removeprefix(_BASE)
    return name.startswith(_BASE) and scan.STATE.fullmatch(inside) is not None


def _is_over(found: Clues, at: datetime) -> bool:
    """Whether nothing was written after a moment, by the state's own word."""
    updated = found.cycle.at(found.cycle.value.get("updated_at"))
    return updated is not None and at >= updated


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


class _Then:
    """The files of one cycle at one moment."""

    def __init__(
        self, found: Clues, at: datetime, known: Mapping[str, bytes], there: Mapping[str, Held]
    ) -> None:
        self._clues, self._at = found, at
        self._known, self._there = known, there
        self._progress = found.cycle.progress

    def files(self, state: str, value: Object) -> Files:
        """All that can be told; ``state`` is the name of the state's file, "" where it is known."""
        made = dict(self._files_then())
        feedback = f"{self._progress}coordination/{progress.FEEDBACK}"
        if state:
            present = {each for each, data in made.items() if data is not None} | {*self._there}
            then = state_then(value, self._clues, self._at, self._reports(made), present)
            if then is None:
                return dict.fromkeys(self._known)
            made[state] = encoded(then)
            made |= self._feedback(feedback, then, made)
        return made

    def _files_then(self) -> Iterator[tuple[str, bytes | None]]:
        for name, data in self._known.items():
            if not name.startswith(self._progress):
                continue
            folder, _, rest = name.removeprefix(self._progress).partition("/")
            if progress.is_log(name):
                yield name, self._until(name, data)
            elif folder in AGENTS and rest.startswith("history/"):
                yield name, self._copy(folder, rest, data)
            elif folder in AGENTS and "/" not in rest:
                yield from self._page(folder, rest, name, data)
            elif folder == "coordination" and rest.startswith(("phase-results/", "messages/")):
                yield name, self._of_run(rest, data)

    def _until(self, name: str, data: bytes) -> bytes | None:
        """A log, or a document of the coordination, without what bears a later time."""
        text = _text(data)
        late = {
            fact.line
            for fact in timeline.facts_of(self._clues.cycle, name, text)
            if fact.line and fact.at and fact.at > self._at
        }
        if not late:
            return data
        lines = text.split("\n")
        if name.endswith((".log", ".ndjson")):
            kept = lines[: min(late) - 1]
            return ("\n".join(kept) + "\n").encode() if kept else None
        kept, dropped = [], False
        for number, line in enumerate(lines, 1):
            dropped = number in late or (dropped and _BELOW.match(line) is not None)
            kept += [] if dropped else [line]
        return "\n".join(kept).encode()

    def _version(self, agent: str) -> Version | None:
        return last(self._clues.versions[agent], self._at)

    def _copy(self, agent: str, rest: str, data: bytes) -> bytes | None:
        """A copy of an earlier version: made when the next one was begun."""
        named, version = _COPY.fullmatch(rest), self._version(agent)
        kept = schema.version(named[2]) if named else None
        return data if kept and version and version > kept else None

    def _page(
        self, agent: str, rest: str, name: str, data: bytes
    ) -> Iterator[tuple[str, bytes | None]]:
        """An agent's document, as it was in its version; nothing where that is not kept."""
        runs, version = self._clues.runs[agent], self._version(agent)
        if version is None:
            if runs and latest(runs, self._at) is None:
                yield name, None
            return
        if rest == "plan.json" and self._was_marked_later(data):
            return
        stem, dot, ending = rest.rpartition(".")
        copy = f"{self._progress}{agent}/history/{stem}-v{schema.written(version)}{dot}{ending}"
        own, ends = _version_of(rest, data) == version, done_by(runs, self._at)
        if own and ends and ends[-1] is done_by(runs, self._clues.cycle.now)[-1]:
            yield name, data  # of two with this version it is the later one
        elif copy in self._known or copy in self._there:
            yield name, self._known[copy] if copy in self._known else self._there[copy][0]
        elif own:
            yield name, data

    def _was_marked_later(self, data: bytes) -> bool:
        """Whether a plan tells how far its tasks are, and CD still had to work on them."""
        tasks = schema.objects((parse_object(data) or {}).get("tasks"))
        runs = self._clues.runs["cd"]
        ends = done_by(runs, self._clues.cycle.now)
        undone = not ends or ends[-1].ended is None or ends[-1].ended > self._at
        return bool(runs) and undone and any("status" in each for each in tasks)

    def _of_run(self, rest: str, data: bytes) -> bytes | None:
        """What was written for a run, or after it."""
        folder, _, file = rest.partition("/")
        run = self._clues.run(file.rpartition(".")[0])
        when = (run.began if folder == "messages" else run.ended) if run else None
        return data if when and when <= self._at else None

    def _reports(self, made: Files) -> dict[str, PhaseResult]:
        """What agents had reported, by the name of the run."""
        start = f"{self._progress}coordination/phase-results/"
        texts = {each: data for each, (data, _) in self._there.items() if each.startswith(start)}
        texts |= {each: data for each, data in made.items() if data and each.startswith(start)}
        found = {
            each.removeprefix(start).rpartition(".")[0]: parse_result(_text(data))
            for each, data in texts.items()
        }
        return {key: said for key, said in found.items() if said is not None}

    def _feedback(self, name: str, then: Object, made: Files) -> Files:
        """feedback.md as our orchestrator keeps it: made of the timeline and the state."""
        log = f"{self._progress}coordination/{progress.TIMELINE}"
        log_then = made[log] if log in made else self._there.get(log, (None, 0.0))[0]
        held = made.get(name)
        if name not in self._known or held is None or log_then is None:
            return {}
        return {name: progress.feedback_text(_text(held), _text(log_then), then).encode()}


def _version_of(rest: str, data: bytes) -> Version | None:
    if rest.endswith(".json"):
        return schema.version((parse_object(data) or {}).get("version"))
    return schema.version_in(_text(data[:_HEAD]))


_MARK = re.compile(r"\n*--- ITERATION (\d{1,6}) ---\n")

_WORK = {"requirements": "ra", "exploration": "ep", "plan": "ep", "implementation": "cd",
         "changes": "cd", "test_results": "vas", "validation": "vas"}  # fmt: skip

_AGENT = ("started_at", "completed_at", "last_message", "error", "run", "target_version",
          "version", "attempts", "resumed_from")  # fmt: skip

_MADE = ("made_by", "chosen_option", "made_at", "rationale", "impact", "free", "applied_at")
_RESOLVED = ("resolution", "resolved_at", "resolved_by")
_ENDED = ("completed_at", "failure_reason")
_OVER = ("completed", "failed")
_RECORD = ("completed_at", "resolved", "test_results", "issues_found")


def state_then(
    final: Object,
    known: Clues,
    at: datetime,
    reports: Mapping[str, PhaseResult],
    there: Container[str],
) -> Object | None:
    """The state at a moment; None where the cycle was not there yet.

    Args:
        final: the state as it is known, from later.
        known: what is known of when.
        at: the moment.
        reports: what agents had reported by then, by the name of the run.
        there: the names of the files that were there.
    """
    begun = known.cycle.begun
    if begun is not None and begun > at:
        return None
    state: Object = copy.deepcopy(final)
    state["status"] = last(known.statuses, at) or "running"
    state["current_iteration"] = number = _iteration(final, known, at)
    allowed = last(known.limits, at)
    if allowed is not None:
        state["max_iterations"] = allowed
    _description(state, number)
    if state["status"] not in _OVER:
        for key in _ENDED:
            state.pop(key, None)
    moments = [when for when, _ in known.events if when <= at]
    state["updated_at"] = schema.stamp_of(max(moments, default=begun or at))
    agents = schema.obj(state.get("agents"))
    for name in AGENTS:
        if isinstance(agents.get(name), dict):
            _agent(schema.obj(agents[name]), name, known, at, there)
    held = schema.obj(state.get("coordination"))
    _coordination(held, known, at)
    _waiting(agents, schema.objects(held.get("blockers")), known, at)
    _dependencies(agents, str(state["status"]))
    _phases(state, known, at)
    _work(state, known, at)
    _tasks(state, known, at, reports)
    _records(state, known, at, number, reports)
    for key in ("revision", "version", "raise_versions"):
        state.pop(key, None)
    return state


def _iteration(final: Object, known: Clues, at: datetime) -> int:
    found = last(known.iterations, at)
    if found is not None:
        return found
    started = any(latest(runs, at) for runs in known.runs.values())
    return min(1 if started else 0, schema.count(final.get("current_iteration")) or 0)


def _description(state: Object, number: int) -> None:
    """Without what later iterations added to the task."""
    text = schema.text(state.get("description"))
    cut = next((m.start() for m in _MARK.finditer(text) if int(m[1]) > number), len(text))
    later = len(_MARK.findall(text[cut:]))
    if "description" in state:
        state["description"] = text[:cut]
    history = state.get("task_history")
    if later and isinstance(history, list):
        state["task_history"] = history[: max(1, len(history) - later)]


def _agent(agent: Object, name: str, known: Clues, at: datetime, there: Container[str]) -> None:
    runs = known.runs[name]
    run = latest(runs, at)
    ends = done_by(runs, at)
    for key in _AGENT:
        agent.pop(key, None)
    if runs or agent.get("status") == "idle":
        agent["status"] = status_of(known, run, at) if run else "idle"
    else:
        agent.pop("status", None)  # that it ran is known, and not when
    if run and run.began:
        agent["started_at"] = schema.stamp_of(run.began)
    if run and run.key:
        agent["run"] = run.key
    if run and run.ended and run.ended <= at:
        agent["completed_at" if run.how == "completed" else "error"] = (
            schema.stamp_of(run.ended) if run.how == "completed" else run.message or "failed"
        )
        agent |= {"last_message": run.message} if run.message else {}
    version = last(known.versions[name], at)
    if version:
        agent["version"] = schema.written(version)
    files = schema.words(agent.get("output_files"))
    agent["output_files"] = [f for f in files if ends and f.replace("\\", "/") in there]
    rounds = [last(known.iterations, each.ended) for each in ends if each.ended]
    agent["iterations_completed"] = len({each or 1 for each in rounds})


def _waiting(agents: Object, blockers: Iterable[Object], known: Clues, at: datetime) -> None:
    """An agent whose run ended with a blocker that was still open waits."""
    for each in blockers:
        name = schema.text(each.get("reported_by")).lower()
        agent = schema.obj(agents.get(name))
        run = latest(known.runs.get(name, ()), at)
        when = known.cycle.at(each.get("reported_at"))
        if each.get("status") != "open" or run is None or agent.get("status") != "completed":
            continue
        if when is None or run.ended is None or when >= run.ended:
            agent["status"] = "waiting"


def _dependencies(agents: Object, status: str) -> None:
    """What others derive from the order, where the state tells it."""
    words = {name: schema.text(schema.obj(agents.get(name)).get("status")) for name in AGENTS}
    for name in AGENTS:
        agent = schema.obj(agents.get(name))
        ready = not DEPENDS[name] or words[DEPENDS[name]] == "completed"
        if "ready" in agent:
            agent["ready"] = ready
        if "can_start" in agent:
            agent["can_start"] = ready and status == "running" and words[name] == "idle"


def _phases(state: Object, known: Clues, at: datetime) -> None:
    ended = [
        (run.ended, name) for name in AGENTS for run in done_by(known.runs[name], at) if run.ended
    ]
    state["completed_phases"] = [name for _, name in sorted(ended)]
    begun = [
        (run.began or run.ended, name) for name in AGENTS if (run := latest(known.runs[name], at))
    ]
    last = max(((when, name) for when, name in begun if when), default=None)
    state["current_phase"] = last[1] if last else "init"
    if state["status"] == "completed":
        state["current_phase"] = "complete"
    if "phase_errors" in state:
        state["phase_errors"] = _by(state["phase_errors"], known, at, "timestamp")


def _by(entries: object, known: Clues, at: datetime, key: str) -> list[Object]:
    """The entries of a list that bear no later time."""
    return [each for each in schema.objects(entries) if not _late(known, each.get(key), at)]


def _work(state: Object, known: Clues, at: datetime) -> None:
    """What agents had told of their work: nothing before their first run was done."""
    for part, name in _WORK.items():
        held = state.get(part)
        if part not in state or held is None:
            continue
        runs = known.runs[name]
        ends = done_by(runs, at)
        if not ends:
            state[part] = [] if isinstance(held, list) else None
            continue
        if part == "changes":
            _changes(held, known, at)
            continue
        if not isinstance(held, dict):
            continue
        newest = done_by(runs, known.cycle.now)[-1]
        if ends[-1] is newest:
            told_later = known.cycle.at(held.get("last_updated") or held.get("last_run"))
            if told_later is None or told_later <= at:
                continue
        if part == "test_results":  # the file of that moment tells them
            state[part] = None
            continue
        version = last(known.versions[name], at)
        held["version"] = schema.written(version) if version else None
        held["last_updated"] = schema.stamp_of(ends[-1].ended or at)
        for key in ("summary", "specification", "edge_cases"):
            held.pop(key, None)


def _changes(held: object, known: Clues, at: datetime) -> None:
    if not isinstance(held, dict):
        return
    if isinstance(held.get("changes"), list):
        listed = _by(held["changes"], known, at, "timestamp")
        held["changes"] = listed
        held["total_files"] = len({schema.text(each.get("file")) for each in listed})
    marks = schema.obj(held.get("iteration_markers"))
    if marks:
        held["iteration_markers"] = {
            key: said for key, said in marks.items() if not _late(known, said, at)
        }


def _late(known: Clues, said: object, at: datetime) -> bool:
    when = known.cycle.at(said)
    return when is not None and when > at


def _tasks(state: Object, known: Clues, at: datetime, reports: Mapping[str, PhaseResult]) -> None:
    """The plan's tasks: done are those of which CD had said so; else that is not known."""
    ends = done_by(known.runs["cd"], at)
    if ends and ends[-1] is done_by(known.runs["cd"], known.cycle.now)[-1]:
        return
    done = {
        id for run in ends if run.key in reports for id in reports[run.key].items("tasks_completed")
    }
    all_reported = all(run.key in reports for run in ends)
    for task in schema.objects(schema.obj(state.get("plan")).get("tasks")):
        if not ends:
            task["status"] = "pending"
        elif all_reported:
            task["status"] = "completed" if task.get("id") in done else "pending"
        else:
            task.pop("status", None)


def _records(
    state: Object, known: Clues, at: datetime, number: int, reports: Mapping[str, PhaseResult]
) -> None:
    if "iterations" not in state:
        return
    found = []
    for each in schema.objects(state["iterations"]):
        own = schema.count(each.get("number", each.get("iteration"))) or 0
        if own > number or _late(known, each.get("started_at"), at):
            continue
        ended, over = known.cycle.at(each.get("completed_at")), state["status"] in _OVER
        if own == number and (ended is None or ended > at) and not over:
            for key in _RECORD:
                each.pop(key, None)
            each["agent_results"] = _results(each, known, at, reports)
        found.append(each)
    state["iterations"] = found


def _results(
    record: Object, known: Clues, at: datetime, reports: Mapping[str, PhaseResult]
) -> Object:
    """What agents had reported in an iteration that went on."""
    began = known.cycle.at(record.get("started_at"))
    found: Object = {}
    for name, said in schema.obj(record.get("agent_results")).items():
        ends = done_by(known.runs.get(name, ()), at)
        if not ends or (began and ends[-1].ended and ends[-1].ended <= began):
            continue
        report = reports.get(ends[-1].key)
        found[name] = {**schema.obj(said), "status": report.status} if report else said
    return found


def _coordination(held: Object, known: Clues, at: datetime) -> None:
    if isinstance(held.get("feedback_log"), list):
        sent = _by(held["feedback_log"], known, at, "timestamp")
        held["feedback_log"] = [_without_later(each, known, at) for each in sent]
    if isinstance(held.get("pending_decisions"), list):
        held["pending_decisions"] = [
            _open(each, "made_at", _MADE, "pending", known, at)
            for each in _asked(held["pending_decisions"], "asked_at", known, at)
        ]
    if isinstance(held.get("blockers"), list):
        held["blockers"] = [
            _open(each, "resolved_at", _RESOLVED, "open", known, at)
            for each in _asked(held["blockers"], "reported_at", known, at)
        ]
    if isinstance(held.get("requests"), list):
        asked = _by(held["requests"], known, at, "at")
        held["requests"] = [_without_later(each, known, at) for each in asked]
    if "outbox" in held:
        held["outbox"] = []


def _without_later(entry: Object, known: Clues, at: datetime) -> Object:
    return {
        key: said
        for key, said in entry.items()
        if not (key.endswith("_at") and _late(known, said, at))
    }


def _asked(entries: object, key: str, known: Clues, at: datetime) -> list[Object]:
    """The entries that were there: by their own time, else by the first line that names them."""
    found = []
    for each in schema.objects(entries):
        when = known.cycle.at(each.get(key) or each.get("timestamp") or each.get("created_at"))
        when = when or known.asked(schema.text(each.get("id")))
        if when is None or when <= at:
            found.append(each)
    return found


def _open(
    entry: Object, key: str, made: Iterable[str], word: str, known: Clues, at: datetime
) -> Object:
    """An entry as it was before a later answer; where nobody wrote when, as it is."""
    if not _late(known, entry.get(key), at):
        return entry
    return {**{k: said for k, said in entry.items() if k not in made}, "status": word}
