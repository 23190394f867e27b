"""One reading of a project's cycles. Nothing outside ``.workflow/.cycle`` is ever looked at.

Source: development cycle specification, "Directory Structure".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from acp_core.files.reading import Unreadable, read_head
from acp_core.files.records import File, Record, entries, moment, read_record, read_text
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import Cycle, Object, Project

LIMIT = 4 << 20  # bytes of one file that are read
FILES = 3_000  # files that are looked at
_SHOWN = 200  # cycles of a project that are read
_LEVELS = 6
_TEXTS = 32 << 20  # bytes of logs that are read in all
STATE = re.compile(r"cycle-[A-Za-z0-9._-]+\.json")
PROGRESS = re.compile(r"cycle-[A-Za-z0-9._-]+\.progress")
_READ = re.compile(r"/(?:coordination/(?:feedback|timeline)\.md|[a-z]+/[a-z-]+\.(?:log|ndjson))$")
_RESULT = re.compile(r"coordination/phase-results/[A-Za-z0-9._-]+\.(?:txt|md)")
_PAST_TESTS = re.compile(r"vas/history/test-results-v[0-9.]+\.json")
_ID_TIME = re.compile(r"cycle-v1-(\d{8}T\d{6})-.+")
_HEAD = 64 << 10  # bytes of an agent's document that are looked at
_HEADS = 100  # documents
_RESULTS = 200
_PAST = 30  # earlier test results
_NEAR = timedelta(minutes=10)


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


def scan(root: Path, files: tuple[File, ...], now: datetime, good: Mapping[str, Object]) -> Project:
    """Read the cycles of ``root``. Never raises for what the files hold.

    ``good`` is what each state file held when it could last be read, by name.
    """
    base = "/".join(schema.HOME) + "/"
    top = [file for file in files if file.name.count("/") == 2]
    states = [file for file in top if STATE.fullmatch(file.name.removeprefix(base))]
    cycles = tuple(_state(file, now, good) for file in states[-_SHOWN:])
    prep = next((file for file in top if file.name == f"{base}prep-package.json"), None)
    orphans = _orphans(root, {cycle.id for cycle in cycles})
    if not cycles and orphans:
        cycles = (_lost(root, orphans[-1], files, now, good),)
        orphans = orphans[:-1]
    shown = max(cycles, key=_first, default=None)
    return Project(
        root,
        now,
        _whole(shown, files) if shown else None,
        tuple(_with_files(cycle, files) for cycle in cycles),
        orphans,
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
    return Cycle(file.path.stem, record, now, shifted=_shifted(file.path.stem, record, now))


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


def _shifted(id: str, record: Record, now: datetime) -> bool:
    """Whether a "Z" means UTC+8: some writers put it behind that clock's time.

    It then lies ahead of the file's own time, or says the same as the time in the cycle's id,
    which is always that of UTC+8.
    """
    value, written = record.value or {}, min(record.file.changed, now)
    named = _ID_TIME.fullmatch(id)
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
    going = cycle.status in ("created", "running", "paused")
    updated = cycle.at(cycle.value.get("updated_at")) or oldest
    return bool(cycle.value), going, updated, cycle.record.file.changed, cycle.id


def _with_files(cycle: Cycle, files: tuple[File, ...]) -> Cycle:
    own = (f for f in files if f.name.startswith(cycle.progress) and f.path.name != ".gitkeep")
    return replace(cycle, files=tuple(own))


def _whole(cycle: Cycle, files: tuple[File, ...]) -> Cycle:
    cycle = _with_files(cycle, files)
    own = cycle.files
    by_name = {file.name.removeprefix(cycle.progress): file for file in own}
    plan, tests = by_name.get("ep/plan.json"), by_name.get("vas/test-results.json")
    past = [file for name, file in by_name.items() if _PAST_TESTS.fullmatch(name)]
    past.sort(key=lambda file: schema.version_in(file.path.stem) or (0, 0, 0))
    reports = [f for name, f in by_name.items() if _RESULT.fullmatch(name) and f.size <= LIMIT]
    pages = [f for name, f in by_name.items() if _is_page(name)]
    texts: dict[str, str] = {}
    left = _TEXTS
    for file in own:
        if _READ.search(file.name) and file.size <= left:
            texts[file.name] = read_text(file, LIMIT)[0]
            left -= file.size
    return replace(
        cycle,
        plan_file=read_record(plan, LIMIT) if plan else None,
        tests_file=read_record(tests, LIMIT) if tests else None,
        tests_past=tuple(read_record(file, LIMIT) for file in past[-_PAST:]),
        texts=texts,
        heads={file.name: _head(file) for file in pages[:_HEADS]},
        results={file.name: read_text(file, LIMIT)[0] for file in reports[-_RESULTS:]},
    )


def _is_page(name: str) -> bool:
    """A document that an agent keeps itself, not one of its past."""
    folder, _, rest = name.partition("/")
    return folder in schema.AGENTS and "/" not in rest and rest.endswith(".md")


def _head(file: File) -> str:
    """How a document begins; "" where it cannot be read. Its lines end in line feeds."""
    if file.link:
        return ""
    try:
        text = read_head(file.path, _HEAD).decode("utf-8", "replace").removeprefix("\ufeff")
    except Unreadable:
        return ""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _orphans(root: Path, known: set[str]) -> tuple[str, ...]:
    base = home(root)
    found = [
        entry.name.removesuffix(".progress")
        for entry in (entries(base) if base else ())
        if PROGRESS.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
    ]
    return tuple(name for name in found if name not in known)
