"""What follows from the log of a folder collaboration alone, for a past that was not recorded.

Source: folder protocol specification, "Files": phase, owner and who is waited for in
protocol.json follow from the events.
"""

from __future__ import annotations

from typing import Any

from acp_core.model.derivation import Derivation, Evidence, Files
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.schema import Entry
from acp_core.protocols.folder.state import Machine
from acp_core.protocols.folder.write.opened import FROZEN, fields_after


class FolderDerivation(Derivation):
    """Tells protocol.json as it was when the log had got so far. A log that grows costs little."""

    def __init__(self) -> None:
        self._static: bytes | None = None
        self._protocol: dict[str, Any] = {}
        self._begin()

    def derive(self, evidence: Evidence) -> Files:
        """See `Derivation`. Objective, participants and gates of protocol.json never change."""
        log, data = evidence.log, evidence.known.get(schema.PROTOCOL_FILE)
        if data is None:
            return {}
        if data != self._static:
            try:
                self._protocol = schema.decode_protocol(data)
            except ValueError:
                return {}
            self._static = data
            self._begin()
        elif len(log) < self._fed or not log.startswith(self._tail, self._fed - len(self._tail)):
            self._begin()
        self._feed(log)
        fields = fields_after(self._protocol, self._machine, self._first, self._last, self._frozen)
        return {schema.PROTOCOL_FILE: schema.encode_protocol(fields)}

    def _begin(self) -> None:
        people = schema.participant_ids(self._protocol) if self._protocol else []
        self._machine = Machine(people, schema.dialect_of(self._protocol))
        self._fed, self._tail = 0, b""
        self._first: Entry | None = None
        self._last: Entry | None = None
        self._frozen: set[str | None] = set()

    def _feed(self, log: bytes) -> None:
        new = log[self._fed :]
        for entry in schema.parse_lines(new):
            if isinstance(entry, Entry):
                self._machine.feed(entry)
                self._first = self._first or entry
                self._last = entry
                if (entry.event, entry.role) == FROZEN:
                    self._frozen.add(entry.doc)
        self._fed, self._tail = len(log), log[-64:]
