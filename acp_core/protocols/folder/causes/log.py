"""Group A: the log or the state file is broken, which blocks everybody.

What the validator finds is gathered into causes: many findings have one reason and one remedy.
Only what has lasted long enough to be an alarm counts (the Snapshot then has a need for it).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from acp_core.model import Cause, Finding, Severity, Status
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.write import hopeless
from acp_core.protocols.kit.diagnosis import Case, mark

BROKEN = ("invalid", "lagging")  # the needs that a broken folder has
_SHOWN = 4  # findings that are quoted for one cause
_ROOM = 1 << 20  # bytes without which nothing can be written
_CONFLICT = re.compile(r"conflicted copy|\.sync-conflict-|\(conflict", re.IGNORECASE)


class _Kind(NamedTuple):
    """What findings of one kind mean together."""

    code: str
    headline: str
    advice: str = ""
    remedy: str | None = None


_TORN = _Kind(
    "A1",
    "the last line of events.jsonl is an incomplete event: no event can be appended",
    "remove the incomplete line (acp keeps a copy); its author appends the event again",
    "repair",
)
_UNENDED = _Kind(
    "A1",
    "the last line of events.jsonl has no newline at its end: no event can be appended",
    "let acp add the newline",
    "repair",
)
_CORRUPT = _Kind("A2", "a line of events.jsonl before the last one cannot be read")
_NUMBERS = _Kind("A3", "event sequence numbers have a gap or a duplicate")
_LAG = _Kind(
    "A4",
    "protocol.json is out of date with the event log: agents may wait for the wrong participant",
    "rebuild protocol.json from the log",
    "repair",
)
_UNREADABLE = _Kind(
    "A5",
    "protocol.json cannot be used",
    "rebuild it from acp's copy and the log",
    "repair",
)
_TIMES = _Kind("A6", "the times of the events go backward")
_ILLEGAL = _Kind("A7", "the log contains an event that was not allowed at that point")
_UNKNOWN = _Kind(
    "A7",
    "the folder has an unknown schemaVersion: acp shows it read-only",
    "use a newer acp",
)
_MISSING = _Kind("A8", "a file of the protocol is missing", "create the missing file", "repair")
_OBSOLETE = _Kind(
    "A8", "the folder contains a file that the protocol does not allow", "move it out of the folder"
)
_TOO_LARGE = _Kind("A9", hopeless.TOO_LARGE)
_NO_ACCESS = _Kind(
    "A9", "a file of the collaboration cannot be read", "make it a regular file that you can read"
)

_KINDS = {
    **dict.fromkeys(("ACP207",), _TORN),
    **dict.fromkeys(("ACP906",), _UNENDED),
    **dict.fromkeys(("ACP201", "ACP202", "ACP203", "ACP204"), _CORRUPT),
    **dict.fromkeys(("ACP215",), _NUMBERS),
    **dict.fromkeys(("ACP150", "ACP151", "ACP920"), _LAG),
    **dict.fromkeys(("ACP110", "ACP111", "ACP112", "ACP118", "ACP119"), _UNREADABLE),
    **dict.fromkeys(("ACP217",), _TIMES),
    **dict.fromkeys(("ACP131",), _UNKNOWN),
    **dict.fromkeys(("ACP101", "ACP205"), _MISSING),
    **dict.fromkeys(("ACP102",), _OBSOLETE),
    **dict.fromkeys(("ACP103", "ACP206"), _NO_ACCESS),
    **dict.fromkeys(("ACP208",), _TOO_LARGE),
    **dict.fromkeys(
        ("ACP210", "ACP211", "ACP212", "ACP213", "ACP214", "ACP216", "ACP401", "ACP402",
         "ACP403", "ACP404", "ACP405", "ACP406", "ACP407", "ACP408", "ACP409", "ACP410",
         "ACP411", "ACP412"),
        _ILLEGAL,
    ),
}  # fmt: skip
_HOPELESS = (_CORRUPT, _NUMBERS, _TIMES, _ILLEGAL)
OTHERS = frozenset(
    {"ACP301", "ACP302", "ACP303", "ACP304", "ACP310", "ACP311", "ACP312", "ACP313", "ACP314",
     "ACP320", "ACP321", "ACP322", "ACP323", "ACP504", "ACP507"}
)  # fmt: skip
"""Findings that other groups gather."""


def causes(facts: Facts, case: Case) -> Iterator[Cause]:
    """Everything that is broken."""
    broken = is_broken(case)
    grouped: dict[_Kind, list[Finding]] = {}
    rest: list[Finding] = []
    for finding in case.snapshot.findings:
        kind = _KINDS.get(finding.code)
        alarming = finding.severity is Severity.ERROR and broken
        if kind is not None and (alarming or kind in (_UNENDED, _UNKNOWN)):
            grouped.setdefault(kind, []).append(finding)
        elif kind is None and alarming and finding.code not in OTHERS:
            rest.append(finding)
    for kind, findings in _gathered(facts, grouped).items():
        made = _cause(case, kind, findings)
        if kind in _HOPELESS:
            made = _beyond_mending(facts, made)
        yield made
    if rest:
        yield _residual(case, rest)
    for test in (_clock, _copies, _disk):
        cause = test(facts, case)
        if cause:
            yield cause


def _gathered(facts: Facts, grouped: dict[_Kind, list[Finding]]) -> dict[_Kind, list[Finding]]:
    """With all that makes the log hopeless as one kind, the obstacle's: one way leads out of it."""
    beyond = [kind for kind in grouped if kind in _HOPELESS]
    if not beyond or (len(beyond) == 1 and not facts.takes_no_more):
        return grouped
    if facts.takes_no_more:
        first = _TOO_LARGE
    else:
        broken = facts.lines.broken
        code = hopeless.code_of(broken.code) if broken else ""
        first = next((kind for kind in beyond if kind.code == code), beyond[0])
    findings = grouped.get(first, []) + [
        finding for kind in beyond if kind is not first for finding in grouped[kind]
    ]
    rest = {kind: found for kind, found in grouped.items() if kind not in (first, *beyond)}
    return {first: findings, **rest}


