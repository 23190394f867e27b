"""What the tests of the past share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Acp


@pytest.fixture
def acp(tmp_path: Path) -> Acp:
    return Acp(tmp_path)
