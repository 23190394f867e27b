"""Every loop of a test keeps its state in the test's own folder, and none outlives the test."""

from __future__ import annotations

from tests.loops.conftest import own_places as own_places
