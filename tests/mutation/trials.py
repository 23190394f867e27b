"""Trials of changes: run tests with a change and without, and conclude what noticed it.

A busy machine makes a test slow, or fail. So a change counts as noticed only where the same test
passes without it at once, and fails again with it; as hung, only where the test takes ten times as
long with it, twice, as it took without it in between.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.mutation.mutants import Mutant
from tests.mutation.serving import CHANNEL, MARK

STARTING = 600.0  # seconds until all tests are collected
PATIENCE = 600.0  # seconds for all tests in a fresh process
LEAST = 10.0  # seconds that every test may take
TIMES = 10.0  # how often the time that it took without the change


@dataclass(frozen=True)
class Outcome:
    """What became of a run of tests.

    Attributes:
        how: ``passed``, ``failed``, ``slow`` or ``unpatchable``.
        test: The test that failed, or was slow.
        why: How it failed.
        seconds: How long the last test took.
    """

    how: str
    test: str = ""
    why: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """What is concluded: ``killed``, ``hung`` or ``survived``, by which test, and how."""

    result: str
    by: str = ""
    why: str = ""


class Trials:
    """A copy of the project with a process that has collected its tests, and is forked."""

    def __init__(self, copy: Path, tests: list[str], log: Path) -> None:
        self._copy = copy
        self._places = Path(tempfile.mkdtemp(prefix="trials-"))
        self.unsteady: set[str] = set()  # tests that failed without a change, too
        ours, theirs = socket.socketpair()
        self._channel = ours
        self._rest = b""
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-p", "tests.mutation.serving", "-p", "no:cacheprovider",
                 "-n", "0", "--tb=line", "--continue-on-collection-errors", *tests],
                cwd=copy, env=environment(copy) | {CHANNEL: str(theirs.fileno())}, pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        theirs.close()
        self.known = set(self._line(STARTING)["tests"])  # type: ignore[call-overload]

    def close(self) -> None:
        """End the process."""
        self._channel.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._places, ignore_errors=True)

    def judge(self, mutant: Mutant, tests: list[str], seconds: dict[str, float]) -> Verdict:
        """Run tests with a change until one notices it.

        Args:
            mutant: The change.
            tests: The tests, in their order.
            seconds: How long each takes.
        """
        left = [each for each in tests if each in self.known and each not in self.unsteady]
        while left:
            outcome = self.run(mutant, left, seconds)
            if outcome.how == "unpatchable":
                return Verdict("unpatchable")
            if outcome.how == "passed":
                break
            verdict = self._confirmed(mutant, outcome, seconds)
            if verdict is not None:
                return verdict
            left = left[left.index(outcome.test) + 1 :]
        return Verdict("survived")

    def judge_afresh(self, mutant: Mutant, tests: list[str]) -> Verdict:
        """The same in processes that load the changed file; says not which test noticed it."""
        for change, noticed in ((mutant, True), (None, False), (mutant, True)):
            if fresh(self._copy, change, tests, PATIENCE) is noticed:
                return Verdict("survived")
        return Verdict("killed", why="in a fresh process")

    def _confirmed(
        self, mutant: Mutant, outcome: Outcome, seconds: dict[str, float]
    ) -> Verdict | None:
        """What a failure is worth: the test without the change, then with it again."""
        test = [outcome.test]
        sound = self.run(None, test, seconds)
        if sound.how != "passed":
            self.unsteady.add(outcome.test)
            return None
        for _ in range(2):
            again = self.run(mutant, test, {outcome.test: sound.seconds})
            if again.how == outcome.how == "slow":
                return Verdict("hung", outcome.test, f"{sound.seconds:.2f} s without it")
            if again.how in ("failed", "slow"):
                return Verdict("killed", outcome.test, outcome.why or again.why)
        return None

    def run(self, mutant: Mutant | None, tests: list[str], seconds: dict[str, float]) -> Outcome:
        """Run tests until one fails or takes too long, with a change or without one."""
        place = Path(tempfile.mkdtemp(dir=self._places))
        path = self._copy / mutant.path if mutant else None
        source = path.read_text(encoding="utf-8") if path else None
        changed = mutant.apply(source) if mutant and source is not None else None
        request = {
            "tests": tests, "place": str(place), "mark": place.name,
            "path": str(path), "source": source, "changed": changed,
        }  # fmt: skip
        with _written(path, source, changed):
            self._channel.sendall(json.dumps(request).encode() + b"\n")
            outcome = self._followed(seconds)
            _end_all(place.name)
        shutil.rmtree(place, ignore_errors=True)
        return outcome

    def _followed(self, seconds: dict[str, float]) -> Outcome:
        child, test, took, limit = 0, "", 0.0, STARTING
        outcome = Outcome("passed")
        while True:
            try:
                line = self._line(limit)
            except TimeoutError:
                outcome, limit = Outcome("slow", test), STARTING
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
                continue
            match line:
                case {"pid": int(pid)}:
                    child = pid
                case {"begins": str(test)}:
                    limit = max(LEAST, TIMES * seconds.get(test, 1.0))
                case {"passed": float(took)}:
                    pass
                case {"failed": str(why)} if outcome.how == "passed":
                    outcome = Outcome("failed", test, why)
                case {"unpatchable": True}:
                    outcome = Outcome("unpatchable")
                case {"ended": int(code)}:
                    if outcome.how == "passed" and code:
                        return Outcome("failed", test, f"ended with {code}")
                    return outcome if outcome.how != "passed" else Outcome("passed", seconds=took)

    def _line(self, limit: float) -> dict[str, object]:
        """The next line of the process; ``TimeoutError`` after so many seconds."""
        ends = time.monotonic() + limit
        while b"\n" not in self._rest:
            left = ends - time.monotonic()
            if not select.select([self._channel], [], [], max(0.0, left))[0]:
                raise TimeoutError
            read = self._channel.recv(1 << 20)
            if not read:
                raise RuntimeError("the process that runs the tests has ended; see its log")
            self._rest += read
        line, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, object] = json.loads(line)
        return found


def fresh(copy: Path, mutant: Mutant | None, tests: list[str], patience: float) -> bool:
    """Whether tests pass in a process of their own, with a change or without one."""
    path = copy / mutant.path if mutant else None
    source = path.read_text(encoding="utf-8") if path else None
    changed = mutant.apply(source) if mutant and source is not None else None
    place = Path(tempfile.mkdtemp(prefix="trials-"))
    with _written(path, source, changed):
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-n", "0", "--tb=line",
             "-m", "slow or not slow", *tests],
            cwd=copy, env=environment(copy) | {MARK: place.name, "PYTEST_DEBUG_TEMPROOT": str(place)},
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(patience) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False
        finally:
            _end_all(place.name)
            shutil.rmtree(place, ignore_errors=True)


def environment(copy: Path) -> dict[str, str]:
    """What the tests of a copy run with: its modules, compiled beside it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return kept | {
        "PYTHONPATH": str(copy),
        "PYTHONPYCACHEPREFIX": str(copy.with_name(f"{copy.name}-compiled")),
    }


@contextlib.contextmanager
def _written(path: Path | None, source: str | None, changed: str | None) -> Iterator[None]:
    """The change in the file, for processes that load it; never with a time that it had before.

    What is compiled belongs to a file's time and size, and a change may have the same size.
    """
    if path is None or source is None or changed is None:
        yield
        return
    try:
        _put(path, changed)
        yield
    finally:
        _put(path, source)


def _put(path: Path, text: str) -> None:
    before = path.stat().st_mtime_ns
    path.write_text(text, encoding="utf-8")
    later = (before // 1_000_000_000 + 2) * 1_000_000_000
    os.utime(path, ns=(later, later))


def _end_all(mark: str) -> None:
    """Kill what a trial has left behind: every process with its mark in the environment."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark:
                process.kill()
