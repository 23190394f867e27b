"""What every start of acp needs first: settings, folders that can be looked into, and Snapshots of these.

The dashboard starts here, too: what reads collaborations is imported when they are read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.cli.context import handed_in
from acp_core.model.errors import CommandError
from acp_core.protocols.kit.values import Values
from acp_core.protocols.locations import MARK, RUNNING, SearchRoot, is_link

if TYPE_CHECKING:
    from acp_core.cli.context import Dashboard
    from acp_core.fleet import Fleet
    from acp_core.model import Snapshot
    from acp_core.person.settings import Settings


def open_dashboard(
    paths: list[str], drawn: Dashboard, *, theme: str | None = None, utc: bool = False
) -> int:
    """Look at the paths, read the settings, and draw.

    Raises:
        CommandError: a path is no folder, or the settings cannot be read.
    """
    settings = load_settings()
    settings = replace(settings, theme=theme or settings.theme, utc=utc or settings.utc)
    shown = chosen_paths(paths, settings)
    for path in shown:
        problem = unusable(path)
        if problem:
            raise CommandError(problem)
    return drawn([place_of(path) for path in shown], settings)


def load_settings() -> Settings:
    """The person's settings.

    Raises:
        CommandError: they cannot be read; says where.
    """
    from acp_core.person import settings

    try:
        return settings.load()
    except settings.SettingsError as error:
        raise CommandError(str(error)) from None


def chosen_paths(paths: Sequence[str], settings: Settings) -> list[str]:
    """The paths to look under, and links: the given ones, or else those of the settings.

    Where neither names a path it is the present folder. Without any given one, what runs here
    belongs to them, and so do the agents of the settings.

    Raises:
        CommandError: the link of an agent in the settings is none.
    """
    if paths:
        return [as_link(path) for path in paths]
    folders = [os.path.expanduser(path) for path in settings.paths] or ["."]
    return [*folders, *_agents(settings), *_followed(settings), RUNNING]


def as_link(path: str) -> str:
    """A repository by ssh as a link, where it is written as git takes it (USER@HOST:PATH); else the path."""
    if "@" not in path or MARK in path or os.path.lexists(path):
        return path
    from acp_core.stores import address

    return address.parse(path).link if address.is_repository(path) else path


def _followed(settings: Settings) -> list[str]:
    """The keys of the stores that the settings name."""
    named = settings.share.get("follow", [])
    if not named:
        return []
    from acp_core.stores import address

    keys = []
    for text in named:
        try:
            keys.append(address.parse(text).link)
        except address.BadAddress as error:
            raise CommandError(f"config.toml: share.follow: {error}") from None
    return keys


def _agents(settings: Settings) -> list[str]:
    """The keys of the agents that the settings name."""
    if not settings.agents:
        return []
    from acp_core.protocols import locations

    keys = []
    for name, said in settings.agents.items():
        link, token = (said, "") if isinstance(said, str) else (said["link"], said.get("token", ""))
        try:
            keys.append(locations.resolve(link, token))
        except locations.BadLocation as error:
            raise CommandError(f"config.toml: agents.{name}: {error}") from None
    return keys


def place_of(path: str) -> str:
    """A path as it is; of a link, which must be a good one, the key of what it leads to."""
    if MARK not in path:
        return path
    from acp_core.protocols import locations

    return locations.resolve(path)


def absolute(path: str) -> str:
    """A path that means the same from any folder; a link is that already."""
    return path if MARK in path or path == RUNNING else os.path.abspath(path)


def key_of(path: str) -> str:
    """The key of what a path, which may be gone by now, or a link leads to.

    Raises:
        CommandError: the link is none.
    """
    if MARK in path and (problem := unusable(path)):
        raise CommandError(problem)
    return absolute(place_of(path))


def unusable(path: str) -> str:
    """Why collaborations cannot be looked for under ``path``; "" where they can."""
    if path == RUNNING:
        return ""
    if MARK in path:
        from acp_core.protocols import locations

        try:
            locations.resolve(path)
        except locations.BadLocation as error:
            return str(error)
        return ""
    try:
        os.scandir(path).close()
    except FileNotFoundError:
        return f"{path}: no such folder"
    except NotADirectoryError:
        return f"{path}: not a folder (name the folder that contains the file)"
    except (OSError, ValueError) as error:
        return f"{path}: {getattr(error, 'strerror', None) or error}"
    return ""


def dashboard(given: Values) -> int:
    """Draw the dashboard with what was handed in."""
    return open_dashboard(given.paths, handed_in(), theme=given.theme, utc=given.utc)


def sort_out(paths: Sequence[str]) -> tuple[list[SearchRoot], list[str]]:
    """The places in which collaborations can be looked for, and why the others cannot."""
    problems = {path: unusable(path) for path in map(as_link, paths)}
    good = [_place(path) for path, problem in problems.items() if not problem]
    return good, [problem for problem in problems.values() if problem]


def _place(path: str) -> SearchRoot:
    return place_of(path) if is_link(path) or path == RUNNING else Path(path)


def open_one(folder: str) -> tuple[Fleet, Snapshot]:
    """The collaboration in this very folder, read once, and the fleet of one that holds it.

    Raises:
        CommandError: there is none, or it cannot be read.
    """
    if problem := unusable(folder):
        raise CommandError(problem)
    from acp_core.fleet import Fleet  # late, here and below: the dashboard draws before
    from acp_core.model import SourceState
    from acp_core.protocols.kit.guard import refusal
    from acp_core.protocols.kit.wording import without_retry

    fleet = Fleet([_place(folder)], discover=False)
    snapshots = fleet.read()
    if not snapshots or snapshots[0].source.state is SourceState.UNREACHABLE:
        note = snapshots[0].source.note if snapshots else ""
        if snapshots and snapshots[0].obstacles:
            raise CommandError(f"{folder}: {refusal(snapshots[0].obstacles)}")
        if is_link(folder):
            raise CommandError(without_retry(note) or "cannot reach the agent")
        raise CommandError(f"{folder}: {note or 'no collaboration'}{_near(folder)}")
    return fleet, snapshots[0]


def _near(folder: str) -> str:
    """The collaborations that stand below a folder that is none, as a hint."""
    from acp_core.protocols.discovery import discover

    found = discover([Path(folder)], depth=2, limit=500).found
    names = [os.path.join(folder, os.path.relpath(each.key, folder)) for each in found[:3]]
    return f"; did you mean {' or '.join(names)}?" if names else ""
