"""Rules on the state file: its fields, times and versions, the order of the agents, and what waits for a human.

Source: development cycle specification, "Shared State" and "Agent Dependencies" (the fields),
"State Consistency Rules" (times and iterations), "Dependency Resolution" (who may run now),
"Escalation" and "Feedback" (what "completed" leaves open), "Versioning Strategy".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from acp_core.files.records import NO_OBJECT
from acp_core.model import Finding, format
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.read import scan
from acp_core.protocols.cycle.schema import AGENTS, DEPENDS, VOICES, Cycle
from acp_core.protocols.kit.findings import advice, error, warning

_ID = re.compile(r"cycle-v1-\d{8}(?:T\d{6})?-[a-z0-9][a-z0-9-]*")
Findings = Iterator[Finding]


def a01(cycle: Cycle) -> Findings:
    """The state file can be read; what is being written right now is granted a moment."""
    problem = cycle.record.problem
    if problem and problem != NO_OBJECT and not scan.young(cycle.record, cycle.now):
        yield error("A01", f"The state file {cycle.record.problem}", cycle.record.file)


def a02(cycle: Cycle) -> Findings:
    """It is an object that holds the agents."""
    if cycle.record.problem == NO_OBJECT and not scan.young(cycle.record, cycle.now):
        yield error("A02", f"The state file {NO_OBJECT}", cycle.record.file)
    elif cycle.record.value is not None and not isinstance(cycle.value.get("agents"), dict):
        yield error("A02", "The state has no agents", cycle.record.file)


def a03(cycle: Cycle) -> Findings:
    """Its id is the name of its file."""
    said = cycle.state.cycle_id
    if cycle.record.value is not None and said != cycle.id:
        yield error("A03", f"cycle_id is {said!r}, but the file is {cycle.id}", cycle.record.file)


def a04(cycle: Cycle) -> Findings:
    """Its id has the form cycle-v1-date-word."""
    if not _ID.fullmatch(cycle.id):
        yield warning(
            "A04", f"{cycle.id} does not have the form cycle-v1-date-word", cycle.record.file
        )


def a05(cycle: Cycle) -> Findings:
    """The status is a known word."""
    if cycle.record.value is not None and cycle.status not in schema.STATUSES:
        yield error("A05", f"The status {cycle.status!r} is unknown", cycle.record.file)


def a06(cycle: Cycle) -> Findings:
    """The current iteration is a whole number."""
    said = cycle.value.get("current_iteration")
    if said is not None and schema.count(said) is None:
        yield error("A06", "current_iteration is not a whole number from 0", cycle.record.file)


def a07(cycle: Cycle) -> Findings:
    """No more iterations than the limit."""
    limit = cycle.state.max_iterations
    if limit is not None and cycle.iteration > limit:
        yield warning("A07", f"Iteration {cycle.iteration} is above {limit}", cycle.record.file)


def a08(cycle: Cycle) -> Findings:
    """All four agents are there."""
    agents = cycle.value.get("agents")
    if not isinstance(agents, dict):
        return
    for name in AGENTS:
        if not isinstance(agents.get(name), dict):
            yield error("A08", f"The agent {name} is missing", cycle.record.file)
    for name in agents:
        if name not in AGENTS:
            yield advice("A08", f"The agent {name} is unknown", cycle.record.file)


def a09(cycle: Cycle) -> Findings:
    """Each agent's status is a known word."""
    for name in AGENTS:
        agent = cycle.agent(name)
        said = agent.status
        if not agent.raw or said in schema.AGENT_STATUSES:
            continue
        if state.agent_status(cycle, name) != "unknown":
            yield warning("A09", f"{name}: {said!r} is read as a synonym", cycle.record.file)
        else:
            yield error("A09", f"{name}: the status {said!r} is unknown", cycle.record.file)


def a14(cycle: Cycle) -> Findings:
    """A completed cycle says when; one that goes on says it only of an earlier end."""
    ended = cycle.state.completed_at
    if cycle.status == "completed" and not cycle.value.get("completed_at"):
        yield warning("A14", "Completed without completed_at", cycle.record.file)
    elif cycle.status == "running" and ended and not _begun_after(cycle, ended):
        message = (
            "completed_at is set, but the status is running and no later iteration is recorded"
        )
        yield error("A14", message, cycle.record.file)


