"""What a validator says of an agent's messages and tasks (core specification, sections 1 to 3, 6)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from acp_core.files.unseen import Unseen
from acp_core.model import Finding, Severity
from acp_core.model.text import clean_line, clean_name, unseen
from acp_core.protocols.kit.findings import UNSEEN_TEXT
from acp_core.protocols.wire.read import folder
from acp_core.protocols.wire.read.folder import Reading
from acp_core.protocols.wire.schema import observed
from acp_core.protocols.wire.schema.basics import (
    ROLES,
    Json,
    LogEntry,
    TaskState,
    WireError,
    time_of,
)
from acp_core.protocols.wire.schema.bodies import check_parts
from acp_core.protocols.wire.schema.observed import PARTIAL, People, Task

SHOWN = 20  # findings of one code; the rest is counted
_MESSAGES = ("acp.message", "acp.reply")
_TEXTS = ("type", "message_id", "ts", "from", "role")


class _Rule(NamedTuple):
    severity: Severity
    explanation: str
    remedy: str


_SENDER = "Correct the program that sent it; acp keeps the message as it arrived."

RULES = {
    "W01": _Rule(
        Severity.ERROR, "A message needs type, message_id, ts, from, role and parts.", _SENDER
    ),
    "W02": _Rule(Severity.ERROR, 'The role of a message must be "user" or "agent".', _SENDER),
    "W03": _Rule(Severity.WARNING, "The time of a message must be ISO 8601 in UTC.", _SENDER),
    "W04": _Rule(
        Severity.WARNING, "A part must be a text, a file with a web address, or data.", _SENDER
    ),
    "W05": _Rule(
        Severity.ERROR,
        "A signature must be made with the shared secret or the sender's key.",
        "Do not trust the message; compare the secret or the key of both sides.",
    ),
    "W06": _Rule(
        Severity.WARNING,
        "With a shared secret, every message must be signed with it.",
        "Give the sender the same secret.",
    ),
    "W07": _Rule(
        Severity.ADVICE, "acp read a frame of an older form as a message.", "No action needed."
    ),
    "W08": _Rule(Severity.ERROR, "A task must have one of the six specified states.", _SENDER),
    "W09": _Rule(
        Severity.WARNING,
        "A peer must keep its key and its link.",
        "Ask the peer's owner; if the new key is right, forget the peer and connect again.",
    ),
    "W10": _Rule(
        Severity.ADVICE,
        "A signed message arrives soon after signing; an older one has waited or was sent again.",
        "Check the message id if you do not expect a late message.",
    ),
    "W11": _Rule(
        Severity.WARNING,
        "A peer that signs its messages with a key signs each of them.",
        "Do not take the message for the peer's; ask the peer's owner whether it still signs.",
    ),
    "W12": _Rule(
        Severity.WARNING,
        "A message must bear the name of the agent that sent it.",
        "Judge the message by its sender; senders choose the name in it freely.",
    ),
    "W19": _Rule(Severity.WARNING, *UNSEEN_TEXT),
}
"""The rules by code; codes never change their meaning."""


def check(reading: Reading) -> tuple[Finding, ...]:
    """The findings of a reading: of messages in their order, then of tasks."""
    return tuple(_bounded([*_messages(reading), *_tasks(reading.tasks)]))


def _messages(reading: Reading) -> Iterator[Finding]:
    people = folder.people_of(reading)
    for entry in reading.entries:
        if entry.kind in _MESSAGES:
            yield from _message(entry, people)
        elif entry.kind == "acp.peer" and (told := folder.suspect(entry)):
            yield _finding("W09", f"{told.name}: {told.reason}", str(entry.seq))


@lru_cache(maxsize=20_000)
def _message(entry: LogEntry, people: People) -> tuple[Finding, ...]:
    body, event = folder.body_of(entry), str(entry.seq)
    sender = observed.sender(body, people)
    who, wrong = clean_name(sender.name or "another agent", 64), list(_wrong(body))
    if sender.claimed and not sender.unowned:
        wrong.append(("W12", f"it says it is {clean_name(sender.claimed, 64)}"))
    return tuple(_finding(code, f"message {event} of {who}: {what}", event) for code, what in wrong)


def _wrong(body: Json) -> Iterator[tuple[str, str]]:
    missing = [name for name in _TEXTS if not isinstance(body.get(name), str) or not body[name]]
    missing += [] if isinstance(body.get("parts"), list) else ["parts"]
    if missing and body.get(PARTIAL) is True:
        return  # another agent's event tells only a part of its message
    if missing:
        yield "W01", f"without {', '.join(missing)}"
    elif body["role"] not in ROLES:
        yield "W02", f"its role is {body['role']!r}"
    if "ts" not in missing and time_of(body.get("ts")) is None:
        yield "W03", f"its time is {body['ts']!r}"
    if "parts" not in missing:
        try:
            check_parts(body["parts"])
        except WireError as refusal:
            yield "W04", refusal.message
    problem = folder.mismatch(body)
    if any(body.get(flag) for flag in folder.BAD):
        yield "W05", problem
    elif problem:
        yield "W06", problem
    if unsigned := observed.unsigned(body):
        yield "W11", unsigned
    if folder.signature_state(body) == folder.OLD:
        yield (
            "W10",
            f"its signature is right, but its time {body.get('ts')!r} was old on arrival",
        )
    characters = unseen(json.dumps(body, ensure_ascii=False))
    if characters:
        yield "W19", Unseen(1, 1, characters).sentence.removeprefix("line 1 ")
    if body.get("_legacy"):
        yield "W07", "its frame had an older form"


def _tasks(tasks: Iterable[Task]) -> Iterator[Finding]:
    known = {state.value for state in TaskState}
    for task in tasks:
        status = task.raw.get("status")
        if status not in known:
            yield _finding("W08", f"task {task.id}: its state is {status!r}", None)


def _finding(code: str, message: str, event: str | None) -> Finding:
    rule = RULES[code]
    return Finding(
        code, rule.severity, clean_line(message), event=event,
        explanation=rule.explanation, remedy=rule.remedy,
    )  # fmt: skip


def _bounded(findings: list[Finding]) -> Iterator[Finding]:
    """The latest findings of each code, and how many more there are."""
    counts = Counter(finding.code for finding in findings)
    skipped = {code: max(0, count - SHOWN) for code, count in counts.items()}
    for code, more in skipped.items():
        if more:
            yield _finding(code, f"{more} earlier ones of this kind", None)
    passed: Counter[str] = Counter()
    for finding in findings:
        passed[finding.code] += 1
        if passed[finding.code] > skipped[finding.code]:
            yield finding
