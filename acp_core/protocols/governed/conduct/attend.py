"""``python -m acp_core.protocols.governed.conduct.attend ROOT TURN``: a turn taken in the background.

Started by the dashboard, so that a turn goes on when the dashboard is closed.
"""

from __future__ import annotations

import contextlib
import sys
from datetime import UTC, datetime
from pathlib import Path

from acp_core.agents import background
from acp_core.agents.background import Ready
from acp_core.agents.processes import myself
from acp_core.model.errors import Refused
from acp_core.protocols.governed.conduct.taking import take
from acp_core.protocols.governed.write import turns
from acp_core.protocols.governed.write.turns import note_failed_start


def main(arguments: list[str]) -> int:
    """Take the turn. Returns 0 where its result is staged, 1 where not, 2 where it is unknown."""
    if len(arguments) != 2:
        return 2
    root, turn = arguments

    def work(ready: Ready) -> int:
        turns.note_program(Path(root), turn, myself())  # until its program is noted
        ready()
        try:
            return 0 if take(root, turn).staged else 1
        except (Refused, OSError) as error:
            with contextlib.suppress(Refused, OSError):
                note_failed_start(root, turn, str(error), datetime.now(UTC))
            return 2

    return background.run(work, OSError)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
