"""The sample at a path of a test's own, with the program of today."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from tests.support import forked
from tests.upgrade.samples import SAMPLE
from tests.upgrade.scenes import House
from tests.upgrade.scenes_0_2 import stand_ins


class Today(House):
    """A house in which the program of today runs, quickly."""

    def result(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run a command of acp to its end, however it ends."""
        return forked.run(tuple(map(str, words)), self.work, self.env, "")


def planted(folder: Path) -> House:
    """What 0.2.1 left, in an empty folder."""
    SAMPLE.unpack(folder)
    path = os.pathsep.join((str(folder / "bin"), os.environ["PATH"]))
    return Today(folder, ("acp",), {**os.environ, **stand_ins(folder), "PATH": path})


def contents(house: House) -> dict[str, str]:
    """The digest of every file (but what SQLite makes for readers, and what acp learns of durations)."""
    return {
        str(path.relative_to(house.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(house.folder.rglob("*"))
        if path.is_file() and path.name != "durations.json" and not _is_of_readers(path)
    }


def _is_of_readers(path: Path) -> bool:
    return path.name.endswith("-shm") or (path.name.endswith("-wal") and not path.stat().st_size)
