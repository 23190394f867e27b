"""A live session with the stand-in `tests.agents.live_agent`, without a loop."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import psutil

from acp_core.agents.live.turn import MARK, Files, Held, LiveCommand, Order
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.agents.session import Session
from acp_core.agents.state import Run
from tests.agents.support import ROOT, go_on, runner


def program(folder: Path, name: str = "live-agent") -> str:
    """The stand-in as a program in ``folder``."""
    path = folder / name
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.agents.live_agent import main\nmain()\n"
    )
    path.chmod(0o755)
    return str(path)


def words(folder: Path, *more: str, behaviour: str = "") -> tuple[str, ...]:
    """The command line of the stand-in, whose sessions lie in ``folder``."""
    path = folder / "behaviour"
    path.write_text(behaviour)
    return (program(folder), "--home", str(folder / "home"), "--behaviour", str(path), *more)


class Participant:
    """Somebody whose turns are taken in a live session.

    Args:
        folder: where the stand-in is, and works.
        more: options of it.
        behaviour: how it behaves, turn after turn.
    """

    def __init__(self, folder: Path, *more: str, behaviour: str = "", ask_mode: str = "") -> None:
        self.folder = folder
        self.session: Session = runner()
        self.order = Order(
            str(self.session.where.folder),
            words(folder, *more, behaviour=behaviour),
            str(folder),
            dict(os.environ),
            ask_mode,
        )

    def take_turn(self, check: Callable[[Run], str] = go_on) -> Run:
        """Take a turn, and wait for its end."""
        prompt = self.folder / "prompt"
        prompt.write_text("Take your turn.")
        return self.session.run(LiveCommand(self.order, str(prompt)), check)

    def said(self) -> list[str]:
        """What the last turn's log lines were."""
        run = self.session.state.run
        assert run is not None
        return list(run.lines)

    @property
    def held(self) -> Held:
        """The runner, as it says of itself."""
        held = Files(self.session.where).load()
        assert held is not None
        return held

    def processes(self) -> list[int]:
        """Everything that lives of the session: the runner, its agent, and what that started."""
        return left_of(self.session.where)


def left_of(where: LoopDirectory) -> list[int]:
    """Everything that lives of a participant's session."""
    held = Files(where).load()
    found = [held.process.pid] if held and held.process.alive() else []
    for process in psutil.process_iter():
        try:
            is_marked = process.environ().get(MARK) == str(where.folder)
            if is_marked and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found
