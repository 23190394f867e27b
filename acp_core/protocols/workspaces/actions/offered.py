"""What a person can do in a run, described: forms and commands are made of it.

Loaded only when needed: the descriptions are pydantic models.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from acp_core.protocols.workspaces import state
from acp_core.protocols.workspaces.actions import dispatching, init, integrating, judging
from acp_core.protocols.workspaces.actions.common import Desk
from acp_core.protocols.workspaces.actions.init import create
from acp_core.protocols.workspaces.write import Refused, dispatch
from acp_core.protocols.workspaces.write import manifest as manifests
from acp_core.protocols.workspaces.write.layout import layout

if TYPE_CHECKING:
    from acp_core.model import Action

__all__ = ["actions", "create"]


def actions(folder: str, now: datetime) -> Sequence[Action]:
    """What a person can do now, most useful first; nothing where no orchestrator wrote anything.

    Args:
        folder: the run.
        now: the time as of which it is read.
    """
    try:
        place = layout(folder)
        desk = Desk(place, dispatch.look(place, now), manifests.read(place))
    except (Refused, OSError):
        return ()
    if state.of_run(desk.run).startswith("integrated"):
        made = [integrating.finish(desk)]
    else:
        made = [
            judging.triage(desk),
            dispatching.dispatch(desk),
            dispatching.again(desk),
            init.more(desk),
            judging.find(desk),
            judging.resolve(desk),
            judging.dismiss(desk),
            integrating.synthesise(desk),
            integrating.finish(desk),
            judging.add(desk),
            integrating.order(desk),
            dispatching.stop(desk),
        ]
    return [each for each in made if each is not None]
