"""The processes of a sample, played: real ones, with the records and locks that they had then."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatch
from pathlib import Path

import psutil

from tests.upgrade import places
from tests.upgrade.scenes import WAITS, House, wait_for
from tests.upgrade.scenes_0_2 import PARKED

CONDUCTOR = """
import fcntl, signal, sys
held = [open(path, "a+b") for path in sys.argv[1].split(":") if path]
for file in held:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("ready", flush=True)
signal.pause()
"""
SHELL = """
import fcntl, os, shutil, sys
claim, own, *words = sys.argv[1:]
for path, number in ((claim, 8), (own, 9)):
    file = os.open(path, os.O_RDWR)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.dup2(file, number)
os.execv(shutil.which("dash") or "/bin/sh", words)
"""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@contextlib.contextmanager
def at_work(house: House) -> Iterator[Stage]:
    """Everything that ran when the sample was recorded runs; what is left is ended afterwards."""
    with ExitStack() as ending:
        stage = Stage(house, ending)
        stage.shells()
        stage.loop("checkout", {"reader": True}, "loops.detached")
        stage.loop("queues", {"ann": True}, "workspaces.*.detached")
        stage.loop("report", {"orchestrator": False, "ra": True}, "cycle.*.process")
        stage.turn("lamp")
        stage.agent("Writer")
        stage.loop("export", {"reader": False}, "loops.detached")
        stage.session("login", "reader")
        stage.postpone("search", "reader")
        yield stage


class Stage:
    """Starts processes, and puts them into the records.

    Attributes:
        parked: the shells of loops that are parked, by folder and participant.
        unstopped: processes that no command of acp stops: they end by themselves, or by a signal.
    """

    def __init__(self, house: House, ending: ExitStack) -> None:
        self._house, self._ending = house, ending
        self._about = json.loads((house.folder / "about.json").read_text())
        self.parked: dict[tuple[str, str], psutil.Popen] = {}
        self.unstopped: set[int] = set()

    def shells(self) -> None:
        """The loops that are parked, each as the shell that it was."""
        for words in self._about["shells"]:
            place = Path(words[-1])
            record = json.loads((place / "loop.json").read_text())
            claim = _claim(Path(record["folder"]), record["participant"])
            process = self._start(
                [sys.executable, "-c", SHELL, str(claim), str(place / "lock"), *words]
            )
            wait_for(lambda each=process: PARKED in each.cmdline(), "a shell")
            self.parked[Path(record["folder"]).name, record["participant"]] = process
            self._note(place / "loop.json", process, "process")
            _claimed(claim, process)

    def session(self, name: str, participant: str) -> None:
        """A loop whose program is a live session: who holds it, and the agent."""
        folder = self._house.work / name
        place = places.loop(self._house.state, folder, participant)
        mark = {"ACP_LIVE_SESSION": str(place)}
        runner = self._conductor([], "loops.live", mark)
        agent = self._start([str(self._house.agent), WAITS], mark)
        conductor = self._conductor([place / "lock", _claim(folder, participant)], "loops.detached")
        self._note(place / "loop.json", conductor, "process")
        self._note(place / "loop.json", runner, "run", "process")
        self._note(place / "live/session.json", runner, "process")
        self._note(place / "live/session.json", agent, "agent")
        _claimed(_claim(folder, participant), conductor, runner)
        [request] = self._house.state.glob("permissions/*.json")
        self._note(request, runner, "publisher")

    def postpone(self, name: str, participant: str) -> None:
        """A limit ends an hour after the sample was recorded: let it end an hour after now."""
        folder = self._house.work / name
        place = places.loop(self._house.state, folder, participant) / "loop.json"
        record = json.loads(place.read_text())
        again = datetime.now(UTC) + timedelta(hours=1)
        place.write_text(json.dumps(record | {"retry_at": again.isoformat()}))

    def loop(self, name: str, participants: dict[str, bool], module: str) -> None:
        """A conductor that holds the locks of participants, with the programs of some of them.

        Args:
            name: The collaboration's folder.
            participants: Whether the program of each is at work.
            module: The end of the module's name in the recorded command line.
        """
        folder = self._house.work / name
        records = {who: places.loop(self._house.state, folder, who) for who in participants}
        claims = [each for who in participants if (each := self._claim_of(folder, who)).exists()]
        conductor = self._conductor([each / "lock" for each in records.values()] + claims, module)
        for who, works in participants.items():
            self._note(records[who] / "loop.json", conductor, "process")
            program = None
            if works:
                program = self._start([str(self._house.agent), WAITS])
                self._note(records[who] / "loop.json", program, "run", "process")
            if (claim := self._claim_of(folder, who)).exists():
                _claimed(claim, conductor, program)

    def _claim_of(self, folder: Path, who: str) -> Path:
        return _claim(folder, "" if who == "orchestrator" else who)

    def turn(self, name: str) -> None:
        """The program of a governed turn."""
        root = self._house.work / name
        [turn] = [each.name for each in root.glob(".agentxchain/dispatch/turns/*")]
        record = places.process_of_turn(self._house.state, root, turn)
        program = self._start([str(self._house.agent), WAITS])
        self._note(record, program)
        if (claim := root / f".acp/run/turns/{turn}.json").exists():
            attending = self._conductor([], "governed.*.attend")
            _claimed(claim, attending, program)
            self.unstopped.add(attending.pid)

    def agent(self, name: str) -> None:
        """An agent on the network, which holds its lock."""
        folder = self._house.state / "wire" / name
        process = self._conductor([folder / "lock"])
        self.unstopped.add(process.pid)
        record = json.loads((folder / "agent.json").read_text())
        (folder / "agent.json").write_text(json.dumps(record | {"pid": process.pid}))

    def _conductor(
        self, locks: list[Path], module: str = "", more: Mapping[str, str] | None = None
    ) -> psutil.Popen:
        lines: list[list[str]] = self._about["processes"]
        line = next((each for each in lines if module and fnmatch(each[1], f"*{module}")), [])
        held = ":".join(map(str, locks))
        process = self._start([sys.executable, "-c", CONDUCTOR, held, *line], more)
        assert process.stdout.readline() == b"ready\n"
        return process

    def _start(self, words: list[str], more: Mapping[str, str] | None = None) -> psutil.Popen:
        process = psutil.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            env={**self._house.env, **(more or {})},
        )  # fmt: skip
        self._ending.callback(_end, process)
        return process

    def _note(self, path: Path, process: psutil.Popen, *where: str) -> None:
        """Put a process into a record, as the program named it."""
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


def _claim(folder: Path, participant: str) -> Path:
    """The lock of a claim to play a participant; of that to conduct where it is ""."""
    return folder / ".acp/run" / (f"loops/{participant}.lock" if participant else "conduct.lock")


def _claimed(lock: Path, conductor: psutil.Popen, child: psutil.Popen | None = None) -> None:
    """Put a process into the record of a claim, with the program that it has started."""
    path = lock.with_suffix(".json")
    record = json.loads(path.read_text())
    known = {"process": _named(conductor), "child": child and _named(child)}
    path.write_text(json.dumps(record | known))


def _named(process: psutil.Popen) -> dict[str, object]:
    """A process as the record of a claim names it."""
    stat = Path(f"/proc/{process.pid}/stat")
    started = int(stat.read_bytes().rpartition(b")")[2].split()[19]) if stat.exists() else -1
    boot = _BOOT.read_text().strip() if _BOOT.exists() else ""
    return {"host": os.uname().nodename, "boot": boot, "pid": process.pid, "started": started}


def _end(process: psutil.Popen) -> None:
    with contextlib.suppress(psutil.Error):
        process.kill()
    process.wait(10)
    for each in (process.stdin, process.stdout):
        if each:
            each.close()
