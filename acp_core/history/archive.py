"""A collaboration with its recording as one file, a ZIP archive, and back.

It holds ``manifest.json`` (``acp.archive/1``), the files below ``tree/`` and, where there is one,
``recording``. An archive may come from anybody: nothing in it leads out of the folder that it is
unpacked into, and nothing is unpacked that is not what the manifest says. What was unpacked is
read again, and compared with what the manifest says of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import posixpath
import shutil
import stat
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from acp_core.files import atomic
from acp_core.files.read_only import is_newer
from acp_core.files.reading import Unreadable, open_regular
from acp_core.history import versions
from acp_core.history.store import (
    BadRecording,
    open_recording,
    recording_path,
    snapshot_recording,
    take_recording,
)
from acp_core.model import Severity, Snapshot
from acp_core.model.clock import utc_now
from acp_core.model.errors import Unusable
from acp_core.model.past import Story
from acp_core.model.text import clean_line
from acp_core.protocols import registry
from acp_core.protocols.discovery import DiscoveredCollaboration, identify

LEFT = frozenset({".git", ".acp"})
"""Folders that stay behind: the repository itself, and what this machine's processes hold."""
MOST = 100_000
"""Files of a collaboration that are listed; nobody can mail more."""
_NAMED = 4  # differences that are named


def files_to_archive(
    found: DiscoveredCollaboration, spare: Path, now: datetime
) -> list[tuple[str, str]]:
    """The files by name, relative to the collaboration, with where each lies.

    Its own, those of its parts wherever they stand, and whatever else lies in its folder, but for what
    git ignores. A past that no file holds as it is, is written into the folder ``spare``.
    """
    files, parts = _own(found, spare, now)
    root = os.path.realpath(found.key)
    for part in parts:
        below = os.path.relpath(os.path.realpath(part), root).replace(os.sep, "/")
        other = identify(Path(part), registry.installed())
        if other is not None:
            for name, path in _own(other, spare, now)[0].items():
                files.setdefault(os.path.normpath(f"{below}/{name}").replace(os.sep, "/"), path)
    return sorted(
        (name, path) for name, path in files.items() if stat.S_ISREG(_mode(path))
    )  # what is no longer there, and links, stay behind


