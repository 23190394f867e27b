"""`acp`: the core's commands, and the dashboard, which is imported only when it draws."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from acp_core.cli.errors import CommandError
from acp_core.cli.main import run

if TYPE_CHECKING:
    from acp_core.settings import Settings

DRIVER = "TEXTUAL_DRIVER"  # set where something other than a terminal shows the dashboard


def main(argv: Sequence[str] | None = None) -> int:
    """Run `acp` with these arguments (default: the process's own); returns the exit code."""
    return run(sys.argv[1:] if argv is None else argv, dashboard)


def dashboard(paths: list[str], settings: Settings) -> int:
    """Draw the dashboard over the folders until the person leaves it.

    Raises:
        CommandError: there is no terminal to draw on.
    """
    # Textual reads keys from the standard input and draws on the standard error.
    if DRIVER not in os.environ and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CommandError("the dashboard needs a terminal; `acp status` prints the same as text")
    from acp_tui.heap import Heap

    Heap.begin()  # importing makes many objects, all of which stay
    if DRIVER in os.environ:
        from acp_tui.page import end_with_the_server

        end_with_the_server()
    from acp_tui.app import run as draw

    return draw(paths, settings=settings)


if __name__ == "__main__":
    sys.exit(main())
