"""Lines of the coordinator's ledger as sentences for people. Standard library only."""

from __future__ import annotations

from acp_core.model.text import clean_line
from acp_core.protocols.governed.schema.coordinator import CoordinatorLine


def sentence(line: CoordinatorLine) -> str:
    """What a line of the ledger tells, safe to show."""
    name, barrier = line.workstream, line.barrier
    by = f" by {line.by}" if line.by else ""
    by += f": {line.comment}" if line.comment else ""
    match line.type:
        case "initiative_started":
            about = f": {line.description}" if line.description else ""
            return f"the initiative started{about}"
        case "workstream_linked":
            return f"{name} is linked: {line.run_id} in {line.phase}"
        case "workstream_at_barrier":
            return f"{name} reached {barrier}"
        case "barrier_reached":
            return f"all workstreams reached {barrier}: its gate needs your approval"
        case "barrier_approved":
            return f"{barrier} approved{by}"
        case "barrier_rejected":
            back = clean_line(", ".join(line.workstreams))
            return f"{barrier} rejected{by}; back at work: {back}"
        case "resync":
            crossed = ", ".join(each.workstream for each in line.crossings)
            return f"{crossed} crossed {barrier}" if line.crossings else "resynced"
        case "resync_failed":
            failed = "; ".join(
                f"{each.workstream}: {each.reason}".removeprefix(": ") for each in line.failures
            )
            if line.crossed:
                return f"the resync of the already crossed {barrier} failed: {failed}"
            return f"no workstream crossed {barrier}: {failed}"
        case "workstream_failed":
            return f"{name} failed: {line.reason}"
        case "workstream_mended":
            where = f"{line.phase}, {line.status}"
            return f"the state of {name} was rebuilt from its history{by}: {where}"
        case "coordinator_mended":
            return f"the coordinator's state was rebuilt from its ledger{by}"
        case "workstream_recovered":
            return f"{name} has resumed"
        case "barrier_crossed":
            return f"{name} crossed the unapproved {barrier}"
        case "super_run_completed":
            return "the initiative is completed"
        case "hook":
            return f"{line.hook}: {line.outcome}" + (f": {line.detail}" if line.detail else "")
        case kind:
            return kind.replace("_", " ")


def actor_of(line: CoordinatorLine) -> str:
    """Who did it: a human, a workstream, or the coordinator by itself."""
    own = line.type in ("workstream_at_barrier", "workstream_failed")
    return clean_line(line.by, 80) or (line.workstream if own else "coordinator")
