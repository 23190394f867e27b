"""How much of what is recorded is kept; apart from the recordings, which take longer to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DAYS = 90.0
MEGABYTES = 2_000.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long and how much is kept: ``days`` since the last change, ``megabytes`` in all.

    ``on`` False: nothing is recorded at all.
    """

    on: bool = True
    days: float = DAYS
    megabytes: float = MEGABYTES

    @classmethod
    def of(cls, settings: Mapping[str, float]) -> Bounds:
        """As the settings' ``[recording]`` table says, which was checked before."""
        given = {name: value for name, value in settings.items() if name in ("days", "megabytes")}
        return cls(on=bool(settings.get("on", True)), **given)
