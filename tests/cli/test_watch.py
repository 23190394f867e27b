"""`acp watch`: a line for every change, until all is over."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from acp_core.cli.watch import worst
from tests.cli.support import Acp
from tests.support import toy

TOO_LONG = 60.0  # s after which a line that should come never will


class Watched:
    """`acp watch` running, and what it prints."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))

    def line(self) -> str:
        """The next line."""
        return self._lines.get(timeout=TOO_LONG)

    def change(self, kind: str) -> dict[str, Any]:
        """The next change of this type; others before it are passed over."""
        while True:
            told: dict[str, Any] = json.loads(self.line())
            if told["type"] == kind:
                return told

    def end(self) -> int:
        """The exit code."""
        return self.process.wait(TOO_LONG)


@contextmanager
def watch(acp: Acp, *arguments: str) -> Iterator[Watched]:
    process = subprocess.Popen(
        acp.command("watch", *arguments),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=acp.home, env=acp.env,
    )  # fmt: skip
    try:
        yield Watched(process)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def talk(acp: Acp) -> Path:
    folder = toy.make(acp.home / "talk")
    toy.say(folder, "ann", "said", "Let us choose")
    return folder


def test_a_run_is_followed_to_its_end(acp: Acp, talk: Path) -> None:
    with watch(acp, "talk") as watched:
        assert watched.line().endswith("  talk  Talking.")
        toy.say(talk, "ben", "asked", "Blue or green?")
        assert watched.line() == "03:04:05  talk  2 ben asked: Blue or green?"
        assert watched.line().endswith("  talk  waiting for ben: wait for an answer")
        assert watched.line().endswith("  talk  needs you: ben asks: Blue or green?")
        (talk / toy.NOTES).write_text("# Blue\n")
        assert watched.line().endswith("  talk  document: notes.md changed")
        toy.say(talk, "ann", "answered", "Blue")
        assert "3 ann answered: Blue" in watched.line()
        toy.say(talk, "ann", "done", "Blue it is")
        assert watched.end() == 0


def test_json_lines_bear_the_schema_and_the_collaboration(acp: Acp, talk: Path) -> None:
    with watch(acp, "talk", "--json") as watched:
        first = json.loads(watched.line())
        assert first["type"] == "state"
        assert first["state"]["status"] == "active"
        toy.say(talk, "ben", "asked", "Blue or green?")
        event = watched.change("event")
        assert event == {
            "schema": "acp.watch/1",
            "type": "event",
            "at": "2026-01-02T03:04:05Z",
            "collaboration": str(talk),
            "name": "talk",
            "event": event["event"],
        }
        assert event["event"]["actor"] == "ben"
        (talk / toy.LOG).open("a").write("nonsense\n")
        assert watched.change("finding")["finding"]["code"] == "TOY001"
        toy.say(talk, "ann", "done", "Enough")
        assert watched.change("status")["status"] == "completed"
        assert watched.end() == 0


def test_several_are_followed_until_all_are_over(acp: Acp, talk: Path) -> None:
    other = toy.make(acp.home / "other")
    toy.say(other, "ann", "done", "Over")
    with watch(acp, ".", "--json") as watched:
        assert {watched.change("state")["name"] for _ in range(2)} == {"talk", "other"}
        toy.say(talk, "ann", "done", "Over")
        assert watched.change("status")["name"] == "talk"
        assert watched.end() == 0


@pytest.mark.slow
def test_one_that_appears_is_followed_too(acp: Acp, talk: Path) -> None:
    with watch(acp, ".", "--json") as watched:
        assert watched.change("state")["name"] == "talk"
        late = toy.make(acp.home / "late")
        assert watched.change("state")["name"] == "late"
        toy.say(talk, "ann", "done", "Over")
        toy.say(late, "ann", "done", "Over")
        assert watched.end() == 0


def test_one_that_is_removed_ends_as_unreadable(acp: Acp, talk: Path) -> None:
    with watch(acp, ".", "--json") as watched:
        assert watched.change("state")["name"] == "talk"
        for name in (toy.SETTINGS, toy.LOG, toy.NOTES):
            (talk / name).unlink()
        talk.rmdir()
        assert watched.change("gone")["name"] == "talk"
        assert watched.end() == 2


def test_ctrl_c_is_130_and_quiet(acp: Acp, talk: Path) -> None:
    with watch(acp, "talk") as watched:
        watched.line()
        watched.process.send_signal(signal.SIGINT)
        assert watched.end() == 130
        assert watched.process.stderr is not None
        assert watched.process.stderr.read() == ""


@pytest.mark.parametrize(("kind", "code"), [("done", 0), ("said", 1)])
def test_once_says_how_it_stands(acp: Acp, talk: Path, kind: str, code: int) -> None:
    toy.say(talk, "ben", kind, "Well")
    ran = acp("watch", "talk", "--once")
    assert ran.returncode == code
    assert ran.stdout.count("\n") == 1


def test_a_path_without_a_collaboration_is_exit_code_2(acp: Acp) -> None:
    (acp.home / "empty").mkdir()
    for arguments in (["empty"], ["empty", "--once"]):
        ran = acp("watch", *arguments)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert ran.stderr == "error: no collaboration in or below empty\n"


def test_a_path_that_is_not_there_is_exit_code_2_also_beside_a_good_one(
    acp: Acp, talk: Path
) -> None:
    assert acp("watch", "nowhere").returncode == 2
    toy.say(talk, "ann", "done", "Over")
    ran = acp("watch", "talk", "nowhere")
    assert ran.returncode == 2
    assert ran.stderr == "error: nowhere: no such folder\n"
    assert "Done." in ran.stdout


@pytest.mark.parametrize(
    ("codes", "code"), [([0, 0], 0), ([0, 5], 5), ([5, 2, 0], 2), ([0, 1], 1), ([1, 5], 5)]
)
def test_of_several_the_worst_counts(codes: list[int], code: int) -> None:
    assert worst(codes) == code


def test_places_that_are_none_are_said_in_json_too(acp: Acp) -> None:
    ran = acp("watch", "nowhere", "neither", "--json")
    assert ran.returncode == 2
    told = "nowhere: no such folder; neither: no such folder"
    assert json.loads(ran.stdout) == {"schema": "acp.error/1", "error": told, "exit_code": 2}
    assert ran.stderr == f"error: {told}\n"
