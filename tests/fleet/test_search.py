"""Somebody looks for the collaboration in which something was decided."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_core.fleet import Fleet
from acp_core.fleet import search as module
from acp_core.fleet.search import Hit, fold, hits, loader, search
from acp_core.model import DocumentText
from tests.support import toy


@pytest.fixture(autouse=True)
def only_toys(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    toy.register(monkeypatch, tmp_path_factory.mktemp("site"), alone=True)


Find = Callable[[str], list[Hit]]


@pytest.fixture
def find(tmp_path: Path) -> Find:
    """Find words under ``tmp_path``."""

    def find(words: str) -> list[Hit]:
        fleet = Fleet([tmp_path])
        try:
            return search(fleet.read(), words, loader(fleet))
        finally:
            asyncio.run(fleet.close())

    return find


def names(found: list[Hit]) -> list[str]:
    return [hit.name for hit in found]


def test_the_right_one_of_a_hundred_is_found(tmp_path: Path, find: Find) -> None:
    for number in range(100):
        folder = toy.make(tmp_path / f"run-{number:02}", f"Question {number} about colours")
        (folder / "notes.md").write_text("# Notes\n\nThe team met, and met again.\n" * 30)
    (tmp_path / "run-42" / "notes.md").write_text(
        "# Notes\n\nThe team met.\n\n## Decision\n\nWe take the *teal* palette.\n"
    )
    (hit,) = find("palette TEAL")
    assert (hit.name, hit.document, hit.line) == ("run-42", "notes.md", 7)
    assert hit.excerpt == "We take the *teal* palette."


def test_every_word_must_occur_but_not_in_one_place(tmp_path: Path, find: Find) -> None:
    one = toy.make(tmp_path / "one", "Choose a colour")
    (one / "notes.md").write_text("red\n\nor blue\n")
    toy.make(tmp_path / "other", "Choose a colour")
    assert names(find("colour red blue")) == ["one"]
    assert names(find("colour")) == ["one", "other"]
    assert find("colour green") == []
    assert find("") == find("  \t ") == []


def test_case_and_accents_make_no_difference(tmp_path: Path, find: Find) -> None:
    toy.make(tmp_path / "one", "Größe der Menüs im Café")
    assert names(find("GROSSE menus cafe\u0301")) == ["one"]
    assert fold("ÅNGSTRÖM ﬁle") == "angstrom file"
    assert fold("a\nÉ\n\nb").count("\n") == 3


def test_what_was_named_comes_before_what_was_decided_before_the_rest(
    tmp_path: Path, find: Find
) -> None:
    texts = {
        "said": "teal\n",
        "said-often": "teal\n\nteal\n\nteal\n",
        "inside": "steal\n",
        "heading": "# On teal\n",
        "decided": "# Decisions\n\n## First\n\nteal\n\n# Other\n",
        "after": "# Decisions\n\n# Other\n\nteal\n",
        "decided-heading": "# Conclusion\n\n## We take teal\n",
    }
    for name, text in texts.items():
        (toy.make(tmp_path / name, "A question") / "notes.md").write_text(text)
    toy.make(tmp_path / "named", "Is teal a colour?")
    assert names(find("teal")) == [
        "named", "decided-heading", "decided", "heading", "said-often", "after", "said", "inside",
    ]  # fmt: skip
    assert find("teal")[0].excerpt == "Is teal a colour?"


def test_a_long_line_is_shown_around_the_word(tmp_path: Path, find: Find) -> None:
    one = toy.make(tmp_path / "one")
    (one / "notes.md").write_text("x " * 500 + "here \x1b[2J is teal" + " y" * 500)
    (hit,) = find("teal")
    assert "here �[2J is teal" in hit.excerpt
    assert hit.excerpt.startswith("…")
    assert hit.excerpt.endswith("…")
    assert len(hit.excerpt) <= module.EXCERPT + 2


def test_only_texts_for_people_are_searched(tmp_path: Path, find: Find) -> None:
    one = toy.make(tmp_path / "one")
    toy.say(one, "ann", "said", "teal")
    assert find("teal") == []
    assert find("toy.log") == []


def test_a_document_that_cannot_be_had_is_passed_over(tmp_path: Path) -> None:
    toy.make(tmp_path / "one", "teal and red")
    toy.make(tmp_path / "other", "teal")
    fleet = Fleet([tmp_path])

    def fail(key: str, document: str) -> DocumentText:
        raise RuntimeError("gone")

    assert names(search(fleet.read(), "teal", fail)) == ["one", "other"]
    assert names(search(fleet.read(), "teal red", fail)) == ["one"]
    asyncio.run(fleet.close())


def test_a_search_can_be_stopped_and_read_as_it_goes(tmp_path: Path) -> None:
    for number in range(10):
        (toy.make(tmp_path / str(number)) / "notes.md").write_text("teal")
    fleet, loaded = Fleet([tmp_path]), []
    snapshots, load = fleet.read(), loader(fleet)

    def counting(key: str, document: str) -> DocumentText:
        loaded.append(key)
        return load(key, document)

    assert len(search(snapshots, "teal", counting, stop=lambda: len(loaded) == 3)) == 3
    assert len(loaded) == 3
    loaded.clear()
    assert next(hits(snapshots, "teal", counting)).name == "0"
    assert len(loaded) == 1
    asyncio.run(fleet.close())
