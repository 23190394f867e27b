"""Whether this process was started by a participant's program: such a one decides nothing for people.

This stops a program that is confined, and one that answers its own requests by mistake; it does
not stop one that may start processes which nothing ties to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import psutil

from acp_core.agents import registry
from acp_core.agents.identity import identify
from acp_core.agents.live import answers
from acp_core.agents.live.state import MARK, Files
from acp_core.agents.loop_directory import place
from acp_core.files import claims
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line


def refuse_inside_a_session() -> None:
    """Refuse where the environment or an ancestor of this process marks a session.

    Raises:
        Refused: one does.
    """
    if MARK in os.environ or _is_below_a_session(psutil.Process().parents()):
        raise Refused(
            "an agent's session cannot decide this: run the command in a terminal of your own"
        )


def refuse_another_participant(folder: str, participant: str) -> None:
    """Refuse to act as somebody else from inside a session, while that one's own program works.

    Args:
        folder: the collaboration.
        participant: as whom this process wants to act.

    Raises:
        Refused: it is inside another one's session.
    """
    _, own = Files(place(folder, participant)).mark
    above = map(_mark_of, psutil.Process().parents())
    marks = {os.environ.get(MARK, ""), *above} - {""}
    if not marks or own in marks or "://" in folder:
        return
    if claims.seen(folder, claims.of_participant(participant)).held:
        raise Refused(f"another program takes the turns of {clean_line(participant)}")


def _is_below_a_session(ancestors: Iterable[psutil.Process]) -> bool:
    running = {each.publisher for each in answers.waiting()}
    for loop in registry.runners():
        if loop.run is not None and loop.program_alive:
            running.add(loop.run.process)
    return any(_has_mark(each) or identify(each.pid) in running for each in ancestors)


def _has_mark(process: psutil.Process) -> bool:
    return bool(_mark_of(process))


def _mark_of(process: psutil.Process) -> str:
    """The place of the session that started a process; "" where none did."""
    try:
        return process.environ().get(MARK, "")
    except (psutil.Error, OSError):  # another account's
        return ""
