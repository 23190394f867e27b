"""What no agent can settle goes to a person, and the person's word comes back to the agents.

Source: development cycle specification, "Escalation Path". An escalation is an open blocker or
none, a pending decision, and a paused cycle. Pure functions of the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import (
    AGENTS,
    Blocker,
    Decision,
    Object,
    coordination_of,
    iteration_of,
    parse_part,
)
from acp_core.protocols.cycle.write import changes
from acp_core.protocols.cycle.write.changes import agent_of, at, entry
from acp_core.protocols.cycle.write.layout import note

AGAIN, STOP = "Run it again", "Stop the cycle"
MORE, ACCEPT = "Allow another iteration", changes.TAKEN
ON = "Continue anyway"
UNFINISHED = "unfinished"
"""What an agent did not finish: a key of its entry in the state, in our own manner."""
_EARLIER_ON = "Go on all the same"  # in decisions that earlier versions asked


def escalate(
    state: Object,
    now: datetime,
    kind: str,
    description: str,
    options: tuple[str, ...],
    agent: str = "",
    blocker: str = "",
) -> Object:
    """Ask a person, and wait.

    Args:
        state: the cycle's state.
        now: when.
        kind: what follows from the answer: ``blocker`` (its reporter is told), ``agent`` (run it
            again, or stop), ``partial`` (as ``agent``, or go on; words are told to the agent),
            ``limit``, ``gate`` and ``unproven`` (go on, accept, or stop).
        description: what is asked.
        options: what can be chosen; none where words are wanted.
        agent: whom it concerns.
        blocker: the blocker that the answer resolves.
    """
    made: Object = {
        "id": changes.new_id(state, "pending_decisions", "DEC"),
        "description": description,
        "options": list(options),
        "status": "pending",
        "kind": kind,
        "asked_at": at(now),
        "iteration": iteration_of(state),
    }
    made |= {"agent": agent} if agent else {}
    made |= {"blocker": blocker} if blocker else {}
    changes.append(state, "pending_decisions", made)
    state["status"] = "paused"
    note(state, now, "orchestrator", f"escalated to the user: {made['id']}: {description}")
    return made


def apply_decisions(state: Object, now: datetime) -> None:
    """Do what a person decided, once."""
    for each in coordination_of(state).decisions:
        if each.status.lower() != "made":
            continue
        each.raw.update(status="implemented", implemented_at=at(now))
        note(state, now, "orchestrator", f"applied {each.id}: {each.chosen_option}")
        _apply(state, now, each)


def _apply(state: Object, now: datetime, decision: Decision) -> None:
    kind, chosen = decision.kind, decision.chosen_option
    known = decision.agent if decision.agent in AGENTS else ""
    if kind not in ("agent", "partial", "limit", "gate", "unproven"):
        _tell(state, now, decision, known or _asker(state, decision))
    elif chosen == STOP:
        state |= {"status": "failed", "completed_at": at(now)}
        state["failure_reason"] = f"Stopped by the user ({decision.id})"
    elif kind == "partial":
        _go_on(state, now, decision, known)
    elif kind != "agent" and chosen == ACCEPT:
        complete(state, now, resolved=False)
    elif kind == "limit":
        current = iteration_of(state)
        limit = schema.count(state.get("max_iterations")) or current
        state["max_iterations"] = min(max(limit, current + 1), changes.LIMIT)
    elif known and chosen not in (ON, _EARLIER_ON):
        if chosen != AGAIN:  # words, by way of a blocker that was resolved
            _tell(state, now, decision, known)
        agent_of(state, known).update(status="idle", attempts=0)


def ask_unfinished(state: Object, now: datetime, names: Sequence[str]) -> bool:
    """Ask a person about the first of these agents that said that it is not finished; whether one did.

    Nothing is built on what is not finished, and no cycle completes with it, before a person has
    said so.
    """
    for name in names:
        agent = agent_of(state, name)
        said = schema.text(agent.get(UNFINISHED))
        if said:
            agent["status"] = "waiting"
            asked = f"{name.upper()} has not finished: {said}"
            escalate(state, now, "partial", asked, (AGAIN, ON, STOP), agent=name)
            return True
    return False


def _go_on(state: Object, now: datetime, decision: Decision, name: str) -> None:
    """What a person said about an agent that has not finished: take it as it is, or run it again."""
    if not name:
        return
    agent, chosen = agent_of(state, name), decision.chosen_option
    agent.pop(UNFINISHED, None)
    if chosen == ON:
        agent["status"] = "completed"
        return
    if chosen != AGAIN or decision.rationale:
        _tell(state, now, decision, name)
    agent.update(status="idle", attempts=0)
    for each in AGENTS[AGENTS.index(name) + 1 :]:
        if agent_of(state, each).get("status") == "completed":
            agent_of(state, each).update(status="idle", attempts=0)


def _tell(state: Object, now: datetime, decision: Decision, agent: str) -> None:
    text = f"{decision.description} Decided: {decision.chosen_option}"
    text += f". {decision.rationale}" if decision.rationale else ""
    id = decision.raw.get("id")
    changes.add_feedback(state, now, "user", agent, text, "clarification", decision=id)


def _asker(state: Object, decision: Decision) -> str:
    """Whom a decision that somebody else recorded concerns: who waits, else who comes first."""
    blocker = parse_part(Blocker, entry(state, "blockers", decision.blocker))
    reporter = blocker.reported_by.lower()
    if reporter in AGENTS:
        return reporter
    waiting = [n for n in AGENTS if agent_of(state, n).get("status") in ("waiting", "failed")]
    return waiting[0] if waiting else "ra"


def complete(state: Object, now: datetime, *, resolved: bool, reached: str = "") -> None:
    """End the cycle; ``resolved``: its tests say that it is good, ``reached``: by how much."""
    close_iteration(state, now, [], resolved=resolved)
    state |= {"status": "completed", "current_phase": "complete", "completed_at": at(now)}
    reached = reached or ("all tests pass" if resolved else "accepted by the user as it is")
    note(state, now, "orchestrator", f"cycle complete: {reached}")


def close_iteration(state: Object, now: datetime, issues: list[str], *, resolved: bool) -> None:
    """End the record of the current iteration; issues that stand in it already are kept."""
    records = schema.objects(state.get("iterations"))
    if records:
        last = records[-1]
        held = schema.words(last.get("issues_found"))
        last |= {"completed_at": at(now), "issues_found": issues or held, "resolved": resolved}
