"""Finding again what a watcher that was killed had begun.

A program's start is noted just after it: who is killed in between leaves a program of which only
its environment tells for what it was started.
"""

from __future__ import annotations

import psutil

from acp_core.agents.identity import identify
from acp_core.agents.state import Run
from acp_core.agents.supervise import Runner
from acp_core.files.reading import stamp
from acp_core.files.records import moment
from acp_core.model.clock import utc_now

TOKEN = "ACP_WORKSPACES_TASK"
"""The environment variable that says for what a program was started."""


def orphan(runner: Runner, token: str) -> Run | None:
    """A program that was started for this and whose watcher died before it noted that."""
    state = runner.state
    if state.turn != token:
        return None
    for process in psutil.process_iter():
        try:
            if process.environ().get(TOKEN) != token:
                continue
            if _told(process.parent(), token):
                continue  # a child of the program
            identity, started = identify(process.pid), moment(process.create_time())
        except (psutil.Error, OSError):
            continue
        if identity is not None:
            out, err = (str(runner.file(state.own, kind)) for kind in ("out", "err"))
            return Run(state.own, identity, started, out=out, err=err)
    return None


def has_spoken(runner: Runner, token: str) -> bool:
    """Whether a program that was started for this printed something."""
    if runner.state.turn != token:
        return False
    found = stamp(runner.file(runner.state.own, "out"))
    return found is not None and found.size > 0


def unseen(runner: Runner, token: str) -> Run:
    """A run of which nothing is known but that it ended."""
    state, now = runner.state, utc_now()
    out = str(runner.file(state.own, "out")) if state.turn == token else ""
    number = state.own if out else runner.next_number()
    run = Run(number, state.process, now, ended=now, exit="ended unseen", out=out)
    runner.update(run=run)
    return run


def _told(process: psutil.Process | None, token: str) -> bool:
    try:
        return process is not None and process.environ().get(TOKEN) == token
    except psutil.Error:
        return False
