"""What stands in a run: what a person is wanted for, why it is stuck, and what refuses writes.

The order is that in which a person's attention is due: contradictions, what is undecided, what is
silent, what waits to begin, integration. Source: agent workspaces specification, "Integration Step
Protocol" and "Directory Structure for Agent Workspaces".
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from acp_core.agents.state import RunnerState
from acp_core.files.records import Record
from acp_core.files.transaction import JOURNAL
from acp_core.model import Matter, Severity, format
from acp_core.model.errors import Refused
from acp_core.model.format import dated
from acp_core.model.matter import TIME, About, Verdict, damage, decision, verdicts
from acp_core.model.text import clean_line
from acp_core.protocols.kit import guard
from acp_core.protocols.kit.diagnosis import DiagnosisContext, mark
from acp_core.protocols.workspaces import rules, schema, state
from acp_core.protocols.workspaces.read import manifest, scan
from acp_core.protocols.workspaces.read.manifest import (
    is_manifest_lost,
    journal_fault,
    manifest_problem,
    read_bytes,
    why_unreadable,
)
from acp_core.protocols.workspaces.schema import (
    COMPARE_ACT,
    DISMISS_ACT,
    DISPATCH_ACT,
    EVERY_ACT,
    FINISH_ACT,
    NAME,
    ORCHESTRATOR,
    REPAIR_ACT,
    RERUN_ACT,
    RESOLVE_ACT,
    STOP_ACT,
    SYNTHESISE_ACT,
    TO_WRITE,
    TRIAGE_ACT,
    Agent,
    Conflict,
    Layout,
    Run,
)

_LINES = 5  # lines of a program's output that are told


def causes(run: Run, case: DiagnosisContext) -> Iterator[Matter]:
    """Every cause."""
    if not any(each.wanted for each in case.snapshot.obstacles):
        yield from _left_behind(run)
    needs = {(need.code, need.about.participant): need for need in case.snapshot.needs}
    for code, make in (
        (state.OVERWRITTEN, _cause_of_overwriting),
        ("inconsistent", _cause_of_contradiction),
        ("undecided", _cause_of_indecision),
    ):
        for agent in run.agents:
            need = needs.get((code, agent.shown))
            if need is not None:
                yield make(run, case, agent, need)
    for agent in run.agents:
        lost = _unwatched(run, case, agent)
        need = needs.get(("stalled", agent.shown))
        if lost is not None:
            yield lost
        elif need is not None:
            silence = _cause_of_silence(run, case, agent, need)
            yield _waiting(silence) if _is_refused(case, agent) else silence
    for need in case.snapshot.needs:
        if need.code in _LATER:
            yield _later(run, need)
    yield from _interrupted_synthesis(run, case)


def _left_behind(run: Run) -> Iterator[Matter]:
    """A writing was interrupted: until it is finished, the files do not agree."""
    left = manifest.interrupted_write(run)
    if left is None:
        return
    yield Matter(
        "A6",
        f"a write was interrupted: {left.what}",
        instruction="repair the run; the next write does so, too",
        evidence=(f"{left.done} of {left.total} files were written",),
        verdicts=(Verdict(REPAIR_ACT),),
        since=left.at,
        key=f"A6:{left.at}",
        root=True,
    )


def _judged(agent: Agent, run: Run) -> tuple[str, ...]:
    """What becomes of an agent's result: run once more, where acp can do that, or decided on."""
    named = bool(NAME.fullmatch(agent.name)) and not agent.name.endswith(".")
    known = agent.is_planned if run.manifest else agent.folder is not None
    return (RERUN_ACT, TRIAGE_ACT) if named and known else (TRIAGE_ACT,)


