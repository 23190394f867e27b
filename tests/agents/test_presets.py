"""Presets: the known programs, a person's own ones, and the command that comes of one."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.agents import presets
from acp_core.agents.presets import Preset, PresetError
from acp_core.agents.program import SpawnError, Values, build, resolve, start_program, version
from tests.agents.support import wait_for

VALUES = Values(
    folder="/f", workdir="/w", drafts="/d", prompt="PROMPT", prompt_file="/p", tool="acp"
)
NASTY = "$(touch x); `id` 'a' \"b\" {folder} --flag\n\x1b[31m"


def command(preset: Preset, **changes: object) -> tuple[str, ...]:
    values = Values(**{**{n: getattr(VALUES, n) for n in VALUES.__slots__}, **changes})  # type: ignore[arg-type]
    return build(preset, values, "/bin/program").argv


def test_the_known_programs_are_there_and_any_command() -> None:
    names = list(presets.bundled())
    assert names == ["claude", "codex", "opencode", "gemini", "qwen", "aider", "command"]
    for preset in presets.bundled().values():
        assert presets.parse(preset.name, json.loads(json.dumps(preset.as_table()))) == preset


def test_claude_may_run_the_very_commands_that_its_prompt_names() -> None:
    argv = command(presets.bundled()["claude"], commands=("/venv/bin/acp next",))
    assert argv[argv.index("--allowedTools") + 1] == "Bash(/venv/bin/acp next *)"
    assert "--verbose" in argv  # stream-json needs it
    assert argv[-3:] == ("--add-dir", "/f", "/d")


def test_a_model_is_named_only_where_one_is_chosen() -> None:
    codex = presets.bundled()["codex"]
    assert "-m" not in command(codex)
    assert command(codex, model="big")[-3:] == ("-m", "big", "-")


def test_aider_is_given_every_document_that_the_turn_changes() -> None:
    aider = presets.bundled()["aider"]
    argv = command(aider, documents=("/f/proposal.md", "/d/r.md"), reads=("/f/review.md",))
    assert argv[-6:] == (
        *("--file", "/f/proposal.md", "--file", "/d/r.md"),
        *("--read", "/f/review.md"),
    )
    assert argv[argv.index("--message-file") + 1] == "/p"


def test_aider_declines_to_change_anything_but_the_documents_of_the_turn(tmp_path: Path) -> None:
    program = tmp_path / "aider"  # asks twice, as that one does about other files
    program.write_text('#!/bin/sh\nread a; read b; echo "$a $b $*"\n')
    program.chmod(0o755)
    values = replace(VALUES, workdir=str(tmp_path), prompt_file=str(tmp_path / "1.prompt"))
    for number, (documents, said) in enumerate(((("/f/a.md",), "n n "), ((), "  "))):
        made = build(presets.bundled()["aider"], replace(values, documents=documents), str(program))
        out = tmp_path / f"{number}.out"
        child = start_program(made, out, tmp_path / f"{number}.err")
        wait_for(lambda child=child: child.poll() is not None, "its end")  # type: ignore[misc]
        assert out.read_text().startswith(f"{said}--message-file")
        assert ("--yes-always" in out.read_text()) == (not documents)


def test_what_is_filled_in_is_never_looked_at_for_more() -> None:
    preset = presets.any_command(["run", "--say={prompt}", "{folder}", "{unknown}", "{}"])
    argv = command(preset, prompt=NASTY)
    assert argv == ("/bin/program", f"--say={NASTY}", "/f", "{unknown}", "{}")


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_characters="\0", codec="utf-8"), max_size=60))
def test_a_prompt_of_any_content_is_one_argument(prompt: str) -> None:
    argv = command(presets.any_command(["run", "{prompt}", "end"]), prompt=prompt)
    assert argv == ("/bin/program", prompt, "end")


def test_a_prompt_too_long_for_an_argument_is_refused() -> None:
    preset = presets.any_command(["run", "{prompt}"])
    with pytest.raises(SpawnError, match="too long for an argument"):
        command(preset, prompt="x" * 200_000)


def test_the_words_of_a_command_say_how_it_gets_its_prompt() -> None:
    assert presets.any_command(["a", "{prompt}"]).prompt == "argv"
    assert presets.any_command(["a", "--file", "{prompt_file}"]).prompt == "file"
    assert presets.any_command(["a"]).prompt == "stdin"
    for words in ([], [""], ["a\0b"]):
        with pytest.raises(PresetError):
            presets.any_command(words)


def test_an_own_preset_changes_a_known_one_or_starts_from_it() -> None:
    own = {
        "claude": {"model_args": ["--model", "{model}", "--effort", "high"]},
        "careful": {"extends": "claude", "title": "Careful", "env": {"A": "1"}, "price_in": 3},
        "mine": {"program": "mine", "args": ["-x"], "exits": {"3": "tired"}},
    }
    found = presets.load(own)
    assert found["claude"].model_args[-1] == "high"
    assert found["claude"].program == "claude"
    assert (found["careful"].program, found["careful"].title) == ("claude", "Careful")
    assert found["careful"].env == {"A": "1"}
    assert (found["careful"].price_in, found["mine"].exits[3]) == (3.0, "tired")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"progam": "x"}, "presets.p: unknown key 'progam'"),
        ({"args": "x"}, "presets.p.args: must be a list of texts"),
        ({"args": [1]}, "presets.p.args: must be a list of texts"),
        ({"prompt": "shell"}, "presets.p.prompt: must be one of stdin, argv, file"),
        ({"stream": "x"}, "presets.p.stream: must be one of"),
        ({"args": ["x"], "prompt": "argv"}, "presets.p.args: must name {prompt}"),
        ({"args": ["x"], "prompt": "file"}, "presets.p.args: must name {prompt_file}"),
        ({"commands": "acp"}, "presets.p.commands: must name"),
        ({"env": {"A=": "x"}}, "presets.p.env: contains an invalid"),
        ({"env": ["A"]}, "presets.p.env: must be a table of texts"),
        ({"exits": {"x": "y"}}, "presets.p.exits: the names must be exit codes"),
        ({"price_in": "3"}, "presets.p.price_in: must be a number of dollars"),
        ({"append_after_change": 1}, "presets.p.append_after_change: must be true or false"),
        ({"extends": "nobody"}, "presets.p.extends: unknown preset 'nobody'"),
        ({"extends": 5}, "presets.p.extends: unknown preset 5"),
        ({"title": 5}, "presets.p.title: must be a text"),
        (["x"], "presets.p: must be a table"),
    ],
)  # fmt: skip
def test_a_wrong_preset_is_refused_in_one_line(table: dict[str, object], message: str) -> None:
    with pytest.raises(PresetError) as refused:
        presets.load({"p": table})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_name_of_a_preset_is_a_word() -> None:
    with pytest.raises(PresetError, match="a name has no spaces"):
        presets.load({"a b": {}})


def test_a_program_is_found_or_the_reason_is_said(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    assert os.path.isabs(resolve("sh"))
    with pytest.raises(SpawnError, match="not found on PATH"):
        resolve("no-such-program-anywhere")
    with pytest.raises(SpawnError, match="no such program"):
        resolve("./none", str(tmp_path))
    with pytest.raises(SpawnError, match="is not executable"):
        resolve("./plain", str(tmp_path))


def test_a_program_says_its_version(tmp_path: Path) -> None:
    assert version(sys.executable).startswith("3.")
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexit 3\n")
    silent.chmod(0o755)
    assert version(str(silent)) == ""
    assert version(str(tmp_path / "none")) == ""


def test_a_program_that_never_says_its_version_is_ended(tmp_path: Path) -> None:
    stuck = tmp_path / "stuck"
    stuck.write_text("#!/bin/sh\nsleep 1000\n")
    stuck.chmod(0o755)
    assert version(str(stuck), timeout=0.3) == ""
