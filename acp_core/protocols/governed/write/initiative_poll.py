"""The coordinator looks by itself: after a turn of one of its runs was accepted, or again and again.

Source: governed protocol specification, "How it works" (the coordinator polls all workstreams).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from acp_core.files.reading import Stamp, stamp
from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import own_writes
from acp_core.protocols.governed.rules.initiative_reconcile import COMPLETED
from acp_core.protocols.governed.write import initiative_decide
from acp_core.protocols.governed.write.initiative_opened import LEDGER, STATE, open_initiative

EVERY = 2.0  # seconds between two looks at the files


def after_turn(run_root: str | Path) -> list[str]:
    """Let the coordinator above a run look at it; returns what it says, nothing where there is none.

    The run's lock must not be held. Never raises: what the coordinator cannot do now, its next
    step does.
    """
    real = os.path.realpath(run_root)
    for above in own_writes.coordinators_above(Path(run_root)):
        try:
            streams = open_initiative(above).initiative.workstreams
            if real not in {os.path.realpath(each.path) for each in streams}:
                continue
            done = initiative_decide.step(above, datetime.now(UTC))
        except Refused as error:
            return [f"the coordinator could not check the initiative: {error}"]
        except OSError as error:
            return [f"the coordinator could not check the initiative: {error.strerror or error}"]
        return (
            [*done.messages, *done.failed, *done.warnings]
            if done.messages != initiative_decide.NOTHING
            else []
        )
    return []


def poll(
    root: Path, *, every: float = EVERY, pause: Callable[[float], None] = time.sleep
) -> Iterator[initiative_decide.Done]:
    """Step whenever a file of the initiative or of its runs changed, until it is completed.

    Args:
        root: the initiative.
        every: seconds between two looks at the files.
        pause: waits so long.

    Raises:
        Refused: the initiative cannot be acted on.
    """
    seen: dict[Path, Stamp | None] = {}
    while True:
        now = {path: stamp(path) for path in _signs(root)}
        if now != seen:
            done = initiative_decide.step(root, datetime.now(UTC))
            if done.messages != initiative_decide.NOTHING or done.failed:
                yield done
            seen = {path: stamp(path) for path in _signs(root)}
            if open_initiative(root).initiative.status == COMPLETED:
                return
        pause(every)


def _signs(root: Path) -> list[Path]:
    homes = [Path(each.path) for each in open_initiative(root).initiative.workstreams]
    found = [root / schema.MULTI_CONFIG, root / STATE, root / LEDGER]
    return found + [home / name for home in homes for name in (schema.STATE, schema.HISTORY)]
