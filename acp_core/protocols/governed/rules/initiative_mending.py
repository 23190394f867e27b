from __future__ import annotations

from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.initiative import OWN, Initiative, Workstream
from acp_core.protocols.governed.schema import Log, Object, items, text


def why_state_cannot_be_rebuilt(initiative: Initiative) -> str:
    """Why the coordinator's state cannot be made again, "" where it can."""
    if initiative.layout != OWN:
        return "the agentxchain program maintains it"
    if not initiative.state.reason:
        return "it can be read"
    if initiative.config.reason:
        return f"{schema.MULTI_CONFIG}: {initiative.config.reason}"
    if initiative.ledger.problems:
        line, reason = initiative.ledger.problems[0]
        return f"its ledger, line {line}: {reason}"
    if not linked_workstreams(initiative.ledger):
        return "its ledger does not record its start"
    return ""


def linked_workstreams(ledger: Log) -> dict[str, Object]:
    """What the ledger tells of each workstream: its folder, its run, its last phase."""
    found: dict[str, Object] = {}
    for line in ledger.lines:
        value, name = line.value, line.value.get("workstream")
        if value.get("type") == "workstream_linked" and isinstance(name, str):
            found[name] = {key: value.get(key) for key in ("path", "run_id", "phase")}
        for moved in items(value, "workstreams") if value.get("type") == "resync" else ():
            of = found.get(text(moved, "workstream", 80))
            if of is not None:
                of["phase"] = moved.get("to")
    return found


def why_workstream_cannot_be_mended(stream: Workstream, *, crossed: bool = False) -> str:
    """Why a workstream's state cannot be made again, "" where it can.

    Args:
        stream: the workstream.
        crossed: whether it is past a barrier that nobody approved.
    """
    run, known = stream.run, stream.recorded
    if run is None:
        return "its path leads out of the initiative"
    if not run.state.reason and not crossed:
        return "its state is readable, and it crossed no closed barrier"
    if run.config.reason:
        return f"its configuration cannot be read: {schema.why(run.config.reason)}"
    for name, log in ((schema.HISTORY, run.history), (schema.LEDGER, run.ledger)):
        if log.problems:
            return f"{name}: {log.problems[0][1]}"
    if not known.run_id:
        return "the coordinator does not know its run"
    if known.phase not in run.phases and not crossed:
        return "the coordinator does not know its phase"
    return ""
