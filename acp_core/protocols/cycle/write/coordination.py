"""The coordination log: timeline.md, decisions.log and feedback.md.

Lines wait in the state until they stand in their file: so a crash between the two loses none and
doubles none. Decided: this, and no journal of a transaction, makes the state and its log one. A
journal can be followed only while its files are as it found them, and here agents and other
orchestrators may write the state at any moment: it would then stop every act until somebody looks.
timeline.md and decisions.log only grow. Source: development cycle specification, "Coordination Log".
"""

from __future__ import annotations

import contextlib
import json
from datetime import datetime
from pathlib import Path

from acp_core.files import atomic, transaction
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.read.coordination_log import (
    DECISIONS,
    FEEDBACK,
    TIMELINE,
    feedback_text,
)
from acp_core.protocols.cycle.schema import Object, one_line

OUTBOX = "outbox"
_LIMIT = 16 << 20


def note(state: Object, now: datetime, actor: str, text: str) -> None:
    """Have a line written into the timeline."""
    at = now.astimezone(schema.LOCAL).isoformat(timespec="seconds")
    _put(state, TIMELINE, f"- {at} {_name(actor)}: {one_line(text)}")


def record(state: Object, row: Object) -> None:
    """Have a row written into decisions.log."""
    _put(state, DECISIONS, json.dumps(row, ensure_ascii=False))


def _name(actor: str) -> str:
    return actor.upper() if actor in schema.AGENTS else actor.capitalize()


def section(state: Object) -> Object:
    """The state's ``coordination``, made where there is none."""
    held = state.get("coordination")
    if not isinstance(held, dict):
        held = state["coordination"] = {}
    for key in ("feedback_log", "pending_decisions", "blockers"):
        if not isinstance(held.get(key), list):
            held[key] = []
    return held


def _put(state: Object, name: str, line: str) -> None:
    held = section(state)
    box = held.get(OUTBOX)
    if not isinstance(box, list):
        box = held[OUTBOX] = []
    box.append([name, line])


def _waiting(state: Object) -> list[tuple[str, str]]:
    box = schema.obj(state.get("coordination")).get(OUTBOX)
    found = []
    for each in box if isinstance(box, list) else []:
        if isinstance(each, list) and len(each) == 2 and each[0] in (TIMELINE, DECISIONS):
            found.append((each[0], one_line(schema.text(each[1]))))
    return found


def flush(progress: Path, state: Object) -> None:
    """Write what waits, as far as it is not written yet, and bring feedback.md up to date.

    A file that cannot be written keeps its lines waiting.
    """
    folder = progress / "coordination"
    if progress.is_symlink() or folder.is_symlink() or not folder.is_dir():
        return
    waiting = _waiting(state)
    with contextlib.suppress(OSError, transaction.WriteError):
        for name in (TIMELINE, DECISIONS):
            lines = [line for where, line in waiting if where == name]
            _append(folder / name, lines)
        _write_feedback(folder / FEEDBACK, _text(folder / TIMELINE), state)


def forget_flushed(progress: Path, state: Object) -> None:
    """Drop the waiting lines that stand in their file."""
    folder = progress / "coordination"
    waiting = _waiting(state)
    if not waiting:
        return
    there = {name: set(_text(folder / name).splitlines()) for name in (TIMELINE, DECISIONS)}
    left = [[name, line] for name, line in waiting if line not in there[name]]
    schema.obj(state.get("coordination"))[OUTBOX] = left


def _text(path: Path) -> str:
    if path.is_symlink():
        return ""
    try:
        return read_bounded(path, _LIMIT).decode("utf-8", "replace")
    except Unreadable:
        return ""


def _append(path: Path, lines: list[str]) -> None:
    """Append the lines that the file does not hold yet; a torn last line is ended first."""
    if not lines or path.is_symlink():
        return
    held = _text(path)
    known = set(held.splitlines())
    new = [line for line in lines if line not in known]
    if not new:
        return
    if path.name == TIMELINE and not held:
        new = ["# Timeline", "", *new]
    data = ("\n".join(new) + "\n").encode("utf-8", "replace")
    transaction.do(
        transaction.prepare(path.parent, transaction.Write(path, transaction.APPEND, data))
    )


# feedback.md


def _write_feedback(path: Path, timeline: str, state: Object) -> None:
    held = _text(path)
    text = feedback_text(held, timeline, state)
    if text != held and not path.is_symlink():
        atomic.replace(path, text.encode("utf-8", "replace"), sync=False)
