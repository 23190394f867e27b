"""Which modules of acp a module needs: worked out from the import statements, running nothing.

Every import counts, also one inside a function; those under ``if TYPE_CHECKING:`` do not,
because they never happen. Standard library only.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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
        files[path.relative_to(root).as_posix()] = path
        waiting += _packages(module)
        for name in sorted(_imported(root, module, path)):
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


def _imported(root: Path, module: str, path: Path) -> set[str]:
    found: set[str] = set()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in _imports(ast.parse(path.read_bytes(), str(path))):
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
