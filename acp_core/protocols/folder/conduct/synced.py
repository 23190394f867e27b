"""``acp sync`` in the background, for as long as participants' loops run: started by the first of them."""

from __future__ import annotations

import sys
import time

from acp_core.agents import background
from acp_core.files import claims
from acp_core.protocols.folder.conduct import syncing
from acp_core.protocols.folder.write import Refused

_ALONE = 30.0  # seconds without a loop after which it ends


class Loops:
    """Whether there are loops in a folder, or were a moment ago."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._seen = time.monotonic()

    def __call__(self) -> bool:
        """Whether to go on."""
        now = time.monotonic()
        if any(each.held for each in claims.listed(self._folder, "loops")):
            self._seen = now
        return now - self._seen < _ALONE


def main(folder: str) -> int:
    """Keep a folder and its store the same while loops run there; the exit code."""
    loops = Loops(folder)

    def work(ready: background.Ready) -> int:
        return syncing.run(folder, quiet=True, ready=ready, goes_on=loops)

    return background.run(work, Refused)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