def _begun_after(cycle: Cycle, ended: datetime) -> bool:
    """Whether an iteration began after the cycle had ended."""
    for each in cycle.state.iterations:
        if (each.started_at and each.started_at >= ended) or not each.raw.get("completed_at"):
            return True
    updated = cycle.state.updated_at
    return cycle.iteration > 1 and updated is not None and updated >= ended


def a16(cycle: Cycle) -> Findings:
    """A completed cycle is in the phase "complete"."""
    phase = cycle.state.current_phase
    if cycle.status == "completed" and phase and phase != "complete":
        yield warning("A16", f"Completed in the phase {phase}", cycle.record.file)


READING = (a01, a02, a03, a04, a05)
STATE_RULES = (a06, a07, a08, a09, a14, a16)
_TOP = ("created_at", "updated_at", "completed_at")
_PARTS = ("requirements", "exploration", "plan", "implementation", "validation")
_STALE = timedelta(minutes=10)


def _stamps(cycle: Cycle) -> Iterator[tuple[str, object]]:
    """Every time in the state, with its name."""
    value = cycle.value
    yield from ((key, value.get(key)) for key in _TOP)
    for name in AGENTS:
        yield from ((f"{name} {key}", cycle.agent(name).raw.get(key)) for key in _SPAN)
    for part in _PARTS:
        yield f"{part} last_updated", schema.obj(value.get(part)).get("last_updated")
    yield "test_results last_run", schema.obj(value.get("test_results")).get("last_run")
    for each in schema.objects(value.get("phase_errors")):
        yield "phase_errors timestamp", each.get("timestamp")
    for entry in cycle.state.feedback:
        yield "feedback timestamp", entry.raw.get("timestamp")
    for record in cycle.state.iterations:
        yield from ((f"iteration {key}", record.raw.get(key)) for key in _SPAN)


_SPAN = ("started_at", "completed_at")


def a10(cycle: Cycle) -> Findings:
    """Times can be read, say their offset, and a Z means UTC."""
    held = [(key, value) for key, value in _stamps(cycle) if value not in (None, "")]
    unread = [key for key, value in held if cycle.at(value) is None]
    loose = [key for key, value in held if cycle.at(value) and not schema.has_offset(value)]
    if unread:
        message = f"{_several(unread)} unreadable as time"
        yield error("A10", message, cycle.record.file)
    if loose:
        message = f"{_several(loose)} no ISO 8601 time with an offset: taken as UTC+8"
        yield warning("A10", message, cycle.record.file)
    if cycle.shifted:
        yield advice("A10z", "Times with Z are in the future: read as UTC+8", cycle.record.file)


def _several(names: list[str]) -> str:
    several = list(dict.fromkeys(names))
    rest = f" and {len(several) - 4} more" if len(several) > 4 else ""
    return f"{', '.join(several[:4])}{rest} {'is' if len(names) == 1 else 'are'}"


def a11(cycle: Cycle) -> Findings:
    """No agent did anything after the cycle was last written, or had ended."""
    ended = cycle.status == "completed"
    key = "completed_at" if ended else "updated_at"
    last = (cycle.state.completed_at if ended else None) or cycle.state.updated_at
    spans = ((name, cycle.agent(name)) for name in AGENTS)
    late = [
        f"{name} {stamp}"
        for name, agent in spans
        for stamp, at in zip(_SPAN, (agent.started_at, agent.completed_at), strict=True)
        if last and at and at > last
    ]
    if late:
        verb = "lies" if len(late) == 1 else "lie"
        yield warning("A11", f"{', '.join(late)} {verb} after {key}", cycle.record.file)


def a12(cycle: Cycle) -> Findings:
    """Nothing completes before it starts; an agent at work was started again."""
    for name in AGENTS:
        agent = cycle.agent(name)
        start, end = agent.started_at, agent.completed_at
        again = state.agent_status(cycle, name) in ("running", "waiting")
        if start and end and end < start and not again:
            yield error("A12", f"{name} completed before it started", cycle.record.file)
    start, end = cycle.state.created_at, cycle.state.completed_at
    if start and end and end < start:
        yield error("A12", "The cycle completed before it was created", cycle.record.file)


def a13(cycle: Cycle) -> Findings:
    """In a completed cycle every agent has completed as many iterations as there were."""
    behind = []
    for name in AGENTS:
        done = cycle.agent(name).iterations_completed
        if done is not None and done < cycle.iteration:
            behind.append(f"{name} {done}")
    if behind and cycle.status == "completed":
        message = f"Iteration {cycle.iteration} is completed; iterations_completed: "
        yield advice("A13", message + ", ".join(behind), cycle.record.file)


