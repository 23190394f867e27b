"""The two walks of docs/architecture.md pass through the files that it names, in that order."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from textual.pilot import Pilot

from acp_tui.app import AcpApp
from tests.hygiene.sources import ROOT
from tests.support.forked import run
from tests.tui.stage import shows, until

PAGE = ROOT / "docs" / "architecture.md"
STEP = re.compile(r"^\d+\. `((?:acp_core|acp_tui)/[\w/.]+\.py)`")


class Trace:
    """The files of the product whose functions are called, in any thread, while it is ``on``."""

    def __init__(self) -> None:
        self.on = False
        self.files: list[str] = []

    def called(self, frame: FrameType, event: str, _: object) -> None:
        """What Python tells a profiler."""
        if self.on and event == "call" and frame.f_code.co_filename.startswith(f"{ROOT}/acp_"):
            self.files.append(str(Path(frame.f_code.co_filename).relative_to(ROOT)))

    def passes(self, walk: list[str]) -> list[str]:
        """The steps of ``walk`` up to the first that was not passed after those before it."""
        passed: list[str] = []
        rest = iter(self.files)
        for step in walk:
            if step not in rest:
                break
            passed.append(step)
        return passed


@contextmanager
def traced() -> Iterator[Trace]:
    """Every thread that starts meanwhile is traced."""
    trace = Trace()
    threading.setprofile(trace.called)
    sys.setprofile(trace.called)
    try:
        yield trace
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def walk(title: str) -> list[str]:
    """The files of a walk on the page: its numbered steps begin with them."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    return [step[1] for line in section.splitlines() if (step := STEP.match(line))]


def acp(folder: Path, *arguments: str) -> None:
    ran = run((arguments[0], "--folder", str(folder), *arguments[1:]), folder.parent, {}, "")
    assert ran.returncode == 0, ran.stderr


async def opened(pilot: Pilot[Any]) -> None:
    await shows(pilot, "Timeline")
    await shows(pilot, "Waiting for")
    await pilot.pause(0.5)


def start(folder: Path) -> None:
    people = ("--participant", "writer", "--participant", "reader")
    acp(folder, "init", *people, "--objective", "Choose a name", "--completion", "It is chosen")


async def test_a_change_on_disk_comes_to_the_screen_through_the_files_of_the_page(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "naming"
    start(folder)
    with traced() as trace:
        app: Any = AcpApp([str(folder)])
        async with app.run_test(size=(120, 36)) as pilot:
            await opened(pilot)
            trace.on = True
            acp(folder, "append", "--participant", "writer", "--event", "proposal_submitted",
                "--summary", "Call it heron", "--reply-to", "1")  # fmt: skip
            await shows(pilot, "Call it heron")
            trace.on = False
    steps = walk("From a change on disk to the screen")
    assert len(steps) <= 12
    assert trace.passes(steps) == steps


@pytest.mark.slow
async def test_a_key_comes_to_a_file_through_the_files_of_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "naming"
    start(folder)
    log = folder / "events.jsonl"
    with traced() as trace:
        app: Any = AcpApp([str(folder)])
        async with app.run_test(size=(120, 36)) as pilot:
            await opened(pilot)
            trace.on = True
            await pilot.press("b")
            await until(pilot, lambda: app.screen.query("FieldView"))
            await pilot.pause(0.5)
            await pilot.press(*"Nobody answers")
            await pilot.press("ctrl+s")
            await until(pilot, lambda: '"blocked"' in log.read_text())
            trace.on = False
    steps = walk("From a key to a file")
    assert len(steps) <= 12
    assert trace.passes(steps) == steps
