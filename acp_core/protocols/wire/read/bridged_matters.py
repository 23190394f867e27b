"""Parts of a Snapshot as a bridge tells them: matters by their own names, and by those of 0.2 until 0.4."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from acp_core.model import Snapshot
from acp_core.model.matter import About, Matter, Move, Until, Verdict
from acp_core.protocols.wire.schema.basics import Json, objects, time_text

PARTS = (Matter, Move, Until, About, Verdict)
"""The parts of the model that are tuples of names."""

_MATTERS = ("matters", "needs", "causes", "obstacles", "questions", "notices")
"""The fields of a Snapshot that hold matters."""


def of_earlier(shown: Snapshot) -> Json:
    """The matters as readers of 0.2 know them: by the names that their fields had then; until 0.4."""
    forms = {
        "needs": ("text", "action"),
        "causes": ("headline", "remedy"),
        "obstacles": ("sentence", "remedy"),
        "questions": ("text", "action"),
        "notices": ("text", "action"),
    }
    return {
        name: [_earlier(each, *names) for each in getattr(shown, name)]
        for name, names in forms.items()
    }


def _earlier(matter: Matter, sentence: str, act: str) -> Json:
    about = plain(matter.about)
    told = {
        "key": matter.key, "code": matter.code, "kind": matter.code, "since": plain(matter.since),
        "advice": matter.instruction, "cure": matter.instruction, "evidence": list(matter.evidence),
        "certain": matter.certain, "wanted": matter.wanted, "given": plain(matter.given),
        "others": list(matter.others), "allowed": sorted(matter.refuses or ()),
    }  # fmt: skip
    return {**about, **told, sentence: matter.sentence, act: matter.remedy or None}


def with_matters(snapshot: Json) -> Json:
    """What a bridge tells of a Snapshot, with matters also where it is one of 0.2."""
    listed = snapshot.get("matters")
    known = {each.get("key"): each for each in objects(listed)} if listed else {}
    told = dict(snapshot)
    for name in _MATTERS[1:]:
        entries = [_as_matter(each, name) for each in objects(snapshot.get(name))]
        told[name] = [known.get(each["key"], each) for each in entries]
    return told


def _as_matter(entry: Json, name: str) -> Json:
    """A problem, need, question or notice of 0.2, as a matter."""
    act = entry.get("action") or entry.get("remedy")
    given, others = entry.get("given") or (), entry.get("others") or ()
    about = {each: entry.get(each) for each in ("participant", "document", "line", "event")}
    code = entry.get("kind") if name == "questions" else entry.get("code")
    mine = entry.get("wanted", name != "notices")
    passing = "nobody" if name == "notices" else "time"
    kinds = {
        "needs": "decision",
        "obstacles": "damage",
        "questions": "question",
        "notices": "remark",
    }
    told: Json = {
        "code": code, "key": entry.get("key") or f"{code}:{entry.get('document') or ''}",
        "kind": kinds.get(name, "stalled"), "about": about, "since": entry.get("since"),
        "move": {"who": "owner" if mine else passing},
        "evidence": entry.get("evidence") or (), "certain": entry.get("certain", True),
        "instruction": entry.get("advice") or entry.get("cure") or "",
        "refuses": entry.get("allowed") or () if name == "obstacles" else None,
        "verdicts": [
            *([{"act": act, "given": given}] if act else ()),
            *({"act": other, "given": given, "ends": False} for other in others),
        ],
    }  # fmt: skip
    sentence = next(
        (entry[each] for each in ("sentence", "headline", "text") if each in entry), None
    )
    return told if sentence is None else {**told, "sentence": sentence}


def plain(value: Any) -> Any:
    """A part of the model as JSON can hold it."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return time_text(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, PARTS):
        return {name: plain(getattr(value, name)) for name in value._fields}
    if isinstance(value, Set):
        return sorted(value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(each) for each in value]
    return value