def a18(cycle: Cycle) -> Findings:
    """The state is as new as the newest file of the progress folder.

    A file counts only where it is newer than the state's own file too: copies and checkouts give
    all files the time of the copy.
    """
    updated = cycle.state.updated_at
    newest = max(cycle.files, key=lambda file: file.changed, default=None)
    if updated is None or newest is None:
        return
    known = max(updated, cycle.record.file.changed)
    if newest.changed > known + _STALE and newest.changed <= cycle.now + schema.SKEW:
        message = f"{newest.path.name} is newer than the state by more than 10 minutes"
        yield warning("A18", message, cycle.record.file)


TIME_RULES = (a10, a11, a12, a13, a18)
_PAIRS = tuple((before, name) for name, before in DEPENDS.items() if before)


def a19(cycle: Cycle) -> Findings:
    """Something is done about an agent that failed while the cycle goes on."""
    if cycle.status != "running" or cycle.state.phase_errors:
        return
    addressed = {each.target.lower() for each in cycle.state.feedback}
    for name in AGENTS:
        if state.agent_status(cycle, name) == "failed" and name not in addressed:
            sentence = f"{name} failed, but neither feedback nor phase_errors mention it"
            yield warning("A19", sentence, cycle.record.file)


def a20(cycle: Cycle) -> Findings:
    """In the first iteration an agent starts after the one that it depends on completed.

    That one may have been run again since: then its first end is not known.
    """
    if cycle.iteration > 1:
        return
    for before, name in _PAIRS:
        start, end = cycle.agent(name).started_at, cycle.agent(before).completed_at
        if start and end and start < end and not _ran_again(cycle, before):
            message = f"{name} started before {before} had completed"
            yield warning("A20", message, cycle.record.file)


def _ran_again(cycle: Cycle, name: str) -> bool:
    if (cycle.agent(name).iterations_completed or 0) > 1:
        return True
    asked = [each.target for each in cycle.state.feedback]
    asked += [each.target for each in cycle.state.blockers]
    if any(each.lower() in (name, "") for each in asked):
        return True
    version = schema.version(cycle.part(state.HOLDERS[name]).version)
    return (version or (1, 0, 0)) > (1, 0, 0)


def _declared(cycle: Cycle) -> dict[str, list[str]]:
    """What each agent is said to depend on, where it is told."""
    named = {name: cycle.agent(name).raw.get("depends_on") for name in AGENTS}
    return {name: schema.words(value) for name, value in named.items() if isinstance(value, list)}


def a21(cycle: Cycle) -> Findings:
    """Agents depend on one another as RA, EP, CD, VAS."""
    declared = _declared(cycle)
    for name, before in declared.items():
        for each in before:
            if each.lower() not in AGENTS:
                message = f"{name} depends on {each}, which is not an agent"
                yield error("A21", message, cycle.record.file)
        if {each.lower() for each in before} != ({DEPENDS[name]} if DEPENDS[name] else set()):
            said, due = ", ".join(before) or "no agent", DEPENDS[name] or "no agent"
            message = f"{name} depends on {said}, but the order requires {due}"
            yield warning("A21", message, cycle.record.file)
    chain = {name: declared.get(name, [before]) for name, before in DEPENDS.items()}
    if left := state.circle({n: [e.lower() for e in needs] for n, needs in chain.items()}):
        message = f"Agents wait for each other: {', '.join(sorted(left))}"
        yield error("A21", message, cycle.record.file)


def a22(cycle: Cycle) -> Findings:
    """``ready`` and ``can_start`` say what follows from the dependencies.

    They tell of a start: those of an agent that has begun are history.
    """
    for name in AGENTS:
        if state.agent_status(cycle, name) not in ("idle", "waiting"):
            continue
        due = state.ready(cycle, name)
        for key, may in (("ready", due), ("can_start", state.can_start(cycle, name))):
            said = cycle.agent(name).raw.get(key)
            if isinstance(said, bool) and said not in (due, may):
                message = (
                    f"{name}: {key} is {str(said).lower()}, but {state.dependency(cycle, name)}"
                )
                yield warning("A22", message, cycle.record.file)


