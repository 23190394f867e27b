"""Lines of the coordinator's ledger as sentences for people. Standard library only."""

from __future__ import annotations

from acp_core.protocols.governed.schema import Object, items, strings, text


def sentence(line: Object) -> str:
    """What a line of the ledger tells, safe to show."""
    kind, name = text(line, "type", 60), text(line, "workstream", 80)
    barrier, by = text(line, "barrier", 80), text(line, "by", 120)
    comment = text(line, "comment")
    said = f" by {by}" if by else ""
    said += f": {comment}" if comment else ""
    match kind:
        case "initiative_started":
            told = text(line, "description")
            return f"the initiative begins: {told}" if told else "the initiative begins"
        case "workstream_linked":
            return f"{name} is linked: {text(line, 'run_id', 80)} in {text(line, 'phase', 80)}"
        case "workstream_at_barrier":
            return f"{name} reached {barrier}"
        case "barrier_reached":
            return f"all workstreams reached {barrier}: its gate waits for you"
        case "barrier_approved":
            return f"{barrier} approved{said}"
        case "barrier_rejected":
            back = ", ".join(strings(line, "workstreams"))
            return f"{barrier} rejected{said}; at work again: {text({'': back}, '')}"
        case "resync":
            moved = [text(each, "workstream", 80) for each in items(line, "workstreams")]
            return f"{', '.join(moved)} crossed {barrier}" if moved else "resynced"
        case "resync_failed":
            failed = "; ".join(
                f"{text(each, 'workstream', 80)}: {text(each, 'reason')}".removeprefix(": ")
                for each in items(line, "failures")
            )
            if line.get("crossed") is True:
                return f"the resync of {barrier}, which was crossed before, failed: {failed}"
            return f"nobody crossed {barrier}: {failed}"
        case "workstream_failed":
            return f"{name} failed: {text(line, 'reason')}"
        case "workstream_mended":
            where = f"{text(line, 'phase', 80)}, {text(line, 'status', 80)}"
            return f"the state of {name} was made again from its history{said}: {where}"
        case "coordinator_mended":
            return f"the coordinator's state was made again from its ledger{said}"
        case "workstream_recovered":
            return f"{name} goes on again"
        case "barrier_crossed":
            return f"{name} crossed {barrier}, which nobody approved"
        case "super_run_completed":
            return "the initiative is completed"
        case "hook":
            detail = text(line, "detail", 200)
            outcome = text(line, "outcome", 40)
            return f"{text(line, 'hook', 60)}: {outcome}" + (f": {detail}" if detail else "")
        case _:
            return kind.replace("_", " ")


def actor_of(line: Object) -> str:
    """Who did it: a human, a workstream, or the coordinator by itself."""
    by = text(line, "by", 80)
    if by:
        return by
    own = text(line, "type", 60) in ("workstream_at_barrier", "workstream_failed")
    return text(line, "workstream", 80) if own else "coordinator"
