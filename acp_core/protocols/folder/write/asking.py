"""Asking another host of a shared collaboration for something, and waiting for its answer.

Standard library only.
"""

from __future__ import annotations

import contextlib
import time
from typing import NamedTuple

from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.write.opened import is_shared, read_protocol
from acp_core.stores import asking, hosts
from acp_core.stores import base as manifests
from acp_core.stores.engine import Asked, Engine, StoreUnreachable
from acp_core.stores.opening import open_engine

_STEP = 0.5  # seconds between two looks for the answer

_NAMED = 20  # hosts that are named where another one was meant


class Wanted(NamedTuple):
    """What is asked for: see `Asked`; ``wait`` are the seconds for which the answer is waited for."""

    host: str
    verb: str
    participant: str
    text: str = ""
    seconds: float = asking.LIFE
    wait: float = 0.0


def checked(folder: str, wanted: Wanted) -> Asked:
    """The request, judged by what this host knows. Asks no store.

    Raises:
        Refused: it cannot be made.
    """
    if not is_shared(folder):
        raise Refused(f"{folder} is not shared; `acp share {folder} URL` shares it")
    me = hosts.this_host()
    if wanted.verb in asking.PERMITS:
        return asking.about(wanted.host, wanted.verb, wanted.participant, {}, "")
    if wanted.host == me:
        raise Refused(f"{me} is this host: use `acp launch`, `acp stop` or `acp nudge`")
    people = schema.participant_ids(read_protocol(folder))
    if wanted.participant not in people:
        raise Refused(
            f"participant {wanted.participant!r} is not listed in protocol.json (participants: {', '.join(people)})"
        )
    by = f"{hosts.account()} on {me}"
    return asking.made(
        wanted.host, wanted.verb, wanted.participant, wanted.text, by, wanted.seconds
    )


def ask(folder: str, wanted: Wanted) -> Asked:
    """Ask a host, and wait for its answer; the request as it stands then.

    Raises:
        Refused: the request cannot be made, or the store does not have it.
    """
    request = checked(folder, wanted)
    with open_engine(manifests.pinned_address(folder)) as engine:
        names = sorted(each.state.host for each in engine.hosts())
        if wanted.host not in names:
            known = ", ".join(clean_line(each, 80) for each in names[:_NAMED]) or "none"
            raise Refused(
                f"no host named {clean_line(wanted.host, 80)} was heard of (hosts: {known})"
            )
        asking.send(engine, request)
        return answered(engine, request, wanted.wait)


def answered(engine: Engine, request: Asked, seconds: float) -> Asked:
    """The request with its answer, if that comes in time."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        with contextlib.suppress(StoreUnreachable):  # it is asked, whatever becomes of a look
            for each in engine.requests(request.host):
                if each.id == request.id and each.state:
                    return each
        time.sleep(min(_STEP, left))
    return request


_SHOWN_ANSWER = 300


def request_sentence(request: Asked) -> str:
    """What a host is asked to do."""
    who = clean_line(request.participant, 200)
    return {
        "start": f"start {who}'s loop",
        "stop": f"stop {who}'s loop",
        "nudge": f"send {who} a message",
        "take": f"let {who} act there",
        asking.ALLOW: f"allow once what {who} asks for",
        asking.REJECT: f"reject what {who} asks for",
    }.get(request.verb, clean_line(f"{request.verb} {who}", 200))


def answer_of(request: Asked) -> str:
    """How a request stands, in words."""
    said = f": {clean_line(request.sentence, _SHOWN_ANSWER)}" if request.sentence else ""
    return f"{clean_line(request.state, 40)}{said}" if request.state else "open"