def a23(cycle: Cycle) -> Findings:
    """No agent runs while the cycle does not."""
    for name in state.running(cycle):
        if cycle.status in ("completed", "failed"):
            yield error("A23", f"{name} runs, the cycle has {cycle.status}", cycle.record.file)
        elif cycle.status in ("paused", "created"):
            yield warning("A23", f"{name} runs, the cycle is {cycle.status}", cycle.record.file)


def a24(cycle: Cycle) -> Findings:
    """In the first iteration an agent does not run beside the one that it depends on.

    Of EP beside RA the specification says that it may.
    """
    at_work = state.running(cycle)
    for before, name in _PAIRS:
        if cycle.iteration > 1 or not {before, name} <= set(at_work):
            continue
        message = f"{name} runs while {before}, on which it depends, is still working"
        if name == "ep":
            yield advice("A24", message, cycle.record.file)
        else:
            yield warning("A24", message, cycle.record.file)


ORDER_RULES = (a19, a20, a21, a22, a23, a24)


def a30(cycle: Cycle) -> Findings:
    """A cycle that ended leaves no decision pending."""
    for each in cycle.state.open_decisions:
        if cycle.status in ("completed", "failed"):
            yield warning("A30", f"The cycle ended, but {each.id} is undecided", cycle.record.file)
        else:
            yield advice("A30", f"{each.id} needs your decision", cycle.record.file)


def a31(cycle: Cycle) -> Findings:
    """An open blocker has somebody at work on it."""
    for each in cycle.state.open_blockers:
        if cycle.status == "completed":
            yield warning(
                "A31", f"The cycle is completed, but {each.id} is open", cycle.record.file
            )
        elif cycle.status == "running" and not state.running(cycle):
            yield error("A31", f"{each.id} is open and no agent is working", cycle.record.file)


def a32(cycle: Cycle) -> Findings:
    """A completed cycle has completed its tasks."""
    undone = state.undone(cycle)
    if cycle.status == "completed" and undone:
        yield warning(
            "A32", f"Completed with {format.count(len(undone), 'task')} undone", cycle.record.file
        )


def a33(cycle: Cycle) -> Findings:
    """A completed cycle was tested, and VAS's own file shows it."""
    if cycle.status != "completed":
        return
    if not state.tests(cycle).proven:
        yield warning("A33", "Completed, but no tests ran", cycle.record.file)
    elif not state.is_witnessed(cycle):
        message = "Completed, but vas/test-results.json does not show that tests ran"
        yield warning("A33", message, cycle.record.file)


def a34(cycle: Cycle) -> Findings:
    """A completed cycle has no failing tests."""
    failed = state.tests(cycle).failed
    if cycle.status == "completed" and failed:
        yield error("A34", f"Completed with {failed} failing tests", cycle.record.file)


def a35(cycle: Cycle) -> Findings:
    """A decision that was made says for what."""
    for each in cycle.state.decisions:
        if each.status not in ("made", "implemented"):
            continue
        if not each.chosen_option:
            yield warning("A35", f"{each.id} was made without a chosen option", cycle.record.file)
        elif each.options and each.chosen_option not in each.options:
            yield advice(
                "A35", f"{each.id}: the choice is not one of the options", cycle.record.file
            )


def a36(cycle: Cycle) -> Findings:
    """A blocker that is gone says how."""
    for each in cycle.state.blockers:
        if each.status in ("resolved", "workaround") and not each.is_resolved:
            yield warning("A36", f"{each.id} was closed without a resolution", cycle.record.file)


def a37(cycle: Cycle) -> Findings:
    """Feedback goes between those that there are, and is answered by a run."""
    for each in cycle.state.feedback:
        for key, said in (("source", each.source), ("target", each.target)):
            if said.lower() not in VOICES:
                yield warning("A37", f"Feedback {key} {said!r} is not an agent", cycle.record.file)
    late = [each.target.lower() for each in cycle.state.feedback if state.is_late(cycle, each)]
    for name in dict.fromkeys(late):
        message = f"{name} has not run since it received feedback ({late.count(name)} unanswered)"
        yield warning("A37", message, cycle.record.file)


def a38(cycle: Cycle) -> Findings:
    """An agent is sent feedback once in an iteration; answers to its questions are none."""
    starts = sorted(each.started_at for each in cycle.state.iterations if each.started_at)
    sent: Counter[tuple[str, int]] = Counter()
    for each in cycle.state.feedback:
        at, name = each.timestamp, each.target.lower()
        if name in AGENTS and each.type != "clarification":
            sent[name, sum(1 for start in starts if at and start <= at)] += 1
    for (name, _), times in sent.items():
        if times > (1 if starts else max(1, cycle.iteration)):
            message = f"{name} received feedback {times} times in one iteration"
            yield warning("A38", message, cycle.record.file)


