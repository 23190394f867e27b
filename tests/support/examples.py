"""How many examples the long form of a property looks at, for how long it may, and where."""

from __future__ import annotations

import os

import pytest

MANY = int(os.environ.get("ACP_EXAMPLES", "100"))
"""As many as ``ACP_EXAMPLES`` says; 2,000 of each property take a processor about a quarter of an hour."""
PATIENT = pytest.mark.timeout(300 + 10 * MANY)
"""What tries so many may take longer than other tests; it fails still where it hangs."""
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""Where an example's folders lie, if there is such a place: a disk would take most of its time."""
