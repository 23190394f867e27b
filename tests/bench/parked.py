"""What parked loops cost: ``python -m tests.bench.parked``.

CPU seconds of many loops that wait for their turns, beside one empty Textual program that runs
during the same minute, and how many inotify instances the loops hold.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import tempfile
import time
from pathlib import Path

import psutil

from acp_core.loops import launch
from acp_core.loops.spec import Spec
from acp_core.programs import presets, registry
from acp_core.protocols.folder import commands
from tests.bench.__main__ import EMPTY
from tests.terminal import Terminal

READERS = ("reader1", "reader2", "reader3")  # the owner alone is waited for


def make(folder: Path) -> Path:
    """A collaboration that waits for its owner's proposal."""
    words = ["--folder", str(folder), "--objective", "Measure", "--completion", "Measured"]
    for name in ("owner", *READERS):
        words += ["--participant", name]
    with contextlib.redirect_stdout(io.StringIO()):
        assert commands.init(words) == 0
    return folder


def begin(base: Path, collaborations: int, loops: int) -> list[psutil.Process]:
    """Start so many parked loops, evenly over the collaborations; returns their processes."""
    if loops > len(READERS) * collaborations:
        raise SystemExit(f"a collaboration has {len(READERS)} parked loops at most here")
    never = presets.any_command(["sleep", "600"])
    places = [make(base / f"c{number}") for number in range(collaborations)]
    for number in range(loops):
        asked = Spec(
            folder=str(places[number % collaborations]),
            participant=READERS[number // collaborations],
        )
        launch.start(launch.plan(asked, never, ask_version=False).spec)
    while len(registry.runners()) < loops:
        time.sleep(0.1)
    return running()


def running() -> list[psutil.Process]:
    """The loops' processes, and whatever they started."""
    found = [psutil.Process(each.pid) for each in registry.runners() if each.alive]
    return [*found, *(child for process in found for child in process.children(recursive=True))]


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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collaborations", type=int, default=20)
    parser.add_argument("--loops", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    figures: dict[str, float] = {"load at start": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as name:
        os.environ["ACP_STATE"] = os.path.join(name, "state")
        os.environ["ACP_CONFIG"] = os.path.join(name, "config")
        try:
            loops = begin(Path(name), options.collaborations, options.loops)
            with Terminal(EMPTY) as terminal:
                terminal.wait_for("painted")
                empty = [psutil.Process(terminal.pid)]
                terminal.run(5)  # what starting costs is not what waiting costs
                before = seconds(loops), seconds(empty)
                terminal.run(options.seconds)
                figures["loops"] = len(loops)
                figures["CPU seconds of all loops"] = seconds(loops) - before[0]
                figures["CPU seconds of an empty Textual program"] = seconds(empty) - before[1]
                figures["inotify instances of all loops"] = inotify_instances(loops)
                memory = sum(process.memory_full_info().uss for process in loops)
                figures["memory of a loop of its own, MiB"] = memory / len(loops) / 2**20
        finally:
            for each in registry.runners():
                registry.stop(each.folder, each.participant, grace=0.5)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
