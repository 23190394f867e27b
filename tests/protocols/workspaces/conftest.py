"""Whatever a test started is stopped after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.agents import registry
from tests.agents.support import end_what_runs
from tests.cli.conftest import acp as acp


@pytest.fixture(autouse=True)
def nothing_left(own_folders: Path, tmp_path: Path) -> Iterator[None]:
    """Also what has another state folder than the test has by its end, or one that is gone."""
    yield
    for each in registry.runners():
        if each.pid != os.getpid() and (each.alive or each.program_alive):
            registry.stop(each.folder, each.participant, grace=0.3)
    end_what_runs(own_folders, tmp_path)
