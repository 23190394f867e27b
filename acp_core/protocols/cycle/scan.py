"""One reading of a project's cycles. Nothing outside ``.workflow/.cycle`` is ever looked at.

Source: development cycle specification, "Directory Structure".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from acp_core.files.records import File, Record, entries, moment, read_record, read_text
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import Cycle, Object, Project

LIMIT = 4 << 20  # bytes of one file that are read
FILES = 3_000  # files that are looked at
_SHOWN = 200  # cycles of a project that are read
_LEVELS = 6
_TEXTS = 32 << 20  # bytes of logs that are read in all
STATE = re.compile(r"cycle-[A-Za-z0-9._-]+\.json")
_PROGRESS = re.compile(r"cycle-[A-Za-z0-9._-]+\.progress")
_READ = re.compile(r"/(?:coordination/(?:feedback|timeline)\.md|[a-z]+/[a-z-]+\.(?:log|ndjson))$")
_SKEW = timedelta(minutes=5)


def home(root: Path) -> Path | None:
    """The folder of the cycles; None where it is none, or is reached by a symbolic link."""
    folder = root
    for name in schema.HOME:
        folder = folder / name
        if folder.is_symlink() or not folder.is_dir():
            return None
    return folder


def listed(root: Path) -> tuple[File, ...]:
    """Every file of the cycles, by name; it differs whenever `scan` would read something else."""
    base = home(root)
    files: list[File] = []
    pending = [(base, 0)] if base else []
    while pending and len(files) < FILES:
        folder, level = pending.pop(0)
        for entry in entries(folder):
            try:
                stat = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    if level < _LEVELS and (level or _PROGRESS.fullmatch(entry.name)):
                        pending.append((Path(entry.path), level + 1))
                    continue
                link = not entry.is_file(follow_symlinks=False)
            except OSError:
                continue
            path = Path(entry.path)
            name = path.relative_to(root).as_posix()
            files.append(File(name, path, stat.st_size, moment(stat.st_mtime), link))
    return tuple(sorted(files[:FILES], key=lambda file: file.name))


def scan(root: Path, files: tuple[File, ...], now: datetime, good: Mapping[str, Object]) -> Project:
    """Read the cycles of ``root``. Never raises for what the files hold.

    ``good`` is what each state file held when it could last be read, by name.
    """
    base = "/".join(schema.HOME) + "/"
    top = [file for file in files if file.name.count("/") == 2]
    states = [file for file in top if STATE.fullmatch(file.name.removeprefix(base))]
    cycles = tuple(_state(file, now, good) for file in states[-_SHOWN:])
    shown = max(cycles, key=_first, default=None)
    prep = next((file for file in top if file.name == f"{base}prep-package.json"), None)
    return Project(
        root,
        now,
        _whole(shown, files) if shown else None,
        cycles,
        _orphans(root, {cycle.id for cycle in cycles}),
        read_record(prep, LIMIT) if prep else None,
        len(files) >= FILES or len(states) > _SHOWN,
    )


def young(record: Record, now: datetime) -> bool:
    """It cannot be parsed and is so young that it is still being written."""
    age = abs((now - record.file.changed).total_seconds())  # clocks may differ a little
    return bool(record.problem) and age < schema.TORN_SECONDS and not record.file.link


def _state(file: File, now: datetime, good: Mapping[str, Object]) -> Cycle:
    record = read_record(file, LIMIT)
    if record.value is None and file.name in good:
        record = replace(record, value=good[file.name], stale=True)
    return Cycle(file.path.stem, record, now, shifted=_shifted(record))


def _shifted(record: Record) -> bool:
    """Whether a "Z" means UTC+8: some writers put it behind that clock's time."""
    value, written = record.value or {}, record.file.changed
    for key in ("updated_at", "completed_at", "created_at"):
        stamp = value.get(key)
        at = schema.moment(stamp)
        if at is None or not schema.text(stamp).upper().endswith("Z"):
            continue
        if at > written + _SKEW:
            return True
    return False


def _first(cycle: Cycle) -> tuple[bool, bool, datetime, datetime, str]:
    """What makes a cycle the one that is shown: readable, open, the latest."""
    oldest = datetime.min.replace(tzinfo=UTC)
    going = cycle.status in ("created", "running", "paused")
    updated = cycle.at(cycle.value.get("updated_at")) or oldest
    return bool(cycle.value), going, updated, cycle.record.file.changed, cycle.id


def _whole(cycle: Cycle, files: tuple[File, ...]) -> Cycle:
    own = tuple(f for f in files if f.name.startswith(cycle.progress) and f.path.name != ".gitkeep")
    by_name = {file.name.removeprefix(cycle.progress): file for file in own}
    plan, tests = by_name.get("ep/plan.json"), by_name.get("vas/test-results.json")
    texts: dict[str, str] = {}
    left = _TEXTS
    for file in own:
        if _READ.search(file.name) and file.size <= left:
            texts[file.name] = read_text(file, LIMIT)[0]
            left -= file.size
    return replace(
        cycle,
        files=own,
        plan_file=read_record(plan, LIMIT) if plan else None,
        tests_file=read_record(tests, LIMIT) if tests else None,
        texts=texts,
    )


def _orphans(root: Path, known: set[str]) -> tuple[str, ...]:
    base = home(root)
    found = [
        entry.name.removesuffix(".progress")
        for entry in (entries(base) if base else ())
        if _PROGRESS.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
    ]
    return tuple(name for name in found if name not in known)
