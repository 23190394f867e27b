"""A collaboration of a store as its list tells of it: a Snapshot without events and documents.

What the list says was said by the host that changed the collaboration last: it is shown as any
stranger's word, and nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from acp_core.model import Need, Participant, Runner, Snapshot, Status, Turn
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.current_state import ListState, decode
from acp_core.protocols.folder.view.build import MOST_HOSTS, hosts_of, turn_needs
from acp_core.protocols.folder.view.timeline import ID, names
from acp_core.stores.address import Address
from acp_core.stores.engine import Listed
from acp_core.stores.mirror import KINDS

HEARD = 45.0  # seconds after which a host that says nothing is not taken for one that runs a loop
_STATUS = {"completed": Status.COMPLETED, "blocked": Status.BLOCKED, "": Status.UNKNOWN}
_UNREAD = "its store does not report its state: open it"


def listed_snapshot(
    listed: Listed, address: Address, now: datetime, humans: frozenset[str]
) -> Snapshot:
    """What a list tells of a collaboration.

    Args:
        listed: the row.
        address: of the collaboration.
        now: the time.
        humans: ids of participants that are people, beside those that it names.
    """
    told = decode(listed.standing)
    turns = _turns(told) if listed.phase == told.phase else ()
    people = _people(told, humans)
    phase = clean_line(listed.phase, 40)
    status = _STATUS.get(phase, Status.ACTIVE)
    if phase and phase not in ("blocked", "completed") and not told.phase:
        turns = tuple(Turn(clean_name(each, ID) or "?", "act") for each in listed.waiting)
    return Snapshot(
        key=address.link,
        protocol=told.protocol if told.protocol in KINDS else "folder",
        dialect=clean_line(told.dialect, 40) or "unknown",
        name=listed.id,
        objective=clean_line(told.objective, 500),
        location=clean_line(address.link, 4_096),
        as_of=now,
        headline=_headline(phase, told, turns),
        summary="" if status in (Status.COMPLETED, Status.UNKNOWN) else _summary(phase, told),
        status=status,
        phase=phase,
        progress=told.progress,
        round=told.round or None,
        doubt="" if told.phase or not phase else _UNREAD,
        participants=people,
        turns=turns,
        runners=_runners(listed, {each.id for each in people}),
        needs=_needs(told, turns, people),
        since=schema.parse_time(told.since),
        started=schema.parse_time(told.started),
        changed=schema.parse_time(told.changed) or listed.updated,
        run_id=clean_line(told.run, 100),
        hosts=hosts_of(listed.acting, turns),
    )


def _people(told: ListState, humans: frozenset[str]) -> tuple[Participant, ...]:
    return tuple(
        Participant(
            id=clean_name(each.id, ID) or "?",
            kind="human" if each.id in humans else each.kind if each.kind in ("agent", "human") else "unknown",
            role="proposal owner" if each.id == told.owner else "reviewer",
        )
        for each in told.people
    )  # fmt: skip


def _turns(told: ListState) -> tuple[Turn, ...]:
    what = clean_line(told.duty, 200) or "act"
    return tuple(
        Turn(
            clean_name(each.id, ID) or "?",
            what,
            schema.parse_time(each.at),
            None if each.seq is None else str(each.seq),
        )
        for each in told.people
        if each.waited
    )


def _needs(
    told: ListState, turns: tuple[Turn, ...], people: Sequence[Participant]
) -> tuple[Need, ...]:
    """The same needs as those of its folder, as far as a list can know them."""
    humans = frozenset(each.id for each in people if each.kind == "human")
    event = told.event if told.event in schema.EVENTS_V2 else ""
    found = turn_needs(turns, humans, event)
    if told.blocked is None or told.continued:
        return found
    by, more = told.blocked, f" (and {told.blocked.more} more)" if told.blocked.more > 0 else ""
    who, why = clean_name(by.by, 100), clean_line(by.why, 300) + more
    need = Need(
        key=f"blocked:{clean_line(by.last)}",
        code="blocked",
        text=f"blocked by {who}: {why}",
        participant=who,
        since=schema.parse_time(by.at),
    )
    return (need, *found)


def _runners(listed: Listed, people: set[str]) -> tuple[Runner, ...]:
    """The loops of hosts that were heard of lately."""
    found = []
    for heard in listed.runners:
        if heard.age is None or heard.age > HEARD:
            continue
        participants: Mapping[str, object] = heard.state.participants
        for name in list(participants)[:MOST_HOSTS]:
            id = clean_name(name, ID)
            account = clean_line(heard.state.account, 80)
            found.append(Runner(id if id in people else "", account, heard.state.host))
    return tuple(dict.fromkeys(found))


def _headline(phase: str, told: ListState, turns: Sequence[Turn]) -> str:
    """One plain sentence; how long it has lasted is left to the screens."""
    if not phase:
        return "no events yet." if told.people else f"{_UNREAD}."
    if phase == "completed":
        return "completed."
    if phase == "blocked":
        if told.blocked is None:
            return "blocked."
        stopped = told.stopped.replace("_", " ")
        where = f" in {clean_line(stopped, 40)}" if stopped else ""
        by = told.blocked
        return f"blocked{where} by {clean_name(by.by, 60)}: {clean_line(by.why, 200)}"
    shown = tuple(clean_name(turn.participant, 60) for turn in turns)
    return f"{_summary(phase, told)}. Waiting for {names(shown)}."


def _summary(phase: str, told: ListState) -> str:
    number = f", round {told.round}" if told.round > 1 else ""
    return phase.replace("_", " ") + number
