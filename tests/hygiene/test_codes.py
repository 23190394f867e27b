"""docs/codes.md lists every code with its texts: every code that is used, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from acp_core.protocols.governed.rules.findings import CODES
from tests.hygiene.codes_page import PAGE, TABLES, page
from tests.hygiene.problem_codes import ROOMS
from tests.hygiene.sources import ROOT, files, tree

_PROBLEM = re.compile(r"[A-E]\d{1,2}|wire-[a-z]+(?:-[a-z]+)*")
_KEY = re.compile(r"[A-Z]\d+:([A-Z_]+)(?::|$)")


def test_the_page_of_codes_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.hygiene.references"


def test_every_code_has_both_texts() -> None:
    for codes in TABLES.values():
        assert codes and all(len([*map(len, texts)]) == 2 for texts in codes.values())
        assert all(text.strip() for texts in codes.values() for text in texts)


def test_every_code_of_governed_runs_has_its_texts() -> None:
    """A finding takes its explanation from the table: by its code, or by the key of an obstacle."""
    used = {code for path in files("acp_core/protocols/governed") for code in _codes(tree(path))}
    assert used - {"TURN_QUIET"} <= set(CODES)  # which is a problem, never a finding
    assert len(used) > 40


@pytest.mark.parametrize("heading", ROOMS)
def test_every_code_of_a_problem_is_listed(heading: str) -> None:
    """Also none that no problem has any more."""
    paths = [ROOT / place for place in ROOMS[heading].places]
    found = [each for path in paths for each in (path.rglob("*.py") if path.is_dir() else [path])]
    assert set(ROOMS[heading].codes) == {code for path in found for code in _problems(tree(path))}


def _problems(source: ast.Module) -> Iterator[str]:
    for node in ast.walk(source):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from [node.value] if _PROBLEM.fullmatch(node.value) else []


def _codes(source: ast.Module) -> Iterator[str]:
    for node in ast.walk(source):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Trouble", "trouble_of"):
            yield from (each.value for each in node.args[:1] if isinstance(each, ast.Constant))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _KEY.findall(node.value)