def _cause_of_overwriting(run: Run, case: DiagnosisContext, agent: Agent, need: Matter) -> Matter:
    """Another agent wrote into its workspace: its result is not what it wrote."""
    done = state.trespasses_on(agent, run.trespasses)
    who = state.trespassers(done)
    return Matter(
        "E50",
        need.sentence,
        instruction=f"check what is left of the work of {agent.shown}: put back what was changed and accept "
        f"it, or rerun {agent.shown}; name in the next prompt of {who} where it may write",
        evidence=tuple(clean_line(each.how) for each in done),
        certain=any(each.certain for each in done),
        verdicts=verdicts(
            _judged(agent, run)[0], (("agent", agent.shown),), _judged(agent, run)[1:]
        ),
        about=About(
            participant=clean_line(done[0].by, 200), document=clean_line(done[0].file.name)
        ),
        since=max(each.file.changed for each in done),
        key=need.key,
    )


def _cause_of_contradiction(run: Run, case: DiagnosisContext, agent: Agent, need: Matter) -> Matter:
    """Its status, its return and its files do not agree."""
    about = [
        finding
        for finding in case.snapshot.findings
        if finding.severity is Severity.ERROR and rules.is_about(finding, agent, run)
    ]
    return Matter(
        "E51",
        need.sentence
        if is_unreadable(agent)
        else f"the status and files of {agent.shown} disagree",
        instruction="check its files, then rerun it or decide on it",
        evidence=tuple(f"{finding.code} {finding.message}" for finding in about[:5]),
        verdicts=verdicts(
            _judged(agent, run)[0], (("agent", agent.shown),), _judged(agent, run)[1:]
        ),
        about=About(
            participant=agent.shown, document=about[0].document if about else _status_name(agent)
        ),
        since=agent.last_write,
        key=need.key,
    )


def _cause_of_indecision(run: Run, case: DiagnosisContext, agent: Agent, need: Matter) -> Matter:
    """A partial, a failure or no result holds the integration up until somebody decides."""
    how, name = state.ending(agent, run), agent.shown
    missing = how == schema.MISSING
    said = clean_line(why(agent, run))
    evidence = [f"reported reason: {said}" if not missing else f"program: {said}"] if said else []
    evidence += [f"{each.shown} is waiting for this result" for each in _behind(run, agent)]
    if missing:
        evidence += _last_lines(case.loop(name))
    elif agent.status:
        evidence.append(_changed(agent.status.file.changed, clean_line(agent.status.file.name)))
    return Matter(
        "E53" if missing else "E52",
        f"{name} {how_it_ended(agent, run)}; it needs your decision",
        instruction=" or ".join(_CHOICES[each] for each in schema.DECISIONS[how]),
        evidence=tuple(evidence),
        verdicts=verdicts(TRIAGE_ACT, (("agent", name),), _judged(agent, run)[:-1]),
        about=About(participant=name, document=_status_name(agent)),
        since=agent.plan.ended_at or agent.last_write,
        key=need.key,
    )


_CHOICES = {
    "accept": "accept the result as it is",
    "rerun": "rerun it",
    "skip": "skip it",
    "orchestrator-does": "do the task yourself (orchestrator-does)",
    "gap": "note a gap",
}


def _unwatched(run: Run, case: DiagnosisContext, agent: Agent) -> Matter | None:
    """Whoever watched its program was killed: its end would not be seen, and nobody goes on."""
    loop = case.loop(agent.shown)
    dispatched = agent.plan.is_dispatched and not agent.is_over
    if loop is None or not dispatched or not loop.died or agent.decision:
        return None
    alive = loop.program_alive
    return Matter(
        "E55",
        f"the process supervising {agent.shown} has exited",
        instruction="dispatch again: acp resumes the supervision and repeats no work",
        evidence=(
            f"process {loop.pid} exited without recording a result",
            "the supervised program is still running"
            if alive
            else "the supervised program has exited, too",
            *_last_lines(loop),
        ),
        verdicts=(Verdict(DISPATCH_ACT),),
        about=About(participant=agent.shown),
        since=loop.last_output or loop.started,
        key=f"E55:{agent.shown}:{loop.pid}",
        explains=tuple(
            need.key
            for need in case.snapshot.needs
            if need.code == "stalled" and need.about.participant == agent.shown
        ),
    )


