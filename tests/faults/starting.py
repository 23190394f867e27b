"""Commands that start programs, killed with kill -9 at moments of chance while those work.

Killed are the command, and whoever watches over its programs, never the programs themselves: what
they did must be found again. Afterwards the same command goes on: nothing is lost, no program is at
work twice for one participant, and no work that came to its end is done again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

import psutil

from acp_core.agents import registry
from tests.agents.support import ROOT
from tests.faults.campaign import Campaign, Case
from tests.faults.looking import Ran, acp
from tests.loops import support as loops
from tests.protocols.cycle import conducting
from tests.protocols.cycle.test_killed import check as cycle_came_to_its_end
from tests.protocols.governed import playing
from tests.protocols.workspaces import running
from tests.support.waiting import until_still

_ONCE = """#!{python}
import fcntl, os, subprocess, sys, time
name = sys.argv[1]
held = open({place!r} + "/" + name, "a")
journal = os.open({place!r} + "/journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
try:
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    os.write(journal, f"twice {{name}}\\n".encode())
os.write(journal, f"begins {{name}}\\n".encode())
time.sleep({seconds})
code = subprocess.run(sys.argv[2:]).returncode
os.write(journal, f"ends {{name}} {{code}}\\n".encode())
sys.exit(code)
"""


class Watched:
    """A program that notes when it begins and ends, and whether it is at work twice under a name."""

    def __init__(self, place: Path, seconds: float) -> None:
        place.mkdir(parents=True)
        self.place = place
        self._script = place / "watched.py"
        self._script.write_text(
            _ONCE.format(python=sys.executable, place=str(place), seconds=seconds)
        )

    def words(self, name: str, *command: str) -> list[str]:
        """``command``, watched under a name."""
        return [sys.executable, str(self._script), name, *command]

    def noted(self, what: str) -> Counter[str]:
        """How often it was noted under each name."""
        with contextlib.suppress(FileNotFoundError):
            lines = (self.place / "journal").read_text().splitlines()
            return Counter(line.split()[1] for line in lines if line.startswith(f"{what} "))
        return Counter()


def starting(place: Path, seed: int) -> Iterator[Case]:
    """Rounds without an end, each of another command."""
    rounds = {"launch": _launch, "dispatch": _dispatch, "step": _step, "cycle start": _cycle}
    for number in count():
        name = list(rounds)[number % len(rounds)]
        yield Case(
            f"{name}: round {number} of seed {seed}",
            partial(_round, rounds[name], place / f"round-{number}", f"{seed}-{number}"),
        )


def _round(work: Callable[[Path, Random], None], place: Path, seed: str) -> None:
    kept = os.environ.get("ACP_STATE")
    place.mkdir(parents=True)
    os.environ["ACP_STATE"] = str(place / "state")
    try:
        work(place, Random(seed))
    finally:
        loops.stop_all()
        if kept is None:
            del os.environ["ACP_STATE"]
        else:
            os.environ["ACP_STATE"] = kept


def _killed(words: list[str], after: float) -> None:
    """Run ``acp`` as a process of its own, and kill it after so many seconds, if it still runs."""
    command = subprocess.Popen(
        [sys.executable, "-m", "acp_tui", *words], cwd=ROOT, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with contextlib.suppress(subprocess.TimeoutExpired):
        command.wait(after)
    command.kill()
    command.wait()


def _kill_watchers(chance: Random) -> None:
    """Kill some of those that watch over programs; the programs go on.

    They are gone afterwards: one that is still dying is at work for whoever comes next.
    """
    for each in registry.runners():
        if each.alive and chance.random() < 0.7:
            with contextlib.suppress(psutil.NoSuchProcess):
                watcher = psutil.Process(each.pid)
                watcher.kill()
                watcher.wait(60)


def _launch(place: Path, chance: Random) -> None:
    """Loops of three participants, until the collaboration is completed."""
    folder = loops.make(place / "run")
    watched = Watched(place / "own", 0.2)
    agent = loops.stand_in(place / "own", "agent")
    commands = {
        name: ["launch", str(folder), name, "--", *watched.words(name, agent)]
        for name in loops.PEOPLE
    }
    for _ in range(5):
        for words in commands.values():
            _killed(words, chance.uniform(0.2, 1.5))
        time.sleep(chance.uniform(0.1, 0.8))
        _kill_watchers(chance)
    for words in commands.values():
        ran = acp(*words)
        assert ran.code == 0 or "already" in ran.out + ran.err, ran
    until_still(
        lambda: loops.events(folder)[-1]["event"] == "completed",
        lambda: f"the end: {_at_work()}, {loops.events(folder)[-1]}",
        place,
    )
    until_still(lambda: not _at_work(), lambda: f"all to end: {_at_work()}", place)
    assert loops.is_valid(folder)
    events = loops.events(folder)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    said = Counter((e["from"], e["event"], e.get("reply_to")) for e in events)
    assert max(said.values()) == 1, said
    assert not watched.noted("twice"), "at work twice at the same time"


def _at_work() -> list[str]:
    """Who runs now, and in which phase."""
    return [
        f"{each.participant} {each.phase.value}"
        for each in registry.runners()
        if each.alive or each.program_alive
    ]


def _dispatch(place: Path, chance: Random) -> None:
    """Four sub-agents, one of them after another."""
    names = ("ann", "ben", "cat", "dan")
    root = running.prepare(place / "run", *names, after="dan=cat")
    own = place / "own"
    program = running.program(own, ann="slow", ben="success", cat="slow", dan="success")
    words = ["workspaces", "dispatch", str(root), "--limit", "3"]
    for _ in range(6):
        _killed([*words, "--", *program], chance.uniform(0.3, 2.2))
        _kill_watchers(chance)
    ended = running.acp(*words[1:], "--", *program)
    assert running.states(root) == dict.fromkeys(names, "success"), ended
    assert sorted(running.begun(own)) == list(names), "one began again, or never"
    returns = {each.name for each in (root / "agent-workspaces/.coord/returns").iterdir()}
    kept = {name for name in returns if not name.endswith(".acp-tmp")}  # left by a kill: no harm
    assert len(kept) == len(names), returns


def _step(place: Path, chance: Random) -> None:
    """The turns of a governed run, from its first to its end, with a human who opens the gates."""
    root = playing.repository(place / "lamp")
    watched = Watched(place / "own", 0.8)
    words = ["governed", "init", str(root), "--goal", "Light the hall"]
    for role, line in playing.agents(place / "bin").items():
        words += ["--agent", f"{role}={shlex.join(watched.words(role, *shlex.split(line)))}"]
    assert acp(*words).code == 0
    gates = ("approve-transition", "approve-transition", "approve-completion")
    for turns, approve in enumerate(gates, 1):
        for _ in range(3):
            _killed(["governed", "step", str(root)], chance.uniform(0.4, 2.5))
        _step_until_staged(root, watched)
        until_still(
            lambda n=turns: sum(watched.noted("ends").values()) >= n,
            lambda n=turns: f"program {n} to end: {_stands(root, watched)}",
            place,
        )
        assert sum(watched.noted("begins").values()) == turns, _stands(root, watched)
        assert acp("governed", "accept-turn", str(root)).code == 0
        yes = ["--as", "Olga", "--yes", "--comment", "Seen."]
        assert acp("governed", approve, str(root), *yes).code == 0
        playing.git(root, "add", "-A")
        playing.git(root, "commit", "-qm", "A phase is done", "--allow-empty")
    assert sorted(watched.noted("begins").items()) == [("dev", 1), ("pm", 1), ("qa", 1)]
    assert not watched.noted("twice")
    history = (root / ".agentxchain/history.jsonl").read_text().splitlines()
    assert [json.loads(line)["role"] for line in history] == ["pm", "dev", "qa"]


def _stands(root: Path, watched: Watched) -> str:
    """What the programs noted, and how the turns stand."""
    state = json.loads((root / ".agentxchain/state.json").read_text())
    begins, ends, twice = (dict(watched.noted(what)) for what in ("begins", "ends", "twice"))
    return f"begins {begins}, ends {ends}, twice {twice}; {state.get('active_turns')}"


def _step_until_staged(root: Path, watched: Watched) -> None:
    """Do what acp advises until a result is staged; a program that is at work is waited for."""
    ran: list[Ran] = []

    def staged() -> bool:
        ran[:] = [acp("governed", "step", str(root))]
        if "acp governed recover" in ran[0].err:
            assert acp("governed", "recover", str(root)).code == 0
        return any((root / ".agentxchain/staging").rglob("turn-result.json"))

    until_still(
        staged, lambda: f"a staged result: {ran}, {_stands(root, watched)}", watched.place.parent
    )


def _cycle(place: Path, chance: Random) -> None:
    """RA, EP, CD and VAS over two iterations."""
    root = place / "run"
    root.mkdir()
    slow = [f"sleep {chance.uniform(0.1, 0.6):.1f}", "sleep 0.2"]
    conducting.behave(root, ra=slow, ep=slow, cd=["ask ra", "buggy"], vas=slow)
    begin = ["cycle", "start", conducting.WHAT, "--cycle", conducting.ID]
    begin += ["--command", conducting.AGENT, "--folder", str(root)]
    go_on = ["cycle", "run", "--folder", str(root), "--command", conducting.AGENT]

    def next_one() -> list[str]:
        return go_on if conducting.path(root).exists() else begin

    for _ in range(5):
        _killed(next_one(), chance.uniform(0.3, 2.5))
        _kill_watchers(chance)
    ran = acp(*next_one())
    going = "is already running in this project", "is completed"
    assert ran.code == 0 or any(words in ran.err for words in going), ran
    until_still(
        lambda: not conducting.alive(root),
        lambda: f"the orchestrator to end: {_at_work()}, {conducting.runs(root)}",
        place,
    )
    cycle_came_to_its_end(root)


STARTING = Campaign(
    "starting", "launch, dispatch, step and cycle start, killed while their programs work", starting
)
