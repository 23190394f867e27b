"""What happened in a cycle: the state's own stamps, the coordination's lines, the logs' rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from acp_core.files.records import File
from acp_core.model import Event, Tone
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import Cycle, LogRow, numbered_objects, parse_part

EVENTS = 5_000  # events that are shown, the latest ones
_DAY = r"\d{4}[-/]\d\d[-/]\d\d"
_HOUR = r"\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?"
_STAMP = rf"{_DAY}(?:[T ]{_HOUR} ?(?:Z|[+-]\d\d:?\d\d)?)?|{_HOUR}"
_LINE = re.compile(
    rf"^[-*] \[?({_STAMP})(?!\d)\]?:? *(?:([A-Za-z][\w-]{{0,30}}): *)?(.*)$", re.ASCII
)
_CLOCK = re.compile(_HOUR, re.ASCII)
_BELOW = re.compile(r"^\s+[-*] ([A-Za-z][\w -]{0,30}): *(.*)$", re.ASCII)
_SECTIONS = (("decision", "decided"), ("blocker", "blocked"))
_LONG = 400  # characters of a summary that grows
_EARLY = timedelta(days=1)  # a row so much older than its cycle bears a wrong time
_NIGHT = 6  # a clock that goes back by more hours stands for the next day
_TONES = {
    "started": Tone.START,
    "completed": Tone.DONE,
    "feedback": Tone.REVISE,
    "failed": Tone.BLOCKED,
    "blocked": Tone.BLOCKED,
    "escalated": Tone.REVIEW,
    "clarified": Tone.ACCEPT,
    "decided": Tone.DECIDE,
    "iteration": Tone.START,
}


_KEYS = ("file", "task", "change", "description", "message", "hypothesis", "observation",
         "outcome", "type", "decision", "chosen_option")  # fmt: skip
_DATA = ("issue", "name", "file", "path", "feature", "impact")  # of a discovery
OVER = ("completed", "failed")  # kinds of events by which a run ends
_RANKS = {"timeline.md": 0, "feedback.md": 2}  # where the same is told, the first one counts
_RECORD = re.compile(r"(?:dec|blk)-\d|blocker$")
_KINDS = (
    ("started, run", "started"),
    ("completed, v", "completed"),
    ("cycle complete", "completed"),
    ("feedback to", "feedback"),
    ("escalated to", "escalated"),
    ("blocker ", "blocked"),
    ("run ", "failed"),
    ("clarified ", "clarified"),
    ("iteration ", "iteration"),
    ("decide", "decided"),
)
# The words in which others tell the same (specification, "Coordination Log"): of an agent's own
# work, and of the whole.
_OF_AGENTS = (
    (re.compile(r"clarified\b", re.I), "clarified"),
    (re.compile(r"(?:[\w,]+ ){0,6}found (?:a )?blocker\b", re.I), "blocked"),
    (re.compile(r"(?:re-?)?start(?:ing|ed)\b|(?:\w+ ){1,6}started\b", re.I), "started"),
    (re.compile(r"(?!.*\bnot\b)(?:\w+ ){0,6}(?:completed?|finished)\b", re.I), "completed"),
)
_OF_NOBODY = re.compile(r"init|iter(?:ation)?[-_ ]?\d*")  # a step of the cycle, not who acts
_OF_THE_WHOLE = (
    (re.compile(r"sending feedback\b", re.I), "feedback"),
    (re.compile(r"(?:cycle )?completed?$", re.I), "completed"),
)


class Fact(NamedTuple):
    """Something that is told to have happened, and where it is told."""

    at: datetime | None
    how: str
    actor: str
    kind: str
    summary: str
    name: str
    line: int | None = None


def timeline(cycle: Cycle) -> tuple[Event, ...]:
    """Every event, oldest first; those without a time come first."""
    facts = [*_agents(cycle), *_feedback(cycle), *_written(cycle)]
    for name, content in cycle.texts.items():
        facts += facts_of(cycle, name, content)
    facts = _once([*facts, *_iterations(cycle, facts)])
    facts.sort(key=lambda f: (f.at is not None, f.at.timestamp() if f.at else 0.0))
    seen: Counter[str] = Counter()
    shown = enumerate(facts[-EVENTS:], 1)
    return tuple(_event(cycle, number, fact, seen) for number, fact in shown)


def facts_of(cycle: Cycle, name: str, content: str) -> list[Fact]:
    """What a log, or a document of the coordination, tells, in the order of its lines."""
    return _rows(cycle, name, content) if _is_log(name) else _lines(cycle, name, content)


def _once(facts: list[Fact]) -> list[Fact]:
    """Each thing once: feedback.md repeats timeline.md, and both repeat the state's own stamps."""
    known: set[tuple[datetime | None, str, str]] = set()
    said: set[tuple[datetime | None, str, str]] = set()
    kept = []
    times = {each.at for each in facts if each.name.endswith("/timeline.md")}
    for fact in sorted(facts, key=_rank):
        recorded = _RECORD.match(fact.actor) or _RECORD.match(fact.summary.lower())
        if fact.name.endswith("/feedback.md") and fact.at in times and recorded:
            continue  # the record of what timeline.md tells at that moment
        same = fact.at, fact.actor, fact.summary
        kind = fact.at, fact.actor, fact.kind
        if fact.at and (same in known or (fact.line is None and kind in said)):
            continue
        known.add(same)
        said |= {kind} if fact.kind in _TONES and fact.line else set()
        kept.append(fact)
    return kept


