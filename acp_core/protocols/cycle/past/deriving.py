"""Which files a cycle had at a moment of which no recording tells, and what they held.

Agents' documents are known by their versions: a copy in ``history/`` is what stood there until the
next version; logs by the times of their rows; what is written once, for or after a run, by that run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from acp_core.model.past import Derivation, Evidence, Files, Held
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.past import clues
from acp_core.protocols.cycle.past.clues import Clues
from acp_core.protocols.cycle.past.state_then import state_then
from acp_core.protocols.cycle.read import progress, scan
from acp_core.protocols.cycle.schema import AGENTS, HOME, Object, Version
from acp_core.protocols.cycle.schema.phase_result import PhaseResult, parse
from acp_core.protocols.cycle.view import timeline
from acp_core.protocols.cycle.write import coordination
from acp_core.protocols.cycle.write.store import encoded

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
        value = _object(known[name] if name in known else there[name][0]) if name else None
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
            self._clues = clues.read(id, value, texts, datetime.now(UTC))
            self._read_from = sources
        return self._clues


def _is_state(name: str) -> bool:
    inside = name.removeprefix(_BASE)
    return name.startswith(_BASE) and scan.STATE.fullmatch(inside) is not None


def _is_over(found: Clues, at: datetime) -> bool:
    """Whether nothing was written after a moment, by the state's own word."""
    updated = found.cycle.at(found.cycle.value.get("updated_at"))
    return updated is not None and at >= updated


def _object(data: bytes) -> Object | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


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
        feedback = f"{self._progress}coordination/{coordination.FEEDBACK}"
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
        return clues.last(self._clues.versions[agent], self._at)

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
            if runs and clues.latest(runs, self._at) is None:
                yield name, None
            return
        if rest == "plan.json" and self._was_marked_later(data):
            return
        stem, dot, ending = rest.rpartition(".")
        copy = f"{self._progress}{agent}/history/{stem}-v{schema.written(version)}{dot}{ending}"
        own, ends = _version_of(rest, data) == version, clues.done_by(runs, self._at)
        if own and ends and ends[-1] is clues.done_by(runs, self._clues.cycle.now)[-1]:
            yield name, data  # of two with this version it is the later one
        elif copy in self._known or copy in self._there:
            yield name, self._known[copy] if copy in self._known else self._there[copy][0]
        elif own:
            yield name, data

    def _was_marked_later(self, data: bytes) -> bool:
        """Whether a plan tells how far its tasks are, and CD still had to work on them."""
        tasks = schema.objects((_object(data) or {}).get("tasks"))
        runs = self._clues.runs["cd"]
        ends = clues.done_by(runs, self._clues.cycle.now)
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
            each.removeprefix(start).rpartition(".")[0]: parse(_text(data))
            for each, data in texts.items()
        }
        return {key: said for key, said in found.items() if said is not None}

    def _feedback(self, name: str, then: Object, made: Files) -> Files:
        """feedback.md as our orchestrator keeps it: made of the timeline and the state."""
        log = f"{self._progress}coordination/{coordination.TIMELINE}"
        log_then = made[log] if log in made else self._there.get(log, (None, 0.0))[0]
        held = made.get(name)
        if name not in self._known or held is None or log_then is None:
            return {}
        return {name: coordination.feedback_text(_text(held), _text(log_then), then).encode()}


def _version_of(rest: str, data: bytes) -> Version | None:
    if rest.endswith(".json"):
        return schema.version((_object(data) or {}).get("version"))
    return schema.version_in(_text(data[:_HEAD]))
