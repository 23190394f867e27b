"""The glossary: words that users do not read any more, each with the one to use instead.

Sentences for users are plain modern technical English, in the active voice, with the actor named. `RETIRED` holds the
words that were replaced. A package whose sentences are free of them belongs into `CHECKED`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.hygiene.sources import ROOT, files, tree

CHECKED = (
    "acp_core/agents", "acp_core/diagnosis", "acp_core/files", "acp_core/fleet", "acp_core/history",
    "acp_core/loops", "acp_core/model", "acp_core/person", "acp_core/protocols/folder",
    "acp_core/protocols/kit",
)  # fmt: skip

RETIRED = {
    "a fault in acp": "a bug in acp",
    "anew": "again, or restart",
    "begin its turn": "restart the turn",
    "borne": "tolerated",
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
    "is no program": "not a program",
    "is said": "the actor, and reports or shows",
    "is told": "the actor, and tells",
    "lags behind": "is out of date with",
    "launch everybody": "start all loops",
    "look on": "check",
    "mend": "repair (files), or fix",
    "mended": "repaired, or fixed",
    "mends": "repairs, or fixes",
    "nobody": "no agent, no participant, no event",
    "parked": "idle",
    "proves nothing": "say what counts",
    "put away": "archive",
    "put right": "fix",
    "settle": "resolve",
    "somebody": "the actor: another program, the author, a participant",
    "speaks of": "names, or is about",
    "stands in": "is in, or name the file",
    "stands twice": "is a duplicate",
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


@pytest.mark.parametrize("package", CHECKED)
def test_users_read_no_retired_word(package: str) -> None:
    wrong = []
    for path in files(package):
        name = path.relative_to(ROOT).as_posix()
        for line, text in sentences(tree(path)):
            wrong += [
                f"{name}:{line}: {word!r}: write {RETIRED[word]}"
                for word, pattern in _WORDS.items()
                if pattern.search(text) and (name, word) not in EXCEPTIONS
            ]
    assert not wrong, "\n".join(wrong)


def test_every_exception_is_needed() -> None:
    """An exception whose sentence is gone, or was rewritten, goes too."""
    for (name, word), reason in EXCEPTIONS.items():
        texts = [text for _, text in sentences(tree(ROOT / name))]
        assert reason and any(_WORDS[word].search(text) for text in texts), (name, word)
