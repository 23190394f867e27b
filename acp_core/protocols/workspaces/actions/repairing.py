"""Mending what orchestrators share, bound to a run, whether that can be read or not."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from acp_core.files.transaction import JOURNAL
from acp_core.model.action import Action
from acp_core.model.errors import Refused
from acp_core.protocols.kit.binding import Context, planned
from acp_core.protocols.workspaces.actions import table_integration
from acp_core.protocols.workspaces.actions.common import previewed
from acp_core.protocols.workspaces.read.manifest import layout
from acp_core.protocols.workspaces.schema import Layout
from acp_core.protocols.workspaces.write import setup


def repairing(context: Context, now: datetime) -> Action:
    """Mend what can be mended; offered where something can."""
    place = layout(Path(context.key))
    return planned(
        table_integration.REPAIRING,
        context,
        lambda _: setup.plan_repair(place),
        previewed,
        lambda _: setup.repair_run(place),
        offered=_is_offered(place),
    )


def _is_offered(place: Layout) -> bool:
    if os.path.lexists(place.coord / JOURNAL):
        return True
    try:
        return bool(setup.plan_repair(place))
    except Refused:
        return False
