"""Who takes part, who is waited for, and what each should do next."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from acp_core.model import NextAction, Participant, Turn
from acp_core.model.text import clean_name
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.prompts import next_actions as prompts
from acp_core.protocols.folder.read import list_summary
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.schema import UNKNOWN_DIALECT, list_in
from acp_core.protocols.folder.view.timeline import EventLog

ID = 200  # characters of a participant's id that are shown
_KINDS = ("agent", "human")


def kinds(facts: Facts, humans: frozenset[str]) -> dict[str, str]:
    """Participant -> ``human`` or ``agent`` where protocol.json or the settings say so."""
    found: dict[str, str] = {}
    for item in list_in(facts.protocol or {}, "participants"):
        if isinstance(item, dict) and isinstance(item.get("id"), str):
            kind = item.get("kind")
            found[item["id"]] = kind if kind in _KINDS else "unknown"
    return found | dict.fromkeys(humans, "human")


def participants(
    facts: Facts, kinds: Mapping[str, str], last: Mapping[str, int], events: EventLog
) -> tuple[Participant, ...]:
    """Everybody in the list, and whoever wrote to the log without being in it."""
    history = facts.history
    listed = list(history.participants)
    known = set(listed)
    ghosts = [name for name in last if name not in known][: schema.MAX_PARTICIPANTS]
    shown = []
    for name in (*listed, *ghosts):
        index = last.get(name)
        entry = None if index is None else history.entries[index]
        if name not in known:
            role = "not listed"
        else:
            role = "proposal owner" if name == history.machine.owner else "reviewer"
        shown.append(
            Participant(
                id=clean_name(name, ID) or "?",
                kind=kinds.get(name, "unknown"),
                role=role,
                last_event=None if index is None else events.id_of(index),
                last_seen=schema.parse_time(entry.at) if entry else None,
            )
        )
    return tuple(shown)


def turns(facts: Facts, now: datetime) -> tuple[Turn, ...]:
    """Who is waited for, to do what, and since which event; nobody in an unknown dialect.

    Where a wrong clock dated the event in the future, the turn began when the log was last changed.
    """
    machine = facts.history.machine
    if facts.dialect == UNKNOWN_DIALECT:
        return ()
    log = facts.others[schema.LOG_FILE]
    changed = None if log.modified is None else datetime.fromtimestamp(log.modified, UTC)

    def began(at: str) -> datetime | None:
        time = schema.parse_time(at)
        wrong = time is not None and (time - now).total_seconds() > schema.CLOCKS_DIFFER
        return changed if wrong else time

    what = list_summary.duty(machine)
    return tuple(
        Turn(
            participant=clean_name(name, ID) or "?",
            what=what,
            since=began(wait.at),
            since_event=None if wait.seq is None else str(wait.seq),
        )
        for name, wait in machine.waits.items()
    )


def next_actions(facts: Facts) -> tuple[NextAction, ...]:
    """What each participant should do now; nothing in an unknown dialect."""
    machine = facts.history.machine
    if facts.dialect == UNKNOWN_DIALECT:
        return ()
    said: dict[tuple[bool, bool], str] = {}  # the sentence depends on no more than this
    shown = []
    for name in machine.participants:
        waited = name in machine.waits
        kind = (name == machine.owner, waited)
        if kind not in said:
            said[kind] = prompts.next_action(machine, facts, name)
        shown.append(NextAction(clean_name(name, ID) or "?", said[kind], waited))
    return tuple(shown)


def names(listed: tuple[str, ...]) -> str:
    """Names as a sentence has them: ``a``, ``a and b``, ``a, b and 3 more``."""
    if len(listed) > 3:
        return f"{', '.join(listed[:2])} and {len(listed) - 2} more"
    return " and ".join(filter(None, (", ".join(listed[:-1]), listed[-1]))) if listed else "nobody"
