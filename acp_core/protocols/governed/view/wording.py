"""What the words in a run's files mean, in sentences that a human would say.

Source: governed protocol specification, "Files" and "Phase model"; which words there are follows the
shapes that the existing program writes. Standard library only.
"""

from __future__ import annotations

from acp_core.files.text import clean_line
from acp_core.protocols.governed.schema import Object
from acp_core.protocols.governed.schema.fields import decode
from acp_core.protocols.governed.schema.state_file import RunState, TurnState

_LONG = 200


def plain(word: str) -> str:
    """A word of a file without its underscores: ``failed_start`` is ``failed start``."""
    return word.replace("_", " ")


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
    return clean_line(how or "it does not say what", _LONG)


def _ways(state: RunState, kind: str, rest: str) -> str:
    name, _, about = rest.partition(":")
    match kind:
        case "escalation" if name == "retries-exhausted":
            return f"the turn of {about or 'a role'} was rejected at its last attempt"
        case "escalation":
            return f"somebody stopped it{_because(state, about.replace('-', ' '))}"
        case "human":
            return f"it needs a human: {rest}" if rest else "it needs a human"
        case "hook":
            return f"the hook {about or name} held it up" + (f" ({plain(name)})" if about else "")
        case "gate_action":
            return f"what the gate {rest} does when it opens failed"
        case "non_progress":
            return f"the gate {rest} was asked for again and again, and is not met"
        case "policy":
            return f"the policy {rest} forbids it"
        case "budget":
            return "its budget is used up"
        case "timeout":
            return f"its time is up ({plain(rest)})" if rest else "its time is up"
        case "dispatch":
            return f"a turn could not be given out: {plain(rest)}"
        case "turn" | "turns":
            return _turn(state, name, about)
        case "operator_commit_reconcile_refused":
            return "commits that somebody made beside it could not be taken in"
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
        return f"no program took {whose}"
    return f"{whose} has stalled" if how == "stalled" else f"{whose} came to nothing"
