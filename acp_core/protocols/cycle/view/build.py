"""A cycle in the common words: participants, phases, documents, needs, its outcome, and its past as a story.

Source: development cycle specification, "Iteration Flow with Communication".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from acp_core.model import (
    Event,
    Matter,
    NextAction,
    Panel,
    Participant,
    Phase,
    PhaseState,
    Row,
    Snapshot,
    Source,
    SourceState,
    Status,
    Target,
    Tone,
    Turn,
    Visit,
)
from acp_core.model.matter import decision, remark
from acp_core.model.past import Count, PastTurn, Story
from acp_core.model.text import clean_line, is_clean
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.read import scan
from acp_core.protocols.cycle.rules import checks
from acp_core.protocols.cycle.schema import (
    AGENTS,
    DECIDE_ACT,
    EXTEND_ACT,
    FEEDBACK_ACT,
    RERUN_ACT,
    RESOLVE_ACT,
    SELECT_ACT,
    Blocker,
    Cycle,
    Decision,
    Project,
)
from acp_core.protocols.cycle.view import panels as view_panels
from acp_core.protocols.cycle.view.panels import describe_status, panels
from acp_core.protocols.cycle.view.timeline import OVER, timeline
from acp_core.protocols.kit.diagnosis import mark
from acp_core.protocols.kit.findings import verdict_of

_REQUESTS = 5  # that are shown


_WRITES = {
    "ra": "requirements.md",
    "ep": "architecture.md and plan.json",
    "cd": "the code and implementation.md",
    "vas": "validation.md and test-results.json",
}


def snapshot(
    project: Project, key: str, recheck: datetime | None, obstacles: tuple[Matter, ...] = ()
) -> Snapshot:
    """The Snapshot of one reading.

    Args:
        project: what was read.
        key: its location.
        recheck: when to look again although nothing changes.
        obstacles: what stands in the way of writes.
    """
    cycle, findings = project.selected, checks.check(project)
    if cycle is None:
        return Snapshot(
            key=key,
            protocol="cycle",
            dialect="",
            name=clean_line(project.root.name) or "/",
            objective="",
            location=clean_line(key),
            as_of=project.now,
            headline="no cycle here",
            status=Status.UNKNOWN,
            phase="",
            findings=findings,
            verdict=verdict_of(findings),
            obstacles=obstacles,
        )
    found = state.verdict(cycle)
    events = timeline(cycle)
    done = sum(state.agent_status(cycle, name) == "completed" for name in AGENTS)
    title = cycle.state.title or cycle.id
    return Snapshot(
        key=key,
        protocol="cycle",
        dialect="",
        name=clean_line(title, 200),
        objective=clean_line(" ".join((_description(cycle) or title).split())),
        location=clean_line(key),
        as_of=project.now,
        headline=_headline(cycle, found, obstacles),
        summary=clean_line(_summary(cycle, found)) if cycle.value else "",
        status=_status(cycle, found),
        phase=state.current(cycle) if cycle.value else "",
        source=_source(cycle),
        verdict=verdict_of(findings),
        progress=done / len(AGENTS) if cycle.value else None,
        round=cycle.iteration or None,
        doubt="there are more files than acp reads" if project.cut else "",
        phases=_phases(cycle),
        participants=_participants(cycle),
        turns=_turns(cycle, found),
        events=events,
        documents=view_panels.documents(project, cycle),
        findings=findings,
        next_actions=_next(cycle),
        needs=(*_needs(cycle, found), *_elsewhere(project, cycle)),
        notices=_notices(cycle),
        panels=(*outcome_panels(cycle), *panels(project, cycle)),
        outcome=NAMES,
        run_id=clean_line(cycle.id),
        started=cycle.begun,
        changed=cycle.last_write,
        recheck_at=recheck,
        obstacles=obstacles,
    )


def _description(cycle: Cycle) -> str:
    """What is to be done; some writers spell line ends out as a backslash and an n."""
    said = cycle.state.description
    return said if "\n" in said else said.replace("\\r\\n", "\n").replace("\\n", "\n")


def _headline(cycle: Cycle, found: str, obstacles: tuple[Matter, ...]) -> str:
    """How it stands; of a state that cannot be read, what is wrong with it."""
    if obstacles and not cycle.value:
        return obstacles[0].sentence
    return clean_line(_claim(cycle, found))


def _claim(cycle: Cycle, found: str) -> str:
    if not cycle.value:
        return f"the state file {cycle.record.problem or 'holds nothing'}"
    tests = state.tests(cycle)
    covered = f", coverage {tests.covered}" if tests.proven else ""
    return f"{_summary(cycle, found)}; {tests}{covered}"


def _summary(cycle: Cycle, found: str) -> str:
    """How it stands, without the tests, which a panel tells."""
    limit = cycle.state.max_iterations
    of = f"/{limit}" if limit is not None else ""
    if found == state.STALLED:
        return f"stalled in iteration {cycle.iteration}{of.replace('/', ' of ')}"
    return f"{describe_status(cycle, found)}; iteration {cycle.iteration}{of}"


def _status(cycle: Cycle, found: str) -> Status:
    if not cycle.value or cycle.status not in schema.STATUSES:
        return Status.UNKNOWN
    if cycle.status == "failed" or (cycle.status != "completed" and found == state.BLOCKED):
        return Status.BLOCKED
    return Status.COMPLETED if cycle.status == "completed" else Status.ACTIVE


def _source(cycle: Cycle) -> Source:
    if not cycle.record.stale or scan.young(cycle.record, cycle.now):
        return Source()
    note = f"{cycle.record.file.path.name} {cycle.record.problem}"
    return Source(SourceState.STALE, clean_line(note))


def _phases(cycle: Cycle) -> tuple[Phase, ...]:
    now_at, phases = state.current(cycle), []
    for name in AGENTS:
        word, agent = state.agent_status(cycle, name), cycle.agent(name)
        where = PhaseState.DONE if word == "completed" else PhaseState.AHEAD
        if name == now_at and cycle.value and (cycle.status != "completed" or word != "completed"):
            where = PhaseState.CURRENT
        visit = agent.started_at and Visit(
            agent.started_at, agent.completed_at, cycle.iteration or 1
        )
        visits = (visit,) if visit else ()
        phases.append(Phase(name, schema.LABELS[name], where, visits))
    return tuple(phases)


def _participants(cycle: Cycle) -> tuple[Participant, ...]:
    seen = []
    for name in AGENTS:
        own = f"{cycle.progress}{name}/"
        last = max((f.changed for f in cycle.files if f.name.startswith(own)), default=None)
        role = f"{schema.LABELS[name]}, {state.agent_status(cycle, name)}"
        seen.append(Participant(name, "agent", role, last_seen=last))
    return tuple(seen)


def _turns(cycle: Cycle, found: str) -> tuple[Turn, ...]:
    if cycle.status != "running" or found == state.UNDECIDED:
        return ()
    at_work = state.running(cycle)
    return tuple(
        Turn(name, schema.LABELS[name], cycle.since(cycle.agent(name).started_at))
        for name in at_work
    )


def _next(cycle: Cycle) -> tuple[NextAction, ...]:
    """What each agent does now, or waits for; nothing while the cycle does not run."""
    if cycle.status != "running":
        return ()
    actions = []
    for name in AGENTS:
        word = state.agent_status(cycle, name)
        if word == "running":
            actions.append(
                NextAction(name, f"write {_WRITES[name]}, then report PHASE_RESULT", True)
            )
        elif state.can_start(cycle, name):
            actions.append(NextAction(name, f"can start: {state.dependency(cycle, name)}", True))
        elif word not in ("completed", "failed"):  # a need says that it failed
            actions.append(NextAction(name, state.dependency(cycle, name), False))
    return tuple(actions)


def _notices(cycle: Cycle) -> tuple[Matter, ...]:
    """What people asked for and no orchestrator has picked up."""
    return tuple(
        remark(
            "requested",
            clean_line(f"queued, not picked up yet: {each.sentence}"),
            since=each.at,
        )
        for each in cycle.state.open_requests[-_REQUESTS:]
    )


def _elsewhere(project: Project, shown: Cycle) -> tuple[Matter, ...]:
    """The other cycles of the project that wait for a person, each once."""
    needs = []
    for each in project.cycles:
        waits: list[Decision | Blocker] = [*each.state.open_decisions, *state.for_a_person(each)]
        if each.id == shown.id or each.status not in schema.OPEN or not waits:
            continue
        title = each.state.title or each.id
        text = clean_line(f"Another cycle needs you: {title}: {waits[0].description}")
        key = f"elsewhere:{each.id}:{mark(f'{wait.id} {wait.description}' for wait in waits)}"
        given = (("cycle", each.id),) if is_clean(each.id) else ()
        act = SELECT_ACT if given else None
        needs.append(decision(clean_line(key), "elsewhere", text, act=act, given=given))
    return tuple(needs[:_REQUESTS])


def _needs(cycle: Cycle, found: str) -> tuple[Matter, ...]:
    """What a human is wanted for, most urgent first."""
    needs = []

    def need(kind: str, what: object, text: str, act: str | None = None, **more: Any) -> None:
        """Add a need; an act that cannot be given its input is not offered."""
        given = more.pop("given", ())
        if act is None or not all(is_clean(value) for _, value in given):
            act, given = None, ()
        key = clean_line(f"{kind}:{cycle.id}:{what}")
        needs.append(decision(key, kind, clean_line(text), act=act, given=given, **more))

    for number, each in enumerate(cycle.state.open_decisions, 1):
        what = each.id or number
        choices = "; ".join(f"{n}. {o}" for n, o in enumerate(each.options, 1))
        text = f"Decide {what}: {each.description}" + (f" ({choices})" if choices else "")
        need("decision", what, text, DECIDE_ACT, given=(("decision", each.id),))
    for number, blocker in enumerate(state.for_a_person(cycle), 1):
        what = blocker.id or number
        text = f"Blocker {what} is open: {blocker.description}"
        need("blocker", what, text, RESOLVE_ACT, given=(("blocker", blocker.id),))
    asked = {each.agent for each in cycle.state.open_decisions}
    for name in AGENTS:
        if state.agent_status(cycle, name) == "failed" and name not in asked:
            text = f"{name} failed: {cycle.agent(name).error or 'reason unknown'}"
            act = RERUN_ACT if cycle.status in ("running", "paused") else None
            which, given = f"{name}:{cycle.iteration}", (("agent", name),)
            need("failed", which, text, act, participant=name, given=given)
    if found == state.STALLED:
        text, since = "Marked running, but its files have stopped changing", cycle.last_write
        need("stalled", since.isoformat(), text, since=since)
    completed = cycle.status == "completed" and not state.accepted(cycle)
    if completed and state.tests(cycle).failed:
        limit = cycle.state.max_iterations
        reached = limit is not None and cycle.iteration >= limit > 0
        text = "Completed, but tests fail" + f", at the limit of {limit} iterations" * reached
        need("failures", cycle.iteration, text, EXTEND_ACT)
    late = [each for each in cycle.state.feedback if state.is_late(cycle, each)]
    for name in dict.fromkeys(each.target.lower() for each in late):
        sent = [each.timestamp for each in late if each.target.lower() == name]
        at = min((at for at in sent if at), default=None)
        act = FEEDBACK_ACT if cycle.status in schema.OPEN else None
        text, given = f"{name} has not answered its feedback", (("agent", name),)
        need("unanswered", f"{name}:{at}", text, act, participant=name, since=at, given=given)
    if completed and found == state.UNPROVEN:
        text = f"Completed, but {state.unproven(cycle)}"
        need("unproven", cycle.iteration, text, EXTEND_ACT)
    return tuple(needs)


ID = "outcome"
NAMES = (ID, "decisions", "tests")
_RESULTS = ("vas/summary.md", "vas/validation.md", "cd/implementation.md")
"""The documents that tell the result, in the order in which a reader wants them."""

_VERDICTS = {
    state.OK: ("done: the tests pass", Tone.DONE),
    state.FAILURES: ("tests or agents failed", Tone.BLOCKED),
}


def outcome_panels(cycle: Cycle) -> tuple[Panel, ...]:
    """The outcome of a completed cycle; nothing before."""
    if cycle.status != "completed":
        return ()
    rows = (*_facts(cycle), *_documents(cycle))
    return (Panel(ID, "Outcome", "table", ("item", "outcome"), rows),)


def _facts(cycle: Cycle) -> Iterator[Row]:
    found, limit = state.tests(cycle), cycle.state.max_iterations
    verdict, tone = _VERDICTS.get(state.verdict(cycle), ("not proven", Tone.REVISE))
    if state.verdict(cycle) == state.UNPROVEN:
        verdict = f"not proven: {state.unproven(cycle)}"
    if state.accepted(cycle):
        verdict += "; a person accepted the result"
    yield Row(("result", clean_line(verdict)), tone=tone)
    failed = f": {'; '.join(found.names)}" if found.failed and found.names else ""
    coverage = f", coverage {found.covered}" if found.coverage is not None else ""
    target = (
        Target(document=clean_line(cycle.tests_file.file.name)) if cycle.tests_file else Target()
    )
    bad = Tone.BLOCKED if found.failed else Tone.OTHER
    yield Row(("tests", clean_line(f"{found}{coverage}{failed}")), tone=bad, target=target)
    tasks = state.tasks(cycle)
    if tasks:
        done = len(tasks) - len(state.undone(cycle))
        yield Row(("tasks", f"{done} of {len(tasks)} done"))
    of = f" of at most {limit}" if limit is not None else ""
    yield Row(("iterations", f"{cycle.iteration}{of}"))


def _documents(cycle: Cycle) -> Iterator[Row]:
    """The documents that tell the result, each with its version; a row opens it."""
    names = {file.name for file in cycle.files}
    versions = state.document_versions(cycle)
    for inside in _RESULTS:
        name = f"{cycle.progress}{inside}"
        if name in names:
            version = versions.get(inside)
            said = f"{inside} v{schema.written(version)}" if version else inside
            yield Row(("document", clean_line(said)), target=Target(document=clean_line(name)))


_RUN = re.compile(r"\brun (\d{1,9})-")
_ONLY = re.compile(r"[a-z_]{1,40} in iteration (\d{1,9})")


def story(cycle: Cycle, events: Sequence[Event]) -> Story:
    """The agents' runs, oldest first, and counts of the whole.

    Args:
        cycle: the cycle.
        events: its timeline, oldest first.
    """
    return Story(tuple(_past_turns(cycle, events)), tuple(_counts(cycle)))


def _past_turns(cycle: Cycle, events: Sequence[Event]) -> Iterator[PastTurn]:
    began: dict[str, Event] = {}
    for event in events:
        if event.actor not in AGENTS:
            continue
        if event.kind == "started":
            began[event.actor] = event
        elif event.kind in OVER and event.actor in began:
            yield _turn(cycle, began.pop(event.actor), event)
        elif event.line is None and (only := _ONLY.fullmatch(event.summary)):
            who, number = event.actor, int(only[1])
            yield PastTurn(who, None, None, event.at, event.id, event.kind, who, number)
    for event in began.values():
        yield _turn(cycle, event, None)


def _round(cycle: Cycle, start: Event) -> int:
    """The iteration in which a run began: as it says, else by the records of the iterations."""
    named = _RUN.search(start.summary)
    if named:
        return int(named[1])
    found = 1
    for record in cycle.state.iterations:
        at, number = record.started_at, record.number
        if at and start.at and at <= start.at and number:
            found = max(found, number)
    return found


def _turn(cycle: Cycle, start: Event, end: Event | None) -> PastTurn:
    return PastTurn(
        start.actor,
        start.at,
        start.id,
        end.at if end else None,
        end.id if end else None,
        end.kind if end else "",
        start.actor,
        _round(cycle, start),
    )


def _counts(cycle: Cycle) -> Iterator[Count]:
    yield Count("iterations", cycle.iteration)
    yield Count("blockers", len(cycle.state.blockers))
    yield Count("decisions", len(cycle.state.decisions))
    yield Count("pieces of feedback", len(cycle.state.feedback))
    yield Count("failed runs", len(cycle.state.phase_errors))
    yield Count("failing tests", state.tests(cycle).failed)


def durations(turns: Sequence[PastTurn], participant: str) -> list[float]:
    """How many seconds an agent's runs took, oldest first."""
    return [
        (each.ended - each.since).total_seconds()
        for each in turns
        if each.participant == participant and each.since and each.ended
    ]
