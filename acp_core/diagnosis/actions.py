"""Everything that a person can do in a collaboration now, and what must follow when it is done.

The protocol's own actions and those about participants' loops, what mends a cause first. After
each: it is written into the person's journal; loops that had given up are told to try again; and
it is looked at again, so that the person reads whether it helped, or what still stands.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from acp_core.agents import registry
from acp_core.agents.state import Phase
from acp_core.diagnosis import personal_table
from acp_core.diagnosis.observer import Observer
from acp_core.diagnosis.personal import Noted
from acp_core.diagnosis.processes import UnmanagedProcesses
from acp_core.loops.acts import names, table
from acp_core.loops.acts.about import About, without_turns
from acp_core.model import Action, Matter, Outcome, OutcomeState, Snapshot, Status
from acp_core.model.action_spec import Intent
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.format import names_in, sentence_case
from acp_core.person import journal
from acp_core.person.attention import Attention
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit import command, guard
from acp_core.protocols.kit.binding import Location, bind_all, bind_named
from acp_core.protocols.kit.diagnosis import safe_id
from acp_core.protocols.kit.schema import fields

_NOTICE = 1.5  # seconds that a loop may take to notice that its program was ended
_LOOK = 0.1
_WITHOUT_LOOP = (table.RAISE, table.NUDGE, table.CANCEL)
"""What can be done about an agent at work that no loop runs."""
_FIXED = ("Fixed", "Not fixed", "Mended", "Repaired, but")  # sentences that say it already
_BEGINS = frozenset({Intent.RETRY, Intent.MESSAGE})
"""What only begins something again: whether that helps is not known yet."""


def actions(
    collaboration: Collaboration,
    snapshot: Snapshot,
    now: datetime | None = None,
    attention: Attention | None = None,
) -> tuple[Action, ...]:
    """What can be done now, what mends the first cause first, a person's own notes last.

    Args:
        collaboration: the collaboration.
        snapshot: its latest Snapshot, as the fleet has it (with its causes).
        now: the time; by default that of the clock.
        attention: where the person's own notes are kept; by default in their state folder.
    """
    now = now or utc_now()
    found = [
        *_allowed(collaboration.actions(now), snapshot),
        *_of_loops(collaboration, snapshot, now),
    ]
    wanted = [verdict.act for cause in snapshot.causes for verdict in cause.verdicts]
    ranked = sorted(found, key=lambda action: _rank(action.name, wanted))
    noted = Noted(snapshot.key, snapshot, attention)
    notes = bind_all(personal_table.ACTS, noted, now)
    return (*(_whole(each, collaboration, snapshot) for each in ranked), *notes)


def action(
    collaboration: Collaboration,
    snapshot: Snapshot,
    name: str,
    now: datetime | None = None,
    attention: Attention | None = None,
) -> Action | None:
    """One act by its name, new or old; the others are not built. None where there is none.

    Args:
        collaboration, snapshot, now, attention: as those of `actions`.
        name: the act's.

    Raises:
        Refused: it cannot be done now; the message says why.
        OSError: what it is about cannot be read.
    """
    now = now or utc_now()
    found = collaboration.action(name, now)
    if found is not None:
        guard.check(snapshot.obstacles, found.name)
    else:
        found = _loop_act(collaboration, snapshot, name, now)
    if found is not None:
        return _whole(found, collaboration, snapshot)
    return bind_named(personal_table.ACTS, name, Noted(snapshot.key, snapshot, attention), now)


def label_of(protocol: str, name: str) -> str:
    """What an act is called by its description, whether or not it can be done now.

    Args:
        protocol: the name of the collaboration's protocol.
        name: the act's, new or old.

    Returns:
        Its label; "" where nobody describes such an act.
    """
    described = command.act(protocol, name)
    others = (each for each in (*table.ACTS, *personal_table.ACTS) if each.called(name))
    found = described or next(others, None)
    return found.label if found is not None else ""


def _allowed(offered: Iterable[Action], snapshot: Snapshot) -> list[Action]:
    """The actions that no obstacle stands in the way of."""
    return [each for each in offered if not guard.blocking(snapshot.obstacles, each.name)]


def _of_loops(collaboration: Collaboration, snapshot: Snapshot, now: datetime) -> list[Action]:
    """What can be done about participants' loops, and about what their programs ask."""
    asked = bind_all((table.ANSWER,), Location(snapshot.key), now)
    if not collaboration.has_turns:
        if snapshot.status is not Status.ACTIVE:
            return asked
        return [*asked, *bind_all((table.RAISE,), _about(snapshot), now)]
    about = _about(snapshot)
    over = snapshot.status is not Status.ACTIVE
    if over and not about.loops:
        return asked
    known = [each for each in table.ACTS if each is not table.ANSWER]
    specs = [each for each in known if not over or each.name in names.ENDING]
    return [*asked, *bind_all(specs, about, now)]


def _loop_act(
    collaboration: Collaboration, snapshot: Snapshot, name: str, now: datetime
) -> Action | None:
    """One act about participants' loops.

    Raises:
        Refused: it cannot be done now.
    """
    spec = next((each for each in table.ACTS if each.called(name)), None)
    if spec is None:
        return None
    if spec is table.ANSWER:
        return bind_named((spec,), name, Location(snapshot.key), now)
    if not collaboration.has_turns and spec not in _WITHOUT_LOOP:
        raise without_turns(snapshot.key)
    if snapshot.status is not Status.ACTIVE and spec.name not in names.ENDING:
        raise Refused("the collaboration has ended")
    return bind_named((spec,), name, _about(snapshot), now)


