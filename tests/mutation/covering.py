"""Which tests run which line, measured once for a state of the project."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutation import tracing
from tests.mutation.places import ROOMS
from tests.mutation.trials import environment

TESTS = (
    "tests/agents", "tests/diagnosis", "tests/faults", "tests/files", "tests/fleet", "tests/history",
    "tests/loops", "tests/person", "tests/protocols", "tests/cli", "tests/upgrade",
)  # fmt: skip
"""Which tests there are to notice a mutant: those of the core."""


def tests_of(root: Path) -> list[str]:
    """Where the tests are in a copy of the project."""
    return [test for test in TESTS if (root / test).exists()]


@dataclass(frozen=True)
class Covered:
    """What ran what.

    Attributes:
        tests: For each ``path:line`` the tests that run it.
        seconds: How long each test took.
    """

    tests: dict[str, list[str]]
    seconds: dict[str, float]

    def of(self, path: str, line: int) -> list[str]:
        """The tests that run a line, the quickest first."""
        return sorted(
            self.tests.get(f"{path}:{line}", ()), key=lambda test: self.seconds.get(test, 9e9)
        )


def covered(root: Path, place: Path, jobs: int) -> Covered:
    """Measure a copy of the project, or read what was measured before.

    Args:
        root: The copy.
        place: A folder for what is measured; kept for the next time.
        jobs: Processes of pytest.
    """
    kept = place / "covered.json"
    with contextlib.suppress(FileNotFoundError):
        read = json.loads(kept.read_text(encoding="utf-8"))
        return Covered(read["tests"], read["seconds"])
    lines = place / "lines"
    shutil.rmtree(lines, ignore_errors=True)
    lines.mkdir(parents=True)
    shutil.copy(root / "tests/mutation/tracing.py", root / "sitecustomize.py")
    files = os.pathsep.join(f"{root}/{room}" for room in ROOMS)
    workers = ("-n", str(jobs if jobs > 1 else 0))
    with (place / "measured.txt").open("w") as output:
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutation.plugin", "-p", "no:cacheprovider",
             "--tb=line", *workers, *tests_of(root)],
            cwd=root, env=environment(root) | {tracing.FOLDER: str(lines), tracing.FILES: files},
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False,
        )  # fmt: skip
    (root / "sitecustomize.py").unlink()
    if ended.returncode not in (0, 1):  # 1: some tests fail, which are left out
        raise RuntimeError(f"the tests cannot be run; see {output.name}")
    read = _read(root, lines)
    kept.write_text(json.dumps({"tests": read.tests, "seconds": read.seconds}), encoding="utf-8")
    shutil.rmtree(lines)
    return read


def _read(root: Path, lines: Path) -> Covered:
    tests: defaultdict[str, set[str]] = defaultdict(set)
    for path in lines.glob("*.json"):
        with contextlib.suppress(ValueError):  # a process that was killed as it wrote
            read = json.loads(path.read_text(encoding="utf-8"))
            for file, numbers in read["lines"].items():
                for number in numbers:
                    tests[f"{Path(file).relative_to(root)}:{number}"].add(read["test"])
    failed = set(_notes(lines, "failed"))
    seconds = {test: took for test, took in _notes(lines, "took") if test not in failed}
    sound = {line: sorted(each & seconds.keys()) for line, each in tests.items()}
    return Covered(sound, seconds)


def _notes(lines: Path, name: str) -> Iterator[Any]:
    for path in lines.glob(f"{name}-*.jsonl"):
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())
