"""A run in the common words: participants, phases, documents, panels, what happened in it, and its story.

Beyond the common words it shows the agents, the seven steps of integration, what is decided on
results and conflicts, and outputs side by side. Nothing in a run is a log: what happened is told as
far as its files tell it, by the times that stand in them, else by theirs. Source: agent workspaces
specification, "Integration Step Protocol" and "Conflict Resolution Protocol".
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import NamedTuple

from acp_core.files.records import File, read_record, read_text
from acp_core.model import (
    Document,
    Event,
    Finding,
    Matter,
    NextAction,
    Panel,
    Participant,
    Phase,
    PhaseState,
    Row,
    Snapshot,
    Status,
    Target,
    Tone,
    Turn,
    format,
)
from acp_core.model.past import Count, PastTurn, Story
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.kit.documents import document
from acp_core.protocols.kit.findings import verdict_of
from acp_core.protocols.workspaces import matters, rules, schema, state
from acp_core.protocols.workspaces.matters import States, why
from acp_core.protocols.workspaces.read import conflict_hints, scan
from acp_core.protocols.workspaces.read.conflict_hints import Output
from acp_core.protocols.workspaces.read.scan import detect
from acp_core.protocols.workspaces.schema import (
    COMPARE_ACT,
    FINISH_ACT,
    RESOLVE_ACT,
    SYNTHESISE_ACT,
    TRIAGE_ACT,
    Agent,
    Conflict,
    Run,
    RunInfo,
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
        return f"not finished: {', '.join(a.shown for a in left[:4])}" if left else ""
    if number == 2:
        left = [a for a in run.agents if state.undecided(a, run)]
        return f"needs your decision: {', '.join(a.shown for a in left[:4])}" if left else ""
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
        target = Target(action=act, given=(("agent", agent.shown),) if act else ())
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


_EVENT_TONES = {
    schema.SUCCESS: Tone.DONE,
    schema.PARTIAL: Tone.REVISE,
    schema.FAILURE: Tone.BLOCKED,
    "dispatched": Tone.START,
    "integrated": Tone.ACCEPT,
    schema.MISSING: Tone.BLOCKED,
    "decided": Tone.DECIDE,
    "trespass": Tone.BLOCKED,
    "resolved": Tone.DECIDE,
}


class _Fact(NamedTuple):
    at: datetime
    recorded: bool
    actor: str
    kind: str
    summary: str
    file: File
    mark: str  # tells facts of one kind apart


def timeline(run: Run) -> tuple[Event, ...]:
    """Prompts, endings, decisions and the final output, oldest first.

    The time is the one that a status file, or the orchestrator, records; where none does, it is
    that of the file.
    """
    facts = [*_dispatched(run), *_decided(run), *_resolved(run)]
    for agent in run.agents:
        if agent.outcome and agent.status:
            summary = agent.answer.summary or f"ended with {agent.outcome}"
            reported, file = agent.report.completed_at, agent.status.file
            at, recorded = reported or file.changed, reported is not None
            mark = mark_of(agent)
            facts.append(_Fact(at, recorded, agent.name, agent.outcome, summary, file, mark))
        over = agent.plan.ended_at
        if over and run.manifest and state.ending(agent, run) == schema.MISSING:
            why = f"ended without a status file: {agent.plan.exit}"
            file = run.manifest.file
            facts.append(_Fact(over, True, agent.name, schema.MISSING, why, file, mark_of(agent)))
    facts += [
        _Fact(
            f.changed, False, "orchestrator", "integrated", "wrote the final output", f, f.path.name
        )
        for f in run.finals
    ]
    for each in run.trespasses:
        if each.file in run.planted:
            who = state.trespassers([each])
            what, file = "wrote the final output, reserved for the orchestrator", each.file
            facts.append(_Fact(file.changed, False, who, "trespass", what, file, file.path.name))
    began = {a.name: a.plan.dispatched_at for a in run.agents}
    # an agent's clock may tell whole seconds only: its end still comes after its dispatch

    def place(fact: _Fact) -> tuple[datetime, bool, str]:
        at = max(fact.at, began.get(fact.actor) or fact.at)
        return at, fact.actor != "orchestrator", fact.file.name

    events: dict[str, Event] = {}
    for number, fact in enumerate(sorted(facts, key=place), 1):
        event = _event(number, fact)
        if event.id in events:  # a prompt of one name at two places
            event = event._replace(id=f"{event.id}~{number}")
        events[event.id] = event
    return tuple(events.values())


def mark_of(agent: Agent) -> str:
    """An agent's attempt, as the ids of events name it."""
    return agent.name if agent.attempt == 1 else f"{agent.name}:{agent.attempt}"


