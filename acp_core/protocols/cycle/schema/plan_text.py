"""The tasks of a plan that is written as a document, plan.md: some cycles have no plan.json.

Source: development cycle specification, "Progress Markdown Files".
"""

from __future__ import annotations

import re

from acp_core.protocols.cycle.schema import Object
from acp_core.protocols.cycle.schema.issues import lines_of

_MANY = 1_000
_ID = r"[A-Z][A-Z0-9]{0,15}(?:-[A-Z0-9]{1,15})*-\d{1,6}"
_TASK = re.compile(
    rf"^\s*(?:\||#{{1,6}}|[-*+]|\d{{1,3}}[.)])\s*(?:\[(?P<mark>[ xX])\]\s*)?(?P<tick>[✓✅]\s*)?"
    rf"[*`_]*(?P<id>{_ID})[*`_]*\s*[:|.-]?[*`_]*\s*(?P<title>[^|]*)"
)
_NEEDS = re.compile(r"^\s*[-*+]?\s*[*_]*depends[ _]on[*_]*\s*:\s*(.*)$", re.IGNORECASE)


def tasks(text: str) -> list[Object]:
    """Its tasks in the form of plan.json: ``id``, ``title``, ``status``, ``depends_on``.

    A task is a heading, an item or a table's row that begins with an id such as TASK-001; the
    status is told only where the item is ticked, or has an empty box.
    """
    found: dict[str, Object] = {}
    latest: Object = {}
    for line in lines_of(text):
        match = _TASK.match(line[:1_000])
        needs = _NEEDS.match(line[:1_000])
        if match and len(found) < _MANY:
            ticked = bool(match["tick"]) or (match["mark"] or "").lower() == "x"
            status = "completed" if ticked else "pending" if match["mark"] else ""
            made: Object = {"id": match["id"], "title": match["title"].strip(), "depends_on": []}
            latest = found.setdefault(match["id"], made)
            if status:
                latest["status"] = status
        elif needs and latest:
            latest["depends_on"] = re.findall(_ID, needs[1])
    return list(found.values())
