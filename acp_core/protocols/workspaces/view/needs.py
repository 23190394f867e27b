"""What a human is wanted for in a run, most urgent first."""

from __future__ import annotations

from dataclasses import replace

from acp_core.model import Need, format
from acp_core.model.text import clean_line
from acp_core.protocols.kit.diagnosis import mark
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.read import trespasses
from acp_core.protocols.workspaces.schema import Agent, Run
from acp_core.protocols.workspaces.schema.act_names import (
    DISMISS,
    FIND,
    FINISH,
    RESOLVE,
    SYNTHESISE,
)
from acp_core.protocols.workspaces.view.panels import ACTS, States, display_name
from acp_core.protocols.workspaces.write import integrate
from acp_core.protocols.workspaces.write.layout import read_bytes


def needs(run: Run, states: States, stage: str) -> tuple[Need, ...]:
    """Contradictions, undecided agents, stalled ones, integration, conflicts, gaps: in that order."""
    if stage.startswith("integrated") and all(state.steps(run)):
        return _gaps(run, stage)
    found = [
        replace(_about(agent, state.OVERWRITTEN, ""), text=overwritten(agent, run))
        for agent in run.agents
        if states[agent.name] == state.OVERWRITTEN and not agent.decision
    ]
    found += [
        _about(agent, "inconsistent", _contradiction(agent))
        for agent in run.agents
        if states[agent.name] == "inconsistent" and not agent.decision
        if not _has_no_result(agent, run)
    ]
    found += [
        _about(agent, "undecided", f"{ended(agent, run)}: it needs your decision")
        for agent in run.agents
        if state.undecided(agent, run)
        if agent.decision or states[agent.name] not in state.DOUBTFUL or _has_no_result(agent, run)
    ]
    for agent in run.agents:
        if states[agent.name] == "stalled" and agent.active and not agent.decision:
            found.append(_about(agent, "stalled", "has no status file and has stopped writing"))
    found += _to_dispatch(run, states)
    found += _integration(run, stage)
    return (*found, *_gaps(run, stage))


def _contradiction(agent: Agent) -> str:
    if is_unreadable(agent):
        return "has a status file that cannot be read"
    return "has a status, a return and files that disagree"


def _has_no_result(agent: Agent, run: Run) -> bool:
    """Whether it ended without saying how: then there is nothing that it could contradict."""
    return state.ending(agent, run) == schema.MISSING


def is_unreadable(agent: Agent) -> bool:
    """Whether an agent has a status file that says nothing."""
    return agent.status is not None and agent.status.value is None


_ENDED = {
    schema.MISSING: "ended without a status file",
    schema.PARTIAL: "returned a partial result",
    schema.FAILURE: "failed",
}


def ended(agent: Agent, run: Run) -> str:
    """How an agent ended, after its name."""
    if is_unreadable(agent):
        return "ended with a status file that cannot be read"
    how = state.ending(agent, run)
    return _ENDED.get(how, f"ended with {how}")


def overwritten(agent: Agent, run: Run) -> str:
    """Who changed an agent's files, in a line."""
    done = trespasses.done_to(agent, run.trespasses)
    files = clean_line(", ".join(each.file.path.name for each in done), 200)
    return f"{trespasses.who(done)} wrote into the workspace of {display_name(agent)} ({files})"


def _about(agent: Agent, code: str, text: str) -> Need:
    name = display_name(agent)
    mark = agent.status.file.changed.isoformat() if agent.status else str(agent.active)
    key, given = f"{code}:{name}:{mark}", (("agent", name),)
    return Need(key, code, f"{name} {text}", name, agent.active, ACTS[code], given)


def _to_dispatch(run: Run, states: States) -> list[Need]:
    """Somebody could begin, and nobody works through whom the run goes on by itself."""
    if run.manifest is None or any(each in ("dispatched", "working") for each in states.values()):
        return []
    passed = {agent.name for agent in run.agents if state.finished(agent, run)}
    ready = [
        agent
        for agent in run.agents
        if (states[agent.name] == "not dispatched" and not agent.decision)
        and set(agent.plan.after) <= passed
    ]
    ready += [a for a in run.agents if a.decision == "rerun" and state.ending(a, run)]
    if not ready:
        return []
    names = ", ".join(display_name(agent) for agent in ready[:5])
    key = f"waiting:{names}:{mark(f'{each.name} {each.attempt}' for each in ready)}"
    return [Need(key, "waiting", f"{names}: ready to dispatch", action=ACTS["waiting"])]


def _integration(run: Run, stage: str) -> list[Need]:
    found = []
    waiting = state.open_conflicts(run)
    if stage == "ready to integrate" and not waiting and not run.writing:
        next_act = SYNTHESISE if state.steps(run)[3] else FIND
        hints = len(state.open_hints(run))
        besides = f" ({format.count(hints, 'hint')} unresolved)" if hints else ""
        text = f"No open conflicts{besides}: ready to synthesise"
        text = text if next_act == SYNTHESISE else "All agents ended: ready to integrate"
        found.append(Need(f"ready:{next_act}", "ready", text, action=next_act))
    for conflict in waiting:
        topic = clean_line(conflict.topic or "?")
        act = (RESOLVE if len(conflict.agents) > 1 else DISMISS) if conflict.id else None
        given = (("conflict", clean_line(conflict.id, 200)),) if act else ()
        key = f"conflict:{clean_line(conflict.id, 200)}:{topic}"
        pair = clean_line(conflict.between)
        text = f"Open conflict between {pair} on {topic}"
        found.append(Need(key, "conflict", text, action=act, given=given))
    if stage == "integrating" and run.drafts and all(state.steps(run)[:5]):
        mark = run.drafts[0].changed.isoformat()
        problem = _draft_problem(run)
        act = None if problem else FINISH
        text = problem or "The draft is ready for your approval"
        found.append(Need(f"draft:{mark}", "draft", text, action=act))
    return found


def _draft_problem(run: Run) -> str:
    """Why the draft cannot be approved as it stands."""
    said = ((run.manifest.value if run.manifest else None) or {}).get("format")
    form = said if said in schema.FINALS else schema.FINALS[0]
    file = next((each for each in run.drafts if each.path.suffix == f".{form}"), None)
    problem = integrate.draft_problem(read_bytes(file.path) if file else b"", str(form))
    return f"{clean_line((file or run.drafts[0]).path.name)}: {problem}" if problem else ""


def _gaps(run: Run, stage: str) -> tuple[Need, ...]:
    """What the final output lacks, for the one who reads it; who approved it knows that already."""
    if stage != "integrated with gaps" or run.integrated.by:
        return ()
    gaps = run.integrated.gaps or [f"{name} was skipped" for name in run.integrated.skipped]
    more = f" and {len(gaps) - 1} more" if len(gaps) > 1 else ""
    text = clean_line(f"Integrated with gaps: {gaps[0].rstrip('.')}{more}")
    return (Need(f"gaps:{mark(gaps)}", "gaps", text),)  # another one is another need
