"""What a person does to a cycle, carried out or only shown: for commands and for the dashboard.

A change is written into the state at once. Whether it has an effect is another matter: that is
only requested until an orchestrator has picked it up. One of ours that was ended is started
again where the change lets the cycle go on.
"""

from __future__ import annotations

import copy
import difflib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from acp_core.agents.state import RunnerState
from acp_core.files.text import clean, clean_line
from acp_core.model import Change, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.conduct import spec as specs
from acp_core.protocols.cycle.schema import Object
from acp_core.protocols.cycle.write import Refused
from acp_core.protocols.cycle.write import rebuild as rebuild_state
from acp_core.protocols.cycle.write.store import Store, encoded, finish

_SHOWN = 1 << 16  # characters of a diff
_SETTLE = 0.3  # seconds in which a program that writes from its memory shows itself

Edit = Callable[[Object, datetime], None]
"""Changes a state in place, as of a moment; raises Refused where that is not possible."""


@dataclass(frozen=True, slots=True)
class Done:
    """How a change went: a sentence, whether somebody must still pick it up, and what was lost."""

    sentence: str
    requested: bool
    lost: bool = False


def reason_of(error: Refused | OSError) -> str:
    """Why something is not done, in one line that is safe to show."""
    if isinstance(error, Refused):
        return clean_line(str(error), 2_000)
    return clean_line(f"{error.filename or 'a file'}: {error.strerror or error}", 2_000)


def preview(root: Path | str, id: str, edit: Edit, sentence: str) -> Preview:
    """What a change would do, before it does it."""
    try:
        store = Store(root, id)
        before = store.read()
        after = copy.deepcopy(before)
        now = utc_now()
        edit(after, now)
        finish(after, now)
    except (Refused, OSError) as error:
        return Preview("", refused=reason_of(error))
    shown = Change(clean_line(str(store.path)), "replace", difference(before, after))
    alive = process.running(str(root))
    if after.get("status") != "running" or (alive and process.conducted(alive) == id):
        return Preview(sentence, (shown,))
    if alive:
        return Preview(sentence, (shown,), warnings=(_elsewhere(alive),))
    if specs.load(str(root), id) is not None:
        return Preview(sentence, (shown,), notes=("no orchestrator runs: it is started again",))
    told = "no orchestrator runs: it has an effect once one does (acp cycle run)"
    return Preview(sentence, (shown,), warnings=(told,))


def carry_out(root: Path | str, id: str, edit: Edit, *, go_on: bool = True) -> Done:
    """Make a change, and see to it that an orchestrator takes it up.

    Args:
        root: the project's folder.
        id: the cycle.
        edit: the change.
        go_on: start an orchestrator of ours again, where none runs and the cycle may go on.

    Raises:
        Refused: it is not done.
        OSError: it cannot be written.
    """
    store = Store(root, id)
    now = utc_now()
    written = store.change(lambda state: edit(state, now), now)
    alive = process.running(str(root))
    if alive is None:
        time.sleep(_SETTLE)
    lost = written.lost or store.overwritten(written)
    if lost:
        told = "written, and lost again: another program wrote over it from its memory"
        return Done(f"{told}; end that program, or repeat it", True, True)
    if alive and process.conducted(alive) == id:
        return Done("requested: the orchestrator takes it up", True)
    if alive:
        return Done(f"written; {_elsewhere(alive)}", True)
    if schema.text(written.state.get("status")) != "running" or not go_on:
        return Done("done", False)
    spec = specs.load(str(root), id)
    if spec is None:
        return Done("written; no orchestrator runs: `acp cycle run` starts one", True)
    started = process.start(spec)
    return Done(f"requested: the orchestrator was started again (process {started.pid})", True)


def _elsewhere(found: RunnerState) -> str:
    """A project has one orchestrator at a time: its cycles share the files that agents work on."""
    return f"the project's orchestrator conducts {process.conducted(found)}: this cycle waits"


def outcome(root: Path | str, id: str, edit: Edit, *, go_on: bool = True) -> Outcome:
    """As `carry_out`, as the outcome of an action."""
    try:
        done = carry_out(root, id, edit, go_on=go_on)
    except (Refused, OSError) as error:
        return Outcome(OutcomeState.REFUSED, reason_of(error))
    if done.lost:
        return Outcome(OutcomeState.UNKNOWN, clean_line(done.sentence))
    state = OutcomeState.REQUESTED if done.requested else OutcomeState.DONE
    said = done.sentence[:1].upper() + done.sentence[1:] + "."
    return Outcome(state, clean_line(said))


def difference(before: Object, after: Object) -> str:
    """Two states as a unified diff, safe to show."""
    old, new = (clean(encoded(each).decode()).split("\n") for each in (before, after))
    lines = difflib.unified_diff(old, new, "state (now)", "state (then)", lineterm="")
    text = "\n".join(lines)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "\n…"


def rebuilt(root: Path | str, id: str) -> tuple[Store, Object, Object]:
    """A state made anew from the agents' documents: its store, what stands there now, and it.

    Raises:
        Refused: an orchestrator runs, or there are no documents.
    """
    if process.running(str(root)):
        raise Refused("an orchestrator runs in this project: stop it first (acp stop)")
    store = Store(root, id)
    try:
        old = store.read()
    except Refused:
        old = {}
    return store, old, rebuild_state.rebuilt(store.progress, id, utc_now(), old)


def rebuild(root: Path | str, id: str) -> None:
    """Put a state made anew in place of the one that stands there, which is kept beside it.

    Raises:
        Refused: as `rebuilt`.
        OSError: it cannot be written.
    """
    store, _, state = rebuilt(root, id)
    store.rewrite(state, utc_now())
