"""``acp serve``: the dashboard in a web browser."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from typing import TYPE_CHECKING

from acp_core.agents.background import importable
from acp_core.cli.context import handed_in
from acp_core.cli.output import say, warn
from acp_core.cli.start import absolute, chosen_paths, load_settings, unusable
from acp_core.model.errors import CommandError
from acp_core.protocols.kit.values import Values

if TYPE_CHECKING:
    from acp_core.cli.context import Dashboard

NEEDED = "textual_serve"


def serve(given: Values) -> int:
    """Serve the dashboard until interrupted.

    Raises:
        CommandError: a path cannot be looked into, or the extra is not there.
    """
    shown = chosen_paths(given.paths, load_settings())
    for path in shown:
        if problem := unusable(path):
            raise CommandError(problem)
    if importlib.util.find_spec(NEEDED) is None:
        raise CommandError("the browser needs the extra `web`: pip install 'acp-tui[web]'")
    options = [
        *(["--theme", given.theme] if given.theme else []),
        *(["--utc"] if given.utc else []),
    ]
    os.environ.update(importable())
    from acp_core.cli.browser import Site, listen

    listening = listen(given.host, given.port)
    site = Site(command(handed_in(), [*options, *map(absolute, shown)]), listening)
    if not site.is_local:
        warn(
            "other machines can reach this address, and the connection is not encrypted; the "
            "default address with `ssh -L` is safer"
        )
    say(f"The dashboard is at {site.address}")
    say("Anyone with this address can do what you can do in the dashboard. Press Ctrl+C to stop.")
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
