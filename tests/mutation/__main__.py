"""Mutation testing of the guards: what the tests do not notice is printed.

``python -m tests.mutation`` takes a seeded sample of changes of the rooms that keep promises
(files, every protocol's state and writes, the wire's doors), every guard before a write, and the
guards that no test defended once. It makes each in a copy of the project, and runs the tests that run the changed line: the quickest
first, all others where those notice nothing. Exit code 1 where a guard went unnoticed. It needs ``coverage`` and an hour or more; ``--work``
keeps what is known, so that it goes on where it was. ``--name`` takes these changes in place of the
sample; with ``--tests`` it tries them on the project as it stands, with tests that may be new.
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
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from queue import Queue

from tests.mutation.covering import Covered, covered, tests_of
from tests.mutation.mutants import Mutant, mutants, undefended
from tests.mutation.places import GUARDS, ROOMS, is_guard
from tests.mutation.trials import Trials, Verdict, fresh

ROOT = Path(__file__).resolve().parents[2]
FIRST = 3.0  # seconds of tests for one change in the first round, as they take without it
NOTICED = ("killed", "hung")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--mutants", type=int, default=500, help="how many (500)")
    parser.add_argument("--seed", type=int, default=1, help="which (1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin none after these")
    parser.add_argument("--enough", type=float, default=120.0, help="seconds of tests for one")
    parser.add_argument("--only", default="", help="files with this in their path")
    parser.add_argument("--work", type=Path, help="a folder that keeps what is known")
    parser.add_argument(
        "--name", nargs="+", default=[], help="only these, as the results name them"
    )
    parser.add_argument("--tests", nargs="*", default=[], help="the tests for them")
    options = parser.parse_args(argv)
    if options.name and options.tests:
        return _tried(named(ROOT, options.name), options.tests)
    if find_spec("coverage") is None:
        parser.error("coverage is missing: install it with pip")
    work = (options.work or Path(tempfile.mkdtemp())).resolve()
    work.mkdir(parents=True, exist_ok=True)
    project = _project(work / "project")
    copies = [copied(project, work / f"copy{number}") for number in range(options.jobs)]
    known = covered(copies[0], work, options.jobs)
    chosen = (
        named(project, options.name)
        if options.name
        else sample(project, options.mutants, options.seed, options.only)
    )
    run = Run(chosen, known, copies, work, options.minutes * 60)
    for seconds in (FIRST, options.enough):
        run.round(seconds)
    print(report(chosen, run.results))
    return int(bool(unguarded(chosen, run.results)))


def sample(root: Path, count: int, seed: int, only: str = "") -> list[Mutant]:
    """Some of all changes, the same for the same seed and the same files; then every guard.

    Guards that no test defended once come first, then the sample.
    """
    paths = sorted({str(path.relative_to(root)) for room in ROOMS for path in root.glob(room)})
    every = [each for path in paths if only in path for each in mutants(root, path)]
    random.Random(seed).shuffle(every)
    some = every[:count]
    named = [each for each in every[count:] if is_guard(each.path, each.kind)]
    once = [each for each in undefended(root) if only in each.path]
    return once + some + sorted(named, key=lambda each: (GUARDS.index(each.path), each.start))


def named(root: Path, names: list[str]) -> list[Mutant]:
    """The changes of these names.

    Raises:
        SystemExit: one of them is none of the project as it stands.
    """
    paths = {name.partition(":")[0] for name in names}
    there = [path for path in sorted(paths) if (root / path).is_file()]
    known = {each.name: each for path in there for each in mutants(root, path)}
    known |= {each.name: each for each in undefended(root)}
    missing = [name for name in names if name not in known]
    if missing:
        raise SystemExit(f"no such change: {', '.join(missing)}")
    return [known[name] for name in names]


def _tried(chosen: list[Mutant], tests: list[str]) -> int:
    """Try changes of the project as it stands: 0 where the tests notice each."""
    with tempfile.TemporaryDirectory() as place:
        copy = copied(ROOT, Path(place) / "copy")
        if not fresh(copy, None, tests, 600.0):
            print("the tests fail without any change")
            return 1
        unnoticed = [each for each in chosen if fresh(copy, each, tests, 600.0)]
    for each in chosen:
        print(f"{'not noticed' if each in unnoticed else 'noticed'}: {each.name}  "
              f"{each.was!r} -> {each.text!r}")  # fmt: skip
    return 1 if unnoticed else 0


def _project(place: Path) -> Path:
    """The project as it stood when the work began."""
    return place if place.exists() else copied(ROOT, place)


def copied(project: Path, place: Path) -> Path:
    """A copy of the project that may be changed; what a killed run left changed is as it was."""
    if (project / ".git").exists():
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=project, capture_output=True, check=True,
        ).stdout.split(b"\0")  # fmt: skip
        files = [project / os.fsdecode(name) for name in names if name]
    else:
        files = list(project.rglob("*"))
    for file in files:
        target = place / file.relative_to(project)
        if file.is_file() and not (target.exists() and target.read_bytes() == file.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    return place


class Run:
    """All changes that were chosen, and what became of each so far.

    Attributes:
        results: For each change that was tried, by its name, the verdict.
    """

    def __init__(
        self, chosen: list[Mutant], known: Covered, copies: list[Path], work: Path, seconds: float
    ) -> None:
        self._chosen, self._known, self._copies, self._work = chosen, known, copies, work
        self._ends = time.monotonic() + seconds
        self._tried: dict[str, float] = {}  # the seconds of tests that each was given
        self._kills: Counter[tuple[str, str]] = Counter()  # of a file, by a test
        self.results: dict[str, Verdict] = {}
        self._kept = work / "results.jsonl"
        if self._kept.exists():
            for line in self._kept.read_text(encoding="utf-8").splitlines():
                read = json.loads(line)
                self._note(read.pop("name"), read.pop("enough"), Verdict(**read))

    def round(self, enough: float) -> None:
        """Try each change that nothing noticed yet, with so many seconds of tests."""
        left = [
            each
            for each in self._chosen
            if each.name not in self.results
            or (self.results[each.name].result == "survived" and self._tried[each.name] < enough)
        ]
        if not left:
            return
        free: Queue[Trials] = Queue()
        for copy in self._copies:
            free.put(Trials(copy, tests_of(copy), self._work / "trials.txt"))
        with ThreadPoolExecutor(len(self._copies)) as pool:
            list(pool.map(partial(self._try, free, enough), left))
        while not free.empty():
            free.get().close()

    def _try(self, free: Queue[Trials], enough: float, mutant: Mutant) -> None:
        if time.monotonic() > self._ends:
            return
        tests = self._tests(mutant, enough)
        begun = time.monotonic()
        trials = free.get()
        try:
            verdict = Verdict("not run")
            if tests:
                verdict = trials.judge(mutant, tests, self._known.seconds)
            if verdict.result == "unpatchable":
                verdict = trials.judge_afresh(mutant, tests)
        finally:
            free.put(trials)
        self._note(mutant.name, enough, verdict)
        with self._kept.open("a", encoding="utf-8") as file:
            line = {"name": mutant.name, "enough": enough} | asdict(verdict)
            file.write(json.dumps(line) + "\n")
        took = time.monotonic() - begun
        done = f"{len(self.results)}/{len(self._chosen)} {took:5.1f} s  {verdict.result:9}"
        print(f"{done} {mutant.name}  {mutant.was!r} -> {mutant.text!r}  {verdict.by}", flush=True)

    def _tests(self, mutant: Mutant, enough: float) -> list[str]:
        """The tests that run its line, as many as time allows.

        The test that is known to notice it comes first; then what noticed a change of the same file
        before, then the quickest; tests of other rooms count as slow.
        """
        seconds, room = self._known.seconds, _room(mutant)
        chosen, whole = [mutant.test] if mutant.test else [], 0.0

        def price(test: str) -> float:
            near = f"/{room}/" in test
            return seconds[test] * (1 if near else 4) / (1 + self._kills[mutant.path, test])

        for test in sorted(self._known.of(mutant.path, mutant.line), key=price):
            if test == mutant.test:
                continue
            whole += seconds[test]
            if chosen and whole > enough:
                break
            chosen.append(test)
        return chosen

    def _note(self, name: str, enough: float, verdict: Verdict) -> None:
        self.results[name] = verdict
        self._tried[name] = enough
        if verdict.by:
            self._kills[name.partition(":")[0], verdict.by] += 1


def report(chosen: list[Mutant], results: dict[str, Verdict]) -> str:
    """A table of what became of them, and those that nothing noticed."""
    tried = [each for each in chosen if each.name in results]
    rooms = Counter(_room(each) for each in tried)
    noticed = Counter(_room(each) for each in tried if results[each.name].result in NOTICED)
    lines = ["| room | mutants | noticed |", "| --- | ---: | ---: |"]
    lines += [f"| {room} | {rooms[room]} | {noticed[room]} |" for room in sorted(rooms)]
    whole, good = rooms.total(), noticed.total()
    lines += [f"| all | {whole} | {good} ({good / max(whole, 1):.0%}) |", ""]
    for each in tried:
        result = results[each.name].result
        if result not in NOTICED:
            lines.append(f"* `{each.name}` {result}: `{each.was}` -> `{each.text}`")
    return "\n".join(lines)


def unguarded(chosen: list[Mutant], results: dict[str, Verdict]) -> list[Mutant]:
    """The guards that were taken away, and no test noticed it."""
    return [
        each for each in chosen
        if is_guard(each.path, each.kind) and each.name in results
        and results[each.name].result not in NOTICED
    ]  # fmt: skip


def _room(mutant: Mutant) -> str:
    parts = mutant.path.split("/")
    return parts[2] if parts[1] == "protocols" else parts[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
