"""The commands that hold for every protocol are described as those of a protocol are."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acp_core.cli import table
from acp_core.model.action_field import Kind
from acp_core.protocols.kit.command import GroupParser
from acp_core.protocols.kit.parser import Parser
from acp_core.protocols.registry import load
from tests.cli.support import Acp
from tests.support import toy


def _parsers() -> Iterator[tuple[str, Any]]:
    """The parser of each command; of one with verbs, those of its verbs."""
    for row in table.ENTRIES:
        parser = load(row.parser)()
        if isinstance(parser, GroupParser):
            for verb in parser.commands.specs:
                yield f"{row.name} {verb}", parser.commands.find(verb)
        else:
            yield row.name, parser


PARSERS: dict[str, Parser] = dict(_parsers())


@pytest.mark.parametrize("name", PARSERS)
def test_every_command_is_described(name: str) -> None:
    assert isinstance(PARSERS[name], Parser)
    spec = PARSERS[name].spec
    known = (spec.name, spec.command, *getattr(spec, "aliases", ()))
    assert name in known


@pytest.mark.parametrize("name", PARSERS)
def test_whatever_takes_a_folder_takes_it_by_position_and_by_name(name: str) -> None:
    parser = PARSERS[name]
    folders = [
        each
        for each in parser.fields
        if Kind.FOLDER in (each.kind, each.items) and each.name in ("folder", "folders", "paths")
    ]
    for each in folders:
        by_name = getattr(parser.parse_args(["--folder", "here"]), each.name)
        assert by_name == (["here"] if each.kind is Kind.LIST else "here")
        if name not in ("import", "find"):  # the first words are an archive, or what is sought
            assert each.position, "the folder goes by position, too"
            assert getattr(parser.parse_args(["here"]), each.name) == by_name


def test_a_folder_by_name_leaves_the_words_to_the_others(acp: Acp) -> None:
    folder = toy.make(acp.home / "talk")
    toy.say(folder, "ben", "asked", "Blue or green?")
    listed = acp("act", "--folder", "talk")
    assert (listed.returncode, listed.stdout) == (0, acp("act", "talk").stdout)
    done = acp("act", "--folder=talk", "answer", "--text", "Blue", "--yes")
    assert done.returncode == 0 and "you answered Blue" in (folder / toy.LOG).read_text()
    acked = acp("ack", "--folder", "talk", "question:9")
    assert acked.stdout == "talk has no attention item.\n"


@pytest.mark.parametrize(
    "typed",
    [
        ["show"],
        ["show", "nowhere"],
        ["status", "--jsn"],
        ["act", "nowhere"],
        ["act", "talk", "answr"],
        ["act", "talk", "answer"],
        ["act", "talk", "answer", "--text", "Blue"],
        ["ack", "nowhere"],
        ["archive", "nowhere"],
        ["stop"],
        ["nudge", "talk", "ben"],
        ["launch", "talk"],
        ["export", "nowhere"],
        ["import", "nothing.zip"],
        ["chart", "talk"],
        ["validate"],
        ["zzz"],
        ["--jsn"],
    ],
    ids=" ".join,
)
def test_where_json_is_asked_for_an_error_is_json_too(acp: Acp, typed: list[str]) -> None:
    toy.say(toy.make(acp.home / "talk"), "ben", "asked", "Blue or green?")
    ran = acp(*typed, "--json")
    assert ran.returncode == 2
    said = json.loads(ran.stdout)
    assert said == {"schema": "acp.error/1", "error": said["error"], "exit_code": 2}
    assert ran.stderr == f"error: {said['error']}\n" and said["error"]


def test_json_after_a_command_s_own_words_is_not_asked_of_us(acp: Acp) -> None:
    ran = acp("launch", "nowhere", "ann", "--agent", "nothing", "--", "cat", "--json")
    assert ran.returncode == 2 and ran.stdout == ""


@pytest.mark.parametrize("typed", [["validate"], ["show"], ["why"], ["replay"]], ids=" ".join)
def test_without_a_folder_it_says_both_ways_to_name_it(acp: Acp, typed: list[str]) -> None:
    ran = acp(*typed)
    assert (ran.returncode, ran.stderr) == (2, "error: FOLDER (or --folder): is missing\n")


def test_a_path_that_looks_like_an_option_comes_after_two_dashes(acp: Acp) -> None:
    toy.make(acp.home / "-odd" / "talk")
    assert "talk" in acp("status", "--", "-odd").stdout


@pytest.mark.parametrize(
    ("name", "old", "value"),
    [
        ("launch", "--with", "claude"),
        ("loop", "--preset", "claude"),
        ("loop", "--turn-limit", "20m"),
        ("find", "--folder", "runs"),
    ],
)
def test_old_options_work_and_are_not_listed(name: str, old: str, value: str) -> None:
    parser = PARSERS[name]
    [field] = [each for each in parser.fields if old in each.aliases]
    assert getattr(parser.parse_args([old, value]), field.name) == getattr(
        parser.parse_args([field.option, value]), field.name
    )
    assert f"{old} " not in parser.format_help()


def test_an_act_takes_the_old_options_and_the_positions_of_its_command(acp: Acp) -> None:
    toy.say(toy.make(acp.home / "talk", may_end=["ben"]), "ben", "said", "Blue")
    words = ["act", "talk", "end", "--dry-run", "--json"]
    new = json.loads(acp(*words, "--who", "ben", "--reason", "All is said").stdout)
    old = json.loads(acp(*words, "ben", "--because", "All is said").stdout)
    assert old["preview"] | {"changes": []} == new["preview"] | {"changes": []}
    assert "All is said" in old["preview"]["command"]
    assert "--because" not in acp("act", "talk", "end", "--help").stdout


def test_what_a_person_notes_is_said_as_json(acp: Acp) -> None:
    folder = toy.make(acp.home / "talk")
    toy.say(folder, "ben", "asked", "Blue or green?")
    assert json.loads(acp("ack", "talk", "--json").stdout) == {
        "schema": "acp.ack/1", "collaboration": str(folder), "acknowledged": ["question:1"],
    }  # fmt: skip
    assert json.loads(acp("archive", "talk", "--json").stdout)["archived"] == [str(folder)]
    assert json.loads(acp("unarchive", "talk", "--json").stdout)["unarchived"] == [str(folder)]
    assert json.loads(acp("unarchive", "talk", "--json").stdout)["unarchived"] == []


def test_archives_are_said_as_json(acp: Acp) -> None:
    toy.say(toy.make(acp.home / "talk"), "ben", "said", "Blue")
    out = json.loads(acp("export", "talk", "-o", "talk.acp.zip", "--json").stdout)
    assert (out["schema"], out["written"]) == ("acp.export/1", "talk.acp.zip")
    back = json.loads(acp("import", "talk.acp.zip", "again", "--json").stdout)
    assert back["schema"] == "acp.import/1" and Path(acp.home, back["unpacked"]).is_dir()
    assert back["files"] == out["files"] > 0


def test_loops_that_are_stopped_are_said_as_json(acp: Acp) -> None:
    toy.make(acp.home / "talk")
    assert json.loads(acp("stop", "--all", "--json").stdout) == {
        "schema": "acp.stop/1", "loops": [],
    }  # fmt: skip


def test_no_command_imports_what_completes(acp: Acp) -> None:
    """Click knows how shells ask; who runs a command does not wait for it."""
    code = (
        "import sys; from acp_tui.__main__ import main; code = main(['status']);"
        "sys.exit(code or ('click' in sys.modules))"
    )
    ran = subprocess.run(
        [*acp.command()[:1], "-c", code],
        env=acp.env,
        cwd=acp.home,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
