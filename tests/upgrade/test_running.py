"""Loops, watchers, turns, orchestrators and agents that an earlier version started, met by the program of today."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from acp_core.protocols import processes
from tests.upgrade import meeting
from tests.upgrade.playing import at_work
from tests.upgrade.samples import SAMPLE
from tests.upgrade.scenes import House, wait_for
from tests.upgrade.support import planted

ROOT = Path(__file__).resolve().parents[2]
NAMES_0_2 = {
    "acp_core.loops.detached", "acp_core.loops.supervisor", "acp_core.loops.due", "acp_core.loops.live",
    "acp_core.loops.asked", "acp_core.loops.interrupted", "acp_core.fleet.reader",
    "acp_core.protocols.workspaces.conduct.detached", "acp_core.protocols.cycle.conduct.process",
    "acp_core.protocols.governed.conduct.attend", "acp_core.protocols.folder.conduct.synced",
}  # fmt: skip
REACHED = """\
import sys

print(__spec__.name, *sys.argv[1:], sys.stdin.read())
"""


@pytest.mark.slow
def test_what_the_old_program_started_is_seen_never_doubled_and_stopped(tmp_path: Path) -> None:
    house = planted(tmp_path)
    with at_work(house) as stage:
        meeting.sees(house)
        meeting.doubles_nothing(house)
        meeting.stops(house)
        assert meeting.running(house) <= stage.unstopped
        meeting.goes_on(house)


@pytest.mark.slow
def test_an_idle_loop_whose_supervisor_is_gone_becomes_a_loop_of_today(tmp_path: Path) -> None:
    house = planted(tmp_path)
    with at_work(house) as stage:
        shell = stage.parked["tokens", "owner"]
        before = house.loops()["tokens", "owner"]
        log = Path(before["log"])
        shell.stdin.close()  # as its supervisor's connection ends, killed by the upgrade
        wait_for(lambda: os.path.basename(shell.cmdline()[0]) != "sh", "the loop to go on")
        wait_for(lambda: meeting.is_parked(shell), "it to be parked again")
        after = house.loops()["tokens", "owner"]
        assert (after["alive"], after["pid"]) == (True, shell.pid)
        assert log.read_text().count("starts") == 1
        house.run("stop", house.work / "tokens")
        assert not house.loops()["tokens", "owner"]["alive"]


def lines() -> list[list[str]]:
    """The command lines under which a version ran its processes, each once, without what is given."""
    found: list[list[str]] = []
    for line in SAMPLE.about()["processes"]:
        if line[:2] not in found:
            found.append(line[:2])
    return found


def start(*words: str, path: Path = ROOT, given: str = "{}") -> subprocess.CompletedProcess[str]:
    """Start a process in the background as earlier versions do, but with nothing that it needs."""
    return subprocess.run(
        [sys.executable, "-P", *words], env={**os.environ, "PYTHONPATH": str(path)}, text=True,
        capture_output=True, input=given, check=False,
    )  # fmt: skip


def former(each: processes.Process) -> list[str]:
    """The names of a process, the oldest first."""
    return [f"acp_core.{name.replace('/', '.')}" for name in each.former]


def test_every_name_by_which_a_process_was_started_is_known() -> None:
    for line in lines():
        ended = start(*line)
        assert "No module named" not in ended.stderr, line
        assert ended.returncode in (0, 1, 2), line  # a supervisor that serves nobody ends well
    assert {former(each)[-1] for each in processes.ALL} == NAMES_0_2
    assert {name for _, name in lines()} <= NAMES_0_2


def moved(place: Path, *kinds: processes.Process, stub: str = "") -> dict[str, str]:
    """A copy of acp in which modules stand in another room; where each of them stands there.

    Args:
        place: where the package is put.
        kinds: what moves.
        stub: what stands there instead of what stood in the old place.
    """
    package = place / "acp_core"
    shutil.copytree(ROOT / "acp_core", package, ignore=shutil.ignore_patterns("__pycache__"))
    room = package / "another_room"
    room.mkdir()
    (room / "__init__.py").touch()
    table = place / f"{processes.__name__.replace('.', '/')}.py"
    text, now = table.read_text(), {}
    for number, each in enumerate(kinds):
        old, new = place / f"{each.module.replace('.', '/')}.py", room / f"moved_{number}.py"
        if stub:
            old.unlink()
            new.write_text(stub)
        else:
            shutil.copy(old, new)
        now[each.module] = f"acp_core.another_room.moved_{number}"
        assert f'"{each.module}"' in text
        text = text.replace(f'"{each.module}"', f'"{now[each.module]}"')
    table.write_text(text)
    return now


def test_modules_that_moved_are_run_by_all_their_former_names(tmp_path: Path) -> None:
    now = moved(tmp_path, *processes.ALL, stub=REACHED)
    for each in processes.ALL:
        for name in former(each):
            ended = start("-m", name, "a word", path=tmp_path, given="what is given")
            told = f"{now[each.module]} a word what is given\n"
            assert (ended.returncode, ended.stdout) == (0, told), (name, ended)


@pytest.mark.slow
def test_a_boot_entry_is_known_as_ours_after_its_module_moved(tmp_path: Path) -> None:
    house = planted(tmp_path / "house")
    now = moved(tmp_path, processes.RESUME)[processes.RESUME.module]
    of_then = House(house.folder, (sys.executable, "-P", "-m", "acp_core"), house.env)
    later = of_then.with_variables(PYTHONPATH=str(tmp_path))
    words = ("launch", "--at-boot", "--boot-manager")
    unit = house.folder / ".config/systemd/user/acp-loops.service"
    assert processes.RESUME.module in unit.read_text()
    later.run(*words, "systemd", "--yes")
    assert now in unit.read_text(), "it is brought up to date"
    assert later.json(*words, "cron", "--remove", "--yes", "--json")["state"] == "removed"
    assert (house.folder / "crontab").read_text() == ""
