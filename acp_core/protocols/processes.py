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
        former: where that stood in 0.1.0, below acp_core and without its suffix; "" where there was
            no such process.
        given: its arguments, and what stands on its standard input.
    """

    module: str
    former: str
    given: str


LOOP = Process(
    "acp_core.loops.detached",
    "loops/detached",
    "standard input: a loop's spec as JSON; or, for an idle one: resume PLACE WHY",
)
WATCHER = Process(
    "acp_core.protocols.workspaces.conduct.detached",
    "protocols/workspaces/run/detached",
    "FOLDER AGENT ATTEMPT",
)
ORCHESTRATOR = Process(
    "acp_core.protocols.cycle.conduct.process",
    "protocols/cycle/run/process",
    "standard input: an orchestrator's spec as JSON",
)
TURN = Process(
    "acp_core.protocols.governed.conduct.attend",
    "protocols/governed/attend",
    "ROOT TURN",
)
SUPERVISOR = Process("acp_core.loops.supervisor", "", "nothing")
DUE = Process("acp_core.loops.due", "", "standard input: questions, a line of JSON each")
LIVE = Process("acp_core.loops.live", "", "standard input: an order of a live session as JSON")
SYNC = Process("acp_core.protocols.folder.conduct.synced", "", "FOLDER")
ASKED = Process("acp_core.loops.asked", "", "standard input: a request from another host as JSON")
RESUME = Process("acp_core.loops.interrupted", "", "nothing")
READER = Process(
    "acp_core.fleet.reader", "", "standard input: folders to read, a line of JSON each"
)
ALL = (LOOP, WATCHER, ORCHESTRATOR, TURN)


def module_now(name: str) -> str:
    """The module that a name of 0.1.0 stands for; the name itself where it stands for none."""
    former = {f"acp_core.{each.former.replace('/', '.')}": each.module for each in ALL}
    return former.get(name, name)


def follow() -> None:
    """Where this process is being started by a former name: be it by the name of now.

    Called while Python looks for the module of ``python -m``; returns where nothing is to be done.
    """
    words = sys.orig_argv
    place = words.index("-m") + 1 if "-m" in words else len(words)
    if place < len(words) and (module := module_now(words[place])) != words[place]:
        os.execv(sys.executable, [*words[:place], module, *words[place + 1 :]])
