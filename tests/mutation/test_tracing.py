"""Which lines a test runs, also in threads that another test has started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation import tracing
from tests.mutation.__main__ import ROOT

pytest.importorskip("coverage")
MODULE = """
def one():
    return 1

def two():
    return 2
"""
SERVER = """
import queue, threading
import served
from tests.mutation import tracing

asked, answered = queue.Queue(), queue.Queue()

def serve():
    while function := asked.get():
        answered.put(function())

def ask(function):
    asked.put(function)
    answered.get()

tracing.begin("first")
threading.Thread(target=serve).start()
ask(served.one)
tracing.save("first")
tracing.begin("second")
ask(served.two)
tracing.save("second")
asked.put(None)
"""


def test_a_server_that_an_earlier_test_started_runs_lines_for_the_test_that_asks_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "served.py").write_text(MODULE)
    (tmp_path / "lines").mkdir()
    variables = {
        tracing.FOLDER: str(tmp_path / "lines"), tracing.FILES: str(tmp_path / "served.py"),
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
    }  # fmt: skip
    words = [sys.executable, "-c", SERVER, "pytest"]
    subprocess.run(words, env={**os.environ, **variables}, check=True)
    read = [json.loads(path.read_text()) for path in (tmp_path / "lines").iterdir()]
    found = {each["test"]: set(*each["lines"].values()) for each in read}
    assert found == {"first": {3}, "second": {6}}
