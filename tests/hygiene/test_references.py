"""The pages that are made from the program are up to date, and leave nothing out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from acp_core.cli import table
from acp_core.protocols.kit.parser import Parser
from acp_tui import keys
from tests.hygiene import commands_page, keys_page, man_page
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


def shown(*command: str) -> str:
    """What a program makes of the manual page, without complaint."""
    ran = subprocess.run(
        [*command, str(man_page.PAGE)], capture_output=True, text=True, check=True,
        env=os.environ | {"MANWIDTH": "80", "LC_ALL": "C.UTF-8", "GROFF_NO_SGR": "1"},
    )  # fmt: skip
    assert ran.stderr == ""
    return re.sub(".\b", "", ran.stdout)


@pytest.mark.parametrize(
    "command",
    [("man", "--warnings", "-l"), ("groff", "-man", "-Tutf8", "-ww", "-P-cbou"), ("mandoc",)],
    ids=lambda command: command[0],
)
def test_the_manual_page_is_shown_with_every_command(command: tuple[str, ...]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    lines = [line.strip() for line in shown(*command).splitlines()]
    for heading in ("NAME", "SYNOPSIS", "COMMANDS", "EXIT STATUS", "ENVIRONMENT", "FILES"):
        assert heading in lines
    for words in commands():
        assert f"acp {' '.join(words)}" in lines, words
    assert not any(line.startswith((".TP", ".B", ".SS")) for line in lines)


def test_the_manual_page_has_each_option_and_example_of_the_help() -> None:
    page = man_page.page().replace("\\-", "-").replace("\\(aq", "'").replace("\\(dq", '"')
    page = page.replace("\\e", "\\").replace("\\(ga", "`")
    said = {line.strip() for line in page.splitlines()}
    for words, parsed in commands().items():
        if isinstance(parsed, Parser):
            for each in parsed.fields:
                assert not each.listed or any(
                    line.startswith(".B ") and each.option in line for line in said
                ), (words, each.option)
        found = table.manual_page(list(words))
        examples = "\n".join(found.examples if found else ()).splitlines()
        assert {line.strip() for line in examples} <= said, words
