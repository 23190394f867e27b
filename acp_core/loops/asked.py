"""``python -m acp_core.loops.asked``: does what another host asked for.

Whoever asks names a verb and a participant, nothing else: a loop is started only as this host's
owner launched it here before, and never with a command, a path or an argument from outside. An act
on what this host conducts, or the answer to an agent, comes with words and choices, and names what
it is about. That the owner allows it, and who asks, was checked by whoever starts this.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acp_core.agents import background, codec, registry
from acp_core.agents.live import answers
from acp_core.agents.live.requests import ALLOW_ONCE
from acp_core.agents.loop_directory import place
from acp_core.agents.presets import PresetError
from acp_core.loops import launch
from acp_core.loops.acts.about import About, renewed
from acp_core.loops.acts.steering import bind_nudge
from acp_core.loops.launch import LaunchError, stop_loops
from acp_core.model import Action, Outcome, OutcomeState
from acp_core.model.clock import utc_now
from acp_core.model.errors import AcpError, Refused
from acp_core.model.text import clean, clean_line
from acp_core.person.permissions import Verdict
from acp_core.protocols.discovery import DiscoveredCollaboration, identify
from acp_core.protocols.kit import owner_inputs
from acp_core.protocols.kit.diagnosis import safe_id
from acp_core.protocols.kit.mirroring import matter_of, verb_of
from acp_core.protocols.registry import installed
from acp_core.stores import address
from acp_core.stores.asking import ALLOW, DECIDE, REJECT

_LONGEST = 1_000

_ASKED = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked for.

    Attributes:
        folder: the collaboration, as this host has it.
        verb: start, stop, nudge, act, allow or reject.
        participant: whose loop; of an act its name.
        text: for the agent, a stranger's; of an act and of an answer what it is about, as JSON.
        by: who asks, as far as that is known.
    """

    folder: str
    verb: str
    participant: str
    text: str = ""
    by: str = ""


def do(order: Order) -> Outcome:
    """Do it; never raises for what stands in its way."""
    acts = {
        "start": _start, "stop": _stop, "nudge": _nudge,
        "act": _act, ALLOW: _permit, REJECT: _permit,
    }  # fmt: skip
    act = acts.get(order.verb)
    if act is None:
        return _refused(f"{order.verb} is not a request")
    try:
        return act(order)
    except (AcpError, OSError) as error:
        return _refused(str(error))


def _start(order: Order) -> Outcome:
    """Start the participant's loop, as it was launched here."""
    who = order.participant
    spec = launch.load_spec(place(order.folder, who))
    if spec is None:
        return _refused(f"{who} was never launched on this host: only its owner can do that first")
    loop = registry.find(order.folder, who)
    if loop is not None and loop.alive:
        return Outcome(OutcomeState.DONE, f"{who} has a loop already")
    try:
        plan = launch.plan(renewed(spec, loop), spec.resolved(), ask_version=False)
    except PresetError as error:
        return _refused(str(error))
    if plan.refused:
        return _refused(plan.refused)
    try:
        launch.start(plan.spec)
    except LaunchError as error:
        return _refused(str(error))
    return Outcome(OutcomeState.DONE, f"{who}: the loop was started, as it was launched last")


def _stop(order: Order) -> Outcome:
    """Stop the participant's loop; its lease is given back with that."""
    loop = registry.find(order.folder, order.participant)
    if loop is None or not (loop.alive or loop.program_alive):
        return _refused(f"{order.participant} has no running loop on this host")
    (stopped,) = stop_loops([loop])
    state = OutcomeState.DONE if stopped.done else OutcomeState.UNKNOWN
    return Outcome(state, stopped.sentence)


def _nudge(order: Order) -> Outcome:
    """Give the participant's agent a message, which says from whom it is."""
    action = bind_nudge(About(order.folder), utc_now())
    message = f"Message from {order.by}, on another machine:\n{clean(order.text)}"
    given = {"participant": safe_id(order.participant), "message": message}
    return _handed_on(action.perform(given))


def _act(order: Order) -> Outcome:
    """Do a person's act on what this host conducts."""
    return _handed_on(act_for_host(order.folder, order.participant, order.text, order.by))


def _handed_on(outcome: Outcome) -> Outcome:
    """What a loop, or whoever conducts, picks up is done here: nothing more can be."""
    if outcome.state is OutcomeState.REQUESTED:
        return Outcome(OutcomeState.DONE, outcome.sentence)
    return outcome


