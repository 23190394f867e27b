"""What must hold after a run, whatever failed in it.

Every event has a name of its own and all are in one log: each rule is one walk along it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.stores.check.backends import Revision
from tests.stores.check.history import OK, REFUSED, Attempt, History, Seen


class Outcome(NamedTuple):
    """What there is in the end.

    Attributes:
        log: the store's.
        revisions: the store's.
        contents: everything that the store has ever held.
        folders: each host's, by its name.
    """

    log: bytes
    revisions: Sequence[Revision]
    contents: bytes
    folders: Mapping[str, Path]


def judge(history: History, outcome: Outcome) -> list[str]:
    """Everything that is wrong; nothing where all holds."""
    lines = outcome.log.splitlines(True)
    events = [json.loads(line) for line in lines]
    where: dict[str, list[int]] = {}
    for event in events:
        where.setdefault(event["summary"].rstrip("."), []).append(event["seq"])
    return [
        *history.wrong,
        *_sequence(events),
        *_attempts(history.attempts, where),
        *_order(history.attempts, where),
        *_leases(history.attempts, events),
        *_hosts(history.attempts, events, outcome),
        *_readers(history.seen, outcome.log, lines, history.attempts),
        *_folders(outcome),
        *_edits(history, outcome),
    ]


def _sequence(events: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """The seq goes from 1 on by one, no key comes twice, and the time never goes back."""
    if [each["seq"] for each in events] != list(range(1, len(events) + 1)):
        yield f"the seq has gaps: {[each['seq'] for each in events]}"
    keys = [(each["from"], each["key"]) for each in events if each.get("key")]
    if len(set(keys)) != len(keys):
        yield "a key is in the log twice"
    times = [each["at"] for each in events]
    if times != sorted(times):
        yield f"the time goes back: {times}"


def _attempts(attempts: Sequence[Attempt], where: Mapping[str, Sequence[int]]) -> Iterable[str]:
    """Acknowledged: once, at its seq. Unknown: once at most. Refused, and nothing else: not there."""
    for token, all_of_it in _by_token(attempts).items():
        found = where.get(token, [])
        if len(found) > 1:
            yield f"{token} is in the log {len(found)} times: {found}"
        for each in all_of_it:
            if each.outcome == OK and list(found) != [each.seq]:
                yield f"{token} was acknowledged at seq {each.seq} and is at {found or 'none'}"
        if found and all(each.outcome == REFUSED for each in all_of_it):
            yield f"{token} was refused and is in the log: {[(each.code, each.said) for each in all_of_it]}"


def _order(attempts: Sequence[Attempt], where: Mapping[str, Sequence[int]]) -> Iterable[str]:
    """An event that was asked for after another one was acknowledged comes after it."""
    spans = {}
    for token, all_of_it in _by_token(attempts).items():
        ends = [each.ended for each in all_of_it if each.outcome == OK]
        if where.get(token) and all_of_it[0].kind != "rogue":
            spans[where[token][0]] = (all_of_it[0].began, min(ends, default=float("inf")), token)
    earliest = float("inf")
    after = ""
    for seq in sorted(spans, reverse=True):
        began, ended, token = spans[seq]
        if earliest < began:
            yield f"{token} at seq {seq} was begun after {after} was acknowledged, and comes before it"
        if ended < earliest:
            earliest, after = ended, token


def _leases(attempts: Sequence[Attempt], events: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """A participant's events come from the host that has its lease: only taking moves it."""
    by_token = _by_token(attempts)
    at: dict[str, str] = {}
    for event in events:
        made = by_token.get(event["summary"].rstrip("."))
        if made is None:
            continue
        who, host = event["from"], made[0].host
        if at.get(who, host) != host and not made[0].take:
            yield f"{who} acts on {at[who]}, and seq {event['seq']} comes from {host}"
        at[who] = host


def _hosts(
    attempts: Sequence[Attempt], events: Sequence[Mapping[str, Any]], outcome: Outcome
) -> Iterable[str]:
    """Each change of the log was made by the host that was asked to make it."""
    by_token = _by_token(attempts)
    ends = {}
    size = 0
    for line, event in zip(outcome.log.splitlines(True), events, strict=True):
        size += len(line)
        ends[size] = by_token.get(event["summary"].rstrip("."))
    before = 0
    for each in outcome.revisions:
        made = ends.get(each.size)
        if each.size != before and made is not None and made[0].host != each.host:
            yield f"{made[0].token} of {made[0].host} was published by {each.host}"
        before = each.size
    if before != len(outcome.log):
        yield "the last change is not the log"


def _readers(
    seen: Mapping[str, Seen], log: bytes, lines: Sequence[bytes], attempts: Sequence[Attempt]
) -> Iterable[str]:
    """What readers saw is in the store, but for what scripts wrote and could not stay."""
    known = set(lines)
    rogue = {each.token for each in attempts if each.kind == "rogue"}
    for host, each in seen.items():
        if not log.startswith(each.prefix):
            yield f"{host} knew a log that is not the store's"
        for line in each.lines - known:
            if json.loads(line)["summary"].rstrip(".") not in rogue:
                yield f"{host} showed an event that the store does not have: {line[:300]!r}"


def _folders(outcome: Outcome) -> Iterable[str]:
    """All hosts hold the same bytes, and the store's log."""
    first: dict[str, str] | None = None
    for host, folder in outcome.folders.items():
        if (folder / "events.jsonl").read_bytes() != outcome.log:
            yield f"{host} does not hold the store's log"
        files = _digests(folder)
        first = first or files
        if files != first:
            differing = sorted(
                name for name in files.keys() | first.keys() if files.get(name) != first.get(name)
            )
            yield f"{host} does not hold what the others hold: {differing}"


def _edits(history: History, outcome: Outcome) -> Iterable[str]:
    """What somebody wrote is in the store, in a folder, or kept."""
    review = b"".join((folder / "review.md").read_bytes() for folder in outcome.folders.values())
    acknowledged = {each.token for each in history.attempts if each.outcome == OK}
    for host, text in history.edits:
        if host in outcome.folders:
            kept = [
                path.read_bytes() for path in outcome.folders[host].rglob("*") if path.is_file()
            ]
            if not any(text.encode() in each for each in [outcome.contents, *kept]):
                yield f"{host} has lost: {text}"
            continue
        done = text.removeprefix("Review ").rstrip(".") in acknowledged
        if done and review.count(text.encode()) != len(outcome.folders):
            yield f"review.md does not hold once: {text}"
    for each in history.attempts:
        if each.kind == "rogue":
            kept = [
                path.read_bytes()
                for path in outcome.folders[each.host].rglob("*")
                if path.is_file()
            ]
            if not any(f'"{each.token}.'.encode() in data for data in [outcome.log, *kept]):
                yield f"a script's line of {each.host} is lost: {each.token}"


def _by_token(attempts: Sequence[Attempt]) -> dict[str, list[Attempt]]:
    found: dict[str, list[Attempt]] = {}
    for each in attempts:
        found.setdefault(each.token, []).append(each)
    return found


def _digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".acp" not in path.parts
    }
