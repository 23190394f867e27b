"""A program that integrates: run as the orchestrator's, its text kept as the draft.

Source: agent workspaces specification, "Orchestrator Integration Prompt Template". What it writes
is a draft: a person approves it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from acp_core.agents import streams
from acp_core.agents.assignment import Assignment, perform
from acp_core.agents.live.turn import TurnScope
from acp_core.agents.program import Program, SpawnError
from acp_core.agents.session import Session
from acp_core.agents.state import Run
from acp_core.files import atomic
from acp_core.files.transaction import MOVE, REPLACE, Write
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.workspaces.conduct import agent
from acp_core.protocols.workspaces.conduct.advance import watcher_alive
from acp_core.protocols.workspaces.conduct.agent import VARIABLE
from acp_core.protocols.workspaces.conduct.team import Team
from acp_core.protocols.workspaces.read.manifest import layout, read_json
from acp_core.protocols.workspaces.schema import ORCHESTRATOR, Layout, encode, iso
from acp_core.protocols.workspaces.write import integration
from acp_core.protocols.workspaces.write.step import Step, locked


def begin(place: Layout) -> Step:
    """What is written before the program starts; a draft that is there is put away.

    Raises:
        Refused: it is too early, or one is being written.
    """
    if is_running(place):
        raise Refused("a program is already writing the final output")
    text = integration.synthesis_prompt(place)
    path = integration.draft_file(place)
    writes = []
    if os.path.lexists(path):
        kept = place.coord / "history" / "drafts"
        number = len(list(kept.iterdir())) + 1 if kept.is_dir() else 1
        writes.append(Write(kept / f"{number}-{path.name}", MOVE, source=path))
    record = {"begun_at": iso(utc_now()), "ended_at": None, "exit": None}
    read_json(_state(place))  # what is none of ours is not overwritten
    prompt = place.draft / "prompt.md"
    folders = () if place.draft.is_dir() else (place.draft,)
    writes += [
        Write(prompt, REPLACE, text.encode()),
        Write(_state(place), REPLACE, encode(record)),
    ]
    return Step(
        "Let a program write the draft of the final output.", tuple(writes), folders=folders
    )


def is_running(place: Layout) -> bool:
    """Whether a process of this machine does it now."""
    return watcher_alive(place, ORCHESTRATOR)


def is_open(place: Layout) -> bool:
    """Whether it was begun, and nobody saw its end."""
    with contextlib.suppress(Refused):
        value = read_json(_state(place))
        return bool(value and value.get("begun_at") and not value.get("ended_at"))
    return False


class Synthesis(Assignment):
    """One try of a program to write the draft.

    Args:
        session: the orchestrator's, entered.
        team: the programs of the run.
    """

    def __init__(self, session: Session, team: Team) -> None:
        self._session, self._team = session, team
        self._place = layout(team.folder)
        value = read_json(_state(self._place))
        key = f"{self._place.root}|{ORCHESTRATOR}|{(value or {}).get('begun_at')}"
        super().__init__(
            key,
            VARIABLE,
            note="integrates",
            title="writes the final output's draft",
            timeout=team.timeout,
            late=team.late(team.timeout),
        )

    def run(self) -> None:
        """Do it, or what is left of it.

        Raises:
            Refused: the run's files do not allow it.
            OSError: something cannot be written.
        """
        if not is_open(self._place):
            return
        try:
            run = perform(self._session, self)
        except SpawnError as error:
            self._close(f"could not be started: {error}")
            return
        draft = integration.draft_file(self._place)
        if not draft.exists():
            said = agent.read_return(Path(run.out), self._stream(run)).strip() if run.out else ""
            if said:
                with contextlib.suppress(FileExistsError):
                    atomic.create(draft, f"{said}\n".encode(errors="replace"))
        there = "" if draft.exists() else "; no draft written"
        how = f"{run.exit} ({run.stopped})" if run.stopped else run.exit
        self._close(f"{how or 'ended unseen'}{there}")

    def program(self) -> Program:
        """The program that was chosen to integrate."""
        return self._team.program(ORCHESTRATOR)

    def scope(self) -> TurnScope:
        """It may write the draft."""
        return TurnScope(
            self.title, folders=(str(self._place.draft),), permissions=self._team.permissions
        )

    def prompt(self) -> str:
        """What it is told: the orchestrator's integration prompt."""
        return integration.synthesis_prompt(self._place)

    def _stream(self, run: Run) -> str:
        if run.live:
            return streams.LIVE
        choice = self._team.choice(ORCHESTRATOR)
        return choice.resolved().stream if choice else "text"

    def _close(self, how: str) -> None:
        with locked(self._place) as transaction:
            value = read_json(_state(self._place))
            record = (value or {}) | {"ended_at": iso(utc_now()), "exit": how}
            write = Write(_state(self._place), REPLACE, encode(record))
            transaction.commit("note how the integration ended", [write])
        self._session.say(f"ended: {how}")


def _state(place: Layout) -> Path:
    return place.draft / "synthesis.json"
