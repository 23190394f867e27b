"""What stands in the way of a cycle: how it gets stuck, what refuses writes to it, and what a person can do.

Causes are small functions of what was read and of a `DiagnosisContext`. What refuses writes (a state
that is lost or damaged, a disk that is closed) the writes ask for under their lock (`of_state`), and
the Snapshot carries the same (`of_cycle`), so that what is refused, what is offered and what
`acp why` tells agree. Source: development cycle specification, "Shared State File", "Dependency
Resolution", "Conflict Resolution" and "Escalation Path".
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from acp_core.files import claims
from acp_core.model import Matter
from acp_core.model.format import count, dated
from acp_core.model.matter import TIME, About, Kind, damage, verdicts
from acp_core.model.text import clean_line
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.read import orchestrator_spec, scan
from acp_core.protocols.cycle.read.orchestrator_spec import ORCHESTRATOR
from acp_core.protocols.cycle.read.scan import read_state_file
from acp_core.protocols.cycle.schema import (
    ACCEPT_ACT,
    AGENTS,
    DECIDE_ACT,
    DEPENDS,
    EXTEND_ACT,
    FEEDBACK_ACT,
    LIMIT_ACT,
    PAUSE_ACT,
    REBUILD_ACT,
    RERUN_ACT,
    RESOLVE_ACT,
    RESUME_ACT,
    RUN_ACT,
    SELECT_ACT,
    START_ACT,
    STOP_ACT,
    Cycle,
)
from acp_core.protocols.kit import guard
from acp_core.protocols.kit.diagnosis import DiagnosisContext

_ASKED = 30.0  # seconds in which an orchestrator asks somebody, or begins the next run
_LONG = 400


def causes(cycle: Cycle, root: Path, case: DiagnosisContext) -> Iterator[Matter]:
    """Every cause, group by group; of one that is completed, why it is not good.

    Args:
        cycle: the cycle that is shown.
        root: the project's folder.
        case: what else was seen.
    """
    yield from _damaged(cycle, case)
    if state.state_problem(cycle) or cycle.status == "failed":
        return
    if cycle.status == "completed":
        yield from _decisions(cycle)
        yield from _not_good(cycle)
        return
    yield from _decisions(cycle)
    yield from _blockers(cycle)
    yield from _failed(cycle)
    yield from _limit(cycle, case)
    yield from _conductor(cycle, root, case)
    yield from _nobody_asked(cycle, case)


def _cause(cycle: Cycle, code: str, what: str, headline: str, **more: object) -> Matter:
    key = clean_line(f"{code}:{cycle.id}:{what}")
    return Matter(code, clean_line(headline, _LONG), key=key, **more)  # type: ignore[arg-type]


def _damaged(cycle: Cycle, case: DiagnosisContext) -> Iterator[Matter]:
    """The state file is lost or damaged, and nobody is just writing it: since when that is so."""
    for each in case.snapshot.obstacles:
        if each.code == STATE:
            written = f"last written {dated(cycle.record.file.changed)}"
            since = None if cycle.lost else cycle.record.file.changed
            yield each._replace(evidence=(*each.evidence, written), since=since)


def _decisions(cycle: Cycle) -> Iterator[Matter]:
    for number, each in enumerate(cycle.state.open_decisions, 1):
        id, said = each.id, each.description
        offered = [f"{n}. {option}" for n, option in enumerate(each.options, 1)]
        code = "E8" if each.kind == "limit" else "E7"
        yield _cause(
            cycle,
            code,
            f"decision:{id or number}",
            f"Decide {id or number}: {said}" + (f" ({'; '.join(offered)})" if offered else ""),
            instruction=_how_to_answer(each.kind, bool(offered)),
            verdicts=verdicts(
                DECIDE_ACT if id else None,
                (("decision", id),) if id else (),
                () if cycle.status == "completed" else (STOP_ACT,),
            ),
            about=About(participant=_agent(each.agent)),
            evidence=tuple(clean_line(option, _LONG) for option in offered),
            since=each.asked_at,
            explains=(clean_line(f"decision:{cycle.id}:{id or number}"),),
        )


def _how_to_answer(kind: str, offered: bool) -> str:
    if not offered:
        return "answer in words"
    words = ", or in words" if kind == "partial" else ""
    return f"answer with the number of an option{words}"


def _blockers(cycle: Cycle) -> Iterator[Matter]:
    if cycle.status == "running" and state.running(cycle):
        return  # somebody is at work on it, perhaps
    for number, each in enumerate(state.for_a_person(cycle), 1):
        id, reporter = each.id, each.reported_by
        yield _cause(
            cycle,
            "E7",
            f"blocker:{id or number}",
            f"Blocker {id or number} is open and no agent is working on it: {each.description}",
            instruction="describe how you resolved it; acp informs the agent that reported it",
            verdicts=verdicts(
                RESOLVE_ACT if id else None, (("blocker", id),) if id else (), (FEEDBACK_ACT,)
            ),
            about=About(participant=_agent(reporter)),
            evidence=(clean_line(f"reported by {reporter or 'unknown'}"),),
            since=each.reported_at,
            explains=(clean_line(f"blocker:{cycle.id}:{id or number}"),),
        )


def _failed(cycle: Cycle) -> Iterator[Matter]:
    """An agent's run came to nothing, and nobody was asked what to do."""
    asked = {each.agent for each in cycle.state.open_decisions}
    for name in AGENTS:
        if state.agent_status(cycle, name) != "failed" or name in asked:
            continue
        said = cycle.agent(name).error or "no reason given"
        after = [other for other, needs in DEPENDS.items() if needs == name]
        waits = (f"{after[0]} is waiting for this result",) if after else ()
        remedy, advice = _again(cycle, name)
        yield _cause(
            cycle,
            "E7",
            f"failed:{name}:{cycle.iteration}",
            f"{name} failed: {said}",
            instruction=advice,
            verdicts=verdicts(
                remedy, (("agent", name),) if remedy == RERUN_ACT else (), (FEEDBACK_ACT, STOP_ACT)
            ),
            about=About(participant=name),
            evidence=(*waits, *_last_words(cycle, name)),
            explains=(clean_line(f"failed:{cycle.id}:{name}:{cycle.iteration}"),),
        )


