"""The coordination log: timeline.md, decisions.log and feedback.md.

Source: development cycle specification, "Coordination Log". Lines wait in the state until they
stand in their file: so a crash between the two loses none and doubles none. Decided: this, and no
journal of a transaction, makes the state and its log one. A journal can be followed only while its
files are as it found them, and here agents and other orchestrators may write the state at any
moment: it would then stop every act until somebody looks. timeline.md and decisions.log only grow. feedback.md has four sections; lines that others wrote into it stay.
"""

from __future__ import annotations

import contextlib
import json
import re
from datetime import datetime
from pathlib import Path

from acp_core.files import atomic, transaction
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import Object, agent_in, coordination_of, one_line

TIMELINE, DECISIONS, FEEDBACK = "timeline.md", "decisions.log", "feedback.md"
OUTBOX = "outbox"
_LIMIT = 16 << 20
SECTIONS = (
    "Timeline",
    "Decision Records",
    "Blockers & Resolutions",
    "Cross-Agent Dependencies",
)
SEEN = "seen_at"  # since when the orchestrator knows of what bears no time itself
_TIMES = ("asked_at", "reported_at", "timestamp", "created_at", SEEN)
_ID = re.compile(r"^- (?:\[\S*\] )?(?:Blocker: )?([\w.-]+): ")
_HEADING = re.compile(r"^## +(.+?) *$")


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


def feedback_text(held: str, timeline: str, state: Object) -> str:
    """feedback.md as it should stand: its four sections, and every line that others wrote."""
    fresh = {
        "Timeline": [bracketed(line) for line in timeline.splitlines() if line.startswith("- ")],
        "Decision Records": _decisions(state),
        "Blockers & Resolutions": _blockers(state),
        "Cross-Agent Dependencies": _dependencies(state),
    }
    own = _sections(held)
    above = [line for line in own.pop("", []) if not line.startswith("# Feedback")]
    parts = [f"# Feedback & Coordination Log - Version {version(state)}", "", *above]
    for name in SECTIONS:
        kept = own.pop(name, [])
        if name == "Timeline":
            ours = set(fresh[name])
            lines = [line for line in kept if line not in ours] + fresh[name]
        else:
            lines = _joined(kept, fresh[name])
        parts += [f"## {name}", *lines, ""]
    for name, lines in own.items():
        parts += [f"## {name}", *lines, ""]
    return "\n".join(parts)


def bracketed(line: str) -> str:
    """A line of timeline.md as feedback.md has it: with its time in brackets, its date too."""
    return re.sub(r"^- (\d\S*) ", r"- [\1] ", line)


def _sections(text: str) -> dict[str, list[str]]:
    """The lines below each heading that are not blank; those above the first one under ""."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        heading = _HEADING.match(line)
        if heading:
            name = heading[1]
            found.setdefault(name, [])
        elif line.strip():
            found.setdefault(name, []).append(line)
    return found


def _joined(kept: list[str], fresh: list[str]) -> list[str]:
    """Entries of ours, each a line with indented ones below, in place of older forms of them."""
    ours = {_key(entry) for entry in _entries(fresh)}
    others = [line for entry in _entries(kept) if _key(entry) not in ours for line in entry]
    return others + fresh


def _key(entry: list[str]) -> str:
    """What an entry is about: the id in it, or its beginning."""
    found = _ID.match(entry[0])
    return found[1] if found else entry[0].split(": ")[0]


def _entries(lines: list[str]) -> list[list[str]]:
    found: list[list[str]] = []
    for line in lines:
        if found and line[:1] in (" ", "\t"):
            found[-1].append(line)
        else:
            found.append([line])
    return found


def time_of(entry: Object) -> str:
    """When a decision was asked for, or a blocker reported; "" where nobody said it."""
    return next((said for key in _TIMES if (said := one_line(schema.text(entry.get(key))))), "")


def _at(entry: Object) -> str:
    at = time_of(entry)
    return f"[{at}] " if at else ""


def _decisions(state: Object) -> list[str]:
    lines = []
    for each in coordination_of(state).decisions:
        lines.append(f"- {_at(each.raw)}{one_line(each.id)}: {one_line(each.description)}")
        lines.append(f"  - Decision: {one_line(each.chosen_option) or 'pending'}")
        for name in ("rationale", "impact", "made_by"):
            if told := one_line(schema.text(each.raw.get(name))):
                lines.append(f"  - {name.replace('_', ' ').capitalize()}: {told}")
    return lines


def _blockers(state: Object) -> list[str]:
    lines = []
    for each in coordination_of(state).blockers:
        about = f"{one_line(each.id)}: {one_line(each.description)}"
        lines.append(f"- {_at(each.raw)}Blocker: {about}")
        lines.append(f"  - Reported by: {one_line(each.reported_by).upper()}")
        lines.append(f"  - Resolution: {one_line(each.resolution) or '-'}")
        lines.append(f"  - Status: {(one_line(each.status) or 'open').capitalize()}")
    return lines


def _dependencies(state: Object) -> list[str]:
    lines = []
    for name, needs in schema.DEPENDS.items():
        if needs:
            at = one_line(agent_in(state, needs).version)
            of = f" (v{at})" if at else ""
            lines.append(f"- {name.upper()} depends on: {needs.upper()}{of}")
    return lines


def version(state: Object) -> str:
    """The version that the iteration's documents have."""
    return one_line(schema.text(state.get("version"))) or "1.0.0"
