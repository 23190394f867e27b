"""How a run of sub-agents gets stuck: what its files tell, and what this machine's watchers say.

The order is that in which a person's attention is due: contradictions, what is undecided, what is
silent, what waits to begin, integration. Source: agent workspaces specification, "Integration Step
Protocol".
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from acp_core.agents.state import RunnerState
from acp_core.model import Cause, Need, Severity
from acp_core.model.format import dated
from acp_core.model.text import clean_line
from acp_core.protocols.kit.diagnosis import DiagnosisContext
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.read import trespasses
from acp_core.protocols.workspaces.schema import Agent, Run
from acp_core.protocols.workspaces.schema.act_names import (
    AGAIN,
    DISMISS,
    DISPATCH,
    REPAIR,
    RESOLVE,
    STOP,
    SYNTHESISE,
    TRIAGE,
)
from acp_core.protocols.workspaces.schema.coord import Conflict
from acp_core.protocols.workspaces.view.needs import ended, is_unreadable
from acp_core.protocols.workspaces.view.panels import display_name, why
from acp_core.protocols.workspaces.write import guard
from acp_core.protocols.workspaces.write.layout import NAME

ORCHESTRATOR = "orchestrator"
_LINES = 5  # lines of a program's output that are told


def causes(run: Run, case: DiagnosisContext) -> Iterator[Cause]:
    """Every cause."""
    if not any(each.wanted for each in case.snapshot.obstacles):
        yield from _left_behind(run)
    needs = {(need.code, need.participant): need for need in case.snapshot.needs}
    for agent in run.agents:
        need = needs.get((state.OVERWRITTEN, display_name(agent)))
        if need is not None:
            yield _overwritten(run, agent, need)
    for agent in run.agents:
        need = needs.get(("inconsistent", display_name(agent)))
        if need is not None:
            yield _contradicts(run, case, agent, need)
    for agent in run.agents:
        need = needs.get(("undecided", display_name(agent)))
        if need is not None:
            yield _undecided(run, case, agent, need)
    for agent in run.agents:
        lost = _unwatched(run, case, agent)
        need = needs.get(("stalled", display_name(agent)))
        if lost is not None:
            yield lost
        elif need is not None:
            yield _stalled(run, case, agent, need)
    for need in case.snapshot.needs:
        if need.code in _LATER:
            yield _later(run, need)
    yield from _interrupted(run, case)


def _left_behind(run: Run) -> Iterator[Cause]:
    """A writing was interrupted: until it is finished, the files do not agree."""
    left = guard.interrupted(run)
    if left is None:
        return
    yield Cause(
        "A6",
        f"a write was interrupted: {left.what}",
        advice="repair the run; the next write does so, too",
        evidence=(f"{left.done} of {left.total} files were written",),
        remedy=REPAIR,
        since=left.at,
        key=f"A6:{left.at}",
        root=True,
    )


def _judged(agent: Agent, run: Run) -> tuple[str, ...]:
    """What becomes of an agent's result: run once more, where acp can do that, or decided on."""
    named = bool(NAME.fullmatch(agent.name)) and not agent.name.endswith(".")
    known = agent.is_planned if run.manifest else agent.folder is not None
    return (AGAIN, TRIAGE) if named and known else (TRIAGE,)


def _overwritten(run: Run, agent: Agent, need: Need) -> Cause:
    """Another agent wrote into its workspace: its result is not what it wrote."""
    done = trespasses.done_to(agent, run.trespasses)
    who = trespasses.who(done)
    return Cause(
        "E50",
        need.text,
        advice=f"check what is left of the work of {display_name(agent)}: put back what was changed and accept "
        f"it, or rerun {display_name(agent)}; name in the next prompt of {who} where it may write",
        evidence=tuple(clean_line(each.how) for each in done),
        certain=any(each.certain for each in done),
        remedy=_judged(agent, run)[0],
        given=(("agent", display_name(agent)),),
        others=_judged(agent, run)[1:],
        participant=clean_line(done[0].by, 200),
        since=max(each.file.changed for each in done),
        key=need.key,
        document=clean_line(done[0].file.name),
    )


