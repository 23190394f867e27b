"""Strangers' text reaches widgets only as Content or Strip, and never as an order."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style
from textual.fuzzy import Matcher

from acp_tui import text
from tests.tui.support import HOSTILE

SOURCES = sorted((Path(__file__).parents[2] / "acp_tui").rglob("*.py"))
ORDERS = frozenset("\x1b\x9b\x07\x08\r\x00\x7f\x85\u202e\u2066\u2028")


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_stays_visible_and_gives_no_orders(hostile: str) -> None:
    for made in (
        text.plain(hostile).plain,
        text.line(hostile, "bold").plain,
        text.join((hostile, "bold"), hostile, text.plain(hostile)).plain,
        text.strip([(hostile, Style())]).text,
        text.fit(hostile, 200),
        text.highlight(Matcher("xt"), hostile).plain,
    ):
        assert not ORDERS & set(made)
    if hostile.isprintable():
        assert text.plain(hostile).plain == hostile
        assert not text.plain(hostile).spans


def test_letters_that_matched_are_marked_where_they_stand() -> None:
    shown = text.highlight(Matcher("cr"), "[b]checkout-redesign")
    assert shown.plain == "[b]checkout-redesign"
    assert {shown.plain[span.start : span.end] for span in shown.spans} == {"c", "r"}


@given(st.text(max_size=40), st.integers(-1, 30), st.booleans())
def test_what_is_fitted_is_exactly_as_wide_as_asked(given: str, cells: int, right: bool) -> None:
    fitted = text.fit(given, cells, right=right)
    assert text.width(fitted) == max(0, cells)
    assert "\n" not in fitted


@pytest.mark.parametrize(
    ("given", "cells", "fitted"),
    [
        ("abc", 5, "abc  "),
        ("abcdef", 4, "abc…"),
        ("日本語", 4, "日… "),
        ("日本語", 5, "日本…"),
        ("a b c", 3, "a… "),
        ("a\nb\tc", 6, "a␤b c "),
    ],
)
def test_what_is_cut_ends_in_an_ellipsis(given: str, cells: int, fitted: str) -> None:
    assert text.fit(given, cells) == fitted


@pytest.mark.parametrize(
    ("given", "cells", "shown"),
    [
        ("notes/plan.md", 20, "notes/plan.md"),
        (
            "cycle-v1.progress/coordination/phase-results/001-cd.txt",
            30,
            "…/phase-results/001-cd.txt",
        ),
        ("cycle-v1-20260302.json", 12, "…260302.json"),
        ("会议/会议记录.md", 10, "…议记录.md"),
    ],
)
def test_of_a_path_its_end_is_shown_and_whole_names_where_there_are_any(
    given: str, cells: int, shown: str
) -> None:
    assert text.end_of(given, cells) == shown


@given(st.text(max_size=40), st.integers(1, 30))
def test_what_is_shown_of_a_path_fits(given: str, cells: int) -> None:
    assert text.width(text.end_of(given, cells)) <= cells


# Calls of Textual that take a str as markup, and how many of their arguments do.
SINKS = {"Static": 1, "Label": 1, "Button": 1, "Checkbox": 1, "Option": 1, "Collapsible": 0,
         "TabPane": 1, "update": 1, "from_markup": 1, "DiscoveryHit": 1}  # fmt: skip
TITLES = {"border_title", "border_subtitle", "tooltip", "label"}


def sinks(path: Path) -> list[str]:
    """Where a str that is not written out as it stands reaches a widget."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            given = node.args[: SINKS.get(name, 0)]
            if name == "notify" and not any(
                keyword.arg == "markup" and ast.unparse(keyword.value) == "False"
                for keyword in node.keywords
            ):
                found.append(f"{path.name}:{node.lineno} notify without markup=False")
        elif isinstance(node, ast.Assign):
            given = [
                node.value
                for target in node.targets
                if isinstance(target, ast.Attribute) and target.attr in TITLES
            ]
        else:
            continue
        found += [
            f"{path.name}:{node.lineno} {ast.unparse(each)}" for each in given if is_str(each)
        ]
    return found


def is_str(node: ast.expr) -> bool:
    """Whether an expression is surely a str that was made while running."""
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(part, ast.FormattedValue) for part in node.values)
    if isinstance(node, ast.BinOp):
        return is_str(node.left) or is_str(node.right) or isinstance(node.left, ast.Constant)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("str", "repr")
    return False


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_widget_is_given_a_string_that_was_put_together(path: Path) -> None:
    assert sinks(path) == []


def test_the_search_for_sinks_finds_them(tmp_path: Path) -> None:
    source = tmp_path / "bad.py"
    source.write_text(
        "Static(f'{name}')\nx.update('a' + name)\nself.border_title = f'x {y}'\nself.notify(m)\n"
        "Static(plain(name))\nself.notify(m, markup=False)\n"
    )
    assert sorted(found.partition(" ")[0] for found in sinks(source)) == [
        "bad.py:1", "bad.py:2", "bad.py:3", "bad.py:4",
    ]  # fmt: skip
