"""Where a collaboration stands, in the few words that a list of many needs: what a store keeps beside it.

Whoever publishes a change says it with the change (`list_state`); who lists a store takes it for a
stranger's word (`decode`). Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping

from acp_core.files.journal import blocks
from acp_core.model.light import TYPE_CHECKING, Any, NamedTuple
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.log import History
from acp_core.protocols.folder.schema import V2, id_in, list_in, object_in, text_in
from acp_core.protocols.folder.state import Machine

if TYPE_CHECKING:
    from acp_core.protocols.folder.state import Machine

PHASES = (
    "drafting", "reviewing", "revising", "decision_review", "readiness_check", "completed",
)  # fmt: skip

"""The phases in their order."""

_MOST_PEOPLE = 64

_LONGEST = 500

_NO_SEQ = -1


class Person(NamedTuple):
    """A participant: ``kind`` as protocol.json says; ``seq`` and ``at`` since when waited for."""

    id: str
    kind: str = "unknown"
    waited: bool = False
    seq: int | None = None
    at: str = ""


class Blocked(NamedTuple):
    """Who blocked it first, why and when; the name of the last such event, and how many more there are."""

    by: str
    why: str
    at: str
    last: str
    more: int = 0


class ListState(NamedTuple):
    """What a list tells of a collaboration.

    Attributes:
        dialect: of its protocol.json.
        objective: its beginning.
        phase: where it stands; of a blocked one ``blocked``.
        stopped: the phase in which it stopped, where it is blocked; else the same as ``phase``.
        round: how many proposals were submitted for review.
        owner: who owns the proposal.
        progress: from 0 to 1.
        duty: what those who are waited for are to do.
        event: the event that ends their turn.
        people: the participants, at most 64 of them.
        started, since, changed: the times of the first event, of the phase, of the last event.
        run: tells this log from others; see `acp_core.model.Snapshot.run_id`.
        blocked: by whom, if anybody.
        continued: the folder in which protocol.json says that it goes on.
        protocol: of what is mirrored; "" for a folder collaboration.
    """

    dialect: str = ""
    objective: str = ""
    phase: str = ""
    stopped: str = ""
    round: int = 0
    owner: str = ""
    progress: float | None = None
    duty: str = ""
    event: str = ""
    people: tuple[Person, ...] = ()
    started: str = ""
    since: str = ""
    changed: str = ""
    run: str = ""
    blocked: Blocked | None = None
    continued: str = ""
    protocol: str = ""


def current_phase(machine: Machine) -> str:
    """The phase in which the collaboration stands; of a blocked one, that in which it stopped."""
    if machine.phase in PHASES:
        return machine.phase
    return next((start[0] for start in reversed(machine.starts) if start[0] in PHASES), "")


def progress(machine: Machine) -> float | None:
    """How far it is, from 0 to 1: phases passed, and within one the answers that came in."""
    phase = current_phase(machine)
    if not phase:
        return None
    people = len(machine.participants)
    within = 0.0
    if phase == "reviewing" and machine.phase == phase and people > 1:
        within = 1 - len(machine.waiting) / (people - 1)
    elif phase == "decision_review" and machine.classified and people:
        within = (1 + len(machine.accepted)) / (people + 2)
    elif phase == "readiness_check" and machine.passed:
        within = 0.5
    share = (PHASES.index(phase) + max(0.0, min(within, 0.95))) / (len(PHASES) - 1)
    return min(1.0, share)


def event_of_turn(machine: Machine, dialect: str) -> str:
    """The event that ends the turn of those who are waited for: the name of its action too."""
    if machine.phase == "decision_review":
        return "decision_accepted" if machine.classified else "question_classified"
    if machine.phase == "readiness_check":
        if dialect == V2 and not machine.frozen:
            return "deliverable_frozen"
        return "completed" if machine.passed else "readiness_passed"
    if machine.phase == "drafting":
        first = dialect == V2 and not machine.drafted
        return "deliverable_drafted" if first else "proposal_submitted"
    return {"reviewing": "review_submitted", "revising": "proposal_revised"}.get(machine.phase, "")


def list_state(protocol: dict[str, Any], history: History) -> dict[str, Any]:
    """What a store keeps for lists, as JSON.

    Args:
        protocol: protocol.json.
        history: the events.
    """
    machine, last = history.machine, history.last
    first = history.entries[0] if history.entries else None
    kinds = {
        id_in(each): each.get("kind")
        for each in list_in(protocol, "participants")
        if isinstance(each, dict)
    }
    began = machine.starts[-1][3] if machine.starts else ""
    value: dict[str, Any] = {
        "dialect": history.dialect,
        "objective": text_in(protocol, "objective")[:_LONGEST],
        "phase": machine.phase,
        "stopped": current_phase(machine),
        "round": machine.round,
        "owner": machine.owner or "",
        "progress": progress(machine),
        "duty": duty(machine),
        "event": event_of_turn(machine, history.dialect),
        "people": [_person(name, kinds.get(name), machine) for name in history.participants[:_MOST_PEOPLE]],
        "started": first.at if first else "",
        "since": began,
        "changed": last.at if last else "",
        "run": first.at if first and first.event == "initialized" else "",
        "continued": (text_in(object_in(protocol, "continued_by"), "path") or text_in(protocol, "continued_by"))[:_LONGEST],
    }  # fmt: skip
    blockers = history.blockers if machine.phase == "blocked" else []
    if blockers:
        by = blockers[0]
        value["blocked"] = [
            by.sender[:_LONGEST], by.summary[:_LONGEST], by.at, blockers[-1].name, len(blockers) - 1,
        ]  # fmt: skip
    return value


def _person(name: str, kind: object, machine: Machine) -> list[object]:
    wait = machine.waits.get(name)
    known = kind if isinstance(kind, str) else "unknown"
    if wait is None:
        return [name, known]
    return [name, known, wait.seq if wait.seq is not None else _NO_SEQ, wait.at]


def standing_of(protocol: bytes, log: bytes) -> dict[str, Any]:
    """The same for a collaboration of which only the bytes are there; {} where they cannot be read."""
    from acp_core.stores import mirror  # only lists of stores need it
    from acp_core.stores.engine import StoreRefused

    if mirror.is_manifest(protocol):
        try:
            return dict(mirror.decode(protocol).standing)
        except StoreRefused:
            return {}
    try:
        decoded = schema.decode_protocol(protocol)
    except ValueError:
        return {}
    history = History(schema.participant_ids(decoded), schema.dialect_of(decoded))
    for block in blocks(log):
        history.read(block)
    return list_state(decoded, history)


def decode(value: Mapping[str, Any]) -> ListState:
    """What somebody said of a collaboration; what is not as it must be is left out."""
    people = value.get("people")
    blocked = value.get("blocked")
    share, number = value.get("progress"), value.get("round")
    known = isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
    texts = {
        name: each[: 2 * _LONGEST] if isinstance(each := value.get(name), str) else ""
        for name in ("dialect", "objective", "phase", "stopped", "owner", "duty", "event",
                     "started", "since", "changed", "run", "continued", "protocol")
    }  # fmt: skip
    return ListState(
        **texts,
        round=number if type(number) is int and 0 <= number < 1 << 31 else 0,
        progress=float(share) if known else None,  # type: ignore[arg-type]
        people=tuple(_people(people)) if isinstance(people, list) else (),
        blocked=_blocked(blocked) if isinstance(blocked, list) else None,
    )


def _people(listed: list[Any]) -> list[Person]:
    found = []
    for each in listed[:_MOST_PEOPLE]:
        if not isinstance(each, list) or len(each) not in (2, 4):
            continue
        if not (isinstance(each[0], str) and isinstance(each[1], str)):
            continue
        if len(each) == 2:
            found.append(Person(each[0], each[1]))
        elif type(each[2]) is int and isinstance(each[3], str):
            seq = None if each[2] == _NO_SEQ else each[2]
            found.append(Person(each[0], each[1], True, seq, each[3]))
    return found


def _blocked(given: list[Any]) -> Blocked | None:
    kinds = (str, str, str, str, int)
    if len(given) != len(kinds) or not all(map(isinstance, given, kinds)):
        return None
    return Blocked(*given)


_DUTIES = {
    "drafting": "submit the proposal",
    "reviewing": "review the proposal",
    "revising": "revise the proposal",
    "decision_review": "accept the decisions",
    "readiness_check": "pass readiness",
}


def duty(machine: Machine) -> str:
    """What those who are waited for are to do, as the end of "waiting for them to ..."."""
    if machine.phase == "drafting" and machine.dialect == V2 and not machine.drafted:
        return "draft the deliverable and submit the proposal"
    if machine.phase == "decision_review" and not machine.classified:
        return "classify the open questions"
    if machine.phase == "readiness_check" and machine.passed:
        return "write the conclusion"
    return _DUTIES.get(machine.phase, "act")
