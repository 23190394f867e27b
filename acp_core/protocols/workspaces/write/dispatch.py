"""Dispatching and deciding: who may begin, what is written before it does, and what becomes of its result.

A result that is not a success is decided on, with a reason; an agent that is run once more keeps what
it wrote, and its earlier status and return are moved into the history. Source: agent workspaces
specification, "File-Based Handoffs", "Timestamped Outputs" and "Integration Step Protocol", steps 1
and 2.
"""

from __future__ import annotations

import getpass
import os
import platform
from datetime import datetime, timedelta
from pathlib import Path

from acp_core.files.transaction import MOVE, REPLACE, Write
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.workspaces import prompts, rules, schema, state
from acp_core.protocols.workspaces.read.manifest import (
    Manifest,
    Object,
    attempt_of,
    prompt_file,
    read_json,
    read_manifest,
    read_run,
    stamp_of,
    stored_return,
)
from acp_core.protocols.workspaces.schema import (
    RERUN_ACT,
    TRIAGE_ACT,
    Agent,
    Dispatch,
    Layout,
    Run,
    Task,
    encode,
    iso,
    require_folder,
)
from acp_core.protocols.workspaces.write.step import Step, carry_out_act, require_shallow


def this_host() -> str:
    """This machine, as entries of the manifest name it."""
    return platform.node() or "?"


def waiting_agents(manifest: Manifest, run: Run) -> list[str]:
    """Who is to be dispatched, ready or not: never dispatched, or to be run once more."""
    agents = run.by_name
    return [
        name for name, entry in manifest.entries.items() if _is_wanted(entry, agents.get(name), run)
    ]


def _is_wanted(entry: Object, agent: Agent | None, run: Run) -> bool:
    if agent is not None and agent.decision == "rerun":
        return True
    if agent is not None and agent.decision in ("gap", "skip", "orchestrator-does"):
        return False
    ended = agent is not None and agent.status is not None
    return not entry.get("dispatched_at") and not ended


def why_not_dispatched(manifest: Manifest, name: str, run: Run) -> str:
    """What an agent must wait for, "" where it may begin.

    An earlier agent is through when it has a status that may be used; one that was given up on
    holds nobody back.
    """
    agents = run.by_name
    for other in manifest.tasks[name].after:
        before = agents.get(other)
        if before is None or not before.outcome:
            if before is None or before.decision not in ("gap", "orchestrator-does"):
                return f"is waiting for {other}"
        elif state.undecided(before, run):
            return f"is waiting for your decision on {other}"
        elif before.decision == "rerun":
            return f"is waiting for {other}, which will rerun"
    return ""


def begin_attempt(manifest: Manifest, name: str, run: Run, now: datetime) -> Step:
    """What is written when an agent is dispatched: its prompt, then its entry; the manifest is changed.

    A status and a return of an earlier attempt are moved away before.

    Raises:
        Refused: its prompt cannot be made, a required input is missing, or it may launch agents
            where none may.
    """
    place, entry, task = manifest.place, manifest.entries[name], manifest.tasks[name]
    require_shallow(place.root, [name] if task.may_launch else [])
    own = place.workspace(name)
    require_folder(own)
    if not place.spec.is_file():
        raise Refused(f"{place.spec} is missing: write it before you dispatch")
    agent = run.by_name.get(name)
    writes = []
    if agent is not None and agent.decision == "rerun":
        writes += _put_away(manifest, agent)
        number = attempt_of(entry) + 1
        entry |= {"attempt": number, "stamp": _stamp(manifest, task, now)}
    output, status = schema.result_paths(place, task, manifest.naming, stamp_of(entry))
    for path in (output, status):
        if path.is_symlink():
            raise Refused(f"{path} is a symbolic link: acp does not dispatch it")
    dispatch = schema.decode_object(Dispatch, entry)
    text = prompts.render(
        prompts.Dispatch(
            task,
            len(manifest.tasks),
            manifest.project,
            inputs_of(manifest, task, run),
            output,
            status,
            task.others or _others(manifest, task),
            dispatch.feedback,
            dispatch.continue_from,
        )
    )
    path = prompt_file(place, entry, task)
    entry |= {
        "output": str(output),
        "status_file": str(status),
        "prompt_file": str(path),
        "dispatched_at": iso(now),
        "ended_at": None,
        "exit": None,
        "outside": [],
        "host": this_host(),
    }
    writes.append(Write(path, REPLACE, text.encode()))
    writes.append(manifest.write())
    sentence = f"Dispatch {name} (attempt {attempt_of(entry)})."
    return Step(sentence, tuple(writes), folders=() if own.is_dir() else (own,))


