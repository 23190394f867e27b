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
    tracing.begin()
    begun = time.monotonic()
    try:
        return (yield)
    finally:
        tracing.save(item.nodeid)
        took = Path(os.environ[tracing.FOLDER]) / f"took-{os.getpid()}.jsonl"
        with took.open("a", encoding="utf-8") as file:
            file.write(json.dumps([item.nodeid, time.monotonic() - begun]) + "\n")
