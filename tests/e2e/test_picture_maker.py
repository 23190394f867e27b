"""The pictures of the pages are the same each time, however slow the machine is that makes them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.hygiene.sources import ROOT

MADE = f"""
import asyncio, sys, time
sys.path[:0] = [{str(ROOT / "screenshots")!r}, {str(ROOT)!r}]
import make
from acp_core.history.durations import Durations

def slowly(self, read=Durations.read_recordings):
    time.sleep(3)
    read(self)

with make.settled_in():
    Durations.read_recordings = slowly
    for name in ("collaboration", "fleet"):
        picture = next(each for each in make.PICTURES if each.name == name)
        print(asyncio.run(make.take(picture, "dark", (120, 36))))
"""


@pytest.mark.slow
def test_pictures_show_how_long_things_usually_take() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", MADE], capture_output=True, text=True, check=False, timeout=250
    )
    assert ran.returncode == 0, ran.stderr
    collaboration, fleet = ran.stdout.replace("&#160;", " ").split("<svg")[1:]
    assert "phase usually 14 min" in collaboration
    assert fleet.count("11m") == 3
