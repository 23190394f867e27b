"""Which program does each agent's work, and within which limits: a person's choice, kept in their own folders.

It is never read from the run's folder: what stands there was perhaps written by somebody else, and
no program is started for that. The specification leaves open how sub-agents are run ("Prompt Template
for Subagent Dispatch" says only what each is told).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from acp_core.agents import codec, presets, streams
from acp_core.agents.live.binding import offered
from acp_core.agents.loop_directory import place
from acp_core.agents.presets import Preset, PresetError, parse
from acp_core.agents.program import Program, SpawnError, locate
from acp_core.model.errors import Refused
from acp_core.person import settings
from acp_core.person.paths import key_of
from acp_core.protocols.workspaces.schema import ORCHESTRATOR

AT_ONCE = 4  # sub-agents that work at the same time


@dataclass(frozen=True, slots=True)
class Choice:
    """A program: the preset as a table, where the program is, and its model."""

    name: str
    preset: dict[str, object] = field(default_factory=dict)
    program: str = ""
    model: str = ""

    def resolved(self) -> Preset:
        """The preset.

        Raises:
            PresetError: it is not what it should be.
        """
        return parse(self.name, self.preset)


@dataclass(frozen=True, slots=True)
class Team:
    """The programs of one run.

    Attributes:
        folder: the run: a real path.
        usual: the program of every agent for which none is named.
        own: the programs of single agents, each as a table of a `Choice`.
        limit: how many agents work at the same time at most.
        workdir: where the programs run.
        timeout: seconds after which an agent is stopped whose plan names no limit; None for never.
        once: programs are started for each attempt, although they could hold a live session.
        permissions: the policy for live sessions; "" for that of the settings.
    """

    folder: str
    usual: Choice | None = None
    own: dict[str, dict[str, object]] = field(default_factory=dict)
    limit: int = AT_ONCE
    workdir: str = ""
    timeout: float | None = None
    once: bool = False
    permissions: str = ""

    def choice(self, agent: str) -> Choice | None:
        """The program of one agent, None where none was chosen."""
        given = self.own.get(agent)
        if isinstance(given, dict):
            preset = given.get("preset")
            return Choice(
                str(given.get("name", "command")),
                preset if isinstance(preset, dict) else {},
                str(given.get("program", "")),
                str(given.get("model", "")),
            )
        return self.usual

    def program(self, agent: str, own: str = "") -> Program:
        """The program of one agent, ready to be started.

        Args:
            agent: whose.
            own: the agent's own folder, in which a live session works where no other was chosen.

        Raises:
            SpawnError: none was chosen.
            PresetError: its preset is not what it should be.
        """
        choice = self.choice(agent)
        if choice is None:
            raise SpawnError(f"no program was chosen for {agent}")
        workdir = self.workdir or self.folder
        made = Program(choice.resolved(), self.folder, workdir, choice.program, choice.model)
        found = offered(made, once=self.once)
        return (
            replace(found, workdir=own) if found.live and own and workdir == self.folder else found
        )

    def stream(self, agent: str, live: bool) -> str:
        """The form of what an agent's program prints: as a live session, or as its preset says."""
        choice = self.choice(agent)
        return streams.LIVE if live else choice.resolved().stream if choice else "text"

    def late(self, limit: float | None) -> str:
        """Why a program is stopped that takes longer than so many seconds."""
        return f"not finished after {limit:g} s" if limit is not None else ""

    def having(self, agent: str, choice: Choice) -> Team:
        """The same with a program for one agent."""
        table: dict[str, object] = {
            "name": choice.name,
            "preset": choice.preset,
            "program": choice.program,
            "model": choice.model,
        }
        return replace(self, own={**self.own, agent: table})


def choose_program(preset: Preset, workdir: str, model: str = "") -> Choice:
    """The choice of a preset's program.

    Raises:
        Refused: there is no such program.
    """
    try:
        program = locate(preset, workdir)
    except SpawnError as error:
        raise Refused(str(error)) from None
    return Choice(preset.name, preset.as_table(), program, model)


