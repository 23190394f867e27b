"""A state of a collaboration that can be built, and what to know of its golden."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class State(NamedTuple):
    """One situation.

    Args:
        name: unique in its protocol, and the name of the file.
        build: makes the collaboration below the empty folder that it is handed, and returns its
            path. Times in its files are fixed and at least 60 days ago, all within two weeks;
            files that it leaves with a time of now get `sandbox.PINNED`.
        faults: what is known to be wrong in this golden, a sentence each. Such a golden may
            change where the program gets it right.
        live: made by programs that choose ids and digests themselves; each is then numbered,
            even where it stands in the files of the collaboration.
        unperformed: actions of which only the preview is captured, with the reason.
    """

    name: str
    build: Callable[[Path], Path]
    faults: tuple[str, ...] = ()
    live: bool = False
    unperformed: tuple[tuple[str, str], ...] = ()
