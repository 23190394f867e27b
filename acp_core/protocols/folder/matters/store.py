"""What stands of the store of a shared folder: that nothing follows it, that it is away, or refused.

Imported only where a folder is shared.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime

from acp_core.model import Matter
from acp_core.model.format import dated
from acp_core.model.matter import NOBODY, TIME, Kind
from acp_core.model.text import clean_line
from acp_core.protocols.folder.read import following
from acp_core.protocols.folder.read.following import Behind
from acp_core.protocols.kit.diagnosis import mark

_LONG = 300


def note(folder: str) -> str:
    """As of when a shared folder is read, and why not now; "" where it follows its store."""
    late = following.behind(folder)
    if late is None:
        return ""
    why = clean_line(late.reason, _LONG) or "nothing here follows its store"
    return f"as of {_as_of(late)}: {why}"


def _as_of(late: Behind) -> str:
    return "an unknown time" if late.at is None else dated(datetime.fromtimestamp(late.at, UTC))


def causes(folder: str) -> Iterator[Matter]:
    """The store of a shared folder is not read: what stands here may not be what stands there."""
    late = following.behind(folder)
    if late is None:
        return
    since = None if late.at is None else datetime.fromtimestamp(late.at, UTC)
    reason = clean_line(late.reason, _LONG)
    evidence = (f"the folder is as of {_as_of(late)}",)
    if late.is_refused:
        yield Matter(
            "C6",
            f"what the store of this folder holds is refused: {reason}",
            instruction="find out on the other hosts who changed the store; until then, nothing is taken from it",
            evidence=evidence,
            since=since,
            key=f"store-refused:{mark([reason])}",
        )
    elif reason:
        yield Matter(
            "C6",
            f"the store of this folder does not answer: {reason}",
            instruction="wait: acp asks it again by itself",
            move=TIME,
            kind=Kind.PAUSE,
            evidence=evidence,
            since=since,
            key="store-silent",
        )
    else:
        yield Matter(
            "C6",
            "nothing here follows the store of this folder, which may have changed",
            instruction=f"follow it with `acp sync {shlex.quote(folder)}`",
            move=NOBODY,
            kind=Kind.REMARK,
            evidence=evidence,
            since=since,
            key="store-not-followed",
        )
