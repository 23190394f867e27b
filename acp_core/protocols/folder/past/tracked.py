"""Which files of a folder collaboration a recording keeps, and which changes of them are edits.

Source: folder protocol specification, "Files". Standard library only.
"""

from __future__ import annotations

import os
from typing import Any

from acp_core.model.text import clean_line
from acp_core.model.tracked import TrackedFile
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.schema import list_in, object_in


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
            log = file.name == schema.LOG_FILE
            follows = file.name == schema.PROTOCOL_FILE
            document = clean_line(file.name, 300)
            found.setdefault(name, TrackedFile(name, file.path, log, document, follows))
    return tuple(found.values())


_DERIVED = ("currentPhase", "proposalOwner", "waitingFor", "updatedAt")


def is_edit(name: str, before: bytes, after: bytes) -> bool:
    """Whether a file's change is somebody's edit; what of protocol.json follows from the log is none."""
    if before == after or name != schema.PROTOCOL_FILE:
        return before != after
    try:
        return _without_state(before) != _without_state(after)
    except ValueError:
        return False  # it is being written, or damaged: that is said elsewhere


def _without_state(data: bytes) -> dict[str, Any]:
    """What protocol.json says besides the state, which every event brings up to date."""
    fields = {
        key: each for key, each in schema.decode_protocol(data).items() if key not in _DERIVED
    }
    block = object_in(fields, "deliverables")
    if listed := list_in(block, "supporting"):
        marked = [each | {"frozen": None} if isinstance(each, dict) else each for each in listed]
        fields["deliverables"] = block | {"supporting": marked}
    return fields