def _contradicts(run: Run, case: DiagnosisContext, agent: Agent, need: Need) -> Cause:
    """Its status, its return and its files do not agree."""
    own = clean_line(f"{run.base.name}/{agent.name}/")
    back = clean_line(agent.returned.file.name) if agent.returned else "-"
    about = [
        finding
        for finding in case.snapshot.findings
        if finding.severity is Severity.ERROR
        and ((finding.document or "").startswith(own) or finding.document == back)
    ]
    return Cause(
        "E51",
        need.text
        if is_unreadable(agent)
        else f"the status and files of {display_name(agent)} disagree",
        advice="check its files, then rerun it or decide on it",
        evidence=tuple(f"{finding.code} {finding.message}" for finding in about[:5]),
        remedy=_judged(agent, run)[0],
        given=(("agent", display_name(agent)),),
        others=_judged(agent, run)[1:],
        participant=display_name(agent),
        since=agent.last_write,
        key=need.key,
        document=about[0].document if about else _document(agent),
    )


def _undecided(run: Run, case: DiagnosisContext, agent: Agent, need: Need) -> Cause:
    """A partial, a failure or no result holds the integration up until somebody decides."""
    how, name = state.ending(agent, run), display_name(agent)
    missing = how == schema.MISSING
    said = clean_line(why(agent, run))
    evidence = [f"reported reason: {said}" if not missing else f"program: {said}"] if said else []
    evidence += [f"{display_name(each)} is waiting for this result" for each in _behind(run, agent)]
    if missing:
        evidence += _last_lines(case.loop(name))
    elif agent.status:
        evidence.append(_changed(agent.status.file.changed, clean_line(agent.status.file.name)))
    return Cause(
        "E53" if missing else "E52",
        f"{name} {ended(agent, run)}; it needs your decision",
        advice=" or ".join(_CHOICES[each] for each in schema.DECISIONS[how]),
        evidence=tuple(evidence),
        remedy=TRIAGE,
        given=(("agent", name),),
        others=_judged(agent, run)[:-1],
        participant=name,
        since=agent.plan.ended_at or agent.last_write,
        key=need.key,
        document=_document(agent),
    )


_CHOICES = {
    "accept": "accept the result as it is",
    "rerun": "rerun it",
    "skip": "skip it",
    "orchestrator-does": "do the task yourself (orchestrator-does)",
    "gap": "note a gap",
}


def _unwatched(run: Run, case: DiagnosisContext, agent: Agent) -> Cause | None:
    """Whoever watched its program was killed: its end would not be seen, and nobody goes on."""
    loop = case.loop(display_name(agent))
    dispatched = agent.plan.is_dispatched and not agent.is_over
    if loop is None or not dispatched or not loop.died or agent.decision:
        return None
    alive = loop.program_alive
    return Cause(
        "E55",
        f"the process supervising {display_name(agent)} has exited",
        advice="dispatch again: acp resumes the supervision and repeats no work",
        evidence=(
            f"process {loop.pid} exited without recording a result",
            "the supervised program is still running"
            if alive
            else "the supervised program has exited, too",
            *_last_lines(loop),
        ),
        remedy=DISPATCH,
        participant=display_name(agent),
        since=loop.last_output or loop.started,
        key=f"E55:{display_name(agent)}:{loop.pid}",
        explains=tuple(
            need.key
            for need in case.snapshot.needs
            if need.code == "stalled" and need.participant == display_name(agent)
        ),
    )


