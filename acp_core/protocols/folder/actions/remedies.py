"""Actions that put right what readiness.md says, on a person's word: gates and open questions.

They append no event. Source: folder protocol specification, "Readiness Gate".
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic import Field

from acp_core.model import Action
from acp_core.protocols.folder.actions import writing
from acp_core.protocols.folder.actions.changing import changing
from acp_core.protocols.folder.actions.display import safe
from acp_core.protocols.folder.actions.names import CHECK, SETTLE
from acp_core.protocols.folder.causes.gates import gate_fields, nearest_line
from acp_core.protocols.folder.schema import documents
from acp_core.protocols.folder.schema.questions import OVER, TEMPLATE
from acp_core.protocols.folder.write import Refused
from acp_core.protocols.folder.write.gates import READINESS, document_text
from acp_core.protocols.folder.write.opened import Opened


def check_gates(opened: Opened) -> Action | None:
    """Check a gate in its exact words, once a person says that it is met."""
    if opened.machine.phase != "readiness_check":
        return None
    open_gates = _open_gates(opened)
    if not open_gates:
        return None
    text = _text(opened)
    every = gate_fields(opened.protocol).values()
    fields = {}
    for name, gate in open_gates.items():
        about = f"Then the line `- [x] {safe(gate)}` stands in readiness.md."
        near = nearest_line(gate, documents.scan_readiness(text), every)
        if near is not None and near.text != gate:
            about += f" Now line {near.line} comes nearest: {safe(near.text)}"
        fields[name] = (bool, Field(False, title=f"Met: {gate}", description=about))

    def change(text: str, answers: Any) -> str:
        met = [gate for name, gate in open_gates.items() if getattr(answers, name)]
        if not met:
            raise Refused("say which of them are met")
        for gate in met:
            text = with_gate(text, gate, every)
        return text

    return changing(
        opened,
        READINESS,
        CHECK,
        "Check a gate",
        "Say that a gate is met: its line is checked, or put in, in its exact words.",
        fields,
        change,
    )


def _open_gates(opened: Opened) -> dict[str, str]:
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


def settle_questions(opened: Opened) -> Action | None:
    """Give open questions their class and their reason, without an event."""
    if opened.machine.phase in OVER:
        return None
    scan = documents.scan_readiness(_text(opened))
    asked = [item for item in scan.unresolved if item.text != TEMPLATE]
    due = opened.machine.phase in ("decision_review", "readiness_check")
    if not ((scan.unresolved if due else asked) or scan.unreasoned or scan.blocking):
        return None
    words = ", ".join(f"[{word}]" for word in documents.CLASSES)
    about = f"Each begins with its class: {words}; a deferred one ends in `Reason: ...`."
    items = [safe(item) for item in writing.items(_text(opened))]
    fields = {"questions": (list[str], Field(items, title="Questions", description=about))}

    def change(text: str, answers: Any) -> str:
        return writing.with_items(text, answers.questions)

    return changing(
        opened,
        READINESS,
        SETTLE,
        "Settle open questions",
        "Write down in readiness.md how its open questions are settled.",
        fields,
        change,
    )


def _text(opened: Opened) -> str:
    try:
        return document_text(opened.folder, READINESS)
    except Refused:
        return ""
