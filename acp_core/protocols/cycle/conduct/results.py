"""What follows from the end of an agent's run, and of an iteration: pure functions of the state.

A cycle completes only when its tests ran and pass, its tasks are done and no agent says that it has
not finished (then a person is asked); else the next iteration begins with what failed, as long as
the limit allows, and a person is asked beyond it. Where the state holds criteria of convergence
these say how many tests must pass.

What an agent wrote stays as it wrote it. Decided as for the state: what another run changed is put
back and said, and what it wrote is kept. Logs are watched elsewhere: they may grow. A copy of each
document is kept beside the orchestrator's own files, from when its writer ended until it begins
again. Source: development cycle specification, "Agent Status Update", "Conflict Resolution" (test
failure), "State Consistency Rules" (single writer) and "Progress Markdown Files" (no overwrites).
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from acp_core.files import atomic
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle import state as cycle_state
from acp_core.protocols.cycle.conduct import steps
from acp_core.protocols.cycle.conduct.agent import TaskRun
from acp_core.protocols.cycle.conduct.steps import (
    ACCEPT,
    AGAIN,
    MORE,
    ON,
    STOP,
    ask_unfinished,
    close_iteration,
    complete,
    escalate,
)
from acp_core.protocols.cycle.prompts import PRIMARY
from acp_core.protocols.cycle.read import progress as read_progress
from acp_core.protocols.cycle.read import scan
from acp_core.protocols.cycle.read.progress import PhaseResult, Ratio
from acp_core.protocols.cycle.read.scan import content_digest
from acp_core.protocols.cycle.schema import (
    AGENTS,
    FIRST_VERSION,
    Object,
    coordination_of,
    iteration_of,
    one_line,
    parse_object,
    plan_of,
    stamp_of,
    text,
)
from acp_core.protocols.cycle.state import Criteria, Tests, failed_names
from acp_core.protocols.cycle.write import changes, layout
from acp_core.protocols.cycle.write.changes import agent_of, agent_state
from acp_core.protocols.cycle.write.layout import note, section

OVERWRITES = "overwrites"


class Overwritten(NamedTuple):
    """A document that somebody else's run changed or removed.

    Attributes:
        owner: the agent whose document it is.
        name: its name below the progress folder.
        kept: where what the other one wrote is kept, below that folder; "" where it removed it.
        is_back: it holds again what its owner wrote.
    """

    owner: str
    name: str
    kept: str
    is_back: bool


class Outputs:
    """The documents of a cycle's agents as they left them.

    Args:
        progress: the cycle's progress folder.
        place: a folder of the orchestrator's own, for this cycle.
    """

    def __init__(self, progress: Path, place: Path) -> None:
        self._progress = progress
        self._place = place

    def remember(self, agents: Iterable[str]) -> None:
        """Keep the documents of these agents as they stand."""
        names = set(agents)
        known = {n: d for n, d in self._known().items() if n.partition("/")[0] not in names}
        atomic.private_folder(self._place)
        for agent in names:
            for path in scan.agent_documents(self._progress, agent):
                data = layout.content(path)
                if data is not None:
                    known[f"{agent}/{path.name}"] = digest = content_digest(data)
                    with contextlib.suppress(FileExistsError):
                        atomic.create(self._place / digest, data, sync=False, private=True)
        data = json.dumps(known).encode()
        atomic.replace(self._place / "digests.json", data, sync=False, private=True)
        for each in self._place.iterdir():
            if each.name != "digests.json" and each.name not in known.values():
                each.unlink(missing_ok=True)

    def put_back(self, by: str, agents: Iterable[str]) -> list[Overwritten]:
        """Put back what a run changed in the folders of these agents, as far as it is kept."""
        owners, found = set(agents), []
        for name, digest in self._known().items():
            owner, path = name.partition("/")[0], self._progress / name
            now = layout.content(path)
            if owner not in owners or path.parent.is_symlink() or path.is_symlink():
                continue
            if now is None or content_digest(now) != digest:
                found.append(self._restored(Overwritten(owner, name, "", False), by, now, digest))
        return found

    def _restored(self, each: Overwritten, by: str, now: bytes | None, digest: str) -> Overwritten:
        before = layout.content(self._place / digest)
        kept = self._set_aside(each, by, now) if now is not None else ""
        if before is not None and content_digest(before) == digest:
            atomic.replace(self._progress / each.name, before)
            return each._replace(kept=kept, is_back=True)
        return each._replace(kept=kept)

    def _set_aside(self, each: Overwritten, by: str, data: bytes) -> str:
        """Keep what the other one wrote in the history of the document; where."""
        path = Path(each.name)
        atomic.shared_folder(self._progress / each.owner / "history")
        word = content_digest(data)[:8]
        kept = f"{each.owner}/history/{path.stem}-by-{by}-{word}{path.suffix}"
        with contextlib.suppress(FileExistsError):
            atomic.create(self._progress / kept, data)
        return kept

    def _known(self) -> dict[str, str]:
        """The digest of each document, by its name below the progress folder."""
        held = parse_object(layout.content(self._place / "digests.json") or b"") or {}
        return {name: text(digest) for name, digest in held.items()}


def record(state: Object, now: datetime, run: str, by: str, found: list[Overwritten]) -> None:
    """Say what a run changed that is not its own; ask a person where it could not be put back."""
    held = section(state)
    rows = held.get(OVERWRITES)
    held[OVERWRITES] = rows if isinstance(rows, list) else []
    for each in found:
        row: Object = {
            "file": each.name,
            "owner": each.owner,
            "by": by,
            "run": run,
            "at": stamp_of(now),
        }
        held[OVERWRITES].append(row | {"kept_as": each.kept, "put_back": each.is_back})  # type: ignore[attr-defined]
        what = f"{by} changed {each.name}, which only {each.owner} writes"
        kept = f"; the version of {by} is kept as {each.kept}" if each.kept else ""
        if each.is_back:
            note(state, now, "orchestrator", f"{what}: put back{kept}")
            continue
        note(state, now, "orchestrator", f"{what}: acp has no copy of the old content{kept}")
        question = f"{what}, and acp has no copy of the old content"
        escalate(state, now, "agent", question, (AGAIN, ON, STOP), agent=each.owner)


_LISTED_NAMES = 8


class Issue(NamedTuple):
    """What is not good: who mends it, in a sentence, and how one sees that it is mended."""

    agent: str
    text: str
    criteria: tuple[str, ...]


def evaluate(state: Object, now: datetime) -> None:
    """Judge the iteration: complete the cycle, begin the next one, or ask a person."""
    for each in coordination_of(state).open_blockers:
        reporter = each.reported_by.lower()
        asked = each.description or each.id
        escalate(state, now, "blocker", asked, (), agent=reporter, blocker=each.id)
        return
    tests = Tests(schema.obj(state.get("test_results")))
    if not tests.proven:
        asked = "VAS named no tests that ran: test-results.json is missing, old or empty"
        escalate(state, now, "unproven", asked, (AGAIN, ACCEPT, STOP), agent="vas")
        return
    found = issues(state)
    if not found and ask_unfinished(state, now, AGENTS):
        return
    if not found:
        complete(state, now, resolved=True, reached=_reached(state, tests))
        return
    close_iteration(state, now, _problems(state, found), resolved=False)
    current = iteration_of(state)
    limit = schema.count(state.get("max_iterations"))
    if limit is not None and current >= limit:
        asked = f"Iteration {current} of {limit} ended: {'; '.join(each.text for each in found)}"
        escalate(state, now, "limit", asked, (MORE, ACCEPT, STOP))
        return
    misses_gate = cycle_state.leaves_first_phase(state) and not tests.rate
    if misses_gate and not _asked(state, current):
        asked = f"Iteration {current} ends zero_to_one, but no test passes"
        escalate(state, now, "gate", asked, (ON, ACCEPT, STOP))
        return
    feed_back(state, now, found)


def feed_back(state: Object, now: datetime, found: list[Issue]) -> None:
    """Begin the next iteration with what is not good."""
    first = min(AGENTS.index(each.agent) for each in found)
    source = "vas"
    for agent in AGENTS:
        own = [each for each in found if each.agent == agent]
        if own:
            criteria = [item for each in own for item in each.criteria]
            text = "; ".join(each.text for each in own)
            changes.add_feedback(state, now, source, agent, text, "bug_report", criteria=criteria)
    changes.begin_iteration(state, now, AGENTS[first:])


def issues(state: Object) -> list[Issue]:
    """What is not good, and who mends it: CD, or RA and EP where VAS says so."""
    found: list[Issue] = []
    tests = Tests(schema.obj(state.get("test_results")))
    wanted = cycle_state.criteria(state)
    enough = wanted.rate is not None and tests.rate is not None and tests.rate >= wanted.rate
    if tests.failed and not enough:
        names = ", ".join(tests.names[:_LISTED_NAMES])
        more = (
            f" and {len(tests.names) - _LISTED_NAMES} more"
            if len(tests.names) > _LISTED_NAMES
            else ""
        )
        rate = f"; {wanted.rate:g} % must pass" if wanted.rate else ""
        said = f"{tests.failed} of {tests.total} tests fail{rate}: {names}{more}"
        found.append(Issue("cd", said, tuple(f"{name} passes" for name in tests.names[:50])))
    undone = [each.id for each in plan_of(state.get("plan")).tasks if each.is_undone]
    if undone:
        said = f"{len(undone)} planned tasks not done: {', '.join(undone[:_LISTED_NAMES])}"
        found.append(Issue("cd", said, tuple(f"{id} is done" for id in undone[:50])))
    critical = schema.count(schema.obj(state.get("test_results")).get("critical_issues"))
    if critical and critical > wanted.critical:
        said = f"VAS found {critical} critical issues: see validation.md"
        left = f"no more than {wanted.critical} critical issues are left"
        criterion = left if wanted.critical else "no critical issues are left"
        found.append(Issue("cd", said, (criterion,)))
    found += _uncovered(tests, wanted)
    if found:  # remarks alone do not keep a cycle from completing
        for text in _remarks(state):
            asked = steps.route(text, "vas")
            if asked.owner in ("ra", "ep") and text.lower().startswith((f"{asked.owner}:",)):
                found.append(Issue(asked.owner, asked.question, ()))
    return found


def _uncovered(tests: Tests, wanted: Criteria) -> list[Issue]:
    """Too few lines are covered, or nobody knows how many: 0 is what is told then."""
    if wanted.coverage is None or (tests.coverage or 0) >= wanted.coverage:
        return []
    criterion = (f"{wanted.coverage:g} % of the lines are covered",)
    if not tests.coverage:
        said = f"coverage was not collected; required: {wanted.coverage:g} %"
        return [Issue("vas", said, ("test-results.json holds the coverage", *criterion))]
    said = f"{tests.coverage:g} % of the lines are covered; required: {wanted.coverage:g} %"
    return [Issue("cd", said, criterion)]


def _reached(state: Object, tests: Tests) -> str:
    """By how much a cycle is good, where not simply every test has to pass."""
    wanted = cycle_state.criteria(state)
    parts = []
    if wanted.rate is not None and tests.failed and tests.rate is not None:
        parts.append(f"{tests.rate:g} % of the tests pass; required: {wanted.rate:g} %")
    if wanted.coverage is not None and tests.coverage is not None:
        parts.append(f"{tests.coverage:g} % are covered; required: {wanted.coverage:g} %")
    return "; ".join(parts if tests.failed or not parts else ("all tests pass", *parts))


def _asked(state: Object, current: int) -> bool:
    """Whether a person was asked about this iteration's gate already."""
    asked = coordination_of(state).decisions
    return any(each.kind == "gate" and each.iteration == current for each in asked)