def _again(cycle: Cycle, name: str) -> tuple[str | None, str]:
    """What has an agent run again, as the cycle stands, and the same in words."""
    busy = [each for each in AGENTS[AGENTS.index(name) :] if each in state.running(cycle)]
    if busy:
        return (
            None,
            f"{busy[0]} is working and depends on {name}: wait until {busy[0]} has finished",
        )
    if cycle.status == "created":
        return RESUME_ACT, "start the cycle: the agent runs again"
    return RERUN_ACT, "rerun it with instructions"


def _last_words(cycle: Cycle, name: str) -> tuple[str, ...]:
    """Where what the agent said last is kept."""
    run = cycle.agent(name).run
    path = f"{cycle.progress}coordination/phase-results/{run}.txt"
    there = any(file.name == path for file in cycle.files)
    return (clean_line(f"its last output: {path}"),) if there else ()


def _not_good(cycle: Cycle) -> Iterator[Matter]:
    """It is said to be completed, and its files show otherwise."""
    found = state.tests(cycle)
    failing, unproven = bool(found.failed), state.verdict(cycle) == state.UNPROVEN
    if state.accepted(cycle) or cycle.state.open_decisions or not (failing or unproven):
        return
    need = "failures" if failing else "unproven"
    several = "test fails" if found.failed == 1 else "tests fail"
    sentence = f"{found.failed} {several}" if failing else state.unproven(cycle)
    limit = cycle.state.max_iterations
    at_limit = limit is not None and cycle.iteration >= limit
    yield _cause(
        cycle,
        "E8" if failing and at_limit else "E7",
        f"{need}:{cycle.iteration}",
        f"Marked completed, but {sentence}",
        instruction="start another iteration, or accept the result as it is",
        verdicts=verdicts(
            EXTEND_ACT,
            (("limit", str(cycle.iteration + 1)),) if at_limit else (),
            (ACCEPT_ACT,) if cycle.iteration else (),
        ),
        evidence=tuple(clean_line(each, 200) for each in found.names[:5]),
        since=cycle.state.completed_at,
        explains=(clean_line(f"{need}:{cycle.id}:{cycle.iteration}"),),
    )


