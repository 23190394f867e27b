"""Commands that only read: who takes part in a shared collaboration, and where."""

from __future__ import annotations

import os

from acp_core.model.action_spec import Answer
from acp_core.model.errors import Refused
from acp_core.protocols.folder.conduct import asked as conduct_asked
from acp_core.protocols.folder.schema.records import is_shared
from acp_core.protocols.folder.write.sharing import answer_of, request_sentence
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe
from acp_core.stores import address as stores_address
from acp_core.stores import asking
from acp_core.stores import base as manifests
from acp_core.stores.engine import Asked, Heard, Lease
from acp_core.stores.hosts import Silence, open_engine, this_host

_SHOWN = 20  # requests, the latest ones


def hosts(values: Values) -> Answer:
    """The hosts of a shared collaboration.

    Raises:
        Refused: it is not shared, or its store cannot be read.
    """
    folder = values.folder
    if not is_shared(folder):
        raise Refused(f"{folder} is not shared; `acp share {folder} URL` shares it")
    address = stores_address.pinned_address(folder)
    with open_engine(address) as engine:
        heard = sorted(engine.hosts(), key=lambda each: each.state.host)
        base = manifests.read_base(folder)
        leases = engine.read(base.tip if base else None).leases
        asked = engine.requests()
    silence = Silence(address)
    silence.note(heard)
    advice = {each.host: silence.advice(each.host) for each in leases.values()}
    data = {
        "collaboration": os.path.abspath(folder),
        "address": address.text,
        "hosts": [{**each.state._asdict(), "age": each.age} for each in heard],
        "leases": [{**each._asdict(), "advice": advice[each.host]} for each in leases.values()],
        "requests": [each._asdict() for each in asked],
    }
    lines = [_host(each) for each in heard] + [
        f"{each.participant}'s agent on {heard_of.state.host} asks for permission to {each.words} (request {each.id})"
        for heard_of in heard
        for each in conduct_asked.waiting(heard_of.state)
    ]
    lines += [_lease(each, advice[each.host]) for each in leases.values()]
    lines += [_asked(each) for each in asked[-_SHOWN:]]
    return Answer(data, tuple(map(safe, lines)) or ("no host has said anything yet",))


def _host(heard: Heard) -> str:
    state = heard.state
    when = f"said at {state.at}" if heard.age is None else f"heard of {heard.age:.0f} s ago"
    looped = sorted(name for name, facts in state.participants.items() if "pid" in facts)
    people = f": loops of {', '.join(looped)}" if looped else ""
    onward = f"; continues at {state.continued}" if state.continued else ""
    return f"{state.host} ({state.account}), acp {state.version or '?'}, {when}{people}{onward}"


def _lease(lease: Lease, advice: str) -> str:
    said = f"{lease.participant} acts on {lease.host} ({lease.account}) since {lease.since}"
    if lease.host == this_host() or not advice:
        return said
    return f"{said}; {advice} (`acp sync --take {lease.participant}`)"


def _asked(request: Asked) -> str:
    by = asking.who(request)
    text = f" ({request.text})" if request.text else ""
    return f"{by} asked {request.host} to {request_sentence(request)}{text}: {answer_of(request)}"