def is_broken(case: Case) -> bool:
    """Whether the folder has been invalid, or lagging, for long enough."""
    return any(need.code in BROKEN for need in case.snapshot.needs)


def explained(case: Case) -> tuple[str, ...]:
    """The keys of the needs that say that the folder is broken."""
    return tuple(need.key for need in case.snapshot.needs if need.code in BROKEN)


def since_broken(case: Case) -> datetime | None:
    """Since when the folder is broken."""
    return next((need.since for need in case.snapshot.needs if need.code in BROKEN), None)


def mark_of(findings: Sequence[Finding]) -> str:
    """What tells these findings from others of the same codes."""
    return mark(f"{each.code} {each.document} {each.event} {each.message}" for each in findings)


def quoted(findings: Sequence[Finding]) -> tuple[str, ...]:
    """What the validator says, as evidence, with its place."""
    lines = []
    for finding in findings[:_SHOWN]:
        line = f":{finding.line}" if finding.line else ""
        place = f"{finding.document}{line}: " if finding.document else ""
        lines.append(f"{finding.code} {place}{finding.message}")
    if len(findings) > _SHOWN:
        lines.append(f"and {len(findings) - _SHOWN} more")
    return tuple(lines)


def _cause(case: Case, kind: _Kind, findings: Sequence[Finding]) -> Cause:
    """A cause for findings of one kind; it is the obstacle that they are, if they are one."""
    first, documents = findings[0], {each.document for each in findings}
    obstacle = next(
        (each for each in case.snapshot.obstacles
         if each.code == kind.code and each.document in documents),
        None,
    )  # fmt: skip
    lag = next((need.key for need in case.snapshot.needs if need.code == "lagging"), "")
    return Cause(
        kind.code,
        kind.headline,
        advice=obstacle.cure if obstacle else kind.advice,
        evidence=quoted(findings),
        wanted=kind is not _UNKNOWN,
        remedy=(obstacle.remedy or None) if obstacle else kind.remedy,
        since=since_broken(case),
        key=(lag if kind is _LAG else obstacle.key if obstacle else "")
        or f"{kind.code}:{first.code}:{mark_of(findings)}",
        explains=explained(case),
        document=first.document,
        line=first.line,
        event=first.event,
    )


