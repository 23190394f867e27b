"""Ctrl+C while a long-running command starts prints nothing of Python's.

The interrupt is raised by what makes the event loop, in the middle of it, or by an import.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.support import Acp

LOOP = """
import signal, sys
from asyncio.selector_events import BaseSelectorEventLoop as Loop
made = Loop._make_self_pipe
Loop._make_self_pipe = lambda self: (signal.raise_signal(signal.SIGINT), made(self))
from acp_tui.__main__ import main
sys.exit(main())
"""
CLOSED = """
import signal, sys
from asyncio.selector_events import BaseSelectorEventLoop as Loop
closed = Loop._close_self_pipe
Loop._close_self_pipe = lambda self: (closed(self), signal.raise_signal(signal.SIGINT))
from acp_tui.__main__ import main
sys.exit(main())
"""
IMPORT = """
import signal, sys
class Dropped:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
class Finder:
    def find_spec(self, name, *_):
        if name == module:
            Dropped()
module = sys.argv.pop(1)
sys.meta_path.insert(0, Finder())
from acp_tui.__main__ import main
sys.exit(main())
"""


@pytest.fixture
def acp(tmp_path: Path) -> Acp:
    acp = Acp(tmp_path)
    who = ["--participant", "writer", "--participant", "reader"]
    text = ["--objective", "Choose", "--completion", "Chosen"]
    assert acp("init", "--folder", "work/talk", *who, *text).returncode == 0
    return acp


def run(acp: Acp, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False,
        timeout=100, cwd=acp.home, env=acp.env,
    )  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        ("serve", "work", "--port", "0"),
        ("watch", "work"),
        ("record", "work"),
        ("agent", "--name", "ann", "--port", "0"),
        ("relay", "--port", "0"),
        ("wire", "discover", "--seconds", "50"),
        ("wire", "stream", "http://127.0.0.1:9/token"),
    ],
    ids=" ".join,
)
def test_an_interrupt_while_the_event_loop_is_made_is_quiet(
    acp: Acp, command: tuple[str, ...]
) -> None:
    ran = run(acp, LOOP, *command)
    assert (ran.returncode, ran.stderr) == (130, "")


@pytest.mark.parametrize("module", ["acp_core.cli.main", "acp_core.fleet"])
def test_an_interrupt_in_an_import_is_neither_printed_nor_lost(acp: Acp, module: str) -> None:
    """Before the command is known, and in the midst of it."""
    ran = run(acp, IMPORT, module, "watch", "work")
    assert (ran.returncode, ran.stderr) == (130, "")


def test_an_interrupt_while_the_event_loop_is_closed_is_quiet(acp: Acp) -> None:
    command = [sys.executable, "-c", CLOSED, "agent", "--name", "ann", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=acp.home, env=acp.env
    ) as agent:  # fmt: skip
        assert agent.stdout is not None
        agent.stdout.readline()  # it is ready
        agent.send_signal(signal.SIGINT)
        _, said = agent.communicate(timeout=100)
    assert (agent.returncode, said) == (130, "")
