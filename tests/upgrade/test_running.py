"""Loops, watchers, turns, orchestrators and agents that 0.1.0 started, met by the program of today."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.protocols import processes
from tests.upgrade import meeting
from tests.upgrade.make import about
from tests.upgrade.playing import at_work
from tests.upgrade.scenes import House
from tests.upgrade.support import planted

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """What 0.1.0 left, with everything at work that was at work then."""
    found = planted(tmp_path)
    with at_work(found):
        yield found


@pytest.mark.slow
def test_what_the_old_program_started_is_seen_never_doubled_and_stopped(house: House) -> None:
    meeting.sees(house)
    meeting.doubles_nothing(house)
    meeting.stops(house)
    meeting.goes_on(house)


def lines() -> list[list[str]]:
    """The command lines under which 0.1.0 ran its processes, each once, without what is given."""
    found: list[list[str]] = []
    for line in about()["processes"]:
        if line[:2] not in found:
            found.append(line[:2])
    return found


def start(*words: str, path: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Start a process in the background as 0.1.0 does, but with nothing that it needs."""
    return subprocess.run(
        [sys.executable, "-P", *words], env={**os.environ, "PYTHONPATH": str(path)}, text=True,
        capture_output=True, input="{}", check=False,
    )  # fmt: skip


def test_every_name_by_which_a_process_was_started_is_known() -> None:
    recorded = {name for _, name in lines()}
    former = {f"acp_core.{each.former.replace('/', '.')}" for each in processes.ALL}
    assert recorded == former
    for line in lines():
        ended = start(*line)
        assert "No module named" not in ended.stderr, line
        assert ended.returncode in (1, 2), line


def test_a_module_that_moved_is_run_by_its_former_name(tmp_path: Path) -> None:
    package = tmp_path / "acp_core"
    shutil.copytree(ROOT / "acp_core", package, ignore=shutil.ignore_patterns("__pycache__"))
    of_now = processes.LOOP.module
    old = package.parent / f"{of_now.replace('.', '/')}.py"
    old.rename(old.with_name("moved_away.py"))
    table = package.parent / f"{processes.__name__.replace('.', '/')}.py"
    moved = f"{of_now.rpartition('.')[0]}.moved_away"
    table.write_text(table.read_text().replace(f'"{of_now}"', f'"{moved}"'))
    former = f"acp_core.{processes.LOOP.former.replace('/', '.')}"
    assert ["-m", former] in lines()
    ended = start("-m", former, path=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "Spec.folder: is missing\n"), ended