def _remarks(state: Object) -> list[str]:
    records = schema.objects(state.get("iterations"))
    return schema.words(records[-1].get("issues_found")) if records else []


def _problems(state: Object, found: list[Issue]) -> list[str]:
    return list(dict.fromkeys((*_remarks(state), *(each.text for each in found))))


_SHORTEST = 12  # letters from which on a text is told from others by itself
_RECORDED_FILES = 200  # files that the record of an iteration names


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
    changes.add_error(state, now, name, one_line(why))
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
    open_issues = [one_line(each) for each in result.items("issues")[:_RECORDED_FILES]]
    if result.status == "partial" and not blockers:
        left = "; ".join(open_issues[:8]) or one_line(result.summary) or "no reason given"
        agent[steps.UNFINISHED] = left
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
            steps.ask_unfinished(state, now, (name,))


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
    asked |= {_letters(steps.route(each, "cd").question) for each in reported}
    return [q for q in facts.questions if _letters(steps.route(q, "cd").question) not in asked]


def _new_discoveries(state: Object, name: str, facts: Facts, reported: list[str]) -> list[str]:
    """What blocks by the shared board, and was neither told otherwise nor asked before.

    That of an agent which is still at work is taken up when it ends; all else now, whoever wrote
    it, so that none is lost.
    """
    known = [_letters(each.description) for each in coordination_of(state).blockers]
    known += [_letters(steps.route(each, name).question) for each in reported]
    new: list[str] = []
    for agent, issue in facts.blocking:
        if agent != name and agent in AGENTS and steps.status(state, agent) == "running":
            continue
        asked = _letters(steps.route(one_line(issue), name).question)
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
        "completed_at": stamp_of(now),
        "version": version,
        "output_files": list(facts.files),
        "last_message": one_line(result.summary),
        "iterations_completed": current,
        "attempts": 0,
    }
    agent.pop("error", None)
    agent.pop(steps.UNFINISHED, None)
    agent.pop(steps.FINALIZING, None)
    phases = state.get("completed_phases")
    before = phases if isinstance(phases, list) else []
    state["completed_phases"] = before if name in before else [*before, name]
    records = schema.objects(state.get("iterations"))
    if records and isinstance(records[-1].get("agent_results"), dict):
        files = _modified(result)
        record: Object = {"status": result.status, "files_modified": len(files)}
        record["files"] = files[:_RECORDED_FILES]
        if reasons := result.items("issues")[:_RECORDED_FILES]:
            record["issues"] = [one_line(each) for each in reasons]
        schema.obj(records[-1]["agent_results"])[name] = record


