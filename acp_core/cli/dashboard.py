"""``acp [PATH...]`` and ``acp dashboard [PATH...]``: opens the dashboard that it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from acp_core.cli.folders import FOLDER
from acp_core.cli.start import open_dashboard

if TYPE_CHECKING:
    from acp_core.cli.context import Dashboard


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
