"""For pytest, while lines are measured: each test by itself, with the time that it took."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.mutation import tracing


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure one test, with what it sets up."""
    tracing.begin(item.nodeid)
    begun = time.monotonic()
    try:
        return (yield)
    finally:
        tracing.save(item.nodeid)
        _note("took", [item.nodeid, time.monotonic() - begun])


@pytest.hookimpl
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what fails without any change: it can tell nothing about one."""
    if report.failed:
        _note("failed", report.nodeid)


def _note(name: str, what: object) -> None:
    notes = Path(os.environ[tracing.FOLDER]) / f"{name}-{os.getpid()}.jsonl"
    with notes.open("a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")
