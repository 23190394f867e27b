"""What follows from the end of an agent's run: pure functions of the state.

Source: development cycle specification, "Agent Status Update" and "Conflict Resolution".
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.conduct import escalation, routing, steps
from acp_core.protocols.cycle.conduct.escalation import AGAIN, STOP, escalate
from acp_core.protocols.cycle.conduct.facts import Facts
from acp_core.protocols.cycle.conduct.tasks import TaskRun
from acp_core.protocols.cycle.prompts import PRIMARY
from acp_core.protocols.cycle.read.reports import PhaseResult, Ratio
from acp_core.protocols.cycle.schema import (
    AGENTS,
    FIRST_VERSION,
    Object,
    coordination_of,
    iteration_of,
    one_line,
    plan_of,
)
from acp_core.protocols.cycle.state import failed_names
from acp_core.protocols.cycle.write import changes
from acp_core.protocols.cycle.write.changes import agent_of, agent_state, at
from acp_core.protocols.cycle.write.coordination import note

_SHORTEST = 12  # letters from which on a text is told from others by itself
_LISTED = 200  # files that the record of an iteration names


def cancelled_run(state: Object, now: datetime, name: str, why: str) -> None:
    """A person cancelled a run: nothing is begun before they say what is next.

    Args:
        state: the cycle's state, in which the agent is at work.
        now: when.
        name: the agent.
        why: who cancelled it.
    """
    agent = agent_of(state, name)
    before = agent_state(state, name)
    agent.pop(steps.FINALIZING, None)
    agent |= {"status": "failed", "error": one_line(why)}
    if name == "cd":
        lay_down_tasks(state)
    note(state, now, name, f"run {before.run}: {why}")
    _tell_again(state, before.run)
    asked = f"{name.upper()}: run {before.run} was {one_line(why)}"
    escalate(state, now, "agent", asked, (AGAIN, STOP), agent=name)


def _tell_again(state: Object, run: str) -> None:
    """What a run was told, the next one is told again."""
    for each in steps.sent_in(state, run):
        each.pop("sent_at", None)
        each.pop("run", None)


def failed_run(
    state: Object, now: datetime, name: str, why: str, attempts: int, *, late: bool = False
) -> None:
    """A run came to nothing: it is tried again, so many times in all; then a person is asked.

    One that was stopped because it took too long (``late``) is followed by a short run that only
    writes down what is done; when that comes to nothing too, a person is asked. The later form of
    the development cycle specification has a cascade: 30 minutes, a status check of 3 minutes, a
    request to finalize of 3 minutes, the end. Decided for programs that read one prompt and
    cannot be spoken to after: there is no status check; who has reported its PHASE_RESULT when
    its time is over has ended; the request to finalize is a run of its own. Where a run is tried
    once only, it is not made.
    """
    agent = agent_of(state, name)
    gave_up = bool(agent.pop(steps.FINALIZING, False))
    before = agent_state(state, name)
    tried = before.attempts + 1
    agent |= {"status": "idle", "attempts": tried, "error": one_line(why)}
    if name == "cd":
        lay_down_tasks(state)
    errors = state.get("phase_errors")
    found: Object = {"phase": name, "error": one_line(why), "timestamp": at(now)}
    state["phase_errors"] = [*(errors if isinstance(errors, list) else []), found]
    note(state, now, name, f"run {before.run} failed: {why}")
    _tell_again(state, before.run)
    if late and attempts > 1 and not gave_up:
        agent[steps.FINALIZE] = True
    elif tried >= attempts or gave_up:
        agent["status"] = "failed"
        often = f"{tried} times, the last time" if tried > 1 else "once"
        asked = f"{name.upper()} failed {often}: {one_line(why)}"
        escalate(state, now, "agent", asked, (AGAIN, STOP), agent=name)


def ended_run(
    state: Object, now: datetime, name: str, result: PhaseResult, facts: Facts, attempts: int
) -> None:
    """A run ended with a result.

    Args:
        state: the cycle's state, in which the agent is at work.
        now: when.
        name: the agent.
        result: what it said.
        facts: what it left in its folder.
        attempts: how often a run is tried in all.
    """
    if result.phase and result.phase != name and result.phase in AGENTS:
        failed_run(state, now, name, f"its PHASE_RESULT belongs to {result.phase}", attempts)
        return
    blockers = list(result.items("blockers"))
    if name == "cd" and result.status != "success":
        blockers += _new_questions(state, facts, blockers)
    blockers += _new_discoveries(state, name, facts, blockers)
    tested = name == "vas" and (facts.tests or result.items("failed_tests"))
    if result.status not in ("success", "partial") and not blockers and not tested:
        reasons = "; ".join(result.items("issues")) or result.summary
        said = f"status {result.status or 'missing'}" + (f": {reasons}" if reasons else "")
        failed_run(state, now, name, said, attempts)
        return
    agent = agent_of(state, name)
    version = facts.version or agent_state(state, name).target_version or FIRST_VERSION
    _completed(state, now, name, result, facts, version)
    _HOLD[name](state, now, result, facts, version)
    message = f"completed, v{version}: {result.summary or 'without a summary'}"
    note(state, now, name, message)
    for problem in result.problems(name):
        note(state, now, "orchestrator", f"PHASE_RESULT of {name.upper()}: {problem}")
    open_issues = [one_line(each) for each in result.items("issues")[:_LISTED]]
    if result.status == "partial" and not blockers:
        left = "; ".join(open_issues[:8]) or one_line(result.summary) or "no reason given"
        agent[escalation.UNFINISHED] = left
        note(state, now, name, f"not finished: {left}")
    else:
        for each in open_issues[:20]:
            note(state, now, name, f"issue: {each}")
    if blockers:
        agent["status"] = "waiting"
        for each in blockers[:20]:
            _block(state, now, name, each)
    else:
        _answered(state, now, name, result.summary, version)
        if name in ("ra", "ep"):  # what CD and VAS left is judged with the whole iteration
            escalation.ask_unfinished(state, now, (name,))


def moved_tasks(state: Object, now: datetime, runs: Sequence[TaskRun]) -> None:
    """Runs of single tasks of the plan began or ended: the plan says so, and what they changed.

    Args:
        state: the cycle's state, in which CD is at work.
        now: when.
        runs: the runs, as they began or as they ended.
    """
    for each in runs:
        _moved_task(state, now, each)


def _moved_task(state: Object, now: datetime, run: TaskRun) -> None:
    if run.ended is not None and run.ended.stopped:
        return  # it counts as if it had not been
    entry = next((each for each in _tasks(state) if each.get("id") == run.task.id), None)
    if entry is None:
        return
    name = run.task.id
    if run.ended is None:
        entry["status"] = "in_progress"
        note(state, now, "cd", f"{name}: started, run {run.key}")
    elif run.is_done and run.result is not None:
        entry["status"] = "completed"
        _add_changes(state, now, run.result)
        note(state, now, "cd", f"{name}: completed, {one_line(run.result.summary)}")
    else:
        entry["status"] = "pending"
        note(state, now, "cd", f"{name}: run {run.key} did not complete it: {run.trouble}")


def lay_down_tasks(state: Object) -> None:
    """CD does not work any more: nobody works on a task."""
    for each in _tasks(state):
        if each.get("status") == "in_progress":
            each["status"] = "pending"


def _tasks(state: Object) -> list[Object]:
    return schema.objects(schema.obj(state.get("plan")).get("tasks"))


def _new_questions(state: Object, facts: Facts, reported: list[str]) -> list[str]:
    """Questions of issues.md that were neither told otherwise nor asked before."""
    asked = {_letters(each.description) for each in coordination_of(state).blockers}
    asked |= {_letters(routing.route(each, "cd").question) for each in reported}
    return [q for q in facts.questions if _letters(routing.route(q, "cd").question) not in asked]


def _new_discoveries(state: Object, name: str, facts: Facts, reported: list[str]) -> list[str]:
    """What blocks by the shared board, and was neither told otherwise nor asked before.

    That of an agent which is still at work is taken up when it ends; all else now, whoever wrote
    it, so that none is lost.
    """
    known = [_letters(each.description) for each in coordination_of(state).blockers]
    known += [_letters(routing.route(each, name).question) for each in reported]
    new: list[str] = []
    for agent, issue in facts.blocking:
        if agent != name and agent in AGENTS and steps.status(state, agent) == "running":
            continue
        asked = _letters(routing.route(one_line(issue), name).question)
        if not any(_same(asked, each) for each in known):
            known.append(asked)
            new.append(issue)
    return new


def _same(one: str, other: str) -> bool:
    """Whether two texts tell the same; a long one may stand within the other."""
    if min(len(one), len(other)) < _SHORTEST:
        return one == other
    return one in other or other in one


def _letters(text: str) -> str:
    return "".join(sign for sign in text.lower() if sign.isalnum())


def _completed(
    state: Object, now: datetime, name: str, result: PhaseResult, facts: Facts, version: str
) -> None:
    agent = agent_of(state, name)
    current = iteration_of(state)
    agent |= {
        "status": "completed",
        "completed_at": at(now),
        "version": version,
        "output_files": list(facts.files),
        "last_message": one_line(result.summary),
        "iterations_completed": current,
        "attempts": 0,
    }
    agent.pop("error", None)
    agent.pop(escalation.UNFINISHED, None)
    agent.pop(steps.FINALIZING, None)
    phases = state.get("completed_phases")
    before = phases if isinstance(phases, list) else []
    state["completed_phases"] = before if name in before else [*before, name]
    records = schema.objects(state.get("iterations"))
    if records and isinstance(records[-1].get("agent_results"), dict):
        files = _modified(result)
        record: Object = {"status": result.status, "files_modified": len(files)}
        record["files"] = files[:_LISTED]
        if reasons := result.items("issues")[:_LISTED]:
            record["issues"] = [one_line(each) for each in reasons]
        schema.obj(records[-1]["agent_results"])[name] = record


def _modified(result: PhaseResult) -> list[str]:
    return result.items("files_modified") or result.items("files_written")


def _block(state: Object, now: datetime, name: str, said: str) -> None:
    """Record what an agent does not know, and ask who can answer."""
    found = routing.route(one_line(said), name)
    known = [_letters(each.description) for each in coordination_of(state).blockers]
    before = _letters(found.question) in known
    owner = routing.USER if before else found.owner  # asked again: the answer did not help
    id = changes.new_id(state, "blockers", "BLK")
    blocker: Object = {
        "id": id,
        "description": found.question,
        "reported_by": name,
        "status": "open",
        "routed_to": owner,
        "reported_at": at(now),
        "iteration": iteration_of(state),
    }
    changes.append(state, "blockers", blocker)
    note(state, now, name, f"blocker {id}: {found.question}")
    if owner == routing.USER:
        escalate(state, now, "blocker", found.question, found.options, agent=name, blocker=id)
    else:
        kind = "issue_fix" if owner == "cd" else "clarification"
        changes.add_feedback(
            state, now, name, owner, f"{id}: {found.question}", kind, blocker=id, asks=True
        )


def _answered(state: Object, now: datetime, name: str, summary: str, version: str) -> None:
    """The agent is through: what it was told is taken up, what it was asked is answered."""
    run = agent_state(state, name).run
    for each in steps.sent_in(state, run):
        each["answered_at"] = at(now)
    for blocker in coordination_of(state).open_blockers:
        if blocker.routed_to != name:
            continue
        id, reporter = blocker.id, blocker.reported_by
        answer = f"{one_line(summary) or 'updated'} ({PRIMARY[name]} v{version})"
        blocker.raw.update(status="resolved", resolution=answer, resolved_by=name)
        blocker.raw["resolved_at"] = at(now)
        note(state, now, name, f"clarified {id}: {answer}")
        if reporter in AGENTS:
            text = f"{id}: {blocker.description} Answer: {answer}"
            changes.add_feedback(state, now, name, reporter, text, "clarification", blocker=id)
    for each in changes.entries(state, "feedback_log"):
        if each.get("target") == name and each.get("sent_at") and not each.get("answered_at"):
            each["answered_at"] = at(now)
    if any(e.get("type") == "requirement_update" for e in steps.sent_in(state, run)):
        _tell_those_after(state, now, name, version)


def _tell_those_after(state: Object, now: datetime, name: str, version: str) -> None:
    """What others built on has changed on a person's word: they do their work again."""
    below = AGENTS[AGENTS.index(name) + 1 :]
    for each in below:
        if steps.status(state, each) == "completed":
            agent_of(state, each).update(status="idle", attempts=0)
            note(state, now, "orchestrator", f"{each} follows {name} v{version}")


