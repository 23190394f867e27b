"""The processes of the sample, played: real ones, with the records and locks that 0.1.0 had."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil

from tests.upgrade import places
from tests.upgrade.make import about
from tests.upgrade.scenes import WAITS, House

CONDUCTOR = """
import fcntl, signal, sys
held = [open(path, "a+b") for path in sys.argv[1].split(":")]
for file in held:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("ready", flush=True)
signal.pause()
"""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@contextlib.contextmanager
def at_work(house: House) -> Iterator[list[psutil.Popen]]:
    """Everything that ran when the sample was recorded runs; what is left is ended afterwards."""
    with ExitStack() as ending:
        stage = _Stage(house, ending)
        stage.loop("checkout", {"reader": True, "owner": False}, "loops.detached", apart=True)
        stage.loop("queues", {"ann": True}, "workspaces.run.detached")
        stage.loop("report", {"orchestrator": False, "ra": True}, "cycle.run.process")
        stage.turn("lamp")
        stage.agent("Writer")
        yield stage.started


class _Stage:
    """Starts processes, and puts them into the records."""

    def __init__(self, house: House, ending: ExitStack) -> None:
        self._house, self._ending = house, ending
        self._lines: list[list[str]] = about()["processes"]
        self.started: list[psutil.Popen] = []

    def loop(
        self, name: str, participants: dict[str, bool], module: str, apart: bool = False
    ) -> None:
        """A conductor that holds the locks of participants, with the programs of some of them.

        Args:
            name: The collaboration's folder.
            participants: Whether the program of each is at work.
            module: The end of the module's name in the recorded command line.
            apart: Each has a process of its own.
        """
        folder = self._house.work / name
        records = {who: places.loop(self._house.state, folder, who) for who in participants}
        groups = [[each] for each in records.values()] if apart else [list(records.values())]
        for group in groups:
            conductor = self._conductor([place / "lock" for place in group], module)
            for place in group:
                self._note(place / "loop.json", conductor, "process")
        for who, works in participants.items():
            if works:
                program = self._start([str(self._house.agent), WAITS])
                self._note(records[who] / "loop.json", program, "run", "process")

    def turn(self, name: str) -> None:
        """The program of a governed turn."""
        root = self._house.work / name
        [turn] = [each.name for each in root.glob(".agentxchain/dispatch/turns/*")]
        record = places.process_of_turn(self._house.state, root, turn)
        self._note(record, self._start([str(self._house.agent), WAITS]))

    def agent(self, name: str) -> None:
        """An agent on the network, which holds its lock."""
        folder = self._house.state / "wire" / name
        process = self._conductor([folder / "lock"])
        record = json.loads((folder / "agent.json").read_text())
        (folder / "agent.json").write_text(json.dumps(record | {"pid": process.pid}))

    def _conductor(self, locks: list[Path], module: str = "") -> psutil.Popen:
        line = next((each for each in self._lines if module and each[1].endswith(module)), [])
        held = ":".join(map(str, locks))
        process = self._start([sys.executable, "-c", CONDUCTOR, held, *line])
        assert process.stdout.readline() == b"ready\n"
        return process

    def _start(self, words: list[str]) -> psutil.Popen:
        process = psutil.Popen(words, stdout=subprocess.PIPE, start_new_session=True)
        self._ending.callback(_end, process)
        self.started.append(process)
        return process

    def _note(self, path: Path, process: psutil.Popen, *where: str) -> None:
        """Put a process into a record, as 0.1.0 names it."""
        record = json.loads(path.read_text())
        inner = record
        for name in where:
            inner = inner[name]
        assert {"pid", "created", "since_boot", "boot"} <= inner.keys()
        created = process.create_time()
        boot = _BOOT.read_text().strip() if _BOOT.exists() else ""
        inner |= {"pid": process.pid, "created": created, "boot": boot,
                  "since_boot": round(created - psutil.boot_time(), 3)}  # fmt: skip
        path.write_text(json.dumps(record))


def _end(process: psutil.Popen) -> None:
    with contextlib.suppress(psutil.Error):
        process.kill()
    process.wait(10)
    if process.stdout:
        process.stdout.close()
