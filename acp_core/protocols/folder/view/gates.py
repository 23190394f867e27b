"""The conditions that must be met before the end: completion gates and the readiness gate."""

from __future__ import annotations

from acp_core.model import Gate
from acp_core.model.text import clean_line
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.rules.checks import nearest
from acp_core.protocols.folder.schema import V2
from acp_core.protocols.folder.schema.documents import READY, Item, Readiness

READINESS = "readiness.md"
_MANY = 200  # gates that are shown
_LABEL = 300


def gates(facts: Facts) -> tuple[Gate, ...]:
    """Completion gates first, each with the line where it is met or the nearest one."""
    readiness = facts.readiness
    texts = schema.gate_texts(facts.protocol or {})[:_MANY]
    shown = [_completion(text, readiness) for text in texts]
    shown += _readiness(readiness)
    if facts.dialect == V2 and facts.primary is not None:
        reference = clean_line(facts.primary.item.reference, _LABEL)
        frozen = facts.history.machine.frozen
        shown.append(Gate(f"{reference} is frozen", frozen, reference))
    return tuple(shown)


def _completion(text: str, readiness: Readiness | None) -> Gate:
    label = clean_line(text, _LABEL)
    if readiness is None:
        return Gate(label, None, READINESS, evidence="readiness.md cannot be read")
    line = readiness.checked.get(text)
    if line is not None:
        return Gate(label, True, READINESS, line)
    box = nearest(text, readiness.boxes)
    if box is None:
        return Gate(label, False, READINESS, evidence="not in readiness.md")
    if box.text == text and not box.checked:
        return Gate(label, False, READINESS, box.line)
    evidence = f"nearest: {clean_line(box.text, _LABEL)}"
    return Gate(label, False, READINESS, box.line, evidence)


def _readiness(readiness: Readiness | None) -> list[Gate]:
    if readiness is None:
        labels = ("Every question is classified", "Nothing blocks", "Deferred items have a reason")
        return [Gate(label, None, READINESS) for label in (*labels, READY)]
    return [
        _none_of("Every question is classified", readiness.unresolved),
        _none_of("Nothing blocks", readiness.blocking),
        _none_of("Deferred items have a reason", readiness.unreasoned),
        _ready(readiness),
    ]


def _ready(readiness: Readiness) -> Gate:
    if readiness.ready is not None:
        return Gate(READY, True, READINESS, readiness.ready)
    box = nearest(READY, readiness.boxes)
    if box is None:
        return Gate(READY, False, READINESS, evidence="not in readiness.md")
    return Gate(READY, False, READINESS, box.line)


def _none_of(label: str, items: tuple[Item, ...]) -> Gate:
    if not items:
        return Gate(label, True, READINESS)
    more = f" and {len(items) - 1} more" if len(items) > 1 else ""
    evidence = f"[{items[0].word}] {clean_line(items[0].text, _LABEL)}{more}"
    return Gate(label, False, READINESS, items[0].line, evidence)
