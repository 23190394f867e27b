"""The sample: which version it is of, what is in it, and how it is put into a folder."""

from __future__ import annotations

import json
import os
import sys
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.upgrade import places, scenes, scenes_0_2
from tests.upgrade.scenes import House

ROOT = Path(__file__).resolve().parents[2]
BASE, HOST, ACCOUNT = "/home/me", scenes_0_2.HOST, "me"
BIN, LIBRARY = "/opt/acp/bin", "/opt/acp/lib"
"""Where the program that is recorded stands: acp and its Python, and the package."""
BOOT = "00000000-0000-4000-8000-000000000000"


class Sample(NamedTuple):
    """What people have from one version.

    Attributes:
        version: that of the program that it was recorded with.
        archive: the file.
        begun: what stands in an empty folder before the first scene.
        scenes: what is brought about there, in this order.
        variables: all that the program is told of the machine, by its path and the folder.
        takes: the series of versions that it may be recorded with.
    """

    version: str
    archive: Path
    begun: tuple[Callable[[House], object], ...]
    scenes: tuple[Callable[[House], object], ...]
    variables: Callable[[str, Path], Mapping[str, str]]
    takes: str

    def about(self) -> dict[str, Any]:
        """What was noted: the program's ``version``, the command lines of its ``processes``, and the whole
        ones of ``shells``: of loops that are parked.
        """
        with tarfile.open(self.archive) as archive:
            file = archive.extractfile("about.json")
            assert file is not None
            noted: dict[str, Any] = json.loads(file.read())
        return noted

    def unpack(self, folder: Path) -> None:
        """Put the sample into an empty folder, as if it had always stood there."""
        base = folder.resolve()
        with tarfile.open(self.archive) as archive:
            archive.extractall(base, filter="data")
        host = (f'"host": "{HOST}"', f'"host": "{os.uname().nodename}"')
        program = (BIN, os.path.dirname(sys.executable))
        places.carry(base, BASE, str(base), host, program, (LIBRARY, str(ROOT)))


SAMPLE = Sample(
    "0.2.1", Path(__file__).with_name("sample-0.2.1.tar.xz"), (scenes.prepare, scenes_0_2.prepare),
    (*scenes_0_2.BEFORE, *scenes.ALL, *scenes_0_2.LAST), scenes_0_2.environment, "0.2.",
)  # fmt: skip
