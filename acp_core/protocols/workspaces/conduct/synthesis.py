"""A program that integrates: run as the orchestrator's, its text kept as the draft.

Source: agent workspaces specification, "Orchestrator Integration Prompt Template". What it writes
is a draft: a person approves it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from acp_core.agents.place import place as place_of
from acp_core.agents.spawn import SpawnError
from acp_core.agents.state import Phase, Run
from acp_core.agents.supervise import Runner
from acp_core.files import atomic
from acp_core.model.clock import utc_now
from acp_core.protocols.workspaces.conduct import recovery, returned
from acp_core.protocols.workspaces.conduct.agent import command_of
from acp_core.protocols.workspaces.conduct.team import Team
from acp_core.protocols.workspaces.write import Refused, integrate
from acp_core.protocols.workspaces.write import manifest as manifests
from acp_core.protocols.workspaces.write.layout import (
    ORCHESTRATOR,
    Layout,
    layout,
    locked,
    read_json,
)
from acp_core.protocols.workspaces.write.writing import Step, Write, carry_out, encode


def begin(place: Layout) -> Step:
    """What is written before the program starts; a draft that is there is put away.

    Raises:
        Refused: it is too early, or one is being written.
    """
    if is_running(place):
        raise Refused("the final output is being written already")
    text = integrate.prompt(place)
    path = integrate.draft_file(place)
    writes = []
    if os.path.lexists(path):
        kept = place.coord / "history" / "drafts"
        number = len(list(kept.iterdir())) + 1 if kept.is_dir() else 1
        writes.append(Write(kept / f"{number}-{path.name}", source=path))
    told = {"begun_at": manifests.iso(utc_now()), "ended_at": None, "exit": None}
    _, before = read_json(_state(place))
    prompt = place.draft / "prompt.md"
    writes += [Write(place.draft)] if not place.draft.is_dir() else []
    writes += [Write(prompt, text.encode()), Write(_state(place), encode(told), before)]
    return Step("Have a program write the final output's draft.", tuple(writes))


def is_running(place: Layout) -> bool:
    """Whether a process of this machine does it now."""
    return place_of(str(place.root), ORCHESTRATOR).is_locked()


def is_open(place: Layout) -> bool:
    """Whether it was begun, and nobody saw its end."""
    with contextlib.suppress(Refused):
        value, _ = read_json(_state(place))
        return bool(value and value.get("begun_at") and not value.get("ended_at"))
    return False


class Synthesis:
    """One try of a program to write the draft.

    Args:
        runner: holds the orchestrator's lock.
        team: the programs of the run.
    """

    def __init__(self, runner: Runner, team: Team) -> None:
        self._runner, self._team = runner, team
        self._place = layout(team.folder)
        value, _ = read_json(_state(self._place))
        self._begun = str((value or {}).get("begun_at"))

    @property
    def _token(self) -> str:
        return f"{self._place.root}|{ORCHESTRATOR}|{self._begun}"

    def run(self) -> None:
        """Do it, or what is left of it.

        Raises:
            Refused: the run's files do not allow it.
            OSError: something cannot be written.
        """
        if not is_open(self._place):
            return
        try:
            run = self._ended()
        except SpawnError as error:
            self._close(f"could not be started: {error}")
            return
        draft = integrate.draft_file(self._place)
        if not draft.exists():
            said = returned.said(Path(run.out), self._stream()).strip() if run.out else ""
            if said:
                with contextlib.suppress(FileExistsError):
                    atomic.create(draft, f"{said}\n".encode(errors="replace"))
        there = "" if draft.exists() else "; it wrote nothing"
        self._close(f"{run.exit or 'ended unseen'}{there}")

    def _ended(self) -> Run:
        state, unfinished = self._runner.state, self._runner.unfinished()
        ours = state.turn == self._token and state.run is not None and state.run.number == state.own
        if unfinished is not None and ours:
            self._runner.say(f"taking over process {unfinished.process.pid}")
            self._runner.update(phase=Phase.RUNNING)
            return self._runner.take_over(unfinished, lambda _: "")
        if ours and state.run is not None:
            return state.run
        orphan = recovery.orphan(self._runner, self._token)
        if orphan is not None:
            self._runner.say(f"taking over process {orphan.process.pid}, whose start was not noted")
            self._runner.update(phase=Phase.RUNNING, run=orphan)
            return self._runner.take_over(orphan, lambda _: "")
        if recovery.has_spoken(self._runner, self._token):
            return recovery.unseen(self._runner, self._token)
        number = self._runner.next_number()
        self._runner.update(turn=self._token, own=number, phase=Phase.RUNNING, note="integrates")
        choice = self._team.choice(ORCHESTRATOR)
        if choice is None:
            raise SpawnError("no program was chosen")
        text = integrate.prompt(self._place)
        prompt = self._runner.file(number, "prompt")
        atomic.replace(prompt, text.encode(), sync=False)
        command = command_of(choice, self._team, self._runner, text, str(prompt), self._token)
        return self._runner.run(command, lambda _: "")

    def _stream(self) -> str:
        choice = self._team.choice(ORCHESTRATOR)
        return choice.resolved().stream if choice else "text"

    def _close(self, how: str) -> None:
        with locked(self._place):
            value, before = read_json(_state(self._place))
            told = (value or {}) | {"ended_at": manifests.iso(utc_now()), "exit": how}
            carry_out((Write(_state(self._place), encode(told), before),))
        self._runner.say(f"ended: {how}")


def _state(place: Layout) -> Path:
    return place.draft / "synthesis.json"
