"""What a person changes in a cycle's state, shown beforehand or carried out, and bound to the cycle.

A change is written into the state at once. Whether it has an effect is another matter: that is
only requested until an orchestrator has picked it up. One of ours that was ended is started
again where the change lets the cycle go on. Source: development cycle specification, "Escalation Path".
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from acp_core.agents.state import RunnerState
from acp_core.files import requests
from acp_core.files.claims import CONDUCT, ClaimError
from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import ActionSpec
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.cycle import matters, schema, state
from acp_core.protocols.cycle.acts.table import (
    ACCEPTANCE,
    DECISION,
    EXTENSION,
    LIMITING,
    MESSAGE,
    PAUSING,
    REPEAT,
    RESOLUTION,
    RESUMPTION,
    STOPPING,
)
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.read import orchestrator_spec
from acp_core.protocols.cycle.read.scan import OpenProject, is_damaged, open_project
from acp_core.protocols.cycle.schema import AGENTS, Blocker, Cycle, Decision, Object, encoded
from acp_core.protocols.cycle.write import asked, changes
from acp_core.protocols.cycle.write.store import Store, Written, finish
from acp_core.protocols.kit.binding import Context, Narrowed, bound
from acp_core.protocols.kit.guard import check
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import difference, safe

_SETTLE = 0.3  # seconds in which a program that writes from its memory shows itself
_ANSWER = 3.0  # seconds for which the orchestrator of another account is waited for


def preview_change(root: Path, id: str, act: str, values: Values, sentence: str) -> Preview:
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


_LONG = 300  # characters of a decision's text in a sentence
_EXTENDED = ("completed", "failed", "running", "paused")


def _bound(
    spec: ActionSpec,
    opened: OpenProject,
    *,
    offered: bool,
    narrowed: Narrowed | None = None,
    sentence: Callable[[Cycle], str] | None = None,
) -> Action:
    """An act that changes the state of the cycle that is shown, or of the one that is named.

    Args:
        spec: its description.
        opened: the project.
        offered: whether it can be done to the cycle that is shown.
        narrowed: what is otherwise than in the description.
        sentence: what it does to a cycle, where that depends on it.
    """
    shown = opened.selected
    describe = sentence or (lambda _: spec.sentence)

    def preview(values: Values) -> Preview:
        cycle = opened.find(values.cycle)
        return preview_change(opened.root, cycle.id, spec.name, values, describe(cycle))

    def perform(values: Values) -> Outcome:
        cycle = opened.find(values.cycle)
        return carry_out(opened.root, cycle.id, spec.name, values)

    return bound(
        spec,
        opened,
        preview,
        perform,
        narrowed={**(narrowed or {}), "cycle": {"default": shown.id}},
        sentence=describe(shown),
        offered=offered and not is_damaged(shown),
    )


def _ids(entries: Sequence[Decision | Blocker]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.id for each in entries if each.id))


def decide(context: Context, now: datetime) -> Action:
    """Make a decision that waits."""
    opened = open_project(context, now)
    waiting = state.decisions(opened.selected)
    ids = _ids(waiting)
    first = waiting[0].id if waiting else None
    offers = clean_line(" · ".join(_offer(each) for each in waiting))
    narrowed: Narrowed = {
        "decision": {"choices": ids, "default": first},
        "choice": {"help": offers},
    }

    return _bound(
        DECISION,
        opened,
        offered=bool(ids),
        narrowed=narrowed,
        sentence=_decision_sentence,
    )


def _decision_sentence(cycle: Cycle) -> str:
    """Which decision waits first."""
    waiting = state.decisions(cycle)
    if not waiting:
        return DECISION.sentence
    said = clean_line(waiting[0].description, _LONG)
    return f"Decide {clean_line(waiting[0].id)}: {said}"


def _offer(decision: Decision) -> str:
    numbered = "  ".join(f"{n}. {each}" for n, each in enumerate(decision.options, 1))
    return f"{decision.id}: {numbered or 'in words'}"


def resolve(context: Context, now: datetime) -> Action:
    """Say how a blocker is gone."""
    opened = open_project(context, now)
    waiting = state.blockers(opened.selected)
    ids = _ids(waiting)
    texts = " · ".join(f"{each.id}: {each.description}" for each in waiting)
    first = ids[0] if ids else None
    narrowed = {"blocker": {"choices": ids, "default": first, "help": clean_line(texts)}}

    return _bound(RESOLUTION, opened, offered=bool(ids), narrowed=narrowed)


def feedback(context: Context, now: datetime) -> Action:
    """Tell an agent something."""
    opened = open_project(context, now)

    offered = opened.selected.status in schema.OPEN
    narrowed = {"agent": {"default": "cd"}}
    return _bound(MESSAGE, opened, offered=offered, narrowed=narrowed)


def extend(context: Context, now: datetime) -> Action:
    """Begin another iteration."""
    opened = open_project(context, now)
    shown = opened.selected
    waits = state.decisions(shown) or _at_work(shown)

    allowed = shown.state.max_iterations
    above = allowed and shown.iteration + 1 > allowed
    narrowed = {"limit": {"default": shown.iteration + 1}} if above else {}
    raised = f" and raise the limit, which is {allowed}" if above else ""
    return _bound(
        EXTENSION,
        opened,
        narrowed=narrowed,
        offered=shown.status in _EXTENDED and not waits,
        sentence=lambda cycle: f"Start iteration {cycle.iteration + 1} with a new task{raised}.",
    )


def pause(context: Context, now: datetime) -> Action:
    """Have it wait."""
    opened = open_project(context, now)
    offered = opened.selected.status == "running"
    return _bound(PAUSING, opened, offered=offered)


def resume(context: Context, now: datetime) -> Action:
    """Let it go on."""
    opened = open_project(context, now)
    shown = opened.selected
    offered = shown.status in ("paused", "failed", "created") and not state.decisions(shown)
    return _bound(RESUMPTION, opened, offered=offered)


def stop(context: Context, now: datetime) -> Action:
    """End it as failed."""
    opened = open_project(context, now)

    return _bound(STOPPING, opened, offered=opened.selected.status in schema.OPEN)


def accept(context: Context, now: datetime) -> Action:
    """Take it as it is."""
    opened = open_project(context, now)
    shown = opened.selected

    waits = state.decisions(shown) or _at_work(shown)
    return _bound(
        ACCEPTANCE,
        opened,
        offered=_is_acceptable(shown) and not waits,
        sentence=lambda cycle: (
            f"Accept the cycle as it is ({state.tests(cycle)}) and complete it; the test results are kept."
        ),
    )


def _at_work(cycle: Cycle) -> list[str]:
    """The agents at work; in a cycle that is over none is, whatever it is said to do."""
    return state.running(cycle) if cycle.status in schema.OPEN else []


def _is_acceptable(cycle: Cycle) -> bool:
    """Something was done, and its tests do not show that it is good."""
    if not cycle.iteration or cycle.status not in ("running", "paused", "completed"):
        return False
    found = state.tests(cycle)
    good = found.proven and not found.failed and state.verdict(cycle) != state.UNPROVEN
    return not good and not state.accepted(cycle)


def rerun(context: Context, now: datetime) -> Action:
    """Have an agent do its work again."""
    opened = open_project(context, now)

    free = _repeatable(opened.selected)
    offered = opened.selected.status in ("running", "paused") and bool(free)
    current = state.current(opened.selected)
    narrowed = {"agent": {"default": current if current in free or not free else free[0]}}
    return _bound(REPEAT, opened, offered=offered, narrowed=narrowed)


def _repeatable(cycle: Cycle) -> list[str]:
    """The agents that can be run again: neither they nor any that depends on them is at work."""
    at_work = set(state.running(cycle))
    return [name for n, name in enumerate(AGENTS) if not at_work & set(AGENTS[n:])]


def limit(context: Context, now: datetime) -> Action:
    """Change the maximum number of iterations."""
    opened = open_project(context, now)
    allowed = _allowed(opened.selected)
    bounds = {"default": min(allowed + 1, changes.LIMIT), "least": 1, "most": changes.LIMIT}

    return _bound(
        LIMITING,
        opened,
        offered=True,
        narrowed={"iterations": bounds},
        sentence=lambda cycle: f"Change the iteration limit (now {_allowed(cycle)}).",
    )


def _allowed(cycle: Cycle) -> int:
    return cycle.state.max_iterations or cycle.iteration
