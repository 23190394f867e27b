"""What every start of acp needs first: settings, and folders that can be looked into.

No click here: ``acp PATH`` comes this way, and somebody waits for the first picture.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from acp_core.cli.errors import CommandError

if TYPE_CHECKING:
    from acp_core.cli.handed import Dashboard
    from acp_core.settings import Settings


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
    return drawn(shown, settings)


def load_settings() -> Settings:
    """The person's settings.

    Raises:
        CommandError: they cannot be read; says where.
    """
    from acp_core import settings

    try:
        return settings.load()
    except settings.SettingsError as error:
        raise CommandError(str(error)) from None


def chosen_paths(paths: Sequence[str], settings: Settings) -> list[str]:
    """The paths to look under: the given ones, or those of the settings, or the present folder."""
    return list(paths) or [os.path.expanduser(path) for path in settings.paths] or ["."]


def unusable(path: str) -> str:
    """Why collaborations cannot be looked for under ``path``; "" where they can."""
    try:
        os.scandir(path).close()
    except FileNotFoundError:
        return f"{path}: no such folder"
    except NotADirectoryError:
        return f"{path}: not a folder (name the folder that it stands in)"
    except (OSError, ValueError) as error:
        return f"{path}: {getattr(error, 'strerror', None) or error}"
    return ""