def _cause_of_silence(run: Run, case: DiagnosisContext, agent: Agent, need: Matter) -> Matter:
    """It wrote nothing for a long time: files alone cannot tell slow work from a crash."""
    loop, name = case.loop(agent.shown), agent.shown
    runs = loop is not None and loop.program_alive
    known = (
        "its program is running on this machine"
        if runs
        else f"no program of {name} is known on this machine"
    )
    evidence = [f"no status file, last write {dated(agent.last_write)}", known]
    evidence += [f"{each.shown} is waiting for this result" for each in _behind(run, agent)]
    return Matter(
        "E54",
        f"{name} has written nothing for a long time and has no status file",
        instruction="keep waiting, stop it, or decide without its result; a running sub-agent takes no messages",
        evidence=(*evidence, *_last_lines(loop)),
        certain=False,
        verdicts=verdicts(
            TRIAGE_ACT,
            (("agent", name),),
            (*_judged(agent, run)[:-1], *([STOP_ACT] if runs else [])),
        ),
        about=About(participant=name),
        since=agent.active,
        key=need.key,
    )


def _is_refused(case: DiagnosisContext, agent: Agent) -> bool:
    """Whether its program cannot work now, and whoever supervises it tries again by itself."""
    loop = case.loop(agent.shown)
    return loop is not None and loop.alive and case.is_kept_outside(agent.shown)


def _waiting(silence: Matter) -> Matter:
    """The same of an agent whose program waits for its service: why, is told of its program."""
    return silence._replace(
        move=TIME, instruction="wait until its program is tried again", explains=(silence.key,)
    )


_LATER = {
    "waiting": ("E56", "dispatch it: the run cannot proceed without it"),
    "ready": ("E57", "compare the outputs: acp records possible contradictions"),
    "conflict": ("E58", "resolve it by the rule of its category, or dismiss it"),
    "draft": ("E59", "read the draft, then finish"),
}


def _later(run: Run, need: Matter) -> Matter:
    """A step of the integration, or a dispatch, that only a person takes."""
    code, advice = _LATER[need.code]
    if need.remedy == SYNTHESISE_ACT:
        advice = "let a program write the draft, or write it yourself"
    if need.code == "draft" and not need.remedy:
        advice = "write the draft: `acp workspaces edit` opens it in your editor"
    if need.code == "conflict":
        advice = _settled(run, need)
    passed = sum(state.steps(run))
    return Matter(
        code,
        need.sentence,
        instruction=advice,
        evidence=(f"{passed} of {len(state.STEPS)} integration steps are done",),
        verdicts=verdicts(
            need.remedy, need.given, (DISMISS_ACT,) if need.remedy == RESOLVE_ACT else ()
        ),
        about=About(
            participant=need.about.participant,
            document=clean_line(run.drafts[0].name)
            if need.code == "draft" and run.drafts
            else None,
        ),
        since=need.since,
        key=need.key,
    )


def _settled(run: Run, need: Matter) -> str:
    """What is to be chosen to settle a conflict."""
    id = dict(need.given).get("conflict")
    if id is None:
        name = clean_line(run.conflicts.file.name) if run.conflicts else "conflicts.json"
        return f"give it an id in {name} to make it selectable"
    found = next(each for each in state.open_conflicts(run) if shown_id(each) == id)
    if need.remedy == DISMISS_ACT:
        return "dismiss it: a conflict needs two agents"
    if found.category != "factual":
        return "resolve it by the rule of its category, or dismiss it"
    agents = clean_line(" or ".join(found.agents), 300)
    return f"choose whose version holds (--keep {agents}) and why (--because {', '.join(schema.GROUNDS)}), or dismiss it"


def shown_id(conflict: Conflict) -> str:
    """The id of a conflict as forms offer it."""
    return clean_line(conflict.id, 200)


