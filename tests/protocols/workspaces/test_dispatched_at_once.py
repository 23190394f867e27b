"""Several conductors of one run: agents end, watchers go on and people dispatch, all at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_core.protocols.processes import WATCHER
from tests.agents.support import ROOT, wait_for
from tests.protocols.workspaces.running import begun, entries, prepare, program, states

_COUNTING = f"""
import os, sys, time
if {WATCHER.module!r} in sys.orig_argv:
    with open(os.environ["TRIED"], "a") as file:
        file.write(" ".join(sys.orig_argv[-2:]) + "\\n")
    while os.path.exists(os.environ["TRIED"] + ".held"):
        time.sleep(0.02)
"""


class Watchers:
    """Every start of a watcher is counted; while they are held, none of them gets to watch."""

    def __init__(self, folder: Path) -> None:
        self._tried = folder / "tried"
        self._hold = folder / "tried.held"
        self._site = folder / "site"
        self._site.mkdir()
        (self._site / "sitecustomize.py").write_text(_COUNTING)

    @property
    def env(self) -> dict[str, str]:
        """The variables of a command whose watchers are counted."""
        paths = os.pathsep.join([str(self._site), str(ROOT)])
        return {**os.environ, "PYTHONPATH": paths, "TRIED": str(self._tried)}

    @property
    def tried(self) -> list[str]:
        """The agent and the attempt of every start, in order."""
        return self._tried.read_text().splitlines() if self._tried.exists() else []

    def hold(self) -> None:
        """Let none that is started from now on get so far that it watches."""
        self._hold.touch()

    def let_go(self) -> None:
        """Let them all watch."""
        self._hold.unlink()

    def dispatch(self, out: Path, *words: object) -> subprocess.Popen[bytes]:
        """``acp workspaces dispatch`` in a process of its own, which prints into ``out``."""
        command = [sys.executable, "-P", "-m", "acp_core", "workspaces", "dispatch"]
        with open(out, "wb") as file:
            return subprocess.Popen(
                [*command, *map(str, words)], env=self.env, stdout=file, stderr=file
            )


def waits_or(process: subprocess.Popen[bytes], out: Path, started: Callable[[], bool]) -> bool:
    """Whether a command said that it waits, has ended, or has started something."""
    return b"waiting" in out.read_bytes() or process.poll() is not None or started()


@pytest.mark.slow
def test_who_dispatches_beside_another_starts_no_agent_again(tmp_path: Path) -> None:
    """The first has written down whom it starts; no watcher watches yet when the second looks."""
    root, watchers = prepare(tmp_path / "run", "ann", "ben"), Watchers(tmp_path)
    words = program(tmp_path / "own")
    watchers.hold()
    one, two = tmp_path / "one", tmp_path / "two"
    first = watchers.dispatch(one, root, "--", *words)
    wait_for(lambda: watchers.tried, "the first watcher to be started")
    assert all(each["dispatched_at"] for each in entries(root).values())
    second = watchers.dispatch(two, root, "--", *words)
    wait_for(lambda: waits_or(second, two, lambda: len(watchers.tried) > 1), "the second to look")
    watchers.let_go()
    assert (first.wait(60), second.wait(60)) == (0, 0), one.read_text() + two.read_text()
    assert sorted(begun(tmp_path / "own")) == ["ann", "ben"]
    assert sorted(watchers.tried) == ["ann 1", "ben 1"]
    assert "error" not in one.read_text() + two.read_text()
    assert states(root) == {"ann": "success", "ben": "success"}


def test_a_start_that_another_conductor_won_is_no_error(tmp_path: Path) -> None:
    """Whoever dispatched was killed before the watcher watched: the next one starts it once more."""
    root, watchers = prepare(tmp_path / "run", "ann", "ben"), Watchers(tmp_path)
    words = program(tmp_path / "own", ann="slow", ben="slow")
    watchers.hold()
    first = watchers.dispatch(tmp_path / "one", root, "--", *words)
    wait_for(lambda: watchers.tried, "the first watcher to be started")
    first.kill()
    first.wait()
    second = watchers.dispatch(tmp_path / "two", root, "--", *words)
    wait_for(lambda: len(watchers.tried) > 1, "the second watcher of the same agent")
    watchers.let_go()
    assert second.wait(60) == 0, (tmp_path / "two").read_text()
    assert sorted(begun(tmp_path / "own")) == ["ann", "ben"]
    assert sorted(watchers.tried) == ["ann 1", "ann 1", "ben 1"]
    assert states(root) == {"ann": "success", "ben": "success"}


@pytest.mark.slow
def test_who_cannot_be_watched_keeps_nobody_else_from_being_started(tmp_path: Path) -> None:
    """Something stands where the claim of one agent must be made: the others work all the same."""
    root, watchers = prepare(tmp_path / "run", "ann", "ben", "cat"), Watchers(tmp_path)
    (root / ".acp/run/loops/ann.lock").mkdir(parents=True)
    out = tmp_path / "out"
    ended = watchers.dispatch(out, root, "--", *program(tmp_path / "own"))
    assert ended.wait(60) == 1, out.read_text()
    assert sorted(begun(tmp_path / "own")) == ["ben", "cat"]
    assert "ann: " in out.read_text() and "is not a regular file" in out.read_text()
    assert states(root)["ben"] == states(root)["cat"] == "success"


@pytest.mark.slow
@pytest.mark.parametrize(("agents", "jobs"), [(12, 3), (18, 2)])
def test_many_that_end_at_once_are_started_once_each(
    tmp_path: Path, agents: int, jobs: int
) -> None:
    names = [f"g{number}" for number in range(agents)]
    root, watchers = prepare(tmp_path / "run", *names), Watchers(tmp_path)
    out = tmp_path / "out"
    ended = watchers.dispatch(out, root, "--jobs", jobs, "--", *program(tmp_path / "own"))
    assert ended.wait(300) == 0, out.read_text()
    assert sorted(begun(tmp_path / "own")) == sorted(names)
    assert sorted(watchers.tried) == sorted(f"{name} 1" for name in names)
    assert [states(root)[name] for name in names] == ["success"] * agents
