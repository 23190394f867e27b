"""Names that a store may not give to a file here."""

from __future__ import annotations

import pytest

from acp_core.stores import tree
from acp_core.stores.engine import StoreRefused

HOSTILE = [
    "", "/etc/passwd", "../up.md", "a/../up.md", "a//b.md", "./a.md", "a/./b.md", ".git/config", ".GIT/config", "GIT~1/x.md",
    "g\u200cit/x.md", ".g\u200dit/config", "\uff0egit/config", "CON", "con.md", "aux/x.md", "COM1.txt", ".acp/share.json", ".acp/leases/x.json",
    "CLAUDE.md", "sub/claude.MD", "AGENTS.md", "GEMINI.md", ".mcp.json", ".claude/settings.json", ".cursor/rules", ".env", "x.env",
    ".envrc", "envrc", "tab\there.md", "new\nline.md", "back\\slash.md", "C:x.md", "dots.", "space ", "re\u200bview.md",
    "\u202ereview.md", "esc\x1b[31m.md", "a" * 300, "/".join("a" * 20), "\ud800.md", "a\0b", "q?.md", "star*.md",
]  # fmt: skip
KIND = [
    "proposal.md",
    "README.md",
    "deliverables/adr.md",
    "a b.md",
    "ä/ö.md",
    "data.csv",
    "conclusion (1).md",
    "environment.md",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_are_refused(name: str) -> None:
    assert tree.against(name)
    with pytest.raises(StoreRefused) as caught:
        tree.check(["proposal.md", name])
    said = str(caught.value)
    assert said.isprintable() and len(said) < 500
    assert caught.value.code == 8


def test_names_that_people_use() -> None:
    tree.check(KIND)


@pytest.mark.parametrize(
    "pair",
    [
        ("Review.md", "review.md"),
        ("stra\u00dfe.md", "STRASSE.md"),
        ("\u00e9.md", "e\u0301.md"),
        ("a", "a/b.md"),
        ("A", "a/b.md"),
    ],
)
def test_two_names_that_are_one_somewhere(pair: tuple[str, str]) -> None:
    with pytest.raises(StoreRefused):
        tree.check(pair)


def test_too_many() -> None:
    with pytest.raises(StoreRefused, match="more than 2000 files"):
        tree.check(f"{number}.md" for number in range(2001))
