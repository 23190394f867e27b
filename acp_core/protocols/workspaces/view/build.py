"""A run in the common words: participants, phases, documents."""

from __future__ import annotations

from datetime import datetime

from acp_core.files.records import File, read_record
from acp_core.model import (
    Document,
    Finding,
    NextAction,
    Obstacle,
    Participant,
    Phase,
    PhaseState,
    Severity,
    Snapshot,
    Status,
    Turn,
    Verdict,
)
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.kit.documents import document
from acp_core.protocols.workspaces import matters, rules, schema, state
from acp_core.protocols.workspaces.matters import States
from acp_core.protocols.workspaces.read import scan
from acp_core.protocols.workspaces.read.scan import detect
from acp_core.protocols.workspaces.schema import Agent, Run, RunInfo
from acp_core.protocols.workspaces.view import panels
from acp_core.protocols.workspaces.view.panels import NO_CHANNEL
from acp_core.protocols.workspaces.view.timeline import timeline

_DOCUMENTS = 1_000


def snapshot(
    run: Run, key: str, recheck: datetime | None, obstacles: tuple[Obstacle, ...]
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
        verdict=_verdict(findings),
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
        panels=panels.panels(run, states, findings, passed),
        outcome=(*(clean_line(file.name) for file in run.finals), "triage", "conflicts"),
        parts=_parts(run),
        started=min((file.changed for file in _inside(run)), default=None),
        changed=max((file.changed for file in _inside(run)), default=None),
        recheck_at=recheck,
        obstacles=obstacles,
        run_id=schema.run_id(run.manifest.value if run.manifest else None),
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


def _verdict(findings: tuple[Finding, ...]) -> Verdict:
    found = {finding.severity for finding in findings}
    if Severity.ERROR in found:
        return Verdict.INVALID
    return Verdict.WARNINGS if Severity.WARNING in found else Verdict.VALID


def _participant(agent: Agent, states: States) -> Participant:
    again = f", attempt {agent.attempt}" if agent.attempt > 1 else ""
    leads = ", manages its own run" if _manages(agent) else ""
    role = f"{states[agent.name]}, {agent.task_id or 'no task'}{again}{leads}"
    return Participant(
        clean_name(agent.name, 200), "agent", clean_line(role), last_seen=agent.last_write
    )


def _turns(run: Run, states: States) -> tuple[Turn, ...]:
    """Whoever works is waited for."""
    return tuple(
        Turn(
            clean_name(agent.name, 200),
            clean_line(agent.task_id or "its task"),
            agent.plan.dispatched_at,
        )
        for agent in run.agents
        if states[agent.name] in ("dispatched", "working", "stalled") and not agent.decision
    )


def _next(run: Run, states: States) -> tuple[NextAction, ...]:
    going = ("dispatched", "working", "stalled")
    return tuple(
        NextAction(clean_name(agent.name, 200), NO_CHANNEL, waited=True)
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
