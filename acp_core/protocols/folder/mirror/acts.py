"""Acts on a mirror: each becomes a request to the host that conducts the collaboration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from acp_core.files.text import clean_line
from acp_core.model.action import Action, Intent, Outcome, OutcomeState, Preview
from acp_core.model.action_field import Field, Kind
from acp_core.model.action_spec import By
from acp_core.model.errors import Refused
from acp_core.protocols.folder.write import asking as asked
from acp_core.protocols.kit.wording import reason, safe
from acp_core.stores import asking, hosts, mirror, proof
from acp_core.stores import base as manifests
from acp_core.stores.engine import Asked
from acp_core.stores.mirror import Manifest
from acp_core.stores.opening import open_engine
from acp_core.stores.tree import Tree

STOPS = frozenset({Intent.STOP, Intent.STOP_EVERYTHING})
"""Acts that count whoever asks, where the host accepts requests to stop."""
DECISIONS = frozenset({Intent.DECIDE, Intent.ACCEPT, Intent.REJECT, Intent.ANSWER})
"""Acts that count only where who asks is proven."""
_PLAIN = frozenset(
    {Kind.TEXT, Kind.LINES, Kind.NUMBER, Kind.DECIMAL, Kind.FLAG, Kind.CHOICE, Kind.LIST}
)
_WAIT = 30.0  # seconds for the answer
_STATES = {
    asking.DONE: OutcomeState.DONE,
    asking.REFUSED: OutcomeState.REFUSED,
    asking.EXPIRED: OutcomeState.REFUSED,
    "": OutcomeState.REQUESTED,
}


def verb_of(action: Action) -> str:
    """What another host is asked for by an act; "" where it cannot be asked for.

    What names a file or a command never is: that is this host's, or the other one's own.
    """
    fields = action.fields or ()
    if action.by is not By.HUMAN or action.personal or action.fields is None:
        return ""
    if any(each.form and not (each.kind in _PLAIN and each.items in _PLAIN) for each in fields):
        return ""
    return "stop" if action.intent in STOPS else asking.DECIDE if action.intent in DECISIONS else ""


def as_request(action: Action, folder: str, manifest: Manifest) -> Action | None:
    """An act as it can be done to a mirror: by asking; None where it cannot be.

    Args:
        action: as the collaboration offers it.
        folder: the reader's.
        manifest: what it shows.
    """
    verb = verb_of(action)
    if not verb:
        return None
    fields = action.fields or ()

    def request(given: Any) -> Asked:
        return _request(folder, manifest, verb, action, _values(fields, given))

    def preview(given: Any) -> Preview:
        try:
            made = request(given)
        except (Refused, OSError) as error:
            return Preview("", refused=reason(error))
        return Preview(
            safe(f"Ask {made.host}, which controls this run: {action.label}."), notes=_notes(made)
        )

    def perform(given: Any) -> Outcome:
        try:
            return outcome(send(folder, request(given)))
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, reason(error))

    return replace(
        action,
        sentence=safe(f"Ask {manifest.host}: {action.sentence}"),
        preview=preview,
        perform=perform,
    )


def _request(
    folder: str, manifest: Manifest, verb: str, action: Action, values: Mapping[str, Any]
) -> Asked:
    me = hosts.this_host()
    by = f"{hosts.account()} on {me}"
    given: dict[str, Any] = {"mirror": manifest.mark, "values": values}
    if verb == asking.DECIDE:
        given["matter"] = mirror.matter(shown(folder, manifest))
    return asking.about(manifest.host, verb, action.name, given, by)


def shown(folder: str, manifest: Manifest) -> Manifest:
    """What this folder shows: whoever changed a file here decides about something that nobody has."""
    tree = Tree(folder)
    files = tuple(
        each._replace(sha256=mirror.digest(tree.read(mirror.lies(manifest, each.name)) or b""))
        for each in manifest.files
    )
    return manifest._replace(files=files)


def _values(fields: tuple[Field, ...], given: Any) -> dict[str, Any]:
    """What was given, as JSON holds it; what stands for nothing is left out."""
    found = {}
    for each in fields:
        value = getattr(given, each.name, each.empty) if each.form else each.empty
        if each.form and value is not None and value != each.empty:
            found[each.name] = value
    return found


def _notes(request: Asked) -> tuple[str, ...]:
    if request.verb == asking.DECIDE:
        who = "only if its owner accepts decisions, and listed you or your key"
    else:
        who = "only if its owner accepts requests to stop"
    return (safe(f"{request.host} follows the request {who}"),)


def send(folder: str, request: Asked, wait: float = _WAIT) -> Asked:
    """Ask, and wait for the answer; the request as it stands then.

    Raises:
        Refused: it cannot be signed, or the store does not have it.
    """
    address = manifests.pinned_address(folder)
    if request.verb in asking.PROVEN:
        request = proof.signed(request, address)
    with open_engine(address) as engine:
        asking.send(engine, request)
        return asked.answered(engine, request, wait)


def outcome(request: Asked) -> Outcome:
    """What came of a request."""
    state = _STATES.get(request.state, OutcomeState.UNKNOWN)
    host = clean_line(request.host, 80)
    if not request.state:
        return Outcome(
            state, safe(f"Requested: {host} has not answered yet (`acp hosts` shows its answer).")
        )
    said = clean_line(request.sentence, 1_000)
    return Outcome(state, safe(f"{host}: {request.state}{f': {said}' if said else ''}"))
