"""The real terminal of the measurements, for tests: see `acp_core.bench.terminal`."""

from __future__ import annotations

from acp_core.bench.terminal import Terminal

__all__ = ["Terminal"]
