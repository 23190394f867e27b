"""One reading of a project's cycles, their state files, and which of them a person wants to look at.

Nothing outside ``.workflow/.cycle`` is ever looked at. The wish is kept by acp, never in the project;
without one it is the cycle that goes on, else the latest. Of what acp wrote last into a state file
there are two copies: one beside acp's own files (`own_copy_path`), one in ``.acp/run/`` for every
account that shares the project (`shared_copy_path`). Source: development cycle specification,
"Directory Structure" and "Shared State File".
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from acp_core.files import atomic, claims
from acp_core.files.atomic import is_leftover
from acp_core.files.claims import run_folder
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.records import NO_OBJECT, File, Record, entries, moment, read_record, shallow
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.person import paths
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.read.progress import LIMIT, filled
from acp_core.protocols.cycle.schema import Cycle, Object, Project, parse_object, text
from acp_core.protocols.cycle.state import what_is_lacking
from acp_core.protocols.kit.binding import Context, Location

FILES = 3_000  # files that are looked at

_MOST_CYCLES = 200  # cycles of a project that are read

_LEVELS = 6

STATE = re.compile(r"cycle-[A-Za-z0-9._-]+\.json")

PROGRESS = re.compile(r"cycle-[A-Za-z0-9._-]+\.progress")

_NEAR = timedelta(minutes=10)


def home(root: Path) -> Path | None:
    """The folder of the cycles; None where it is none, or is reached by a symbolic link."""
    folder = root
    for name in schema.HOME:
        folder = folder / name
        if folder.is_symlink() or not folder.is_dir():
            return None
    return folder


def is_cycle(entry: os.DirEntry[str]) -> bool:
    """Whether it is the state file of a cycle, or a progress folder with anything in it."""
    if STATE.fullmatch(entry.name):
        return entry.is_file(follow_symlinks=False)
    if not PROGRESS.fullmatch(entry.name) or not entry.is_dir(follow_symlinks=False):
        return False
    return bool(entries(Path(entry.path)))


def listed(root: Path) -> tuple[File, ...]:
    """Every file of the cycles, by name; it differs whenever `scan` would read something else."""
    base = home(root)
    files: list[File] = []
    pending = [(base, 0)] if base else []
    while pending and len(files) < FILES:
        folder, level = pending.pop(0)
        for entry in entries(folder):
            if is_leftover(entry.name):
                continue
            try:
                stat = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    if level < _LEVELS and (level or PROGRESS.fullmatch(entry.name)):
                        pending.append((Path(entry.path), level + 1))
                    continue
                link = not entry.is_file(follow_symlinks=False)
            except OSError:
                continue
            path = Path(entry.path)
            name = path.relative_to(root).as_posix()
            files.append(File(name, path, stat.st_size, moment(stat.st_mtime), link))
    return tuple(sorted(files[:FILES], key=lambda file: file.name))


def scan(
    root: Path,
    files: tuple[File, ...],
    now: datetime,
    good: Mapping[str, Object],
    before: Project | None = None,
    wanted: str = "",
) -> Project:
    """Read the cycles of ``root``. Never raises for what the files hold.

    ``good`` is what each state file held when it could last be read, by name; ``before`` the
    last reading, of which the unchanged parts are kept; ``wanted`` the cycle that a person wants
    to look at.
    """
    base = "/".join(schema.HOME) + "/"
    top = [file for file in files if file.name.count("/") == 2]
    states = [file for file in top if STATE.fullmatch(file.name.removeprefix(base))]
    cycles = tuple(_state(file, now, good) for file in states[-_MOST_CYCLES:])
    prep = next((file for file in top if file.name == f"{base}prep-package.json"), None)
    orphans = _orphans(root, {cycle.id for cycle in cycles})
    lost = [] if cycles else [id for id in orphans if entries(_progress(root, id))]
    if lost:
        cycles = (_lost(root, lost[-1], files, now, good),)
        orphans = tuple(id for id in orphans if id != lost[-1])
    shown = max(cycles, key=lambda each: (each.id == wanted, *_first(each)), default=None)
    own: dict[str, list[File]] = {}
    for file in files:
        if file.name.count("/") > 2 and file.path.name != ".gitkeep":
            own.setdefault(file.name.split("/", 3)[2].removesuffix(".progress"), []).append(file)
    known = {cycle.id: cycle for cycle in before.cycles} if before else {}
    cycles = tuple(
        filled(replace(each, files=tuple(own.get(each.id, ()))), known.get(each.id), each is shown)
        for each in cycles
    )
    return Project(
        root,
        now,
        next((each for each in cycles if shown and each.id == shown.id), None),
        cycles,
        orphans,
        read_record(prep, LIMIT) if prep else None,
        len(files) >= FILES or len(states) > _MOST_CYCLES,
    )


def young(record: Record, now: datetime) -> bool:
    """It cannot be parsed and is so young that it is still being written."""
    age = abs((now - record.file.changed).total_seconds())  # clocks may differ a little
    return bool(record.problem) and age < schema.TORN_SECONDS and not record.file.link


def _state(file: File, now: datetime, good: Mapping[str, Object]) -> Cycle:
    record = read_record(file, LIMIT)
    if record.value is None and file.name in good:
        record = replace(record, value=good[file.name], stale=True)
    return Cycle(file.path.stem, record, now, shifted=shifted(file.path.stem, record, now))


def _progress(root: Path, id: str) -> Path:
    return root.joinpath(*schema.HOME, f"{id}.progress")


def _lost(
    root: Path, id: str, files: tuple[File, ...], now: datetime, good: Mapping[str, Object]
) -> Cycle:
    """A cycle of which only the progress folder is left."""
    name = f"{'/'.join(schema.HOME)}/{id}.json"
    own = [file.changed for file in files if file.name.startswith(f"{name[:-5]}.progress/")]
    changed = max(own, default=datetime.fromtimestamp(0, UTC))
    file = File(name, root / name, 0, changed, link=True)
    value = good.get(name)
    return Cycle(id, Record(file, value, schema.LOST, value is not None), now)


def shifted(id: str, record: Record, now: datetime) -> bool:
    """Whether a "Z" means UTC+8: some writers put it behind that clock's time.

    It then lies ahead of the file's own time, or says the same as the time in the cycle's id,
    which is always that of UTC+8.
    """
    value, written = record.value or {}, min(record.file.changed, now)
    named = schema.ID_TIME.fullmatch(id)
    begun = schema.moment(f"{named[1]}Z") if named else None
    for key in ("updated_at", "completed_at", "created_at"):
        stamp = value.get(key)
        at = schema.moment(stamp)
        if at is None or not schema.text(stamp).upper().endswith("Z"):
            continue
        if at > written + schema.SKEW:
            return True
        if key == "created_at" and begun and abs(at - begun) < _NEAR:
            return True
    return False


def _first(cycle: Cycle) -> tuple[bool, bool, datetime, datetime, str]:
    """What makes a cycle the one that is shown: readable, open, the latest."""
    oldest = datetime.min.replace(tzinfo=UTC)
    going = cycle.status in schema.OPEN
    updated = cycle.at(cycle.value.get("updated_at")) or oldest
    return bool(cycle.value), going, updated, cycle.record.file.changed, cycle.id


def _orphans(root: Path, known: set[str]) -> tuple[str, ...]:
    base = home(root)
    found = [
        entry.name.removesuffix(".progress")
        for entry in (entries(base) if base else ())
        if PROGRESS.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
    ]
    return tuple(name for name in found if name not in known)


_BYTES = 1 << 16


def wanted(root: Path) -> str:
    """The id of the cycle that a person chose; "" for none."""
    try:
        held = parse_object(read_bounded(_file(root), _BYTES)) or {}
    except Unreadable:
        return ""
    return text(held.get("cycle")) if held.get("folder") == os.path.realpath(root) else ""


def choose(root: Path, id: str) -> None:
    """Show this cycle from now on; "" for the one that goes on.

    Raises:
        OSError: it cannot be written.
    """
    path = _file(root)
    if not id:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        return
    atomic.private_folder(path.parent)
    held = {"folder": os.path.realpath(root), "cycle": id}
    atomic.replace(
        path, json.dumps(held).encode(errors="surrogateescape"), sync=False, private=True
    )


def _file(root: Path) -> Path:
    name = content_digest(os.fsencode(os.path.realpath(root)))[:16]
    return paths.state_folder() / "cycles" / f"{name}.json"


@dataclass(frozen=True, slots=True)
class OpenProject:
    """A project as it stands when acts are bound to it.

    Attributes:
        key: its location.
        root: its folder.
        project: its cycles.
    """

    key: str
    root: Path
    project: Project

    @property
    def selected(self) -> Cycle:
        """The cycle that is shown.

        Raises:
            Refused: there is none.
        """
        if self.project.selected is None:
            raise Refused(f"{self.key}: no cycle here (start one with `acp cycle start`)")
        return self.project.selected

    def find(self, id: str) -> Cycle:
        """The cycle of this id, or whose id ends so; "" for the one that is shown.

        Raises:
            Refused: there is none, or there are several.
        """
        if id in ("", self.selected.id):
            return self.selected
        named, cycles = id.removesuffix(".json"), self.project.cycles
        known = [each for each in cycles if each.id == named]
        near = known or [each for each in cycles if each.id.endswith(named)]
        if len(near) != 1:
            names = ", ".join(each.id for each in cycles[-5:]) or "none"
            raise Refused(
                f"{id!r} is {'not a cycle' if not near else 'several cycles'} here ({names})"
            )
        return near[0]


def open_project(context: Context, now: datetime) -> OpenProject:
    """The project that an act is bound to; read where nobody did.

    Raises:
        Refused: no such folder.
    """
    if isinstance(context, OpenProject):
        return context
    root = Path(context.key).resolve()
    if not root.is_dir():
        raise Refused(f"{context.key}: no such folder")
    project = scan(root, listed(root), now, {}, wanted=wanted(root))
    return OpenProject(context.key, root, project)


def open_folder(folder: str) -> OpenProject:
    """The project in a folder as a command names it, read now.

    Raises:
        Refused: no such folder.
    """
    return open_project(Location(os.path.abspath(os.path.expanduser(folder))), utc_now())


def is_damaged(cycle: Cycle) -> bool:
    """Whether its state is lost or not whole, so that only a rebuilt one goes on."""
    return bool(state.state_problem(cycle))


STATE_LIMIT = 4 << 20  # bytes of a state file


class StateFile(NamedTuple):
    """What was found of a state file: the object in it, its bytes, and what is wrong with it."""

    state: Object
    data: bytes
    problem: str


def read_state_file(path: Path) -> StateFile:
    """What a state file holds at this moment; no link is followed."""
    if path.is_symlink():
        return StateFile({}, b"", "is a symbolic link")
    try:
        data = read_bounded(path, STATE_LIMIT)
    except Unreadable as error:
        return StateFile({}, b"", schema.LOST if error.missing else str(error))
    state, problem = parse_state(data)
    return StateFile(state, data, problem or what_is_lacking(state))


def parse_state(data: bytes) -> tuple[Object, str]:
    """The object in the bytes of a state file, and why there is none ("" where there is one)."""
    try:
        value = json.loads(data.decode("utf-8", "replace").removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return {}, "is not valid JSON"
    if not shallow(value):
        return {}, "is nested too deeply"
    return (value, "") if isinstance(value, dict) else ({}, NO_OBJECT)


class WrittenCopy(NamedTuple):
    """What acp wrote last into a state file.

    Attributes:
        known: the digests of the files that it may stand in.
        state: the state.
        mine: whether this very account wrote the copy.
    """

    known: tuple[str, str]
    state: Object
    mine: bool


def read_copy(place: Path) -> WrittenCopy | None:
    """What stands in one of the two copies; None where nothing does, or it cannot be read."""
    try:
        mine = os.lstat(place).st_uid == claims.uid()
        kept = json.loads(read_bounded(place, 2 * STATE_LIMIT))
        known, state = (kept["digest"], kept["before"]), kept["state"]
    except (OSError, Unreadable, ValueError, KeyError, TypeError, RecursionError):
        return None
    return WrittenCopy(known, state, mine) if isinstance(state, dict) else None


def content_digest(data: bytes) -> str:
    """What tells one content of a file from another."""
    return hashlib.sha256(data).hexdigest()


def shared_copy_path(root: Path, id: str) -> Path:
    """The copy for every account that shares the project."""
    return run_folder(root) / f"last-written-{id}.json"


def own_copy_path(root: Path, id: str) -> Path:
    """The copy beside acp's own files."""
    key = content_digest(f"{root.resolve()}\0{id}".encode())[:16]
    return paths.state_folder() / "cycles" / f"{id[:60]}-{key}.json"


def last_whole_state(root: Path, id: str) -> Object | None:
    """The state as acp wrote it last, whole; None where no such copy is kept."""
    copies = map(read_copy, (own_copy_path(root, id), shared_copy_path(root, id)))
    return next((each.state for each in copies if each and not what_is_lacking(each.state)), None)


def is_regular(path: Path) -> bool:
    """Whether it is a file of its own, and no symbolic link leads to it."""
    return path.is_file() and not path.is_symlink() and not path.parent.is_symlink()


def agent_documents(progress: Path, agent: str) -> list[Path]:
    """An agent's documents: Markdown and JSON in its own folder."""
    return [
        Path(entry.path)
        for entry in entries(progress / agent)
        if entry.name.endswith((".md", ".json")) and is_regular(Path(entry.path))
    ][:200]