# what each agent's part of the state holds


def _hold_ra(state: Object, now: datetime, result: PhaseResult, facts: Facts, version: str) -> None:
    state["requirements"] = {
        "version": version,
        "output_files": {"requirements": _path(facts, "requirements.md"),
                         "edge_cases": _path(facts, "edge-cases.md")},
        "summary": _summary(result, "requirements_count", "edge_cases_count", "new_items"),
        "last_updated": at(now),
    }  # fmt: skip


def _hold_ep(state: Object, now: datetime, result: PhaseResult, facts: Facts, version: str) -> None:
    state["exploration"] = {
        "version": version,
        "output_file": _path(facts, "exploration.md"),
        "summary": _summary(result),
        "last_updated": at(now),
    }
    before = {each.id: each.status for each in plan_of(state.get("plan")).tasks}
    found = plan_of(facts.plan)
    tasks = [
        each.entry(before.get(each.id, "")) | {"assigned_to": "cd", "files": [*each.files]}
        for each in found.tasks
    ]
    state["plan"] = {
        "version": version,
        "output_file": _path(facts, "plan.json"),
        "tasks": tasks,
        "total_estimated_effort": schema.text(facts.plan.get("estimated_duration")),
        "critical_path": [*found.critical_path],
        "last_updated": at(now),
    }


