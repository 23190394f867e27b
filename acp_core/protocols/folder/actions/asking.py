"""Asking another host of a shared collaboration for something: as a form and as a command do it."""

from __future__ import annotations

import os
import shlex
from datetime import datetime

from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.folder.actions.table_share import ASKING
from acp_core.protocols.folder.conduct import asked
from acp_core.protocols.folder.read.location import is_shared
from acp_core.protocols.folder.write import sharing
from acp_core.protocols.folder.write.sharing import (
    _SHOWN_ANSWER,
    Wanted,
    answer_of,
    request_sentence,
)
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.command import note
from acp_core.protocols.kit.command_line import say, warn
from acp_core.protocols.kit.parser import say_object, show
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe
from acp_core.stores import asking, hosts
from acp_core.stores import base as manifests
from acp_core.stores.engine import Asked

_SCHEMA = "acp.ask/1"
_STATES = {
    asking.DONE: OutcomeState.DONE,
    asking.REFUSED: OutcomeState.REFUSED,
    asking.EXPIRED: OutcomeState.REFUSED,
    "": OutcomeState.REQUESTED,
}


def ask_host(context: Context, now: datetime) -> Action:
    """Ask a host on which another participant acts."""
    folder = context.key
    shared = is_shared(folder)
    away = _elsewhere(folder) if shared else {}
    who = next(iter(away), None)
    narrowed = {"participant": {"default": who}, "host": {"default": away.get(who or "")}}
    return bound(
        ASKING,
        context,
        lambda values: _preview(folder, values),
        lambda values: _outcome(folder, _asked(folder, _wanted(values))),
        narrowed=narrowed if who else None,
        offered=shared,
    )


def ask(values: Values) -> int:
    """``acp ask``; the exit code."""
    folder = values.folder
    if values.dry_run:
        preview = _preview(folder, values)
        return show(_SCHEMA, "ask", preview, as_json=values.json)
    request = _asked(folder, _wanted(values))
    outcome = _outcome(folder, request)
    note(os.path.abspath(folder), ASKING, values, outcome)
    if outcome.state is OutcomeState.REFUSED:
        raise Refused(outcome.sentence)
    if values.json:
        say_object(_SCHEMA, "ask", collaboration=os.path.abspath(folder), id=request.id, host=request.host,
                   state=request.state or "open", sentence=outcome.sentence)  # fmt: skip
    elif outcome.state is OutcomeState.UNKNOWN:
        warn(outcome.sentence)
    else:
        say(outcome.sentence)
    return ASKING.unknown if outcome.state is OutcomeState.UNKNOWN else 0


def _asked(folder: str, wanted: Wanted) -> Asked:
    """The request, with its answer if that came in time."""
    if wanted.verb in asking.PERMITS:
        return asked.answer(folder, wanted)
    return sharing.ask(folder, wanted)


def _wanted(values: Values) -> Wanted:
    return Wanted(
        values.host, values.verb, values.participant, values.text, values.expires, values.wait
    )


def _elsewhere(folder: str) -> dict[str, str]:
    """Participants that act on other hosts, each with its host, by what was last read."""
    me = hosts.this_host()
    leases = sorted(manifests.read_leases(folder).values())
    return {each.participant: each.host for each in leases if each.host != me}


def _preview(folder: str, values: Values) -> Preview:
    request = sharing.checked(folder, _wanted(values))
    host, who = clean_line(request.host, 80), clean_line(request.participant, 200)
    text = f" with the message “{clean_line(request.text, _SHOWN_ANSWER)}”" if request.text else ""
    return Preview(
        safe(f"Ask {host} to {request_sentence(request)}{text}."),
        notes=(safe(f"{host} follows the request only if its owner accepts {request.verb} requests for {who}"),),
    )  # fmt: skip


def _outcome(folder: str, request: Asked) -> Outcome:
    host = clean_line(request.host, 80)
    if request.state:
        text = f"{host}: {answer_of(request)}"
    else:
        shown = shlex.quote(clean_line(folder, 4_096))
        text = f"{host} has not answered yet; `acp hosts {shown}` shows its answer"
    return Outcome(_STATES.get(request.state, OutcomeState.UNKNOWN), safe(text))
