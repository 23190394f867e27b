"""The product's own source files, taken apart: what each imports, and where."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("acp_core", "acp_tui")
PROTOCOLS = ROOT / "acp_core" / "protocols"


class Import(NamedTuple):
    """One import: the module that it names, where it stands, and whether only types want it."""

    module: str
    line: int
    for_types: bool


def files(*packages: str) -> list[Path]:
    """The Python files of these packages (all of the product's where none is named)."""
    return [path for name in packages or PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]


def module_name(path: Path) -> str:
    """The dotted name of a file of the product."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def module_file(name: str) -> Path | None:
    """The file of a module of the product, or None where it has none of that name."""
    place = ROOT.joinpath(*name.split("."))
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def protocol_names() -> tuple[str, ...]:
    """The folders of the protocols that come with acp."""
    folders = {path.parent.name for path in PROTOCOLS.glob("*/__init__.py")}
    return tuple(sorted(folders - {"kit"}))  # what they share is none


@cache
def tree(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """The statements right inside a node, and what holds such; never an expression, which is quick."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        yield from getattr(node, name, ())


def imports(source: ast.Module, package: str) -> Iterator[Import]:
    """Every import in ``source``, also inside functions; ``package`` resolves relative ones.

    ``from a import b`` counts as both ``a`` and ``a.b``: b may be a module.
    """
    yield from _imports(source, package, for_types=False)


def _imports(node: ast.AST, package: str, *, for_types: bool) -> Iterator[Import]:
    for child in statements_in(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, child.lineno, for_types)
        elif isinstance(child, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) - child.level + 1]
            base = ".".join(
                [*(parts if child.level else []), *([child.module] if child.module else [])]
            )
            yield Import(base, child.lineno, for_types)
            for alias in child.names:
                yield Import(f"{base}.{alias.name}", child.lineno, for_types)
        elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for inner in child.body:
                yield from _imports(ast.Module([inner], []), package, for_types=True)
            for inner in child.orelse:
                yield from _imports(ast.Module([inner], []), package, for_types=for_types)
        else:
            yield from _imports(child, package, for_types=for_types)


@cache
def imports_of(path: Path) -> list[Import]:
    """Every import of a file of the product."""
    name = module_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return list(imports(tree(path), package))


def inside(module: str, package: str) -> bool:
    """Whether ``module`` is ``package`` or in it."""
    return module == package or module.startswith(package + ".")
