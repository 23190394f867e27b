"""Every command line of README.md and docs runs, in a state of a collaboration that it is meant for.

`tests/e2e/doc_lines.py` says where each runs, and which cannot run here, and why.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.doc_lines import NOT_RUN, WAYS, Way, found, reason, to_run, way
from tests.golden.builders.folder import Story
from tests.golden.states import all_states
from tests.hygiene.sources import ROOT
from tests.support import forked
from tests.support.terminal import Terminal

PLENTY = 120.0  # seconds; nothing passes or fails by being quicker
PEOPLE = ("writer", "me", "reader", "reviewer", "server")
AGENT = '#!/bin/sh\n[ "$1" = --version ] && exec echo 1.0\ncat > /dev/null & sleep 600\n'
"""In place of a paid agent: a program that works for long."""


class Place:
    """A home with the folder ``work``, in which lines are typed."""

    def __init__(self, root: Path) -> None:
        self.home, self.work = root / "home", root / "home" / "work"
        self.work.mkdir(parents=True)
        (self.home / "project").mkdir()
        programs = root / "bin"
        programs.mkdir()
        for name in ("claude", "codex", "my-agent"):
            (programs / name).write_text(AGENT)
            (programs / name).chmod(0o755)
        self.words: dict[str, str] = {}
        self.env = {
            "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home),
            "ACP_STATE": str(root / "state"), "ACP_CONFIG": str(root / "config"),
            "TMPDIR": str(root), "TZ": "UTC", "LANG": "C.UTF-8", "USER": "me", "EDITOR": "true",
            "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "GIT_CONFIG_NOSYSTEM": "1",
        }  # fmt: skip
        self.cwd = self.work

    def folder(self, name: str = "checkout") -> Story:
        """A shared folder that was just begun."""
        return Story(self.work / name, PEOPLE)

    def typed(self, line: str) -> tuple[str, ...]:
        """The words of a line, with real names for those that stand for one."""
        known = {
            "FOLDER": "checkout",
            "F": "checkout",
            "COMMAND": "status",
            "TEXT": "Yes",
            **self.words,
        }
        words = [known.get(word, word) for word in shlex.split(line)]
        return tuple(re.sub(r"^~(?=/)", str(self.home), word) for word in words)

    def acp(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return forked.run(words, self.cwd, self.env, "")

    def end_what_runs(self) -> None:
        """End all processes that were started here, and those that they start meanwhile."""
        while left := [each for each in psutil.process_iter() if self._is_here(each)]:
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):  # it ended by itself
                    process.kill()
            psutil.wait_procs(left, timeout=PLENTY)

    def _is_here(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get("HOME") == self.env["HOME"]
        except psutil.Error:
            return False


def reviewing(place: Place) -> None:
    """All but the writer are waited for."""
    place.folder().submit()
    (place.work / "review.txt").write_text(
        "Position:\n- In favour.\n\nRequired Changes:\n- None.\n"
    )


def finished(place: Place) -> None:
    """Two collaborations came to their end."""
    for name in ("checkout", "checkout-2"):
        story = place.folder(name)
        for step in (story.submit, story.reviews, story.revise, story.classify, story.accept):
            step()
        story.ready()
        story.complete()


def blocked(place: Place) -> None:
    """One of them stopped it."""
    story = place.folder()
    story.submit()
    story.block("reviewer", "Which account is it?")


def torn(place: Place) -> None:
    """Its last event is incomplete."""
    reviewing(place)
    log = place.work / "checkout" / "events.jsonl"
    log.write_text(log.read_text("utf-8") + '{"seq": 3, "fr', encoding="utf-8")
    os.utime(log, (1, 1))


def exported(place: Place) -> None:
    """Somebody sent a collaboration in one file."""
    finished(place)
    assert place.acp("export", "checkout").returncode == 0
    (place.work / "checkout").rename(place.work / "original")


def equipped(place: Place) -> None:
    """A program has the skill."""
    reviewing(place)
    assert place.acp("skill", "install", "--for", "claude", "--yes").returncode == 0


def project(place: Place) -> None:
    """A repository without any run."""
    subprocess.run(["git", "init", "-q", str(place.work)], check=True, env=place.env)
    git = ["git", "-C", str(place.work), "-c", "user.name=me", "-c", "user.email=me@example.org"]
    subprocess.run([*git, "commit", "-qm", "Begin", "--allow-empty"], check=True, env=place.env)


WORLDS: dict[str, Callable[[Place], object]] = {
    "empty": lambda place: None,
    "drafting": lambda place: place.folder(),
    **{each.__name__: each for each in (reviewing, finished, blocked, torn)},
    **{each.__name__: each for each in (exported, equipped, project)},
}


def build(place: Place, world: str) -> None:
    """Make what a line needs; a state of the goldens has a name with a slash."""
    if world in WORLDS:
        WORLDS[world](place)
        return
    made = all_states()[world].build(place.work)
    place.words = dict.fromkeys(("queues", "FOLDER", "~/work/lamp", "."), str(made))
    place.cwd = made


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.end_what_runs()


def check(place: Place, line: str, how: Way) -> None:
    """Run a line; it ends as it should, and says nothing odd."""
    words = (*place.typed(line), *how.adds)
    if how.until == "screen":
        command = [sys.executable, "-m", "acp_tui", *words]
        with Terminal(command, env=place.env, cwd=place.cwd) as terminal:
            terminal.wait_for("acp", PLENTY)
            terminal.send("\x11")
            assert terminal.wait_for_end(PLENTY) in (0, 1)
        return
    if how.until == "line":
        goes_on = forked.start(words, place.cwd, place.env | {forked.FRESH: "1"})
        assert goes_on.line(), goes_on.said()
        code, said = goes_on.end(signal.SIGINT)
        assert code in (0, 1, 130, -signal.SIGINT), said
    else:
        ended = place.acp(*words)
        said = ended.stderr
        assert ended.returncode in how.codes, ended.stdout + said
    assert "Traceback" not in said
    assert "bug in acp" not in said


@pytest.mark.slow
@pytest.mark.parametrize("line", to_run())
def test_a_line_of_the_pages_runs(place: Place, line: str) -> None:
    how = way(line)
    build(place, how.world)
    check(place, line, how)


def test_every_line_runs_or_says_why_it_cannot() -> None:
    lines = found()
    assert len(lines) > 150
    assert [
        line for line in to_run() if not any(re.match(each.pattern, line) for each in WAYS)
    ] == []
    for begin, why in NOT_RUN.items():
        assert why and any(re.match(begin, line) for line in lines), begin
    for each in WAYS:
        used = [line for line in lines if not reason(line) and way(line) is each]
        assert used, each.pattern
