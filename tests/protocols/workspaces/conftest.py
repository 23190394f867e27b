"""Whatever a test started is stopped after it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from acp_core.agents import registry


@pytest.fixture(autouse=True)
def nothing_left(own_folders: object) -> Iterator[None]:
    yield
    for each in registry.runners():
        if each.pid != os.getpid() and (each.alive or each.program_alive):
            registry.stop(each.folder, each.participant, grace=0.3)
