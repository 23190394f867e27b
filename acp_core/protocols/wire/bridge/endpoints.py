"""What a bridge answers beyond an agent's endpoints."""

from __future__ import annotations

import asyncio

from pydantic import ValidationError
from starlette.types import ASGIApp

from acp_core.model.errors import Refused
from acp_core.protocols.kit.owner_inputs import open_to_others
from acp_core.protocols.kit.wording import reason
from acp_core.protocols.wire.bridge import written
from acp_core.protocols.wire.bridge.acting import Asked, carry_out, first_problem
from acp_core.protocols.wire.bridge.serving import Bridge
from acp_core.protocols.wire.network.http.calls import Call, answer
from acp_core.protocols.wire.network.http.place import Param, Place
from acp_core.protocols.wire.schema import Code, Refusal, invalid

_ID = (Param("id", required=True),)


def _bridge(call: Call) -> Bridge:
    bridge = call.agent.bridge
    if not isinstance(bridge, Bridge):
        raise Refusal(Code.NOT_FOUND, "this agent is not a bridge")
    return bridge


async def snapshot(call: Call) -> ASGIApp:
    """``GET /bridge/snapshot``: everything that is shown of the folder, now."""
    have, digest = call.count("have"), call.text("digest") or ""
    shown = _bridge(call).snapshot
    return answer(await asyncio.to_thread(written.snapshot, shown, have, digest))


async def document(call: Call) -> ASGIApp:
    """``GET /bridge/document?id=..``: a document's text as it is now."""
    bridge, id = _bridge(call), call.text("id")
    about = bridge.snapshot.document(id)
    if about is None:
        raise Refusal(Code.NOT_FOUND, "no such document")
    try:
        text = await bridge.watched.call(lambda opened: opened.load(about.id))
    except KeyError:
        raise Refusal(Code.NOT_FOUND, "the document no longer exists") from None
    return answer(written.document(about, text))


async def event(call: Call) -> ASGIApp:
    """``GET /bridge/event?id=..``: an event as the folder holds it."""
    bridge, id = _bridge(call), call.text("id")
    if id is None:
        raise invalid("id is missing")
    raw = await bridge.watched.call(lambda opened: opened.raw_event(id))
    if not raw:
        raise Refusal(Code.NOT_FOUND, "no such event")
    return answer({"id": id, "raw": raw})


async def actions(call: Call) -> ASGIApp:
    """``GET /bridge/actions``: what may be asked for and can be done now."""
    bridge = _bridge(call)
    found = map(open_to_others, await bridge.watched.call(bridge.watched.actions))
    listed = [
        {
            "name": name,
            "label": each.label,
            "sentence": each.sentence,
            "risky": each.risky,
            "intent": each.intent.value,
            "inputs": each.inputs.model_json_schema(),
        }
        for each in found
        for name in (each.name, *each.aliases)
        if name in bridge.allowed and not each.owner
    ]
    return answer({"actions": listed, "allowed": sorted(bridge.allowed)})


async def preview(call: Call) -> ASGIApp:
    """``POST /bridge/preview``: what an act that is allowed would do; nothing is done."""
    bridge, body = _bridge(call), await call.body()
    try:
        asked = Asked.model_validate({**body, "dry_run": True})
        done = await carry_out(bridge.watched, bridge.key, bridge.allowed, asked)
    except ValidationError as error:
        raise invalid(first_problem(error)) from None
    except (Refused, OSError) as refused:
        return answer({"preview": {"sentence": "", "refused": reason(refused)}})
    return answer({"preview": done.preview})


PLACES = (
    Place(
        "GET",
        ("/bridge/snapshot",),
        snapshot,
        readers=True,
        query=(Param("have", "number", 0), Param("digest")),
    ),
    Place("GET", ("/bridge/document",), document, readers=True, query=_ID, refuses=(404,)),
    Place("GET", ("/bridge/event",), event, readers=True, query=_ID, refuses=(404,)),
    Place("GET", ("/bridge/actions",), actions, readers=True),
    Place(
        "POST",
        ("/bridge/preview",),
        preview,
        readers=True,
        body=("action", "inputs"),
        needed=("action",),
        refuses=(404,),
    ),
)
