"""docs/codes.md lists every code with its texts, and every code that is used has some."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from acp_core.protocols.governed.rules.codes import CODES
from tests.hygiene.codes_page import PAGE, TABLES, page
from tests.hygiene.sources import files, tree

_KEY = re.compile(r"[A-Z]\d+:([A-Z_]+)(?::|$)")


def test_the_page_of_codes_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.hygiene.codes_page"


def test_every_code_has_both_texts() -> None:
    for codes in TABLES.values():
        assert codes and all(len([*map(len, texts)]) == 2 for texts in codes.values())
        assert all(text.strip() for texts in codes.values() for text in texts)


def test_every_code_of_governed_runs_has_its_texts() -> None:
    """A finding takes its explanation from the table: by its code, or by the key of an obstacle."""
    used = {code for path in files("acp_core/protocols/governed") for code in _codes(tree(path))}
    assert used - {"TURN_QUIET"} <= set(CODES)  # which is a problem, never a finding
    assert len(used) > 40


def _codes(source: ast.Module) -> Iterator[str]:
    for node in ast.walk(source):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Trouble", "trouble_of"):
            yield from (each.value for each in node.args[:1] if isinstance(each, ast.Constant))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _KEY.findall(node.value)
