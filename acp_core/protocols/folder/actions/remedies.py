"""Actions that put right what readiness.md says, on a person's word: gates and open questions.

They append no event. Source: folder protocol specification, "Readiness Gate".
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.protocols.folder import documents
from acp_core.protocols.folder.act import Refused, backups
from acp_core.protocols.folder.act.edits import Edit
from acp_core.protocols.folder.act.gates import READINESS, document_text
from acp_core.protocols.folder.act.opened import Opened, lock
from acp_core.protocols.folder.actions import writing
from acp_core.protocols.folder.actions.events import model_of
from acp_core.protocols.folder.actions.showing import file_change, refusal, safe
from acp_core.protocols.folder.causes.gates import CHECK, SETTLE, gate_fields, nearest_line

Change = Callable[[str, Any], str]


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

    return _of_readiness(
        opened,
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


def settle_questions(opened: Opened) -> Action | None:
    """Give open questions their class and their reason, without an event."""
    accepting = opened.machine.phase == "decision_review" and opened.machine.classified
    if not accepting and opened.machine.phase != "readiness_check":
        return None
    scan = documents.scan_readiness(_text(opened))
    if not (scan.unresolved or scan.unreasoned or scan.blocking):
        return None
    words = ", ".join(f"[{word}]" for word in documents.CLASSES)
    about = f"Each begins with its class: {words}; a deferred one ends in `Reason: ...`."
    items = [safe(item) for item in writing.items(_text(opened))]
    fields = {"questions": (list[str], Field(items, title="Questions", description=about))}

    def change(text: str, answers: Any) -> str:
        return writing.with_items(text, answers.questions)

    return _of_readiness(
        opened,
        SETTLE,
        "Settle open questions",
        "Write down in readiness.md how its open questions are settled.",
        fields,
        change,
    )


def _of_readiness(
    opened: Opened, name: str, label: str, sentence: str, fields: dict[str, Any], change: Change
) -> Action:
    folder = opened.folder

    def edit(answers: Any) -> Edit:
        return writing.edit(folder, READINESS, lambda text: change(text, answers))

    def preview(answers: Any) -> Preview:
        try:
            made = edit(answers)
        except (Refused, OSError) as error:
            return Preview("", refused=refusal(error))
        if made.before == made.after:
            return Preview("", refused="nothing would change")
        shown = file_change(made.path, made.name, made.before, made.after)
        return Preview("Change readiness.md; a copy of it is kept.", changes=(shown,))

    def perform(answers: Any) -> Outcome:
        try:
            with lock(folder):
                made = edit(answers)
                if made.before == made.after:
                    raise Refused("nothing would change")
                backups.keep(folder, READINESS, made.before, datetime.now(UTC))
                made.apply()
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, refusal(error))
        return Outcome(OutcomeState.DONE, "Changed readiness.md.")

    return Action(name, label, sentence, model_of(name, fields), preview, perform)


def _text(opened: Opened) -> str:
    try:
        return document_text(opened.folder, READINESS)
    except Refused:
        return ""
