"""What is kept of a log in a test, what is known by it, and the same derived in full."""

from __future__ import annotations

from pathlib import Path

from acp_core.files.journal import blocks
from acp_core.model.errors import Refused
from acp_core.protocols.folder.conduct import waiting
from acp_core.protocols.folder.conduct.waiting import Observation
from acp_core.protocols.folder.read.checkpoint import Checkpoint
from acp_core.protocols.folder.read.log import History
from acp_core.protocols.folder.schema.records import V1
from tests.protocols.folder.support import PEOPLE as THREE
from tests.protocols.folder.test_history import PEOPLE, cut

PLACE = (5, 7)  # device and inode of a log that is nowhere


def derived(data: bytes, dialect: str = V1, people: tuple[str, ...] = PEOPLE) -> History:
    """What a log says, derived in full."""
    history = History(people, dialect)
    for block in blocks(data):
        history.read(block)
    return history


def kept(data: bytes, dialect: str = V1, people: tuple[str, ...] = PEOPLE) -> Checkpoint:
    """Keep where a log stands, read block by block."""
    made = Checkpoint(*PLACE, people, dialect)
    made.recall(lambda size: data[:size])
    history = History(people, dialect)
    for block in cut(data, [7, 9, 30]):
        history.read(block)
        made.take(block)
    made.keep(history)
    return made


def recalled(data: bytes, dialect: str = V1, people: tuple[str, ...] = PEOPLE) -> History | None:
    """What is known of a log by what was kept, and by what came since."""
    found = Checkpoint(*PLACE, people, dialect)
    history = found.recall(lambda size: memoryview(data)[:size])
    if history is not None:
        for block in blocks(data[found.size :], found.lines + 1):
            history.read(block)
    return history


def seen(folder: Path, again: bool) -> object:
    """What `next` (or `wait`, which looks again) sees of a collaboration, and keeps."""
    try:
        found = Observation(str(folder), THREE[1], again=again)
    except Refused as error:
        return str(error).replace(str(folder), "FOLDER")
    found.keep()
    facts = waiting._facts(found, THREE[1])
    return facts, found.last, found.broken, found.takes_no_more, found.machine.stays
