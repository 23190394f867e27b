"""A run in the common words: participants, phases, documents."""

from __future__ import annotations

from datetime import datetime

from acp_core.files.records import File, read_record
from acp_core.files.text import clean_line
from acp_core.loading import document
from acp_core.model import (
    Document,
    Finding,
    NextAction,
    Participant,
    Phase,
    PhaseState,
    Severity,
    Snapshot,
    Status,
    Verdict,
)
from acp_core.protocols.workspaces import needs, panels, rules, scan, schema, state
from acp_core.protocols.workspaces.panels import NO_CHANNEL, States
from acp_core.protocols.workspaces.schema import Agent, Run
from acp_core.protocols.workspaces.timeline import timeline

_DOCUMENTS = 1_000


def snapshot(run: Run, key: str, recheck: datetime | None) -> Snapshot:
    """The Snapshot of one reading."""
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
        headline=_headline(stage, states),
        status=Status.COMPLETED if done else Status.ACTIVE,
        phase=current,
        verdict=_verdict(findings),
        progress=sum(passed) / len(passed),
        doubt="the run has more files than are looked at" if run.cut else "",
        phases=phases,
        participants=tuple(_participant(agent, states) for agent in run.agents),
        next_actions=_next(run, states),
        events=timeline(run),
        documents=_documents(run),
        findings=findings,
        needs=needs.needs(run, states, stage),
        panels=panels.panels(run, states, findings, passed),
        started=min((file.changed for file in _inside(run)), default=None),
        changed=max((file.changed for file in _inside(run)), default=None),
        recheck_at=recheck,
    )


def _inside(run: Run) -> list[File]:
    return [file for file in run.files if "/" in file.name]


def _objective(run: Run) -> str:
    value = (read_record(run.spec, scan.LIMIT).value if run.spec else None) or {}
    return clean_line(schema.text(value.get("scope")))


def _headline(stage: str, states: States) -> str:
    counts: dict[str, int] = {}
    for each in states.values():
        counts[each] = counts.get(each, 0) + 1
    told = ", ".join(f"{number} {each}" for each, number in sorted(counts.items()))
    return f"{stage}: {told}" if told else stage


def _verdict(findings: tuple[Finding, ...]) -> Verdict:
    found = {finding.severity for finding in findings}
    if Severity.ERROR in found:
        return Verdict.INVALID
    return Verdict.WARNINGS if Severity.WARNING in found else Verdict.VALID


def _participant(agent: Agent, states: States) -> Participant:
    role = f"{agent.task_id or 'no task'}, {states[agent.name]}, attempt {agent.attempt}"
    return Participant(
        clean_line(agent.name, 200), "agent", clean_line(role), last_seen=agent.last_write
    )


def _next(run: Run, states: States) -> tuple[NextAction, ...]:
    going = ("dispatched", "working", "stalled")
    return tuple(
        NextAction(clean_line(agent.name, 200), NO_CHANNEL, waited=True)
        for agent in run.agents
        if states[agent.name] in going
    )


def _documents(run: Run) -> tuple[Document, ...]:
    """Status, return, prompt and outputs of each agent; then what the orchestrator wrote."""
    groups: dict[str, str] = {}
    for agent in run.agents:
        groups |= {record.file.name: "state" for record in agent.records}
        for listed in agent.outputs:
            if listed.file:
                groups.setdefault(listed.file.name, "deliverable")
        own = f"{run.base.name}/{agent.name}/"
        for file in agent.files:
            if not file.name.startswith(f"{own}{schema.SCRATCH}/"):
                groups.setdefault(file.name, "document")
    groups |= {each.file.name: "state" for each in run.returns}
    groups |= {each.file.name: "document" for each in run.prompts}
    groups |= {file.name: "deliverable" for file in run.finals}
    groups |= {file.name: "deliverable" for file in run.drafts}
    kept = (run.manifest, run.triage, run.conflicts, run.integration)
    groups |= {each.file.name: "state" for each in kept if each}
    groups |= {file.name: "document" for file in (*run.stray, *([run.spec] if run.spec else []))}
    files = [file for file in run.files if file.name in groups][:_DOCUMENTS]
    return tuple(document(file, file.name, groups[file.name]) for file in files)
