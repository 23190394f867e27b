"""What the tests of faults share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.shim import Faults


@pytest.fixture(scope="module")
def faults() -> Iterator[Faults]:
    """A server of commands that are killed or fail; one for each file of tests."""
    server = Faults()
    yield server
    server.close()
