"""Checking what a new collaboration is to be founded on.

Source: folder protocol specification, "Required Inputs"; the refusals name the command's
flags, as the existing tools do. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from acp_core.protocols.folder import schema
from acp_core.protocols.folder.schema.deliverables import (
    CUSTOM,
    DEFAULT_DIR,
    EXTERNAL,
    INTERNAL,
    TYPES,
    is_inside,
)
from acp_core.protocols.folder.write import Refused
from acp_core.protocols.folder.write.charter import Charter, Primary

_LINE_BREAK = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


class Wish(NamedTuple):
    """What somebody asks for; ``type`` None (and nothing else of a deliverable) means v1."""

    objective: str
    participants: Sequence[str]
    gates: Sequence[str]
    type: str | None = None
    file: str | None = None
    checklist: Sequence[str] = ()
    mode: str | None = None
    folder: str | None = None
    repo_root: str | None = None

    @property
    def wants_deliverable(self) -> bool:
        """Whether any of the deliverable's fields is given."""
        given = (self.type, self.file, self.mode, self.folder, self.repo_root)
        return any(value is not None for value in given) or bool(self.checklist)


def charter_for(wish: Wish, folder: str) -> tuple[Charter, tuple[str, ...]]:
    """The charter that a wish leads to in ``folder``, and warnings about it.

    Raises:
        Refused: something is missing or not allowed.
    """
    objective = wish.objective.strip()
    if not objective:
        raise Refused("--objective must not be blank")
    participants = _participants(wish)
    gates = _gates(wish)
    primary = _primary(wish) if wish.wants_deliverable else None
    charter = Charter(objective, participants, gates, primary)
    if primary:
        charter.deliverable_path(folder)  # refused where it would lie outside
    warnings = []
    if len(participants) < len(_given(wish.participants)):
        warnings.append("a --participant that was given twice takes part once")
    if len(participants) == 1:
        warnings.append("with only one participant, no proposal can be reviewed")
    return charter, tuple(warnings)


def _given(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(stripped for value in values if (stripped := value.strip()))


def _participants(wish: Wish) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(_given(wish.participants)))
    if wish.wants_deliverable and len(names) < 2:
        raise Refused("at least two non-blank --participant values are required")
    if not names:
        raise Refused("at least one non-blank --participant is required")
    for name in names:
        if not schema.is_participant_id(name):
            raise Refused(
                f"--participant {name!r}: an id has 1 to 64 letters, digits, '.', '_' or '-', "
                "and does not begin with '.' or '-'"
            )
    return names


def _gates(wish: Wish) -> tuple[str, ...]:
    gates = tuple(dict.fromkeys(_given(wish.gates)))
    if not gates:
        raise Refused("at least one non-blank --completion is required")
    for gate in gates:
        if _LINE_BREAK.search(gate):
            raise Refused(f"--completion must be one line: {gate!r}")
        for name in schema.OBSOLETE_FILES:
            if name in gate:
                raise Refused(f"completion gate must not reference obsolete file {name}")
    return gates


def _primary(wish: Wish) -> Primary:
    if wish.type is None:
        raise Refused("--primary-deliverable-type is required for a deliverable")
    if wish.type not in TYPES:
        raise Refused(f"--primary-deliverable-type must be one of {', '.join(TYPES)}")
    checklist = _given(wish.checklist)
    file = (wish.file or "").strip()
    if wish.type == CUSTOM:
        if not file:
            raise Refused("custom deliverables require --primary-deliverable-file")
        if not checklist:
            raise Refused("custom deliverables require at least one --primary-deliverable-check")
    file = file or f"{wish.type}.md"
    if not file.endswith(".md"):
        raise Refused("primary deliverable file must end with .md")
    if not is_inside(file):
        raise Refused("primary deliverable file must be relative and must not contain ..")
    folder = (wish.folder or "").strip() or DEFAULT_DIR
    if not is_inside(folder):
        raise Refused("--deliverables-dir must be relative and must not contain ..")
    mode = wish.mode or INTERNAL
    root = (wish.repo_root or "").strip() or None
    if mode == EXTERNAL and root is None:
        raise Refused("--repo-root is required when --deliverables-mode external")
    if mode == EXTERNAL and root and root.startswith(("/", "~")):
        raise Refused("--repo-root must be relative to the collaboration folder")
    if mode != EXTERNAL and root is not None:
        raise Refused("--repo-root is only allowed when --deliverables-mode external")
    return Primary(wish.type, file, checklist, mode, folder, root)