def _limit(cycle: Cycle, case: DiagnosisContext) -> Iterator[Matter]:
    """The last iteration that is allowed ended with failing tests, and nothing goes on."""
    limit, found = cycle.state.max_iterations, state.tests(cycle)
    if limit is None or not state.is_at_limit(cycle):
        return
    if not case.clock.over(cycle.last_write, _patience(case)):
        return
    yield _cause(
        cycle,
        "E8",
        f"limit:{cycle.iteration}",
        f"Iteration {cycle.iteration} of {limit} ended with {count(found.failed or 0, 'failing test')}",
        instruction="allow more iterations, or stop the cycle",
        kind=Kind.DECISION,
        verdicts=verdicts(
            LIMIT_ACT, (("iterations", str(limit + 1)),), (EXTEND_ACT, ACCEPT_ACT, STOP_ACT)
        ),
        evidence=tuple(clean_line(each, 200) for each in found.names[:5]),
        since=cycle.last_write,
    )


def _conductor(cycle: Cycle, root: Path, case: DiagnosisContext) -> Iterator[Matter]:
    """Nobody conducts it: it was never begun, its orchestrator ended, or nobody writes any more."""
    if not state.is_to_be_conducted(cycle):
        if cycle.status == "paused" and not cycle.state.open_decisions:
            yield _paused(cycle)
        if cycle.status == "created" and case.clock.over(cycle.last_write, _patience(case)):
            yield _not_begun(cycle)
        return
    if state.is_at_limit(cycle):  # an orchestrator would have nothing to do
        return
    others = (PAUSE_ACT, STOP_ACT) if cycle.status == "running" else (STOP_ACT,)
    loop = case.loop(ORCHESTRATOR)
    if loop and loop.alive and loop.shown.ended is None:
        return
    if claims.seen(root, claims.CONDUCT).held:  # another account's
        return
    known = orchestrator_spec.load(str(root), cycle.id)
    if known is not None and loop is not None:
        if not case.clock.over(cycle.last_write, case.patience.scaled(case.patience.settle)):
            return
        ended = loop.shown.note if loop.shown.ended else "killed, or the machine restarted"
        yield _cause(
            cycle,
            "B2",
            f"orchestrator:{loop.started.isoformat()}",
            "The cycle's orchestrator exited before the cycle ended",
            instruction="restart the orchestrator: it resumes and repeats nothing",
            verdicts=verdicts(RUN_ACT, others=others),
            evidence=(clean_line(f"process {loop.pid}: {ended}"), *_asked(cycle)),
            since=loop.shown.ended or cycle.last_write,
            explains=_stalled(cycle),
            root=True,
        )
    elif cycle.iteration == 0 and cycle.value.get("revision"):
        yield _cause(
            cycle,
            "B1",
            "never",
            "The cycle has no orchestrator yet",
            instruction="start one and choose the agents' programs",
            verdicts=verdicts(RUN_ACT, others=(STOP_ACT,)),
            evidence=("no agent has run", *_asked(cycle)),
            explains=_stalled(cycle),
        )
    elif state.stalled(cycle):
        at_work = ", ".join(state.running(cycle)) or "no agent"
        yield _cause(
            cycle,
            "B14",
            f"stalled:{cycle.last_write.isoformat()}",
            "The cycle's files have stopped changing, and no orchestrator runs on this machine",
            instruction="check the orchestrator on its machine, or start one here",
            verdicts=verdicts(RUN_ACT, others=others),
            evidence=(f"last write {dated(cycle.last_write)}", f"marked as working: {at_work}"),
            certain=False,
            since=cycle.last_write,
            explains=_stalled(cycle),
        )


def _not_begun(cycle: Cycle) -> Matter:
    return _cause(
        cycle,
        "B1",
        "created",
        "The cycle was created and has not begun",
        instruction="begin it, then start an orchestrator",
        verdicts=verdicts(RESUME_ACT, others=(STOP_ACT,)),
        evidence=("no agent has run", *_asked(cycle)),
        since=cycle.last_write,
    )


def _paused(cycle: Cycle) -> Matter:
    question = _asked(cycle)
    return _cause(
        cycle,
        "E1",
        "paused",
        "The cycle is paused",
        instruction="resume it when you are ready",
        move=TIME,
        verdicts=verdicts(RESUME_ACT, others=(STOP_ACT,)),
        evidence=question or ("no decision is pending",),
    )


def _asked(cycle: Cycle) -> tuple[str, ...]:
    """What people asked for that nobody picked up."""
    names = ", ".join(each.action for each in cycle.state.open_requests[-5:])
    return (clean_line(f"queued, not picked up: {names}"),) if names else ()


