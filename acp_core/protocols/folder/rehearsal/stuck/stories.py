"""Which stuck rehearsals there are, and how each is set up."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from acp_core.agents.presets import Preset
from acp_core.files import atomic
from acp_core.model.clock import utc_now
from acp_core.person.paths import state_folder
from acp_core.protocols.folder.rehearsal.rehearse import begin
from acp_core.protocols.folder.rehearsal.scenario import load
from acp_core.protocols.folder.rehearsal.stuck.player import STORY
from acp_core.rehearsal import RehearsalError, Role, Story

PLAYER = "acp_core.protocols.folder.rehearsal.stuck.player"


class _Plot(NamedTuple):
    """What goes wrong in a story.

    Attributes:
        title: for people.
        code: of the cause that is found.
        by, at: whose program gets into trouble, and at which event.
        alone: the reader waits for its turns itself.
        forgotten: the reader is not launched.
        twice: a second process acts for the reader.
        retries: how often a loop tries a turn again.
        answers: what the remedy asks a person for.
    """

    title: str
    code: str
    by: str = "reader"
    at: str = "review_submitted"
    alone: bool = False
    forgotten: bool = False
    twice: bool = False
    retries: int = 0
    answers: Mapping[str, str] = {}


_PLOTS = {
    "killed": _Plot("a loop and its agent are killed", "B2", retries=1),
    "idle": _Plot("an agent ends without doing anything", "B3"),
    "refused": _Plot("an agent may not run commands", "B3"),
    "hanging": _Plot("an agent produces no more output", "B9"),
    "retrying": _Plot("an agent cannot reach its model service", "B5"),
    "login": _Plot("an agent is not logged in", "B4"),
    "lingering": _Plot("an agent does not exit after its work", "B12"),
    "torn": _Plot("a line of the log is half written", "A1"),
    "lagging": _Plot(
        "protocol.json is out of date with the log", "A4", "server", "proposal_submitted", True
    ),
    "heading": _Plot("a review has no heading in review.md", "C2"),
    "gate": _Plot("a completion gate is not checked", "D5", "server", "readiness_passed"),
    "blocked": _Plot(
        "a participant asks for a decision",
        "E1",
        answers={"answer": "Sales says: a minute is fine."},
    ),
    "duplicate": _Plot("two loops act for one participant", "B13", twice=True),
    "belief": _Plot("an agent waits for the wrong participant", "B10", alone=True),
    "forgotten": _Plot("a participant was never started", "B1", forgotten=True),
}

NAMES: Mapping[str, str] = {name: plot.title for name, plot in _PLOTS.items()}
"""Every story by its name, with its title."""


def tell(name: str, folder: Path | None = None, *, speed: float = 1.0) -> Story:
    """Make the collaboration of a story; nobody acts in it yet.

    Args:
        name: one of `NAMES`.
        folder: where; it need not exist. None: in a new temporary folder, which is kept.
        speed: how many times as fast as written in the story.

    Raises:
        RehearsalError: there is no such story, or a folder cannot be written.
    """
    if name not in _PLOTS:
        raise RehearsalError(f"unknown cause {name!r} (causes: {', '.join(_PLOTS)})")
    plot = _PLOTS[name]
    drafts = state_folder() / "demo" / f"{utc_now():%Y-%m-%d-%H%M%S}-{os.getpid()}-{name}"
    try:
        atomic.private_folder(drafts)
        place = folder or Path(tempfile.mkdtemp(prefix="acp-demo-"), f"stuck-{name}")
    except OSError as error:
        raise RehearsalError(f"no folder for a rehearsal: {error}") from None
    place = Path(os.path.abspath(place))
    begin(load("story", STORY), place)
    return Story(
        name=name,
        title=plot.title,
        location=str(place),
        code=plot.code,
        roles=tuple(_role(plot, name, who, drafts, speed) for who in ("server", "reader")),
        answers=plot.answers,
    )


def _role(plot: _Plot, name: str, who: str, drafts: Path, speed: float) -> Role:
    words = ["-P", "-m", PLAYER, "--drafts", str(drafts), "--speed", f"{speed:g}"]
    if plot.by == who:
        words += ["--trouble", name, "--at", plot.at, "--once", str(drafts / "once")]
    alone = plot.alone and who == "reader"
    if alone:
        words.append("--alone")
    preset = Preset(
        "stand-in",
        title="a stand-in for an agent",
        program=sys.executable,
        args=tuple(words),
        stream="claude",
        env={"PYTHONUTF8": "1"},
    )
    return Role(
        participant=who,
        preset=preset,
        alone=alone,
        launched=not (plot.forgotten and who == "reader"),
        twice=plot.twice and who == "reader",
        retries=plot.retries,
    )
