"""The program of today meets what an earlier one started: it sees that, doubles nothing of it, and stops it."""

from __future__ import annotations

from typing import Any

import psutil

from tests.upgrade.scenes import WAITS, House, wait_for
from tests.upgrade.scenes_0_2 import PARKED

GONE = (
    "killed",
    "ended",
    "no agent",
    "unsupervised",
)  # what causes say of processes that are no more


PROGRAMS = {("checkout", "reader"), ("queues", "ann"), ("report", "ra"), ("login", "reader")}
"""Loops whose program was at work when the sample was recorded, by folder and participant."""
OTHERS = {("checkout", "owner"), ("report", "orchestrator"), ("prices", "reader"), ("search", "reader"),
          ("tokens", "owner"), ("export", "reader")}  # fmt: skip
"""Loops that only waited."""
SHOWN = {"checkout", "queues", "lamp", "Export the report as CSV", "Writer", "login", "prices", "search",
         "tokens", "export"}  # fmt: skip
"""Names of collaborations in which something ran."""


def sees(house: House) -> None:
    """All conductors and all programs are alive, wherever they are asked for."""
    loops = house.loops()
    assert {key for key, loop in loops.items() if loop["alive"]} == PROGRAMS | OTHERS
    runs = {key: loop["run"] or {} for key, loop in loops.items()}
    assert {key for key, run in runs.items() if run.get("alive")} == PROGRAMS
    told = house.json("status", "--json")["collaborations"]
    live = {each["name"]: each for each in told if each["status"] == "active"}
    assert live.keys() >= SHOWN, told
    headlines = [cause["headline"] for name in SHOWN for cause in live[name]["causes"]]
    assert not [each for each in headlines if any(word in each for word in GONE)], headlines


def doubles_nothing(house: House) -> None:
    """Who is asked to start what runs already refuses, or has nothing to start."""
    before = running(house)
    agent = (house.agent, WAITS)
    folders = {name: house.work / name for name in ("checkout", "queues", "lamp", "report")}
    for words, said in (
        (("launch", folders["checkout"], "reader", "--", *agent), "already has a loop"),
        (("launch", folders["checkout"], "owner"), "already has a loop"),
        (("loop", "--folder", folders["checkout"], "--participant", "reader", "--", *agent),
         "already has a loop"),
        (("cycle", "run", "--folder", folders["report"]), "an orchestrator is already running"),
        (("governed", "step", folders["lamp"]), "already assigned"),
        (("act", folders["lamp"], "step", "--yes"), "is not possible"),
        (("agent", "--name", "Writer", "--port", "0", "--http-port", "0"), "is already running"),
    ):  # fmt: skip
        ended = house.result(*words)
        assert ended.returncode == 2, (words, ended)
        assert said in ended.stderr + ended.stdout, (words, ended)
    for name, who in (PROGRAMS | OTHERS) - {
        ("queues", "ann"),
        ("report", "ra"),
        ("report", "orchestrator"),
    }:
        ended = house.result("launch", house.work / name, who, "--", *agent)
        assert (ended.returncode, "already has a loop" in ended.stdout) == (2, True), (name, ended)
    house.run("workspaces", "dispatch", folders["queues"], "--limit", "1", "--detach", codes=(0, 1))
    assert running(house) == before


def stops(house: House) -> None:
    """All of it is stopped, by the command of each."""
    for name in sorted({name for name, _ in PROGRAMS | OTHERS}):
        house.run("stop", house.work / name)
    house.run("stop", house.work / "queues")  # a watcher that ends has the next agent dispatched
    house.run("governed", "stop", house.work / "lamp")
    assert not [key for key, loop in house.loops().items() if loop["alive"]]
    [lamp] = house.json("status", house.work / "lamp", "--json")["collaborations"]
    assert lamp["causes"], lamp


def goes_on(house: House) -> None:
    """A loop is started again as it was asked for then, and stopped."""
    folder = house.work / "checkout"
    house.run("launch", folder, "reader")
    wait_for(lambda: _program(house.loops()["checkout", "reader"]), "the program")
    house.run("stop", folder, "reader")
    assert not house.loops()["checkout", "reader"]["alive"]


def _program(loop: dict[str, Any]) -> bool:
    return bool((loop["run"] or {}).get("alive"))


def is_parked(process: psutil.Process) -> bool:
    """Whether a loop is the shell that waits in its place."""
    return PARKED in process.cmdline()


def running(house: House) -> set[int]:
    """The processes that belong to a house: those with its state folder."""
    found = set()
    for process in psutil.process_iter():
        try:
            if process.environ().get("ACP_STATE") == str(house.state):
                found.add(process.pid)
        except psutil.Error:
            continue
    return found
