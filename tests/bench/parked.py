"""What parked loops cost: programs that wait until it is their turn.

The memory that is only theirs and the processor seconds of many loops and of the supervisor that
looks for them, beside one empty Textual program that runs during the same time, and how many
inotify instances they hold.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from acp_core.agents import presets, registry
from acp_core.loops import launch
from acp_core.loops.launch import Spec
from tests.bench.bench import Bench
from tests.bench.collaborations import begin as make
from tests.bench.figures import Aim, Figure
from tests.bench.programs import EMPTY, terminal, used

LOOPS, COLLABORATIONS = 200, 50
MEMORY = Aim("200 loops in 100 MB", 100.0)
PROCESSOR = Aim("0.1 % for each hundred", 0.1 * LOOPS / 100)
PATIENCE = 120.0  # s until the last loop is parked
SETTLE, WATCHED = 5.0, 12.0  # s: what starting costs is not what waiting costs
BESIDE = "an empty Textual program"
READERS = ("reader1", "reader2", "reader3", "reader4")  # the owner alone is waited for


def measure(bench: Bench) -> Iterator[Figure]:
    """The loops are started once; the time watched is cut into as many parts as there are runs."""
    bench.say(f"starting {LOOPS} loops")
    try:
        loops = begin(bench.path("parked"), COLLABORATIONS, LOOPS)
        with terminal(EMPTY) as shown:
            shown.wait_for("painted")
            shown.run(SETTLE)
            costs, beside = [], []
            for _ in range(bench.runs):
                before = seconds(loops), used(shown.pid).processor
                shown.run(WATCHED)
                costs.append(100 * (seconds(loops) - before[0]) / WATCHED)
                beside.append(100 * (used(shown.pid).processor - before[1]) / WATCHED)
            memory = sum(process.memory_full_info().uss for process in loops)
            empty = used(shown.pid).memory / 1e6
        held = inotify_instances(loops)
    finally:
        for each in registry.runners():
            registry.stop(each.folder, each.participant, grace=0.5)
    cost, other = statistics.median(costs), statistics.median(beside)
    name = f"{LOOPS} parked loops of {COLLABORATIONS} collaborations"
    yield Figure("parked", f"{name}, processor of all", "%", cost, BESIDE, other, PROCESSOR)
    yield Figure("parked", "memory of all", "MB", memory / 1e6, BESIDE, empty, MEMORY)
    yield Figure("parked", "processes of all", "", len(loops), "one for each loop", LOOPS)
    yield Figure(
        "parked", "inotify instances of all loops", "", held, "the system's limit", limit()
    )


def limit() -> float:
    """How many inotify instances a user may have."""
    try:
        return float(Path("/proc/sys/fs/inotify/max_user_instances").read_text())
    except (OSError, ValueError):
        return 0.0


def begin(base: Path, collaborations: int, loops: int) -> list[psutil.Process]:
    """Start so many loops, evenly over the collaborations; returns their processes once parked."""
    never = presets.any_command(["sleep", "600"])
    places = [make(base / f"c{number}", "owner", *READERS) for number in range(collaborations)]
    for number in range(loops):
        asked = Spec(
            folder=str(places[number % collaborations]),
            participant=READERS[number // collaborations],
        )
        launch.start(launch.plan(asked, never, ask_version=False).spec)
    until = time.monotonic() + PATIENCE
    while (found := running()) and time.monotonic() < until:
        if sum("acp-parked" in each.cmdline() for each in found) == loops:
            break
        time.sleep(1.0)
    return found


def running() -> list[psutil.Process]:
    """All processes of this state folder: loops, what looks for them, and what they started."""
    found = []
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            ours = each.environ().get("ACP_STATE") == os.environ["ACP_STATE"]
            if ours and any("acp_core.loops" in word for word in each.cmdline()):
                found.append(each)
    return found


def seconds(processes: list[psutil.Process]) -> float:
    """CPU seconds that they used so far."""
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)


def inotify_instances(processes: list[psutil.Process]) -> int:
    """How many they hold, all together."""
    found = 0
    for process in processes:
        folder = f"/proc/{process.pid}/fd"
        links = (os.readlink(os.path.join(folder, name)) for name in os.listdir(folder))
        found += sum(link == "anon_inode:inotify" for link in links)
    return found
