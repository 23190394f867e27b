from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from acp_core.files.decode import text
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.wire.schema import people as schema_people
from acp_core.protocols.wire.schema.basics import Json, LogEntry, time_of
from acp_core.protocols.wire.schema.bodies import in_line, shown_text, spoken
from acp_core.protocols.wire.schema.people import People
from acp_core.protocols.wire.schema.tasks import Task
from acp_core.protocols.wire.schema.untrusted_json import fields_of

if TYPE_CHECKING:
    from acp_core.protocols.wire.read.folder import Placed, Reading

FAR = 300.0  # seconds by which a time that somebody says may be off before that is said

_FLAGS = {
    "_sig_invalid": "the shared secret's signature is wrong",
    "_sig_missing": "not signed with the shared secret",
    "_ed25519_other_key": "signed with another key than before",
    "_ed25519_invalid": "the Ed25519 signature is wrong",
}

SUSPECT = ("refused", "moved")  # another key for a peer; another agent behind its link

BAD = ("_sig_invalid", "_ed25519_invalid")

_GOOD = ("_sig_verified", "_ed25519_verified")

VERIFIED, OLD = "verified", "verified, but old"

UNSIGNED, WRONG = "not verified", "wrongly signed"

KINDS = (VERIFIED, OLD, UNSIGNED, WRONG)

MESSAGE_KINDS = ("acp.message", "acp.reply")

NOBODY_KNOWN = People()


class Message(NamedTuple):
    """What is counted of a message. ``context`` is "" where it belongs to none.

    ``claimed``: a name that it bears and that is not its sender's, ``who``.
    """

    who: str
    claimed: str
    arrived: bool
    signed: str
    context: str
    at: datetime | None
    text: str


def people_of(reading: Reading) -> People:
    """Who is known to an agent."""
    return schema_people.people(reading.name, {each.id: each.name for each in reading.peers})


@lru_cache(maxsize=20_000)
def message_of(entry: LogEntry, people: People = NOBODY_KNOWN) -> Message | None:
    """What is counted of an entry, where it is a message; ``people``: who is known to its agent."""
    if entry.kind not in MESSAGE_KINDS:
        return None
    body = body_of(entry)
    sender = schema_people.sender(body, people)
    return Message(
        clean_line(sender.name or "?", 64),
        clean_name(sender.claimed, 64),
        body.get("_direction") != "out",
        signed(body),
        text(body.get("context_id")) or "",
        time_of(body.get("ts")),
        clean_line(in_line(shown_text(body.get("parts"))), 200),
    )


def questions(tasks: Iterable[Task], entries: Iterable[LogEntry]) -> dict[str, str]:
    """By the id of each task that waits for an answer of the person here: what is asked.

    That is what was said last in it by who works on it; nothing stands there where nothing was.
    """
    wanted = {task.id: task for task in tasks if task.asks_us}
    answers: dict[str, str] = {}
    if not wanted:
        return answers
    for entry in entries:
        id = clean_line(entry.task_id or "", 300)
        if id not in wanted or not is_of_worker(body_of(entry), wanted[id]):
            continue
        message = message_of(entry)
        if message and message.text:
            said = clean_line(spoken(body_of(entry).get("parts")), 200)
            answers[id] = said if message.arrived else ""
    return {id: text for id, text in answers.items() if text}


def is_of_worker(body: Json, task: Task) -> bool:
    """Whether a message in a task is of who works on it, or of the agent itself, as far as that is told."""
    if body.get("_direction") == "out" or "_peer_id" not in body:
        return True
    return (body["_peer_id"] or body.get("_proven")) == (task.peer_id or None)


def signed(body: Json) -> str:
    """How a message that arrived was signed: one of `KINDS`.

    What lacks its sender's usual signature is not verified: the shared secret signs no contents.
    """
    if any(body.get(flag) for flag in BAD):
        return WRONG
    if schema_people.unsigned(body) or not any(body.get(flag) for flag in _GOOD):
        return UNSIGNED
    return OLD if body.get("_sig_old") else VERIFIED


def problem(body: Json) -> str:
    """What is wrong with a message's signatures, or missing, in words; "" where nothing is."""
    return "; ".join(filter(None, (mismatch(body), clean_line(schema_people.unsigned(body), 120))))


def mismatch(body: Json) -> str:
    """What is wrong with the signatures that a message has, or should have with a shared secret."""
    return next((words for flag, words in _FLAGS.items() if body.get(flag)), "")


class Suspect(NamedTuple):
    """That somebody is not who a peer was before. ``name``: the peer's; safe to show."""

    name: str
    reason: str
    since: datetime | None


def suspect(entry: LogEntry) -> Suspect | None:
    """What an entry about a peer says against somebody, or None."""
    body = body_of(entry)
    if body.get("event") not in SUSPECT:
        return None
    name, reason = (clean_line(str(body.get(key) or ""), 300) for key in ("name", "reason"))
    return Suspect(name, reason, time_of(body.get("ts")))


def taken_down(entry: LogEntry, written: Mapping[int, Placed]) -> datetime | None:
    """When an entry was written into the log, as far as known; else when it says that it was."""
    placed = written.get(entry.seq)
    return time_of(body_of(entry).get("ts")) if placed is None else placed.time


def body_of(entry: LogEntry) -> Json:
    """An entry's JSON object; an empty one where it is none."""
    try:
        return fields_of(json.loads(entry.body))
    except (ValueError, RecursionError):
        return {}
