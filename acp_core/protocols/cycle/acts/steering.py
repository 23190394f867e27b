"""What a person changes in a cycle's state, shown beforehand or carried out, and bound to the cycle.

A change is written into the state at once. Whether it has an effect is another matter: that is
only requested until an orchestrator has picked it up. One of ours that was ended is started
again where the change lets the cycle go on. Source: development cycle specification, "Escalation Path".
"""

from __future__ import annotations

import copy
import shlex
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
from acp_core.protocols.cycle.read.scan import is_damaged, open_project
from acp_core.protocols.cycle.schema import AGENTS, Blocker, Cycle, Decision, Object, encoded
from acp_core.protocols.cycle.write.changes import LIMIT, fields_of_act, requested_edit
from acp_core.protocols.cycle.write.store import Store, Written, finish
from acp_core.protocols.kit.binding import Context, Narrowed, bound
from acp_core.protocols.kit.guard import check
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import difference, safe

_SETTLE = 0.3  # seconds in which a program that writes from its memory shows itself
_ANSWER = 3.0  # seconds for which the orchestrator of another account is waited for


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
    start = f"when you start one: `{run_command(root)}`"
    return (safe(f"no orchestrator is running: the change takes effect {start}"),), ()


def _carried_out(root: Path, id: str, act: str, values: Values) -> Outcome:
    """Make a change, and see to it that an orchestrator takes it up.

    While an orchestrator of another account conducts, only that one writes: it is asked.
    """
    store, now = Store(root, id), utc_now()
    edit = requested_edit(act, vars(values))
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
    change = state_change(store, written.before, written.state)
    return _outcome(id, state, sentence, word, change)


def _outcome(id: str, state: OutcomeState, sentence: str, word: str, *changes: Change) -> Outcome:
    facts = {"cycle": id, "state": word}
    return Outcome(state, safe(sentence), done=Preview(safe(sentence), changes, data=facts))


def _ask(store: Store, act: str, values: Values) -> Outcome | None:
    """Ask the orchestrator of another account for a change; None where it has ended meanwhile.

    Raises:
        Refused: it refuses.
        OSError: it cannot be asked.
    """
    root, given = str(store.root), fields_of_act(act, vars(values)) | {"cycle": store.id}
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
    return _outcome(store.id, state, sentence, state.value)


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
        message = f"Written. No orchestrator is running: start one with `{run_command(root)}`."
        return OutcomeState.REQUESTED, safe(message)
    message = f"Queued: acp restarted the orchestrator (process {process.start(spec).pid})."
    return OutcomeState.REQUESTED, message


def run_command(root: Path | str) -> str:
    """The command that starts the orchestrator of a project's cycle for the first time."""
    return f"acp cycle run {shlex.quote(str(root))} --agent PRESET"


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


def _binder(
    spec: ActionSpec,
    offered: Callable[[Cycle], object],
    narrowed: Callable[[Cycle], Narrowed] = lambda shown: {},
    sentence: Callable[[Cycle], str] = lambda cycle: "",
) -> Callable[[Context, datetime], Action]:
    """What binds an act that changes the state of the cycle that is shown, or of a named one.

    Args:
        spec: its description.
        offered: whether it can be done to the cycle that is shown.
        narrowed: what is otherwise than in the description.
        sentence: what it does to a cycle, where that depends on it; "" for the described one.
    """

    def bind(context: Context, now: datetime) -> Action:
        opened = open_project(context, now)
        shown, root = opened.selected, opened.root

        def preview(values: Values) -> Preview:
            cycle = opened.find(values.cycle)
            store = Store(root, cycle.id)
            before = store.read()
            check(matters.of_state(root, cycle.id), spec.name)
            after, now = copy.deepcopy(before), utc_now()
            requested_edit(spec.name, vars(values))(after, now)
            finish(after, now)
            warnings, notes = _consequences(root, cycle.id, after)
            return Preview(
                sentence(cycle) or spec.sentence,
                (state_change(store, before, after),),
                warnings=warnings,
                notes=notes,
                data={"cycle": cycle.id, "state": "dry-run"},
            )

        def perform(values: Values) -> Outcome:
            return _carried_out(root, opened.find(values.cycle).id, spec.name, values)

        return bound(
            spec,
            opened,
            preview,
            perform,
            narrowed={**narrowed(shown), "cycle": {"default": shown.id}},
            sentence=sentence(shown),
            offered=bool(offered(shown)) and not is_damaged(shown),
        )

    return bind


