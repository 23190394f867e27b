"""The progress folder: its layout, the versions of its documents, copies of older ones, its logs.

A document is copied to ``history/`` under its version before it is written anew. Logs only grow:
what they held is remembered, so that a log that shrank or was altered is said.

Lines of the coordination log wait in the state until they stand in their file: so a crash between
the two loses none and doubles none. Decided: this, and no journal of a transaction, makes the state
and its log one. A journal can be followed only while its files are as it found them, and here agents
and other orchestrators may write the state at any moment: it would then stop every act until
somebody looks. Source: development cycle specification, "Progress Markdown Files", "State
Consistency Rules" and "Coordination Log".
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
from datetime import datetime
from pathlib import Path

from acp_core.files import atomic, transaction
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.records import entries
from acp_core.model.errors import Refused
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.read.progress import DECISIONS, FEEDBACK, TIMELINE, feedback_text
from acp_core.protocols.cycle.read.scan import agent_documents, content_digest, is_regular
from acp_core.protocols.cycle.schema import DOCUMENT_NAMES, FIRST_VERSION, Object, one_line

_OF_RUNS = ("messages", "phase-results", "task-results")  # what runs were told, and what they said
_VERSION = re.compile(r"\bv?(\d{1,4})\.(\d{1,4})\.(\d{1,4})\b")
_HEAD = 15  # lines in which a document names its version
_LIMIT = 8 << 20
_LOG_LIMIT = 64 << 20
Memory = dict[str, tuple[int, str]]
"""What logs held: by name below the progress folder, their size and the digest of that much."""


def make(progress: Path) -> None:
    """Make the folders of a cycle.

    Raises:
        Refused: one of them is a symbolic link.
        OSError: they cannot be made.
    """
    wanted = [f"{name}/history" for name in schema.AGENTS]
    wanted += [f"coordination/{name}" for name in _OF_RUNS]
    for name in wanted:
        folder = progress / name
        for each in (progress, folder.parent, folder):
            if each.is_symlink():
                raise Refused(f"{each.name} is a symbolic link: acp does not follow links")
        if not folder.is_dir():
            atomic.shared_folder(folder)


def sweep(progress: Path) -> None:
    """Remove what writers that were killed left half done; only under the lock of the cycles."""
    folders = [progress / name for name in (*schema.AGENTS, "coordination")]
    folders += [progress / name / "history" for name in schema.AGENTS]
    folders += [progress / "coordination" / name for name in _OF_RUNS]
    for folder in folders:
        if folder.is_symlink() or folder.parent.is_symlink():
            continue
        for entry in entries(folder):
            if atomic.is_leftover(entry.name):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def read(path: Path, limit: int = _LIMIT) -> str:
    """A file's text; "" where it is missing, a link, or cannot be read."""
    data = content(path, limit) or b""
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


def content(path: Path, limit: int = _LIMIT) -> bytes | None:
    """A file's bytes; None where it is missing, a link, or cannot be read."""
    try:
        return read_bounded(path, limit) if is_regular(path) else None
    except Unreadable:
        return None


def read_json(path: Path) -> schema.Object:
    """A file's JSON object; {} where it holds none."""
    return schema.parse_object(read(path)) or {}


def parts(version: str) -> tuple[int, int, int]:
    """A version as numbers; (0, 0, 0) where it is none."""
    found = _VERSION.search(version)
    return (int(found[1]), int(found[2]), int(found[3])) if found else (0, 0, 0)


def plain(version: str) -> str:
    """A version as its three numbers; 1.0.0 for what is none."""
    found = parts(version)
    return ".".join(map(str, found)) if any(found) else FIRST_VERSION


def raised(*versions: str) -> str:
    """The version after the highest of these: the minor number goes up; 1.0.0 after none."""
    major, minor, _ = max((parts(each) for each in versions), default=(0, 0, 0))
    return f"{major}.{minor + 1}.0" if major else FIRST_VERSION


def version_of(path: Path) -> str:
    """The version that a document names: in its first lines, or as ``version``; "" for none."""
    if path.suffix == ".json":
        said = schema.text(read_json(path).get("version"))
        return ".".join(map(str, parts(said))) if _VERSION.search(said) else ""
    for line in read(path).splitlines()[:_HEAD]:
        if found := _VERSION.search(line):
            return ".".join(str(int(each)) for each in found.groups())
    return ""


