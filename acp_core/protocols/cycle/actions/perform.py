"""What a person changes in a cycle's state, shown beforehand or carried out.

A change is written into the state at once. Whether it has an effect is another matter: that is
only requested until an orchestrator has picked it up. One of ours that was ended is started
again where the change lets the cycle go on.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from acp_core.agents.state import RunnerState
from acp_core.model.action import Change, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.conduct import spec as specs
from acp_core.protocols.cycle.schema import Object
from acp_core.protocols.cycle.write import guard
from acp_core.protocols.cycle.write.store import Store, Written, encoded, finish
from acp_core.protocols.kit.guard import check
from acp_core.protocols.kit.wording import difference, safe

_SETTLE = 0.3  # seconds in which a program that writes from its memory shows itself

Edit = Callable[[Object, datetime], None]
"""Changes a state in place, as of a moment; raises Refused where that is not possible."""


def preview(root: Path, id: str, act: str, edit: Edit, sentence: str) -> Preview:
    """What a change would do, before it does it.

    Args:
        root: the project.
        id: the cycle.
        act: the act's name.
        edit: the change.
        sentence: the act in words.

    Raises:
        Refused: it is not possible.
        OSError: the state cannot be read.
    """
    store = Store(root, id)
    before = store.read()
    check(guard.of_state(root, id), act)
    after = copy.deepcopy(before)
    now = utc_now()
    edit(after, now)
    finish(after, now)
    warnings, notes = _consequences(root, id, after)
    facts = {"cycle": id, "state": "dry-run"}
    changes = (state_change(store, before, after),)
    return Preview(sentence, changes, warnings=warnings, notes=notes, data=facts)


def _consequences(root: Path, id: str, after: Object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a person should heed, and what merely follows: whether somebody picks the change up."""
    alive = process.running(str(root))
    if after.get("status") != "running" or (alive and process.conducted(alive) == id):
        return (), ()
    if alive:
        return (safe(_elsewhere(alive)),), ()
    if specs.load(str(root), id) is not None:
        return (), ("no orchestrator runs: it is started again",)
    return ("no orchestrator runs: it has an effect once one does (acp cycle run)",), ()


def carry_out(root: Path, id: str, act: str, edit: Edit) -> Outcome:
    """Make a change, and see to it that an orchestrator takes it up; arguments as of `preview`.

    Raises:
        Refused: it is not done.
        OSError: it cannot be written.
    """
    store = Store(root, id)
    now = utc_now()
    written = store.change(lambda state: edit(state, now), now, act)
    state, sentence = _effect(store, written)
    word = "lost" if state is OutcomeState.UNKNOWN else state.value
    changes = (state_change(store, written.before, written.state),)
    facts = {"cycle": id, "state": word}
    return Outcome(state, safe(sentence), done=Preview(safe(sentence), changes, data=facts))


def _effect(store: Store, written: Written) -> tuple[OutcomeState, str]:
    """What becomes of a change that is written; an orchestrator of ours is started again for it."""
    root, id = str(store.root), store.id
    alive = process.running(root)
    if alive is None:
        time.sleep(_SETTLE)
    if written.lost or store.overwritten(written):
        told = "Written, and lost again: another program wrote over it from its memory"
        return OutcomeState.UNKNOWN, f"{told}; end that program, or repeat it."
    if alive and process.conducted(alive) == id:
        return OutcomeState.REQUESTED, "Requested: the orchestrator takes it up."
    if alive:
        return OutcomeState.REQUESTED, f"Written; {_elsewhere(alive)}."
    if schema.text(written.state.get("status")) != "running":
        return OutcomeState.DONE, "Done."
    spec = specs.load(root, id)
    if spec is None:
        told = "Written; no orchestrator runs: `acp cycle run` starts one."
        return OutcomeState.REQUESTED, told
    told = f"Requested: the orchestrator was started again (process {process.start(spec).pid})."
    return OutcomeState.REQUESTED, told


def _elsewhere(found: RunnerState) -> str:
    """A project has one orchestrator at a time: its cycles share the files that agents work on."""
    return f"the project's orchestrator conducts {process.conducted(found)}: this cycle waits"


def state_change(store: Store, before: Object, after: Object) -> Change:
    """What becomes of the state file."""
    shown = difference(encoded(before), encoded(after), "state (now)", "state (then)")
    return Change(safe(str(store.path)), "replace", shown)