def _dispatched(run: Run) -> Iterator[_Fact]:
    plans = {agent.plan.prompt_file: agent.plan for agent in run.agents if agent.is_planned}
    for prompt in run.prompts:
        if prompt.agent:
            plan = plans.get(str(prompt.file.path))
            said = plan.dispatched_at if plan else None
            at, recorded = said or prompt.file.changed, said is not None
            what, mark = f"prompt for {prompt.agent}", prompt.file.path.stem
            yield _Fact(at, recorded, "orchestrator", "dispatched", what, prompt.file, mark)


def _decided(run: Run) -> Iterator[_Fact]:
    if run.triage is None:
        return
    file = run.triage.file
    for number, each in enumerate(run.decisions):
        what = f"{each.agent or each.task_id}: {each.decision}: {each.reason}"
        by = each.by or "orchestrator"
        at, recorded = each.at or file.changed, each.at is not None
        yield _Fact(at, recorded, by, "decided", what, file, str(number))


def _resolved(run: Run) -> Iterator[_Fact]:
    if run.conflicts is None:
        return
    for number, each in enumerate(run.recorded.conflicts):
        if each.resolved_at is not None:
            what = each.sentence or f"dismissed: {each.reason}"
            by, file = each.by or "orchestrator", run.conflicts.file
            yield _Fact(each.resolved_at, True, by, "resolved", what, file, str(number))


def _event(number: int, fact: _Fact) -> Event:
    name = clean_line(fact.file.name)
    return Event(
        id=f"{fact.kind}:{clean_line(fact.mark, 200)}",
        order=number,
        source=name,
        kind=fact.kind,
        tone=_EVENT_TONES[fact.kind],
        actor=clean_name(fact.actor, 200),
        at=fact.at,
        at_source="recorded" if fact.recorded else "file time",
        summary=clean_line(fact.summary),
        document=name,
    )


def story(run: Run) -> Story:
    """A turn for each agent's last attempt, from its dispatch on; earlier ones left no times."""
    turns = [turn for agent in run.agents if (turn := _turn(agent, run))]
    conflicts = run.recorded.conflicts
    counts = [
        Count("agents", len(run.agents)),
        Count("attempts", sum(agent.attempt for agent in run.agents)),
        *(
            Count(f"agents {how}", sum(state.ending(agent, run) == how for agent in run.agents))
            for how in (schema.SUCCESS, schema.PARTIAL, schema.FAILURE, schema.MISSING)
        ),
        Count("conflicts", len(conflicts) if run.conflicts or run.integration else None),
        Count("gaps", len(run.integrated.gaps) if run.integration else None),
    ]
    return Story(tuple(turns), tuple(counts))


def _turn(agent: Agent, run: Run) -> PastTurn | None:
    began = agent.plan.dispatched_at
    if began is None:
        return None
    how = state.ending(agent, run)
    reported = agent.report.completed_at if agent.outcome else None
    over = agent.plan.ended_at or reported
    prompt = f"dispatched:{clean_line(agent.prompt.file.path.stem, 200)}" if agent.prompt else None
    event = f"{how}:{clean_line(mark_of(agent), 200)}" if how else None
    until = max(over, began) if how and over else None
    name = agent.shown
    return PastTurn(name, began, prompt, until, event, how, "verify", agent.attempt)


_DOCUMENTS = 1_000


def snapshot(
    run: Run, key: str, recheck: datetime | None, obstacles: tuple[Matter, ...]
) -> Snapshot:
    """The Snapshot of one reading, with what stands in the way of writing."""
    findings = rules.check(run)
    states = {agent.name: state.of_agent(agent, run, findings) for agent in run.agents}
    stage = state.of_run(run)
    passed = state.steps(run)
    phases = tuple(
        Phase(id, label, where)
        for (id, label), where in zip(state.STEPS, state.phase_states(passed), strict=True)
    )
    done = stage.startswith("integrated")
    current = next((p.id for p in phases if p.state is PhaseState.CURRENT), phases[-1].id)
    return Snapshot(
        key=key,
        protocol="workspaces",
        dialect="workspaces",
        name=clean_line(run.root.name) or "/",
        objective=_objective(run),
        location=clean_line(key),
        as_of=run.now,
        headline=_headline(run, stage, states),
        status=Status.COMPLETED if done else Status.ACTIVE,
        phase=current,
        verdict=verdict_of(findings),
        progress=sum(passed) / len(passed),
        doubt="the run has more files than acp reads" if run.cut else "",
        phases=phases,
        participants=tuple(_participant(agent, states) for agent in run.agents),
        turns=_turns(run, states),
        next_actions=_next(run, states),
        events=timeline(run),
        documents=_documents(run),
        findings=findings,
        needs=matters.needs(run, states, stage),
        panels=panels(run, states, findings, passed),
        outcome=(*(clean_line(file.name) for file in run.finals), "triage", "conflicts"),
        parts=_parts(run),
        started=min((file.changed for file in _inside(run)), default=None),
        changed=max((file.changed for file in _inside(run)), default=None),
        recheck_at=recheck,
        obstacles=obstacles,
        run_id=schema.run_id(schema.value_of(run.manifest)),
    )


