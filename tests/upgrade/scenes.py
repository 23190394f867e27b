"""Everything that acp keeps and runs for a person, brought about by its commands alone.

Nothing of acp is imported: whichever program is named does it, in processes of its own.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

AGENT = """#!/bin/sh
# Stands in for an agent's program: "hold" stays until it is stopped, "fail" ends at once.
echo "agent: $1"
case "$1" in
    fail) echo "no such model" >&2; exit 3 ;;
    *) exec sleep 600 ;;
esac
"""
SETTINGS = """\
theme = "ansi-dark"
humans = ["me"]
utc = true

[notify]
desktop = false
quiet = "22:00-07:00"

[loops]
retries = 0
pause = 2

[recording]
on = true
days = 90
megabytes = 50

[presets.local]
title = "A model on this machine"
program = "sh"
args = ["-c", "sleep 600"]

[agents]
writer = "http://192.0.2.7:7901"

[keys]
"fleet.new" = "ctrl+n"
"""
PATIENCE = 60.0
WAITS = "hold"


class Failed(Exception):
    """A command did not do what a scene needs; the message says what it said."""


class House:
    """A folder with collaborations (``work``), and with a person's state and settings.

    Args:
        folder: Where all of it stands; made where it is not there.
        acp: The words that run the program.
        known: The variables that it gets besides; by default those of this process.
    """

    def __init__(
        self, folder: Path, acp: Sequence[str], known: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder.resolve()
        self.words = tuple(acp)
        self.work, self.state = self.folder / "work", self.folder / "state"
        self.config = self.folder / "config"
        for each in (self.work, self.state, self.config):
            each.mkdir(parents=True, exist_ok=True)
        self.agent = self.work / "agent.sh"
        self.env = {
            **(os.environ if known is None else known),
            "ACP_STATE": str(self.state),
            "ACP_CONFIG": str(self.config),
            "HOME": str(self.folder),
            "NO_COLOR": "1",
        }

    def with_variables(self, **more: str) -> Self:
        """The same house, whose programs get more variables."""
        other = copy.copy(self)
        other.env = {**self.env, **more}
        return other

    def run(self, *words: object, codes: Sequence[int] = (0,)) -> str:
        """Run a command of acp to its end; what it printed.

        Raises:
            Failed: it ended with another exit code.
        """
        ended = self.result(*words)
        if ended.returncode not in codes:
            said = f"{ended.stdout}{ended.stderr}".strip()
            raise Failed(f"acp {' '.join(map(str, words))}: exit {ended.returncode}: {said}")
        return ended.stdout

    def result(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run a command of acp to its end, however it ends."""
        return subprocess.run(
            [*self.words, *map(str, words)], env=self.env, cwd=self.work, text=True,
            capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False,
        )  # fmt: skip

    def json(self, *words: object, codes: Sequence[int] = (0,)) -> dict[str, Any]:
        """What a command of acp prints as JSON."""
        found: dict[str, Any] = json.loads(self.run(*words, codes=codes))
        return found

    def loops(self) -> dict[tuple[str, str], dict[str, Any]]:
        """All loops by the name of their collaboration's folder and their participant."""
        told = self.json("ps", "--all", "--json")["loops"]
        return {(Path(each["collaboration"]).name, each["participant"]): each for each in told}


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Wait until something is so.

    Raises:
        Failed: it did not become so.
    """
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"waited too long for {what}")
        time.sleep(0.05)


def prepare(house: House) -> None:
    """The stand-in program, and the person's settings."""
    house.agent.write_text(AGENT)
    house.agent.chmod(0o755)
    (house.config / "config.toml").write_text(SETTINGS)


def begin(house: House, name: str, reader: str = "reader") -> Path:
    """A collaboration of two in which the reader is waited for."""
    folder = house.work / name
    people = ("--participant", "owner", "--participant", reader)
    house.run("init", "--folder", folder, *people, "--objective", f"Decide on {name}",
              "--completion", "It is decided")  # fmt: skip
    proposal = folder / "proposal.md"
    proposal.write_text(f"{proposal.read_text()}\nInvalidate by key.\n")
    house.run("append", "--folder", folder, "--participant", "owner", "--event",
              "proposal_submitted", "--summary", "First draft", "--reply-to", "1")  # fmt: skip
    return folder


