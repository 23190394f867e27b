"""What happened in a run, as far as its files tell: nothing there is a log."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from acp_core.files.records import File
from acp_core.files.text import clean_line
from acp_core.model import Event, Tone
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.read import trespasses
from acp_core.protocols.workspaces.schema import Agent, Run

_TONES = {
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
            said = schema.moment(agent.value.get("completed_at"))
            told = (agent.returned.value if agent.returned else None) or {}
            summary = schema.text(told.get("summary")) or f"ended with {agent.outcome}"
            at, file = said or agent.status.file.changed, agent.status.file
            recorded = said is not None
            mark = mark_of(agent)
            facts.append(_Fact(at, recorded, agent.name, agent.outcome, summary, file, mark))
        over = schema.moment(agent.plan.get("ended_at"))
        if over and run.manifest and state.ending(agent, run) == schema.MISSING:
            why = f"ended without a status file: {schema.text(agent.plan.get('exit'))}"
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
            who = trespasses.who([each])
            what, file = "wrote the final output, which only the orchestrator may", each.file
            facts.append(_Fact(file.changed, False, who, "trespass", what, file, file.path.name))
    began = {a.name: schema.moment(a.plan.get("dispatched_at")) for a in run.agents}
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
    plans = {schema.text(a.plan.get("prompt_file")): a.plan for a in run.agents if a.plan}
    for prompt in run.prompts:
        if prompt.agent:
            plan = plans.get(str(prompt.file.path), {})
            said = schema.moment(plan.get("dispatched_at"))
            at, recorded = said or prompt.file.changed, said is not None
            what, mark = f"prompt for {prompt.agent}", prompt.file.path.stem
            yield _Fact(at, recorded, "orchestrator", "dispatched", what, prompt.file, mark)


def _decided(run: Run) -> Iterator[_Fact]:
    value = (run.triage.value or {}) if run.triage else {}
    items = value.get("decisions")
    for number, each in enumerate(items if isinstance(items, list) else []):
        if run.triage is None or not isinstance(each, dict):
            continue
        at = schema.moment(each.get("at"))
        who = schema.text(each.get("agent")) or schema.text(each.get("task_id"))
        what = f"{who}: {schema.text(each.get('decision'))}: {schema.text(each.get('reason'))}"
        by = schema.text(each.get("by")) or "orchestrator"
        changed = run.triage.file.changed
        yield _Fact(
            at or changed, at is not None, by, "decided", what, run.triage.file, str(number)
        )


def _resolved(run: Run) -> Iterator[_Fact]:
    for number, each in enumerate(state.conflicts(run)):
        at = schema.moment(each.get("resolved_at"))
        if run.conflicts is None or at is None:
            continue
        dismissed = f"dismissed: {schema.text(each.get('reason'))}"
        what = schema.text(each.get("sentence")) or dismissed
        by = schema.text(each.get("by")) or "orchestrator"
        yield _Fact(at, True, by, "resolved", what, run.conflicts.file, str(number))


def _event(number: int, fact: _Fact) -> Event:
    name = clean_line(fact.file.name)
    return Event(
        id=f"{fact.kind}:{clean_line(fact.mark, 200)}",
        order=number,
        source=name,
        kind=fact.kind,
        tone=_TONES[fact.kind],
        actor=clean_line(fact.actor, 200),
        at=fact.at,
        at_source="recorded" if fact.recorded else "file time",
        summary=clean_line(fact.summary),
        document=name,
    )
