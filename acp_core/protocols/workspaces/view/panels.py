"""What a run shows beyond the common words: agents, the seven steps, triage, conflicts, comparison."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import zip_longest

from acp_core.files.records import File, read_text
from acp_core.model import Finding, Panel, Row, Target, Tone, format
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.matters import States, display_name, why
from acp_core.protocols.workspaces.read import conflict_hints, scan
from acp_core.protocols.workspaces.read.conflict_hints import Output
from acp_core.protocols.workspaces.schema import (
    COMPARE_ACT,
    FINISH_ACT,
    RESOLVE_ACT,
    SYNTHESISE_ACT,
    TRIAGE_ACT,
    Agent,
    Conflict,
    Run,
)

NO_CHANNEL = "A running sub-agent takes no messages: it reads feedback only in its next prompt."

_TONES = {
    "success": Tone.DONE,
    "partial": Tone.REVISE,
    "failure": Tone.BLOCKED,
    "stalled": Tone.BLOCKED,
    "missing": Tone.BLOCKED,
    "inconsistent": Tone.BLOCKED,
    state.OVERWRITTEN: Tone.BLOCKED,
    "working": Tone.START,
}

_WRITTEN = 3  # the column of the last write
_EARLIER = 5  # earlier attempts of an agent that are shown


def panels(
    run: Run, states: States, findings: tuple[Finding, ...], passed: tuple[bool, ...]
) -> tuple[Panel, ...]:
    """All of them."""
    return (
        _agents(run, states, findings),
        _checklist(run, passed),
        _triage(run),
        _conflicts(run),
        *comparison_panels(run, passed),
    )


def named(conflict: Conflict) -> str:
    """A conflict as rows and forms name it."""
    return clean_line(f"{conflict.id}: {conflict.between} on {conflict.topic}", 150)


def _agents(run: Run, states: States, findings: tuple[Finding, ...]) -> Panel:
    rows = []
    for agent in run.agents:
        own = clean_line(f"{run.base.name}/{agent.name}/")
        cells = (
            agent.name,
            states[agent.name] + (f" ({agent.decision})" if agent.decision else ""),
            str(agent.attempt),
            format.age(agent.last_write, run.now) if agent.last_write else "",
            f"{len(agent.files)}, {format.size(sum(f.size for f in agent.files))}",
            why(agent, run),
            str(sum((f.document or "").startswith(own) for f in findings)),
            agent.task_id,
        )
        document = agent.status.file.name if agent.status else None
        target = Target(document=clean_line(document) if document else None)
        tone = _TONES.get(states[agent.name], Tone.OTHER)
        ages = ((_WRITTEN, agent.last_write),) if agent.last_write else ()
        shown_cells = tuple(clean_line(cell) for cell in cells)
        rows.append(Row(shown_cells, tone=tone, target=target, ages=ages))
        rows += _superseded(agent, run)
    columns = ("agent", "state", "attempt", "last write", "files", "error", "findings", "task")
    return Panel("agents", "Agents", "table", columns, tuple(rows), f"No agents yet. {NO_CHANNEL}")


def _superseded(agent: Agent, run: Run) -> list[Row]:
    """The attempts before the one that holds, the latest first, as far as their files are there."""
    rows = []
    for number in range(agent.attempt - 1, max(0, agent.attempt - 1 - _EARLIER), -1):
        files = _earlier_files(agent, number, run)
        if not files:
            continue
        written = max(file.changed for file in files)
        size = f"{len(files)}, {format.size(sum(file.size for file in files))}"
        name = clean_name(agent.name)
        cells = (name, "superseded", str(number), format.age(written, run.now), size)
        target = Target(document=clean_line(files[-1].name))
        rows.append(Row(cells, depth=1, target=target, ages=((_WRITTEN, written),)))
    return rows


def _earlier_files(agent: Agent, number: int, run: Run) -> list[File]:
    """The files of an earlier attempt: what was put into the history, else its stamped output."""
    history = f"{run.base.name}/{schema.COORD}/{schema.HISTORY}/{agent.name}/{number}/"
    kept = [file for file in run.files if file.name.startswith(history)]
    if kept or len(agent.attempts) != agent.attempt:
        return kept
    return [file for file in agent.files if f"-{agent.attempts[number - 1]}." in file.name]


def _checklist(run: Run, passed: tuple[bool, ...]) -> Panel:
    acts = (None, TRIAGE_ACT, None, COMPARE_ACT, SYNTHESISE_ACT, FINISH_ACT, FINISH_ACT)
    first = passed.index(False) if False in passed else len(passed)
    rows = []
    for number, ((_, label), ok) in enumerate(zip(state.STEPS, passed, strict=True), 1):
        act = acts[number - 1] if number == first + 1 else None
        if number == first + 1 and act == SYNTHESISE_ACT and state.open_conflicts(run):
            act = RESOLVE_ACT
        cells = (str(number), label, _step_note(number, run))
        rows.append(Row(cells, checked=ok, target=Target(action=act)))
    return Panel("steps", "Integration", "checklist", ("step", "what", "now"), tuple(rows))


def _step_note(number: int, run: Run) -> str:
    """What stands behind a step now."""
    if number == 1:
        left = [a for a in run.agents if not state.finished(a, run)]
        return f"not finished: {', '.join(display_name(a) for a in left[:4])}" if left else ""
    if number == 2:
        left = [a for a in run.agents if state.undecided(a, run)]
        return (
            f"needs your decision: {', '.join(display_name(a) for a in left[:4])}" if left else ""
        )
    if number == 3:
        size = sum(
            each.file.size for a in conflict_hints.used(run) for each in a.results if each.file
        )
        return f"{format.size(size)} to read" if size else ""
    if number == 4:
        if run.conflicts is None:
            return "outputs not compared yet"
        written_down = f"{len(run.recorded.conflicts)} recorded"
        late = state.steps(run)[2] and not state.steps(run)[3]
        return f"{written_down}; compare again: an agent ended since" if late else written_down
    if number == 5:
        left_open = state.open_conflicts(run)
        if left_open:
            return f"open conflicts: {len(left_open)}"
        if run.writing:
            return "a program is writing the draft"
        return "the draft is ready" if run.drafts and not run.finals else ""
    return clean_line(run.finals[0].name) if number == 6 and run.finals else ""


def _triage(run: Run) -> Panel:
    rows = []
    for agent in run.agents:
        how = state.ending(agent, run)
        if how not in schema.DECISIONS and not agent.decision:
            continue
        waits = state.undecided(agent, run)
        reason = why(agent, run) if waits else state.reason(agent, run)
        word = agent.decision or "undecided"
        cells = (agent.name, how or "not finished", word, reason, agent.task_id)
        act = TRIAGE_ACT if waits else None
        target = Target(action=act, given=(("agent", display_name(agent)),) if act else ())
        rows.append(Row(tuple(clean_line(c) for c in cells), checked=not waits, target=target))
    empty = f"No pending decisions. {NO_CHANNEL}"
    columns = ("agent", "outcome", "decision", "why", "task")
    return Panel("triage", "Triage", "checklist", columns, tuple(rows), empty)


def _conflicts(run: Run) -> Panel:
    rows = []
    for each in run.recorded.conflicts:
        outcome = each.sentence
        if each.is_dismissed:
            outcome = f"dismissed: {each.reason}"
        elif each.is_open:
            outcome = f"{'hint, blocks nothing: ' if each.is_hint else ''}{each.why}"
        act = RESOLVE_ACT if each.is_open and each.id else None
        given = (("conflict", clean_line(each.id, 200)),) if act else ()
        cells = (each.between, each.topic, each.category, outcome)
        target = Target(action=act, given=given)
        rows.append(Row(tuple(map(clean_line, cells)), checked=not each.is_open, target=target))
    columns = ("agents", "topic", "category", "resolution")
    return Panel(
        "conflicts", "Conflicts", "checklist", columns, tuple(rows), "No conflicts are recorded."
    )


_COMPARED = 4  # outputs of which the topics are shown
_TOPICS = 60  # topics that are shown
_LINES = 400  # lines of a text that are compared
Lines = list[str]


def comparison_panels(run: Run, passed: tuple[bool, ...]) -> tuple[Panel, ...]:
    """Both; none where fewer than two outputs can be compared."""
    if not passed[1]:
        return ()
    found = conflict_hints.outputs(run, [agent.name for agent in run.agents])
    if len(found) < 2:
        return ()
    return (_topics(found[:_COMPARED]), *_texts(run, found))


def _topics(found: list[Output]) -> Panel:
    """What each says to the same key, and which headings it has."""
    titles: dict[str, str] = {}
    for each in found:
        titles |= {key: key for key in each.values}
        titles |= {key: title for key, title in each.headings.items() if key not in titles}
    rows = []
    for key, title in titles.items():
        cells = [
            each.values.get(key) or ("heading" if key in each.headings else "") for each in found
        ]
        values = {each for each in cells if each}
        several = sum(bool(each) for each in cells) > 1
        tone = Tone.BLOCKED if len(values) > 1 else Tone.OTHER
        if several:
            rows.append(Row(tuple(clean_line(c, 200) for c in (title, *cells)), tone=tone))
    rows.sort(key=lambda row: row.tone is not Tone.BLOCKED)
    columns = ("topic", *(clean_name(each.agent, 60) for each in found))
    empty = "The outputs have no common heading or key."
    return Panel("compare", "Side by side", "comparison", columns, tuple(rows[:_TOPICS]), empty)


def _texts(run: Run, found: list[Output]) -> tuple[Panel, ...]:
    """Two outputs in full, line by line: those of the first open conflict, else the first two."""
    first: dict[str, Output] = {}
    for each in found:
        first.setdefault(each.agent, each)
    pairs = [each.agents[:2] for each in state.open_conflicts(run)]
    known = [[first[name] for name in pair if name in first] for pair in pairs]
    pair = next((both for both in known if len(both) == 2), list(first.values())[:2])
    if len(pair) < 2:
        return ()
    rows = tuple(_rows(*(_lines(run, each) for each in pair)))
    columns = ("", *(clean_name(each.agent, 60) for each in pair))
    return (Panel("texts", "Two texts", "comparison", columns, rows, "Both are empty."),)


def _lines(run: Run, output: Output) -> Lines:
    file = next((each for each in run.files if each.path == output.path), None)
    text, problem = read_text(file, scan.LIMIT) if file else ("", "is missing")
    if problem:
        return [f"({output.path.name} {problem})"]
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    more = [f"… {len(lines) - _LINES} more lines"] if len(lines) > _LINES else []
    return [*lines[:_LINES], *more]


def _rows(left: Lines, right: Lines) -> Iterator[Row]:
    """The lines of two texts, equal ones beside each other; a sign stands where they differ."""
    number = 0
    for tag, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        tone = Tone.OTHER if tag == "equal" else Tone.REVISE
        for here, there in zip_longest(left[a:b], right[c:d], fillvalue=""):
            number += 1
            cells = (str(number), clean_line(here, 200), clean_line(there, 200))
            yield Row(cells, tone=tone)
