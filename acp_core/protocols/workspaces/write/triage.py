"""What a person decides on an agent that did not simply succeed.

Source: agent workspaces specification, "Integration Step Protocol", step 2. The agent's own status
file is never changed: the decision stands in ``.coord/triage.json``, with who, when and why.
"""

from __future__ import annotations

import getpass
from datetime import datetime

from acp_core.files.transaction import REPLACE, Write
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.workspaces import rules, schema, state
from acp_core.protocols.workspaces.schema import Agent, Run
from acp_core.protocols.workspaces.schema.act_names import AGAIN, TRIAGE
from acp_core.protocols.workspaces.write import dispatch, guard
from acp_core.protocols.workspaces.write import manifest as manifests
from acp_core.protocols.workspaces.write.layout import Layout, read_json
from acp_core.protocols.workspaces.write.writing import Step, encode, iso

RERUN = "rerun"
_LONGEST = 4_000


def me() -> str:
    """Who decides, where nobody says it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "?"


def plan(
    place: Layout, name: str, decision: str, reason: str, by: str = "", now: datetime | None = None
) -> Step:
    """What a decision would write.

    Raises:
        Refused: there is no such agent, it cannot be decided so, or no reason is given.
    """
    at = now or utc_now()
    run = dispatch.read_run(place, at)
    agent = find(run, name)
    possible = state.choices(agent, run)
    if decision not in possible:
        how = state.of_agent(agent, run, rules.check(run)) if agent.outcome else "not finished"
        how = state.ending(agent, run) or how if how not in state.DOUBTFUL else how
        raise Refused(f"{name} is {how}: decide {', '.join(possible)}, not {decision}")
    reason = " ".join(reason.split())[:_LONGEST]
    if not reason:
        raise Refused("give a reason for the decision")
    value = read_json(place.triage)
    value = value or {}
    entries = value.get("decisions")
    entry = {
        "agent": name,
        "task_id": agent.task_id or name,
        "attempt": agent.attempt,
        "decision": decision,
        "by": by or me(),
        "at": iso(at),
        "reason": reason,
    }
    value["decisions"] = [*(entries if isinstance(entries, list) else []), entry]
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
    return guard.act(place, TRIAGE, lambda: plan(place, name, decision, reason, by))


def again(
    place: Layout, name: str, feedback: str = "", *, go_on: bool = False, by: str = ""
) -> None:
    """Have an agent run once more, with something said to it; who dispatches next starts it.

    Raises:
        Refused: there is no such agent, or it was never dispatched.
        OSError: it cannot be written.
    """
    reason = " ".join(feedback.split()) or "rerun"

    def step() -> Step:
        manifest = manifests.read(place)
        entry = manifest.entries.get(name)
        if entry is None:
            raise Refused(f"{name} is not in the manifest")
        run = dispatch.read_run(place, utc_now())
        agent = find(run, name)
        earlier = _earlier(agent) if go_on else ""
        entry |= {"feedback": feedback.strip()[:_LONGEST], "continue_from": earlier}
        decided = plan(place, name, RERUN, reason, by)
        return Step(decided.sentence, (manifest.write(), *decided.writes), decided.warnings)

    def due() -> Step:  # it is decided already: only what is said to it is new
        manifest = manifests.read(place)
        agent = find(dispatch.read_run(place, utc_now()), name)
        earlier = _earlier(agent) if go_on else ""
        manifest.entries[name] |= {
            "feedback": feedback.strip()[:_LONGEST],
            "continue_from": earlier,
        }
        return Step(f"Rerun {name}.", (manifest.write(),))

    guard.act(place, AGAIN, lambda: due() if _is_due(place, name) else step())


def _is_due(place: Layout, name: str) -> bool:
    run = dispatch.read_run(place, utc_now())
    return find(run, name).decision == RERUN


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


def find(run: Run, name: str) -> Agent:
    """An agent of the run.

    Raises:
        Refused: there is none of that name.
    """
    agent = next((each for each in run.agents if each.name == name), None)
    if agent is None:
        known = ", ".join(each.name for each in run.agents) or "none"
        raise Refused(f"no agent {name!r} (agents: {known})")
    return agent
