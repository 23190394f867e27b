"""``python -m acp_core.loops.due``: which parked loops have something to do.

Asked by the supervisor (`acp_core.loops.supervisor`), one collaboration after the other; ends when it
is asked nothing for a while. What it reads it records, as the loops do that it reads for.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress

from acp_core.history.schema import Bounds
from acp_core.loops.launch import Keeping, LaunchError, open_folder, recorded
from acp_core.model.clock import utc_now
from acp_core.protocols.contract import Collaboration

_IDLE = 5.0  # seconds without a question after which it ends


class Readings:
    """The collaborations that were asked about, open.

    Args:
        bounds: What is recorded.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._open: dict[str, tuple[Collaboration, Keeping]] = {}

    def due(self, folder: str, participants: list[str]) -> list[str]:
        """Those that are waited for; all once everything is over.

        Nobody where that cannot be told, or the collaboration is away: both may pass.

        Args:
            folder: The collaboration.
            participants: Whose loops are parked.
        """
        try:
            collaboration, keeping = self._opened(folder, participants[0])
        except LaunchError:
            return []
        now = utc_now()
        turns = {each: collaboration.turn(each, now) for each in participants}
        keeping.record(now)
        return [each for each, turn in turns.items() if turn is None or turn.waited or turn.over]

    def _opened(self, folder: str, participant: str) -> tuple[Collaboration, Keeping]:
        if folder not in self._open:
            found = open_folder(folder)
            self._open[folder] = (
                found,
                Keeping(found, folder, participant, self._bounds, lambda line: None),
            )
        return self._open[folder]

    def close(self) -> None:
        """Keep what was seen last."""
        for collaboration, keeping in self._open.values():
            keeping.close()
            collaboration.close()


def _questions() -> Iterator[tuple[str, list[str]]]:
    """What is asked, until nothing is for a while."""
    data = b""
    while select.select([0], [], [], _IDLE)[0]:
        more = os.read(0, 1 << 16)
        if not more:
            return
        *lines, data = (data + more).split(b"\n")
        for line in lines:
            folder, participants = json.loads(line)
            yield folder, participants


def main() -> int:
    """Answer until there is nothing more to answer. Returns the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    readings = Readings(recorded())
    with suppress(OSError):
        for folder, participants in _questions():
            try:
                due = readings.due(folder, participants)
            except Exception:  # a fault of ours must not leave a participant waiting
                due = participants
            os.write(1, json.dumps(due).encode() + b"\n")
    readings.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
