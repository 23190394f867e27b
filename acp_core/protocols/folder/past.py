"""What follows from the log of a folder collaboration alone, for a past that was not recorded.

Source: folder protocol specification, "Files": phase, owner and who is waited for in
protocol.json follow from the events.
"""

from __future__ import annotations

from collections.abc import Mapping

from acp_core.protocols.folder import schema
from acp_core.protocols.folder.act.opened import take, with_state


def derive(log: bytes, known: Mapping[str, bytes]) -> dict[str, bytes]:
    """protocol.json as it was when the log had got that far; nothing where it cannot be told.

    Objective, participants and gates never change: they are those of the earliest one known.
    """
    data = known.get(schema.PROTOCOL_FILE)
    if data is None:
        return {}
    try:
        opened = take("", schema.decode_protocol(data), log)
    except ValueError:
        return {}
    return {schema.PROTOCOL_FILE: schema.encode_protocol(with_state(opened))}
