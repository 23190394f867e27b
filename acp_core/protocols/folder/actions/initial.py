"""What a new collaboration starts from, and the files that it begins with.

Source: folder protocol specification, "Required Inputs" and "Initialization". Standard library only.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

from acp_core.model.action import Preview
from acp_core.model.errors import Refused
from acp_core.protocols.folder.actions.display import new_file
from acp_core.protocols.folder.schema.deliverables import CUSTOM
from acp_core.protocols.folder.write.init import EXISTS, Wish, charter_for, files
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe


def plain(values: Values) -> Values:
    """The same without the dialect, which a form asks for and a command sees by the deliverable."""
    if not values.dialect:
        return values
    second, custom = values.dialect == "v2", values.deliverable == CUSTOM
    return Values(
        **vars(values)
        | {
            "dialect": "",
            "deliverable": values.deliverable if second else "",
            "file": values.file if second else "",
            "checklist": values.checklist if second and custom else [],
        }
    )


def wish(values: Values) -> Wish:
    """What is asked for, as the writer takes it."""
    given = plain(values)
    return Wish(
        objective=given.objective,
        participants=given.participants,
        gates=given.gates,
        type=given.deliverable or None,
        file=given.file.strip() or None,
        checklist=given.checklist,
        mode=given.deliverables_mode,
        folder=given.deliverables_dir,
        repo_root=given.repo_root,
    )


def preview(values: Values, folder: str) -> Preview:
    """What starting it would write.

    Raises:
        Refused: something is missing or not allowed, or a collaboration stands there.
    """
    if os.path.lexists(os.path.join(folder, "protocol.json")):
        raise Refused(EXISTS)
    charter, warnings = charter_for(wish(values), folder)
    wanted = files(charter, folder, datetime.now(UTC))
    new = [file for file in wanted if not os.path.lexists(file.path)]
    existing = [file.name for file in wanted if os.path.lexists(file.path)]
    if existing:
        warnings = (*warnings, f"unchanged: {', '.join(existing)}")
    return Preview(
        sentence=safe(f"Creates a collaboration of {', '.join(charter.participants)} in {folder}."),
        changes=tuple(new_file(file.path, file.data) for file in new),
        warnings=tuple(safe(warning) for warning in warnings),
    )
