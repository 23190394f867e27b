"""``acp [PATH...]`` and ``acp dashboard [PATH...]``: opens the dashboard that it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from acp_core.cli.errors import CommandError
from acp_core.cli.folders import FOLDER, chosen_paths, unusable

if TYPE_CHECKING:
    from acp_core.cli.main import Dashboard
    from acp_core.settings import Settings


@click.command()
@click.argument("paths", nargs=-1, type=FOLDER, metavar="[PATH]...")
@click.option("--theme", metavar="NAME", help="Use this theme instead of the one in config.toml.")
@click.option("--utc", is_flag=True, help="Show times in UTC.")
@click.pass_obj
def dashboard(drawn: Dashboard, paths: tuple[str, ...], theme: str | None, utc: bool) -> int:
    """Open the live dashboard on the collaborations in and below each PATH.

    Without PATH: those of `paths` in config.toml, or else the present folder.
    """
    return open_dashboard(list(paths), drawn, theme=theme, utc=utc)


def open_dashboard(
    paths: list[str], drawn: Dashboard, *, theme: str | None = None, utc: bool = False
) -> int:
    """Look at the paths, read the settings, and draw.

    Raises:
        CommandError: a path is no folder, or the settings cannot be read.
    """
    settings = load_settings()
    chosen = {"theme": theme} if theme else {}
    settings = settings.model_copy(update=chosen | ({"utc": True} if utc else {}))
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
