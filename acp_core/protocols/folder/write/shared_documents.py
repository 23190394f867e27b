"""Which documents of a shared collaboration leave this host, and when.

Source: folder protocol specification, "Phases", for who may change what. What is shared is a list:
the protocol's documents, README.md, the declared deliverables and attachments that lie in the
folder, and the notes that an event names; nothing else leaves, and nothing else comes. Standard
library only.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from acp_core.protocols.folder import schema
from acp_core.protocols.folder.schema import deliverables
from acp_core.protocols.folder.write import review
from acp_core.protocols.folder.write.opened import Opened
from acp_core.stores import tree

README = "README.md"
_NOTES = (".md", ".txt")
"""Endings of documents that are shared because an event names them."""
_DOC = re.compile(rb'"doc"\s*:\s*("(?:[^"\\]|\\.)*")')
_OWNERS = frozenset({README, "proposal.md", "decisions.md", "readiness.md"})
_ALWAYS = frozenset({*schema.DOCUMENTS, README})


def shared_names(protocol: Mapping[str, Any]) -> frozenset[str]:
    """The documents that are shared by what protocol.json says, without those that events name."""
    declared = deliverables.declare(dict(protocol))
    inside = declared.mode == deliverables.INTERNAL
    listed = [each.reference for each in declared.all] if inside else []
    return _ALWAYS | {name for name in listed if not tree.against(name)}


def is_shared_name(protocol: bytes, log: bytes) -> Callable[[str], bool]:
    """Which names are shared, by protocol.json and the log as the store has them."""
    try:
        listed = shared_names(schema.decode_protocol(protocol))
    except ValueError:
        listed = _ALWAYS

    def may(path: str) -> bool:
        if path in listed:
            return True
        return is_note(path) and path in _named(log)

    return may


def is_note(name: str) -> bool:
    """Whether a document may be shared because an event names it."""
    return name.lower().endswith(_NOTES) and not tree.against(name)


def _named(log: bytes) -> set[str]:
    """The documents that events name."""
    found = set()
    for each in set(_DOC.findall(log)):
        try:
            found.add(str(json.loads(each)))
        except ValueError:
            continue
    return found


def candidates(opened: Opened, doc: str | None) -> set[str]:
    """The documents that may leave this host now, whoever changed them."""
    found = set(shared_names(opened.protocol))
    if doc and is_note(doc):
        found.add(doc)
    return found - {schema.PROTOCOL_FILE, schema.LOG_FILE}


def may_change(opened: Opened, participant: str, doc: str | None = None) -> frozenset[str]:
    """The documents that a participant may change in the present phase.

    Args:
        opened: the collaboration.
        participant: who changed them.
        doc: the document that the participant's event is about.
    """
    machine = opened.machine
    phase, owner = machine.phase, participant == machine.owner
    declared = deliverables.declare(opened.protocol)
    products = {each.reference for each in declared.all if declared.mode == deliverables.INTERNAL}
    named = {doc} if doc else set()
    if phase in ("drafting", "revising"):
        return frozenset((_OWNERS | products if owner else set()) | named)
    if phase == "reviewing":
        return frozenset(({review.REVIEW} if not owner else set()) | named)
    if phase == "decision_review":
        mine = {"readiness.md", "decisions.md", *products} if owner else set()
        return frozenset(mine | {"readiness.md"} | named)
    if phase == "readiness_check":
        mine = {"conclusion.md", "decisions.md", *products} if owner else set()
        return frozenset(mine | {"readiness.md"} | named)
    return frozenset(named if phase == "blocked" else ())


def held_back(changed: Iterable[str], allowed: Iterable[str], phase: str) -> tuple[str, ...]:
    """What is said of documents that were changed and do not leave."""
    out = sorted(set(changed) - set(allowed))
    return tuple(f"{name} changed during {phase}: not shared" for name in out)


def renumber_review(folder: str, opened: Opened, participant: str) -> bytes | None:
    """review.md with the participant's new review under the seq that its event will have.

    Another host's event may have taken the seq that the reviewer had in mind.

    Returns:
        None where nothing is to be changed.
    """
    path = os.path.join(folder, review.REVIEW)
    from acp_core.protocols.folder.write.edits import content

    data = content(review.REVIEW, path)
    done = {
        e.seq for e in opened.entries if e.event == "review_submitted" and e.sender == participant
    }
    own = [
        each
        for each in review.blocks(data)
        if each.participant == participant and each.seq not in done
    ]
    if not own or own[-1].seq == opened.next_seq:
        return None
    block = own[-1]
    end = data.find(b"\n", block.start)
    line = review.heading(block.when, participant, opened.next_seq).encode()
    return data[: block.start] + line + data[end if end >= 0 else len(data) :]