def _inside(run: Run) -> list[File]:
    return [file for file in run.files if "/" in file.name]


def _parts(run: Run) -> tuple[str, ...]:
    """The runs of agents that manage others: each stands in its agent's workspace."""
    return tuple(str(each.folder) for each in run.agents if _manages(each))


def _manages(agent: Agent) -> bool:
    inside = any("/agent-workspaces/" in f"/{f.name.partition('/')[2]}" for f in agent.files)
    return agent.folder is not None and inside and detect(agent.folder)


def _objective(run: Run) -> str:
    specification = read_record(run.spec, scan.LIMIT) if run.spec else None
    return clean_line(schema.decode_record(RunInfo, specification).scope)


def _headline(run: Run, stage: str, states: States) -> str:
    counts: dict[str, int] = {}
    for each in states.values():
        counts[each] = counts.get(each, 0) + 1
    numbers = ", ".join(f"{number} {each}" for each, number in sorted(counts.items()))
    open_ones = len(state.open_conflicts(run)) if not stage.startswith("integrated") else 0
    more = f"; {open_ones} conflict{'s' if open_ones > 1 else ''} open" if open_ones else ""
    more = "; a program is writing the draft" if run.writing else more
    return f"{stage}: {numbers}{more}" if numbers else stage


def _participant(agent: Agent, states: States) -> Participant:
    again = f", attempt {agent.attempt}" if agent.attempt > 1 else ""
    leads = ", manages its own run" if _manages(agent) else ""
    role = f"{states[agent.name]}, {agent.task_id or 'no task'}{again}{leads}"
    return Participant(agent.shown, "agent", clean_line(role), last_seen=agent.last_write)


def _turns(run: Run, states: States) -> tuple[Turn, ...]:
    """Whoever works is waited for."""
    return tuple(
        Turn(
            agent.shown,
            clean_line(agent.task_id or "its task"),
            agent.plan.dispatched_at,
        )
        for agent in run.agents
        if states[agent.name] in ("dispatched", "working", "stalled") and not agent.decision
    )


def _next(run: Run, states: States) -> tuple[NextAction, ...]:
    going = ("dispatched", "working", "stalled")
    return tuple(
        NextAction(agent.shown, NO_CHANNEL, waited=True)
        for agent in run.agents
        if states[agent.name] in going
    )


def _documents(run: Run) -> tuple[Document, ...]:
    """The final output, its draft, the outputs and other texts; then what tells of the run itself."""
    groups: dict[str, str] = {}
    groups |= {file.name: "deliverable" for file in (*run.finals, *run.drafts)}
    for agent in run.agents:
        groups |= {each.file.name: "deliverable" for each in agent.results if each.file}
    for agent in run.agents:
        own = f"{run.base.name}/{agent.name}/"
        groups |= {record.file.name: "state" for record in agent.records}
        for file in agent.files:
            if not file.name.startswith(f"{own}{schema.SCRATCH}/"):
                groups.setdefault(file.name, "document")
    groups |= {file.name: "document" for file in (*run.stray, *([run.spec] if run.spec else []))}
    groups |= {each.file.name: "state" for each in run.prompts}
    groups |= {each.file.name: "state" for each in run.returns}
    groups |= {each.file.name: "state" for each in run.coordination}
    files = {file.name: file for file in run.files}
    past = f"{run.base.name}/{schema.COORD}/{schema.HISTORY}/"
    groups |= {name: "state" for name in files if name.startswith(past)}
    named = [name for name in groups if name in files][:_DOCUMENTS]
    return tuple(document(files[name], _title(name, run), groups[name]) for name in named)


def _title(name: str, run: Run) -> str:
    """A file's name in few words: whose it is comes first."""
    coord = f"{run.base.name}/{schema.COORD}/"
    for start, title in (
        (f"{coord}draft/", "draft"),
        (f"{coord}prompts/", "prompt"),
        ("prompts/", "prompt"),
        (f"{coord}returns/", "return"),
        ("returns/", "return"),
    ):
        if name.startswith(start):
            what = name.removeprefix(start).rpartition(".")[0]
            return title if title == "draft" else f"{title} {what}"
    known = {
        f"{run.base.name}/{schema.SHARED}/task-spec.json": "task specification",
        "integration/status.json": "integration status",
    }
    if name in known:
        return known[name]
    if name.startswith("integration/final-output."):
        return "final output" if len(run.finals) == 1 else name.removeprefix("integration/")
    return name.removeprefix(coord).removeprefix(f"{run.base.name}/")
