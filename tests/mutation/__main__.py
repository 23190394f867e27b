"""Mutation testing of the guards: what the tests do not notice is printed.

``python -m tests.mutation`` takes a seeded sample of changes of the rooms that keep promises
(files, every protocol's state and writes, the wire's doors), makes each in a copy of the project, and
runs the tests that run the changed line. It needs ``coverage`` and an hour or more; ``--work`` keeps
what is known, so that it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from queue import Queue

from tests.mutation.covering import Covered, covered
from tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "acp_core/files/*.py",
    "acp_core/protocols/*/state.py", "acp_core/protocols/*/state/**/*.py",
    "acp_core/protocols/*/write/**/*.py", "acp_core/protocols/kit/guard.py",
    "acp_core/protocols/wire/network/http/guard.py", "acp_core/protocols/wire/network/links.py",
    "acp_core/protocols/wire/network/secrets.py", "acp_core/protocols/wire/network/trust.py",
)  # fmt: skip
ENOUGH = 60.0  # seconds of tests for one mutant, as they take without one
PATIENCE = 240.0  # seconds until a run counts as hung, which is noticed, too


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--mutants", type=int, default=500, help="how many (500)")
    parser.add_argument("--seed", type=int, default=1, help="which (1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin none after these")
    parser.add_argument("--only", default="", help="files with this in their path")
    parser.add_argument("--work", type=Path, help="a folder that keeps what is known")
    options = parser.parse_args(argv)
    if find_spec("coverage") is None:
        parser.error("coverage is missing: install it with pip")
    work = (options.work or Path(tempfile.mkdtemp())).resolve()
    work.mkdir(parents=True, exist_ok=True)
    copies = [_copy(work / f"copy{number}") for number in range(options.jobs)]
    known = covered(copies[0], work, options.jobs)
    chosen = sample(copies[0], options.mutants, options.seed, options.only)
    results = _tried(chosen, known, copies, work / "results.jsonl", options.minutes * 60)
    print(report(chosen, results))
    return 0


def sample(root: Path, count: int, seed: int, only: str = "") -> list[Mutant]:
    """Some of all mutants, the same for the same seed and the same files."""
    paths = sorted({str(path.relative_to(root)) for room in ROOMS for path in root.glob(room)})
    every = [each for path in paths if only in path for each in mutants(root, path)]
    random.Random(seed).shuffle(every)
    return every[:count]


def _copy(place: Path) -> Path:
    """The project as it stands, where it may be changed."""
    if not place.exists():
        names = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
        ).stdout.split(b"\0")
        for name in filter(None, map(os.fsdecode, names)):
            target = place / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
    return place


def _tried(
    chosen: list[Mutant], known: Covered, copies: list[Path], kept: Path, seconds: float
) -> dict[str, str]:
    """What became of each: ``killed``, ``hung``, ``survived`` or ``not run``."""
    results: dict[str, str] = {}
    if kept.exists():
        results = dict(json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines())
    free: Queue[Path] = Queue()
    for copy in copies:
        free.put(copy)
    ends = time.monotonic() + seconds

    def one(mutant: Mutant) -> None:
        if mutant.name in results or time.monotonic() > ends:
            return
        copy = free.get()
        try:
            result = attempt(copy, mutant, known.of(mutant.path, mutant.line), known.seconds)
        finally:
            free.put(copy)
        results[mutant.name] = result
        with kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps([mutant.name, result]) + "\n")
        print(f"{result:9} {mutant.name}  {mutant.was!r} -> {mutant.text!r}", flush=True)

    with ThreadPoolExecutor(len(copies)) as pool:
        list(pool.map(one, chosen))
    return results


def attempt(copy: Path, mutant: Mutant, tests: list[str], seconds: dict[str, float]) -> str:
    """Make one change, and run the tests that run its line."""
    some: list[str] = []
    whole = 0.0
    for test in tests:
        whole += seconds.get(test, 1.0)
        if some and whole > ENOUGH:
            break
        some.append(test)
    if not some:
        return "not run"
    path = copy / mutant.path
    source = path.read_text(encoding="utf-8")
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(copy)}
    environment.pop("PYTHONPYCACHEPREFIX", None)
    path.write_text(mutant.apply(source), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--timeout=60", *some],
        cwd=copy, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        return "survived" if process.wait(PATIENCE) == 0 else "killed"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return "hung"
    finally:
        path.write_text(source, encoding="utf-8")


def report(chosen: list[Mutant], results: dict[str, str]) -> str:
    """A table of what became of them, and those that nothing noticed."""
    tried = [each for each in chosen if each.name in results]
    rooms = Counter(_room(each) for each in tried)
    noticed = Counter(_room(each) for each in tried if results[each.name] in ("killed", "hung"))
    lines = ["| room | mutants | noticed |", "| --- | ---: | ---: |"]
    lines += [f"| {room} | {rooms[room]} | {noticed[room]} |" for room in sorted(rooms)]
    whole, good = rooms.total(), noticed.total()
    lines += [f"| all | {whole} | {good} ({good / max(whole, 1):.0%}) |", ""]
    for each in tried:
        if results[each.name] not in ("killed", "hung"):
            lines.append(
                f"* `{each.path}:{each.line}` {results[each.name]}: `{each.was}` -> `{each.text}`"
            )
    return "\n".join(lines)


def _room(mutant: Mutant) -> str:
    parts = mutant.path.split("/")
    return parts[2] if parts[1] == "protocols" else parts[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
