"""Sets aside what the existing program left half written, after a human has looked at it.

Nothing is thrown away: the files are kept below ``.agentxchain/backups``. Standard library only.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path

from acp_core.files.transaction import REMOVE, REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import existing_program
from acp_core.protocols.governed.read.own_writes import RUN_HOME
from acp_core.protocols.governed.state import format_time
from acp_core.protocols.governed.write.opened import Opened, content, locked, refuse_agents, write

HOME = ".agentxchain/backups/transactions"


def set_aside(root: str | Path, now: datetime) -> tuple[str, ...]:
    """Put every unfinished note aside; returns where they are kept, relative to the repository.

    Raises:
        Refused: there is none, that program is at work, or an agent asks. Nothing was written.
    """
    refuse_agents()
    with locked(root, schema.SET_ASIDE) as opened:
        wanted = setting_aside(opened, now)
        write(opened, "set aside unfinished writes of the agentxchain program", wanted)
        return tuple(os.path.relpath(w.path, opened.root) for w in wanted if w.verb == REPLACE)


def setting_aside(opened: Opened, now: datetime) -> list[Write]:
    """What `set_aside` writes. Writes nothing. Raises as it does."""
    if not opened.run.unfinished:
        raise Refused("the agentxchain program left nothing unfinished")
    home = opened.root / RUN_HOME
    holder = existing_program.lock_holder(home)
    if (
        opened.held is None
        and holder is not None
        and not existing_program.is_lock_stale(home, holder)
    ):
        raise Refused(existing_program.lock_refusal(home, holder))
    place = opened.root / HOME / re.sub(r"[:.]", "-", format_time(now))
    found = []
    for each in opened.run.unfinished:
        data = content(opened.root, each.name)
        if data is not None:
            below = os.path.relpath(each.name, existing_program.TRANSACTIONS)
            found += [
                Write(place / below, REPLACE, data),
                Write(opened.root / each.name, REMOVE),
            ]
    return found
