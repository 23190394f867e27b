"""What a cycle shows beyond the common words: pipeline, plan, documents, decisions, feedback, tests, status.

The plan is a tree of what each task waits for, with the path that decides how long it takes.
Documents bear their versions, and what changed in them (a document is copied to ``history/`` under
its version before it is written anew). Source: development cycle specification, "Dependency
Resolution" and "Progress Markdown Files".
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from acp_core.files.records import File, read_text
from acp_core.model import Document, DocumentText, Panel, Row, Target, Tone, format
from acp_core.model.text import clean, clean_line, is_clean
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.schema import (
    AGENTS,
    DECIDE_ACT,
    HOME,
    RESOLVE_ACT,
    SELECT_ACT,
    Cycle,
    Object,
    Project,
    Task,
    Version,
)
from acp_core.protocols.cycle.state import earlier, history
from acp_core.protocols.kit.documents import LIMIT, document

_HOURS = {"small": 1.0, "medium": 3.0, "large": 6.0}  # small below 1 h, medium 1 to 4, large above
_DEEPEST = 12


class Leaf(NamedTuple):
    """A task in the tree.

    ``waits`` says what blocks it, "" for nothing; ``path`` whether it lies on the critical path,
    and whether the plan says so or it was worked out.
    """

    task: Task
    depth: int
    waits: str
    path: str


def tree(cycle: Cycle) -> Iterator[Leaf]:
    """The tasks, each below the last one that it depends on; those without an id of their own come last."""
    known: dict[str, Task] = {}
    others = []
    for task in state.tasks(cycle):
        if task.id and task.id not in known:
            known[task.id] = task
        else:
            others.append(task)
    needs = {id: task.depends_on for id, task in known.items()}
    stuck = state.circle(needs)
    critical = set(state.critical_path(cycle))
    derived = set() if critical else set(longest(known, needs, stuck))
    below: dict[str, list[str]] = {}
    for id in known:
        inside = [each for each in needs[id] if each in known]
        below.setdefault("" if not inside or id in stuck else inside[-1], []).append(id)
    pending = [(id, 0) for id in reversed(below.get("", []))]
    while pending:
        id, depth = pending.pop()
        path = "critical" if id in critical else "critical, computed" * (id in derived)
        yield Leaf(known[id], min(depth, _DEEPEST), _waits(id, known, needs[id], stuck), path)
        pending += [(each, depth + 1) for each in reversed(below.get(id, []))]
    yield from (Leaf(task, 0, "", "") for task in others)


def _waits(id: str, known: dict[str, Task], needs: Sequence[str], stuck: set[str]) -> str:
    task, word = known[id], known[id].state
    if word == "completed":
        return ""
    reasons = []
    for each in needs:
        if each not in known:
            reasons.append(f"{each}, which is not a task")
        elif (before := known[each].state) != "completed":
            reasons.append(f"{each} ({before.replace('_', ' ')})" if before else each)
    waits = f"waits for {', '.join(reasons)}" if reasons else ""
    if waits and id in stuck and any(each in stuck for each in needs):
        waits += ", in a circle"
    if word == "blocked":
        own = task.blocked_reason or task.blocked_by or task.reason
        waits = "; ".join(filter(None, (own, waits))) or "blocked, no reason given"
    return waits


def longest(
    known: Mapping[str, Task], needs: Mapping[str, Sequence[str]], stuck: set[str]
) -> list[str]:
    """The chain of undone tasks that takes longest, by their effort; [] where nothing depends."""
    left = {
        id: [each for each in needs[id] if each in known and not _done(known[each])]
        for id, task in known.items()
        if id not in stuck and not _done(task)
    }
    hours: dict[str, float] = {}
    before: dict[str, str] = {}
    open = dict(left)
    while free := [id for id, needed in open.items() if all(each in hours for each in needed)]:
        for id in free:
            del open[id]
            last = max(left[id], key=lambda each: hours[each], default="")
            before[id] = last
            hours[id] = _hours(known[id]) + hours.get(last, 0.0)
    path: list[str] = []
    at = max(hours, key=lambda id: hours[id], default="")
    while at:
        path.insert(0, at)
        at = before[at]
    return path if len(path) > 1 else []


def _done(task: Task) -> bool:
    return task.state == "completed"


def _hours(task: Task) -> float:
    if task.estimated_hours and task.estimated_hours > 0:
        return task.estimated_hours
    return _HOURS.get(task.effort.lower(), 1.0)


_DOCUMENTS = 1_000
_LINES = 2_000  # of each of two texts that are compared
_AROUND = 3  # unchanged lines that are shown around a change
_MAIN = (*state.DOCUMENTS.values(), "vas/summary.md", "cd/issues.md")
_FOLDERS = (*AGENTS, "coordination")


class Compared(NamedTuple):
    """A document and the latest earlier version of it that is kept."""

    id: str
    inside: str
    old: File
    new: File
    version: Version


def documents(project: Project, cycle: Cycle) -> tuple[Document, ...]:
    """All documents: those of the agents first, then the states."""
    found = [_own(cycle, file) for file in _ordered(cycle)]
    found += [_changes(each) for each in compared(cycle)]
    states = [each.record.file for each in project.cycles if not each.lost]
    states += [project.prep.file] if project.prep else []
    found += [
        document(file, file.name.removeprefix("/".join(HOME) + "/"), "state") for file in states
    ]
    return tuple(found)


def _own(cycle: Cycle, file: File) -> Document:
    inside = file.name.removeprefix(cycle.progress)
    folder, _, rest = inside.partition("/")
    version = state.document_versions(cycle).get(inside)
    title = f"{inside} v{schema.written(version)}" if version else inside
    if "/" in rest:  # copies of earlier versions, and what was sent and said: behind the panels
        return document(file, title, "state")
    return document(file, title, "deliverable" if folder in AGENTS else "document")


def order(inside: str) -> tuple[bool, int, bool, int, str]:
    """Where a document stands: agents in their order, then the coordination; the past comes last.

    ``inside`` is its name in the progress folder.
    """
    folder, _, rest = inside.partition("/")
    place = _FOLDERS.index(folder) if folder in _FOLDERS else len(_FOLDERS)
    main = _MAIN.index(inside) if inside in _MAIN else len(_MAIN)
    return "/" in rest, place, rest.endswith((".log", ".ndjson")), main, inside


def _ordered(cycle: Cycle) -> list[File]:
    return sorted(
        cycle.files[:_DOCUMENTS], key=lambda file: order(file.name.removeprefix(cycle.progress))
    )


def compared(cycle: Cycle) -> Iterator[Compared]:
    """Each document of which an earlier version is kept."""
    known = history(cycle)
    for file in _ordered(cycle):
        inside = file.name.removeprefix(cycle.progress)
        if inside.count("/") != 1 or file.link:
            continue
        before = [each for each in earlier(cycle, inside, known) if not each[1].link]
        if before:
            version, old = before[-1]
            id = clean_line(f"{file.name} since v{schema.written(version)}")
            yield Compared(id, inside, old, file, version)


def _changes(each: Compared) -> Document:
    title = clean_line(f"{each.inside} since v{schema.written(each.version)}")
    version = "-".join(f"{f.changed.timestamp()}-{f.size}" for f in (each.old, each.new))
    changed = each.new.changed
    return Document(each.id, title, "text", "state", None, None, changed, version)


def changes(known: Document, each: Compared) -> DocumentText:
    """What changed in a document since its latest earlier version, line by line."""
    texts = []
    for file in (each.old, each.new):
        text, problem = read_text(file, LIMIT)
        if problem:
            note = clean_line(f"{file.path.name} {problem}")
            return DocumentText(known.id, known.version, "", note=note)
        texts.append(clean(text).split("\n"))
    if max(map(len, texts)) > _LINES:
        note = f"too long to compare: more than {_LINES:,} lines"
        return DocumentText(known.id, known.version, "", note=note)
    old, new = texts
    lines = list(difflib.unified_diff(old, new, lineterm="", n=_AROUND))[2:]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    head = f"{each.inside} since v{schema.written(each.version)}: +{added} -{removed} lines"
    return DocumentText(known.id, known.version, clean("\n".join([head, "", *lines])))


_TONES = {
    "completed": Tone.DONE,
    "running": Tone.START,
    "in_progress": Tone.START,
    "failed": Tone.BLOCKED,
    "blocked": Tone.BLOCKED,
    "waiting": Tone.REVIEW,
}

_ROWS = 1_000


def panels(project: Project, cycle: Cycle) -> tuple[Panel, ...]:
    """Every panel, most wanted first."""
    return (
        _pipeline(cycle),
        _plan(cycle),
        _decisions(cycle, project.gone),
        _blockers(cycle),
        _feedback(cycle),
        _iterations(cycle),
        _tests(cycle),
        _versions(cycle),
        _cycles(project, cycle),
    )


def _row(
    cells: tuple[str, ...],
    *,
    depth: int = 0,
    checked: bool | None = None,
    tone: Tone = Tone.OTHER,
    document: str | None = None,
    line: int | None = None,
    action: str = "",
    given: tuple[tuple[str, str], ...] = (),
) -> Row:
    target = Target(document=clean_line(document), line=line) if document else Target()
    if action:
        target = Target(action=action, given=given)
    return Row(tuple(clean_line(cell) for cell in cells), depth, checked, tone, target)


def _pipeline(cycle: Cycle) -> Panel:
    rows = []
    for name in schema.AGENTS:
        agent, word = cycle.agent(name), state.agent_status(cycle, name)
        start, end = agent.started_at, agent.completed_at
        until = cycle.now if word == "running" else end
        took = format.age(start, until) if start and until and until >= start else ""
        version = agent.version or cycle.part(state.HOLDERS[name]).version
        message = agent.error or agent.last_message or agent.message
        cells = (name, word, state.dependency(cycle, name), took, version, agent.run, message)
        row = _row(cells, tone=_TONES.get(word, Tone.OTHER))
        ticks = word == "running" and took and start
        rows.append(replace(row, ages=((3, start),)) if ticks and start else row)
    columns = ("agent", "status", "dependency", "took", "version", "run", "message")
    return Panel("pipeline", "Pipeline", "table", columns, tuple(rows))


def _plan(cycle: Cycle) -> Panel:
    rows = []
    for leaf in itertools.islice(tree(cycle), _ROWS):
        task, word = leaf.task, leaf.task.state
        cells = (
            task.id,
            word.replace("_", " ") or "not reported",
            leaf.path,
            leaf.waits,
            task.title or task.description,
            task.effort,
            task.assigned_to,
        )
        tone = _TONES.get(word, Tone.OTHER)
        rows.append(_row(cells, depth=leaf.depth, checked=word == "completed", tone=tone))
    columns = ("task", "status", "path", "blocked by", "what", "effort", "who")
    return Panel("plan", "Plan", "tree", columns, tuple(rows), "No plan yet.")


def _decisions(cycle: Cycle, gone: tuple[Object, ...]) -> Panel:
    rows = []
    for each in cycle.state.decisions[:_ROWS]:
        word = each.status or "pending"
        cells = (
            each.id,
            each.description,
            "requested" if word == "made" and cycle.status == "running" else word,
            each.made_by,
        )
        made = not each.is_open
        decides = not made and is_clean(each.id)
        action, given = (DECIDE_ACT, (("decision", each.id),)) if decides else ("", ())
        rows.append(_row(cells, checked=made, action=action, given=given))
        for number, option in enumerate(each.options, 1):
            pick = (*given, ("choice", str(number))) if given else ()
            picked = option == each.chosen_option
            row = _row((str(number), option), depth=1, checked=picked, action=action, given=pick)
            rows.append(row)
    for entry in gone:
        what = schema.text(entry.get("description"))
        rows.append(_row((schema.text(entry.get("id")), what, "removed from the state", "")))
    columns = ("decision", "what", "status", "made by")
    return Panel(
        "decisions", "Decisions", "checklist", columns, tuple(rows), "No pending decisions."
    )


def _blockers(cycle: Cycle) -> Panel:
    """Those of the state, and those that are only told elsewhere."""
    rows = []
    for each in cycle.state.blockers[:_ROWS]:
        id = each.id
        cells = (id, each.description, each.reported_by, each.status, each.resolution)
        resolves = each.is_open and is_clean(id)
        action, given = (RESOLVE_ACT, (("blocker", id),)) if resolves else ("", ())
        rows.append(_row(cells, checked=not each.is_open, action=action, given=given))
    for found in state.unknown_blockers(cycle)[:_ROWS]:
        place = found.name.removeprefix(cycle.progress)
        cells = ("", found.text, found.by, f"only in {place}", "")
        rows.append(_row(cells, tone=Tone.BLOCKED, document=found.name, line=found.line))
    columns = ("blocker", "what", "reported by", "status", "resolution")
    empty = "No blockers."
    return Panel("blockers", "Blockers", "checklist", columns, tuple(rows), empty)


def _when(at: datetime | None, value: object) -> str:
    """A time as it is shown elsewhere; as it stands there where it is none."""
    return format.dated(at) if at else schema.text(value)


_ANSWERS = {True: "answered", False: "not answered", None: ""}


def _feedback(cycle: Cycle) -> Panel:
    """Who told whom what, oldest first, and whether the one who was told has run since."""
    rows = []
    names = {file.name for file in cycle.files}
    for each in cycle.state.feedback[-_ROWS:]:
        answered = state.answered(cycle, each)
        word = "late" if state.is_late(cycle, each) else _ANSWERS[answered]
        cells = (
            f"{each.source or '?'} to {each.target or '?'}",
            "not sent yet" if each.waits else word,
            each.content,
            each.type,
            _when(each.timestamp, each.raw.get("timestamp")),
        )
        message = f"{cycle.progress}coordination/messages/{each.run}.md"
        document = message if message in names else None
        rows.append(_row(cells, checked=answered, document=document))
    columns = ("who", "answer", "what", "type", "when")
    return Panel("feedback", "Feedback", "thread", columns, tuple(rows), "No feedback.")


def _iterations(cycle: Cycle) -> Panel:
    rows = []
    for each in cycle.state.iterations[:_ROWS]:
        results = ", ".join(
            f"{name} {result.status}" for name, result in each.agent_results.items()
        )
        issues = "; ".join(each.issues_found) or each.note
        end = _when(each.completed_at, each.raw.get("completed_at"))
        cells = (each.label, end or "under way", results, each.extension, issues)
        rows.append(_row(cells, checked=bool(end)))
    columns = ("iteration", "ended", "agents", "requested", "issues")
    empty = "No iterations."
    return Panel("iterations", "Iterations", "checklist", columns, tuple(rows), empty)


class _Round(NamedTuple):
    """Results of one iteration, and where they are told."""

    iteration: str
    source: str
    results: state.Tests
    document: str | None


def _rounds(cycle: Cycle) -> Iterator[_Round]:
    """The results: VAS's own files first, then what the state tells of them."""
    for record in cycle.tests_past:
        if record.value:
            inside = record.file.name.removeprefix(cycle.progress)
            yield _Round(
                _iteration(record.value), inside, state.Tests(record.value), record.file.name
            )
    if cycle.tests_file and cycle.tests_file.value:
        value, name = cycle.tests_file.value, cycle.tests_file.file.name
        yield _Round(_iteration(value), "vas/test-results.json", state.Tests(value), name)
    for each in cycle.state.iterations[:_ROWS]:
        if held := each.test_results:
            yield _Round(each.label, "record of the iteration", state.Tests(held), None)
    if own := cycle.state.test_results:
        yield _Round(_iteration(own), "state", state.Tests(own), cycle.record.file.name)


