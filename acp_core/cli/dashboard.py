"""``acp [PATH...]`` and ``acp dashboard [PATH...]``: opens the dashboard that it was given."""

from __future__ import annotations

from acp_core.cli.context import handed_in
from acp_core.cli.start import open_dashboard
from acp_core.protocols.kit.values import Values


def dashboard(given: Values) -> int:
    """Draw the dashboard with what was handed in."""
    return open_dashboard(given.paths, handed_in(), theme=given.theme, utc=given.utc)
