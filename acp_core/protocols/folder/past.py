"""What was not recorded, as far as the files tell it, and which files a recording tracks."""

from __future__ import annotations

import os
from typing import Any

from acp_core.model.past import Derivation, Evidence, Files, TrackedFile
from acp_core.model.text import clean_line
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import Entry, list_in, object_in
from acp_core.protocols.folder.state import SUPPORTING_FROZEN, Machine, fields_after


class FolderDerivation(Derivation):
    """Tells protocol.json as it was when the log had got so far. A log that grows costs little."""

    def __init__(self) -> None:
        self._static: bytes | None = None
        self._protocol: dict[str, Any] = {}
        self._begin()

    def derive(self, evidence: Evidence) -> Files:
        """See `Derivation`. Objective, participants and gates of protocol.json never change."""
        log, data = evidence.log, evidence.known.get(records.PROTOCOL_FILE)
        if data is None:
            return {}
        if data != self._static:
            try:
                self._protocol = records.decode_protocol(data)
            except ValueError:
                return {}
            self._static = data
            self._begin()
        elif len(log) < self._fed or not log.startswith(self._tail, self._fed - len(self._tail)):
            self._begin()
        self._feed(log)
        fields = fields_after(self._protocol, self._machine, self._first, self._last, self._frozen)
        return {records.PROTOCOL_FILE: records.encode_protocol(fields)}

    def _begin(self) -> None:
        people = records.participant_ids(self._protocol) if self._protocol else []
        self._machine = Machine(people, records.dialect_of(self._protocol))
        self._fed, self._tail = 0, b""
        self._first: Entry | None = None
        self._last: Entry | None = None
        self._frozen: set[str | None] = set()

    def _feed(self, log: bytes) -> None:
        new = log[self._fed :]
        for entry in records.parse_lines(new):
            if isinstance(entry, Entry):
                self._machine.feed(entry)
                self._first = self._first or entry
                self._last = entry
                if (entry.event, entry.role) == SUPPORTING_FROZEN:
                    self._frozen.add(entry.doc)
        self._fed, self._tail = len(log), log[-64:]


def recorded_files(facts: Facts) -> tuple[TrackedFile, ...]:
    """The log, protocol.json, the documents and the declared deliverables, each once."""
    files = (
        *facts.others.values(),
        *facts.files.values(),
        *(declared.file for declared in facts.deliverables),
    )
    real = os.path.realpath(facts.folder)
    found: dict[str, TrackedFile] = {}
    for file in files:
        if file.path is not None and not os.path.islink(file.path):
            inside = os.path.dirname(file.path) == facts.folder
            below = file.name if inside else os.path.relpath(file.path, real)
            name = below.replace(os.sep, "/")
            log = file.name == records.LOG_FILE
            follows = file.name == records.PROTOCOL_FILE
            document = clean_line(file.name, 300)
            found.setdefault(name, TrackedFile(name, file.path, log, document, follows))
    return tuple(found.values())


_DERIVED = ("currentPhase", "proposalOwner", "waitingFor", "updatedAt")


def is_edit(name: str, before: bytes, after: bytes) -> bool:
    """Whether a file's change is somebody's edit; what of protocol.json follows from the log is none."""
    if before == after or name != records.PROTOCOL_FILE:
        return before != after
    try:
        return _without_state(before) != _without_state(after)
    except ValueError:
        return False  # it is being written, or damaged: that is said elsewhere


def _without_state(data: bytes) -> dict[str, Any]:
    """What protocol.json says besides the state, which every event brings up to date."""
    fields = {
        key: each for key, each in records.decode_protocol(data).items() if key not in _DERIVED
    }
    block = object_in(fields, "deliverables")
    if listed := list_in(block, "supporting"):
        marked = [each | {"frozen": None} if isinstance(each, dict) else each for each in listed]
        fields["deliverables"] = block | {"supporting": marked}
    return fields
