"""The mark by which everything that a live session started is known, and what it keeps one from.

Standard library only: the commands that agents run at every turn look here.
"""

from __future__ import annotations

import os

from acp_core.model.errors import Refused

MARK = "ACP_LIVE_SESSION"
"""The variable by which everything that a session starts is known; its value is the path of the place."""
_LONGEST = 8 << 20  # bytes of the state of a loop


def refuse_another_participant(folder: str, participant: str) -> None:
    """Refuse to act as somebody else from inside a session, while that one's own program works.

    Args:
        folder: the collaboration.
        participant: as whom this process wants to act.

    Raises:
        Refused: it is inside another one's session.
    """
    mark = os.environ.get(MARK)
    if not mark or "://" in folder or _plays(mark, folder, participant):
        return
    from acp_core.files import claims
    from acp_core.model.text import clean_line

    if claims.seen(folder, claims.of_participant(participant)).held:
        raise Refused(f"another program takes the turns of {clean_line(participant)}")


def _plays(mark: str, folder: str, participant: str) -> bool:
    """Whether a session is that of a participant, as the state of its loop says."""
    import json

    from acp_core.files.reading import Unreadable, read_bounded

    try:
        state = json.loads(read_bounded(os.path.join(mark, "loop.json"), _LONGEST))
        told = (state["folder"], state["participant"])
    except (Unreadable, ValueError, RecursionError, KeyError, TypeError):
        return False
    return told == (os.path.realpath(folder), participant)
