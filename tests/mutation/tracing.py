"""Which lines a test runs, in its own process and in every process that it starts.

A copy of the project gets this as its ``sitecustomize``. Needs ``coverage``.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import tempfile
from typing import Any, NoReturn

FOLDER = "ACP_LINES"  # where the lines are written
FILES = "ACP_LINES_OF"  # patterns of the files that are looked at
_TEST = "PYTEST_CURRENT_TEST"  # pytest says so to every process that it starts

_measured: Any = None


def begin(test: str = "") -> None:
    """Start to measure, or start anew; or go on with a test, also in threads of one before it."""
    global _measured
    import coverage

    if _measured is not None and test:
        _measured.switch_context(test)
        return
    if _measured is not None:
        _measured.stop()
    _measured = coverage.Coverage(data_file=None, include=os.environ[FILES].split(os.pathsep))
    _measured.start()
    if test:
        _measured.switch_context(test)


def save(test: str = "") -> None:
    """Write down what was run since it began, for a test; with none named, for the process's."""
    global _measured
    if _measured is None:
        return
    data = _measured.get_data()
    if test:
        data.set_query_context(test)
    else:
        _measured.stop()
        _measured = None
        test = os.environ.get(_TEST, "").rpartition(" ")[0]
    found = ((path, data.lines(path)) for path in data.measured_files())
    lines = {path: numbers for path, numbers in found if numbers}
    if test and lines:
        handle, _ = tempfile.mkstemp(suffix=".json", dir=os.environ[FOLDER])
        with open(handle, "w", encoding="utf-8") as file:
            json.dump({"test": test, "lines": lines}, file)


_exit = os._exit


def _end(status: int) -> NoReturn:
    try:
        save()
    finally:
        _exit(status)


def install() -> None:
    """Measure this process to its end, and those that are forked from it."""
    begin()
    atexit.register(save)
    os._exit = _end
    os.register_at_fork(after_in_child=begin)


if FOLDER in os.environ and not any(word.startswith("pytest") for word in sys.orig_argv):
    install()
