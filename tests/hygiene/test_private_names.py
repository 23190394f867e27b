"""No private name of Textual or Rich is used by the interface, but for those listed with what they save."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from functools import cache

import acp_tui
from tests.hygiene.sources import ROOT, files, tree

SAVED = {
    "_background_screens": "draws a covered screen no more: a change below an opaque screen costs a "
    "comparison, and not a picture of the whole terminal (tests/tui/test_covering.py counts them)",
    "_compositor": "makes a picture of what changed and no more: Textual renders every widget that overlaps "
    "the smallest rectangle around all changes, with the containers behind it, 420 lines for each event of "
    "a timeline, now 60, and two fifths less processor of the interface's thread (tests/tui/test_parts.py "
    "counts the lines, and compares the pictures)",
    "_dirty_regions": "of the compositor: the regions that changed; it is told of them by no public name",
    "_regions_to_spans": "of the compositor: those regions as spans of lines",
    "_handle_exception": "keeps quiet about screens that lack their widgets because the dashboard is being left: "
    "Textual composes none any more, mounts them all the same, and prints a traceback of what then fails "
    "(tests/tui/test_quitting.py)",
    "_exit": "says whether it is being left, for that",
    "_load_screen_css": "adds a screen's stylesheet to the parsed ones: opening a screen styles its own "
    "widgets, and not those of every screen again (tests/tui/test_drawing.py)",
    "_size_updated": "arranges the timeline before the first picture with it, which would show rows "
    "made for 20 cells: the newest event of a long log came two pictures later "
    "(tests/tui/test_drawing.py looks at the first picture)",
    "_scroll_update": "sets the scroll bars of a list that has more or fewer rows: by the public way, "
    "`virtual_size`, each change lays out the whole screen: 158 layouts for 150 changes, now 10, and 8.6 "
    "ms of processor for each in place of 5.7 (tests/tui/test_drawing.py counts the layouts)",
}
"""Names of Textual that are used or overridden because no public one does the same."""
PUBLIC = ("_asdict", "_replace", "_exit", "__class__", "__stdin__", "__stdout__", "__stderr__")
"""Documented names of the standard library that begin so."""
LIBRARIES = ("textual", "rich")


def classes() -> Iterator[type]:
    """The classes of the interface."""
    for module in pkgutil.walk_packages(acp_tui.__path__, "acp_tui."):
        for owner in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(owner) and owner.__module__ == module.name:
                yield owner


@cache
def source(owner: type) -> ast.ClassDef:
    """The source of a class."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(definition, ast.ClassDef)
    return definition


@cache
def defined(owner: type) -> frozenset[str]:
    """What a class defines: its methods and attributes, and those that its methods set."""
    names = {node.attr for node in own_attributes(owner) if isinstance(node.ctx, ast.Store)}
    for node in source(owner).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(names)


@cache
def own_attributes(owner: type) -> tuple[ast.Attribute, ...]:
    """Every ``self.x``, ``cls.x`` and ``super().x`` in a class."""
    return tuple(
        node
        for node in ast.walk(source(owner))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "cls", "super()")
    )


def touched(owner: type) -> set[str]:
    """Private names that a library's class defines, and that a class of ours sets, reads or overrides."""
    bases = [base for base in owner.__mro__ if base.__module__.partition(".")[0] in LIBRARIES]
    theirs = {name for base in bases for name in defined(base)}
    ours = defined(owner) | {node.attr for node in own_attributes(owner)}
    return {name for name in ours & theirs if name.startswith("_") and not name.startswith("__")}


def test_private_names_of_textual_are_listed_with_what_they_save() -> None:
    assert {name for owner in classes() for name in touched(owner)} == set(SAVED)
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
