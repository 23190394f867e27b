"""Every write of governed runs and initiatives: locked, in order, recoverable."""

from __future__ import annotations

from acp_core.model.errors import Refused

__all__ = ["Refused"]
