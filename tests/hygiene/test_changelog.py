"""CHANGELOG.md: the newest version is this one, and what is written of it is true of the program."""

from __future__ import annotations

import re
import shlex

import pytest

from acp_core import __version__
from tests.hygiene.commands import problem
from tests.hygiene.pages import lines_in, text

_SECTION = re.compile(r"^## (.+)$", re.M)
KINDS = ("Added", "Changed", "Fixed", "Removed", "Deprecated", "Security", "Figures")


@pytest.fixture(scope="module")
def versions() -> dict[str, str]:
    """The text of each version, by its heading, the newest first."""
    _, *parts = _SECTION.split(text(("CHANGELOG.md",)))
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_the_newest_version_is_this_one_and_each_has_its_day(versions: dict[str, str]) -> None:
    named = [heading for heading in versions if heading != "Unreleased"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ — \d{4}-\d\d-\d\d", each) for each in named)
    assert named[0].partition(" — ")[0] == __version__


def test_a_version_says_first_what_is_new_then_what_to_change_and_then_every_change(
    versions: dict[str, str],
) -> None:
    for heading, said in versions.items():
        kinds = re.findall(r"^### (.+)$", said, re.M)
        assert len(set(kinds)) == len(kinds), heading
        others = [each for each in kinds if each not in KINDS and not each.startswith("Upgrading")]
        assert others == [], heading
        assert "unreleased" not in said


def test_the_command_lines_of_this_version_and_those_before_it_with_its_names_are_right(
    versions: dict[str, str],
) -> None:
    series = __version__.rpartition(".")[0]
    said = "".join(text for heading, text in versions.items() if heading.startswith(f"{series}."))
    gone = "acp bench"
    named = [line for line in lines_in(said) if line != gone]
    assert len(named) > 40
    wrong = {line: problem(shlex.split(line)[1:]) for line in named}
    assert {line: why for line, why in wrong.items() if why} == {}
