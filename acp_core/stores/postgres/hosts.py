"""What hosts say of themselves and ask of each other, in a PostgreSQL store.

A host's state is what it says; when it said so is the server's time. Who asks is the role of the
session that asked: the server writes it down, and nobody else can (rights.sql).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from acp_core.stores.address import checked_id
from acp_core.stores.engine import Asked, Heard, HostState, NotInStore, StoreRefused

if TYPE_CHECKING:
    from acp_core.stores.postgres.link import Connection

_MOST = 100  # requests
_MOST_HOSTS = 200
_LONGEST = 2_000  # characters of a text
_ID = re.compile(r"[0-9a-f]{24}")


def hosts(connection: Connection, name: str) -> Sequence[Heard]:
    """See `acp_core.stores.engine.Engine.hosts`."""
    rows = connection.execute(
        "select h.name, h.state::text, extract(epoch from clock_timestamp() - h.beat)::float8"
        " from acp.host h join acp.collab c on c.id = h.collab where c.name = %s"
        f" order by h.name limit {_MOST_HOSTS}",
        (name,),
    ).fetchall()
    found = []
    for host, text, age in rows:
        state = state_of(host, text)
        if state is not None:
            found.append(Heard(state, max(0.0, float(age))))
    return found


def tell(connection: Connection, name: str, state: HostState) -> None:
    """See `acp_core.stores.engine.Engine.tell`."""
    told = connection.execute(
        "insert into acp.host (collab, name, state) select id, %s, %s::json from acp.collab where name = %s"
        " on conflict (collab, name) do update set state = excluded.state, beat = clock_timestamp()",
        (checked_id(state.host), _encoded(state._asdict()), name),
    )
    _must_exist(told.rowcount, name)


def ask(connection: Connection, name: str, request: Asked) -> None:
    """See `acp_core.stores.engine.Engine.ask`."""
    if not _ID.fullmatch(request.id):
        raise StoreRefused("a request needs an id of 24 hexadecimal digits")
    body = request._replace(proven="", state="", sentence="")._asdict()
    connection.execute(
        "insert into acp.ask (collab, id, host, request) select id, %s, %s, %s::json from acp.collab"
        " where name = %s on conflict (collab, id) do nothing",
        (request.id, checked_id(request.host), _encoded(body), name),
    )


def requests(connection: Connection, name: str, host: str) -> Sequence[Asked]:
    """See `acp_core.stores.engine.Engine.requests`."""
    rows = connection.execute(
        "select a.id, a.host, a.who, a.request::text, a.answer::text from acp.ask a"
        " join acp.collab c on c.id = a.collab where c.name = %s and (a.host = %s or %s = '')"
        f" order by a.at desc, a.id limit {_MOST}",
        (name, host, host),
    ).fetchall()
    found = [_request(*row) for row in reversed(rows)]
    return [each for each in found if each is not None]


def answer(connection: Connection, name: str, request: Asked, state: str, sentence: str) -> None:
    """See `acp_core.stores.engine.Engine.answer`."""
    connection.execute(
        "update acp.ask set answer = %s::json from acp.collab c where c.id = collab and c.name = %s"
        " and ask.id = %s and host = %s",
        (_encoded({"state": state, "sentence": sentence}), name, request.id, request.host),
    )


def state_of(host: str, text: str) -> HostState | None:
    """What a host says of itself, if it can be read: who writes rows can write anything."""
    value = _decoded(text)
    names = ("account", "boot", "version", "at", "continued")
    texts = [value.get(name, "") for name in names]
    people = value.get("participants", {})
    if not all(isinstance(each, str) and len(each) <= _LONGEST for each in texts):
        return None
    if not isinstance(people, dict) or not all(isinstance(each, dict) for each in people.values()):
        return None
    account, boot, version, at, continued = texts
    return HostState(host, account, boot, version, people, at, continued)


def _request(id: str, host: str, who: str, text: str, answered: str | None) -> Asked | None:
    value = _decoded(text)
    texts = [value.get(name, "") for name in ("verb", "participant", "text", "by")]
    seconds = value.get("seconds", 600.0)
    if not all(isinstance(each, str) and len(each) <= _LONGEST for each in texts):
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    if not 0 <= seconds <= 86_400:
        return None
    verb, participant, words, by = texts
    said = _decoded(answered or "")
    state, sentence = said.get("state", ""), said.get("sentence", "")
    if not isinstance(state, str) or not isinstance(sentence, str):
        state, sentence = "unknown", ""
    return Asked(
        id, host, verb, participant, words, by, who, float(seconds), state[:40], sentence[:_LONGEST]
    )


def _must_exist(count: int, name: str) -> None:
    if not count:
        raise NotInStore(f"{name} is not in the store (`acp share` puts it there)")


def _encoded(value: Mapping[str, Any]) -> str:
    """JSON as PostgreSQL takes it: ASCII, and no NaN.

    Raises:
        StoreRefused: it cannot be said in JSON.
    """
    try:
        return json.dumps(value, allow_nan=False)
    except (ValueError, TypeError) as error:
        raise StoreRefused(f"this is not JSON: {error}") from None


def _decoded(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