def _iteration(value: Object) -> str:
    """The iteration that results name; else the one that their version stands for."""
    iteration = schema.text(value.get("iteration"))
    version = schema.version(value.get("version"))
    return iteration or (str(version[1] + 1) if version and version[0] == 1 else "")


def _tests(cycle: Cycle) -> Panel:
    """The results by iteration; what another source tells in the same way is left out."""
    rows = []
    seen: set[tuple[str, str, float | None]] = set()
    for each in sorted(_rounds(cycle), key=lambda found: (len(found.iteration), found.iteration)):
        found = each.results
        same = each.iteration, str(found), found.coverage
        if same in seen:
            continue
        seen.add(same)
        tone = Tone.BLOCKED if found.failed else Tone.DONE if found.proven else Tone.OTHER
        cells = (each.iteration, str(found), found.covered, "; ".join(found.names), each.source)
        rows.append(_row(cells, tone=tone, document=each.document))
    columns = ("iteration", "results", "coverage", "failed", "reported by")
    return Panel("tests", "Tests", "table", columns, tuple(rows), "No test results yet.")


def _versions(cycle: Cycle) -> Panel:
    """Each document with its version, and below it what changed since the one before."""
    rows = []
    stated = {inside: state.versions(cycle).get(part) for part, inside in state.DOCUMENTS.items()}
    changed = {each.inside: each for each in compared(cycle)}
    held, copies = state.document_versions(cycle), state.history(cycle)
    for inside in sorted({*held, *changed}, key=order):
        version, said = held.get(inside), stated.get(inside)
        kept = [schema.written(each) for each, _ in state.earlier(cycle, inside, copies)]
        cells = (
            inside,
            schema.written(version) if version else "not given",
            schema.written(said) if said else "",
            ", ".join(dict.fromkeys(kept)),
        )
        tone = Tone.BLOCKED if said and version and said != version else Tone.OTHER
        rows.append(_row(cells, tone=tone, document=f"{cycle.progress}{inside}"))
        if each := changed.get(inside):
            what = f"changes since {schema.written(each.version)}"
            rows.append(_row((what, "", "", ""), depth=1, document=each.id))
    columns = ("document", "version", "state says", "earlier versions")
    empty = "No document states its version."
    return Panel("versions", "Versions", "tree", columns, tuple(rows[:_ROWS]), empty)