def inputs_of(manifest: Manifest, task: Task, run: Run) -> tuple[tuple[str, bool], ...]:
    """What an agent reads: the task specification, its inputs, and what those before it wrote.

    Raises:
        Refused: something that is required is not there.
    """
    found = {str(manifest.place.spec): True}
    found |= {each.path: each.required for each in task.inputs}
    for other in task.after:
        agent = run.by_name.get(other)
        listed = agent.results if agent else ()
        for each in listed:
            inside = each.file is not None and each.owner == other and each.path is not None
            if inside and agent is not None and agent.decision != "skip":
                found[str(each.path)] = True
    for path, required in found.items():
        if required and not os.path.isfile(path):
            raise Refused(f"{task.agent}: the required input {path} does not exist")
        if not schema.is_one_line(path):
            raise Refused(f"{task.agent}: the path of an input spans several lines")
    return tuple(found.items())


def _others(manifest: Manifest, task: Task) -> str:
    """What the others do. Who works after somebody need not know it: only tasks are named."""
    tasks = [each.task for each in manifest.tasks.values() if each.agent != task.agent]
    short = [each if len(each) <= 120 else f"{each[:119]}…" for each in tasks[:10]]
    return "; ".join(each.rstrip(".") for each in short) or "anything else"


def _put_away(manifest: Manifest, agent: Agent) -> list[Write]:
    """The status and the return of the attempt that ended, moved into the history."""
    entry, task = manifest.entries[agent.name], manifest.tasks[agent.name]
    history = manifest.place.coord / "history" / agent.name / str(attempt_of(entry))
    files = [record.file.path for record in agent.records]
    stored = stored_return(manifest.place, entry, task)
    if stored is not None:
        files.append(stored)
    found = []
    for path in files:
        inside = path.parent in (
            manifest.place.workspace(agent.name),
            manifest.place.coord / "returns",
        )
        if inside and os.path.lexists(path):
            name = f"return-{path.name}" if path == stored else path.name
            found.append(Write(free_path(history / name), MOVE, source=path))
    return found


def free_path(path: Path) -> Path:
    """A name that nothing has yet: an earlier try to put it away may have got so far."""
    number, free = 1, path
    while os.path.lexists(free):
        number, free = number + 1, path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free


def _stamp(manifest: Manifest, task: Task, now: datetime) -> str:
    """The stamp of a rerun in UTC; a later minute where this one is taken."""
    at = now
    while True:
        stamp = at.strftime("%Y%m%d-%H%M")
        output, _ = schema.result_paths(manifest.place, task, manifest.naming, stamp)
        prompt = manifest.place.coord / "prompts" / f"{task.task_id}-{stamp}.md"
        if not os.path.lexists(output) and not os.path.lexists(prompt):
            return stamp
        at += timedelta(minutes=1)


RERUN_DECISION = "rerun"
_LONGEST = 4_000


