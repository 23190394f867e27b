"""What an installed skill consists of, as bytes: the files of `data` filled in, and the copied modules.

Which modules of acp the scripts need is worked out from the import statements, running nothing:
every import counts, also one inside a function, but those under ``if TYPE_CHECKING:``, which never
happen. A package below the first whose face is only a docstring needs none: its folder stands for it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import acp_core
from acp_core.model.errors import Unusable
from acp_core.protocols.folder.acts.agents import TABLE
from acp_core.protocols.folder.schema import SCRIPTS

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
    return files | {MANIFEST: _manifest(name, files)}


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


def _manifest(name: str, files: dict[str, bytes]) -> bytes:
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