def _ids(entries: Sequence[Decision | Blocker]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.id for each in entries if each.id))


def _open_decisions(shown: Cycle) -> Narrowed:
    waiting = shown.state.open_decisions
    return {
        "decision": {"choices": _ids(waiting), "default": waiting[0].id if waiting else None},
        "choice": {"help": clean_line(" · ".join(map(_offer, waiting)))},
    }


def _offer(decision: Decision) -> str:
    numbered = "  ".join(f"{n}. {each}" for n, each in enumerate(decision.options, 1))
    return f"{decision.id}: {numbered or 'in words'}"


def _first_decision(cycle: Cycle) -> str:
    return next(
        (
            f"Decide {clean_line(each.id)}: {clean_line(each.description, _LONG)}"
            for each in cycle.state.open_decisions
        ),
        "",
    )


def _open_blockers(shown: Cycle) -> Narrowed:
    waiting = shown.state.open_blockers
    ids, texts = _ids(waiting), (f"{each.id}: {each.description}" for each in waiting)
    first = ids[0] if ids else None
    return {"blocker": {"choices": ids, "default": first, "help": clean_line(" · ".join(texts))}}


def _at_work(cycle: Cycle) -> list[str]:
    """The agents at work; in a cycle that is over none is, whatever it is said to do."""
    return state.running(cycle) if cycle.status in schema.OPEN else []


def _is_at_limit(cycle: Cycle) -> bool:
    return bool(cycle.state.max_iterations) and cycle.iteration + 1 > _allowed(cycle)


def _next_iteration(cycle: Cycle) -> str:
    raised = f" and raise the limit, which is {_allowed(cycle)}" if _is_at_limit(cycle) else ""
    return f"Start iteration {cycle.iteration + 1} with a new task{raised}."


def _is_acceptable(cycle: Cycle) -> bool:
    """Something was done, nobody is at work, and its tests do not show that it is good."""
    if not cycle.iteration or cycle.status not in ("running", "paused", "completed"):
        return False
    found = state.tests(cycle)
    good = found.proven and not found.failed and state.verdict(cycle) != state.UNPROVEN
    return not (good or state.accepted(cycle) or cycle.state.open_decisions or _at_work(cycle))


def _repeatable(cycle: Cycle) -> list[str]:
    """The agents that can be run again: neither they nor any that depends on them is at work."""
    at_work = set(state.running(cycle))
    return [name for n, name in enumerate(AGENTS) if not at_work & set(AGENTS[n:])]


def _agent_to_rerun(shown: Cycle) -> Narrowed:
    free, current = _repeatable(shown), state.current(shown)
    return {"agent": {"default": current if current in free or not free else free[0]}}


def _allowed(cycle: Cycle) -> int:
    return cycle.state.max_iterations or cycle.iteration


decide = _binder(
    DECISION, lambda shown: _ids(shown.state.open_decisions), _open_decisions, _first_decision
)
resolve = _binder(RESOLUTION, lambda shown: _ids(shown.state.open_blockers), _open_blockers)
feedback = _binder(
    MESSAGE, lambda shown: shown.status in schema.OPEN, lambda shown: {"agent": {"default": "cd"}}
)
extend = _binder(
    EXTENSION,
    lambda shown: shown.status in _EXTENDED and not (shown.state.open_decisions or _at_work(shown)),
    lambda shown: {"limit": {"default": shown.iteration + 1}} if _is_at_limit(shown) else {},
    _next_iteration,
)
pause = _binder(PAUSING, lambda shown: shown.status == "running")
resume = _binder(
    RESUMPTION,
    lambda shown: (
        shown.status in ("paused", "failed", "created") and not shown.state.open_decisions
    ),
)
stop = _binder(STOPPING, lambda shown: shown.status in schema.OPEN)
accept = _binder(
    ACCEPTANCE,
    _is_acceptable,
    sentence=lambda cycle: (
        f"Accept the cycle as it is ({state.tests(cycle)}) and complete it; the test results are kept."
    ),
)
rerun = _binder(
    REPEAT,
    lambda shown: shown.status in ("running", "paused") and _repeatable(shown),
    _agent_to_rerun,
)
limit = _binder(
    LIMITING,
    lambda shown: True,
    lambda shown: {
        "iterations": {"default": min(_allowed(shown) + 1, LIMIT), "least": 1, "most": LIMIT}
    },
    lambda cycle: f"Change the iteration limit (now {_allowed(cycle)}).",
)
