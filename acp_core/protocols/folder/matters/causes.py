"""How a folder collaboration gets stuck, and what stands in the way of writes: told from its own files.

Causes are small functions of what was read and of a `DiagnosisContext`; what lies in participants' loops is
found elsewhere, before, and is in ``case.found``. The view puts obstacles into its Snapshot;
writes refuse the same under the log's lock: what cannot be read in `write.opened`, a log beyond
mending by `rules.unrecoverable_log.check`. What a repair would do is handed in as `Repairs`.
Source: folder protocol specification, "Files", "Events", "Phases", "Review Format", "Readiness
Gate", "Final Conclusion" and "Validation".
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from acp_core.model import Cause
from acp_core.model.errors import Refused
from acp_core.model.light import NamedTuple
from acp_core.model.snapshot import Obstacle
from acp_core.model.text import clean_line
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.matters import gates as matters_gates
from acp_core.protocols.folder.matters import log as matters_log
from acp_core.protocols.folder.read.facts import MISSING, Facts
from acp_core.protocols.folder.read.log import NEWLINES
from acp_core.protocols.folder.rules.unrecoverable_log import full, hopeless
from acp_core.protocols.folder.schema import REPAIR
from acp_core.protocols.kit import guard
from acp_core.protocols.kit.diagnosis import DiagnosisContext

_LONG = 1_000

_FOLLOWS = "add participants first, then repair the other fields"

_DOUBTFUL = ("A8", "C2")  # what a repair mends only where the other files say enough


class Damage(NamedTuple):
    """What a repair finds: the names of the files that it mends, and what has no fix, in words."""

    mended: frozenset[str]
    hopeless: tuple[str, ...]


Diagnose = Callable[[str, datetime], Damage]
"""Looks for damage in a folder. Raises `Refused` or `OSError` where that cannot be read."""


class Repairs(NamedTuple):
    """What a repair would do; asked only where one may be a remedy, since most folders need none.

    Attributes:
        planned: the names of the files that a repair would mend, by what was read.
        diagnose: the same, and what has no fix, by what stands in the folder now.
    """

    planned: Callable[[Facts, datetime], Collection[str]]
    diagnose: Diagnose


def causes(facts: Facts, repairs: Repairs, case: DiagnosisContext) -> Iterator[Cause]:
    """Every cause, group by group.

    Args:
        facts: What the files hold.
        repairs: What a repair would do.
        case: What else is known.
    """
    if facts.unsettled:
        return  # a file is being written just now
    for group in (matters_log.log_causes, matters_log.half_done_causes):
        for cause in group(facts, case):
            doubtful = cause.remedy == REPAIR and (
                cause.code in _DOUBTFUL or not facts.participants
            )
            yield _as_far_as_it_goes(facts, repairs, case, cause) if doubtful else cause
    if facts.lines.broken is None:  # else nothing that a gate asks for leads on
        yield from matters_gates.acceptance_causes(facts, case)
        yield from matters_gates.gate_causes(facts, case)
    yield from matters_log.conflict_causes(facts, case)
    yield from matters_gates.human_causes(facts, case)


def _as_far_as_it_goes(
    facts: Facts, repairs: Repairs, case: DiagnosisContext, cause: Cause
) -> Cause:
    """The cause with a repair as its remedy only where that mends the file.

    That nobody takes part is a cause of its own, which says what mends it.
    """
    now = case.snapshot.as_of
    try:
        if cause.document in repairs.planned(facts, now):
            return cause
        damage = repairs.diagnose(facts.folder, now)
    except (Refused, OSError) as error:
        return replace(cause, advice=clean_line(str(error), _LONG), remedy=None)
    if not facts.participants and cause.document == schema.PROTOCOL_FILE:
        return replace(cause, advice=_FOLLOWS, remedy=None)
    advice = "; ".join(damage.hopeless) or f"restore {cause.document} from a copy"
    return replace(cause, advice=clean_line(advice, _LONG), remedy=None)


MENDING = frozenset({"repair"})

_SENTENCE = 300  # characters of what was observed


def obstacles(
    facts: Facts, diagnose: Diagnose, now: datetime, continued: str = ""
) -> tuple[Obstacle, ...]:
    """All that stands in the way of writes, as far as it was read.

    Args:
        facts: the collaboration, as it was read last.
        diagnose: looks for damage, where a file cannot be read.
        now: the time.
        continued: the folder in which it goes on already, "" for none.
    """
    if facts.unsettled or not Path(facts.folder).is_dir():
        return ()  # it is being written just now, or there is nothing to write to
    found: Sequence[Obstacle | None]
    if facts.protocol_problem or facts.log_problem:
        found = (_unreadable(facts, diagnose, now),)
    elif facts.dialect == schema.UNKNOWN_DIALECT:
        found = (_unknown(facts),)
    else:
        found = (_nobody(facts), _torn(facts), _beyond(facts, continued))
    disk = guard.disk(Path(facts.folder))
    return tuple(each for each in (*found, disk) if each is not None)


def _beyond(facts: Facts, continued: str) -> Obstacle | None:
    """A log that only a new folder leads out of."""
    if facts.takes_no_more:
        return full(facts.folder, facts.lines, continued)
    return None if continued else hopeless(facts.folder, facts.lines)


def _unknown(facts: Facts) -> Obstacle:
    version = clean_line(repr((facts.protocol or {}).get("schemaVersion")), 40)
    sentence = f"unknown schemaVersion {version}: acp shows the folder read-only"
    return Obstacle(
        "A7", sentence, "use a newer acp", document=schema.PROTOCOL_FILE, key="dialect:unknown"
    )


def _nobody(facts: Facts) -> Obstacle | None:
    """Nobody can append, and a new folder has nobody to go on; a repair mends other files."""
    if facts.participants:
        return None
    cure = "add the participants to protocol.json by hand"
    sentence = "protocol.json names no participants"
    return Obstacle("A0", sentence, cure, MENDING, document=schema.PROTOCOL_FILE, key="A0:ACP114")


def _torn(facts: Facts) -> Obstacle | None:
    """The log's last line lacks its end: nobody can append."""
    if not (facts.tail_error or facts.tail_counts or facts.bare_returns):
        return None
    if facts.bare_returns:
        sentence = "the lines of events.jsonl end in carriage returns only"
        return Obstacle("A1", sentence, NEWLINES, document=schema.LOG_FILE, key="A1:returns")
    what = "is an incomplete event" if facts.tail_error else "has no newline at its end"
    sentence = f"the last line of events.jsonl {what}: no event can be appended"
    return _mended("A1", sentence, facts, facts.tail_error, schema.LOG_FILE, facts.tail_line)