def _hold_cd(state: Object, now: datetime, result: PhaseResult, facts: Facts, version: str) -> None:
    number = iteration_of(state)
    held = _add_changes(state, now, result)
    held["iteration_markers"] = schema.obj(held.get("iteration_markers")) | {str(number): at(now)}
    passing = result.fields.get("tests_passing")
    state["implementation"] = {
        "version": version,
        "output_file": _path(facts, "implementation.md"),
        "summary": _summary(result)
        | ({"tests_passing": str(passing)} if isinstance(passing, Ratio) else {}),
        "last_updated": at(now),
    }
    _tick(state, result)


def _add_changes(state: Object, now: datetime, result: PhaseResult) -> Object:
    """Add the files that a run of CD changed to the list of changes; the list."""
    held = schema.obj(state.get("changes"))
    rows = schema.objects(held.get("changes"))
    made: list[Object] = [
        {"timestamp": at(now), "file": file, "action": "modify", "iteration": iteration_of(state),
         "agent": "cd", "description": one_line(result.summary)}
        for file in _modified(result)
    ]  # fmt: skip
    files = {schema.text(each.get("file")) for each in (*rows, *made)}
    kept = {"iteration_markers": schema.obj(held.get("iteration_markers"))}
    state["changes"] = kept | {"total_files": len(files), "changes": [*rows, *made]}
    return schema.obj(state["changes"])


