"""What was asked of a store and not yet settled: ``.acp/run/pending.json``.

Before an event is published, its key is written here. Where the connection is lost meanwhile, or
this process is killed, the same command finds the key again, and the store tells whether the event
is in. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from acp_core.files import atomic
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.protocols.folder.write.append import Request, existing_event
from acp_core.protocols.folder.write.opened import Opened

FILE = os.path.join(".acp", "run", "pending.json")
_LIMIT = 1 << 20


def keyed(request: Request, opened: Opened) -> Request:
    """The request with a key: its own, that of an unsettled call of the same words, or a new one.

    Whoever writes in the folder can write down any key. One that the log has for something else is
    not taken: the event would be said to be appended, and no log would have it.
    """
    if request.key is not None:
        return request
    known = _read(request.folder).get(request.participant)
    if isinstance(known, dict) and known.get("words") == _words(request):
        key = known.get("key")
        if isinstance(key, str) and key and _is_of(request._replace(key=key), opened):
            return request._replace(key=key)
    return request._replace(key=f"acp-{os.urandom(8).hex()}")


def _is_of(request: Request, opened: Opened) -> bool:
    """Whether the log has a request's key for nothing else than the request."""
    found = existing_event(opened, request)
    if found is None:
        return True
    asked = (request.event, request.summary, request.doc, request.reply_to, request.role)
    return (found.event, found.summary, found.doc, found.reply_to, found.role) == asked


def keep(request: Request) -> None:
    """Keep the key of a request that is published now; the caller holds the folder.

    Raises:
        OSError: it cannot be kept; then nothing may be published.
    """
    value = _read(request.folder)
    value[request.participant] = {"words": _words(request._replace(key=None)), "key": request.key}
    _write(request.folder, value, sync=True)


def settled(request: Request) -> None:
    """It is known what came of the participant's request."""
    value = _read(request.folder)
    if value.pop(request.participant, None) is not None:
        _write(request.folder, value, sync=False)


def _words(request: Request) -> str:
    """What makes two calls one: all that a participant says, without the key."""
    said = [request.participant, request.event, request.summary, request.doc, request.reply_to,
            request.role, request.sha256, request.review]  # fmt: skip
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _read(folder: str) -> dict[str, Any]:
    try:
        value = json.loads(read_bounded(os.path.join(folder, FILE), _LIMIT))
    except (Unreadable, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _write(folder: str, value: dict[str, Any], *, sync: bool) -> None:
    atomic.replace(os.path.join(folder, FILE), json.dumps(value).encode() + b"\n", sync=sync)