def _own(
    found: DiscoveredCollaboration, spare: Path, now: datetime
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The files of one collaboration, and the locations of its parts."""
    opened = found.open()
    try:
        snapshot = opened.refresh(now)
        files = {each.name: each.path for each in opened.tracked_files()}
        past_log = None if files else opened.past_log()
    finally:
        opened.close()
    if past_log is not None:
        (spare / past_log.name).write_bytes(past_log.data)
        files[past_log.name] = str(spare / past_log.name)
        return files, ()
    root = os.path.realpath(found.key)
    for document in snapshot.documents:
        if document.path is not None and document.state == "present":
            below = os.path.relpath(document.path, root)
            if not below.startswith(".."):
                files.setdefault(below.replace(os.sep, "/"), document.path)
    for name in _below(root):
        files.setdefault(name.replace(os.sep, "/"), os.path.join(root, name))
    return files, snapshot.parts


def _below(root: str) -> list[str]:
    """Everything in a folder that git does not ignore; all of it, where git says nothing."""
    names = versions.files_in_git(root)
    return list(_walked(root)) if names is None else names


def _walked(root: str) -> Iterator[str]:
    left = MOST
    for folder, folders, files in os.walk(root):
        folders[:] = [each for each in folders if each not in LEFT]
        for name in files:
            yield os.path.relpath(os.path.join(folder, name), root)
            left -= 1
            if not left:
                return


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def differences_between(
    found: DiscoveredCollaboration, copy: DiscoveredCollaboration, now: datetime
) -> list[str]:
    """What is not in a copy as it is in the collaboration, in words; nothing where all of it is."""
    before, after = _facts(found, now), _facts(copy, now)
    lines = [
        f"{name}: {_short(value)} here, {_short(after.get(name))} in the copy"
        for name, value in before.items()
        if after.get(name) != value
    ]
    more = f"and {len(lines) - _NAMED} more"
    return [*lines[:_NAMED], more] if len(lines) > _NAMED else lines


def _facts(found: DiscoveredCollaboration, now: datetime) -> dict[str, object]:
    opened = found.open()
    try:
        snapshot = opened.refresh(now)
        if opened.tracked_files():
            return _figures(snapshot, opened.story())
        return {"events": len(snapshot.events)}  # a store, of which the log is carried
    finally:
        opened.close()


def _figures(snapshot: Snapshot, story: Story) -> dict[str, object]:
    """What must be the same wherever the files stand."""
    counts: Counter[str] = Counter()
    for count in story.counts:
        counts[count.what] += count.value or 0
    return {
        "status": snapshot.status.value,
        "phase": snapshot.phase,
        "events": len(snapshot.events),
        "errors": snapshot.count(Severity.ERROR),
        "warnings": snapshot.count(Severity.WARNING),
        **{
            f"document {each.id}": each.state == "present"
            for each in snapshot.documents
            if each.path is not None
        },
        **{f"gate {each.label}": each.met for each in snapshot.gates},
        **{f"rows of {each.title}": len(each.rows) for each in snapshot.panels},
        **counts,
        "parts": len(snapshot.parts),
    }


def _short(value: object) -> str:
    if value is None:
        return "nothing"
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


SCHEMA = "acp.archive/1"
MANIFEST, TREE, RECORDING = "manifest.json", "tree/", "recording"
FILES = 100_000
LARGEST = 4 << 30  # bytes of everything, unpacked
_MANIFEST = 64 << 20
_CHUNK = 1 << 20


class BadArchive(Unusable):
    """It cannot be made or unpacked; the message is one line: what, why."""


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """One file: ``name`` below ``tree/``, bytes, SHA-256 in hex, time of its change (ns)."""

    name: str
    size: int
    sha256: str
    changed: int


@dataclass(frozen=True, slots=True)
class Carried:
    """What was written into an archive, or unpacked: ``versions`` is None without a recording."""

    folder: Path
    name: str
    files: int
    versions: int | None


def export(found: DiscoveredCollaboration, target: Path, *, recording: bool = True) -> Carried:
    """Write a collaboration's files, and its recording, into one file, whole or not at all.

    Args:
        found: The collaboration: a folder.
        target: The file to write.
        recording: Whether its recording goes with it.

    Raises:
        BadArchive: it has no files here, one cannot be read, or the archive not be written.
    """
    beside = target.parent / f".{target.name}.{os.getpid()}.new"
    now = utc_now()
    try:
        with tempfile.TemporaryDirectory(prefix="acp-export-") as spare:
            listed = files_to_archive(found, Path(spare), now)
            if not listed:
                away = (
                    "the files are on another machine: export the collaboration there"
                    if "://" in found.key
                    else ""
                )
                why = f": {away}" if away else ""
                raise BadArchive(f"{found.key}: no files to archive{why}")
            base = _base(found.key, [name for name, _ in listed])
            with open(beside, "xb") as file:
                carried = _write(file, found, base, listed, recording)
                file.flush()
                os.fsync(file.fileno())
            _check(found, beside, Path(spare) / "copy", now)
            os.replace(beside, target)
            atomic.sync_folder(os.path.dirname(os.path.abspath(target)))
    except BadArchive:
        _remove(beside)
        raise
    except (OSError, Unreadable, BadRecording) as error:
        _remove(beside)
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadArchive(f"{target}: {reason}") from None
    return carried


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _check(found: DiscoveredCollaboration, archive: Path, place: Path, now: datetime) -> None:
    """Unpack an archive, and see that what comes out of it is what went into it.

    Raises:
        BadArchive: it is not; the message says what is missing.
    """
    carried = unpack(archive, place, take=False)
    copy = identify(carried.folder, registry.installed())
    missing = differences_between(found, copy, now) if copy is not None else ["all of it"]
    if missing:
        raise BadArchive(f"{found.key}: an archive would be incomplete ({'; '.join(missing)})")


def _base(key: str, names: Iterable[str]) -> str:
    """The collaboration's own place below ``tree/``: deep enough for names that begin with ".."."""
    up = max(len(name.split("/")) - len(name.replace("../", "").split("/")) for name in names)
    parts = Path(os.path.realpath(key)).parts[1:]
    return "/".join(parts[-up:]) if up else "."


def _write(
    file: BinaryIO,
    found: DiscoveredCollaboration,
    base: str,
    listed: Sequence[tuple[str, str]],
    recording: bool,
) -> Carried:
    entries: list[ArchivedFile] = []
    versions = None
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in listed:
            entries.append(_add(archive, posixpath.normpath(f"{base}/{name}"), path))
        if recording:
            versions = _add_recording(archive, found.key)
        manifest = {
            "schema": SCHEMA,
            "name": clean_line(os.path.basename(os.path.realpath(found.key)), 200),
            "protocol": found.protocol.name,
            "made": utc_now().isoformat(),
            "folder": base,
            "recording": versions is not None,
            "files": [asdict(entry) for entry in entries],
        }
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=True))
    return Carried(Path(found.key), str(manifest["name"]), len(entries), versions)


