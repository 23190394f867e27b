"""A state that is lost or damaged, made anew from the agents' documents.

Source: development cycle specification, "Progress Markdown Files".
"""

from __future__ import annotations

from datetime import datetime

from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.protocols.cycle.actions.common import OpenProject, is_damaged, open_project
from acp_core.protocols.cycle.actions.perform import state_change
from acp_core.protocols.cycle.actions.table_conducting import REBUILDING
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.schema import Object
from acp_core.protocols.cycle.write import Refused
from acp_core.protocols.cycle.write import rebuild as rebuild_state
from acp_core.protocols.cycle.write.store import Store
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.values import Values


def rebuilding(context: Context, now: datetime) -> Action:
    """Make the state anew: of the cycle that is shown, where it is damaged."""
    opened = open_project(context, now)
    shown = opened.project.shown
    damaged = shown is not None and is_damaged(shown)

    def preview(values: Values) -> Preview:
        id = _meant(opened, values.cycle)
        store, before, after = _rebuilt(opened, id)
        changes = (state_change(store, before, after),)
        facts = {"cycle": id, "state": "dry-run"}
        return Preview(REBUILDING.sentence, changes, data=facts)

    def perform(values: Values) -> Outcome:
        id = _meant(opened, values.cycle)
        store, before, after = _rebuilt(opened, id)
        changes = (state_change(store, before, after),)
        store.rewrite(after, utc_now())
        sentence = "Rebuilt, and paused; what stood there is kept beside it."
        facts = {"cycle": id, "state": "done"}
        return Outcome(OutcomeState.DONE, sentence, done=Preview(sentence, changes, data=facts))

    narrowed = {"cycle": {"default": shown.id}} if shown and damaged else {}
    return bound(REBUILDING, opened, preview, perform, narrowed=narrowed, offered=damaged)


def _meant(opened: OpenProject, id: str) -> str:
    """The cycle that is named; without a name the only one that is lost or damaged.

    Raises:
        Refused: there is none, or there are several.
    """
    if id:
        return id.removesuffix(".json")
    project = opened.project
    broken = [each.id for each in project.cycles if each.record.problem]
    candidates = [*broken, *project.orphans] or [each.id for each in project.cycles]
    if len(candidates) != 1:
        names = ", ".join(candidates[-5:]) or "none"
        raise Refused(f"name the cycle with --cycle (there are: {names})")
    return candidates[0]


def _rebuilt(opened: OpenProject, id: str) -> tuple[Store, Object, Object]:
    """The cycle's store, what stands there now, and the state made anew.

    Raises:
        Refused: an orchestrator runs, or there are no documents.
    """
    if process.running(str(opened.root)):
        raise Refused("an orchestrator runs in this project: stop it first (acp stop)")
    store = Store(opened.root, id)
    try:
        old = store.read()
    except Refused:
        old = {}
    return store, old, rebuild_state.rebuilt(store.progress, id, utc_now(), old)
