"""Where each agent and the run stand, what can be decided, and who wrote where it may not: from the files alone.

A crash cannot be told from slow work by files: such an agent is ``stalled``, no more. The seven steps
of integration pass in their order. What an agent wrote outside of its workspace is known by what
changed while it worked, by what it lists as its own, and by whose name a status file bears. Source:
agent workspaces specification, "Integration Step Protocol", "Status File Schema" and "Conflict
Prevention via Agent-Namespaced Paths".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from acp_core.files.records import File, Record
from acp_core.model import Finding, PhaseState, Severity
from acp_core.model.text import clean_line
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.schema import Agent, Conflict, Report, Run, Trespass

STEPS = (
    ("verify", "verify completion"),
    ("triage", "triage partials"),
    ("read", "read outputs"),
    ("conflicts", "identify conflicts"),
    ("synthesise", "synthesise"),
    ("final", "write final output"),
    ("status", "write integration status"),
)

OVERWRITTEN = "overwritten"  # another agent changed its status or an output
DOUBTFUL = (OVERWRITTEN, "inconsistent")  # what such an agent says is not what its files say

# what agents and their status files say of each other and does not go together
CONTRADICTIONS = frozenset({"B04", "B06", "B08", "B12", "B26", "B27", "B29", "B40"})


def unfinished(agent: Agent, run: Run) -> bool:
    """Its status file cannot be parsed and is so young that it is still being written."""
    status = agent.status
    return status is not None and status.value is None and is_young(status, run)


def is_young(record: Record, run: Run) -> bool:
    """Whether it was changed so lately that it may still be in the middle of being written."""
    return (run.now - record.file.changed).total_seconds() < schema.TORN_SECONDS


def stall_seconds(agent: Agent) -> float:
    """Seconds without a write after which it counts as stalled."""
    planned = agent.plan.timeout_s
    return planned if 0 < planned < 1e7 else schema.STALL_SECONDS


def of_agent(agent: Agent, run: Run, findings: tuple[Finding, ...] = ()) -> str:
    """The state of an agent, as the agents table shows it."""
    if agent.status is None or unfinished(agent, run):
        return _before_status(agent, run)
    if trespasses_on(agent, run.trespasses):
        return OVERWRITTEN
    if not agent.outcome:
        return "inconsistent"
    own = f"{run.base.name}/{agent.name}/"
    about = (f for f in findings if f.severity is Severity.ERROR and f.code in CONTRADICTIONS)
    if any((f.document or "").startswith(own) or f.document == _return_id(agent) for f in about):
        return "inconsistent"
    return agent.outcome


def _return_id(agent: Agent) -> str:
    return agent.returned.file.name if agent.returned else "-"


def _before_status(agent: Agent, run: Run) -> str:
    planned = "dispatched_at" in agent.plan.raw and not agent.plan.is_dispatched
    if agent.folder is None or (planned and agent.last_write is None):
        return "not dispatched"
    if agent.is_over:
        return schema.MISSING
    if agent.active is None:
        return "dispatched"
    if run.now - agent.active >= timedelta(seconds=stall_seconds(agent)):
        return "stalled"
    return "dispatched" if agent.last_write is None else "working"


def ending(agent: Agent, run: Run) -> str:
    """How it ended, as it is decided on: as its status says, or ``missing``; "" for not yet.

    Source: agent workspaces specification, "Integration Step Protocol", step 1: an agent without a
    status holds the integration up as a failure does.
    """
    if unfinished(agent, run):
        return ""
    if agent.outcome:
        return agent.outcome
    return schema.MISSING if _before_status(agent, run) == schema.MISSING else ""


def choices(agent: Agent, run: Run) -> tuple[str, ...]:
    """What can be decided on an agent now. Nobody need wait for one that is not through."""
    how = ending(agent, run)
    if how == schema.SUCCESS:
        return ("accept", "rerun", "skip")
    return schema.DECISIONS[how or schema.MISSING]


def reason(agent: Agent, run: Run) -> str:
    """Why the decision that holds on an agent was made, as whoever made it said."""
    reason = ""
    for each in run.decisions:
        about = agent.name in (each.agent, each.task_id) or each.task_id == agent.task_id != ""
        if about and each.decision == agent.decision:
            reason = each.reason
    return reason


def undecided(agent: Agent, run: Run) -> bool:
    """A human's choice is wanted: a partial, a failure or no result, without a valid decision."""
    how = ending(agent, run)
    return how in schema.DECISIONS and agent.decision not in schema.DECISIONS[how]


def waits(agent: Agent, run: Run, findings: tuple[Finding, ...]) -> bool:
    """Whether a person is to decide on it: it is undecided, or contradicts itself."""
    doubted = not agent.decision and of_agent(agent, run, findings) in DOUBTFUL
    return undecided(agent, run) or doubted


def finished(agent: Agent, run: Run) -> bool:
    """It succeeded or was partial, or what is missing was decided on.

    Source: agent workspaces specification, "Integration Step Protocol", step 1.
    """
    if undecided(agent, run) and agent.outcome == schema.FAILURE:
        return False
    if agent.outcome and not unfinished(agent, run):
        return agent.decision != "rerun"
    return agent.decision in ("orchestrator-does", "gap")


def open_conflicts(run: Run) -> list[Conflict]:
    """Those that are neither resolved nor dismissed; hints, which hold nothing up, aside."""
    return [each for each in run.recorded.conflicts if each.is_open and not each.is_hint]


def open_hints(run: Run) -> list[Conflict]:
    """Where a machine thinks that outputs may contradict, and nobody said yet whether they do."""
    return [each for each in run.recorded.conflicts if each.is_open and each.is_hint]