def _beyond_mending(facts: Facts, cause: Cause) -> Cause:
    """A cause that only a new folder leads out of."""
    remedy = hopeless.remedy(facts.lines)
    return replace(
        cause,
        advice=hopeless.way_out(facts.folder, facts.lines),
        remedy=remedy or None,
        given=(("reason", hopeless.ANSWER),) if remedy == "block" else (),
        key=cause.key if cause.key.startswith("log:") else f"{cause.key}:{remedy}",
    )


def _residual(case: Case, findings: Sequence[Finding]) -> Cause:
    """What no other cause speaks of makes it invalid."""
    codes = ",".join(sorted({finding.code for finding in findings}))
    key = "A0:ACP114" if codes == "ACP114" else f"A0:{codes}:{mark_of(findings)}"
    obstacle = next((each for each in case.snapshot.obstacles if each.key == key), None)
    first = findings[0]
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return Cause(
        "A0",
        obstacle.sentence if obstacle else f"invalid: {clean_line(first.message, 200)}{more}",
        advice=obstacle.cure if obstacle else first.remedy.rstrip("."),
        evidence=quoted(findings),
        remedy="repair" if any(finding.action == "repair" for finding in findings) else None,
        since=since_broken(case),
        key=key,
        explains=explained(case),
        document=first.document,
        line=first.line,
        event=first.event,
    )


def _clock(facts: Facts, case: Case) -> Cause | None:
    """The last event comes from a clock that is ahead of this one."""
    last = facts.history.last
    at = schema.parse_time(last.at) if last else None
    read = case.snapshot.as_of
    if last is None or at is None or (at - read).total_seconds() <= schema.CLOCKS_DIFFER:
        return None
    return Cause(
        "A6",
        f"the last event has a time in the future ({clean_line(last.at, 40)}): a clock is wrong",
        advice=f"set the clock of {clean_name(last.sender, 60)}'s machine, or of this one",
        evidence=(
            f"seq {clean_line(last.name, 40)} from {clean_name(last.sender, 60)}",
            f"this machine's clock showed {schema.format_time(read)} when acp read the event",
        ),
        certain=False,
        wanted=False,
        participant=clean_name(last.sender, 200),
        key=f"A6:{clean_line(last.name, 40)}",
        document=schema.LOG_FILE,
    )


def _copies(facts: Facts, case: Case) -> Cause | None:
    """A program that keeps folders in step met two versions of a file."""
    try:
        names = os.listdir(facts.folder)
    except OSError:
        return None
    known = tuple(name.partition(".")[0] for name in schema.REQUIRED_FILES)
    copies = sorted(
        name for name in names if _CONFLICT.search(name) and name.lower().startswith(known)
    )
    if not copies:
        return None
    return Cause(
        "A9",
        "a sync program left two versions of a file: participants may see different content",
        advice="compare the versions, keep the right one under the original name, and remove the copies",
        evidence=tuple(f"copy: {clean_line(name, 200)}" for name in copies[:_SHOWN]),
        certain=False,
        key=f"A9:{','.join(clean_line(name, 60) for name in copies[:_SHOWN])}",
    )


def _disk(facts: Facts, case: Case) -> Cause | None:
    """Nothing can be written any more."""
    if case.snapshot.status is not Status.ACTIVE:
        return None
    try:
        found = os.statvfs(facts.folder)
        writable = os.access(facts.folder, os.W_OK)
    except (OSError, AttributeError):
        return None
    if found.f_bavail * found.f_frsize >= _ROOM and writable:
        return None
    full = writable
    return Cause(
        "A9",
        "the disk is full: no event can be appended"
        if full
        else "you do not have write access to this folder",
        advice="free some disk space"
        if full
        else "participants that run under your account cannot append either",
        evidence=(f"folder: {clean_line(facts.folder, 4_096)}",),
        wanted=full,
        key=f"A9:{'disk' if full else 'access'}",
    )
