"""A run in the common words: participants, phases, documents, panels, needs."""

from __future__ import annotations

from datetime import datetime

from acp_core import format
from acp_core.files.records import File, read_record
from acp_core.files.text import clean_line
from acp_core.loading import document
from acp_core.model import (
    Document,
    Finding,
    Need,
    NextAction,
    Panel,
    Participant,
    Phase,
    PhaseState,
    Row,
    Severity,
    Snapshot,
    Status,
    Target,
    Tone,
    Verdict,
)
from acp_core.protocols.workspaces import rules, scan, schema, state
from acp_core.protocols.workspaces.schema import Agent, Run
from acp_core.protocols.workspaces.timeline import timeline

NO_CHANNEL = (
    "A running sub-agent cannot be spoken to: it reads what you say only in its next prompt."
)
_TONES = {
    "success": Tone.DONE,
    "partial": Tone.REVISE,
    "failure": Tone.BLOCKED,
    "stalled": Tone.BLOCKED,
    "inconsistent": Tone.BLOCKED,
    "working": Tone.START,
}
_DOCUMENTS = 1_000
States = dict[str, str]


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
        needs=_needs(run, states, stage),
        panels=(_agents(run, states, findings), _checklist(passed), _triage(run), _conflicts(run)),
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
    kept = (run.manifest, run.triage, run.conflicts, run.integration)
    groups |= {each.file.name: "state" for each in kept if each}
    groups |= {file.name: "document" for file in (*run.stray, *([run.spec] if run.spec else []))}
    files = [file for file in run.files if file.name in groups][:_DOCUMENTS]
    return tuple(document(file, file.name, groups[file.name]) for file in files)


def _agents(run: Run, states: States, findings: tuple[Finding, ...]) -> Panel:
    rows = []
    for agent in run.agents:
        own = clean_line(f"{run.base.name}/{agent.name}/")
        said = (agent.returned.value if agent.returned else None) or {}
        errors = schema.words(said.get("errors")) or schema.words(agent.value.get("errors"))
        reason = errors[0] if errors else ""
        if not reason and states[agent.name] in schema.DECISIONS:
            reason = "reason unknown"
        cells = (
            agent.name,
            agent.task_id,
            states[agent.name] + (f" ({agent.decision})" if agent.decision else ""),
            str(agent.attempt),
            format.age(agent.last_write, run.now) if agent.last_write else "",
            f"{len(agent.files)}, {format.size(sum(f.size for f in agent.files))}",
            reason,
            str(sum((f.document or "").startswith(own) for f in findings)),
        )
        document = agent.status.file.name if agent.status else None
        target = Target(document=clean_line(document) if document else None)
        tone = _TONES.get(states[agent.name], Tone.OTHER)
        rows.append(Row(tuple(clean_line(cell) for cell in cells), tone=tone, target=target))
    columns = ("agent", "task", "state", "attempt", "last write", "files", "error", "findings")
    return Panel("agents", "Agents", "table", columns, tuple(rows), f"No agents yet. {NO_CHANNEL}")


def _checklist(passed: tuple[bool, ...]) -> Panel:
    rows = tuple(
        Row((str(number), label), checked=ok)
        for number, ((_, label), ok) in enumerate(zip(state.STEPS, passed, strict=True), 1)
    )
    return Panel("steps", "Integration", "checklist", ("step", "what"), rows)


def _triage(run: Run) -> Panel:
    rows = [
        Row(
            tuple(
                clean_line(cell)
                for cell in (
                    agent.name,
                    agent.task_id,
                    agent.outcome,
                    agent.decision or "undecided",
                )
            ),
            checked=not state.undecided(agent, run),
        )
        for agent in run.agents
        if agent.outcome in schema.DECISIONS
    ]
    empty = f"Nothing to decide. {NO_CHANNEL}"
    columns = ("agent", "task", "outcome", "decision")
    return Panel("triage", "Triage", "checklist", columns, tuple(rows), empty)


def _conflicts(run: Run) -> Panel:
    waiting = state.open_conflicts(run)
    rows = []
    for each in state.conflicts(run):
        agents = " and ".join(schema.words(each.get("agents")))
        cells = (agents, *(schema.text(each.get(k)) for k in ("topic", "category", "sentence")))
        rows.append(Row(tuple(clean_line(c) for c in cells), checked=each not in waiting))
    columns = ("agents", "topic", "category", "resolution")
    return Panel(
        "conflicts", "Conflicts", "checklist", columns, tuple(rows), "No conflicts are recorded."
    )


def _needs(run: Run, states: States, stage: str) -> tuple[Need, ...]:
    """What a human is wanted for, most urgent first."""
    needs: list[Need] = []

    def need(code: str, agent: Agent, text: str) -> None:
        name = clean_line(agent.name, 200)
        mark = agent.status.file.changed.isoformat() if agent.status else str(agent.last_write)
        needs.append(Need(f"{code}:{name}:{mark}", code, f"{name} {text}", name, agent.last_write))

    for agent in run.agents:
        if states[agent.name] == "inconsistent":
            need("inconsistent", agent, "says what does not go together")
    for agent in run.agents:
        if state.undecided(agent, run):
            need("undecided", agent, f"ended with {agent.outcome}: decide what becomes of it")
    for agent in run.agents:
        if states[agent.name] == "stalled" and agent.last_write:
            quiet = format.age(agent.last_write, run.now)
            need("stalled", agent, f"has no status file, last write {quiet} ago")
    if stage == "ready to integrate":
        needs.append(Need("ready", "ready", "Every agent ended: ready to integrate"))
    for conflict in state.open_conflicts(run):
        topic = clean_line(schema.text(conflict.get("topic")) or "?")
        needs.append(Need(f"conflict:{topic}", "conflict", f"The conflict on {topic} is open"))
    if stage == "integrated with gaps":
        needs.append(Need("gaps", "gaps", "Integrated with gaps"))
    return tuple(needs)