def loops(house: House) -> Path:
    """A loop that runs a program, one that waits, and a message that waits for the first."""
    folder = begin(house, "checkout")
    house.run("record", "--once", folder)
    house.run("launch", folder, "reader", "--", house.agent, WAITS)
    house.run("launch", folder, "owner", "--", house.agent, WAITS)
    key = ("checkout", "reader")
    wait_for(lambda: house.loops()[key]["phase"] == "running", "the reader's program")
    wait_for(lambda: house.loops()[key]["run"]["lines"], "what the program prints")
    house.run("nudge", folder, "reader", "Look at question 3")
    return folder


def ended_loops(house: House) -> Path:
    """A loop that was stopped, one that ended with its collaboration, all of that put away."""
    folder = begin(house, "retries")
    house.run("launch", folder, "reader", "--", house.agent, WAITS)
    house.run("stop", folder, "reader")
    house.run("launch", folder, "owner", "--", house.agent, WAITS)
    house.run("record", "--once", folder)
    house.run("append", "--folder", folder, "--participant", "reader", "--event", "blocked",
              "--summary", "The service is gone", "--reply-to", "2")  # fmt: skip
    wait_for(lambda: not house.loops()["retries", "owner"]["alive"], "the end of a loop")
    house.run("record", "--once", folder)
    house.run("ack", folder, "--all", "--note", "waiting for legal")
    house.run("archive", folder)
    return folder


def watchers(house: House) -> Path:
    """A run of sub-agents of which one works, watched by a process of its own."""
    folder = house.work / "queues"
    house.run("workspaces", "init", folder, "--task", "a comparison of queues", "-a",
              "ann=Compare what they cost.", "-a", "ben=Compare how fast they are.")  # fmt: skip
    house.run("workspaces", "dispatch", folder, "--limit", "1", "--detach", "--", house.agent,
              WAITS, codes=(0, 1))  # fmt: skip
    wait_for(
        lambda: (house.loops().get(("queues", "ann"), {}).get("run") or {}).get("alive"), "ann"
    )
    return folder


def turn(house: House) -> Path:
    """A governed run whose first turn a program takes in the background."""
    folder = house.work / "lamp"
    folder.mkdir()
    git = ("git", "-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run([*git, "init", "-q", "--template="], cwd=folder, check=True)
    house.run("governed", "init", folder, "--goal", "Light the hall", "--agent",
              f"pm=../agent.sh {WAITS}")  # fmt: skip
    subprocess.run([*git, "add", "-A"], cwd=folder, check=True)
    subprocess.run([*git, "commit", "-qm", "Begin"], cwd=folder, check=True)
    house.run("act", folder, "step", "--yes")
    logs = house.state.glob
    wait_for(lambda: any(each.stat().st_size for each in logs("governed/*/stdout.log")), "pm")
    return folder


def orchestrator(house: House) -> Path:
    """A development cycle that is conducted, with its first agent at work."""
    folder = house.work / "report"
    folder.mkdir()
    house.run("cycle", "start", "Export the report as CSV", "--folder", folder, "--command",
              f"{house.agent} {WAITS}")  # fmt: skip
    wait_for(
        lambda: any(
            name == "report" and (each["run"] or {}).get("alive")
            for (name, _), each in house.loops().items()
        ),
        "the cycle's first agent",
    )  # fmt: skip
    return folder


def network_agent(house: House) -> subprocess.Popen[str]:
    """An agent on the network that runs, with a message in its store; whoever asks ends it."""
    words = ("agent", "--name", "Writer", "--port", "0", "--http-port", "0", "--json")
    started = subprocess.Popen(
        [*house.words, *words], env=house.env, cwd=house.work, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for(lambda: list(house.state.glob("wire/Writer/agent.json")), "the agent")
    house.run("wire", "send", "Writer", "Summarize the report", "--from", "me")
    return started


ALL = (ended_loops, loops, watchers, turn, orchestrator, network_agent)
