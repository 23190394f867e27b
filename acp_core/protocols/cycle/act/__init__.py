"""Every write to a cycle: its state file, its progress folder, its coordination log."""

from __future__ import annotations


class Refused(Exception):
    """Something is not done; the message is one line that says why and what to do."""
