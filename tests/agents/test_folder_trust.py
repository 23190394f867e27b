"""A program that gives its model no tools in folders that it does not trust: said, with the cure."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from acp_core.agents import presets
from acp_core.agents import program as agents_program
from acp_core.cli.doctor import State, agents
from acp_core.loops import launch
from tests.loops.support import make, spec, stand_in

GEMINI = presets.bundled()["gemini"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program's own folder of a person who has used it."""
    for name in ("GEMINI_CLI_TRUST_WORKSPACE", "GEMINI_RESTRICTED_MODE", "GEMINI_CLI_TRUSTED_FOLDERS_PATH"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path))
    (tmp_path / ".gemini").mkdir()
    return tmp_path / ".gemini"


def trust(home: Path, rules: dict[str, str]) -> None:
    (home / "trustedFolders.json").write_text(json.dumps(rules))


@pytest.mark.parametrize(
    ("rules", "trusted"),
    [
        ({}, False),
        ({"work": "TRUST_FOLDER"}, True),
        ({"work/app": "TRUST_FOLDER"}, True),
        ({"work/app/part": "TRUST_FOLDER"}, False),
        ({"work/other": "TRUST_PARENT"}, True),
        ({"work": "TRUST_FOLDER", "work/app": "DO_NOT_TRUST"}, False),
        ({"work": "DO_NOT_TRUST", "work/app": "TRUST_FOLDER"}, True),
        ({"wor": "TRUST_FOLDER"}, False),
    ],
)
def test_the_programs_own_rules_decide(
    home: Path, tmp_path: Path, rules: dict[str, str], trusted: bool
) -> None:
    folder = tmp_path / "work" / "app"
    folder.mkdir(parents=True)
    trust(home, {str(tmp_path / name): level for name, level in rules.items()})
    why = agents_program.missing(GEMINI, str(folder))
    assert (why == "") == trusted
    assert trusted or f"run `gemini` in {folder} once, and trust the folder" in why


def test_whoever_switched_it_off_is_told_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path)
    assert agents_program.missing(GEMINI, folder)
    assert agents_program.missing(presets.bundled()["claude"], folder) == ""
    monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
    assert agents_program.missing(GEMINI, folder) == ""
    monkeypatch.setenv("GEMINI_RESTRICTED_MODE", "true")
    assert agents_program.missing(GEMINI, folder)
    monkeypatch.delenv("GEMINI_RESTRICTED_MODE")
    monkeypatch.delenv("GEMINI_CLI_TRUST_WORKSPACE")
    (home / "settings.json").write_text('{"security": {"folderTrust": {"enabled": false}}}')
    assert agents_program.missing(GEMINI, folder) == ""
    (home / "settings.json").write_text(
        '// comments, which it reads\n{"security": /* "here */ {"folderTrust": {"enabled": false}}}'
    )
    assert agents_program.missing(GEMINI, folder) == ""


@pytest.mark.parametrize("name", ["settings.json", "trustedFolders.json"])
@pytest.mark.parametrize("text", ["{", "[" * 100_000, "", '"//" {}'])
def test_where_its_files_cannot_be_read_no_folder_counts_as_trusted(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    stand_in(tmp_path, "gemini")
    monkeypatch.setenv("PATH", str(tmp_path))
    trust(home, {str(tmp_path): "TRUST_FOLDER"})
    (home / name).write_text(text)
    damaged = home / name
    assert f"correct {damaged}, which is no JSON" in agents_program.missing(GEMINI, str(tmp_path))
    [found] = [each for each in agents([str(tmp_path)]) if each.name == "gemini tools"]
    assert (found.state, found.advice) == (
        State.WARN,
        f"correct {damaged}, which is no JSON: acp cannot tell what you trust",
    )


def test_rules_with_comments_are_read_as_the_program_reads_them(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    rules = f'{{ // mine\n "{tmp_path}//app": "TRUST_FOLDER" /* all of it */ }}'
    (home / "trustedFolders.json").write_text(rules)
    assert agents_program.missing(GEMINI, str(folder)) == ""


def test_launch_says_so_where_its_model_would_get_no_tools(home: Path, tmp_path: Path) -> None:
    folder = make(tmp_path / "checkout")
    program = stand_in(tmp_path, "gemini")
    preset = replace(GEMINI, program=program)
    said = launch.plan(spec(folder, "reader"), preset, ask_version=False).warnings
    assert [each for each in said if agents_program.EFFECT in each]
    trust(home, {str(tmp_path): "TRUST_FOLDER"})
    assert launch.plan(spec(folder, "reader"), preset, ask_version=False).warnings == ()


def test_doctor_says_so_and_how_to_change_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, "gemini")
    monkeypatch.setenv("PATH", str(tmp_path))
    [found] = [each for each in agents([str(tmp_path)]) if each.name == "gemini tools"]
    assert (found.state, found.advice) == (State.WARN, agents_program.cure(GEMINI, str(tmp_path)))
    trust(home, {str(tmp_path): "TRUST_FOLDER"})
    [found] = [each for each in agents([str(tmp_path)]) if each.name == "gemini tools"]
    assert found.state is State.OK
