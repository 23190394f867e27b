"""What a protocol can tell of files at a moment of which no recording tells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

Held = tuple[bytes, float]
"""A file's content, and since when it stands there, in seconds since 1970."""
Files = dict[str, bytes | None]
"""Contents by file name; None for a file that was not there."""


class Evidence(NamedTuple):
    """What is known of a moment.

    Attributes:
        at: the moment.
        log: the log's bytes as far as it had got; b"" where there is no log.
        known: the earliest known contents of the files that are not known of that moment.
        there: the files that are.
    """

    at: datetime
    log: bytes
    known: Mapping[str, bytes]
    there: Mapping[str, Held]


class Derivation(ABC):
    """Tells what stood in files at one moment after the other; may keep what it worked out."""

    @abstractmethod
    def derive(self, evidence: Evidence) -> Files:
        """What files held that are not known; those of which nothing can be told are left out."""
