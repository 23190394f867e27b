"""What stands in the way of writes in a folder collaboration, as far as it was read.

The view puts these obstacles into its Snapshot. Writes refuse the same under the log's lock: what
cannot be read in `opened`, a log beyond mending by `hopeless.check`.
Source: folder protocol specification, "Files" and "Events".
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from acp_core.model.errors import Refused
from acp_core.model.light import TYPE_CHECKING
from acp_core.model.snapshot import Obstacle
from acp_core.model.text import clean_line
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.facts import MISSING
from acp_core.protocols.folder.rules.unrecoverable_log import full, hopeless
from acp_core.protocols.kit import guard

if TYPE_CHECKING:
    from acp_core.protocols.folder.read.facts import Facts

MENDING = frozenset({"repair"})

_SENTENCE = 300  # characters of what was observed


def obstacles(facts: Facts, now: datetime, continued: str = "") -> tuple[Obstacle, ...]:
    """All that stands in the way of writes, as far as it was read.

    Args:
        facts: the collaboration, as it was read last.
        now: the time.
        continued: the folder in which it goes on already, "" for none.
    """
    if facts.unsettled or not Path(facts.folder).is_dir():
        return ()  # it is being written just now, or there is nothing to write to
    found: Sequence[Obstacle | None]
    if facts.protocol_problem or facts.log_problem:
        found = (_unreadable(facts, now),)
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
        from acp_core.protocols.folder.write.opened import NEWLINES  # late: see `_unreadable`

        sentence = "the lines of events.jsonl end in carriage returns only"
        return Obstacle("A1", sentence, NEWLINES, document=schema.LOG_FILE, key="A1:returns")
    what = "is an incomplete event" if facts.tail_error else "has no newline at its end"
    sentence = f"the last line of events.jsonl {what}: no event can be appended"
    return _mended("A1", sentence, facts, facts.tail_error, schema.LOG_FILE, facts.tail_line)


def _unreadable(facts: Facts, now: datetime) -> Obstacle:
    """protocol.json or the log cannot be read: what a repair would do, or what it cannot."""
    from acp_core.protocols.folder.write import repair  # late: most folders can be read

    name, code = schema.LOG_FILE, "A8" if facts.log_problem == MISSING else "A9"
    reason = facts.log_problem
    if facts.protocol_problem:
        name, code, reason = schema.PROTOCOL_FILE, "A5", facts.protocol_problem
    sentence = clean_line(f"{name} cannot be read ({reason})", _SENTENCE)
    try:
        plan = repair.diagnose(facts.folder, now)
        if any(fix.name == name for fix in plan.fixes):
            return _mended(code, sentence, facts, reason, name)
        cure = clean_line("; ".join(plan.hopeless), 1_000)
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
