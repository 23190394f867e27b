"""Acts and answers that another host asked for, once it is certain who that is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acp_core.agents.live import answers
from acp_core.agents.live.requests import ALLOW_ONCE
from acp_core.model import Action, Outcome, OutcomeState
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean, clean_line
from acp_core.person.permissions import Verdict
from acp_core.protocols.discovery import DiscoveredCollaboration, identify
from acp_core.protocols.kit import owner_inputs
from acp_core.protocols.kit.mirroring import matter_of, verb_of
from acp_core.protocols.registry import installed
from acp_core.stores import address
from acp_core.stores.asking import DECIDE

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
