"""What acp raises on purpose is one tree, and the tree that its page draws is the real one."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re

import acp_core
from acp_core.model import errors
from tests.hygiene.sources import files, module_name, tree

BUILTIN = {"Exception", "ValueError", "OSError", "LookupError", "RuntimeError", "KeyError"}
PRIVATE = re.compile(r"_")


def drawn(error: type[BaseException], depth: int = 0) -> list[str]:
    """An error and those below it, a line each, as the page draws them."""
    lines = [f"{'  ' * depth}* {error.__name__}"]
    below = [each for each in error.__subclasses__() if not each.__name__.startswith("_")]
    for each in sorted(below, key=lambda one: one.__name__):
        lines += drawn(each, depth + 1)
    return lines


def test_the_page_draws_every_error() -> None:
    for module in pkgutil.walk_packages(acp_core.__path__, "acp_core."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert errors.__doc__ is not None
    on_page = [line for line in errors.__doc__.splitlines() if line.lstrip().startswith("* ")]
    ours = [line for line in drawn(errors.AcpError) if line]
    assert on_page == ours, "\n".join(ours)


def test_no_error_stands_outside_of_the_tree() -> None:
    """Private ones aside: nobody but their own module sees them."""
    outside = [
        f"{module_name(path)}.{node.name}"
        for path in files("acp_core")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and not PRIVATE.match(node.name) and node.bases
        if all(ast.unparse(base) in BUILTIN for base in node.bases)
        if module_name(path) != errors.__name__
    ]
    assert outside == []


def test_no_two_errors_have_one_name() -> None:
    names = [line.strip(" *") for line in drawn(errors.AcpError)]
    assert sorted({name for name in names if names.count(name) > 1}) == []
