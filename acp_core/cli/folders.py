"""A folder as an argument of a command: taken as it was typed, completed by the shell."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


class Folder(click.ParamType[str]):
    """A folder's path as it was typed; shells complete folders. See `start.unusable`."""

    name = "folder"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Let the shell do it."""
        return [CompletionItem(incomplete, type="dir")]


FOLDER = Folder()
