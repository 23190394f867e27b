"""Every write to a cycle: its state file, its progress folder, its coordination log."""

from __future__ import annotations

from acp_core.model.errors import Refused

__all__ = ["Refused"]