def _cycles(project: Project, shown: Cycle) -> Panel:
    rows = []
    for each in project.cycles:
        mark = "shown" if each.id == shown.id else ""
        word = each.status or ("no state file" if each.lost else "unreadable")
        title = " ".join(each.state.title.split())
        cells = (title or "no title", word, state.verdict(each), mark, each.id)
        document = None if each.lost else each.record.file.name
        tone = _TONES.get(word, Tone.OTHER)
        selects = not mark and is_clean(each.id)
        action, given = (SELECT_ACT, (("cycle", each.id),)) if selects else ("", ())
        rows.append(_row(cells, tone=tone, document=document, action=action, given=given))
    rows += [_row(("", "no state file", "", "", name)) for name in project.orphans[:_ROWS]]
    columns = ("title", "claimed status", "derived", "", "cycle")
    return Panel("cycles", "Cycles", "table", columns, tuple(rows))


_REASON = 120  # characters of the reason of a failure in the headline

_SHOWN = {
    state.FAILURES: "with failures",
    state.UNDECIDED: "a decision is open",
    state.BLOCKED: "blocked",
    state.UNPROVEN: "not proven",
    state.STALLED: "stalled",
}


def describe_status(cycle: Cycle, found: str) -> str:
    """What the cycle is marked as, and what the files show where that is something else.

    Args:
        cycle: as it was read.
        found: the verdict of `state.verdict`.
    """
    marked = cycle.status or "no status"
    reason = cycle.state.failure_reason
    if cycle.status == "failed" and reason:
        marked += f" ({reason[:_REASON]})"
    shown = _SHOWN.get(found, "")
    if not shown or (cycle.status == "failed" and found == state.FAILURES):
        return marked
    if cycle.status == "completed":
        return f"marked completed, but {shown}"
    return f"{marked}, {shown}"
