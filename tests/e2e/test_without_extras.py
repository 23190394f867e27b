"""The wheel alone does the main job: what only the extras bring is out of reach here."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from acp_core.cli.doctor import EXTRAS
from tests.hygiene.sources import ROOT
from tests.support.terminal import Terminal

hatchling = pytest.importorskip("hatchling.builders.wheel", reason="needs hatchling")

MODULES = {
    "agent-client-protocol": "acp",
    "textual-serve": "textual_serve",
}
"""What a distribution's module is called, where it is not called like it."""
ABSENT = """
import importlib.metadata as metadata, sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] not in MODULES:
            return super().find_spec(name, path, target)

def version(name, known=metadata.version):
    if name in NAMES:
        raise metadata.PackageNotFoundError(name)
    return known(name)

metadata.version = version
sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
from acp_tui.__main__ import main
sys.exit(main())
"""
PLENTY = 60.0  # seconds; nothing passes or fails by being quicker


class Installed:
    """acp as its wheel holds it, on a machine without any extra."""

    def __init__(self, place: Path) -> None:
        [wheel] = hatchling.WheelBuilder(str(ROOT)).build(
            directory=str(place), versions=["standard"]
        )
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(place / "site")
        names = {name for names in EXTRAS.values() for name in names}
        modules = {MODULES.get(name, name) for name in names}
        self._code = f"MODULES, NAMES = {modules!r}, {names!r}\n{ABSENT}"
        self.work = place / "work"
        self.work.mkdir()
        self.env = {**os.environ, "PYTHONPATH": str(place / "site"), "TZ": "UTC"}

    def command(self, *words: str) -> list[str]:
        """What runs `acp` with these words."""
        return [sys.executable, "-P", "-c", self._code, *words]

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            self.command(*words), capture_output=True, text=True, check=False,
            cwd=self.work, env=self.env,
        )  # fmt: skip


@pytest.mark.slow
def test_a_collaboration_is_run_and_watched_without_any_extra(tmp_path: Path) -> None:
    acp = Installed(tmp_path)
    ended = acp("demo", "--headless", "--speed", "60", "--folder", "checkout")
    assert ended.returncode == 0, ended.stderr
    for words in (("validate", "checkout"), ("why", "checkout"), ("card", "checkout"),
                  ("show", "checkout"), ("replay", "checkout"), ("stats", "checkout"),
                  ("report", "checkout", "-o", "report.html"), ("status", ".")):  # fmt: skip
        ended = acp(*words)
        assert (ended.returncode, ended.stderr) == (0, ""), words
    with Terminal(acp.command("checkout"), env=acp.env, cwd=acp.work) as terminal:
        terminal.wait_for("completed", PLENTY)
        terminal.send("\x11")
        assert terminal.wait_for_end(PLENTY) == 0

    told = acp("doctor")
    assert told.returncode == 0
    said = " ".join(told.stdout.split())  # in lines of its own width
    for extra in EXTRAS:
        assert f"pip install 'acp-tui[{extra}]'" in said
    for words in (("agent", "--name", "A"), ("serve", "."),
                  ("mcp", "--folder", "checkout", "--participant", "server")):  # fmt: skip
        refused = acp(*words)
        assert (refused.returncode, refused.stdout) == (2, ""), words
        assert refused.stderr.startswith("error: ")
        assert refused.stderr.count("\n") == 1
        assert "acp-tui[" in refused.stderr
