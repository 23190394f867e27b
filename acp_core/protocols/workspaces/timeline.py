"""What happened in a run, as far as its files tell: nothing there is a log."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from acp_core.files.records import File
from acp_core.files.text import clean_line
from acp_core.model import Event, Tone
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.schema import Run

_TONES = {
    schema.SUCCESS: Tone.DONE,
    schema.PARTIAL: Tone.REVISE,
    schema.FAILURE: Tone.BLOCKED,
    "dispatched": Tone.START,
    "integrated": Tone.ACCEPT,
}


class _Fact(NamedTuple):
    at: datetime
    recorded: bool
    actor: str
    kind: str
    summary: str
    file: File


def timeline(run: Run) -> tuple[Event, ...]:
    """Prompts, endings and the final output, oldest first.

    The time of an ending is the one that its status file records, where it does; every other
    time is that of the file.
    """
    facts = [
        _Fact(p.file.changed, False, "orchestrator", "dispatched", f"prompt for {p.agent}", p.file)
        for p in run.prompts
        if p.agent
    ]
    for agent in run.agents:
        if agent.outcome and agent.status:
            said = schema.moment(agent.value.get("completed_at"))
            told = (agent.returned.value if agent.returned else None) or {}
            summary = schema.text(told.get("summary")) or f"ended with {agent.outcome}"
            at, file = said or agent.status.file.changed, agent.status.file
            facts.append(_Fact(at, said is not None, agent.name, agent.outcome, summary, file))
    facts += [
        _Fact(f.changed, False, "orchestrator", "integrated", "wrote the final output", f)
        for f in run.finals
    ]
    facts.sort(key=lambda fact: (fact.at, fact.file.name))
    return tuple(_event(number, fact) for number, fact in enumerate(facts, 1))


def _event(number: int, fact: _Fact) -> Event:
    name = clean_line(fact.file.name)
    return Event(
        id=f"{fact.kind}:{name}",
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
