"""Every write of the folder protocol: appending, starting, repairing and continuing."""

from __future__ import annotations

from acp_core.model.errors import Refused

__all__ = ["Refused"]
