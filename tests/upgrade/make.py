"""``python -m tests.upgrade.make PATH_TO_ACP``: record the sample, with the 0.1.0 that is named.

It was recorded with 0.1.0, started by its own ``acp``, on Linux with Python 3.11: everything in
`tests.upgrade.scenes` is brought about in an empty folder; then all processes are killed at once,
as when a machine goes down, and what stands there is packed as it is. Only the path of the folder
(``/home/me``), that of the program, the machine's name and the owner's token are replaced.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import psutil

from tests.upgrade import places, scenes
from tests.upgrade.scenes import House

SAMPLE = Path(__file__).with_name("sample-0.1.0.tar.gz")
BASE, HOST, BIN = "/home/me", "workstation", "/usr/bin"
_TOKEN = re.compile(rb'("owner_token": ")[^"]*')


def make(acp: str) -> None:
    """Bring everything about, and write the sample."""
    with tempfile.TemporaryDirectory() as place:
        house = House(Path(place), [acp])
        scenes.prepare(house)
        try:
            for scene in (scenes.ended_loops, scenes.loops, scenes.watchers, scenes.turn,
                          scenes.orchestrator, scenes.network_agent):  # fmt: skip
                scene(house)
            noted = {"version": house.run("--version").split()[-1], "processes": commands(house)}
        finally:
            end(house)
        (house.folder / "about.json").write_text(json.dumps(noted, indent=1) + "\n")
        plain(house, acp)
        pack(house.folder)


def ours(house: House) -> list[psutil.Process]:
    """The processes that were started for a house, by their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("ACP_STATE") == str(house.state):
                found.append(process)
        except psutil.Error:
            continue
    return found


def commands(house: House) -> list[list[str]]:
    """The command lines under which 0.1.0's own processes run, from the module on."""
    lines = [process.cmdline() for process in ours(house)]
    return sorted(line[line.index("-m") :] for line in lines if "-m" in line)


def end(house: House) -> None:
    """Kill everything at once."""
    left = ours(house)
    for process in left:  # so that none sees the end of another
        process.suspend()
    for process in left:
        process.kill()
    psutil.wait_procs(left, 10)


def plain(house: House, acp: str) -> None:
    """Take out what belongs to the machine on which it was recorded."""
    host = (f'"host": "{os.uname().nodename}"', f'"host": "{HOST}"')
    program = (os.path.dirname(os.path.abspath(acp)), BIN)
    places.carry(house.folder, str(house.folder), BASE, host, program)
    [agent] = house.state.glob("wire/*/agent.json")
    agent.write_bytes(_TOKEN.sub(rb"\1secret", agent.read_bytes()))


def pack(folder: Path) -> None:
    """Write the archive."""

    def taken(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if member.name.endswith("-shm") or "/.cache" in member.name:
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(SAMPLE, "w:gz") as archive:
        for name in ("about.json", "config", "state", "work"):
            archive.add(folder / name, name, filter=taken)


def about() -> dict[str, Any]:
    """What was noted: the program's ``version``, and the command lines of its ``processes``."""
    with tarfile.open(SAMPLE) as archive:
        file = archive.extractfile("about.json")
        assert file is not None
        noted: dict[str, Any] = json.loads(file.read())
    return noted


def unpack(folder: Path) -> None:
    """Put the sample into an empty folder, as if it had always stood there."""
    base = folder.resolve()
    with tarfile.open(SAMPLE) as archive:
        archive.extractall(base, filter="data")
    host = (f'"host": "{HOST}"', f'"host": "{os.uname().nodename}"')
    places.carry(base, BASE, str(base), host)


if __name__ == "__main__":
    make(sys.argv[1])
