"""The types of 0.2 that `Matter` took the place of, for protocols that were written against them.

Each is a function with the fields of the type, which makes a `Matter`. Until 0.4.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from acp_core.model.matter import (
    OWNER,
    TIME,
    About,
    Matter,
    damage,
    decision,
    question,
    remark,
    verdicts,
)

Given = tuple[tuple[str, str], ...]


def Cause(
    code: str,
    headline: str,
    advice: str = "",
    evidence: tuple[str, ...] = (),
    certain: bool = True,
    wanted: bool = True,
    remedy: str | None = None,
    given: Given = (),
    others: tuple[str, ...] = (),
    participant: str | None = None,
    since: datetime | None = None,
    key: str = "",
    explains: tuple[str, ...] = (),
    root: bool = False,
    document: str | None = None,
    line: int | None = None,
    event: str | None = None,
) -> Matter:
    """Why a collaboration does not go on."""
    return Matter(
        code,
        headline,
        advice,
        OWNER if wanted else TIME,
        evidence=evidence,
        certain=certain,
        verdicts=verdicts(remedy, given, others),
        about=About(participant, document, line, event),
        since=since,
        key=key,
        explains=explains,
        root=root,
    )


def Obstacle(
    code: str,
    sentence: str,
    cure: str,
    allowed: Collection[str] = frozenset(),
    remedy: str = "",
    given: Given = (),
    evidence: tuple[str, ...] = (),
    participant: str | None = None,
    document: str | None = None,
    line: int | None = None,
    key: str = "",
    wanted: bool = True,
) -> Matter:
    """Damage that was seen, or somebody else's claim: until it is over, writes are refused."""
    return damage(
        code,
        sentence,
        cure,
        frozenset(allowed),
        remedy,
        given,
        evidence=evidence,
        participant=participant,
        document=document,
        line=line,
        key=key,
        move=OWNER if wanted else TIME,
    )


def Need(
    key: str,
    code: str,
    text: str,
    participant: str | None = None,
    since: datetime | None = None,
    action: str | None = None,
    given: Given = (),
) -> Matter:
    """A reason why a person is wanted."""
    return decision(key, code, text, participant, since, action, given)


def Question(
    key: str,
    kind: str,
    text: str,
    participant: str | None = None,
    since: datetime | None = None,
    document: str | None = None,
    line: int | None = None,
    event: str | None = None,
    action: str | None = None,
    given: Given = (),
) -> Matter:
    """An open question, or an item that blocks."""
    return question(key, kind, text, participant, since, document, line, event, action, given)


def Notice(
    code: str, text: str, document: str | None = None, since: datetime | None = None
) -> Matter:
    """A headline of its own."""
    return remark(code, text, document, since)
