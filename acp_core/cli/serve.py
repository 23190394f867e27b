"""``acp serve``: the dashboard in a web browser."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from typing import TYPE_CHECKING

import click

from acp_core.agents.background import importable
from acp_core.cli.folders import FOLDER
from acp_core.cli.output import say
from acp_core.cli.start import chosen_paths, load_settings, unusable
from acp_core.model.errors import CommandError

if TYPE_CHECKING:
    from acp_core.cli.context import Dashboard

LOOPBACK = "127.0.0.1"
PORT = 8000
NEEDED = "textual_serve"


@click.command()
@click.argument("paths", nargs=-1, type=FOLDER, metavar="[PATH]...")
@click.option(
    "--host",
    default=LOOPBACK,
    metavar="ADDRESS",
    show_default=True,
    help="Listen on this address. Any but this machine's own is reached by others, unencrypted.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Listen on this port; 0 takes a free one.",
)
@click.option("--theme", metavar="NAME", help="Use this theme instead of the one in config.toml.")
@click.option("--utc", is_flag=True, help="Show times in UTC.")
@click.pass_obj
def serve(
    drawn: Dashboard, paths: tuple[str, ...], host: str, port: int, theme: str | None, utc: bool
) -> int:
    """Show the dashboard of the collaborations in and below each PATH in a web browser.

    Prints an address with a key: whoever has it can do what you can do in the dashboard. Every
    visit gets a dashboard of its own; it ends when the page is closed. Needs the extra `web`
    (pip install 'acp-tui[web]').

    Without PATH: those of `paths` in config.toml, or else the present folder.
    """
    shown = chosen_paths(paths, load_settings())
    for path in shown:
        if problem := unusable(path):
            raise CommandError(problem)
    if importlib.util.find_spec(NEEDED) is None:
        raise CommandError("the browser needs the extra `web`: pip install 'acp-tui[web]'")
    options = [*(["--theme", theme] if theme else []), *(["--utc"] if utc else [])]
    os.environ.update(importable())
    from acp_core.cli.browser import Site, listen

    listening = listen(host, port)
    site = Site(command(drawn, [*options, "--", *map(os.path.abspath, shown)]), listening)
    if not site.is_local:
        click.echo(
            "warning: others reach this address, and what is sent there can be read on its way; "
            "`ssh -L` and the default address are safer",
            err=True,
        )
    say(f"The dashboard is at {site.address}")
    say("Whoever has this address can do what you can do in it. Ctrl+C ends it.")
    sys.stdout.flush()
    site.run()
    return 0


def command(drawn: Dashboard, arguments: list[str]) -> str:
    """What a shell runs to draw a dashboard as ``drawn`` does; every word is quoted.

    Args:
        drawn: its module is the program that was started.
        arguments: of ``acp dashboard``.
    """
    spec = sys.modules[drawn.__module__].__spec__
    program = spec.name.removesuffix(".__main__") if spec else drawn.__module__
    words = [sys.executable, "-P", "-m", program, "dashboard", *arguments]
    return f"exec {shlex.join(words)}"
