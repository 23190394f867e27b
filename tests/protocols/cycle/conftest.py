"""What the tests of cycles share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.conftest import acp as acp
from tests.protocols.cycle import conducting


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """Whatever a test starts ends with it."""
    yield
    conducting.end_all()