def this_person() -> str:
    """Who decides, where nobody says it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "?"


def plan_decision(place: Layout, name: str, decision: str, reason: str, by: str = "") -> Step:
    """What a decision would write.

    Raises:
        Refused: there is no such agent, it cannot be decided so, or no reason is given.
    """
    at = utc_now()
    run = read_run(place, at)
    agent = find_agent(run, name)
    possible = state.choices(agent, run)
    if decision not in possible:
        how = state.of_agent(agent, run, rules.check(run)) if agent.outcome else "not finished"
        how = state.ending(agent, run) or how if how not in state.DOUBTFUL else how
        raise Refused(f"{name} is {how}: decide {', '.join(possible)}, not {decision}")
    reason = " ".join(reason.split())[:_LONGEST]
    if not reason:
        raise Refused("give a reason for the decision")
    value = read_json(place.triage) or {}
    entry = {
        "agent": name,
        "task_id": agent.task_id or name,
        "attempt": agent.attempt,
        "decision": decision,
        "by": by or this_person(),
        "at": iso(at),
        "reason": reason,
    }
    value["decisions"] = [*schema.items_of(value.get("decisions")), entry]
    warnings = []
    if not state.ending(agent, run) and agent.plan.is_dispatched:
        warnings.append(f"{name} is still working: acp stops its program if it started it")
    if state.of_run(run).startswith("integrated"):
        warnings.append("the run is already integrated: finish the integration again after this")
    return Step(
        f"Decide on {name} (attempt {agent.attempt}): {decision}.",
        (Write(place.triage, REPLACE, encode(value)),),
        tuple(warnings),
    )


def decide(place: Layout, name: str, decision: str, reason: str, by: str = "") -> Step:
    """Decide on an agent. One that still works is stopped by its watcher.

    Raises:
        Refused: as `plan`.
        OSError: it cannot be written.
    """
    return carry_out_act(
        place, TRIAGE_ACT, lambda: plan_decision(place, name, decision, reason, by)
    )


def rerun(place: Layout, name: str, feedback: str = "", *, go_on: bool = False) -> None:
    """Have an agent run once more, with something said to it; who dispatches next starts it.

    Raises:
        Refused: there is no such agent, or it was never dispatched.
        OSError: it cannot be written.
    """
    reason = " ".join(feedback.split()) or "rerun"

    def step() -> Step:
        agent = find_agent(read_run(place, utc_now()), name)
        manifest = read_manifest(place)
        entry = manifest.entries.get(name)
        if entry is None:
            raise Refused(f"{name} is not in the manifest")
        earlier = _earlier(agent) if go_on else ""
        entry |= {"feedback": feedback.strip()[:_LONGEST], "continue_from": earlier}
        if agent.decision == RERUN_DECISION:  # it is decided already: what is said to it is new
            return Step(f"Rerun {name}.", (manifest.write(),))
        decided = plan_decision(place, name, RERUN_DECISION, reason)
        return Step(decided.sentence, (manifest.write(), *decided.writes), decided.warnings)

    carry_out_act(place, RERUN_ACT, step)


def _earlier(agent: Agent) -> str:
    """The file from which to go on: what it listed, else the output that is there."""
    listed = [str(each.path) for each in agent.results if each.file and each.owner == agent.name]
    listed = [each for each in listed if schema.is_one_line(each)]
    if listed:
        return listed[0]
    said = agent.plan.output
    there = [str(file.path) for file in agent.files if not file.link]
    if said in there:
        return said
    raise Refused(f"{agent.name} wrote no output to continue from")


def require_all(run: Run) -> None:
    """See to it that nobody is waited for any more.

    Raises:
        Refused: an agent is not through, or not decided on; the message names each.
    """
    if state.steps(run)[1]:
        return
    left = [a.name for a in run.agents if not state.finished(a, run) or state.undecided(a, run)]
    raise Refused(
        f"agents without a final result or decision: {', '.join(left)}"
        " (see `acp workspaces triage`)"
    )


def find_agent(run: Run, name: str) -> Agent:
    """An agent of the run.

    Raises:
        Refused: there is none of that name.
    """
    agent = run.by_name.get(name)
    if agent is None:
        known = ", ".join(each.name for each in run.agents) or "none"
        raise Refused(f"no agent {name!r} (agents: {known})")
    return agent
