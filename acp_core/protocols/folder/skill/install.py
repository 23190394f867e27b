"""What the skill consists of, installing it into a folder, and bringing an installed one up to date.

It is the files of `data`, filled in, and copied modules. Which the scripts need is worked out from the
import statements, running nothing: every import counts, also one inside a function, but those under
``if TYPE_CHECKING:``, which never happen. A package below the first whose face is only a docstring needs
none: its folder stands for it. Everything is made beside the folder and put in place in one step. What
acp did not install is never overwritten, moved or removed. Standard library only.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import acp_core
from acp_core import __version__
from acp_core.model.errors import Refused, Unusable
from acp_core.protocols.folder.acts.agents import TABLE
from acp_core.protocols.folder.schema.records import SCRIPTS

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


MANIFEST = "skill.json"
MAKER = "acp"
NAME = "agent-collaboration"  # where the folder's own name is none that a skill can have
MODULE = "acp_core.protocols.folder.acts.agents"
DATA = Path(__file__).with_name("data")

# Agents look a skill up by the name of its folder, which must be like this to count.
_SKILL_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class Incomplete(Unusable):
    """The skill cannot be made from this installation of acp; the message says why."""


def contents(folder_name: str) -> dict[str, bytes]:
    """Every file of a skill in a folder of this name, by its path there, the manifest included.

    Raises:
        Incomplete: a module that the scripts need is missing, or needs more than Python brings.
    """
    name = folder_name if _is_skill_name(folder_name) else NAME
    common = {"name": name, "version": acp_core.__version__, "module": MODULE}
    files = {text: _filled(text, common) for text in ("SKILL.md", "README.md")}
    for script in SCRIPTS:
        values = common | {
            "script": script.name,
            "command": script.command,
            "function": script.function,
            "summary": script.summary,
        }
        files[f"scripts/{script.name}"] = _filled("script.py.template", values)
    files |= {f"scripts/{path}": data for path, data in _modules().items()}
    return files | {MANIFEST: _encoded_manifest(name, files)}


def is_script(path: str) -> bool:
    """Whether a file of the skill is meant to be run."""
    return path.count("/") == 1 and path.startswith("scripts/")


def digest(data: bytes) -> str:
    """How the manifest names what is in a file."""
    return hashlib.sha256(data).hexdigest()


def _is_skill_name(name: str) -> bool:
    return len(name) <= 64 and _SKILL_NAME.fullmatch(name) is not None


def _filled(name: str, values: dict[str, str]) -> bytes:
    text = (DATA / name).read_text(encoding="utf-8")
    for key, value in values.items():
        text = text.replace("{{" + key + "}}", value)
    return text.encode()


def _modules() -> dict[str, bytes]:
    root = Path(acp_core.__file__).parent.parent
    try:
        needed = closure(root, (MODULE, TABLE))
        found = {path: file.read_bytes() for path, file in needed.files.items()}
    except (ImportError, OSError, SyntaxError) as error:
        raise Incomplete(f"acp's own modules cannot be copied: {error}") from None
    for name, file in needed.foreign.items():
        raise Incomplete(f"{file.relative_to(root)} needs {name}, which is not part of Python")
    return found


def _encoded_manifest(name: str, files: dict[str, bytes]) -> bytes:
    value = {
        "files": {path: digest(data) for path, data in files.items()},
        "made_by": MAKER,
        "name": name,
        "version": acp_core.__version__,
    }
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


PACKAGE = "acp_core"


class Closure(NamedTuple):
    """The files of acp that a module needs, and what else it imports that Python does not bring.

    ``files`` maps the path below the folder of the package to the file; ``foreign`` maps the
    name of a module to the file that imports it.
    """

    files: dict[str, Path]
    foreign: dict[str, Path]


def closure(root: Path, modules: tuple[str, ...]) -> Closure:
    """Everything that ``modules`` need, themselves and their packages included.

    Args:
        root: the folder that holds the package ``acp_core``.
        modules: dotted names.

    Raises:
        ModuleNotFoundError: a module of acp is imported and is not there.
        OSError, SyntaxError: a module cannot be read.
    """
    files: dict[str, Path] = {}
    foreign: dict[str, Path] = {}
    waiting = list(modules)
    seen: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        path = _path(root, module)
        if path is None:
            raise ModuleNotFoundError(f"no module {module}", name=module)
        code = ast.parse(path.read_bytes(), str(path))
        if module == PACKAGE or path.name != "__init__.py" or code.body[1:]:
            files[path.relative_to(root).as_posix()] = path
        waiting += _packages(module)
        for name in sorted(_imported(root, module, path, code)):
            if name.partition(".")[0] == PACKAGE:
                waiting.append(name)
            elif name.partition(".")[0] not in sys.stdlib_module_names:
                foreign.setdefault(name, path)
    return Closure(dict(sorted(files.items())), foreign)


def _path(root: Path, module: str) -> Path | None:
    base = root.joinpath(*module.split("."))
    for path in (base / "__init__.py", base.with_name(f"{base.name}.py")):
        if path.is_file():
            return path
    return None


def _packages(module: str) -> list[str]:
    """The packages that Python imports before a module: ``a`` and ``a.b`` for ``a.b.c``."""
    parts = module.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def _imported(root: Path, module: str, path: Path, code: ast.Module) -> set[str]:
    found: set[str] = set()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in _imports(code):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
            continue
        base = node.module or ""
        if node.level:
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*above, base] if base else above)
        found.add(base)
        submodules = (f"{base}.{alias.name}" for alias in node.names)
        found.update(name for name in submodules if _path(root, name))
    return found


def _imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import statement below ``node`` that may happen."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
        return
    children = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and _is_type_checking(node.test):
        children = iter(node.orelse)
    for child in children:
        yield from _imports(child)


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"