def _interrupted_synthesis(run: Run, case: DiagnosisContext) -> Iterator[Matter]:
    """The program that integrates was begun, and nobody watches it."""
    loop = case.loop(ORCHESTRATOR)
    if not run.writing or loop is None or not loop.died:
        return
    yield Matter(
        "E59",
        "the process supervising the draft has exited",
        instruction="synthesise again: acp resumes the started draft",
        evidence=(
            f"process {loop.pid} exited without recording a result",
            "the supervised program is still running"
            if loop.program_alive
            else "the supervised program has exited, too",
        ),
        verdicts=(Verdict(SYNTHESISE_ACT),),
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


def _status_name(agent: Agent) -> str | None:
    return clean_line(agent.status.file.name) if agent.status else None


def needs(run: Run, states: States, stage: str) -> tuple[Matter, ...]:
    """Contradictions, undecided agents, stalled ones, integration, conflicts, gaps: in that order."""
    if stage.startswith("integrated") and all(state.steps(run)):
        return _gap_needs(run, stage)
    found = [
        _need_about(agent, state.OVERWRITTEN, "")._replace(sentence=who_overwrote(agent, run))
        for agent in run.agents
        if states[agent.name] == state.OVERWRITTEN and not agent.decision
    ]
    found += [
        _need_about(agent, "inconsistent", _contradiction(agent))
        for agent in run.agents
        if states[agent.name] == "inconsistent" and not agent.decision
        if not _has_no_result(agent, run)
    ]
    found += [
        _need_about(agent, "undecided", f"{how_it_ended(agent, run)}: it needs your decision")
        for agent in run.agents
        if state.undecided(agent, run)
        if agent.decision or states[agent.name] not in state.DOUBTFUL or _has_no_result(agent, run)
    ]
    for agent in run.agents:
        if states[agent.name] == "stalled" and agent.active and not agent.decision:
            found.append(
                _need_about(agent, "stalled", "has no status file and has stopped writing")
            )
    found += _to_dispatch(run, states)
    found += _integration_needs(run, stage)
    return (*found, *_gap_needs(run, stage))


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


def how_it_ended(agent: Agent, run: Run) -> str:
    """How an agent ended, after its name."""
    if is_unreadable(agent):
        return "ended with a status file that cannot be read"
    how = state.ending(agent, run)
    return _ENDED.get(how, f"ended with {how}")


def who_overwrote(agent: Agent, run: Run) -> str:
    """Who changed an agent's files, in a line."""
    done = state.trespasses_on(agent, run.trespasses)
    files = clean_line(", ".join(each.file.path.name for each in done), 200)
    return f"{state.trespassers(done)} wrote into the workspace of {agent.shown} ({files})"


def _need_about(agent: Agent, code: str, text: str) -> Matter:
    name = agent.shown
    mark = agent.status.file.changed.isoformat() if agent.status else str(agent.active)
    key, given = f"{code}:{name}:{mark}", (("agent", name),)
    return decision(key, code, f"{name} {text}", name, agent.active, ACTS[code], given)


def _to_dispatch(run: Run, states: States) -> list[Matter]:
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
    names = ", ".join(agent.shown for agent in ready[:5])
    key = f"waiting:{names}:{mark(f'{each.name} {each.attempt}' for each in ready)}"
    return [decision(key, "waiting", f"{names}: ready to dispatch", act=ACTS["waiting"])]


def _integration_needs(run: Run, stage: str) -> list[Matter]:
    found = []
    waiting = state.open_conflicts(run)
    if stage == "ready to integrate" and not waiting and not run.writing:
        next_act = SYNTHESISE_ACT if state.steps(run)[3] else COMPARE_ACT
        hints = len(state.open_hints(run))
        besides = f" ({format.count(hints, 'hint')} unresolved)" if hints else ""
        text = f"No open conflicts{besides}: ready to synthesise"
        text = text if next_act == SYNTHESISE_ACT else "All agents ended: ready to integrate"
        found.append(decision(f"ready:{next_act}", "ready", text, act=next_act))
    for conflict in waiting:
        topic = clean_line(conflict.topic or "?")
        act = (RESOLVE_ACT if len(conflict.agents) > 1 else DISMISS_ACT) if conflict.id else None
        given = (("conflict", clean_line(conflict.id, 200)),) if act else ()
        key = f"conflict:{clean_line(conflict.id, 200)}:{topic}"
        pair = clean_line(conflict.between)
        text = f"Open conflict between {pair} on {topic}"
        found.append(decision(key, "conflict", text, act=act, given=given))
    if stage == "integrating" and run.drafts and all(state.steps(run)[:5]):
        mark = run.drafts[0].changed.isoformat()
        problem = _problem_of_draft(run)
        act = None if problem else FINISH_ACT
        text = problem or "The draft is ready for your approval"
        found.append(decision(f"draft:{mark}", "draft", text, act=act))
    return found


def _problem_of_draft(run: Run) -> str:
    """Why the draft cannot be approved as it stands."""
    form = schema.value_of(run.manifest).get("format")
    form = form if form in schema.FINALS else schema.FINALS[0]
    file = next((each for each in run.drafts if each.path.suffix == f".{form}"), None)
    problem = draft_problem(read_bytes(file.path) if file else b"", str(form))
    return f"{clean_line((file or run.drafts[0]).path.name)}: {problem}" if problem else ""


def _gap_needs(run: Run, stage: str) -> tuple[Matter, ...]:
    """What the final output lacks, for the one who reads it; who approved it knows that already."""
    if stage != "integrated with gaps" or run.integrated.by:
        return ()
    gaps = run.integrated.gaps or [f"{name} was skipped" for name in run.integrated.skipped]
    more = f" and {len(gaps) - 1} more" if len(gaps) > 1 else ""
    text = clean_line(f"Integrated with gaps: {gaps[0].rstrip('.')}{more}")
    return (decision(f"gaps:{mark(gaps)}", "gaps", text),)  # another one is another need


States = dict[str, str]


def why(agent: Agent, run: Run) -> str:
    """Why an agent ended as it did; a status file alone does not say it."""
    if agent.errors:
        return agent.errors[0]
    how = state.ending(agent, run)
    if how == schema.MISSING:
        return agent.plan.exit or "no status file"
    return "reason unknown" if how in schema.DECISIONS else ""


ACTS = {
    "inconsistent": RERUN_ACT,
    state.OVERWRITTEN: RERUN_ACT,
    "undecided": TRIAGE_ACT,
    "stalled": TRIAGE_ACT,
    "waiting": DISPATCH_ACT,
}
"""By what a need of this code is answered."""
_UNREADABLE = "A5"
_CURES = frozenset({REPAIR_ACT, STOP_ACT})


def obstacles(run: Run) -> tuple[Matter, ...]:
    """Everything that stands in the way now."""
    return (
        *_misplaced(run),
        *_damaged(run),
        *_journal(run),
        *_disk_obstacle(run),
        *_unspecified(run),
    )


def disk_problem(root: Path) -> str:
    """Why nothing can be written into a run now, "" where something can."""
    found = _closed_disk(root, scan.workspaces_of(root))
    return found.sentence if found else ""


def _closed_disk(root: Path, base: Path) -> Matter | None:
    return next(filter(None, map(guard.disk, (root, base, base / schema.COORD))), None)


def _damaged(run: Run) -> Iterator[Matter]:
    """What orchestrators share is broken, or is gone."""
    for record in run.coordination:
        problem = why_unreadable(record, run)
        if problem:
            yield _broken(record, run, problem)
    wrong = manifest_problem(run)
    if wrong and run.manifest is not None:
        yield _broken(run.manifest, run, wrong)
    if is_manifest_lost(run):
        name = _coordination_name(run, "manifest.json")
        what = f"{name} is missing: only the manifest says which agent does what"
        evidence = f"{_coordination_name(run, 'prompts')} exists, but the manifest is missing"
        yield _repairable(run, what, evidence, f"A5:{name}:gone")


def _repairable(
    run: Run, sentence: str, evidence: str, key: str, allowed: frozenset[str] = _CURES
) -> Matter:
    """What a repair mends."""
    cure = repair_command(run)
    return damage(_UNREADABLE, sentence, cure, allowed, REPAIR_ACT, evidence=(evidence,), key=key)


def repair_command(run: Run) -> str:
    """The command that mends the files which orchestrators share."""
    return f"acp workspaces {REPAIR_ACT} {clean_line(shlex.quote(str(run.root)), 4_000)}"


def _broken(record: Record, run: Run, problem: str) -> Matter:
    name = clean_line(record.file.name)
    said = clean_line(problem, 1_000)
    linked = record.file.link
    return damage(
        _UNREADABLE,
        f"{name} {said}" if said.startswith(("is ", "holds ")) else f"{name}: {said}",
        "move it away" if linked else repair_command(run),
        _CURES - {REPAIR_ACT} if linked else _CURES,
        "" if linked else REPAIR_ACT,
        evidence=(f"{name} changed {dated(record.file.changed)} (by its file time)",),
        document=name,
        key=f"A5:{name}:{record.file.changed.isoformat()}",
    )


def _misplaced(run: Run) -> Iterator[Matter]:
    """A folder of the run leads somewhere else."""
    try:
        Layout(run.root, run.base).check()
    except Refused as error:
        said = clean_line(str(error), 2_000)
        yield damage(
            _UNREADABLE,
            said,
            "replace it with a folder",
            frozenset({STOP_ACT}),
            evidence=(said,),
            key="A5:folder",
        )


def _journal(run: Run) -> Iterator[Matter]:
    """A writing was interrupted, and can be neither finished nor undone."""
    fault = journal_fault(run)
    if fault:
        name = _coordination_name(run, JOURNAL)
        sentence = f"the interrupted write in {name} can be neither finished nor undone"
        yield _repairable(run, sentence, f"{name}: {fault}", f"A5:{name}")


def _disk_obstacle(run: Run) -> Iterator[Matter]:
    """Nothing can be written there. Programs can still be stopped."""
    found = _closed_disk(run.root, run.base)
    if found:
        yield found._replace(refuses=frozenset({STOP_ACT}))


def _unspecified(run: Run) -> Iterator[Matter]:
    """What every agent reads first is gone: nobody is dispatched without it."""
    if run.manifest is None or run.spec is not None or run.cut:
        return
    name = clean_line(f"{run.base.name}/{schema.SHARED}/task-spec.json")
    waiting = any(each.is_planned and not each.plan.is_dispatched for each in run.agents)
    if waiting or any(each.decision == "rerun" for each in run.agents):
        yield _repairable(
            run,
            f"{name} is missing: acp dispatches no agent without it",
            f"the manifest exists, but {name} is missing",
            f"A5:{name}:gone",
            EVERY_ACT - {DISPATCH_ACT, RERUN_ACT},
        )


def _coordination_name(run: Run, name: str) -> str:
    return clean_line(f"{run.base.name}/{schema.COORD}/{name}")


def draft_problem(data: bytes, form: str) -> str:
    """Why a draft cannot become the final output, "" where it can."""
    if not data.strip():
        return "there is no draft: prepare one, or let a program write it"
    if TO_WRITE.encode() in data:
        return f"the draft still contains “{TO_WRITE}”: write that part"
    if form == "json":
        try:
            if not isinstance(json.loads(data), dict):
                return "a final output in JSON must be an object, to hold the metadata"
        except (ValueError, RecursionError):
            return "the draft is not valid JSON"
    return ""
