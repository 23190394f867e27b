"""Makes the collaboration of a scenario and the company that carries it out: a process per participant.

The processes are started, watched and ended together. Each runs this module: it waits with ``acp wait``,
edits the documents in stages, appends with ``acp append``, and repeats that until the collaboration is
over. What it prints is its log.
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
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import acp_core
from acp_core.files import atomic
from acp_core.model.action_spec import Field, Kind, QuerySpec
from acp_core.model.clock import utc_now
from acp_core.model.errors import AcpError
from acp_core.model.text import clean_line
from acp_core.person.paths import state_folder
from acp_core.protocols.folder.rehearsal import scenario as rehearsal_scenario
from acp_core.protocols.folder.rehearsal.scenario import (
    PlayedScenario,
    Scenario,
    Step,
    Write,
    load,
    names,
)
from acp_core.protocols.folder.schema.records import V2
from acp_core.protocols.kit.parser import parse
from acp_core.rehearsal import Rehearsal, RehearsalError

DEFAULT = "order-retries"
OVERHEAD = 30.0  # seconds that starting commands may take on a busy machine
PARTICIPANT = "acp_core.protocols.folder.rehearsal.rehearse"


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


ACP = (sys.executable, "-P", "-m", "acp_core")
SLICE = 20  # seconds of one `acp wait`: nothing that outlives its participant does so for longer
OVER = ("phase: completed", "phase: blocked")


def run(*words: str) -> tuple[int, str]:
    """Run one command of acp; its exit code and what it printed."""
    ended = subprocess.run(
        [*ACP, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    return ended.returncode, ended.stdout


class Stuck(AcpError):
    """The participant cannot go on; the message is one line that says why."""


class Player:
    """One participant of a scenario, at work in a folder."""

    def __init__(
        self, scenario: Scenario, name: str, folder: Path, drafts: Path, speed: float
    ) -> None:
        self._scenario = scenario
        self._name = name
        self._folder = folder
        self._played = PlayedScenario(scenario, folder)
        self._drafts = drafts
        self._speed = speed

    def play(self) -> None:
        """Take every turn until the collaboration is over.

        Raises:
            Stuck: a command refused, or a file is not what it should be.
        """
        while self._wait():
            step = self._next_step()
            if step is None:
                raise Stuck("it is my turn, and the scenario says nothing more")
            try:
                self._take_turn(step)
            except Stuck:
                # A person may have taken the turn meanwhile, or blocked the collaboration.
                if self._next_step() is step and not self._is_over():
                    raise
                log("another participant was faster")

    def _wait(self) -> bool:
        """Wait for the turn; False when the collaboration is over."""
        interval = max(0.05, min(1.0, 1 / self._speed))
        while True:
            code, output = self._acp("wait", "--interval", f"{interval:g}", "--timeout", str(SLICE))
            if code == 0:
                return not _says_over(output)
            if code != 1:
                raise Stuck(f"acp wait ended with {code}: {_last_line(output)}")

    def _is_over(self) -> bool:
        return _says_over(self._acp("next")[1])

    def _next_step(self) -> Step | None:
        """The first step that the log does not hold yet."""
        done = Counter(event for _, event, sender in self._played.events() if sender == self._name)
        for step in self._scenario.steps_of(self._name):
            if not done[step.event]:
                return step
            done[step.event] -= 1
        return None

    def _take_turn(self, step: Step) -> None:
        self._pause(step.think)
        reply_to = self._played.latest(step.reply_to)
        options = ["--reply-to", str(reply_to), "--doc", step.doc]
        for write in step.writes:
            self._write(write, reply_to)
        if step.review is not None:
            draft = self._drafts / f"{self._name}-review-of-{reply_to}.md"
            draft.write_text(self._played.fill(step.review, reply_to), encoding="utf-8")
            options += ["--review-file", str(draft)]
        if step.role:
            options += ["--role", step.role]
        if step.freeze:
            options += ["--sha256", self._played.sha256()]
        self._append(step.event, step.summary, *options)

    def give_up(self, reason: str) -> None:
        """Say in the collaboration that this participant cannot go on, if that is possible."""
        try:
            last = self._played.events()[-1][0]
            summary = f"{self._name} cannot continue: {reason}"[:300]
            self._append("blocked", summary, "--reply-to", str(last))
        except (Stuck, OSError, LookupError, ValueError) as error:
            log(f"could not report this: {error}")

    def _append(self, event: str, summary: str, *options: str) -> None:
        code, output = self._acp("append", "--event", event, "--summary", summary, *options)
        if code not in (0, 4):  # 4: appended, though somebody wrote without the lock
            raise Stuck(f"acp append {event} ended with {code}: {_last_line(output)}")

    def _acp(self, command: str, *options: str) -> tuple[int, str]:
        """Run one command of acp as this participant; its exit code and what it printed."""
        arguments = [command, "--folder", str(self._folder), "--participant", self._name, *options]
        log(f"$ acp {' '.join(arguments)}")
        code, output = run(*arguments)
        log(output.rstrip())
        return code, output

    def _write(self, write: Write, reply_to: int) -> None:
        """Edit a file in stages, at the pace of the scenario."""
        path, old, new = self._played.edit(write, reply_to)
        path.parent.mkdir(exist_ok=True)
        stages = rehearsal_scenario.stages(old, new)
        log(f"editing {write.file} in {len(stages)} stages")
        for text in stages:
            self._pause(write.seconds / len(stages))
            atomic.replace(path, text.encode(), sync=False)

    def _pause(self, seconds: float) -> None:
        time.sleep(seconds / self._speed)


def _says_over(output: str) -> bool:
    return any(line in OVER for line in output.splitlines())


def _last_line(output: str) -> str:
    return (output.strip().splitlines() or ["no output"])[-1]


def log(text: str) -> None:
    """One entry of the log, with the time."""
    print(f"{utc_now():%H:%M:%S} {text}", flush=True)


def end_with_parent() -> None:
    """End this process and everything that it started as soon as its standard input ends.

    Whoever started it holds the other end of that pipe and never writes: it ends when that
    process does, even by a kill that nobody can catch.
    """

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True, name="parent").start()


_SPEC = QuerySpec(
    "rehearsal",
    "Play a participant until the collaboration is over.",
    fields=(
        Field("scenario", help="Which story.", required=True),
        Field("participant", help="Whom.", required=True),
        Field("folder", help="The collaboration.", kind=Kind.FOLDER, required=True),
        Field("drafts", help="Folder for private drafts.", kind=Kind.FOLDER, required=True),
        Field("speed", help="How many times as fast.", kind=Kind.DECIMAL, default=1.0),
        Field("supervised", help="End when standard input does.", kind=Kind.FLAG),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a participant until the collaboration is over; 1 when it could not go on."""
    given = parse(_SPEC, _SPEC.name, sys.argv[1:] if argv is None else argv)
    if given.supervised:
        end_with_parent()
    scenario = load(given.scenario)
    folder, drafts = Path(given.folder), Path(given.drafts)
    player = Player(scenario, given.participant, folder, drafts, given.speed)
    try:
        player.play()
    except (Stuck, OSError, ValueError, LookupError) as error:
        reason = str(error) or type(error).__name__
        log(f"cannot continue: {reason}")
        player.give_up(reason)
        return 1
    log("over")
    return 0


if __name__ == "__main__":
    sys.exit(main())
