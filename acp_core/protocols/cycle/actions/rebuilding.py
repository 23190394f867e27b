"""A state that is lost or damaged, put back or made anew from the agents' documents.

Source: development cycle specification, "Progress Markdown Files".
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.cycle import matters
from acp_core.protocols.cycle.actions.perform import state_change
from acp_core.protocols.cycle.actions.table_conducting import REBUILDING
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.read import state_file
from acp_core.protocols.cycle.read.selected import OpenProject, is_damaged, open_project
from acp_core.protocols.cycle.read.state_file import read_state_file
from acp_core.protocols.cycle.schema import REBUILD_ACT, Object
from acp_core.protocols.cycle.write.coordination import note
from acp_core.protocols.cycle.write.rebuild import rebuilt
from acp_core.protocols.cycle.write.store import Store
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.guard import check
from acp_core.protocols.kit.values import Values

_RESTORED = "Restored the state that acp wrote last"
_REBUILT = "Rebuilt from the agents' documents, and paused"
_ASIDE = "the old file is kept beside it."


def rebuilding(context: Context, now: datetime) -> Action:
    """Make the state anew: of the cycle that is shown, where it is damaged."""
    opened = open_project(context, now)
    selected = opened.project.selected
    damaged = selected is not None and matters.can_rebuild(opened.root, selected)

    def preview(values: Values) -> Preview:
        made = _made(opened, values.cycle)
        return _preview_of(made, REBUILDING.sentence, "dry-run")

    def perform(values: Values) -> Outcome:
        made = _made(opened, values.cycle)
        made.store.rewrite(made.after, utc_now())
        return Outcome(
            OutcomeState.DONE, made.sentence, done=_preview_of(made, made.sentence, "done")
        )

    narrowed = {"cycle": {"default": selected.id}} if selected and damaged else {}
    return bound(REBUILDING, opened, preview, perform, narrowed=narrowed, offered=damaged)


class _Made(NamedTuple):
    """A state made anew: whose, what stands there now, and what becomes of it, in words too."""

    store: Store
    before: Object
    after: Object
    sentence: str


def _preview_of(made: _Made, sentence: str, word: str) -> Preview:
    changes = (state_change(made.store, made.before, made.after),)
    return Preview(sentence, changes, data={"cycle": made.store.id, "state": word})


def _meant(opened: OpenProject, id: str) -> str:
    """The cycle that is named; without a name the only one that is lost or damaged.

    Raises:
        Refused: there is none, or there are several.
    """
    if id:
        return id.removesuffix(".json")
    project = opened.project
    broken = [each.id for each in project.cycles if is_damaged(each)]
    candidates = [*broken, *project.orphans] or [each.id for each in project.cycles]
    if len(candidates) != 1:
        names = ", ".join(candidates[-5:]) or "none"
        raise Refused(f"name the cycle with --cycle (cycles: {names})")
    return candidates[0]


def _made(opened: OpenProject, id: str) -> _Made:
    """The state that would take the place of what stands there.

    What acp wrote last, where that is kept and nothing else can be read; else what the documents
    tell, and what can still be read of the old one.

    Raises:
        Refused: nothing is damaged while an orchestrator runs, something else stands in the way,
            or there is nothing to make it of.
    """
    store = Store(opened.root, _meant(opened, id))
    found = read_state_file(store.path)
    if not found.problem and process.running(str(opened.root)):
        raise Refused("an orchestrator is running in this project: stop it first (acp stop)")
    check(matters.of_state(store.root, store.id), REBUILD_ACT)
    last = state_file.last_whole_state(store.root, store.id) if found.problem else None
    if last is not None:
        note(last, utc_now(), "user", "the state that acp wrote last was restored")
        return _Made(store, found.state, last, f"{_RESTORED}; {_ASIDE}")
    after = rebuilt(store.progress, store.id, utc_now(), found.state)
    return _Made(store, found.state, after, f"{_REBUILT}; {_ASIDE}")