def _permit(order: Order) -> Outcome:
    """Answer an agent that waits for permission here."""
    return answer_for_host(order.folder, order.verb == ALLOW, order.text, order.by)


def _refused(text: str) -> Outcome:
    return Outcome(OutcomeState.REFUSED, clean_line(text, _LONGEST))


def main() -> int:
    """Do what is asked for on the standard input; say on the output how it ended."""
    try:
        order = codec.decode(Order, sys.stdin.buffer.read(_ASKED))
    except codec.CodecError as error:
        return background.refuse(str(error))
    outcome = do(order)
    said = {"state": outcome.state.value, "sentence": clean_line(outcome.sentence, _LONGEST)}
    print(json.dumps(said))
    return 0


_BY = "by"


def act_for_host(folder: str, name: str, text: str, by: str) -> Outcome:
    """Do an act on what this host conducts.

    Args:
        folder: the collaboration.
        name: the act's.
        text: ``values``, the ``matter`` as it was shown, and the ``verb`` that was asked for.
        by: who asks, as this host's owner lists them.

    Raises:
        Refused: it is not possible now, or things stand otherwise than was shown.
        OSError: a file cannot be read or written.
    """
    given = _decoded(text)
    mark = address.pinned_mark(folder)
    if not mark:
        raise Refused("this host does not control the run")
    if given.get("verb") == DECIDE and given.get("matter") != matter_of(folder, mark, utc_now()):
        raise Refused("the run has moved on since this was shown: look at it again")
    found = _here(folder)
    opened = found.open()
    try:
        opened.refresh(utc_now())
        action = opened.action(name, utc_now())
        if action is None or verb_of(action) != given.get("verb"):
            raise Refused(f"the run cannot be asked for {clean_line(name, 80)}")
        return action.perform(_inputs(action, given.get("values"), by))
    finally:
        opened.close()


def _here(folder: str) -> DiscoveredCollaboration:
    """The collaboration in a folder.

    Raises:
        Refused: none stands there.
    """
    found = identify(Path(folder), installed())
    if found is None:
        raise Refused("there is no longer a collaboration in that folder")
    return found


def _inputs(action: Action, values: Any, by: str) -> Any:
    """The inputs of an act: words and choices of a stranger, each checked by its field."""
    if not isinstance(values, Mapping):
        raise Refused("the request has no values")
    chosen = {name: _safe(value) for name, value in values.items()}
    if any(each.name == _BY and each.form for each in action.fields or ()):
        chosen.pop(_BY, None)  # who acts is who was proven to ask, whatever the request says
    try:
        made = owner_inputs.from_others(action, chosen)
    except ValueError as error:
        raise Refused(f"an input is refused: {clean_line(str(error), 300)}") from None
    given = {name: getattr(made, name) for name in made.said}
    return given | {_BY: by} if any(each.name == _BY for each in action.fields or ()) else given


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    return [_safe(each) for each in value] if isinstance(value, list) else value


def answer_for_host(folder: str, allowed: bool, text: str, by: str) -> Outcome:
    """Answer a request for permission that an agent of this host waits with.

    Args:
        folder: the collaboration.
        allowed: whether it is allowed, once.
        text: ``id`` and ``digest`` of the request as it was shown, and a ``message`` to the agent.
        by: who answers, as this host's owner lists them.

    Raises:
        Refused: it is no longer open, or is not the one that was shown.
        OSError: the answer cannot be written.
    """
    given = _decoded(text)
    opened = next((e for e in answers.waiting(folder) if e.id == given.get("id")), None)
    if opened is None:
        raise Refused("this request is no longer open")
    if opened.digest != given.get("digest"):
        raise Refused("this request is not the one that was shown: look at it again")
    if allowed and (opened.request.questions or opened.request.option(ALLOW_ONCE) is None):
        raise Refused("the agent offers no way to allow this once")
    verdict = Verdict.ALLOW if allowed else Verdict.REJECT
    message = clean(str(given.get("message", ""))).strip()
    answers.answer(opened, verdict, by, utc_now(), message)
    return Outcome(OutcomeState.DONE, "Allowed once." if allowed else "Rejected.")


def _decoded(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Refused("the request cannot be read")
    return value


if __name__ == "__main__":
    sys.exit(main())