def _unreadable(facts: Facts, diagnose: Diagnose, now: datetime) -> Obstacle:
    """protocol.json or the log cannot be read: what a repair would do, or what it cannot."""
    name, code = schema.LOG_FILE, "A8" if facts.log_problem == MISSING else "A9"
    reason = facts.log_problem
    if facts.protocol_problem:
        name, code, reason = schema.PROTOCOL_FILE, "A5", facts.protocol_problem
    sentence = clean_line(f"{name} cannot be read ({reason})", _SENTENCE)
    try:
        damage = diagnose(facts.folder, now)
        if name in damage.mended:
            return _mended(code, sentence, facts, reason, name)
        cure = clean_line("; ".join(damage.hopeless), 1_000)
    except (Refused, OSError) as error:
        cure = clean_line(str(error), _SENTENCE)
    cure = cure or f"make {name} a regular file that you can read"
    return Obstacle(code, sentence, cure, MENDING, document=name, key=f"{code}:{name}")


def _mended(
    code: str, sentence: str, facts: Facts, reason: str, name: str, line: int | None = None
) -> Obstacle:
    folder = shlex.quote(clean_line(facts.folder, 4_096))
    return Obstacle(
        code,
        sentence,
        f"run `acp repair {folder} --yes`",
        MENDING,
        remedy="repair",
        evidence=(clean_line(reason, _SENTENCE),) if reason else (),
        document=name,
        line=line,
        key=f"{code}:{name}",
    )