def save_team(team: Team) -> None:
    """Keep a team.

    Raises:
        OSError: it cannot be written.
    """
    where = place(team.folder, ORCHESTRATOR)
    where.make()
    codec.write(where.folder / "team.json", team)


def load_team(folder: str | Path) -> Team | None:
    """The team of a run; None where no program was chosen on this machine, or not properly."""
    where = place(str(folder), ORCHESTRATOR)
    try:
        team = codec.read(Team, where.folder / "team.json")
        for choice in (team.usual, *(team.choice(name) for name in team.own)):
            if choice is not None:
                choice.resolved()
    except (codec.CodecError, PresetError):
        return None
    return team if team.folder == key_of(str(folder)) else None


def merged_team(folder: str | Path, **changes: object) -> Team:
    """The team that a run has, or a new one, with what a person chose just now.

    ``own`` is added to what was chosen before; a value that is None changes nothing. A run for which
    no limit was chosen gets the one that the person's settings name for every turn.
    """
    key = key_of(str(folder))
    team = load_team(folder) or Team(key, workdir=key)
    if team.timeout is None:
        team = replace(team, timeout=60 * settings.load().loops.get("turn_minutes", 0) or None)
    own = changes.pop("own", None)
    if isinstance(own, Mapping):
        for agent, choice in own.items():
            team = team.having(agent, choice)
    known = {name: value for name, value in changes.items() if value is not None}
    if "workdir" in known:
        known["workdir"] = os.path.realpath(str(known["workdir"]))
    return replace(team, **known)  # type: ignore[arg-type]


def known_presets() -> dict[str, Preset]:
    """Every preset by name.

    Raises:
        PresetError: an own preset is not what it should be.
    """
    return presets.load(settings.load().presets)


def program_choice(name: str, words: Sequence[str], workdir: str, model: str = "") -> Choice | None:
    """The program that is meant by a preset's name, or by a command's words; None for neither.

    Raises:
        Refused: there is no such program.
        PresetError: there is no such preset, or the words are no command.
    """
    if words:
        return choose_program(presets.command_here(list(words)), workdir, model)
    if not name:
        return None
    preset = presets.named(name, known_presets())
    return choose_program(preset, workdir, model)


def team_of(
    folder: str | Path,
    name: str = "",
    words: Sequence[str] = (),
    *,
    model: str = "",
    own: Sequence[tuple[str, str]] = (),
    limit: int | None = None,
    workdir: str | None = None,
    timeout: float | None = None,
    once: bool = False,
    permissions: str | None = None,
) -> Team:
    """The team of a run with what was chosen now; nothing is kept yet.

    Args:
        folder: the run.
        name, words, model: the program of everybody for whom none is named.
        own: agents, and the names of their presets.
        limit: how many work at the same time.
        workdir: where the programs run; the run's folder by default.
        timeout: seconds after which an agent is stopped whose plan names no limit.
        once: start each program for its attempt, without a live session; where a program is chosen
            without that, the choice of before is forgotten.
        permissions: the policy for live sessions; None for the one of before.

    Raises:
        Refused: a program is not there, or none was ever chosen.
        PresetError: a preset is not what it should be.
    """
    where = str(workdir or key_of(str(folder)))
    singles = {agent: program_choice(preset, (), where) for agent, preset in own}
    found = merged_team(
        folder,
        usual=program_choice(name, words, where, model),
        own={agent: each for agent, each in singles.items() if each},
        limit=limit,
        workdir=workdir,
        timeout=timeout,
        once=once if once or name or words or own else None,
        permissions=permissions or None,
    )
    if found.usual is None and not found.own:
        raise Refused(f"no program was chosen: name a preset, or give a command ({_hint()})")
    return found


def _hint() -> str:
    return f"--agent {next(name for name, each in known_presets().items() if each.program)}, or -- COMMAND"
