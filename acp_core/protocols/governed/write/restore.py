"""Bringing back a state that is lost or damaged: acp's own copy of it, else what the logs tell.

The damaged file is kept. Source: governed protocol specification, "Files".
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.transaction import APPEND, REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import initiative, own_writes
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.rules import guard
from acp_core.protocols.governed.schema import Object, text
from acp_core.protocols.governed.state import format_time, ledger_line
from acp_core.protocols.governed.write import rebuild
from acp_core.protocols.governed.write.journal import document, line
from acp_core.protocols.governed.write.opened import Opened
from acp_core.protocols.kit.guard import check

HOME = f"{own_writes.ACP_HOME}/kept"
"""Where damaged files are kept: git does not see them there."""


class Restored(NamedTuple):
    """A state that is brought back: how, and where the run then is. ``writes`` do it."""

    how: str
    state: Object
    writes: tuple[Write, ...]

    @property
    def sentence(self) -> str:
        """What is done, without a capital and without a full stop."""
        on = text(self.state, "blocked_on", 200) or text(self.state, "status", 40)
        return f"{self.how}: {text(self.state, 'phase', 80)}, {on}"


def restored(opened: Opened, now: datetime) -> Restored:
    """What brings a lost state back. Writes nothing.

    Raises:
        Refused: it is not lost; or neither a copy nor the logs tell what it was.
    """
    run = opened.run
    if not guard.lost(run):
        raise Refused(f"{schema.STATE} is readable")
    damaged = set_apart(opened.root, run, now)
    copy = guard.copied(run)
    if copy is not None:
        return Restored(
            "restore the state that acp wrote last",
            json.loads(copy),
            (*damaged, Write(opened.root / schema.STATE, REPLACE, copy)),
        )
    check([each for each in guard.unusable(run) if each.document != schema.STATE], "")
    if initiative.coordinated_workstream(run) is not None:
        (obstacle,) = (each for each in guard.unusable(run) if each.document == schema.STATE)
        raise Refused(f"its coordinator knows more of it: {obstacle.cure}")
    state = rebuild.rebuilt(run, now, ours=own_writes.is_sealed(opened.root)).state
    record = ledger_line(state, "state_rebuilt", format_time(now), status=state.get("status"))
    return Restored(
        "rebuild the state from the run's logs",
        state,
        (
            *damaged,
            Write(opened.root / schema.LEDGER, APPEND, line(record)),
            Write(opened.root / schema.STATE, REPLACE, document(state)),
        ),
    )


def set_apart(root: Path, run: Run, now: datetime) -> tuple[Write, ...]:
    """The writes that keep a damaged state, the last one; none where it is missing.

    Raises:
        Refused: it cannot be read at all.
    """
    if run.state.missing:
        return ()
    place = root / schema.STATE
    try:
        data = read_bounded(place, schema.LOG_LIMIT)
    except Unreadable as error:
        raise Refused(f"{place} is {error.reason}: move it away first") from None
    name = f"{HOME}/state.json.damaged-{now:%Y%m%dT%H%M%SZ}"
    return (*own_writes.ignoring_own_files(root), Write(root / name, REPLACE, data))
