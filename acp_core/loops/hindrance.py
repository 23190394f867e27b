"""Faults of the files that may be why a turn was not taken: gone once somebody repairs them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from acp_core.model import Severity
from acp_core.protocols.contract import Collaboration


class Hindrance:
    """Remembers what was wrong with the files while a turn was tried.

    Args:
        collaboration: Where the turns are.
        clock: Says what time it is.
    """

    def __init__(self, collaboration: Collaboration, clock: Callable[[], datetime]) -> None:
        self._collaboration = collaboration
        self._clock = clock
        self._faults: frozenset[tuple[str, ...]] = frozenset()

    def __bool__(self) -> bool:
        """Whether a repair may let the next attempt succeed."""
        return bool(self._faults)

    def begin(self) -> None:
        """Look what is wrong before an attempt: it may be repaired while that is refused for it."""
        self._faults = self._read()

    def failed(self) -> None:
        """Look what is wrong now that the attempt failed."""
        self._faults |= self._read()

    def is_less(self) -> bool:
        """Whether some of the faults were repaired since, and none is new; then asks no more."""
        if not self._faults or not self._read() < self._faults:
            return False
        self._faults = frozenset()
        return True

    def _read(self) -> frozenset[tuple[str, ...]]:
        snapshot = self._collaboration.refresh(self._clock())
        errors = (
            (each.code, each.document or "", each.message)
            for each in snapshot.findings
            if each.severity is Severity.ERROR
        )
        damage = ((each.code, each.key) for each in snapshot.obstacles if each.wanted)
        return frozenset((*errors, *damage))
