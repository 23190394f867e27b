"""`acp launch --at-boot`: what is written is shown first, is right, works, and can be taken out."""

from __future__ import annotations

import json
import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from acp_core.agents.state import Phase
from acp_core.cli.main import run as acp_main
from acp_core.loops import boot
from tests.agents.support import ROOT, script
from tests.loops.support import (
    command,
    make,
    restart_machine,
    start,
    state,
    wait_for_phase,
)

CRONTAB = """\
path = os.path.join(os.environ["HOME"], "crontab")
if sys.argv[1:] == ["-l"]:
    if not os.path.exists(path):
        sys.exit("no crontab for you")
    print(open(path).read(), end="")
else:
    text = sys.stdin.read()
    open(path, "w").write(text)
"""


class Ended(NamedTuple):
    """A command that ended."""

    returncode: int
    stdout: str
    stderr: str


Acp = Callable[..., Ended]


@pytest.fixture
def acp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Acp:
    """acp with a home of its own, and a stand-in for cron."""
    tools = tmp_path / "a %odd $folder"
    tools.mkdir()
    script(tools, CRONTAB, "crontab")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)

    def run(*words: str) -> Ended:
        capsys.readouterr()
        return Ended(acp_main(words, lambda paths, settings: 99), *capsys.readouterr())

    return run


def unit(tmp_path: Path) -> Path:
    return tmp_path / "xdg" / "systemd" / "user" / "acp-loops.service"


BOOT = ("launch", "--at-boot", "--boot-manager")


def test_nothing_is_written_before_it_was_shown_and_confirmed(acp: Acp, tmp_path: Path) -> None:
    asked = acp(*BOOT, "systemd")
    assert asked.returncode == 2
    assert 'ExecStart="' in asked.stdout and "use --yes" in asked.stderr
    assert "Nothing was written." in acp(*BOOT, "systemd", "--dry-run").stdout
    assert not unit(tmp_path).exists()
    written = acp(*BOOT, "systemd", "--yes")
    assert written.returncode == 0, written.stderr
    shown = [line.removeprefix("    ") for line in asked.stdout.splitlines()]
    assert unit(tmp_path).read_text().splitlines() == shown[1 : shown.index("[Install]") + 2]
    link = unit(tmp_path).parent / "default.target.wants" / "acp-loops.service"
    assert link.resolve() == unit(tmp_path)
    assert "It is there already." in acp(*BOOT, "systemd").stdout
    removed = acp(*BOOT, "systemd", "--remove", "--yes")
    assert "Removed." in removed.stdout
    assert not unit(tmp_path).exists() and not link.is_symlink()
    assert "There is nothing to remove." in acp(*BOOT, "systemd", "--remove").stdout


def test_a_system_without_a_manager_is_told_how_to_name_one(
    acp: Acp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boot.os.path, "isdir", lambda path: False)
    monkeypatch.setattr(boot.shutil, "which", lambda program: None)
    asked = acp("launch", "--at-boot")
    assert (asked.returncode, asked.stderr.count("\n")) == (2, 1)
    assert "--boot-manager systemd|launchd|cron" in asked.stderr


def test_a_unit_of_somebody_else_is_left_alone(acp: Acp, tmp_path: Path) -> None:
    unit(tmp_path).parent.mkdir(parents=True)
    unit(tmp_path).write_text("[Service]\nExecStart=/bin/true\n")
    refused = acp(*BOOT, "systemd", "--yes")
    assert refused.returncode == 2 and "was not written by acp" in refused.stderr
    assert "nothing to remove" in acp(*BOOT, "systemd", "--remove", "--yes").stdout
    assert unit(tmp_path).read_text() == "[Service]\nExecStart=/bin/true\n"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_accepts_the_unit(acp: Acp, tmp_path: Path) -> None:
    assert acp(*BOOT, "systemd", "--yes").returncode == 0
    words = ["systemd-analyze", "verify", "--user", str(unit(tmp_path))]
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    checked = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert "acp-loops" not in checked.stderr
    unit(tmp_path).write_text(unit(tmp_path).read_text().replace("oneshot", "nonsense"))
    checked = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert "acp-loops" in checked.stderr  # it does look


def test_launchd_gets_a_property_list(acp: Acp, tmp_path: Path) -> None:
    shown = json.loads(acp(*BOOT, "launchd", "--dry-run", "--json").stdout)
    agent = plistlib.loads(shown["text"].encode())
    assert agent["ProgramArguments"][1:] == ["-P", "-m", "acp_core.loops.interrupted"]
    assert agent["RunAtLoad"] and agent["AbandonProcessGroup"]
    assert agent["EnvironmentVariables"]["ACP_STATE"] == str(tmp_path / "state")
    assert acp(*BOOT, "launchd", "--yes").returncode == 0
    path = tmp_path / "Library" / "LaunchAgents" / "acp.loops.plist"
    assert path.read_text() == shown["text"]
    assert acp(*BOOT, "launchd", "--remove", "--yes").returncode == 0
    assert not path.exists()


@pytest.mark.slow
def test_cron_resumes_what_a_restart_interrupted_and_keeps_other_lines(
    acp: Acp, tmp_path: Path
) -> None:
    table = tmp_path / "crontab"
    table.write_text("5 4 * * * backup\n")
    assert acp(*BOOT, "cron", "--yes").returncode == 0
    assert acp(*BOOT, "cron", "--yes").returncode == 0
    first, comment, line = table.read_text().splitlines()
    assert (first, comment[0]) == ("5 4 * * * backup", "#")

    folder = make(tmp_path / "c")
    for name in ("server", "reader"):
        start(folder, name, command(tmp_path))
        wait_for_phase(folder, name, Phase.WAITING)
    before = {name: state(folder, name).pid for name in ("server", "reader")}
    restart_machine(folder)
    assert line.startswith("@reboot ")
    booted = ["sh", "-c", line.removeprefix("@reboot ").replace("\\%", "%")]  # as cron reads it
    assert subprocess.run(booted, env={"HOME": str(tmp_path)}, check=False).returncode == 0
    after = {name: state(folder, name) for name in before}
    assert all(each.alive and each.pid != before[name] for name, each in after.items())
    pids = {each.pid for each in after.values()}
    assert subprocess.run(booted, env={"HOME": str(tmp_path)}, check=False).returncode == 0
    assert {state(folder, name).pid for name in before} == pids  # nothing twice

    assert acp(*BOOT, "cron", "--remove", "--yes").returncode == 0
    assert table.read_text() == "5 4 * * * backup\n"


def test_what_no_unit_can_hold_is_refused(acp: Acp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/a\nExecStart=/bin/evil")
    refused = acp(*BOOT, "systemd", "--yes")
    assert refused.returncode == 2
    assert "$XDG_CACHE_HOME holds characters" in refused.stderr


def test_the_line_of_the_unit_runs(acp: Acp, tmp_path: Path) -> None:
    assert acp(*BOOT, "systemd", "--yes").returncode == 0
    line = next(
        each for each in unit(tmp_path).read_text().splitlines() if each.startswith("ExecStart=")
    )
    words = shlex.split(line.removeprefix("ExecStart="))
    assert words == [sys.executable, "-P", "-m", "acp_core.loops.interrupted"]