def _rank(fact: Fact) -> int:
    """Which of several that tell the same counts: the lowest. A line of a file is worth more."""
    return _RANKS.get(fact.name.rpartition("/")[2], 1) if fact.line else max(_RANKS.values()) + 1


def _is_log(name: str) -> bool:
    return name.endswith((".log", ".ndjson"))


def _agents(cycle: Cycle) -> list[Fact]:
    facts = []
    state = cycle.record.file.name
    for name in schema.AGENTS:
        agent = cycle.agent(name)
        for at, kind in ((agent.started_at, "started"), (agent.completed_at, "completed")):
            if at:
                facts.append(Fact(at, "recorded", name, kind, f"{name} {kind}", state))
    return facts + [
        Fact(each.timestamp, "recorded", each.phase or "?", "failed", each.error, state)
        for each in cycle.state.phase_errors
    ]


def _iterations(cycle: Cycle, facts: list[Fact]) -> Iterator[Fact]:
    """The runs that only the records of the iterations tell of: when each ended at the latest."""
    ends = [(each.actor, each.at) for each in facts if each.kind in OVER and each.at]
    seen: set[str] = set()
    for record in cycle.state.iterations:
        number, begun, ended = record.label, record.started_at, record.completed_at
        if ended is None or number in seen:
            continue
        seen.add(number)
        for name, result in record.agent_results.items():
            said = result.status
            known = any(who == name and (begun or ended) <= at <= ended for who, at in ends)
            if known or name not in schema.AGENTS or said in ("", "pending"):
                continue
            kind = "failed" if said == "failed" else "completed"
            summary = f"{said} in iteration {number}"
            yield Fact(ended, "recorded", name, kind, summary, cycle.record.file.name)


def _feedback(cycle: Cycle) -> list[Fact]:
    name = cycle.record.file.name
    return [
        Fact(
            each.timestamp,
            "recorded",
            each.source or "?",
            "feedback",
            f"to {each.target or '?'}: {each.content}",
            name,
        )
        for each in cycle.state.feedback
    ]


def _written(cycle: Cycle) -> list[Fact]:
    """When the agents' documents were last written, by the time of their files: once a minute.

    Copies and checkouts give all files the time of the copy: where one is younger than the state
    by a day, or all have the same time, nothing is told.
    """
    known = cycle.state.updated_at
    files = [
        file
        for file in cycle.files
        if (parts := file.name.removeprefix(cycle.progress).split("/"))[0] in schema.AGENTS
        and len(parts) == 2
        and not _is_log(file.name)
    ]
    times = {file.changed.replace(microsecond=0) for file in files}
    if known is None or len(times) < 2 or max(times) - known > timedelta(days=1):
        return []
    wrote: dict[tuple[str, datetime], list[File]] = {}
    for file in files:
        agent = file.name.removeprefix(cycle.progress).split("/")[0]
        wrote.setdefault((agent, file.changed.replace(second=0, microsecond=0)), []).append(file)
    return [
        Fact(
            max(file.changed for file in several).replace(microsecond=0),
            "file time",
            agent,
            "written",
            ", ".join(file.path.name for file in several),
            several[0].name,
        )
        for (agent, _), several in wrote.items()
    ]


