"""A person's choice of programs: by a preset's name, or word by word.

The presets are those that come with acp, changed and added to by the person's settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from acp_core.agents import presets
from acp_core.agents.presets import Preset
from acp_core.model.errors import Refused
from acp_core.person import settings
from acp_core.person.paths import key_of
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.conduct.team import Choice, Team


def known() -> dict[str, Preset]:
    """Every preset by name.

    Raises:
        PresetError: an own preset is not what it should be.
    """
    return presets.load(settings.load().presets)


def choice(name: str, words: Sequence[str], workdir: str, model: str = "") -> Choice | None:
    """The program that is meant by a preset's name, or by a command's words; None for neither.

    Raises:
        Refused: there is no such program.
        PresetError: there is no such preset, or the words are no command.
    """
    if words:
        return teams.choose(presets.command_here(list(words)), workdir, model)
    if not name:
        return None
    preset = presets.named(name, known())
    return teams.choose(preset, workdir, model)


def team(
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
    singles = {agent: choice(preset, (), where) for agent, preset in own}
    found = teams.merged(
        folder,
        usual=choice(name, words, where, model),
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
    return f"--agent {next(name for name, each in known().items() if each.program)}, or -- COMMAND"
