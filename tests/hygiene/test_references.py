"""The pages that are made from the program are up to date, and leave nothing out."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_tui import keys
from tests.hygiene import commands_page, keys_page
from tests.hygiene.commands import commands
from tests.hygiene.references import PAGES


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_made_from_the_program_is_up_to_date(path: Path) -> None:
    said = "run python -m tests.hygiene.references"
    assert path.read_text(encoding="utf-8") == PAGES[path](), said


def test_the_reference_of_commands_has_a_section_for_each() -> None:
    lines = commands_page.page().splitlines()
    headings = [line.lstrip("#").strip() for line in lines if line.startswith(("## ", "### "))]
    for words in commands():
        assert headings.count(f"acp {' '.join(words)}") == 1


def test_the_key_card_has_every_binding_once() -> None:
    shown = [each.id for part in keys_page.PARTS.values() for each in part]
    assert sorted(map(str, shown)) == sorted(str(each.id) for each in keys.TABLE)
