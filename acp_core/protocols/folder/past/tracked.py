"""Which files of a folder collaboration a recording keeps.

Source: folder protocol specification, "Files". Standard library only.
"""

from __future__ import annotations

import os

from acp_core.files.text import clean_line
from acp_core.model.tracked import TrackedFile
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.facts import Facts


def kept(facts: Facts) -> tuple[TrackedFile, ...]:
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