def a39(cycle: Cycle) -> Findings:
    """What blocks somebody is known as a blocker."""
    new = [each.text for each in state.unknown_blockers(cycle)]
    if new:
        message = f"Reported as blocking but not recorded as a blocker: {'; '.join(new[:3])}"
        yield advice("A39", message, cycle.record.file)


HUMAN_RULES = (a30, a31, a32, a33, a34, a35, a36, a37, a38, a39)
_MARKER = "--- ITERATION"
_FIRST = (1, 0, 0)


def a40(cycle: Cycle) -> Findings:
    """All parts have the same version; until the end some may be behind."""
    held = {part: schema.written(found) for part, found in state.versions(cycle).items()}
    if len(set(held.values())) > 1:
        message = f"Versions differ: {', '.join(f'{part} {v}' for part, v in held.items())}"
        if cycle.status == "completed":
            yield warning("A40", message, cycle.record.file)
        else:
            yield advice("A40", message, cycle.record.file)


def _numbers(cycle: Cycle) -> list[str]:
    return [each.label for each in cycle.state.iterations]


def a42(cycle: Cycle) -> Findings:
    """Each iteration has its own number."""
    for number, times in Counter(_numbers(cycle)).items():
        if number and times > 1:
            message = f"Iteration {number} is recorded {times} times"
            yield warning("A42", message, cycle.record.file)


def a43(cycle: Cycle) -> Findings:
    """As many iterations are recorded as there were; the one under way may be missing."""
    if "iterations" not in cycle.value:
        if cycle.iteration:
            yield advice("A43", "No iterations are recorded", cycle.record.file)
        return
    numbers = _numbers(cycle)
    recorded = len(set(filter(None, numbers))) + numbers.count("")
    under_way = cycle.status in ("running", "paused") and recorded == cycle.iteration - 1
    if recorded != cycle.iteration and not under_way:
        message = f"current_iteration is {cycle.iteration}, recorded are {recorded}"
        yield warning("A43", message, cycle.record.file)


def a44(cycle: Cycle) -> Findings:
    """A completed phase is named once."""
    twice = [name for name, n in Counter(cycle.state.completed_phases).items() if n > 1]
    if twice:
        message = f"completed_phases contains duplicates: {', '.join(twice)}"
        yield advice("A44", message, cycle.record.file)


def a45(cycle: Cycle) -> Findings:
    """The history of the task has an entry for each extension in the description."""
    history = cycle.value.get("task_history")
    extensions = cycle.state.description.count(_MARKER)
    if isinstance(history, list) and len(history) != 1 + extensions:
        message = (
            f"task_history has {len(history)} entries, the description {extensions} extensions"
        )
        yield advice("A45", message, cycle.record.file)


def a46(cycle: Cycle) -> Findings:
    """A document bears the version that the state tells."""
    versions, documents = state.versions(cycle), state.document_versions(cycle)
    for part, inside in state.DOCUMENTS.items():
        stated, held = versions.get(part), documents.get(inside)
        if stated and held and stated != held:
            sentence = (
                f"{inside} is version {schema.written(held)}, "
                f"but the state says {schema.written(stated)} for {part}"
            )
            yield warning("A46", sentence, cycle.file(inside))


def a47(cycle: Cycle) -> Findings:
    """Of a document that was rewritten an earlier version is kept."""
    missing, copies = [], state.history(cycle)
    for inside, version in state.document_versions(cycle).items():
        if version > _FIRST and not state.earlier(cycle, inside, copies):
            missing.append(f"{inside} {schema.written(version)}")
    if missing:
        rest = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        message = f"No earlier version in history/: {', '.join(missing[:5])}{rest}"
        yield warning("A47", message, cycle.record.file)


def a48(cycle: Cycle) -> Findings:
    """No version is older than one that the history holds."""
    copies = state.history(cycle)
    for inside, version in state.document_versions(cycle).items():
        latest = max((kept for kept, _ in state.earlier(cycle, inside, copies)), default=version)
        if latest > version:
            message = f"{inside} is version {schema.written(version)}, history/ holds {schema.written(latest)}"
            yield error("A48", message, cycle.file(inside))


ITERATION_RULES = (a40, a42, a43, a44, a45, a46, a47, a48)
