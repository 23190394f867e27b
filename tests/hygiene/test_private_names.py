"""No private name of Textual or Rich is used by the interface, but for those listed with what they save."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil

import acp_tui
from tests.hygiene.sources import ROOT, files, tree

SAVED = {
    "_background_screens": "draws a covered screen no more: a change below an opaque screen costs a "
    "comparison, and not a picture of the whole terminal (tests/tui/test_covering.py counts them)",
    "_load_screen_css": "adds a screen's stylesheet to the parsed ones: opening a screen styles its own "
    "widgets, and not those of every screen again (tests/tui/test_drawing.py)",
}
"""Names of Textual that are overridden because no public one does the same."""
PUBLIC = ("_asdict", "_replace", "_exit", "__stdin__", "__stdout__", "__stderr__")
"""Documented names of the standard library that begin so."""
LIBRARIES = ("textual", "rich")


def overridden() -> set[str]:
    """Private names of a library's class that a class of the interface defines, too."""
    found: set[str] = set()
    for module in pkgutil.walk_packages(acp_tui.__path__, "acp_tui."):
        for owner in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(owner) and owner.__module__.startswith("acp_tui."):
                found |= {name for name in vars(owner) if _is_a_library_s(owner, name)}
    return found


def _is_a_library_s(owner: type, name: str) -> bool:
    value = vars(owner)[name]
    if not name.startswith("_") or name.startswith("__") or not _is_code(value):
        return False
    return any(
        name in vars(base) and base.__module__.partition(".")[0] in LIBRARIES
        for base in owner.__mro__[1:]
    )


def _is_code(value: object) -> bool:
    return inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod)


def test_what_is_overridden_is_listed_with_what_it_saves() -> None:
    assert overridden() == set(SAVED)
    assert all(SAVED.values())


def test_no_private_name_of_something_else_is_read() -> None:
    """``a._b`` where ``a`` is neither ``self`` nor a class of the same file."""
    wrong = []
    for path in files("acp_tui"):
        for node in ast.walk(tree(path)):
            if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
                continue
            owner = ast.unparse(node.value)
            if owner in ("self", "cls", "super()") or node.attr in PUBLIC:
                continue
            wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} {owner}.{node.attr}")
    assert wrong == []