def version_of_agent(progress: Path, agent: str) -> str:
    """The highest version that an agent's documents name; "" where none does."""
    named = [version_of(progress / agent / name) for name in DOCUMENT_NAMES[agent]]
    return max((each for each in named if each), key=parts, default="")


def listed(progress: Path, agent: str) -> list[str]:
    """An agent's files as the state lists them."""
    base = "/".join((*schema.HOME, progress.name, agent))
    return [
        f"{base}/{entry.name}"
        for entry in entries(progress / agent)
        if not entry.name.startswith(".") and is_regular(Path(entry.path))
    ][:500]


def archive(progress: Path, agent: str, known: str = "") -> list[str]:
    """Copy an agent's documents to its history, each under its version; never over another.

    Args:
        progress: the cycle's progress folder.
        agent: whose documents.
        known: the version of those that name none.

    Returns:
        The names of the copies that were made, below the agent's folder.
    """
    history = progress / agent / "history"
    if history.is_symlink() or (progress / agent).is_symlink():
        return []
    atomic.shared_folder(history)
    made = []
    for path in agent_documents(progress, agent):
        data = content(path)
        if data is None:
            continue
        stem = f"{path.stem}-v{version_of(path) or known or FIRST_VERSION}"
        for number in itertools.count(1):
            again = "" if number == 1 else f"-{number}"
            copy = history / f"{stem}{again}{path.suffix}"
            if content(copy) == data:
                break
            if copy.exists() or copy.is_symlink():
                continue  # another text of this version
            atomic.create(copy, data, sync=False)
            made.append(f"history/{copy.name}")
            break
    return made


def stamp(progress: Path, agent: str, version: str) -> list[str]:
    """Raise the version that an agent's documents name, where it is lower; the rest stays.

    For the documents of agents that have nothing to do in an iteration, after `archive`.
    """
    changed = []
    for name in DOCUMENT_NAMES[agent]:
        path = progress / agent / name
        old = version_of(path)
        if not old or parts(old) >= parts(version):
            continue
        if path.suffix == ".json":
            text = json.dumps(read_json(path) | {"version": version}, ensure_ascii=False, indent=2)
            new = text + "\n"
        else:
            text = read(path)
            head = text.splitlines(keepends=True)
            for number, line in enumerate(head[:_HEAD]):
                if found := _VERSION.search(line):
                    at = found.start(1)
                    head[number] = line[:at] + version + line[found.end(3) :]
                    break
            new = "".join(head)
        atomic.replace(path, new.encode("utf-8", "replace"), sync=False)
        changed.append(name)
    return changed


def watch_logs(progress: Path, known: Memory) -> tuple[Memory, list[str]]:
    """Look at the logs again: what they hold now, and which of them lost something.

    Args:
        progress: the cycle's progress folder.
        known: what the last look found.
    """
    found: Memory = {}
    complaints = []
    for folder in (*schema.AGENTS, "coordination"):
        for entry in entries(progress / folder):
            path = Path(entry.path)
            if not entry.name.endswith((".log", ".ndjson")) and entry.name != "timeline.md":
                continue
            data = content(path, _LOG_LIMIT)
            if data is None:
                continue
            name = f"{folder}/{entry.name}"
            found[name] = (len(data), content_digest(data))
            size, digest = known.get(name, (0, content_digest(b"")))
            if len(data) < size:
                complaints.append(f"{name} shrank from {size} to {len(data)} bytes")
            elif content_digest(data[:size]) != digest:
                complaints.append(f"{name}: the first {size} bytes have changed")
    for name, (size, _) in known.items():
        if name not in found:
            complaints.append(f"{name} is missing: it had {size} bytes")
    return found, complaints


OUTBOX = "outbox"
_LOG_FILE_LIMIT = 16 << 20


def note(state: Object, now: datetime, actor: str, text: str) -> None:
    """Have a line written into the timeline."""
    name = actor.upper() if actor in schema.AGENTS else actor.capitalize()
    _put(state, TIMELINE, f"- {schema.stamp_of(now)} {name}: {one_line(text)}")


def record(state: Object, row: Object) -> None:
    """Have a row written into decisions.log."""
    _put(state, DECISIONS, json.dumps(row, ensure_ascii=False))


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
        return read_bounded(path, _LOG_FILE_LIMIT).decode("utf-8", "replace")
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