def _tick(state: Object, result: PhaseResult) -> None:
    """Mark the tasks that CD says are done; all, where it succeeded and names none."""
    tasks = _tasks(state)
    named = result.fields.get("tasks_completed")
    if isinstance(named, list):
        done = set(named)
    elif isinstance(named, str) and named:
        done = {named}
    else:
        every = named is None or (type(named) is int and named >= len(tasks))
        done = {schema.text(each.get("id")) for each in tasks} if every else set()
        done = done if result.status == "success" else set()
    for each in tasks:
        if schema.text(each.get("id")) in done:
            each["status"] = "completed"
    lay_down_tasks(state)


def _hold_vas(
    state: Object, now: datetime, result: PhaseResult, facts: Facts, version: str
) -> None:
    """The results of VAS's file; what VAS says beside it can only make them worse."""
    summary = schema.obj(facts.tests.get("summary"))
    total = schema.count(summary.get("total", facts.tests.get("total_tests")))
    names = failed_names(facts.tests)
    failed = schema.count(summary.get("failed"))
    if failed is not None:
        unnamed = failed - len(names)
        names += [f"an unnamed failed test ({n + 1})" for n in range(min(unnamed, 200))]
    unlisted = [each for each in result.items("failed_tests") if each not in names]
    if unlisted and facts.tests:
        note(state, now, "orchestrator", "VAS reports more failing tests than its file contains")
    names = [*names, *unlisted] if not facts.tests or not names else names
    if facts.stale:
        note(state, now, "orchestrator", "test-results.json is older than the run: ignored")
    executed = facts.tests.get("executed") is not False
    rate = 100 * max(0, total - len(names)) / total if total else result.number("test_pass_rate")
    coverage = facts.tests.get("coverage")
    lines = coverage.get("lines") if isinstance(coverage, dict) else coverage
    state["test_results"] = {
        "version": version,
        "pass_rate": None if rate is None else round(rate, 2),
        "coverage": schema.number(lines) or result.number("coverage"),
        "failed_tests": names,
        "total_tests": total if total is not None and executed else 0,
        "last_run": at(now),
        "iteration": iteration_of(state),
        "output_file": _path(facts, "test-results.json"),
        "critical_issues": schema.count(result.fields.get("critical_issues")) or 0,
    }
    tested = schema.obj(state["test_results"])
    held: Object = {k: tested[k] for k in ("total_tests", "failed_tests", "pass_rate", "coverage")}
    records = schema.objects(state.get("iterations"))
    if records:
        records[-1]["test_results"] = held
        reasons = result.items("issues")
        records[-1]["issues_found"] = list(dict.fromkeys((*names, *reasons)))[:200]


def _path(facts: Facts, name: str) -> str:
    return next((each for each in facts.files if each.endswith(f"/{name}")), "")


def _summary(result: PhaseResult, *keys: str) -> Object:
    made: Object = {"text": one_line(result.summary)}
    return made | {key: result.plain()[key] for key in keys if key in result.fields}


_HOLD = {"ra": _hold_ra, "ep": _hold_ep, "cd": _hold_cd, "vas": _hold_vas}
