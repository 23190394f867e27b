"""`acp` as somebody runs it: a real process, with folders of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support import forked

ROOT = Path(__file__).resolve().parents[2]


class Acp:
    """Runs acp in a working folder, with its own settings and state, without a terminal."""

    def __init__(self, home: Path, known: dict[str, str] | None = None) -> None:
        self.home = home
        self.env = {
            name: value
            for name, value in os.environ.items()
            if name not in ("COLUMNS", "LINES", "NO_COLOR", "ACP_DEBUG", "_ACP_COMPLETE")
        }
        self.env |= {
            "PYTHONPATH": str(ROOT),
            "ACP_CONFIG": str(home / "config"),
            "ACP_STATE": str(home / "state"),
            "TZ": "UTC",
        }
        self.env |= known or {}

    def __call__(
        self, *arguments: str, env: dict[str, str] | None = None, typed: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; ``typed`` is what it reads from the standard input."""
        environment = self.env | (env or {})
        if forked.can(environment):
            return forked.run(arguments, self.home, environment, typed)
        return subprocess.run(
            self.command(*arguments), input=typed, capture_output=True, text=True, check=False,
            cwd=self.home, env=environment,
        )  # fmt: skip

    def command(self, *arguments: str) -> list[str]:
        """The words that run acp with these arguments."""
        return [sys.executable, "-m", "acp_tui", *arguments]
