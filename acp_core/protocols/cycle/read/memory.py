"""What was seen of a cycle before: what must never go back, shrink or vanish.

Source: development cycle specification, "Shared State File" (never delete existing data, only
append) and "Communication Best Practices" (append-only logs). Main documents are rewritten for an
iteration; only logs, entries of the state and versions are held against what was seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from acp_core.model import Finding
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.schema import Cycle, Object, Version
from acp_core.protocols.kit.findings import error, warning

LISTS = ("feedback_log", "pending_decisions", "blockers")
_FINDINGS = 50  # findings that are remembered
_DECISIONS = 200  # decisions that are remembered


class Log(NamedTuple):
    """How long a log was, and a digest of it."""

    length: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one cycle up to now.

    Attributes:
        versions: the latest version of each part of the state and of each document.
        logs: the logs, by the name of their file.
        entries: of each list of the state, the entries by what tells them apart.
        gone: decisions that no longer stand in the state, as they were seen last.
        violations: what went against the rules while we looked on.
    """

    versions: Mapping[str, Version] = field(default_factory=dict)
    logs: Mapping[str, Log] = field(default_factory=dict)
    entries: Mapping[str, Mapping[str, Object]] = field(default_factory=dict)
    gone: tuple[Object, ...] = ()
    violations: tuple[Finding, ...] = ()


def remember(cycle: Cycle, before: Seen | None) -> Seen:
    """What is known of a cycle after one more reading of it.

    A state that could not be read says nothing: what was known of it stays.
    """
    now = Seen(_versions(cycle), _logs(cycle), _entries(cycle))
    if before is None:
        return now
    readable = bool(cycle.value) and not cycle.record.stale
    entries = now.entries if readable else before.entries
    gone = _gone(before, entries)
    found = [*_fallen(cycle, before, now), *_shrunk(cycle, before, now)]
    found += _vanished(cycle, before, entries)
    new = [finding for finding in found if finding not in before.violations]
    return Seen(
        {**before.versions, **now.versions},
        {**before.logs, **now.logs},
        entries,
        gone[-_DECISIONS:],
        (*before.violations, *new)[-_FINDINGS:],
    )


def _versions(cycle: Cycle) -> dict[str, Version]:
    documents: dict[str, Version] = dict(state.document_versions(cycle))
    return {**state.versions(cycle), **documents}


def _logs(cycle: Cycle) -> dict[str, Log]:
    logs = {n: t for n, t in cycle.texts.items() if n.endswith((".log", ".ndjson"))}
    return {name: Log(len(text), _digest(text)) for name, text in logs.items()}


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _entries(cycle: Cycle) -> dict[str, dict[str, Object]]:
    found = {key: {_mark(e): e for e in cycle.coordination(key)} for key in LISTS}
    records = schema.objects(cycle.value.get("iterations"))
    found["iterations"] = {_mark(each): each for each in records}
    return found


def _mark(entry: Object) -> str:
    """What tells an entry apart from others: its id or number, else what it says and when."""
    for key in ("id", "number", "iteration"):
        if said := schema.text(entry.get(key)):
            return said
    keys = ("timestamp", "source", "target", "type", "content")
    return " ".join(schema.text(entry.get(key)) for key in keys)


def _gone(before: Seen, entries: Mapping[str, Mapping[str, Object]]) -> tuple[Object, ...]:
    """The decisions that were seen and are not there any more."""
    there = entries.get("pending_decisions", {})
    known = {_mark(each): each for each in before.gone}
    known |= before.entries.get("pending_decisions", {})
    return tuple(each for mark, each in known.items() if mark not in there)


def _fallen(cycle: Cycle, before: Seen, now: Seen) -> list[Finding]:
    found = []
    for name, version in now.versions.items():
        known = before.versions.get(name)
        if known and version < known:
            message = f"{name} went down from {schema.written(known)} to {schema.written(version)}"
            found.append(error("A48", message, cycle.record.file))
    return found


def _shrunk(cycle: Cycle, before: Seen, now: Seen) -> list[Finding]:
    if not cycle.whole:
        return []
    found = []
    there = {file.name for file in cycle.files}
    for name, known in before.logs.items():
        log, text = now.logs.get(name), cycle.texts.get(name, "")
        inside = name.removeprefix(cycle.progress)
        if name not in there:
            found.append(error("A49", f"The log {inside} is missing", cycle.record.file))
        elif log is None:
            continue  # it cannot be read now, or has become too long
        elif log.length < known.length:
            message = f"The log {inside} has shrunk; logs are only appended to"
            found.append(error("A49", message, cycle.file(inside)))
        elif log != known and _digest(text[: known.length]) != known.digest:
            message = f"Earlier lines of the log {inside} were changed; logs are only appended to"
            found.append(error("A49", message, cycle.file(inside)))
    return found


def _vanished(
    cycle: Cycle, before: Seen, entries: Mapping[str, Mapping[str, Object]]
) -> list[Finding]:
    found = []
    for key, known in before.entries.items():
        missing = [mark for mark in known if mark not in entries.get(key, {})]
        if missing:
            rest = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            message = f"Removed from {key}: {', '.join(missing[:3])}{rest}; the state only grows"
            found.append(warning("A49b", message, cycle.record.file))
    return found
