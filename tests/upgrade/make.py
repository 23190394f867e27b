"""``python -m tests.upgrade.make PATH_TO_ACP``: record the sample anew, with the acp that is named.

Everything in its scenes is brought about in an empty folder; then all processes are killed at once,
as when a machine goes down, and what stands there is packed as it is. Only what belongs to the
machine is replaced: the path of the folder (``/home/me``), that of the program, and the owner's
token. The machine's name and the account's are told to the program as others (`scenes_0_2.NAMES`):
no one can replace them in what has a digest.

It needs git and PostgreSQL's server beside acp with its extras, and
no network.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import psutil

from tests.upgrade import leaks, places
from tests.upgrade.samples import BASE, BIN, LIBRARY, SAMPLE, Sample
from tests.upgrade.scenes import Failed, House
from tests.upgrade.scenes_0_2 import PARKED

_TOKEN = re.compile(r"\b(?:tok|own)_[0-9a-f]{32,}")
_LEFT_OUT = (".cache", "names", "pg_service.conf")
_WHERE = "import acp_core, os; print(os.path.dirname(os.path.dirname(acp_core.__file__)))"


def make(sample: Sample, acp: str) -> None:
    """Bring everything about, and write the sample."""
    acp = os.path.abspath(acp)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        house = House(folder, [acp], sample.variables(acp, folder))
        version = house.run("--version").split()[-1]
        if not version.startswith(sample.takes):
            sys.exit(f"the sample of {sample.version} is not made with acp {version}")
        try:
            for scene in (*sample.begun, *sample.scenes):
                print(scene.__name__, flush=True)
                scene(house)
            noted = {"version": version, **commands(house)}
        finally:
            end(house)
        (folder / "about.json").write_text(json.dumps(noted, indent=1) + "\n")
        plain(house, acp)
        for each in _LEFT_OUT:
            remove(folder / each)
        if own := leaks.found(folder, place, os.path.dirname(acp)):
            raise Failed(f"this belongs to the machine: {own}")
        pack(sample, folder)
    print(f"{sample.archive}: {sample.archive.stat().st_size} bytes")


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


def commands(house: House) -> dict[str, list[list[str]]]:
    """The command lines under which acp's own processes run: from the module on, and whole those of shells."""
    lines = [process.cmdline() for process in ours(house)]
    shells = sorted(line for line in lines if PARKED in line)
    modules = [line[line.index("-m") :] for line in lines if "-m" in line]
    return {
        "processes": sorted(line for line in modules if line[1].startswith("acp_core")),
        "shells": shells,
    }


def end(house: House) -> None:
    """Kill everything at once."""
    while left := ours(house):
        for process in left:  # so that none sees the end of another
            with contextlib.suppress(psutil.Error):
                process.suspend()
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, 10)


def plain(house: House, acp: str) -> None:
    """Take out what belongs to the machine on which it was recorded."""
    python = str(Path(acp).with_name("python"))
    asked = subprocess.run([python, "-P", "-c", _WHERE], capture_output=True, text=True, check=True)
    program = ((os.path.dirname(acp), BIN), (asked.stdout.strip(), LIBRARY))
    places.carry(house.folder, str(house.folder), BASE, *program)
    for link in (each for each in house.folder.rglob("*") if each.is_symlink()):
        to = os.path.relpath(os.readlink(link), link.parent)
        link.unlink()
        link.symlink_to(to)
    if left := places.unknown(house.folder, BASE):
        raise Failed(f"nothing tells how these are named elsewhere: {', '.join(left)}")
    for store in house.state.glob("wire/*/wire.sqlite3"):
        agent = store.with_name("agent.json")
        tokens = {each: _plain(each) for each in _TOKEN.findall(agent.read_text())}
        places.carry_store(store, *tokens.items())
        agent.write_text(_TOKEN.sub(lambda found: _plain(found[0]), agent.read_text()))


def _plain(token: str) -> str:
    """What stands in the place of a token: as long, and not one."""
    kind, _, rest = token.partition("_")
    return f"{kind}_{'0' * len(rest)}"


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def pack(sample: Sample, folder: Path) -> None:
    """Write the archive."""

    def taken(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if member.name.endswith("-shm"):
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(sample.archive, "w:xz") as archive:
        for name in sorted(each.name for each in folder.iterdir()):
            archive.add(folder / name, name, filter=taken)


if __name__ == "__main__":
    make(SAMPLE, sys.argv[1])
