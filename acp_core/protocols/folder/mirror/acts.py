"""Acts on a mirror: each becomes a request to the host that conducts the collaboration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acp_core.agents.live.inside import refuse_inside_a_session
from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.action_field import Field
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.folder.write import asking as asked
from acp_core.protocols.kit.mirroring import Offer, decoded
from acp_core.protocols.kit.schema import inputs
from acp_core.protocols.kit.values import completed
from acp_core.protocols.kit.wording import reason, safe
from acp_core.stores import asking, hosts, mirror
from acp_core.stores import base as manifests
from acp_core.stores.engine import Asked
from acp_core.stores.mirror import Manifest
from acp_core.stores.opening import open_engine
from acp_core.stores.tree import Tree

_WAIT = 30.0  # seconds for the answer
_STATES = {
    asking.DONE: OutcomeState.DONE,
    asking.REFUSED: OutcomeState.REFUSED,
    asking.EXPIRED: OutcomeState.REFUSED,
    "": OutcomeState.REQUESTED,
}


def requests(folder: str, manifest: Manifest) -> list[Action]:
    """What the host of a mirror can be asked for now, by its own word.

    Args:
        folder: the reader's.
        manifest: what it shows.
    """
    found = (decoded(each) for each in manifest.acts)
    return [_as_request(each, folder, manifest) for each in found if each is not None]


def _as_request(act: Offer, folder: str, manifest: Manifest) -> Action:
    def request(given: Any) -> Asked:
        return _request(folder, manifest, act, _values(act.fields, given))

    def preview(given: Any) -> Preview:
        try:
            made = request(given)
        except (Refused, OSError) as error:
            return Preview("", refused=reason(error))
        sentence = f"Ask {made.host}, which controls this run: {act.label}."
        return Preview(safe(sentence), notes=_notes(made))

    def perform(given: Any) -> Outcome:
        try:
            return outcome(send(folder, request(given)))
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, reason(error))

    return Action(
        act.name,
        act.label,
        safe(f"Ask {clean_line(manifest.host, 80)}: {act.sentence}"),
        inputs(act.name, act.fields),
        preview,
        perform,
        risky=act.risky,
        fields=act.fields,
        intent=act.intent,
    )


def _request(folder: str, manifest: Manifest, act: Offer, values: Mapping[str, Any]) -> Asked:
    me = hosts.this_host()
    by = f"{hosts.account()} on {me}"
    given: dict[str, Any] = {"mirror": manifest.mark, "values": values}
    if act.verb == asking.DECIDE:
        given["matter"] = mirror.matter(read_back(folder, manifest))
    return asking.about(manifest.host, act.verb, act.name, given, by)


def read_back(folder: str, manifest: Manifest) -> Manifest:
    """What this folder shows: whoever changed a file here decides about something that nobody has."""
    tree = Tree(folder)
    files = tuple(
        each._replace(sha256=mirror.digest(tree.read(mirror.lies(manifest, each.name)) or b""))
        for each in manifest.files
    )
    return manifest._replace(files=files)


def _values(fields: tuple[Field, ...], given: Any) -> dict[str, Any]:
    """What was given, as JSON holds it; what stands for nothing is left out."""
    values = completed(fields, given)
    found = {each.name: getattr(values, each.name) for each in fields}
    return {e.name: found[e.name] for e in fields if found[e.name] not in (None, e.empty)}


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
        refuse_inside_a_session()
        request = asking.signed(request, address)
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
