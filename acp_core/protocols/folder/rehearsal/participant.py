"""A rehearsal participant: a process that takes its turns with the commands that agents use.

It waits with ``acp wait``, edits the documents in stages, appends with ``acp append``, and
repeats that until the collaboration is over. What it prints is its log.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from acp_core.files import atomic
from acp_core.model.action_spec import Field, Kind, QuerySpec
from acp_core.model.clock import utc_now
from acp_core.model.errors import AcpError
from acp_core.protocols.folder.rehearsal import scenario as rehearsal_scenario
from acp_core.protocols.folder.rehearsal.scenario import PlayedScenario, Scenario, Step, Write, load
from acp_core.protocols.kit.parser import parse

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
