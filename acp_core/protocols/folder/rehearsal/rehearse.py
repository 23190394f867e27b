"""Makes the collaboration of a scenario and the company that carries it out: a process per participant.

The processes are started, watched and ended together.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import acp_core
from acp_core.files import atomic
from acp_core.model.clock import utc_now
from acp_core.model.text import clean_line
from acp_core.person.paths import state_folder
from acp_core.protocols.folder.rehearsal.scenario import Scenario, load, names
from acp_core.protocols.folder.schema import V2
from acp_core.rehearsal import Rehearsal, RehearsalError

DEFAULT = "order-retries"
OVERHEAD = 30.0  # seconds that starting commands may take on a busy machine
PARTICIPANT = "acp_core.protocols.folder.rehearsal.participant"


class FolderRehearsal(Rehearsal):
    """A scenario in a folder, with a company of processes."""

    def __init__(self, scenario: Scenario, folder: Path, logs: Path, speed: float) -> None:
        self.location = str(folder)
        self.logs = str(logs)
        longest = max(step.think + sum(w.seconds for w in step.writes) for step in scenario.steps)
        self.pause = longest / speed + OVERHEAD
        self._company = Company(
            {
                name: python(
                    PARTICIPANT,
                    *("--scenario", scenario.name, "--participant", name, "--folder", str(folder)),
                    *("--drafts", str(logs), "--speed", f"{speed:g}", "--supervised"),
                )
                for name in scenario.participants
            },
            logs,
        )

    def start(self) -> None:
        """See `Rehearsal.start`.

        Raises:
            RehearsalError: a process cannot be started.
        """
        try:
            self._company.start()
        except OSError as error:
            raise RehearsalError(f"a participant cannot be started: {error}") from None

    def running(self) -> tuple[str, ...]:
        """See `Rehearsal.running`."""
        return self._company.running()

    def failures(self) -> tuple[str, ...]:
        """See `Rehearsal.failures`."""
        return self._company.failures()

    def stop(self) -> None:
        """See `Rehearsal.stop`."""
        self._company.stop()


def rehearse(
    folder: Path | None = None, *, scenario: str = "", speed: float = 1.0
) -> FolderRehearsal:
    """Make the collaboration in ``folder`` with ``acp init``; nobody acts in it before `Rehearsal.start`.

    Args:
        folder: where; it need not exist. None: in a new temporary folder, which is kept.
        scenario: its name; "" for the usual one.
        speed: how many times as fast as written in the scenario.

    Raises:
        RehearsalError: there is no such scenario, or a folder cannot be written.
    """
    if scenario and scenario not in names():
        raise RehearsalError(f"unknown scenario {scenario!r} (scenarios: {', '.join(names())})")
    chosen = load(scenario or DEFAULT)
    logs = state_folder() / "demo" / f"{utc_now():%Y-%m-%d-%H%M%S}-{os.getpid()}"
    try:
        atomic.private_folder(logs)
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="acp-demo-"), chosen.name)
    except OSError as error:
        raise RehearsalError(f"no folder for a rehearsal: {error}") from None
    folder = Path(os.path.abspath(folder))
    begin(chosen, folder)
    return FolderRehearsal(chosen, folder, logs, speed)


def begin(scenario: Scenario, folder: Path) -> None:
    """Make the collaboration of a scenario with ``acp init``.

    Raises:
        RehearsalError: that is not possible.
    """
    options = ["--folder", str(folder), "--objective", scenario.objective]
    for name in scenario.participants:
        options += ["--participant", name]
    for gate in scenario.gates:
        options += ["--completion", gate]
    if scenario.dialect == V2 and scenario.deliverable:
        options += ["--primary-deliverable-type", scenario.deliverable.type]
        options += ["--primary-deliverable-file", scenario.deliverable.file]
    ended = subprocess.run(
        python("acp_core", "init", *options),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env=environment(),
        check=False,
    )
    if ended.returncode:
        said = (ended.stderr.strip() or ended.stdout.strip()).splitlines()
        raise RehearsalError(said[-1] if said else f"acp init ended with {ended.returncode}")


GRACE = 2.0  # seconds between asking processes to end and killing them
TAIL = 4096  # bytes at the end of a log in which its last line is looked for


class Company:
    """Processes that live no longer than this one.

    Each is the leader of a process group of its own and reads from a pipe that only this
    process holds: when this process ends, however it ends, the pipe does, and the
    participant ends its whole group (see `participant.end_with_parent`).
    """

    def __init__(self, commands: Mapping[str, Sequence[str]], logs: Path) -> None:
        self._commands = commands
        self._logs = logs
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._ended: dict[str, int] = {}

    def start(self) -> None:
        """Start every process; where one cannot be started, the others are ended again.

        Raises:
            OSError: one of them cannot be started.
        """
        try:
            for name, command in self._commands.items():
                with open(self.log(name), "ab", opener=atomic.private_opener) as log:
                    process = self._processes[name] = _start(command, log)
                # Who ends while nobody asks is no zombie for as long as the dashboard is open.
                threading.Thread(target=process.wait, name=f"acp-{name}", daemon=True).start()
        except OSError:
            self.stop()
            raise

    def log(self, name: str) -> Path:
        """The file that holds what a participant's process prints."""
        return self._logs / f"{name}.log"

    def running(self) -> tuple[str, ...]:
        """The participants whose process is running."""
        return tuple(name for name in self._processes if self._exit_code(name) is None)

    def failures(self) -> tuple[str, ...]:
        """A sentence for each participant whose process ended by itself, and not well."""
        return tuple(
            f"{name}'s process ended {_how(code)}: {self._last_words(name)} (log: {self.log(name)})"
            for name, code in sorted(self._ended.items())
            if code
        )

    def stop(self) -> None:
        """End every process group: ask, and after a while kill."""
        left = [self._processes[name] for name in self.running()]
        for process in left:
            _signal(process, signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        for process in left:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            _signal(process, signal.SIGKILL)
            process.wait()
        for process in self._processes.values():
            if process.stdin:
                process.stdin.close()
        self._processes.clear()

    def _exit_code(self, name: str) -> int | None:
        code = self._processes[name].poll()
        if code is not None and name not in self._ended:
            self._ended[name] = code
            _signal(self._processes[name], signal.SIGKILL)  # what it may have left behind
        return code

    def _last_words(self, name: str) -> str:
        try:
            with self.log(name).open("rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - TAIL))
                lines = log.read().decode(errors="replace").strip().splitlines()
        except OSError as error:
            return f"its log cannot be read ({error.strerror})"
        return clean_line(lines[-1]) if lines else "it printed nothing"


def _start(command: Sequence[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=subprocess.STDOUT,
        env=environment(),
        start_new_session=True,
    )


def environment() -> dict[str, str]:
    """The environment in which ``python -P -m acp_core...`` runs this very acp."""
    ours = str(Path(acp_core.__file__).parent.parent)
    others = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([ours, others] if others else [ours]),
            "PYTHONUTF8": "1"}  # fmt: skip


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal the whole group; nobody is left to hear it where that has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _how(code: int) -> str:
    if code >= 0:
        return f"with exit {code}"
    with contextlib.suppress(ValueError):
        return f"by {signal.Signals(-code).name}"
    return f"by signal {-code}"


def python(module: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs one of acp's own modules."""
    return (sys.executable, "-P", "-m", module, *arguments)
