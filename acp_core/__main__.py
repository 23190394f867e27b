"""``python -m acp_core``: every command of acp, without the dashboard."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from acp_core.cli.main import run
from acp_core.model.errors import CommandError

if TYPE_CHECKING:
    from acp_core.person.settings import Settings


def no_dashboard(paths: list[str], settings: Settings) -> int:
    """Say where the dashboard is.

    Raises:
        CommandError: always.
    """
    raise CommandError("this is acp without its dashboard; run `acp`, or `acp status` for text")


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], no_dashboard))
