"""What several stories of whole programs stand on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import accounts
from tests.support.accounts import Shared


@pytest.fixture
def two() -> Iterator[Shared]:
    """Two real accounts that share a folder; skipped where none can be made."""
    try:
        with accounts.shared() as found:
            yield found
    except accounts.NoAccounts as error:
        pytest.skip(str(error))