def steps(run: Run) -> tuple[bool, ...]:
    """Whether each of the seven steps of integration passes its test, in order."""
    some = bool(run.agents)
    verified = some and all(finished(agent, run) for agent in run.agents)
    triaged = verified and not any(undecided(agent, run) for agent in run.agents)
    used = [a for a in run.agents if a.decision not in ("skip", "gap", "orchestrator-does")]
    wanted = [a for a in used if a.decision != "accept"]  # what is missing there was accepted
    readable = triaged and all(listed.file for agent in wanted for listed in agent.results)
    is_compared = readable and (_compared(run, used) or bool(run.finals))
    resolved = is_compared and not open_conflicts(run) and bool(run.finals or run.drafts)
    resolved = resolved and not run.writing
    final = resolved and len(run.finals) == 1 and not older_than_inputs(run)
    covered = {*run.integrated.integrated, *run.integrated.skipped}
    is_covered = final and all(agent.name in covered for agent in run.agents)
    return verified, triaged, readable, is_compared, resolved, final, is_covered


def _compared(run: Run, used: list[Agent]) -> bool:
    """Conflicts were looked for, and no agent ended after that, as far as it was written down."""
    if run.conflicts is None:
        return False
    at = run.recorded.looked_at
    ends = [agent.plan.ended_at for agent in used]
    return at is None or all(end is None or end <= at for end in ends)


def older_than_inputs(run: Run) -> bool:
    """The final output is older than something that went into it (2 s are granted)."""
    newest = max(
        (l.file.changed for a in run.agents for l in a.results if l.file),  # noqa: E741
        default=None,
    )
    return bool(newest and any(f.changed + timedelta(seconds=2) < newest for f in run.finals))


def phase_states(passed: tuple[bool, ...]) -> tuple[PhaseState, ...]:
    """The steps up to the first that does not pass are done; that one is current."""
    first = passed.index(False) if False in passed else len(passed)
    return tuple(
        PhaseState.DONE if i < first else PhaseState.CURRENT if i == first else PhaseState.AHEAD
        for i in range(len(passed))
    )


def of_run(run: Run) -> str:
    """Where the run stands as a whole."""
    if run.integration is not None and run.finals:
        return (
            "integrated with gaps"
            if run.integrated.gaps or run.integrated.skipped
            else "integrated"
        )
    if run.finals or (run.drafts and all(steps(run)[:5])):
        return "integrating"
    if all(of_agent(agent, run) == "not dispatched" for agent in run.agents):
        return "preparing"
    if not any(agent.files for agent in run.agents):
        return "dispatched"
    passed = steps(run)
    return "ready to integrate" if passed[1] else "collecting"


_SLACK = timedelta(seconds=schema.TORN_SECONDS)
_TICK = timedelta(milliseconds=10)  # the manifest's times are cut to milliseconds


def find_trespasses(
    agents: Iterable[Agent], files: Iterable[File], base: str
) -> tuple[Trespass, ...]:
    """Every trespass whose file still stands there as it was written.

    Args:
        agents: of the run.
        files: of the run.
        base: the name of the folder of the workspaces.
    """
    known = {agent.name: agent for agent in agents}
    there = {file.name: file for file in files}
    found: dict[tuple[str, str], Trespass] = {}
    for agent in known.values():
        for each in (
            *_seen_outside(agent, there),
            *_listed_as_own(agent),
            *_signed_by_another(agent, known),
        ):
            first, _, rest = each.file.name.partition("/")
            owner = rest.partition("/")[0] if first == base else ""
            victim = owner if owner in known and owner != each.by else ""
            found.setdefault((each.by, each.file.name), each._replace(victim=victim))
    return tuple(each for each in found.values() if each.victim or _integrates(each.file))


def _integrates(file: File) -> bool:
    return file.name.startswith("integration/")


def _seen_outside(agent: Agent, there: dict[str, File]) -> Iterator[Trespass]:
    """What changed outside of its workspace while it worked, and was not changed since."""
    over = agent.plan.ended_at
    others = agent.plan.outside_while
    for name in agent.plan.outside:
        file = there.get(name)
        if file is not None and over is not None and file.changed <= over + _TICK:
            how = f"{name} changed while {agent.name} worked"
            yield Trespass(agent.name, others, file, "", how, not others)


def _listed_as_own(agent: Agent) -> Iterator[Trespass]:
    """What it says itself that it wrote."""
    if agent.status is None:
        return
    back = agent.returned.listed if agent.returned else ()
    for each in (*agent.outputs, *back):
        file = each.file
        if file is None or each.owner == agent.name:
            continue
        if file.changed <= agent.status.file.changed + _SLACK:
            how = f"{agent.name} lists {file.name} as its own"
            yield Trespass(agent.name, (), file, "", how, True)


def _signed_by_another(agent: Agent, known: dict[str, Agent]) -> Iterator[Trespass]:
    """A status file in its workspace that bears another agent's name."""
    for record in agent.records:
        signer = schema.decode_record(Report, record).agent
        if signer in known and signer != agent.name:
            how = f"{record.file.name} names {signer}"
            yield Trespass(signer, (), record.file, "", how, False)


def trespasses_on(agent: Agent, trespasses: Iterable[Trespass]) -> tuple[Trespass, ...]:
    """Those by which an agent's result is no longer what it wrote: its status, or an output."""
    own = {each.file.name for each in agent.results if each.file}
    own |= {agent.status.file.name} if agent.status else set()
    return tuple(each for each in trespasses if each.victim == agent.name and each.file.name in own)


def trespassers(trespasses: Iterable[Trespass]) -> str:
    """Whoever wrote, or may have written, these files; safe to show."""
    names = dict.fromkeys(name for each in trespasses for name in (each.by, *each.others))
    return clean_line(" or ".join(names), 200)
