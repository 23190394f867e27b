"""Everything that is written into a run's folder: planned, shown, and done under one lock.

Source: agent workspaces specification, "Directory Structure for Agent Workspaces" and
"Integration Step Protocol".
"""

from __future__ import annotations

from acp_core.model.errors import Refused

__all__ = ["Refused"]
