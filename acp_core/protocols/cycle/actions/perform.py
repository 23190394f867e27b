"""What a person changes in a cycle's state, shown beforehand or carried out.

A change is written into the state at once. Whether it has an effect is another matter: that is
only requested until an orchestrator has picked it up. One of ours that was ended is started
again where the change lets the cycle go on.
"""

from __future__ import annotations

import copy
import time
from pathlib import Path

from acp_core.agents.state import RunnerState
from acp_core.files import requests
from acp_core.files.claims import CONDUCT, ClaimError
from acp_core.model.action import Change, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.cycle import matters, schema
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.read import orchestrator_spec
from acp_core.protocols.cycle.schema import Object, encoded
from acp_core.protocols.cycle.write import asked
from acp_core.protocols.cycle.write.store import Store, Written, finish
from acp_core.protocols.kit.guard import check
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import difference, safe

_SETTLE = 0.3  # seconds in which a program that writes from its memory shows itself
_ANSWER = 3.0  # seconds for which the orchestrator of another account is waited for


def preview(root: Path, id: str, act: str, values: Values, sentence: str) -> Preview:
    """What a change would do, before it does it.

    Args:
        root: the project.
        id: the cycle.
        act: the act's name.
        values: what was given for it.
        sentence: the act in words.

    Raises:
        Refused: it is not possible.
        OSError: the state cannot be read.
    """
    store = Store(root, id)
    before = store.read()
    check(matters.of_state(root, id), act)
    after = copy.deepcopy(before)
    now = utc_now()
    asked.edit(act, vars(values))(after, now)
    finish(after, now)
    warnings, notes = _consequences(root, id, after)
    facts = {"cycle": id, "state": "dry-run"}
    changes = (state_change(store, before, after),)
    return Preview(sentence, changes, warnings=warnings, notes=notes, data=facts)


def _consequences(root: Path, id: str, after: Object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a person should heed, and what merely follows: whether somebody picks the change up."""
    alive, other = process.running(str(root)), process.elsewhere(str(root), id)
    if other:
        return (), (safe(f"{other.sentence}: acp sends the request there"),)
    if after.get("status") != "running" or (alive and process.conducted(alive) == id):
        return (), ()
    if alive:
        return (safe(_elsewhere(alive)),), ()
    if orchestrator_spec.load(str(root), id) is not None:
        return (), ("no orchestrator is running: acp restarts it",)
    return (
        "no orchestrator is running: the change takes effect when you start one (acp cycle run)",
    ), ()


def carry_out(root: Path, id: str, act: str, values: Values) -> Outcome:
    """Make a change, and see to it that an orchestrator takes it up; arguments as of `preview`.

    While an orchestrator of another account conducts, only that one writes: it is asked.

    Raises:
        Refused: it is not done.
        OSError: it cannot be written.
    """
    store = Store(root, id)
    now = utc_now()
    edit = asked.edit(act, vars(values))
    if process.elsewhere(str(root), id):
        done = _ask(store, act, values)
        if done is not None:
            return done

    def allow() -> None:
        other = process.elsewhere(str(root), id)
        if other:
            raise Refused(f"{other.sentence} since a moment ago: try again")

    written = store.change(lambda state: edit(state, now), now, act, allow)
    state, sentence = _effect(store, written)
    word = "lost" if state is OutcomeState.UNKNOWN else state.value
    changes = (state_change(store, written.before, written.state),)
    facts = {"cycle": id, "state": word}
    return Outcome(state, safe(sentence), done=Preview(safe(sentence), changes, data=facts))


def _ask(store: Store, act: str, values: Values) -> Outcome | None:
    """Ask the orchestrator of another account for a change; None where it has ended meanwhile.

    Raises:
        Refused: it refuses.
        OSError: it cannot be asked.
    """
    root, given = str(store.root), asked.chosen(act, vars(values)) | {"cycle": store.id}
    try:
        path = requests.ask(root, CONDUCT, act, given)
    except ClaimError as error:
        raise Refused(str(error)) from None
    answer, holder = requests.wait(root, CONDUCT, path, _ANSWER)
    if answer is None and not holder.held and requests.withdraw(path):
        return None
    if answer is not None and answer.state == "refused":
        raise Refused(clean_line(answer.sentence, 1_000))
    if answer is not None:
        state, sentence = OutcomeState.DONE, clean_line(answer.sentence, 1_000)
    elif holder.held:
        state = OutcomeState.REQUESTED
        sentence = f"Queued: {holder.sentence} and has to pick it up."
    else:
        state = OutcomeState.UNKNOWN
        sentence = (
            f"{holder.sentence} no longer: check whether it applied the change before it ended."
        )
    word = "unknown" if state is OutcomeState.UNKNOWN else state.value
    facts = {"cycle": store.id, "state": word}
    return Outcome(state, safe(sentence), done=Preview(safe(sentence), data=facts))


def _effect(store: Store, written: Written) -> tuple[OutcomeState, str]:
    """What becomes of a change that is written; an orchestrator of ours is started again for it."""
    root, id = str(store.root), store.id
    alive = process.running(root)
    if alive is None:
        time.sleep(_SETTLE)
    if written.lost or store.overwritten(written):
        message = "Written but lost: another program overwrote the change"
        return OutcomeState.UNKNOWN, f"{message}; stop that program, or repeat the change."
    if alive and process.conducted(alive) == id:
        return OutcomeState.REQUESTED, "Queued: the orchestrator will pick it up."
    if alive:
        return OutcomeState.REQUESTED, f"Written; {_elsewhere(alive)}."
    if schema.text(written.state.get("status")) != "running":
        return OutcomeState.DONE, "Done."
    spec = orchestrator_spec.load(root, id)
    if spec is None:
        message = "Written. No orchestrator is running: start one with `acp cycle run`."
        return OutcomeState.REQUESTED, message
    message = f"Queued: acp restarted the orchestrator (process {process.start(spec).pid})."
    return OutcomeState.REQUESTED, message


def _elsewhere(found: RunnerState) -> str:
    """A project has one orchestrator at a time: its cycles share the files that agents work on."""
    return (
        f"the project's orchestrator is running {process.conducted(found)}: this cycle has to wait"
    )


def state_change(store: Store, before: Object, after: Object) -> Change:
    """What becomes of the state file."""
    shown = difference(encoded(before), encoded(after), "state (now)", "state (then)")
    return Change(safe(str(store.path)), "replace", shown)
