"""Imports point downwards: the core knows no screen, and nobody knows a protocol but itself."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.hygiene.sources import (
    ROOT,
    Import,
    files,
    imports,
    imports_of,
    inside,
    module_file,
    module_name,
    protocol_names,
    tree,
)

SCREENS = ("textual", "acp_tui")
PORTABLE = (
    "schema", "state", "rules", "prompts", "write", "acts.agents",
)  # fmt: skip


@cache
def places() -> list[tuple[Path, Import]]:
    """Every import of the product, with its file."""
    return [(path, each) for path in files() for each in imports_of(path)]


def told(path: Path, found: Import) -> str:
    return f"{path.relative_to(ROOT)}:{found.line} imports {found.module}"


def test_the_reader_of_imports_sees_every_kind_of_them() -> None:
    source = """
import a.b
from c import d
from . import e
from ..f import g
if TYPE_CHECKING:
    import h
else:
    import i
def late():
    import j
"""
    found = {(each.module, each.for_types) for each in imports(ast.parse(source), "top.sub")}
    for module in ("a.b", "c", "c.d", "top.sub", "top.sub.e", "top.f", "top.f.g", "i", "j"):
        assert (module, False) in found
    assert ("h", True) in found


def test_the_core_imports_no_screen() -> None:
    wrong = [
        told(path, each)
        for path, each in places()
        if inside(module_name(path), "acp_core") and any(inside(each.module, s) for s in SCREENS)
    ]
    assert wrong == []


def test_only_the_command_line_of_the_core_draws_with_rich() -> None:
    wrong = [
        told(path, each)
        for path, each in places()
        if inside(each.module, "rich")
        and inside(module_name(path), "acp_core")
        and not inside(module_name(path), "acp_core.cli")
    ]
    assert wrong == []


def protocol_of(module: str) -> str | None:
    """The protocol to which a module belongs, or None."""
    return next((n for n in protocol_names() if inside(module, f"acp_core.protocols.{n}")), None)


def test_a_protocol_is_imported_by_itself_alone() -> None:
    assert "folder" in protocol_names()
    wrong = [
        told(path, each)
        for path, each in places()
        if (wanted := protocol_of(each.module)) and protocol_of(module_name(path)) != wanted
    ]
    assert wrong == []


def test_no_protocol_is_known_by_its_name_outside_of_it() -> None:
    """A name in a string leads to a protocol too: ``acp_core.protocols.x`` or ``protocol == "x"``."""
    wrong = []
    for path in files():
        name = module_name(path)
        if inside(name, "acp_core.protocols"):
            continue
        for node in ast.walk(tree(path)):
            wrong += [f"{name}:{node.lineno}" for node in known_names(node)]
    assert wrong == []


def known_names(node: ast.AST) -> Iterator[ast.expr]:
    """Where this node compares something with a protocol's name, or spells its module."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if any(f"acp_core.protocols.{name}" in node.value for name in protocol_names()):
            yield node
    elif isinstance(node, ast.Compare) and "protocol" in ast.unparse(node.left):
        for side in node.comparators:
            if isinstance(side, ast.Constant) and side.value in protocol_names():
                yield side


@pytest.mark.parametrize(
    "source",
    ["load('acp_core.protocols.folder.collaboration:x')", "snapshot.protocol == 'folder'"],
)
def test_the_search_for_names_finds_them(source: str) -> None:
    assert [each for node in ast.walk(ast.parse(source)) for each in known_names(node)]


def portable_roots() -> list[str]:
    """The rooms of the folder protocol that run under a bare Python."""
    base = "acp_core.protocols.folder"
    rooms = [f"{base}.{room}" for room in PORTABLE]
    return [
        module_name(path)
        for path in files("acp_core")
        if any(inside(module_name(path), room) for room in rooms)
    ]


def reached(roots: list[str]) -> dict[str, list[Import]]:
    """The product's modules that the roots import, however late, with the imports of each."""
    found: dict[str, list[Import]] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        path = module_file(name)
        if path is None or name in found:
            continue
        found[name] = [each for each in imports_of(path) if not each.for_types]
        waiting += [each.module for each in found[name] if inside(each.module, "acp_core")]
        waiting += [".".join(name.split(".")[:i]) for i in range(1, name.count(".") + 1)]
    return found


def test_the_portable_rooms_need_nothing_but_the_standard_library() -> None:
    """Also what they import only in the course of a call counts."""
    roots = portable_roots()
    missing = [
        room
        for room in PORTABLE
        if not any(inside(root, f"acp_core.protocols.folder.{room}") for root in roots)
    ]
    assert missing == []
    wrong = [
        f"{name}:{each.line} imports {each.module}"
        for name, its_imports in reached(roots).items()
        for each in its_imports
        if each.module.partition(".")[0] not in {*sys.stdlib_module_names, "acp_core"}
    ]
    assert wrong == []
