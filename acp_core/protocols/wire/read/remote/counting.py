"""Numbers for what an agent says that keeps no durable log: it is counted here, each thing once.

The first agents of other makes number nothing; later ones begin anew when they are restarted. So
what comes again (after a new connection, or as part of their history) is known by what it says.
"""

from __future__ import annotations

from acp_core.files.decode import text
from acp_core.protocols.wire.network.answers import Event
from acp_core.protocols.wire.read.folder import EVENTS
from acp_core.protocols.wire.read.remote.known import Known
from acp_core.protocols.wire.schema import Json
from acp_core.protocols.wire.schema.decode import encode
from acp_core.protocols.wire.view import timeline

_REMEMBERED = 4 * EVENTS


class Counting:
    """Gives what is new the numbers that follow those of the entries that are known."""

    def __init__(self, known: Known) -> None:
        self._last = known.last
        self._seen = dict.fromkeys(
            _identity(each.kind, timeline.body_of(each)) for each in known.entries
        )

    def numbered(self, kind: str, body: Json) -> Event | None:
        """The event with its number; None where it is known already."""
        identity = _identity(kind, body)
        if identity in self._seen:
            return None
        self._seen[identity] = None
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        self._last += 1
        return Event(self._last, kind, body)


def _identity(kind: str, body: Json) -> tuple[str, object]:
    """By what an event is known: a message by its id, all else by what it says, but for its number."""
    id = text(body.get("message_id"))
    if kind in ("acp.message", "acp.reply") and id is not None:
        return "message", id
    return kind, encode({name: value for name, value in body.items() if name != "seq"})