def _modified(result: PhaseResult) -> list[str]:
    return result.items("files_modified") or result.items("files_written")


def _block(state: Object, now: datetime, name: str, said: str) -> None:
    """Record what an agent does not know, and ask who can answer."""
    found = steps.route(one_line(said), name)
    known = [_letters(each.description) for each in coordination_of(state).blockers]
    before = _letters(found.question) in known
    owner = steps.USER if before else found.owner  # asked again: the answer did not help
    id = changes.new_id(state, "blockers", "BLK")
    blocker: Object = {
        "id": id,
        "description": found.question,
        "reported_by": name,
        "status": "open",
        "routed_to": owner,
        "reported_at": stamp_of(now),
        "iteration": iteration_of(state),
    }
    changes.append(state, "blockers", blocker)
    note(state, now, name, f"blocker {id}: {found.question}")
    if owner == steps.USER:
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
        each["answered_at"] = stamp_of(now)
    for blocker in coordination_of(state).open_blockers:
        if blocker.routed_to != name:
            continue
        id, reporter = blocker.id, blocker.reported_by
        answer = f"{one_line(summary) or 'updated'} ({PRIMARY[name]} v{version})"
        blocker.raw.update(status="resolved", resolution=answer, resolved_by=name)
        blocker.raw["resolved_at"] = stamp_of(now)
        note(state, now, name, f"clarified {id}: {answer}")
        if reporter in AGENTS:
            text = f"{id}: {blocker.description} Answer: {answer}"
            changes.add_feedback(state, now, name, reporter, text, "clarification", blocker=id)
    for each in changes.entries(state, "feedback_log"):
        if each.get("target") == name and each.get("sent_at") and not each.get("answered_at"):
            each["answered_at"] = stamp_of(now)
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
        "last_updated": stamp_of(now),
    }  # fmt: skip