def _about(snapshot: Snapshot) -> About:
    loops = tuple(registry.runners(snapshot.key))
    over = snapshot.status is not Status.ACTIVE
    return About(
        snapshot.key,
        snapshot,
        loops,
        lambda: () if over else UnmanagedProcesses().of(snapshot.key, loops),
    )


def _rank(name: str, wanted: Sequence[str]) -> int:
    return wanted.index(name) if name in wanted else len(wanted)


def _whole(action: Action, collaboration: Collaboration, snapshot: Snapshot) -> Action:
    """The action with everything that follows from doing it."""

    def perform(inputs: Any) -> Outcome:
        outcome = action.perform(inputs)
        given = inputs.model_dump() if hasattr(inputs, "model_dump") else dict(vars(inputs))
        given.pop("said", None)  # which of them somebody gave
        if outcome.state is OutcomeState.DONE:
            outcome = _followed_up(action, collaboration, snapshot, outcome, given)
        state, sentence = outcome.state.value, outcome.sentence
        journal.note(snapshot.key, action.name, given, state, sentence, utc_now())
        return outcome

    return replace(action, perform=perform)


def _followed_up(
    action: Action,
    collaboration: Collaboration,
    before: Snapshot,
    outcome: Outcome,
    given: dict[str, object],
) -> Outcome:
    sentences = [outcome.sentence]
    if action.name not in names.NAMES:
        woken = _wake(collaboration, before.key, outcome.sentence)
        if woken:
            sentences.append(f"Asked {', '.join(woken)} to try again.")
    chosen = _chosen(action)
    met = [each for each in before.causes if _mends(action.name, chosen, given, each)]
    if met and not outcome.sentence.startswith(_FIXED):
        sentences += _what_stands(action, before, met, _after(collaboration, before, met))
    return replace(outcome, sentence=" ".join(map(_ended, sentences)))


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?", ")")) else f"{sentence}."


def _mends(name: str, chosen: set[str], given: dict[str, object], cause: Matter) -> bool:
    """Whether this was done for that cause."""
    if name not in (verdict.act for verdict in cause.verdicts):
        return False
    for key, said in cause.given:
        if key in chosen and said not in (meant := _meant(given.get(key))) and meant:
            return False
    who = _meant(given.get("participant"))
    return not who or cause.about.participant is None or cause.about.participant in who


def _meant(value: object) -> list[object]:
    """What an input names: a choice, several, or names with a choice for each; [] for nothing."""
    if not isinstance(value, list):
        return [] if value is None else [value]
    return [name for each in value for name in (each, str(each).partition("=")[0])]


def _chosen(action: Action) -> set[str]:
    """The inputs that say which one is meant: an agent, a decision. (Other texts can be edited.)"""
    return {field.name for field in fields(action) if field.choices}


def _what_stands(
    action: Action, before: Snapshot, met: Sequence[Matter], after: Sequence[Matter]
) -> list[str]:
    """Whether what an act was done for is over, else what of it stands now.

    It is over where its key is gone, and the same thing did not come again under another one.
    """
    names, known = names_in(before), {each.key for each in before.causes}
    for matter in met:
        for now in after:
            if _is_same(matter, now) and now.remedy == matter.remedy:
                return [f"Not fixed: {now.sentence}."]
            came = now.key not in known and _is_alike(matter, now)
            if _is_same(matter, now) or (came and now.sentence == matter.sentence):
                return [f"Still open: {now.sentence}."]
            if came:
                return [f"{sentence_case(now.sentence, names)}."]
    was_problem = any(matter.instruction for matter in met)  # what was only decided needs no fix
    return ["Fixed."] if was_problem and action.intent not in _BEGINS else []


def _is_same(matter: Matter, other: Matter) -> bool:
    keys = {matter.key, *matter.explains}
    return other.key in keys or matter.key in other.explains


def _is_alike(matter: Matter, other: Matter) -> bool:
    """Whether it is the same problem of the same participant or document."""
    about, of = matter.about, other.about
    same = about.participant == of.participant and about.document == of.document
    return matter.code == other.code and same and (about.participant or about.document) is not None


def _after(
    collaboration: Collaboration, before: Snapshot, met: Sequence[Matter]
) -> tuple[Matter, ...]:
    """What stands once loops have had time to notice what was done; what passes by itself is left out."""
    until = time.monotonic() + _NOTICE
    while True:
        observer, now = Observer(), utc_now()
        read = collaboration.refresh(now)
        seen = observer.diagnosed(observer.diagnosis(), collaboration, read, now)
        after = tuple(each for each in seen.causes if each.wanted)
        left = ((each, now) for each in met for now in after if _is_same(each, now))
        moved = all(now.remedy != each.remedy for each, now in left)
        if moved or time.monotonic() > until:
            return after
        time.sleep(_LOOK)


def _wake(collaboration: Collaboration, key: str, done: str) -> list[str]:
    """Have loops try again that could not take the turn before this was done."""
    if not collaboration.has_turns:
        return []
    now = utc_now()
    waited = {turn.participant for turn in collaboration.refresh(now).turns}
    woken = []
    for loop in registry.runners(key):
        name = safe_id(loop.participant)
        stuck = loop.alive and loop.phase in (Phase.GAVE_UP, Phase.PAUSING)
        if not stuck or name not in waited:
            continue
        message = f"The problem that stopped you is fixed: {done} Take your turn now."
        try:
            registry.nudge(loop.folder, loop.participant, message, now)
        except OSError:
            continue
        woken.append(name)
    return woken
