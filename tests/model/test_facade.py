"""The words are imported from `acp_core.model`, which knows where each is defined."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

from acp_core import model

MODULES = (
    "action",
    "action_field",
    "action_spec",
    "card",
    "snapshot",
)
FOLDER = Path(model.__file__ or "").parent


def words(module: str) -> list[str]:
    """The public classes and functions that a module defines."""
    body = ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8")).body
    defined = [node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return [name for name in defined if not name.startswith("_")]


@pytest.mark.parametrize("module", MODULES)
def test_every_word_is_there(module: str) -> None:
    home = import_module(f"acp_core.model.{module}")
    assert words(module)
    for name in words(module):
        assert getattr(model, name) is getattr(home, name)


def test_a_type_checker_is_told_the_same() -> None:
    source = (FOLDER / "__init__.py").read_text(encoding="utf-8")
    typed = {
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("acp_core.model.")
        for alias in node.names
    }
    assert typed == {name for module in MODULES for name in words(module)} | {"Matter"}


def test_what_is_no_word_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Wrod'"):
        _ = model.Wrod  # type: ignore[attr-defined]
