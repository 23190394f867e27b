"""The time of day. Whatever depends on it takes a function like `utc_now`, so that tests can set it."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The moment, aware, in UTC."""
    return datetime.now(UTC)