def _lines(cycle: Cycle, name: str, content: str) -> list[Fact]:
    """The lines of the coordination; those of decisions and blockers with what stands below."""
    facts: list[Fact] = []
    section, nights, before = "", 0, ""
    inside = False  # what stands below an item that is an event
    for number, line in enumerate(content.split("\n"), 1):
        if line.startswith("#"):
            section, nights, before, inside = _section(line), 0, "", False
        match = _LINE.match(line[:2_000])
        if match is None:
            below = _BELOW.match(line[:500])
            if below and inside:
                facts[-1] = _more(facts[-1], *below.groups())
            inside = inside and not line.startswith(("-", "*"))
            continue
        stamp, actor, summary = match.groups()
        if _CLOCK.fullmatch(stamp):
            nights += bool(before) and int(before[:2]) - int(stamp[:2]) > _NIGHT
            before = stamp
            at, how = _on_day(cycle, stamp, nights), "inferred"
        else:
            at, how = cycle.at(stamp), "recorded"
            if at is None:
                inside = False
                continue
        who = (actor or "orchestrator").lower()
        who = "orchestrator" if who == "blocker" or _OF_NOBODY.fullmatch(who) else who
        sentence = summary.strip()
        kind = section or _kind(who, sentence)
        facts.append(Fact(at, how, who, kind, sentence, name, number))
        inside = bool(section)
    return facts


def _kind(actor: str, content: str) -> str:
    """What a line of the coordination tells of, by its first words."""
    for start, kind in _KINDS:
        if content.startswith(start):
            return kind
    patterns = _OF_AGENTS if actor in schema.AGENTS else _OF_THE_WHOLE
    return next((kind for pattern, kind in patterns if pattern.match(content[:_LONG])), "note")


def _section(heading: str) -> str:
    """The kind of what stands below a heading of the coordination's log, "" where it differs."""
    title = heading.lstrip("# ").lower()
    return next((kind for word, kind in _SECTIONS if title.startswith(word)), "")


def _more(fact: Fact, key: str, said: str) -> Fact:
    """A decision or a blocker with one more thing that is told of it."""
    if key.lower() == "reported by":
        return fact._replace(actor=said.strip().lower() or fact.actor)
    if len(fact.summary) > _LONG:
        return fact
    return fact._replace(summary=f"{fact.summary} · {key}: {said.strip()}")


def _on_day(cycle: Cycle, clock: str, nights: int) -> datetime | None:
    """A time without its day: the cycle's first one, so many nights later."""
    created = cycle.begun
    if created is None or created.year > 9_000:
        return None
    found = schema.moment(f"{created.astimezone(schema.LOCAL).date()}T{clock}")
    return found + timedelta(days=nights) if found else None


def _rows(cycle: Cycle, name: str, content: str) -> list[Fact]:
    """The rows of a log; one that is written as text is read as such."""
    facts = []
    holder = name.removeprefix(cycle.progress).split("/")[0]
    if not content.lstrip().startswith("{"):
        return _lines(cycle, name, content)
    begun, written = cycle.begun, {file.name: file.changed for file in cycle.files}
    ended = cycle.state.completed_at  # a copy's files are younger than the end
    for number, row in numbered_objects(content):
        entry = parse_part(LogRow, row)
        about = [schema.text(row.get(key)) for key in _KEYS]
        about += [schema.text(entry.data.get(key)) for key in _DATA]
        at, how = cycle.at(row.get("timestamp", row.get("ts"))), "recorded"
        if at and begun and begun - at > _EARLY:
            at, how = written.get(name), "file time"
            at = min(at, ended) if at and ended and begun < ended else at
        actor = entry.agent or entry.by or holder
        summary = " ".join(each for each in (entry.action, *about) if each)
        facts.append(Fact(at, how, actor, "log", summary, name, number))
    return facts


def _short(cycle: Cycle, name: str) -> str:
    """A file's name as people can read it, and still no other cycle's."""
    inside = name.removeprefix(cycle.progress).removeprefix("coordination/")
    return f"{cycle.id.removeprefix('cycle-v1-')}/{inside}"


def _event(cycle: Cycle, number: int, fact: Fact, seen: Counter[str]) -> Event:
    name = clean_line(fact.name)
    place = f"{fact.kind}:{fact.actor}:{fact.at}"
    if fact.line:
        place = f"{_short(cycle, fact.name)}:{fact.line}"
    seen[place] += 1
    id = clean_line(place) if seen[place] == 1 else f"{clean_line(place)}#{seen[place]}"
    return Event(
        id=id,
        order=number,
        source=name,
        kind=fact.kind,
        tone=_TONES.get(fact.kind, Tone.OTHER),
        actor=clean_name(fact.actor, 200),
        at=fact.at,
        at_source=fact.how if fact.at else "",
        summary=clean_line(fact.summary),
        document=name,
        line=fact.line,
    )
