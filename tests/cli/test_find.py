"""`acp find`: the collaboration in which something was said or decided."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import Acp
from tests.support import toy


@pytest.fixture
def archive(acp: Acp) -> Path:
    """A hundred conversations that are over, and what two of them decided."""
    runs = acp.home / "runs"
    for i in range(100):
        folder = toy.make(runs / f"talk-{i:02}", f"Settle matter {i}")
        toy.say(folder, "ann", "done", "Settled")
    (runs / "talk-17" / toy.NOTES).write_text("# Decision\n\nUse the façade pattern for caching.\n")
    (runs / "talk-40" / toy.NOTES).write_text("# Talk\n\nSomebody spoke of a facade once.\n")
    return runs


def test_the_right_one_of_a_hundred_comes_first(acp: Acp, archive: Path) -> None:
    ran = acp("find", "facade", "--path", "runs")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [
        "talk-17  ✓ completed  runs/talk-17",
        "    notes.md:3  Use the façade pattern for caching.",
        "talk-40  ✓ completed  runs/talk-40",
        "    notes.md:3  Somebody spoke of a facade once.",
    ]


def test_all_words_must_occur(acp: Acp, archive: Path) -> None:
    assert acp("find", "CACHING", "facade").stdout.count("✓ completed") == 1
    assert acp("find", "matter 63").stdout.startswith("talk-63  ✓ completed  runs/talk-63\n")


def test_nothing_found_is_exit_code_1(acp: Acp, archive: Path) -> None:
    ran = acp("find", "nowhere\x1b[2J", "at all")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "nothing found in 100 collaborations: nowhere␛[2J at all\n"


def test_what_is_archived_is_found_too(acp: Acp, archive: Path) -> None:
    acp("archive", "runs/talk-17")
    assert "talk-17" in acp("find", "caching").stdout


def test_json_says_where(acp: Acp, archive: Path) -> None:
    told = json.loads(acp("find", "caching", "--json").stdout)
    assert (told["schema"], told["words"]) == ("acp.find/1", ["caching"])
    [hit] = told["hits"]
    assert (hit["document"], hit["line"]) == ("notes.md", 3)
    assert hit["collaboration"] == hit["snapshot"]["key"] == str(archive / "talk-17")


def test_a_path_that_cannot_be_read_is_exit_code_2(acp: Acp, archive: Path) -> None:
    ran = acp("find", "caching", "--path", "runs", "--path", "nowhere")
    assert ran.returncode == 2
    assert ran.stderr == "error: nowhere: no such folder\n"
    assert "talk-17" in ran.stdout