def _stalled(cycle: Cycle) -> tuple[str, ...]:
    return (clean_line(f"stalled:{cycle.id}:{cycle.last_write.isoformat()}"),)


def _nobody_asked(cycle: Cycle, case: DiagnosisContext) -> Iterator[Matter]:
    """An agent waits, nobody is at work, and nobody was asked what it waits for."""
    if cycle.status != "running" or state.running(cycle):
        return
    if cycle.state.open_decisions or state.for_a_person(cycle):
        return
    unsent = any(each.waits for each in cycle.state.feedback)
    if unsent or not case.clock.over(cycle.last_write, _patience(case)):
        return
    for name in AGENTS:
        needs = DEPENDS[name]
        if state.agent_status(cycle, name) != "waiting":
            continue
        owner = needs or name
        yield _cause(
            cycle,
            "E7",
            f"waiting:{name}",
            f"{name} is waiting, but no agent has been asked for what it needs",
            instruction=f"send feedback to {name}, or ask {owner}",
            verdicts=verdicts(FEEDBACK_ACT, (("agent", name),), (RERUN_ACT,)),
            about=About(participant=name),
            evidence=(clean_line(f"{name}: {cycle.agent(name).last_message}"),),
            certain=False,
            since=cycle.last_write,
        )


def _patience(case: DiagnosisContext) -> float:
    return case.patience.scaled(_ASKED)


def _agent(name: str) -> str | None:
    return name.lower() if name.lower() in AGENTS else None


STATE = "A5"  # the code of a state that is lost or damaged
_ELSEWHERE = frozenset({SELECT_ACT, START_ACT})  # acts that leave this cycle's state alone
_UNWRITTEN = frozenset({SELECT_ACT})  # acts that write nothing into the project


def of_cycle(root: Path, cycle: Cycle) -> tuple[Matter, ...]:
    """What stands in the way of writes to a cycle, as it was read.

    A file that is just being written is granted its moment.
    """
    problem = "" if scan.young(cycle.record, cycle.now) else state.state_problem(cycle)
    return of_problem(root, cycle.id, problem)


def of_state(root: Path, id: str) -> tuple[Matter, ...]:
    """What stands in the way of writes to a cycle, as it stands now."""
    return of_problem(root, id, read_state_file(_file(root, id)).problem)


def of_problem(root: Path, id: str, problem: str) -> tuple[Matter, ...]:
    """What stands in the way where this is wrong with the state file; "" for nothing."""
    return (*_of_state(root, id, problem), *of_disk(root))


def of_disk(root: Path) -> tuple[Matter, ...]:
    """Whether nothing can be written into a project's cycles; before there are any, into it."""
    home = scan.home(root)
    found = guard.disk(home or root)
    return (found._replace(refuses=_UNWRITTEN),) if found else ()


def _file(root: Path, id: str) -> Path:
    return root.joinpath(*schema.HOME, f"{id}.json")


def _of_state(root: Path, id: str, problem: str) -> Iterator[Matter]:
    if not problem:
        return
    name = clean_line(f"{id}.json")
    if _file(root, id).is_symlink():
        cure, remedy = f"replace {name} with the file itself", ""
    elif _is_left(root, id):
        words = ("acp", "cycle", "rebuild", "--folder", str(root), "--cycle", id)
        cure, remedy = clean_line(" ".join(map(shlex.quote, words)), 8192), REBUILD_ACT
    else:
        cure, remedy = f"restore {name} from your own copy, or remove what is left of the cycle", ""
    yield damage(
        STATE,
        clean_line(f"the state file {name} {problem}"),
        cure,
        allowed=_ELSEWHERE | ({REBUILD_ACT} if remedy else frozenset()),
        remedy=remedy,
        given=(("cycle", id),) if remedy else (),
        evidence=(clean_line(f"{'/'.join(schema.HOME)}/{name}"),),
        key=clean_line(f"{STATE}:{id}:{problem}"),
    )


def can_rebuild(root: Path, cycle: Cycle) -> bool:
    """Whether a cycle's state is lost or damaged, and can be made anew."""
    return any(each.remedy == REBUILD_ACT for each in of_cycle(root, cycle))


def _is_left(root: Path, id: str) -> bool:
    """Whether anything is left of which a state can be made anew."""
    file = _file(root, id)
    if scan.last_whole_state(root, id) is not None or read_state_file(file).state:
        return True
    return any(scan.agent_documents(file.with_suffix(".progress"), name) for name in AGENTS)
