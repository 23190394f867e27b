"""What README.md and the pages of docs name is there: options, keys, files, modules, variables, links."""

from __future__ import annotations

import argparse
import re
import shlex
from functools import cache

import pytest

from acp_core.protocols.kit.parser import Parser
from acp_tui import keys
from tests.hygiene.commands import Parsed, commands
from tests.hygiene.pages import PAGES, anchors, lines, quoted, text
from tests.hygiene.sources import ROOT, files

every_page = pytest.mark.parametrize("place", PAGES, ids="/".join)
OTHERS = ("curl", "git", "man", "npm", "pytest", "python", "python3", "-X", "sh", "base64")
"""Programs, beside acp, whose options the pages name."""
EXAMPLES = {"ACP_TOY_TASK"}
"""Variables of the protocol that docs/contributing.md makes up."""
_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]*|-[a-zA-Z](?![\w-]))")
_NAMED_KEYS = {
    "slash": "/", "question_mark": "?", "exclamation_mark": "!", "right_parenthesis": ")",
    "left": "←", "right": "→",
}  # fmt: skip


def listed(parsed: Parsed) -> set[str]:
    """The options that the help of a command lists."""
    if isinstance(parsed, Parser):
        shown = [each for each in parsed.fields if each.listed]
        without = {f"--no-{each.option[2:]}" for each in shown if each.default is True}
        return {each.option for each in shown} | {each.short for each in shown} | without
    if isinstance(parsed, argparse.ArgumentParser):
        explained = [each for each in parsed._actions if each.help != argparse.SUPPRESS]
        return {name for each in explained for name in each.option_strings}
    return set()


@cache
def options() -> dict[tuple[str, ...], set[str]]:
    """The options of every command, by its words; of `acp act` those that each action has."""
    own = {("act",): {"--matter", "--yes", "--dry-run"}}
    return {
        words: listed(parsed) | {"-h", "--help"} | own.get(words, set())
        for words, parsed in commands().items()
    }


def unknown(words: list[str]) -> list[str]:
    """The options of a command line that the help of its command does not list.

    `acp act` takes those of the action that it names.
    """
    known = [each for each in options() if tuple(words[: len(each)]) == each != ("act",)]
    rest = words[: words.index("--")] if "--" in words else words
    given = [word.partition("=")[0] for word in rest if _OPTION.match(word)]
    return [each for each in given if each not in options()[max(known, key=len)]] if known else []


@every_page
def test_no_command_line_uses_an_old_name_of_an_option(place: tuple[str, ...]) -> None:
    wrong = {line: unknown(shlex.split(line, comments=True)[1:]) for line in lines(place)}
    assert {line: names for line, names in wrong.items() if names} == {}


@every_page
def test_every_option_in_the_text_is_one(place: tuple[str, ...]) -> None:
    """An option alone is one of some command; behind a verb, of a command that ends in this verb."""
    wrong = []
    for each in quoted(place):
        words = each.split()
        if words[0] in OTHERS or "python -m" in each or "pytest" in each:
            continue
        own = [known for command, known in options().items() if command[-1] == words[0]]
        there = set().union(*(own or options().values()))
        wrong += [(each, option) for option in _OPTION.findall(each) if option not in there]
    assert wrong == []


def test_options_that_are_gone_are_noticed() -> None:
    assert unknown(["launch", "checkout", "--program", "x"]) == ["--program"]  # it works, unlisted
    assert unknown(["status", "--json", "."]) == []
    assert unknown(["workspaces", "dispatch", "x", "--", "my-agent", "--fast"]) == []


@every_page
def test_every_file_and_module_is_there(place: tuple[str, ...]) -> None:
    paths = re.findall(r"\b((?:acp_core|acp_tui|tests|screenshots)/[\w./-]*\w)", text(place))
    modules = re.findall(r"-m ((?:acp_core|acp_tui|tests)[\w.]*\w)", text(place))
    wrong = [path for path in paths if not (ROOT / path).exists()]
    for module in modules:
        file = ROOT.joinpath(*module.split("."))
        if not file.with_suffix(".py").exists() and not (file / "__main__.py").exists():
            wrong.append(module)
    assert wrong == []


def test_the_index_lists_every_page() -> None:
    linked = set(re.findall(r"\]\(([\w./]+)\)", text(("docs", "index.md"))))
    pages = {place[-1] for place in PAGES if place[0] == "docs"} - {"index.md"}
    assert linked == pages | {"../README.md"}


@pytest.mark.parametrize("place", [("README.md",), ("docs", "index.md")], ids="/".join)
def test_what_acp_stands_for_is_said_in_one_paragraph_and_the_third_is_spelled_out(
    place: tuple[str, ...],
) -> None:
    paragraphs = [" ".join(each.split()) for each in text(place).split("\n\n")]
    (said,) = [each for each in paragraphs if each.startswith('"ACP" stands')]
    for kind in ("Collaboration", "Communication", "Client"):
        assert f"the Agent {kind} Protocol" in said or f"The Agent {kind} Protocol" in said


@cache
def variables() -> set[str]:
    """Every variable of the environment that the product or its tests name."""
    sources = [*files(), *(ROOT / "tests").rglob("*.py")]
    names = [re.findall(r"\bACP_[A-Z_]+\b", path.read_text("utf-8")) for path in sources]
    return {name for found in names for name in found}


@every_page
def test_every_variable_of_the_environment_is_read(place: tuple[str, ...]) -> None:
    named = set(re.findall(r"\bACP_[A-Z_]+\b", text(place)))
    assert named - variables() - EXAMPLES == set()


@every_page
def test_every_key_is_bound(place: tuple[str, ...]) -> None:
    """A key is a single sign between backticks, or one with ``ctrl``."""
    bound = {key for each in keys.TABLE for key in each.key.split(",")}
    bound |= {_NAMED_KEYS.get(key, key) for key in bound}
    if place[-1] not in ("dashboard.md", "history.md", "README.md", "folder.md", "loops.md"):
        return
    named = [each for each in quoted(place) if re.fullmatch(r"ctrl\+\w|[a-zA-Z!?/()←→]", each)]
    # ctrl+p is the palette's own, ctrl+c ends a command in a terminal
    assert [each for each in named if each not in bound | {"ctrl+p", "ctrl+c"}] == []


@every_page
def test_links_lead_somewhere(place: tuple[str, ...]) -> None:
    page = ROOT.joinpath(*place)
    wrong = []
    for target, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text(place)):
        there = page.parent / target if target else page
        if not there.exists() or (heading and heading not in anchors(there)):
            wrong.append((target, heading))
    assert wrong == []
