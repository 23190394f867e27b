"""The modules by which processes in the background are started, with the names they had before.

A program that was started before acp was upgraded in place goes on, and starts others by the names
that it knows. So a module that moves keeps its former name here: `follow` runs it by that.
Nothing knows a running process by its module: records and locks tell which it is. Standard
library only.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple


class Process(NamedTuple):
    """A kind of process, started by ``python -m MODULE``; what it is given may not change.

    Attributes:
        module: the module that it is now.
        former: where that stood in 0.2, below acp_core and without its suffix.
        given: its arguments, and what stands on its standard input.
    """

    module: str
    former: tuple[str, ...]
    given: str

    @property
    def names(self) -> tuple[str, ...]:
        """All modules by which it is started: that of now, and the former ones."""
        return (self.module, *(f"acp_core.{each.replace('/', '.')}" for each in self.former))


LOOP = Process(
    "acp_core.loops.detached",
    ("loops/detached",),
    "standard input: a loop's spec as JSON; or, for an idle one: resume PLACE WHY",
)
WATCHER = Process(
    "acp_core.protocols.workspaces.conduct.detached",
    ("protocols/workspaces/conduct/detached",),
    "FOLDER AGENT ATTEMPT",
)
ORCHESTRATOR = Process(
    "acp_core.protocols.cycle.conduct.process",
    ("protocols/cycle/conduct/process",),
    "standard input: an orchestrator's spec as JSON",
)
TURN = Process(
    "acp_core.protocols.governed.conduct.attend",
    ("protocols/governed/conduct/attend",),
    "ROOT TURN",
)
SUPERVISOR = Process("acp_core.loops.supervisor", ("loops/supervisor",), "nothing")
DUE = Process(
    "acp_core.loops.due", ("loops/due",), "standard input: questions, a line of JSON each"
)
LIVE = Process(
    "acp_core.loops.live", ("loops/live",), "standard input: an order of a live session as JSON"
)
SYNC = Process(
    "acp_core.protocols.folder.conduct.synced", ("protocols/folder/conduct/synced",), "FOLDER"
)
ASKED = Process(
    "acp_core.loops.asked",
    ("loops/asked",),
    "standard input: a request from another host as JSON",
)
RESUME = Process("acp_core.loops.interrupted", ("loops/interrupted",), "nothing")
READER = Process(
    "acp_core.fleet.reader",
    ("fleet/reader",),
    "standard input: folders to read, a line of JSON each",
)
ALL = (LOOP, WATCHER, ORCHESTRATOR, TURN, SUPERVISOR, DUE, LIVE, SYNC, ASKED, RESUME, READER)


def module_now(name: str) -> str:
    """The module that a name of 0.2 stands for; the name itself where it stands for none."""
    return next((each.module for each in ALL if name in each.names), name)


def follow() -> None:
    """Where this process is being started by a former name: be it by the name of now.

    Called while Python looks for the module of ``python -m``; returns where nothing is to be done.
    """
    words = sys.orig_argv
    place = words.index("-m") + 1 if "-m" in words else len(words)
    if place < len(words) and (module := module_now(words[place])) != words[place]:
        os.execv(sys.executable, [*words[:place], module, *words[place + 1 :]])
