"""Every file, folder and name that docs/architecture.md points to is there."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.hygiene.sources import PACKAGES, ROOT, tree

TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
QUESTIONS = (
    "Where is the timeline drawn?",
    "Where is an event appended?",
    "Where would I add a cause?",
    "... a validator rule?",
    "... a remedy?",
    "... a column of the fleet?",
    "... a preset?",
    "... a notice (on the desktop, in the terminal)?",
    "Where is a stale lock noticed?",
    "Where does the key `b` end?",
)
"""What a newcomer asks first: each is answered by one file, and one name in it."""
_ROW = re.compile(r"^\| (?P<question>[^|]+\?) \| `(?P<file>[^`]+)` \| `(?P<name>[^`]+)` \|", re.M)
_PATH = re.compile(r"`((?:acp_core|acp_tui|tests)/[\w/.]+)`")
_NAMED = re.compile(r"`((?:acp_core|acp_tui|tests)/[\w/]+\.py)`(?:, |[^`(.|]*\()`([\w.]+)`")
_MAP = re.compile(r"^```\n(.*?)^```", re.M | re.S)
_ON_THE_MAP = re.compile(r"(?<![\w/])(\w+(?:/|\.py))(?=\s)")


class Answer(NamedTuple):
    """A row of the page's table: where something is."""

    question: str
    file: str
    name: str


ANSWERS = [Answer(**row.groupdict()) for row in _ROW.finditer(TEXT)]


def test_each_question_is_answered_once() -> None:
    asked = [answer.question for answer in ANSWERS]
    assert [question for question in QUESTIONS if asked.count(question) != 1] == []


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.file)
def test_an_answer_names_what_stands_in_its_file(answer: Answer) -> None:
    assert answer.name in names(ROOT / answer.file), answer


def test_every_path_on_the_page_is_there() -> None:
    paths = _PATH.findall(TEXT)
    assert len(paths) > 40
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_name_beside_a_path_stands_in_that_file() -> None:
    named = _NAMED.findall(TEXT)
    assert len(named) > 10
    assert [(file, name) for file, name in named if name not in names(ROOT / file)] == []


def test_what_the_map_shows_is_there() -> None:
    drawn = _MAP.search(TEXT)
    assert drawn is not None
    rooms = _ON_THE_MAP.findall(drawn[1])
    assert len(rooms) > 25
    tops = (ROOT, *(ROOT / name for name in PACKAGES), ROOT / "acp_core" / "protocols")
    tops += (ROOT / "acp_core" / "model", ROOT / "acp_core" / "cli")
    assert [room for room in rooms if not any((top / room).exists() for top in tops)] == []


def test_the_walks_end_where_the_table_says() -> None:
    """The answers about the timeline and about `b` are the last steps of the two walks."""
    by_question = {answer.question: answer.file for answer in ANSWERS}
    last = {
        title: re.findall(r"^\d+\. `([^`]+)`", section, re.M)[-1]
        for title, section in re.findall(r"^## (From .*?)\n(.*?)(?=^## )", TEXT, re.M | re.S)
    }
    assert last == {
        "From a change on disk to the screen": by_question["Where is the timeline drawn?"],
        "From a key to a file": by_question["Where does the key `b` end?"],
    }


def test_a_name_that_is_gone_is_noticed() -> None:
    file = ROOT / "acp_tui" / "widgets" / "timeline_view.py"
    assert "TimelineView.row" in names(file)
    assert "TimelineView.rows" not in names(file) and "TimelineView.Events" not in names(file)
    assert "[claud]" not in names(ROOT / "acp_core" / "agents" / "presets.toml")


def names(path: Path) -> set[str]:
    """What a file defines: functions, classes, their methods, constants; tables of a TOML file."""
    if path.suffix == ".toml":
        return {f"[{name}]" for name in tomllib.loads(path.read_text(encoding="utf-8"))}
    return {*_defined(tree(path).body), *_attributes(tree(path))}


def _defined(body: list[ast.stmt], within: str = "") -> Iterator[str]:
    """The names that statements define; what is in a class also by its own name."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield within + node.name
            if within:
                yield node.name
        if isinstance(node, ast.ClassDef):
            yield from _defined(node.body, f"{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            yield from (within + each.id for each in _targets(node) if isinstance(each, ast.Name))


def _attributes(source: ast.Module) -> Iterator[str]:
    """What is set on ``self``."""
    for node in ast.walk(source):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            for each in _targets(node):
                if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "self":
                    yield each.attr


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]
