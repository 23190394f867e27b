"""Every write of governed runs and initiatives: locked, in order, recoverable."""

from __future__ import annotations
