"""The dashboard is killed while loops run that it started: nothing is lost, the next one knows."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.agents import registry
from tests.agents.support import wait_for
from tests.cli.support import Acp
from tests.loops.support import events, is_valid, make, stand_in, state, stop_all
from tests.support.terminal import Terminal

pytestmark = pytest.mark.slow

PLENTY = 120.0  # seconds; nothing passes or fails by being quicker
DO_IT, QUIT = "\x13", "\x11"
PEOPLE = ("server", "reader", "reviewer")


class Place:
    """A collaboration whose participants' programs wait for a sign before they act."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = make(tmp_path / "cache")
        self._sign = tmp_path / "go"
        self.program = tmp_path / "patient"
        self.program.write_text(
            f"#!/bin/sh\nwhile [ ! -e {self._sign} ]; do sleep 0.05; done\n"
            f'exec {stand_in(tmp_path, "agent")} "$@"\n'
        )
        self.program.chmod(0o755)
        config = Path(os.environ["ACP_CONFIG"], "config.toml")
        config.parent.mkdir(exist_ok=True)
        config.write_text(
            f'[presets.patient]\nprogram = "{self.program}"\nargs = ["--prompt-text", "{{prompt}}"]\n'
            'prompt = "argv"\n'
        )
        (tmp_path / "home").mkdir()
        self.acp = Acp(tmp_path / "home")
        for name in ("ACP_STATE", "ACP_CONFIG"):  # the test reads the registry that acp writes
            self.acp.env[name] = os.environ[name]

    def go(self) -> None:
        self._sign.touch()

    def dashboard(self) -> Terminal:
        command = self.acp.command(str(self.folder))
        return Terminal(command, env=self.acp.env, cwd=self.folder.parent, columns=150, rows=45)

    def launch_all(self, terminal: Terminal) -> None:
        """Fill in the form as a person would: the program is chosen by its name for each."""
        terminal.wait_for("Waiting for server", PLENTY)
        terminal.send("L")
        terminal.wait_for("Start loops", PLENTY)
        for _ in PEOPLE:
            open_list(terminal)
            terminal.send("patient")
            terminal.run(0.3)
            terminal.send("\r")
            wait_until_gone(terminal, "▲")
            terminal.send("\t")
        terminal.wait_for("Starts server, reader, reviewer", PLENTY)
        terminal.send(DO_IT)
        wait_for(lambda: all(map(self.runs, PEOPLE)), "everybody's loop", PLENTY)
        wait_for(lambda: state(self.folder, "server").program_alive, "server's program", PLENTY)

    def runs(self, participant: str) -> bool:
        found = registry.find(str(self.folder), participant)
        return found is not None and found.alive


def open_list(terminal: Terminal) -> None:
    """A key that comes before the form has its focus goes nowhere: press it again."""
    for _ in range(int(PLENTY / 2)):
        terminal.send("\r")
        with contextlib.suppress(AssertionError):
            return terminal.wait_for("▲", 2.0)
    raise AssertionError(f"the list does not open:\n{terminal.text}")


def wait_until_gone(terminal: Terminal, text: str) -> None:
    for _ in range(int(PLENTY * 10)):
        if text not in terminal.text:
            return
        terminal.run(0.1)
    raise AssertionError(f"{text!r} stays:\n{terminal.text}")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    yield Place(tmp_path)
    stop_all()


def finish(place: Place, terminal: Terminal) -> None:
    """The run completes, on the screen and in the log, without a gap and without an act twice."""
    terminal.wait_for("✓ completed", PLENTY)
    seqs = [event["seq"] for event in events(place.folder)]
    assert seqs == list(range(1, len(seqs) + 1))
    kinds = [
        (event["from"], event["event"], event.get("reply_to")) for event in events(place.folder)
    ]
    assert len(set(kinds)) == len(kinds)
    assert is_valid(place.folder)
    terminal.send(QUIT)
    assert terminal.wait_for_end(PLENTY) == 0


def test_the_next_dashboard_finds_the_same_loops(place: Place) -> None:
    with place.dashboard() as terminal:
        place.launch_all(terminal)
    before = {name: state(place.folder, name) for name in PEOPLE}  # the block's end killed it
    assert all(loop.alive for loop in before.values())
    with place.dashboard() as terminal:
        terminal.wait_for("Waiting for server", PLENTY)
        terminal.send("p")
        terminal.wait_for("running", PLENTY)
        assert {name: state(place.folder, name).pid for name in PEOPLE} == {
            name: loop.pid for name, loop in before.items()
        }
        place.go()
        terminal.wait_for("the loop ends: completed", PLENTY)
        terminal.send("\x1b")
        finish(place, terminal)


def test_a_loop_that_died_with_it_is_named_and_started_again(place: Place) -> None:
    with place.dashboard() as terminal:
        place.launch_all(terminal)
        loop = state(place.folder, "server")
        assert loop.run is not None
        program = loop.run.process.pid
        os.kill(loop.pid, signal.SIGKILL)
        os.killpg(program, signal.SIGKILL)
    with place.dashboard() as terminal:
        terminal.wait_for("server's loop was killed", PLENTY)
        place.go()
        terminal.send("f")
        terminal.wait_for("The same from a shell", PLENTY)
        terminal.send(DO_IT)
        finish(place, terminal)