def _add(archive: zipfile.ZipFile, name: str, path: str) -> ArchivedFile:
    descriptor, found = open_regular(path)
    digest, size = hashlib.sha256(), 0
    with (
        os.fdopen(descriptor, "rb") as file,
        archive.open(f"{TREE}{name}", "w", force_zip64=True) as into,
    ):
        while data := file.read(min(_CHUNK, found.st_size - size)):  # a log may grow meanwhile
            digest.update(data)
            into.write(data)
            size += len(data)
    return ArchivedFile(name, size, digest.hexdigest(), found.st_mtime_ns)


def _add_recording(archive: zipfile.ZipFile, key: str) -> int | None:
    store = open_recording(key)
    if store is None:
        return None
    versions = len(store.versions())
    store.close()
    with tempfile.TemporaryDirectory(prefix="acp-export-") as folder:
        copy = Path(folder) / RECORDING
        snapshot_recording(recording_path(key), copy)
        archive.write(copy, RECORDING)
    return versions


def unpack(source: Path, target: Path | None, *, take: bool = True) -> Carried:
    """Unpack an archive into a new folder, whole or not at all, and take over its recording.

    Args:
        source: The archive.
        target: The folder: not there, or empty. None: the collaboration's name, here.
        take: Whether its recording becomes that of the folder.

    Raises:
        BadArchive: it is none, damaged, too large, or leads out of the folder; the folder is
            there already; or it cannot be written.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            manifest, entries = _manifest(archive)
            place = target or Path(_folder_name(manifest))
            if place.is_symlink() or (
                place.exists() and (not place.is_dir() or any(place.iterdir()))
            ):
                raise BadArchive(f"{place}: already exists; choose another folder")
            manifest["recording"] = manifest["recording"] and take
            return _unpack(archive, manifest, entries, place)
    except zipfile.BadZipFile as error:
        raise BadArchive(f"{source}: not an acp archive ({error})") from None
    except (
        OSError,
        EOFError,
        RuntimeError,
        NotImplementedError,
    ) as error:  # as zipfile raises them
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadArchive(f"{source}: {reason}") from None


def _unpack(
    archive: zipfile.ZipFile, manifest: dict[str, Any], entries: list[ArchivedFile], place: Path
) -> Carried:
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        root = beside / "tree"
        root.mkdir()
        for entry in entries:
            _extract(archive, entry, root)
        recording = None
        if manifest["recording"]:
            recording = beside / RECORDING
            _copy_out(archive, RECORDING, recording)
        if place.exists():
            place.rmdir()  # it is empty
        os.rename(root, place)
        folder = Path(os.path.realpath(place / manifest["folder"]))
        found = identify(folder, registry.installed())
        if found is None:
            raise BadArchive(f"{place}: unpacked, but the folder is not a collaboration")
        versions = _take(recording, found, manifest["folder"]) if recording else None
        os.utime(folder)  # whatever was read of it without its recording is read again
        return Carried(folder, manifest["name"], len(entries), versions)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _take(recording: Path, found: DiscoveredCollaboration, base: str) -> int:
    def allowed(name: str) -> bool:
        return _is_inside(posixpath.normpath(f"{base}/{name}")) and "\0" not in name

    meta = {"key": found.key, "protocol": found.protocol.name, "name": os.path.basename(found.key)}
    try:
        return take_recording(recording, recording_path(found.key), meta, allowed)
    except BadRecording as error:
        raise BadArchive(f"{found.key}: the files are unpacked, but {error}") from None


def _manifest(archive: zipfile.ZipFile) -> tuple[dict[str, Any], list[ArchivedFile]]:
    """What the archive says of itself, with every word of it checked."""
    try:
        info = archive.getinfo(MANIFEST)
        if info.file_size > _MANIFEST:
            raise BadArchive("its manifest is too large")
        found = json.loads(archive.read(info))
        schema = found["schema"]
        if is_newer(schema, SCHEMA):
            raise BadArchive("exported by a newer acp: use that version")
        if schema != SCHEMA:
            raise BadArchive(
                f"its manifest has the schema {clean_line(str(schema), 60)} instead of {SCHEMA}"
            )
        entries = [
            ArchivedFile(str(e["name"]), int(e["size"]), str(e["sha256"]), int(e["changed"]))
            for e in found["files"]
        ]
        manifest: dict[str, Any] = {
            "name": str(found["name"]),
            "folder": str(found["folder"]),
            "recording": found["recording"] is True,
        }
    except (KeyError, TypeError, ValueError, RecursionError):
        raise BadArchive("the manifest is missing or invalid") from None
    if not entries or len(entries) > FILES or sum(e.size for e in entries) > LARGEST:
        raise BadArchive(
            f"it contains no files, or more than {FILES:,} or {LARGEST >> 30} GiB of them"
        )
    names = [entry.name for entry in entries]
    if not all(map(_is_inside, names)) or not _is_inside(manifest["folder"], whole=True):
        raise BadArchive("it contains a name that points outside its folder")
    if len(set(names)) < len(names) or any(entry.size < 0 for entry in entries):
        raise BadArchive("the manifest is invalid")
    return manifest, entries


def _is_inside(name: str, *, whole: bool = False) -> bool:
    """A plain path below the folder (or, with ``whole``, the folder itself)."""
    if whole and name == ".":
        return True
    plain = bool(name) and posixpath.normpath(name) == name and name != "."
    parts = name.split("/")
    return (
        plain
        and not name.startswith("/")
        and ".." not in parts
        and "\0" not in name
        and "\\" not in name
    )


def _folder_name(manifest: dict[str, Any]) -> str:
    name = str(manifest["name"]).strip().replace("/", "_")
    return (
        name if name not in ("", ".", "..") and not name.startswith(("-", ".")) else "collaboration"
    )


def _extract(archive: zipfile.ZipFile, entry: ArchivedFile, root: Path) -> None:
    path = root / entry.name
    path.parent.mkdir(parents=True, exist_ok=True)
    size, digest = _copy_out(archive, f"{TREE}{entry.name}", path, entry.size)
    if size != entry.size or digest != entry.sha256:
        raise BadArchive(f"{clean_line(entry.name, 200)} differs from the manifest")
    with contextlib.suppress(OverflowError, OSError):  # a time that no file can have
        os.utime(path, ns=(entry.changed, entry.changed))


def _copy_out(
    archive: zipfile.ZipFile, name: str, path: Path, limit: int = LARGEST
) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise BadArchive(f"{clean_line(name, 200)} is missing") from None
    with archive.open(info) as packed, open(path, "xb") as into:
        while size <= limit and (data := packed.read(_CHUNK)):
            into.write(data)
            digest.update(data)
            size += len(data)
    if size > limit:
        raise BadArchive(f"{clean_line(name, 200)} is larger than the manifest states")
    return size, digest.hexdigest()
