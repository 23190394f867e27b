"""``python -m acp_core.loops.asked``: does what another host asked for.

Whoever asks names a verb and a participant, nothing else: a loop is started only as this host's
owner launched it here before, and never with a command, a path or an argument from outside. An act
on what this host conducts (`acp_core.loops.remote_requests`), or the answer to an agent, comes with words
and choices, and names what it is about. That the owner allows it, and who asks, was checked by
whoever starts this.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

from acp_core.agents import background, codec, registry
from acp_core.agents.loop_directory import place
from acp_core.agents.presets import PresetError
from acp_core.loops import launch
from acp_core.loops import spec as specs
from acp_core.loops.acts.about import About, renewed
from acp_core.loops.acts.steering import bind_nudge
from acp_core.loops.launch import LaunchError
from acp_core.loops.recording import stop_loops
from acp_core.model import Outcome, OutcomeState
from acp_core.model.clock import utc_now
from acp_core.model.errors import AcpError
from acp_core.model.text import clean, clean_line
from acp_core.protocols.kit.diagnosis import safe_id
from acp_core.stores.asking import ALLOW, REJECT

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
    spec = specs.load(place(order.folder, who))
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
    outcome = action.perform(given)
    if outcome.state is OutcomeState.REQUESTED:  # the loop reads it: all that can be done is done
        return Outcome(OutcomeState.DONE, outcome.sentence)
    return outcome


def _act(order: Order) -> Outcome:
    """Do a person's act on what this host conducts."""
    from acp_core.loops import remote_requests

    outcome = remote_requests.act_for_host(order.folder, order.participant, order.text, order.by)
    if (
        outcome.state is OutcomeState.REQUESTED
    ):  # whoever conducts picks it up: all that can be done is done
        return Outcome(OutcomeState.DONE, outcome.sentence)
    return outcome


def _permit(order: Order) -> Outcome:
    """Answer an agent that waits for permission here."""
    from acp_core.loops import remote_requests as loops_remote_requests

    return loops_remote_requests.answer_for_host(
        order.folder, order.verb == ALLOW, order.text, order.by
    )


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


if __name__ == "__main__":
    sys.exit(main())
