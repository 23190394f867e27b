"""What a human does in runs and initiatives: commands, and actions as they can be done now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from acp_core.model.action import Action
from acp_core.model.clock import utc_now
from acp_core.protocols.governed.acts import common
from acp_core.protocols.governed.acts.table import COMMANDS, COORDINATOR

governed = COMMANDS.main
coordinator = COORDINATOR.main


def run_actions(root: Path | str) -> Sequence[Action]:
    """What can be done in the run now."""
    return common.run_actions(str(root), utc_now())


def initiative_actions(root: Path | str) -> Sequence[Action]:
    """What can be done in the initiative now."""
    return common.initiative_actions(str(root), utc_now())
