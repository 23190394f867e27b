"""An agent's log as events of the timeline."""

from __future__ import annotations

import json
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from acp_core.files.text import clean_line
from acp_core.model import Event, Tone
from acp_core.protocols.wire.parts import shown_text
from acp_core.protocols.wire.schema import Json, time_of
from acp_core.protocols.wire.store.database import Entry

_STATES = {
    "submitted": Tone.START,
    "working": Tone.REVIEW,
    "completed": Tone.DONE,
    "failed": Tone.BLOCKED,
    "input_required": Tone.BLOCKED,
    "canceled": Tone.PASS,
}
_FLAGS = {
    "_sig_invalid": "the shared secret's signature is wrong",
    "_sig_missing": "not signed with the shared secret",
    "_ed25519_other_key": "signed with another key than before",
    "_ed25519_invalid": "the Ed25519 signature is wrong",
}
SUSPECT = ("refused", "moved")  # another key for a peer; another agent behind its link
BAD = ("_sig_invalid", "_ed25519_invalid")


def events(entries: tuple[Entry, ...], names: dict[str, str], own: str) -> tuple[Event, ...]:
    """The events of a log; ``names`` maps peers' ids to what they are called.

    An entry that was told before gives the very same object.
    """
    known = tuple(sorted(names.items()))
    return tuple(_event(entry, known, own) for entry in entries)


def problem(body: Json) -> str:
    """What is wrong with a message's signatures, in words; "" where nothing is."""
    return next((words for flag, words in _FLAGS.items() if body.get(flag)), "")


class Suspect(NamedTuple):
    """That somebody is not who a peer was before. ``name``: the peer's; safe to show."""

    name: str
    reason: str
    since: datetime | None


def suspect(entry: Entry) -> Suspect | None:
    """What an entry about a peer says against somebody, or None."""
    body = body_of(entry)
    if body.get("event") not in SUSPECT:
        return None
    name, reason = (clean_line(str(body.get(key) or ""), 300) for key in ("name", "reason"))
    return Suspect(name, reason, time_of(body.get("ts")))


def body_of(entry: Entry) -> Json:
    """An entry's JSON object; an empty one where it is none."""
    try:
        body = json.loads(entry.body)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


@lru_cache(maxsize=20_000)
def _event(entry: Entry, names: tuple[tuple[str, str], ...], own: str) -> Event:
    body, called = body_of(entry), dict(names)
    peer = called.get(str(body.get("peer_id") or body.get("_peer_id")), "")
    kind, tone, actor, said = _told(entry, body, peer, own)
    at = time_of(body.get("ts"))
    return Event(
        id=str(entry.seq),
        order=entry.seq,
        source="log",
        kind=clean_line(kind, 40),
        tone=tone,
        actor=clean_line(actor, 64),
        at=at,
        at_source="recorded" if at else "",
        summary=clean_line(said),
        problem=problem(body),
    )


def _told(entry: Entry, body: Json, peer: str, own: str) -> tuple[str, Tone, str, str]:
    task = str(body.get("task_id") or "")
    if entry.kind == "acp.status":
        state = str(body.get("state"))
        error = f": {body['error']}" if body.get("error") else ""
        asked = state in ("submitted", "canceled")  # by who asks; the rest by who works
        theirs = body.get("direction") == ("received" if asked else "delegated")
        actor = peer if theirs and peer else own
        return f"task {state}", _STATES.get(state, Tone.OTHER), actor, f"{task}{error}"
    if entry.kind == "acp.artifact":
        artifact = body.get("artifact")
        parts = artifact.get("parts") if isinstance(artifact, dict) else None
        return "artifact", Tone.ACCEPT, peer or own, f"{task}: {shown_text(parts)}"
    if entry.kind == "acp.peer":
        what = str(body.get("event"))
        name = str(body.get("name") or peer)
        if body.get("reason"):
            return what, Tone.BLOCKED, name, str(body["reason"])
        tone = Tone.START if what == "connected" else Tone.PASS
        return what, tone, name, f"{body.get('peer_count')} connected"
    to = f"to {peer}: " if body.get("_direction") == "out" and peer else ""
    tone = Tone.SUBMIT if body.get("_direction") == "out" else Tone.REVISE
    what = "reply" if entry.kind == "acp.reply" else "message"
    about = f" [{task}]" if task else ""
    return what, tone, str(body.get("from") or ""), f"{to}{shown_text(body.get('parts'))}{about}"