def _stalled(run: Run, case: DiagnosisContext, agent: Agent, need: Need) -> Cause:
    """It wrote nothing for a long time: files alone cannot tell slow work from a crash."""
    loop, name = case.loop(display_name(agent)), display_name(agent)
    runs = loop is not None and loop.program_alive
    known = (
        "its program is running on this machine"
        if runs
        else f"no program of {name} is known on this machine"
    )
    evidence = [f"no status file, last write {dated(agent.last_write)}", known]
    evidence += [f"{display_name(each)} is waiting for this result" for each in _behind(run, agent)]
    return Cause(
        "E54",
        f"{name} has written nothing for a long time and has no status file",
        advice="keep waiting, stop it, or decide without its result; a running sub-agent takes no messages",
        evidence=(*evidence, *_last_lines(loop)),
        certain=False,
        remedy=TRIAGE,
        given=(("agent", name),),
        others=(*_judged(agent, run)[:-1], *([STOP] if runs else [])),
        participant=name,
        since=agent.active,
        key=need.key,
    )


_LATER = {
    "waiting": ("E56", "dispatch it: the run cannot proceed without it"),
    "ready": ("E57", "compare the outputs: acp records possible contradictions"),
    "conflict": ("E58", "resolve it by the rule of its category, or dismiss it"),
    "draft": ("E59", "read the draft, then finish"),
}


def _later(run: Run, need: Need) -> Cause:
    """A step of the integration, or a dispatch, that only a person takes."""
    code, advice = _LATER[need.code]
    if need.action == SYNTHESISE:
        advice = "let a program write the draft, or write it yourself"
    if need.code == "draft" and need.action is None:
        advice = "write the draft: `acp workspaces edit` opens it in your editor"
    if need.code == "conflict":
        advice = _settled(run, need)
    passed = sum(state.steps(run))
    return Cause(
        code,
        need.text,
        advice=advice,
        evidence=(f"{passed} of {len(state.STEPS)} integration steps are done",),
        remedy=need.action,
        given=need.given,
        others=(DISMISS,) if need.action == RESOLVE else (),
        participant=need.participant,
        since=need.since,
        key=need.key,
        document=clean_line(run.drafts[0].name) if need.code == "draft" and run.drafts else None,
    )


def _settled(run: Run, need: Need) -> str:
    """What is to be chosen to settle a conflict."""
    id = dict(need.given).get("conflict")
    if id is None:
        name = clean_line(run.conflicts.file.name) if run.conflicts else "conflicts.json"
        return f"give it an id in {name} to make it selectable"
    found = next(each for each in state.open_conflicts(run) if id_of(each) == id)
    if need.action == DISMISS:
        return "dismiss it: a conflict needs two agents"
    if found.category != "factual":
        return "resolve it by the rule of its category, or dismiss it"
    agents = clean_line(" or ".join(found.agents), 300)
    return f"choose whose version holds (--keep {agents}) and why (--because {', '.join(schema.GROUNDS)}), or dismiss it"


def id_of(conflict: Conflict) -> str:
    """The id of a conflict as forms offer it."""
    return clean_line(conflict.id, 200)


def _interrupted(run: Run, case: DiagnosisContext) -> Iterator[Cause]:
    """The program that integrates was begun, and nobody watches it."""
    loop = case.loop(ORCHESTRATOR)
    if not run.writing or loop is None or not loop.died:
        return
    yield Cause(
        "E59",
        "the process supervising the draft has exited",
        advice="synthesise again: acp resumes the started draft",
        evidence=(
            f"process {loop.pid} exited without recording a result",
            "the supervised program is still running"
            if loop.program_alive
            else "the supervised program has exited, too",
        ),
        remedy=SYNTHESISE,
        since=loop.started,
        key=f"E59:{loop.pid}",
    )


def _behind(run: Run, agent: Agent) -> list[Agent]:
    """Who is dispatched only when this one is through."""
    return [
        each
        for each in run.agents
        if agent.name in each.plan.after and state.of_agent(each, run) == "not dispatched"
    ]


def _last_lines(loop: RunnerState | None) -> list[str]:
    return [f"| {line}" for line in (loop.lines if loop else ())[-_LINES:]]


def _changed(at: datetime, name: str) -> str:
    return f"{name} changed {dated(at)} (by its file time)"


def _document(agent: Agent) -> str | None:
    return clean_line(agent.status.file.name) if agent.status else None
