"""Agents that wait for permission on one host, seen and answered from another one.

A host says in its state which requests wait there; the answer is a request to that host, which
counts only where who gives it is proven, and for exactly what was shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from acp_core.agents.live import answers
from acp_core.agents.live.answers import OpenRequest
from acp_core.agents.live.inside import refuse_inside_a_session
from acp_core.agents.live.requests import ALLOW_ONCE, PermissionRequest
from acp_core.model.errors import Refused
from acp_core.model.text import clean, clean_line
from acp_core.protocols.folder.write import asking as asked
from acp_core.protocols.folder.write.asking import Wanted
from acp_core.stores import asking, hosts
from acp_core.stores import base as manifests
from acp_core.stores.engine import Asked, HostState
from acp_core.stores.opening import open_engine

KEY = "permissions"

"""In what a host says of a participant: what its agent waits with."""

_MOST = 10

_LONGEST_REQUEST = 1_500  # characters of a command

_MOST_PATHS = 10

_ID = re.compile(r"[0-9a-f]{16}")

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Waiting(NamedTuple):
    """A request for permission as its host tells of it.

    ``words`` say what is asked for; ``whole`` is whether that is all of it: what is not shown whole
    can be rejected from elsewhere, and not be allowed.
    """

    id: str
    digest: str
    participant: str
    words: str
    whole: bool


def waiting_agents(folder: str) -> dict[str, list[dict[str, Any]]]:
    """What agents of this host wait with in a collaboration, by participant, for the others."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in answers.waiting(folder)[:_MOST]:
        found.setdefault(each.participant, []).append(_described(each))
    return found


def _described(opened: OpenRequest) -> dict[str, Any]:
    request = opened.request
    text = _words(request)
    whole = len(text) <= _LONGEST_REQUEST and text == clean(text) and not (
        request.diffs or request.doubts or request.questions or request.server
    )  # fmt: skip
    possible = request.option(ALLOW_ONCE) is not None
    return {
        "id": opened.id,
        "digest": opened.digest,
        "words": clean(text)[:_LONGEST_REQUEST],
        "whole": whole and possible,
    }


def _words(request: PermissionRequest) -> str:
    if request.command is not None:
        where = f" (in {request.workdir})" if request.workdir else ""
        return f"run: {request.command}{where}"
    if request.questions:
        return f"answer: {request.questions[0].text}"
    paths = ", ".join(request.locations[:_MOST_PATHS])
    return f"{request.tool or request.kind or request.title}: {paths}"


def waiting(state: HostState) -> list[Waiting]:
    """What a host says that its agents wait with; a stranger's word, safe to show."""
    found = []
    for name, facts in state.participants.items():
        listed = facts.get(KEY) if isinstance(facts, Mapping) else None
        for each in listed[:_MOST] if isinstance(listed, list) else ():
            if (made := _waiting(name, each)) is not None:
                found.append(made)
    return found


def _waiting(participant: str, value: Any) -> Waiting | None:
    if not isinstance(value, Mapping):
        return None
    id, digest, words = (value.get(name) for name in ("id", "digest", "words"))
    if not (isinstance(id, str) and isinstance(digest, str) and isinstance(words, str)):
        return None
    if not (_ID.fullmatch(id) and _DIGEST.fullmatch(digest)):
        return None
    shown = clean_line(words, 2 * _LONGEST_REQUEST)
    return Waiting(id, digest, participant, shown, value.get("whole") is True and shown == words)


def answer(folder: str, wanted: Wanted) -> Asked:
    """Answer an agent of another host; the request as it stands then.

    Args:
        folder: a shared folder, or a mirror.
        wanted: whom is asked; ``participant`` is the id of what the agent waits with, as its host says.

    Raises:
        Refused: nothing of that id waits there, it cannot be allowed from here, or not by this process.
    """
    refuse_inside_a_session()
    asked.checked(folder, wanted)
    address = manifests.pinned_address(folder)
    by = f"{hosts.account()} on {hosts.this_host()}"
    with open_engine(address) as engine:
        states = (each.state for each in engine.hosts())
        found = found_in(states, wanted.host, wanted.participant)
        if wanted.verb == asking.ALLOW and not found.whole:
            raise Refused(
                f"{clean_line(wanted.host, 80)} does not show the whole request: answer it there, or reject it"
            )
        given = {"id": found.id, "digest": found.digest, "message": wanted.text}
        request = asking.about(wanted.host, wanted.verb, found.participant, given, by)
        request = asking.signed(request._replace(seconds=wanted.seconds), address)
        asking.send(engine, request)
        return asked.answered(engine, request, wanted.wait)


def found_in(states: Iterable[HostState], host: str, id: str) -> Waiting:
    """What waits on a host under an id.

    Raises:
        Refused: nothing does.
    """
    there = [each for state in states if state.host == host for each in waiting(state)]
    for each in there:
        if each.id == id:
            return each
    known = ", ".join(each.id for each in there) or "none"
    raise Refused(
        f"no agent on {clean_line(host, 80)} waits with request {clean_line(id, 80)} (waiting: {known})"
    )
