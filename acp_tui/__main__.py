"""`acp`: the core's commands, and the dashboard, which is imported only when it draws."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from acp_core.person.settings import Settings

DRIVER = "TEXTUAL_DRIVER"  # set where something other than a terminal shows the dashboard


def main(argv: Sequence[str] | None = None) -> int:
    """Run `acp` with these arguments and return the exit code.

    Without arguments those of the process are run, which may end here (see `command_line.end`).
    """
    if argv is None:
        from acp_core.files import interrupts

        interrupts.begin()
        gc.disable()  # what is imported stays; `run` allows it again to what may last
    from acp_core.cli.main import run

    if argv is not None:
        return run(argv, dashboard)
    code = run(sys.argv[1:], dashboard)
    from acp_core.protocols.kit.command_line import end

    end(code)
    return code


def dashboard(paths: list[str], settings: Settings) -> int:
    """Draw the dashboard over the folders until the person leaves it.

    Raises:
        CommandError: there is no terminal to draw on.
    """
    from acp_core.model.errors import CommandError

    # Textual reads keys from the standard input and draws on the standard error.
    if DRIVER not in os.environ and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CommandError(
            "the dashboard needs a terminal; use `acp status` to print the fleet as text"
        )
    from acp_tui.terminal.garbage import Heap

    Heap.begin()  # importing makes many objects, all of which stay
    if DRIVER in os.environ:
        from acp_tui.terminal.browser_page import end_with_the_server

        end_with_the_server()
    from acp_tui.app import run as draw

    return draw(paths, settings=settings)


if __name__ == "__main__":
    sys.exit(main())
