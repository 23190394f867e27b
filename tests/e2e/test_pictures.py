"""The pictures are made by one command, and the same code makes the same ones."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]


def make(home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "screenshots" / "make.py"), *options],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_pictures_of_some_screens(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        made = make(tmp_path, "collaboration", "empty", "-o", str(tmp_path / folder))
        assert made.returncode == 0, made.stderr
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == sorted(
        f"{screen}-{theme}-{size}.svg"
        for screen in ("collaboration", "empty")
        for theme in ("dark", "light")
        for size in ("120x36", "80x24")
    )
    for name in names:
        picture = (tmp_path / "one" / name).read_text(encoding="utf-8")
        assert picture == (tmp_path / "two" / name).read_text(encoding="utf-8")
        assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert "order-retries" in (tmp_path / "one" / "collaboration-dark-80x24.svg").read_text()
    left = {name for name in os.listdir(tmp_path) if not name.endswith(".lock")}
    assert left == {"one", "two"}


def test_an_unknown_screen_is_refused(tmp_path: Path) -> None:
    ended = make(tmp_path, "nothing")
    assert ended.returncode == 2
    assert "no screen nothing; there are: fleet, " in ended.stderr


def cards(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "screenshots" / "cards.py"), *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_there_is_a_picture_of_each_kind_of_decision_and_a_test_that_makes_it() -> None:
    table = runpy.run_path(str(ROOT / "screenshots" / "cards.py"))["CARDS"]
    place = ROOT / "screenshots" / "cards"
    assert {f"{protocol}/{name}.svg" for protocol in table for name in table[protocol]} == {
        str(path.relative_to(place)) for path in place.rglob("*.svg")
    }
    for test in (each for tests in table.values() for each in tests.values()):
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
    assert sum(path.stat().st_size for path in place.rglob("*.svg")) < 4_000_000


@pytest.mark.slow
def test_the_pictures_of_the_cards_show_what_is_shown_now() -> None:
    checked = cards("--check")
    assert checked.returncode == 0, checked.stdout[-2000:] + checked.stderr[-2000:]
