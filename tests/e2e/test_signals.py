"""Whoever ends the dashboard from outside gets the terminal back as it was."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.cli.support import Acp
from tests.protocols.folder.support import make_v1
from tests.support.terminal import Terminal

PLENTY = 60.0  # seconds; nothing passes or fails by being quicker
MOUSE, SCREEN, PASTE, CURSOR = "1003", "1049", "2004", "25"
_MODE = re.compile(rb"\x1b\[\?([0-9;]+)([hl])")


@pytest.fixture
def acp(tmp_path: Path) -> Acp:
    make_v1(tmp_path / "checkout", "reviewing")
    return Acp(tmp_path)


def in_a_shell(acp: Acp, command: str) -> Terminal:
    """A shell that starts a command, and says afterwards how it ended and how the terminal is."""
    script = f"{command}; echo ended with $?; stty -a; echo over"
    return Terminal(["sh", "-c", script], columns=100, rows=30, env=acp.env, cwd=acp.home)


def modes(terminal: Terminal) -> dict[str, bool]:
    """Which of a terminal's modes are on, by what was written last."""
    return {
        number.decode(): switch == b"h"
        for numbers, switch in _MODE.findall(terminal.raw)
        for number in numbers.split(b";")
    }


def child(pid: int) -> int:
    """The process that a shell waits for."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def given_back(terminal: Terminal) -> None:
    """The terminal is as it was: the shell's settings, its screen, no reports of the mouse."""
    settings = terminal.text.split("ended with")[1]
    for each in ("echo", "icanon", "isig", "icrnl"):
        assert re.search(rf"(?<!-)\b{each}\b", settings), f"{each} is off:\n{settings}"
    now = modes(terminal)
    assert not (now[MOUSE] or now[SCREEN] or now[PASTE])
    assert now[CURSOR]


DASHBOARD = f"{sys.executable} -m acp_tui ."


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_gives_the_terminal_back_and_is_the_exit_code(
    acp: Acp, number: signal.Signals
) -> None:
    with in_a_shell(acp, f"ulimit -c 0; trap : INT QUIT; {DASHBOARD}") as terminal:
        terminal.wait_for("checkout", PLENTY)
        terminal.wait_for("reviewing", PLENTY)
        os.kill(child(terminal.pid), number)
        terminal.wait_for("over", PLENTY)
        assert f"ended with {128 + number}" in terminal.text
        given_back(terminal)


@pytest.mark.slow
def test_a_dashboard_that_hangs_gives_the_terminal_back_too(acp: Acp, tmp_path: Path) -> None:
    """What draws is busy for ever: the signal alone must do it."""
    hang = "import acp_tui.app, time; acp_tui.app.AcpApp.action_help = lambda self: time.sleep(600)"
    start = "import sys; from acp_tui.__main__ import main; sys.exit(main(['.']))"
    program = tmp_path / "hang.py"
    program.write_text(f"{hang}\n{start}\n")
    with in_a_shell(acp, f"{sys.executable} {program}") as terminal:
        terminal.wait_for("reviewing", PLENTY)
        terminal.send("?")
        os.kill(child(terminal.pid), signal.SIGTERM)
        terminal.wait_for("over", PLENTY)
        assert f"ended with {128 + signal.SIGTERM}" in terminal.text
        given_back(terminal)


@pytest.mark.slow
def test_a_second_signal_does_not_wait(acp: Acp, tmp_path: Path) -> None:
    slow = "import asyncio, acp_tui.app\nasync def unmount(self): await asyncio.sleep(600)\n"
    program = tmp_path / "slow.py"
    program.write_text(
        f"{slow}acp_tui.app.AcpApp.on_unmount = unmount\n"
        "import acp_tui.terminal.driver as ending; ending.PATIENCE = 600\n"
        "import sys; from acp_tui.__main__ import main; sys.exit(main(['.']))\n"
    )
    with in_a_shell(acp, f"{sys.executable} {program}") as terminal:
        terminal.wait_for("reviewing", PLENTY)
        process = child(terminal.pid)
        os.kill(process, signal.SIGTERM)
        terminal.run(0.5)
        os.kill(process, signal.SIGTERM)
        terminal.wait_for("over", PLENTY)
        assert f"ended with {128 + signal.SIGTERM}" in terminal.text
        given_back(terminal)


@pytest.mark.slow
def test_a_closed_window_ends_it(acp: Acp) -> None:
    with Terminal([sys.executable, "-m", "acp_tui", "."], env=acp.env, cwd=acp.home) as terminal:
        terminal.wait_for("reviewing", PLENTY)
        terminal.hang_up()
        assert terminal.wait_for_end(PLENTY) == 128 + signal.SIGHUP


@pytest.mark.slow
def test_a_closed_window_ends_it_where_hang_ups_are_ignored(acp: Acp) -> None:
    """As `nohup` and some supervisors start it: it would read from no terminal for ever."""
    start = ["sh", "-c", f'trap "" HUP; exec {DASHBOARD}']
    with Terminal(start, env=acp.env, cwd=acp.home) as terminal:
        terminal.wait_for("reviewing", PLENTY)
        terminal.hang_up()
        assert terminal.wait_for_end(PLENTY) == 128 + signal.SIGHUP


@pytest.mark.slow
def test_stopped_and_continued_it_gives_the_terminal_and_takes_it_again(acp: Acp) -> None:
    with in_a_shell(acp, DASHBOARD) as terminal:
        terminal.wait_for("reviewing", PLENTY)
        process = child(terminal.pid)
        os.kill(process, signal.SIGTSTP)
        while Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            terminal.run(0.05)
        terminal.run(0.2)
        assert terminal.echoes()
        assert not modes(terminal)[MOUSE]
        before = len(terminal.raw)
        os.kill(process, signal.SIGCONT)
        while b"reviewing" not in terminal.raw[before:]:
            terminal.run(0.05)
        assert not terminal.echoes()
        terminal.send("\x11")
        terminal.wait_for("over", PLENTY)
        assert "ended with 0" in terminal.text
        given_back(terminal)


def test_a_fault_gives_the_terminal_back(acp: Acp, tmp_path: Path) -> None:
    program = tmp_path / "fault.py"
    program.write_text(
        "import asyncio, acp_tui.app\n"
        "def fail(): raise SystemExit(9)\n"
        "def hook(self): asyncio.get_running_loop().call_soon(fail)\n"
        "acp_tui.app.AcpApp.post_display_hook = hook\n"
        "import sys; from acp_tui.__main__ import main; sys.exit(main(['.']))\n"
    )
    with in_a_shell(acp, f"{sys.executable} {program}") as terminal:
        terminal.wait_for("over", PLENTY)
        assert "ended with 9" in terminal.text
        given_back(terminal)