def _hold_ep(state: Object, now: datetime, result: PhaseResult, facts: Facts, version: str) -> None:
    state["exploration"] = {
        "version": version,
        "output_file": _path(facts, "exploration.md"),
        "summary": _summary(result),
        "last_updated": stamp_of(now),
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
        "last_updated": stamp_of(now),
    }


def _hold_cd(state: Object, now: datetime, result: PhaseResult, facts: Facts, version: str) -> None:
    number = iteration_of(state)
    held = _add_changes(state, now, result)
    held["iteration_markers"] = schema.obj(held.get("iteration_markers")) | {
        str(number): stamp_of(now)
    }
    passing = result.fields.get("tests_passing")
    state["implementation"] = {
        "version": version,
        "output_file": _path(facts, "implementation.md"),
        "summary": _summary(result)
        | ({"tests_passing": str(passing)} if isinstance(passing, Ratio) else {}),
        "last_updated": stamp_of(now),
    }
    _tick(state, result)


def _add_changes(state: Object, now: datetime, result: PhaseResult) -> Object:
    """Add the files that a run of CD changed to the list of changes; the list."""
    held = schema.obj(state.get("changes"))
    rows = schema.objects(held.get("changes"))
    made: list[Object] = [
        {"timestamp": stamp_of(now), "file": file, "action": "modify", "iteration": iteration_of(state),
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
        "last_run": stamp_of(now),
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
_HEADING = re.compile(r"^#{1,4} +Questions for (RA|EP)\b", re.IGNORECASE)
_ITEM = re.compile(r"^\s*[-*] +(?:\[ \] +)?(.+?)\s*$")
_SPARE = timedelta(seconds=3)  # clocks of file systems tick coarsely


@dataclass(frozen=True, slots=True)
class Facts:
    """What stands in an agent's folder.

    Attributes:
        version: the highest version that its documents name, "" for none.
        files: all of them, as the state lists them.
        plan: EP's plan.json.
        tests: VAS's test-results.json, {} where it was not written in this run.
        stale: VAS's results are there, but older than the run.
        questions: CD's open questions, each begun with whom it asks.
        blocking: discoveries of the shared board that block, and who told each.
    """

    version: str = ""
    files: tuple[str, ...] = ()
    plan: Object = field(default_factory=dict)
    tests: Object = field(default_factory=dict)
    stale: bool = False
    questions: tuple[str, ...] = ()
    blocking: tuple[tuple[str, str], ...] = ()


def read_facts(progress: Path, agent: str, started: datetime | None) -> Facts:
    """Look into an agent's folder.

    Args:
        progress: the cycle's progress folder.
        agent: whose folder.
        started: when its run began; results of before do not count.
    """
    plan: Object = {}
    tests: Object = {}
    stale, questions = False, []
    if agent == "ep":
        plan = layout.read_json(progress / "ep" / "plan.json")
    elif agent == "cd":
        questions = open_questions(layout.read(progress / "cd" / "issues.md"))
    elif agent == "vas":
        path = progress / "vas" / "test-results.json"
        tests = layout.read_json(path)
        if tests and started and scan.is_regular(path):
            stale = path.stat().st_mtime < (started - _SPARE).timestamp()
        tests = {} if stale else tests
    return Facts(
        layout.version_of_agent(progress, agent),
        tuple(layout.listed(progress, agent)),
        plan,
        tests,
        stale,
        tuple(questions),
        blocking(layout.read(progress / read_progress.BOARD)),
    )


def blocking(text: str) -> tuple[tuple[str, str], ...]:
    """The discoveries of a board that block: who told each, and what it is."""
    found = [
        each
        for each in read_progress.distinct(read_progress.read(text))
        if read_progress.blocks(each)
    ]
    return tuple((each.agent, schema.text(each.data.get("issue"))) for each in found)[:50]


def open_questions(issues: str) -> list[str]:
    """The questions of issues.md that are not ticked off, as "RA: question"."""
    found, whom = [], ""
    for line in issues.splitlines()[:5_000]:
        heading = _HEADING.match(line)
        if heading:
            whom = heading[1].upper()
        elif line.startswith("#"):
            whom = ""
        elif whom and (item := _ITEM.match(line)):
            said = item[1]
            if not said.startswith(("[x]", "[X]", "~~", "\u2713")) and said.lower() != "none":
                found.append(f"{whom}: {said}")
    return found[:50]
