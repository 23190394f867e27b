"""Installing the skill into a folder, and bringing an installed one up to date.

Everything is made beside the folder and put in place in one step. What acp did not
install is never overwritten, moved or removed. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from acp_core import __version__
from acp_core.model.errors import Refused
from acp_core.protocols.folder.skill.contents import MAKER, MANIFEST, contents, digest, is_script

MAX_MANIFEST = 1 << 20  # bytes
_CACHES = "__pycache__"  # what Python itself leaves in a folder from which it imports
_NAMED = 3  # how many files a refusal names


@dataclass(frozen=True, slots=True)
class Plan:
    """What installing into ``folder`` would do: ``create``, ``upgrade`` or ``nothing``."""

    folder: Path
    verb: str
    files: dict[str, bytes]
    version: str = __version__
    previous: str = ""


def plan(folder: str | os.PathLike[str], *, force: bool = False) -> Plan:
    """Look at ``folder`` and say what installing there would do.

    Args:
        folder: where the skill shall stand; a symbolic link is followed.
        force: replace installed files that were edited since.

    Raises:
        Refused: it holds something that acp did not install, or that was edited since.
        contents.Incomplete: see there.
    """
    target = Path(os.path.realpath(os.path.expanduser(folder)))
    files = contents(Path(os.path.abspath(os.path.expanduser(folder))).name)
    try:
        present = sorted(_files(target))
    except FileNotFoundError:
        return Plan(target, "create", files)
    except NotADirectoryError:
        raise Refused(f"{folder} is a file; name a folder") from None
    except OSError as error:
        raise Refused(f"{folder} cannot be read: {error.strerror}") from None
    if not present and not any(target.iterdir()):
        return Plan(target, "create", files)
    installed = _manifest(target)
    ours = {MANIFEST, *installed.files} if installed.files else set()
    foreign = [path for path in present or os.listdir(target) if path not in ours]
    if foreign:
        raise Refused(
            f"{folder} contains files that acp did not install ({_some(foreign)}): "
            "choose another folder, or move them away"
        )
    edited = [path for path in present if path != MANIFEST and _edited(target, path, installed)]
    if edited and not force:
        raise Refused(
            f"{folder}: changed since it was installed ({_some(edited)}); --force replaces it"
        )
    same = not edited and all(_read(target / path) == data for path, data in files.items())
    return Plan(target, "nothing" if same else "upgrade", files, previous=installed.version)


def carry_out(plan: Plan) -> str:
    """Install what was planned, and return what could not be tidied away ("" for nothing).

    Raises:
        Refused: it cannot be written; the folder is as it was.
    """
    if plan.verb == "nothing":
        return ""
    target = plan.folder
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        made = Path(
            tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".acp-tmp", dir=target.parent)
        )
    except OSError as error:
        raise Refused(f"{target.parent} cannot be written: {error.strerror}") from None
    try:
        _write(made, plan.files)
        if plan.verb == "create":
            os.rename(made, target)
            return ""
        return _swap(made, target)
    except OSError as error:
        raise Refused(f"{target} cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)  # gone already where all went well


def removable(folder: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files of an installed skill that are as acp wrote them, and those that were changed since."""
    installed, place = _manifest(Path(folder)), Path(folder)
    there = [name for name in installed.files if (place / name).exists()]
    edited = tuple(name for name in there if _edited(place, name, installed))
    ours = tuple(name for name in there if name not in edited)
    return (*ours, *([MANIFEST] if installed.files else [])), edited


def remove(folder: str, names: Sequence[str]) -> None:
    """Take away files of an installed skill, and the folders that are empty then."""
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    for below, _, _ in os.walk(folder, topdown=False):
        if os.path.basename(below) == _CACHES:
            shutil.rmtree(below, ignore_errors=True)
        with contextlib.suppress(OSError):  # not empty: it holds something else
            os.rmdir(below)


@dataclass(frozen=True, slots=True)
class _Installed:
    """What a manifest says: the version, and the digest of each file."""

    version: str
    files: dict[str, str]


def _manifest(folder: Path) -> _Installed:
    """The manifest of an installed skill; one without files where there is none of ours."""
    none = _Installed("", {})
    try:
        with (folder / MANIFEST).open("rb") as file:
            value = json.loads(file.read(MAX_MANIFEST))
    except (OSError, ValueError, RecursionError):
        return none
    if not isinstance(value, dict) or value.get("made_by") != MAKER:
        return none
    files = value.get("files")
    if not isinstance(files, dict) or not all(isinstance(known, str) for known in files.values()):
        return none
    return _Installed(str(value.get("version", "")), files)


def _files(folder: Path) -> Iterator[str]:
    """What stands in a folder, as paths in it; links and other oddities count as files.

    Raises:
        OSError: the folder, or one in it, cannot be listed.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                yield entry.name
            elif entry.name != _CACHES:
                for path in _files(folder / entry.name):
                    yield f"{entry.name}/{path}"


def _edited(folder: Path, path: str, installed: _Installed) -> bool:
    data = _read(folder / path)
    return data is None or digest(data) != installed.files[path]


def _read(path: Path) -> bytes | None:
    """A regular file's content; None for anything else."""
    try:
        return path.read_bytes() if path.is_file() and not path.is_symlink() else None
    except OSError:
        return None


def _some(paths: list[str]) -> str:
    more = len(paths) - _NAMED
    return ", ".join(paths[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _write(folder: Path, files: dict[str, bytes]) -> None:
    """Make the files, with the permissions that new files have here, and bring them to the disk."""
    usual = os.umask(0)
    os.umask(usual)
    os.chmod(folder, 0o777 & ~usual)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if is_script(name):
            path.chmod(0o777 & ~usual)


def _swap(made: Path, target: Path) -> str:
    """Put ``made`` in place of ``target``, and remove what was installed there before."""
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".acp-old", dir=target.parent))
    os.rename(target, old)  # an empty folder is replaced
    try:
        os.rename(made, target)
    except OSError:
        os.rename(old, target)
        raise
    installed = _manifest(old).files
    for name in list(_files(old)):
        if name in installed or name == MANIFEST:
            with contextlib.suppress(OSError):
                (old / name).unlink()
    for folder, _, _ in os.walk(old, topdown=False):
        if os.path.basename(folder) == _CACHES:
            shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # not empty: somebody put something there meanwhile
            os.rmdir(folder)
    return str(old) if old.exists() else ""
