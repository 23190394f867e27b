"""Where a collaboration stands now: its phase, whose turn it is, what ends the turn, where it goes on.

In the few words that a list of many needs a store keeps that beside it: whoever publishes a change
says it with the change (`list_state`); who lists a store takes it for a stranger's word (`decode`).
Prompts and diagnoses name the events of a turn (`steps`): the latter on every screen, so nothing
that loops need is imported here. Source: folder protocol specification, "Phases" and "Events".
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from acp_core.files.journal import blocks
from acp_core.files.reading import Stamp, stamp
from acp_core.model import Link
from acp_core.model.light import TYPE_CHECKING, Any, NamedTuple
from acp_core.model.text import clean_line
from acp_core.model.turn import Brief
from acp_core.protocols.folder.read.detect import detect
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.read.log import History
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import V2, id_in, list_in, object_in, text_in
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


def event_due(machine: Machine, dialect: str) -> str:
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
        "event": event_due(machine, history.dialect),
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
        decoded = records.decode_protocol(protocol)
    except ValueError:
        return {}
    history = History(records.participant_ids(decoded), records.dialect_of(decoded))
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


class _Kind(NamedTuple):
    """An event that ends a turn: the document it names, the documents it needs, what to do."""

    event: str
    doc: str
    needs: tuple[str, ...]
    what: str


_DRAFTING = _Kind("proposal_submitted", "proposal.md", ("proposal.md",), "write proposal.md")

_REVIEWING = _Kind(
    "review_submitted", "review.md", (), "review the proposal and say what must change"
)

_REVISING = _Kind(
    "proposal_revised",
    "proposal.md",
    ("proposal.md",),
    "revise proposal.md so that it answers every required change in review.md",
)

_CLASSIFYING = _Kind(
    "question_classified",
    "readiness.md",
    ("readiness.md", "decisions.md"),
    "write the explicit decisions into decisions.md and classify every open question in "
    "readiness.md",
)

_ACCEPTING = _Kind(
    "decision_accepted",
    "decisions.md",
    (),
    "accept the decisions in decisions.md, if they are explicit",
)

_PASSING = _Kind(
    "readiness_passed",
    "readiness.md",
    ("readiness.md",),
    "clear every blocker in readiness.md and check `Ready to implement`",
)

_COMPLETING = _Kind(
    "completed",
    "conclusion.md",
    ("conclusion.md", "readiness.md"),
    "write conclusion.md, and check in readiness.md every completion gate that is met",
)


def steps(facts: Facts, participant: str) -> tuple[Step, ...]:
    """The events with which ``participant`` takes the present turn, in order; none if not waited for."""
    machine = facts.history.machine
    wait = machine.waits.get(participant)
    if wait is None:
        return ()
    last = facts.history.last
    reply_to = wait.seq or (last.seq if last and last.seq else 1)
    phase, second = machine.phase, facts.dialect == V2
    found: list[Step] = []
    if phase == "drafting":
        if second and not machine.drafted:
            found += _deliverable(facts, "deliverable_drafted", "write", reply_to)
        found.append(_step(facts, _DRAFTING, reply_to))
    elif phase == "reviewing":
        found.append(_step(facts, _REVIEWING, reply_to, draft="review"))
    elif phase == "revising":
        if second:
            revised = _deliverable(facts, "deliverable_revised", "if need be, revise", reply_to)
            found += [step._replace(optional=True) for step in revised]
        found.append(_step(facts, _REVISING, reply_to))
    elif phase == "decision_review":
        if not machine.classified:
            found.append(_step(facts, _CLASSIFYING, reply_to))
        else:
            found.append(_step(facts, _ACCEPTING, reply_to, draft="acceptance"))
    elif phase == "readiness_check":
        if second and not machine.frozen:
            found += _deliverable(facts, "deliverable_frozen", "finish and freeze", reply_to)
        if not machine.passed:
            found.append(_step(facts, _PASSING, reply_to))
        found.append(_step(facts, _COMPLETING, reply_to))
    return tuple(found)


def required(found: tuple[Step, ...]) -> tuple[Step, ...]:
    """The events that a turn cannot do without."""
    return tuple(step for step in found if not step.optional)


def _step(facts: Facts, kind: _Kind, reply_to: int, draft: str = "") -> Step:
    return Step(
        event=kind.event,
        doc=kind.doc,
        needs=tuple(facts.path(name) for name in kind.needs),
        what=kind.what,
        reply_to=reply_to,
        draft=f"{draft}-of-seq-{reply_to}.md" if draft else "",
    )


def _deliverable(facts: Facts, event: str, verb: str, reply_to: int) -> list[Step]:
    """The event of the primary deliverable, where one is declared."""
    primary = facts.primary
    if primary is None or primary.file.path is None:
        return []
    reference = primary.item.reference
    frozen = ", its status being `Status: Frozen`" if event == "deliverable_frozen" else ""
    return [
        Step(
            event=event,
            doc=reference,
            needs=(primary.file.path,),
            what=f"{verb} the primary deliverable {reference}{frozen}",
            reply_to=reply_to,
            role="primary",
        )
    ]


class Step(NamedTuple):
    """One event with which a turn is taken.

    Attributes:
        event: its name; ``doc`` the document that it names.
        needs: paths of the documents that are written before.
        what: what to do before it, in words.
        reply_to: the seq that it answers.
        role: of a deliverable event.
        draft: file name of the text that goes with it and is first written as a draft.
        optional: the turn may be taken without it.
    """

    event: str
    doc: str
    needs: tuple[str, ...]
    what: str
    reply_to: int
    role: str = ""
    draft: str = ""
    optional: bool = False

    def draft_path(self, brief: Brief) -> str:
        """Where its draft is written."""
        return os.path.join(brief.drafts, self.draft)

    def paths(self, brief: Brief) -> tuple[str, ...]:
        """The files that change before the event can be appended."""
        return (*self.needs, self.draft_path(brief)) if self.draft else self.needs


def event_of_turn(facts: Facts) -> str:
    """The event that ends the turn of those who are waited for: the name of its action too."""
    return event_due(facts.history.machine, facts.dialect)


CONTINUED = "continued_by"

RELATIONS = ("continues", CONTINUED)

_PATH = 4_096


def lineage(protocol: dict[str, Any] | None, folder: str) -> tuple[Link, ...]:
    """The links in protocol.json. A path there is data: only a collaboration is linked to."""
    found = []
    for relation in RELATIONS:
        named = object_in(protocol or {}, relation)
        path = text_in(named, "path") or text_in(protocol or {}, relation)
        if not path or "\0" in path or len(path) > _PATH:
            continue
        place = os.path.normpath(os.path.join(folder, path))
        found.append(
            Link(
                relation=relation,
                location=place,
                name=clean_line(os.path.basename(place) or place, 200),
                found=detect(place),
                summary=_summary(named),
            )
        )
    return tuple(found)


def _summary(named: dict[str, Any]) -> str:
    parts = (text_in(named, key) for key in ("objective", "phase", "at"))
    return clean_line(", ".join(filter(None, parts)), 300)


def continued_in(links: Iterable[Link]) -> str:
    """The folder in which a collaboration goes on, "" where none is there."""
    return next((each.location for each in links if each.relation == CONTINUED and each.found), "")


_people_kept: tuple[tuple[str, Stamp | None], frozenset[str]] | None = None


def people_of_settings() -> frozenset[str]:
    global _people_kept
    from acp_core.person import settings

    place = settings.path()
    key = (str(place), stamp(place))
    if _people_kept is None or _people_kept[0] != key:
        try:
            _people_kept = (key, frozenset(settings.load().humans))
        except settings.SettingsError:  # said by whoever reads them for their own sake
            _people_kept = (key, frozenset())
    return _people_kept[1]
