"""What happened in a run, as far as its files tell: nothing there is a log."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from acp_core.files.records import File
from acp_core.model import Event, Tone
from acp_core.model.past import Count, PastTurn, Story
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.workspaces import schema, state
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
        tone=_TONES[fact.kind],
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
    name = clean_name(agent.name, 200)
    return PastTurn(name, began, prompt, until, event, how, "verify", agent.attempt)
