"""What the words in a run's files mean, in sentences that a human would say.

Source: governed protocol specification, "Files" and "Phase model"; which words there are follows the
shapes that the existing program writes. Standard library only.
"""

from __future__ import annotations

from acp_core.model.text import clean_line
from acp_core.protocols.governed.schema import Object
from acp_core.protocols.governed.schema.fields import decode
from acp_core.protocols.governed.schema.state_file import RunState, TurnState

_LONG = 200


def plain(word: str) -> str:
    """A word of a file without its underscores: ``failed_start`` is ``failed start``."""
    return word.replace("_", " ")


def status_called(status: str) -> str:
    """A status in words: ``blocked:resync_failed`` is ``blocked (resync failed)``."""
    word, _, why = status.partition(":")
    return f"{plain(word)} ({plain(why)})" if why else plain(word)


def gate_called(name: str) -> str:
    """A gate in words: those of the existing program's coordinator bear what they are."""
    kind, _, rest = name.partition(":")
    before, arrow, after = rest.partition("->")
    if kind == "phase_transition" and arrow:
        return f"from {before} to {after}"
    return plain(name) if name == "initiative_ship" else name


def blocked_by(state: Object) -> str:
    """By what a run is blocked, in words without a capital and without a full stop."""
    record = decode(RunState, state)
    kind, _, rest = record.blocked_on.partition(":")
    how = _ways(record, kind, rest) or record.blocked_on
    return clean_line(how or "no reason given", _LONG)


def _ways(state: RunState, kind: str, rest: str) -> str:
    name, _, about = rest.partition(":")
    match kind:
        case "escalation" if name == "retries-exhausted":
            return f"the turn of {about or 'a role'} was rejected on its last attempt"
        case "escalation":
            return f"a human stopped the run{_because(state, about.replace('-', ' '))}"
        case "human":
            return f"a human must decide: {rest}" if rest else "a human must decide"
        case "hook":
            return f"the hook {about or name} blocked it" + (f" ({plain(name)})" if about else "")
        case "gate_action":
            return f"the action on opening the gate {rest} failed"
        case "non_progress":
            return f"the gate {rest} was requested repeatedly but is not met"
        case "policy":
            return f"the policy {rest} does not allow it"
        case "budget":
            return "the budget is used up"
        case "timeout":
            return (
                f"the time limit has passed ({plain(rest)})"
                if rest
                else "the time limit has passed"
            )
        case "dispatch":
            return f"a turn could not be assigned: {plain(rest)}"
        case "turn" | "turns":
            return _turn(state, name, about)
        case "operator_commit_reconcile_refused":
            return "commits made outside the run could not be integrated"
    return ""


def _because(state: RunState, slug: str) -> str:
    detail = state.escalation
    if slug and slug.casefold() in detail.casefold():  # it was made of the same reason
        slug = ""
    why = ": ".join(each for each in (slug, detail) if each)
    return f": {why}" if why else ""


def _turn(state: RunState, how: str, id: str) -> str:
    role = decode(TurnState, state.active_turns.get(id)).role
    whose = f"the turn of {role}" if role else "a turn"
    if how == "failed_start":
        return f"{whose} failed to start"
    return f"{whose} has stalled" if how == "stalled" else f"{whose} failed"


YOU = "you"
