"""The glossary: words that users do not read any more, each with the one to use instead.

Sentences for users are plain modern technical English, in the active voice, with the actor named. `RETIRED` holds the
words that were replaced; every sentence of the program is checked, and every page for users.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hygiene.pages import PAGES, prose
from tests.hygiene.sources import PACKAGES, ROOT, files, tree

UNCHECKED = {
    "docs/bench.md": "figures and how they were measured, for contributors",
    "docs/faults.md": "a log of test runs, for contributors",
}
"""Pages that are not checked, with the reason."""
CHECKED_PAGES = tuple(page for page in map("/".join, PAGES) if page not in UNCHECKED)

RETIRED = {
    "a fault in acp": "a bug in acp",
    "all is over": "the collaboration has ended",
    "all the same": "anyway",
    "anew": "again, or restart",
    "any more": "no longer, or now",
    "anybody": "anyone, or the actor",
    "begin its turn": "restart the turn",
    "borne": "tolerated",
    "came to be": "what happened",
    "carried out": "run, or done",
    "carries out": "runs, or does",
    "carry out": "run, or do",
    "cannot be mended": "cannot be repaired",
    "dialect": "schema version",
    "died unseen": "ended with an unknown result",
    "everybody": "all participants",
    "for ever": "forever, or without a limit",
    "give it another try": "try again, or restart",
    "go on": "continue (in a new folder), or resume",
    "goes on": "continues, or resumes",
    "going on": "continuing",
    "hand the role": "reassign to another agent",
    "heed": "follow",
    "inside of": "inside",
    "is no file": "is not a file",
    "is no folder": "is not a folder",
    "is no input": "is not an input",
    "is no message": "is not a message",
    "is no number": "is not a number",
    "is no participant": "is not a participant",
    "is no program": "not a program",
    "is no regular": "is not a regular",
    "is no table": "is not a table",
    "is no text": "is not text",
    "is none of": "is not one of",
    "is said": "the actor, and reports or shows",
    "is told": "the actor, and tells",
    "lags behind": "is out of date with",
    "launch everybody": "start all loops",
    "look on": "check",
    "mend": "repair (files), or fix",
    "mended": "repaired, or fixed",
    "mending": "repairing, or fixing",
    "mends": "repairs, or fixes",
    "nobody": "no agent, no participant, no event",
    "once more": "again",
    "parked": "idle",
    "nothing is known to": "no problem, or nothing",
    "proves nothing": "say what counts",
    "put away": "archive",
    "put right": "fix",
    "settle": "resolve",
    "since you looked": "since your last visit",
    "slipped in": "wrote at the same moment",
    "somebody": "the actor: another program, the author, a participant",
    "speaks of": "names, or is about",
    "stands in": "is in, or name the file",
    "stands twice": "is a duplicate",
    "there are:": "(known: ...)",
    "through with": "has finished",
    "thrown away": "deleted",
    "tries again": "retries",
    "was told": "the actor, and told",
    "what became of": "the result of",
    "what becomes of": "the decision about",
    "whoever": "the actor: the agent, the participant, the owner",
}
"""The words, with what to write instead. Case does not count; a word is matched as a whole."""

EXCEPTIONS = {
    ("acp_core/history/schema.py", "thrown away"): "a value that recordings hold",
    ("acp_core/protocols/cycle/conduct/steps.py", "all the same"): "the same option",
    ("acp_core/protocols/cycle/conduct/steps.py", "go on"): "an option, and a note of histories",
    ("acp_core/protocols/cycle/past.py", "go on"): "the expression that reads this note",
    ("docs/architecture.md", "parked"): "the name of the mechanism, which the page explains",
}
"""(file, word) where it stays, with the reason."""

_WORDS = {
    word: re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])", re.IGNORECASE) for word in RETIRED
}


def sentences(source: ast.Module) -> Iterator[tuple[int, str]]:
    """The literals with a space in them that are no docstrings, each with its line."""
    described = {id(node.value) for node in ast.walk(source) if isinstance(node, ast.Expr)}
    for node in ast.walk(source):
        if not isinstance(node, ast.Constant) or id(node) in described:
            continue
        if isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, node.value


def retired(name: str, lines: Iterator[tuple[int, str]]) -> list[str]:
    """The retired words in the lines of a file, each with its place and what to write instead."""
    return [
        f"{name}:{line}: {word!r}: write {RETIRED[word]}"
        for line, text in lines
        for word, pattern in _WORDS.items()
        if pattern.search(text) and (name, word) not in EXCEPTIONS
    ]


def texts_of(name: str) -> Iterator[tuple[int, str]]:
    """What users read in a file of the program, or on a page."""
    if name.endswith(".py"):
        return sentences(tree(ROOT / name))
    return ((line, _TEST.sub("", text)) for line, text in prose(tuple(name.split("/"))))


_TEST = re.compile(r"`(?:tests/|::|test_)[^`]*`")
"""The name of a test between backticks: tests are named in words of their own."""


@pytest.mark.parametrize("package", PACKAGES)
def test_users_read_no_retired_word(package: str) -> None:
    names = [path.relative_to(ROOT).as_posix() for path in files(package)]
    wrong = [each for name in names for each in retired(name, texts_of(name))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", CHECKED_PAGES)
def test_pages_for_users_have_no_retired_word(name: str) -> None:
    wrong = retired(name, texts_of(name))
    assert not wrong, "\n".join(wrong)


def headings(path: Path) -> Iterator[tuple[int, str]]:
    """The headings of the tables in a file: tuples called columns, and those that panels are made with."""
    for node in ast.walk(tree(path)):
        tuples: list[ast.expr] = []
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            tuples = [node.value] if node.targets[0].id.lower() == "columns" else []
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Panel"):
            tuples = node.args
        for each in tuples:
            for cell in each.elts if isinstance(each, ast.Tuple) else ():
                if isinstance(cell, ast.Constant) and isinstance(cell.value, str):
                    yield cell.lineno, cell.value


def test_headings_of_tables_are_written_the_same_way_in_all_protocols() -> None:
    found = [(path, line, text) for path in files("acp_core") for line, text in headings(path)]
    assert len(found) > 100
    capital = [f"{path}:{line}: {text!r}" for path, line, text in found if text[:1].isupper()]
    assert not capital, "\n".join(capital)


def test_every_exception_is_needed() -> None:
    """An exception whose sentence is gone, or was rewritten, goes too."""
    for (name, word), reason in EXCEPTIONS.items():
        assert reason and any(_WORDS[word].search(text) for _, text in texts_of(name)), (name, word)
    assert set(UNCHECKED) <= {"/".join(place) for place in PAGES}
