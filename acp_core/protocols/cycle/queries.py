"""What `acp cycle` reads and says: where a cycle stands, and what an agent reported."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model import format
from acp_core.model.action_spec import PLACE, Answer, By, Field, Kind, QuerySpec
from acp_core.model.errors import Refused
from acp_core.model.format import sentence_case
from acp_core.model.matter import Matter
from acp_core.protocols.cycle import matters, schema, state
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.read import progress
from acp_core.protocols.cycle.read.progress import PhaseResult
from acp_core.protocols.cycle.read.scan import open_folder
from acp_core.protocols.cycle.schema import Cycle, Decision, Object
from acp_core.protocols.cycle.view.panels import describe_status
from acp_core.protocols.kit.tools import WHO
from acp_core.protocols.kit.values import Values

STATUS_SCHEMA = "acp.cycle-status/1"
RESULT_SCHEMA = "acp.cycle-result/1"
_PRINTED = 64 << 20  # bytes of a file with what an agent printed
NO_RESULT, PROBLEMS = 1, 4


def status(values: Values) -> Answer:
    """Where a cycle stands."""
    opened = open_folder(values.folder)
    cycle = opened.find(values.cycle)
    data, damaged = _facts(cycle, str(opened.root)), matters.of_cycle(opened.root, cycle)
    data["obstacles"] = [{"sentence": each.sentence, "cure": each.instruction} for each in damaged]
    lines = [*_head(cycle, data), *_obstacles(damaged)]
    if cycle.value:
        lines += [*_agents(cycle, data["orchestrator"] is not None), *_waiting(cycle)]
    return Answer({"schema": STATUS_SCHEMA, **data}, tuple(lines))


def _facts(cycle: Cycle, root: str) -> Object:
    alive = process.at_work(root)
    tests = state.tests(cycle)
    return {
        "cycle": cycle.id,
        "title": cycle.state.title,
        "claimed": cycle.status or "unknown",
        "verdict": state.verdict(cycle),
        "iteration": cycle.iteration,
        "max_iterations": cycle.state.max_iterations,
        "tests": str(tests),
        "coverage": tests.covered if tests.proven else None,
        "orchestrator": alive.pid if alive else None,
        "conducts": alive.cycle if alive else None,
        "agents": {name: state.agent_status(cycle, name) for name in schema.AGENTS},
        "decisions": [
            {"id": each.id, "description": each.description, "options": [*each.options]}
            for each in cycle.state.open_decisions
        ],
        "blockers": [
            {"id": each.id, "description": each.description, "routed_to": each.routed_to}
            for each in cycle.state.open_blockers
        ],
        "requested": [each.action for each in cycle.state.open_requests],
    }


def _head(cycle: Cycle, data: Object) -> Iterator[str]:
    """Its name, what it claims and what is true, and who conducts it."""
    limit = f" of {data['max_iterations']}" if data["max_iterations"] else ""
    covered = f", coverage {data['coverage']}" if data["coverage"] else ""
    yield f"{cycle.id}  {data['title']}".rstrip()
    pid, conducts = data["orchestrator"], data["conducts"]
    marked = (
        "marked " if cycle.status == "running" and pid is None else ""
    )  # that is what it claims
    said = f"{marked}{describe_status(cycle, state.verdict(cycle))}; iteration {cycle.iteration}{limit}"
    if cycle.value:
        yield f"{sentence_case(said)}; {data['tests']}{covered}"
    elif not data["obstacles"]:
        yield f"its state file {cycle.record.problem}: another program may be writing it now"
    other = f", running {conducts}" if conducts != cycle.id else ""
    yield f"orchestrator: process {pid}{other}" if pid else "orchestrator: none running"


def _obstacles(found: Iterable[Matter]) -> Iterator[str]:
    """What stands in the way of every act, and what mends it."""
    for each in found:
        yield f"! {sentence_case(each.sentence)}"
        yield f"    {each.instruction}"


def _agents(cycle: Cycle, conducted: bool) -> Iterator[str]:
    """How each agent stands; where nobody conducts, what is said to be at work is only marked so."""
    for name in schema.AGENTS:
        agent = cycle.agent(name)
        at = agent.started_at if agent.status == "running" else None
        since = f" for {format.age(at, cycle.now)}" if at else ""
        version = f"  v{agent.version}" if agent.version else ""
        trouble = f"  {agent.error}" if agent.error else ""
        word = state.agent_status(cycle, name)
        word = word if conducted or word != "running" else f"marked {word}"
        yield f"  {name:<4} {word}{since}{version}  {state.dependency(cycle, name)}{trouble}"


def _waiting(cycle: Cycle) -> Iterator[str]:
    """What waits for a person, and what was asked for and nobody picked up."""
    asked_already = set()
    for each in cycle.state.open_decisions:
        asked_already.add(each.description)
        yield f"decide {each.id}: {each.description}"
        for number, option in enumerate(each.options, 1):
            yield f"    {number}. {option}"
        yield f"    run: acp cycle decide {each.id} {_how_answered(each)}"
    for blocker in cycle.state.open_blockers:
        if blocker.description in asked_already:
            continue
        asked = f" (sent to {blocker.routed_to})" if blocker.routed_to else ""
        yield f"blocker {blocker.id}: {blocker.description}{asked}"
    for request in cycle.state.open_requests:
        yield f"queued, not picked up: {request.sentence}"


def _how_answered(decision: Decision) -> str:
    if not decision.options:
        return "ANSWER"
    return "NUMBER" if decision.kind != "partial" else "NUMBER_OR_ANSWER"


def phase_result(values: Values) -> Answer:
    """What an agent reported, taken out of what it printed."""
    return reported(_printed(values.file).decode("utf-8", "replace"), values.agent)


CHECK_RESULT = QuerySpec(
    "check_result",
    "Check the PHASE_RESULT that you are about to report.",
    "acp_core.protocols.cycle.queries:check_result",
    (
        PLACE,
        WHO,
        Field("text", "Text", "Give the whole text that you will report.", Kind.LINES,
              required=True, most=1_000_000),
    ),
    by=By.PARTICIPANT,
)  # fmt: skip

TOOLS = (CHECK_RESULT,)
"""The tool of a cycle's agent: to check its PHASE_RESULT before it reports it."""


def check_result(values: Values) -> Answer:
    """What of a text is the report of an agent, and what is wrong with it."""
    return reported(values.text, values.participant)


def reported(text: str, agent: str) -> Answer:
    """What of a text is the report of an agent, and what is wrong with it."""
    found = progress.parse_result(text)
    if found is None:
        data = {"schema": RESULT_SCHEMA, "blocks": 0, "problems": ["no PHASE_RESULT"]}
        return Answer(data, ("no PHASE_RESULT",), NO_RESULT)
    problems = found.problems(agent)
    data = {"schema": RESULT_SCHEMA, "blocks": found.blocks, "fields": found.plain(),
            "details": found.details, "problems": problems}  # fmt: skip
    lines = (*_result_lines(found), *(f"problem: {each}" for each in problems))
    return Answer(data, lines, PROBLEMS if problems else 0)


def _result_lines(found: PhaseResult) -> Iterator[str]:
    for key, value in found.plain().items():
        yield f"{key}: {', '.join(value) if isinstance(value, list) else value}"


def _printed(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read(4 * progress.RESULT_BYTES)
    try:
        return read_bounded(Path(file), _PRINTED)
    except Unreadable as error:
        raise Refused(f"{file} {error}") from None
