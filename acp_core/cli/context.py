"""What acp's start is handed from outside: how to draw, and the question of a completion script."""

from __future__ import annotations

from collections.abc import Callable

from acp_core.model.light import TYPE_CHECKING

if TYPE_CHECKING:
    from acp_core.person.settings import Settings

Dashboard = Callable[[list[str], "Settings"], int]
"""Draws the dashboard over some folders until it is left; returns the exit code."""

_drawn: list[Dashboard] = []


def hand_in(dashboard: Dashboard) -> None:
    """Give commands what draws the dashboard: it stands above them, and they import nothing of it."""
    _drawn[:] = [dashboard]


def handed_in() -> Dashboard:
    """What draws the dashboard."""
    return _drawn[0]


COMPLETE = "_ACP_COMPLETE"
"""The environment variable in which a completion script asks."""
