"""Folders on a command line: which are meant, and whether one can be looked into."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from acp_core.settings import Settings


class Folder(click.ParamType[str]):
    """A folder's path as it was typed; shells complete folders. See `unusable`."""

    name = "folder"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Let the shell do it."""
        return [CompletionItem(incomplete, type="dir")]


FOLDER = Folder()


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
