"""Rules on what waits for a human, and on what "completed" leaves open.

Source: development cycle specification, "Escalation" and "Feedback".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from acp_core.model import Finding, format
from acp_core.protocols.cycle import state
from acp_core.protocols.cycle.schema import AGENTS, VOICES, Cycle
from acp_core.protocols.kit.findings import advice, error, warning

Findings = Iterator[Finding]


def a30(cycle: Cycle) -> Findings:
    """A cycle that ended leaves no decision pending."""
    for each in state.decisions(cycle):
        if cycle.status in ("completed", "failed"):
            yield warning("A30", f"The cycle ended, but {each.id} is undecided", cycle.record.file)
        else:
            yield advice("A30", f"{each.id} needs your decision", cycle.record.file)


def a31(cycle: Cycle) -> Findings:
    """An open blocker has somebody at work on it."""
    for each in state.blockers(cycle):
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


RULES = (a30, a31, a32, a33, a34, a35, a36, a37, a38, a39)
