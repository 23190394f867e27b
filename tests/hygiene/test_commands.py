"""The help of every command: what it is for, what each option means, an example, the exit codes."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from acp_core.cli import table
from acp_core.person.settings import Settings, load
from acp_core.protocols.kit.command import GroupParser
from acp_core.protocols.kit.parser import Parser
from tests.hygiene.commands import Parsed, commands, problem
from tests.hygiene.pages import PAGES, lines
from tests.hygiene.sources import ROOT

NAMES = [" ".join(words) for words in commands()]


def options(parsed: Parsed) -> Iterator[tuple[str, str | None]]:
    """What a command accepts, and what its help says of that."""
    if isinstance(parsed, GroupParser):
        return
    if isinstance(parsed, Parser):
        yield from ((each.option, each.help or each.title) for each in parsed.fields)
        return
    for action in parsed._actions:
        if not isinstance(action, argparse._SubParsersAction):
            yield "/".join(action.option_strings) or action.dest, action.help


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_explained(name: str) -> None:
    parsed = commands()[tuple(name.split())]
    said = parsed.description
    assert said, "no word on what it is for"
    assert [option for option, text in options(parsed) if not text] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_an_example_that_is_right_and_its_exit_codes(name: str) -> None:
    page = table.manual_page(name.split())
    assert page is not None and page.examples
    for example in page.examples:
        words = shlex.split(example.replace("\\\n", " "))
        assert words[0] == "acp"
        assert problem(words[1:]) is None, example
    assert any(
        name.split() == shlex.split(each)[1 : 1 + len(name.split())] for each in page.examples
    )
    parsed = commands()[tuple(name.split())]
    assert bool(page.exits) is not ("xit codes:" in (parsed.description or "")), "said once"


@pytest.mark.parametrize("name", NAMES)
def test_help_fits_on_eighty_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parsed = commands()[tuple(name.split())]
    said = parsed.format_help()
    page = table.manual_page(name.split())
    lines = said.splitlines() + (page.text().splitlines() if page else [])
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize("words", ["append", "help append", "governed step", "ps"])
def test_help_ends_with_examples_and_exit_codes(words: str) -> None:
    asked = [*words.split(), *([] if "help" in words else ["--help"])]
    ran = subprocess.run(
        [sys.executable, "-m", "acp_tui", *asked], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ran.stdout.lower().startswith("usage: ")
    assert f"\nExamples:\n  acp {words.removeprefix('help ')}" in ran.stdout
    assert len(re.findall(r"Exit\s+codes?", ran.stdout)) == 1


@pytest.mark.parametrize("place", PAGES, ids="/".join)
def test_every_command_line_of_the_documents_is_one(place: tuple[str, ...]) -> None:
    wrong = []
    for line in lines(place):
        words = shlex.split(line, comments=True)
        for shell in (">", "&"):  # what the shell takes for itself
            words = words[: words.index(shell)] if shell in words else words
        words = [word for word in words if word not in ("...", "…")]
        said = problem(words[1:])
        if said:
            wrong.append(f"{line}: {said}")
    assert wrong == []


def test_a_command_line_that_is_none_is_found() -> None:
    assert problem(["stauts"]) is not None
    assert problem(["status", "--jsn"]) is not None
    assert problem(["governed", "stepp"]) is not None
    assert problem(["governed", "step", "--roles", "qa"]) is not None
    assert problem(["append", "--folder", "x", "--event", "nothing"]) is not None
    assert problem(["status", "--json", "."]) is None


CONFIGURATION = ROOT / "docs" / "configuration.md"


@pytest.mark.parametrize(
    "example", re.findall(r"^```toml\n(.*?)^```", CONFIGURATION.read_text("utf-8"), re.M | re.S)
)
def test_every_example_of_the_settings_is_read(example: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(example, encoding="utf-8")
    assert load(file) != Settings()


def test_every_setting_stands_in_an_example() -> None:
    shown = CONFIGURATION.read_text("utf-8")
    missing = [
        each.name for each in fields(Settings) if not re.search(rf"^\[?{each.name}\b", shown, re.M)
    ]
    assert missing == []


@pytest.mark.parametrize("name", NAMES)
def test_what_a_command_is_for_is_said_in_sentences(name: str) -> None:
    parsed = commands()[tuple(name.split())]
    said = parsed.description or ""
    assert said[0].isupper(), said
    assert said.rstrip().split("\n\n")[0].endswith((".", ":")), said
