"""The sample at a path of a test's own, with the program of today."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support import forked
from tests.upgrade.samples import FIRST, Sample
from tests.upgrade.scenes import House


class Today(House):
    """A house in which the program of today runs, quickly."""

    def result(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run a command of acp to its end, however it ends."""
        return forked.run(tuple(map(str, words)), self.work, self.env, "")


def planted(folder: Path, sample: Sample = FIRST) -> House:
    """What a version left, in an empty folder."""
    sample.unpack(folder)
    return Today(folder, ("acp",))
