"""What a day with acp is made of: hosts, what was promised to whom, and what everybody was told.

A `Watcher` asks every host again and again what needs a person. A need that nobody planted is an
error; so is one that was planted and never told.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from tests.agents.support import ROOT
from tests.stores.hosts import Host
from tests.support.real_programs import Programs
from tests.support.terminal import Terminal
from tests.support.waiting import until

PATIENCE = 300.0  # seconds; nothing passes or fails by being quicker
_BOOT = re.compile(r'("boot": ?")[^"]*"')


class Machine(Host):
    """A host with agent programs on it; everything that it runs is known by its state folder."""

    def __init__(self, name: str, place: Path, programs: Programs) -> None:
        super().__init__(name, place)
        self.env |= {"PATH": programs.path, "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}

    def acp(self, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command to its end; several threads may do so at once."""
        return subprocess.run(
            self.words(*words), env=self.env, cwd=self.home, text=True, input=typed,
            capture_output=True, check=False, timeout=PATIENCE,
        )  # fmt: skip

    def words(self, *words: object, module: str = "acp_core") -> list[str]:
        """The words of a command of acp."""
        return [sys.executable, "-P", "-m", module, *map(str, words)]

    def begin(self, *words: object) -> subprocess.Popen[str]:
        """A command of acp, at work."""
        return subprocess.Popen(
            self.words(*words), env=self.env, cwd=self.home, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def json(self, *words: object) -> dict[str, Any]:
        """What a command prints with ``--json``, whatever its exit code."""
        ran = self.acp(*map(str, words), "--json")
        assert ran.stdout, (self.name, words, ran.returncode, ran.stderr)
        found: dict[str, Any] = json.loads(ran.stdout)
        return found

    def record(self, *places: Path) -> None:
        """Have everything recorded that happens in these places from now on."""
        subprocess.Popen(
            self.words("record", *places), env=self.env, cwd=self.home, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def dashboard(self, *places: Path) -> Terminal:
        """The dashboard in a terminal of its own."""
        words = self.words(*places, module="acp_tui")
        return Terminal(words, env=self.env, cwd=self.home, columns=150, rows=45)

    def needs(self, *places: Path) -> list[dict[str, Any]]:
        """What needs a person, each with the collaboration's name."""
        rows = self.json("status", *places)["collaborations"]
        return [need | {"name": row["name"]} for row in rows for need in row["needs"]]

    def allow(self, place: Path) -> None:
        """Allow, from a shell, whatever agents ask for at this moment."""
        for need in self.needs(place):
            if request := need["given"].get("request"):
                self.acp("answer", str(place), request, "allow")  # it may be over by now

    def allow_all(self, place: Path, over: Callable[[], object]) -> None:
        """The same until something is over."""

        def looks() -> object:
            self.allow(place)
            return over()

        until(looks, "the end", PATIENCE)

    def processes(self) -> list[psutil.Process]:
        """Everything that runs for this host, by what it was started with."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                mine = process.environ().get("ACP_STATE") == self.env["ACP_STATE"]
                if mine and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def lose_power(self, *places: Path) -> None:
        """Everything ends at once; what was noted by it was noted before an earlier start."""
        while left := self.processes():
            for process in left:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(left, 5)
        noted = [*Path(self.env["ACP_STATE"]).rglob("*.json")]
        for place in places:
            noted += (place / ".acp" / "run").rglob("*.json")
        for path in noted:
            path.write_text(_BOOT.sub(r'\1another-start"', path.read_text()))

    def boot(self) -> None:
        """What the system runs after a start where `acp launch --at-boot` was confirmed."""
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "acp_core.loops.interrupted"],
            env=self.env, cwd=self.home, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr


class Watcher:
    """Asks, until it is left, what needs a person; remembers everything that was told.

    Args:
        planted: the collaboration and the code of each need that the story brings about.
        passing: of those that are true for a moment, and may be missed.
    """

    def __init__(self, planted: set[tuple[str, str]], passing: set[tuple[str, str]]) -> None:
        self.planted, self.passing = planted, passing
        self.told: dict[tuple[str, str], set[str]] = {}
        self._asked: list[tuple[Machine, tuple[Path, ...]]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.failed: list[BaseException] = []

    def also(self, host: Machine, *places: Path) -> None:
        """Ask this host, too; it records what happens there."""
        self._asked.append((host, places))
        host.record(*places)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(PATIENCE)

    def _watch(self) -> None:
        while not self._over.wait(3.0):
            for host, places in [*self._asked]:
                try:
                    for need in host.needs(*places):
                        self.told.setdefault((need["name"], need["code"]), set()).add(need["text"])
                except BaseException as error:  # told by `check`, not lost in this thread
                    self.failed.append(error)

    def until_told(self, name: str, words: str) -> None:
        """Wait until a need with these words was told of a collaboration."""

        def told() -> bool:
            texts = [text for (each, _), all in self.told.items() if each == name for text in all]
            return any(words in text for text in texts)

        until(lambda: self.failed or told(), f"{words} of {name}: {self.told}", PATIENCE)

    def check(self) -> None:
        """Fail where a need was told that nobody planted, or one was planted and never told."""
        assert not self.failed, self.failed[0]
        assert self.planted <= set(self.told) <= self.planted | self.passing, self.told


@contextlib.contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[Path]:
    """A disk of its own that is quickly full. Needs root."""
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        raise OSError(mounted.stderr)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def fill(disk: Path) -> Path:
    """Write until nothing fits on a disk any more; the file that takes its room."""
    path = disk / "films"
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))
    with contextlib.suppress(OSError), path.open("ab", buffering=0) as file:
        while True:
            file.write(b"x")
    return path


def by_keys(terminal: Terminal, host: Machine, place: Path, key: str, asks: str) -> None:
    """Open the card of what is asked, and take a verdict by a key."""
    terminal.wait_for("asks", PATIENCE)
    terminal.run(0.5)
    terminal.send("f")
    terminal.wait_for("Allow once", PATIENCE)
    terminal.run(0.5)
    terminal.send(key)
    gone(host, place, asks)


def gone(host: Machine, place: Path, asks: str) -> None:
    """Wait until nothing with these words needs anybody any more."""
    until(lambda: not told(host, place, asks), f"no {asks}", PATIENCE)


def asked(
    host: Machine, place: Path, asks: str, by: subprocess.Popen[str] | None = None
) -> dict[str, Any]:
    """Wait until something with these words needs somebody; the command that asks must not end before."""

    def needed() -> list[dict[str, Any]]:
        found = told(host, place, asks)
        if by is not None and not found and by.poll() is not None:
            raise AssertionError(f"ended with {by.returncode}: {by.communicate()[0]}")
        return found

    return until(needed, asks, PATIENCE)[0]


def told(host: Machine, place: Path, words: str) -> list[dict[str, Any]]:
    """What needs somebody, where its text holds some words."""
    return [need for need in host.needs(place) if words in need["text"]]
