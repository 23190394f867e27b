"""Actions that put right what readiness.md says, on a person's word: gates and open questions.

They append no event. Source: folder protocol specification, "Readiness Gate".
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from acp_core.model import Action
from acp_core.model.action_field import Field, Kind
from acp_core.model.errors import Refused
from acp_core.protocols.folder.actions import writing
from acp_core.protocols.folder.actions.changing import changing
from acp_core.protocols.folder.actions.common import open_folder, title
from acp_core.protocols.folder.actions.table_turns import CHECK_GATES, SETTLE_QUESTIONS
from acp_core.protocols.folder.matters.gates import gate_fields, nearest_line
from acp_core.protocols.folder.schema import documents
from acp_core.protocols.folder.schema.documents import OVER, Readiness
from acp_core.protocols.folder.write.gates import READINESS, document_text
from acp_core.protocols.folder.write.opened import Opened
from acp_core.protocols.kit.binding import Context
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe


def checking(context: Context, now: datetime) -> Action:
    """Check a gate in its exact words, once a person says that it is met.

    Raises:
        Refused: it is too early or too late for that, or the collaboration cannot be read.
    """
    here = open_folder(context, now)
    unmet = open_gates(here.opened)
    if here.opened.machine.phase != "readiness_check" or not unmet:
        raise Refused("there is no gate to check now")
    every = gate_fields(here.opened.protocol).values()
    scan = documents.scan_readiness(_text(here.opened))

    def change(text: str, values: Values) -> str:
        met = [gate for name, gate in unmet.items() if getattr(values, name)]
        if not met:
            raise Refused("choose the gates that are met")
        for gate in met:
            text = with_gate(text, gate, every)
        return text

    fields = tuple(_switch(name, gate, scan, every) for name, gate in unmet.items())
    return changing(CHECK_GATES, here, READINESS, change, fields=fields)


def _switch(name: str, gate: str, scan: Readiness, every: Collection[str]) -> Field:
    about = f"Writes the line `- [x] {safe(gate)}` to readiness.md."
    near = nearest_line(gate, scan, every)
    if near is not None and near.text != gate:
        about += f" Closest now, line {near.line}: {safe(near.text)}"
    return Field(name, title(f"Met: {gate}"), about, Kind.FLAG)


def open_gates(opened: Opened) -> dict[str, str]:
    """Field name -> gate, of those that are not checked."""
    scan = documents.scan_readiness(_text(opened))
    return {
        name: gate
        for name, gate in gate_fields(opened.protocol).items()
        if gate not in scan.checked and not (gate == documents.READY and scan.ready)
    }


def with_gate(text: str, gate: str, every: Collection[str]) -> str:
    """readiness.md with a gate checked: its box, the nearest line reworded, or a new line."""
    scan = documents.scan_readiness(text)
    near = nearest_line(gate, scan, every)
    exact = any(box.text == gate and not box.checked for box in scan.boxes)
    if near is None or exact:
        ready = gate == documents.READY
        title = "Final Design Document Checklist" if ready else "Completion Gates"
        return writing.with_boxes(text, [gate], title)
    lines = text.split("\n")
    lines[near.line - 1] = f"- [x] {gate}"
    return "\n".join(lines)


def is_due(opened: Opened) -> bool:
    """Whether the run cannot go on before readiness.md is settled."""
    accepting = opened.machine.phase == "decision_review" and opened.machine.classified
    return accepting or opened.machine.phase == "readiness_check"


def settling(context: Context, now: datetime) -> Action:
    """Give open questions their class and their reason, without an event.

    Raises:
        Refused: there is nothing to settle, or the collaboration cannot be read.
    """
    here = open_folder(context, now)
    if not is_unsettled(here.opened):
        raise Refused("readiness.md has no open question")

    def change(text: str, values: Values) -> str:
        settled = writing.with_items(text, values.questions)
        if settled == text:
            raise Refused("classify each open question (--questions)")
        return settled

    items = [safe(item) for item in writing.items(_text(here.opened))]
    narrowed = {"questions": {"default": items}}
    return changing(SETTLE_QUESTIONS, here, READINESS, change, narrowed=narrowed)


def is_unsettled(opened: Opened) -> bool:
    """Whether readiness.md holds questions that are open, block, or were put off without a reason."""
    if opened.machine.phase in OVER:
        return False
    scan = documents.scan_readiness(_text(opened))
    due = opened.machine.phase in ("decision_review", "readiness_check")
    asked = any(scan.awaits(item, due=due) for item in scan.unresolved)
    return bool(asked or scan.unreasoned or scan.blocking)


def _text(opened: Opened) -> str:
    try:
        return document_text(opened.folder, READINESS)
    except Refused:
        return ""
