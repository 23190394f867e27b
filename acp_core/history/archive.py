"""A collaboration with its recording as one file, a ZIP archive, and back.

It holds ``manifest.json`` (``acp.archive/1``), the files below ``tree/`` and, where there is one,
``recording``. An archive may come from anybody: nothing in it leads out of the folder that it is
unpacked into, and nothing is unpacked that is not what the manifest says.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import posixpath
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from acp_core.files import atomic
from acp_core.files.newer import is_newer
from acp_core.files.reading import Unreadable, open_regular
from acp_core.history import library, transfer
from acp_core.history.archive_contents import differences, files_of
from acp_core.history.store import BadRecording
from acp_core.model.clock import utc_now
from acp_core.model.errors import Unusable
from acp_core.model.text import clean_line
from acp_core.protocols import registry
from acp_core.protocols.discovery import DiscoveredCollaboration, identify

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
            listed = files_of(found, Path(spare), now)
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
    missing = differences(found, copy, now) if copy is not None else ["all of it"]
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
    store = library.find(key)
    if store is None:
        return None
    versions = len(store.versions())
    store.close()
    with tempfile.TemporaryDirectory(prefix="acp-export-") as folder:
        copy = Path(folder) / RECORDING
        transfer.snapshot(library.path(key), copy)
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
        return transfer.take(recording, library.path(found.key), meta, allowed)
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
