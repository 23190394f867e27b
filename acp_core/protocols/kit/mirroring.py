"""What a mirror shows of a collaboration: the files that its protocol tracks, and where it stands."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.model import Snapshot, Status
from acp_core.model.errors import Refused
from acp_core.model.tracked import TrackedFile
from acp_core.protocols import registry
from acp_core.protocols.discovery import DiscoveredCollaboration, identify
from acp_core.protocols.kit.offers import described
from acp_core.stores import mirror
from acp_core.stores.engine import MAX_BYTES, MAX_FILES
from acp_core.stores.mirror import KINDS
from acp_core.stores.tree import NotShared, Tree

_MOST_PARTS = 100
_MOST_PEOPLE = 64
_LONGEST = 500


class Taken(NamedTuple):
    """A file as it is now: its name in the mirror, when it was written (ns), and its bytes."""

    name: str
    written: int
    data: bytes


class Contents(NamedTuple):
    """What a mirror is made of.

    Attributes:
        protocol: the collaboration's.
        files: what leaves this machine.
        staying: names of tracked files that do not, each with the reason.
        watched: the folders in which a change matters.
        snapshot: where it stands.
        acts: what this host can be asked for now.
    """

    protocol: str
    files: tuple[Taken, ...]
    staying: tuple[str, ...]
    watched: frozenset[Path]
    snapshot: Snapshot
    acts: tuple[dict[str, Any], ...] = ()


def kind_of(folder: str) -> str:
    """The protocol of the collaboration in a folder, if there are mirrors of it; else ""."""
    found = identify(Path(folder), registry.installed())
    return found.protocol.name if found is not None and found.protocol.name in KINDS else ""


def collect(folder: str, now: datetime) -> Contents:
    """Read a collaboration for its mirror.

    Raises:
        Refused: none of that kind stands there, or it is too large.
        OSError: a file cannot be read.
    """
    found = identify(Path(folder), registry.installed())
    if found is None or found.protocol.name not in KINDS:
        raise Refused(f"{folder} holds no collaboration that can be shared")
    root = os.path.realpath(folder)
    files: dict[str, Taken] = {}
    staying: list[str] = []
    opened = found.open()
    try:
        snapshot = opened.refresh(now)
        watched = opened.watched()
        acts = tuple(told for told in map(described, opened.actions(now)) if told)
        for each in _parts(found, snapshot):
            base = os.path.realpath(each.key)
            for tracked in _tracked(opened if each is found else each, now):
                real = os.path.realpath(os.path.dirname(tracked.path))
                path = os.path.join(real, os.path.basename(tracked.path))
                name = os.path.relpath(path, root).replace(os.sep, "/")
                taken, reason = _take(base, path, name)
                if taken is not None:
                    files[name] = taken
                elif reason:
                    staying.append(f"{name} ({reason})")
    finally:
        opened.close()
    if len(files) > MAX_FILES // 2 or sum(len(each.data) for each in files.values()) > MAX_BYTES:
        raise Refused(
            f"{folder} has more than {MAX_FILES // 2} files or {MAX_BYTES >> 20} MiB: it cannot be shared"
        )
    ordered = tuple(files[name] for name in sorted(files))
    return Contents(found.protocol.name, ordered, tuple(staying), watched, snapshot, acts)


def _parts(found: DiscoveredCollaboration, snapshot: Snapshot) -> Iterator[DiscoveredCollaboration]:
    """A collaboration, and those that it consists of."""
    yield found
    for part in snapshot.parts[:_MOST_PARTS]:
        other = identify(Path(part), registry.installed())
        if other is not None and other.protocol.name in KINDS:
            yield other


def _tracked(of: Any, now: datetime) -> Sequence[TrackedFile]:
    if not isinstance(of, DiscoveredCollaboration):
        return of.tracked_files()  # type: ignore[no-any-return]
    opened = of.open()
    try:
        opened.refresh(now)
        return opened.tracked_files()
    finally:
        opened.close()


def _take(base: str, path: str, name: str) -> tuple[Taken | None, str]:
    """A file that may leave, or why it stays; neither where it is gone."""
    below = os.path.relpath(path, base).replace(os.sep, "/")
    if below.startswith("../"):
        return None, "it lies elsewhere"
    if reason := mirror.reason_against(name):
        return None, reason
    try:
        data = Tree(base).read(below)
        written = os.lstat(path).st_mtime_ns
    except NotShared as error:
        return None, str(error)
    except FileNotFoundError:
        return None, ""
    return (None, "") if data is None else (Taken(name, max(0, written), data), "")


def summary(contents: Contents) -> dict[str, Any]:
    """What lists of many collaborations tell of it; see `acp_core.protocols.folder.read.list_summary`."""
    shot = contents.snapshot
    phases = {Status.COMPLETED: "completed", Status.BLOCKED: "blocked"}
    people: dict[str, list[Any]] = {
        each.id: [each.id, each.kind] for each in shot.participants[:_MOST_PEOPLE]
    }
    for turn in shot.turns:
        at = turn.since.isoformat() if turn.since else ""
        known: list[Any] = people.get(turn.participant, [turn.participant, "unknown"])
        people[turn.participant] = [*known[:2], -1, at]
    told: dict[str, Any] = {
        "dialect": shot.dialect,
        "objective": shot.objective[:_LONGEST],
        "phase": phases.get(shot.status, shot.phase or "active"),
        "stopped": shot.phase,
        "progress": shot.progress,
        "changed": shot.changed.isoformat() if shot.changed else "",
        "started": shot.started.isoformat() if shot.started else "",
        "people": list(people.values()),
        "protocol": contents.protocol,
    }  # fmt: skip
    if shot.needs:
        need = shot.needs[0]
        since = need.since.isoformat() if need.since else ""
        who = need.participant or "human"
        told["duty"] = need.text[:_LONGEST]
        told["people"] = [e for e in told["people"] if e[0] != who] + [[who, "human", -1, since]]
    if shot.status is Status.BLOCKED:
        told["blocked"] = [shot.needs[0].participant or "" if shot.needs else "",
                           shot.headline[:_LONGEST], "", "blocked", 0]  # fmt: skip
    return told


def matter_of(folder: str, mark: str, now: datetime) -> str:
    """The digest of how things stand in a folder that this host conducts; see `mirror.matter`.

    Raises:
        Refused: no collaboration stands there.
        OSError: a file cannot be read.
    """
    contents = collect(folder, now)
    files = tuple(mirror.file_of(e.name, e.written, e.data, None) for e in contents.files)
    return mirror.matter(mirror.Manifest(mark, 0, contents.protocol, "", "", "", "", files))
