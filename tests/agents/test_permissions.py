"""What known programs may do without asking: their own documents, their prompt's commands."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from acp_core.agents import presets, program
from acp_core.agents.permissions import TOOLS, Scope, ToolServer, grant
from acp_core.agents.presets import PresetError
from acp_core.agents.program import Values
from acp_core.loops import launch

OURS = "/opt/acp append --folder /f --participant server"
SCOPE = Scope((OURS, "/opt/acp next"), ("/w", "/f"), "/runs/1.toml")
WIDE = ("yolo", "--auto", "bypassPermissions", "dangerously", "danger-full-access", "acp *")
TRICKS = (
    f"{OURS} --event x; rm -rf ~",
    f"{OURS} --event x && touch /t",
    f"{OURS} --event x | sh",
    f"{OURS} --event x > /home/me/.profile",
    f"{OURS} --summary $(cat /etc/passwd)",
    f"{OURS} --summary `id`",
    f"{OURS} --summary $HOME",
    f"{OURS} --event x\nrm -rf ~",
    f"{OURS}-two --event x",
    "PATH=/t /opt/acp next",
    "/opt/acp append --folder /f --participant reader --event x",
    "/opt/acp answer 1",
    "/opt/acp launch x y -- sh -c id",
    "rm -rf ~",
)


@pytest.mark.parametrize("name", [name for name in presets.bundled() if name != presets.ANY])
def test_no_known_program_starts_with_every_permission(name: str) -> None:
    values = Values("/f", "/w", "/d", prompt_file="/runs/1.prompt", commands=(OURS,))
    made = program.build(presets.bundled()[name], values, "/bin/program")
    told = "\n".join([*made.argv, *made.files.values(), json.dumps(dict(made.env))])
    assert not [word for word in WIDE if word in told]
    assert not presets.bundled()[name].caution
    assert (OURS in told.replace("\\", "")) == bool(presets.bundled()[name].permissions)


def test_claude_runs_the_commands_of_its_prompt_and_no_others() -> None:
    args = grant("claude", SCOPE).args
    assert args[:2] == ("--permission-mode", "acceptEdits")
    assert args[2:] == ("--allowedTools", f"Bash({OURS} *)", "Bash(/opt/acp next *)")


def _opencode_allows(command: str, kind: str = "bash") -> bool:
    """As the program decides: the last pattern that matches."""
    rules = json.loads(grant("opencode", SCOPE).env["OPENCODE_CONFIG_CONTENT"])["permission"][kind]
    verdict = "ask"
    for pattern, said in rules.items():
        if re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), command, re.DOTALL):
            verdict = said
    return verdict == "allow"


def _simple(command: str) -> bool:
    """Whether the program's own parser would see one command in it."""
    return not re.search(r"[;|\n]|&&|^\w+=|\$HOME", command)


def test_opencode_allows_by_the_same_commands() -> None:
    assert _opencode_allows(f"{OURS} --event x --summary 'Two changes'")
    assert not [trick for trick in filter(_simple, TRICKS) if _opencode_allows(trick)]
    assert _opencode_allows("/f/sub/x", "external_directory")
    assert not _opencode_allows("/home/me/x", "external_directory")


def test_opencode_keeps_what_else_its_person_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = {"model": "a/b", "permission": "allow"}
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", json.dumps(theirs))
    config = json.loads(grant("opencode", SCOPE).env["OPENCODE_CONFIG_CONTENT"])
    assert config["model"] == "a/b"
    assert config["permission"]["*"] == "deny"
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", "not JSON")
    assert set(json.loads(grant("opencode", SCOPE).env["OPENCODE_CONFIG_CONTENT"])) == {
        "permission"
    }


def _gemini_allows(command: str) -> bool:
    """As the program decides: rules are patterns of the JSON of the tool's arguments."""
    made = grant("gemini", SCOPE)
    assert made.args == ("--approval-mode", "auto_edit", "--policy", "/runs/1.toml")
    given = json.dumps({"command": command, "description": "x"}, separators=(",", ":"))
    rules = tomllib.loads(made.files["/runs/1.toml"])["rule"]
    return any(re.search(f'"command":"{rule["commandRegex"]}', given) for rule in rules)


def test_gemini_allows_nothing_behind_an_allowed_command() -> None:
    assert _gemini_allows(f"{OURS} --event x --summary 'Two changes'")
    assert _gemini_allows(f'{OURS} --summary "Two changes"')
    assert _gemini_allows("/opt/acp next")
    assert not [trick for trick in TRICKS if _gemini_allows(trick)]
    assert grant("gemini", Scope()).args == ("--approval-mode", "auto_edit")


def test_qwen_changes_files_in_its_folders_only() -> None:
    args = grant("qwen", Scope((OURS,), ("/w", "/a [b]"))).args
    assert args[:2] == ("--approval-mode", "default")
    rules = [
        word for option, word in zip(args[2::2], args[3::2], strict=True) if "allowed" in option
    ]
    assert rules == [
        f"run_shell_command({OURS} *)",
        *("edit(//w/**)", r"edit(//a \[b\]/**)"),
        *("write_file(//w/**)", r"write_file(//a \[b\]/**)"),
    ]
    denied = [
        word for option, word in zip(args[2::2], args[3::2], strict=True) if "exclude" in option
    ]
    assert "run_shell_command(*>*)" in denied
    assert "run_shell_command(*$(*)" in denied


CONFINED = Scope((OURS,), ("/w/own", "/d"), "/runs/1.toml", confined=True)


def _gemini_changes(path: str, tool: str = "write_file") -> bool:
    """As the program decides: the rule that counts most of those that apply."""
    made = tomllib.loads(grant("gemini", CONFINED).files["/runs/1.toml"])["rule"]
    given = json.dumps(
        {"content": '"file_path":"/w/own/x"', "file_path": path}, separators=(",", ":")
    )
    found = [
        each for each in made if each["toolName"] == tool and re.search(each["argsPattern"], given)
    ]
    return bool(max(found, key=lambda each: int(each["priority"]))["decision"] == "allow")


@pytest.mark.parametrize("tool", ["write_file", "replace"])
def test_a_confined_gemini_changes_files_in_its_own_folder_only(tool: str) -> None:
    assert _gemini_changes("/w/own/a/b.md", tool) and _gemini_changes("/d/draft.md", tool)
    for path in ("/w/x.md", "/w/owner/x.md", "x.md", "/w/own/../x.md", "/e/w/own/x.md", "/w/own/"):
        assert not _gemini_changes(path, tool), path
    assert grant("gemini", CONFINED).args[:2] == ("--approval-mode", "auto_edit")


def test_other_confined_programs_change_files_in_their_own_folder_only() -> None:
    args = grant("claude", CONFINED).args
    assert args[:2] == ("--permission-mode", "default")
    assert args[-2:] == ("Edit(//w/own/**)", "Edit(//d/**)")
    config = json.loads(grant("opencode", CONFINED).env["OPENCODE_CONFIG_CONTENT"])
    assert config["permission"]["edit"] == {"*": "deny", "w/own/*": "allow", "d/*": "allow"}
    in_git = json.loads(
        grant("opencode", replace(CONFINED, top="/w")).env["OPENCODE_CONFIG_CONTENT"]
    )
    assert in_git["permission"]["edit"] == {"*": "deny", "own/*": "allow", "../d/*": "allow"}
    qwen = " ".join(grant("qwen", CONFINED).args)
    assert "edit(//w/own/**)" in qwen and "edit(//w/**)" not in qwen
    values = Values("/f", "/w", "/d", prompt_file="/runs/1.prompt", own="/w/own")
    codex = program.build(presets.bundled()["codex"], values, "/bin/program")
    named = [each for each in codex.argv if each.startswith("/") and each != "/bin/program"]
    assert (set(named), codex.cwd) == ({"/w/own", "/d"}, "/w/own")


def test_a_person_allows_more_commands_by_their_beginning() -> None:
    own = presets.load({"claude": {"allow": ["npm test", "git diff"]}})["claude"]
    argv = program.build(own, Values("/f", "/w", "/d", commands=(OURS,)), "/bin/claude").argv
    assert argv[argv.index(f"Bash({OURS} *)") + 1 :][:2] == ("Bash(npm test *)", "Bash(git diff *)")
    for wrong in ({"allow": ["*"]}, {"allow": [" "]}, {"permissions": "yes"}):
        with pytest.raises(PresetError):
            presets.load({"claude": wrong})
    with pytest.raises(PresetError):
        presets.load({"codex": {"allow": ["npm test"]}})


def test_own_arguments_bring_their_own_permissions() -> None:
    own = presets.load({"opencode": {"args": ["run", "--auto"]}})["opencode"]
    made = program.build(own, Values("/f", "/w", "/d", commands=(OURS,)), "/bin/opencode")
    assert made.argv == ("/bin/opencode", "run", "--auto")
    assert "OPENCODE_CONFIG_CONTENT" not in made.env


def test_a_file_of_rules_is_there_before_its_program_starts(tmp_path: Path) -> None:
    prompt = tmp_path / "00001.prompt"
    prompt.write_text("Do it")
    values = Values("/f", str(tmp_path), "/d", prompt_file=str(prompt), commands=(OURS,))
    made = program.build(presets.bundled()["gemini"], values, "/bin/true")
    program.start_program(made, tmp_path / "out", tmp_path / "err")
    rules = tmp_path / "00001.toml"
    assert f"{rules}" in made.argv
    assert tomllib.loads(rules.read_text())["rule"][0]["decision"] == "allow"
    assert rules.stat().st_mode & 0o077 == 0


def test_an_event_can_be_appended_here_as_this_participant_only() -> None:
    found = launch.allowed_commands("'/a b/acp' {command}", "/my folder", "server")
    assert found[0] == "'/a b/acp' append --folder '/my folder' --participant server"
    assert found[1:] == ("'/a b/acp' next", "'/a b/acp' wait", "'/a b/acp' validate")
    found = launch.allowed_commands("python3 /skill/{script}", "/f", "server")
    assert found[0] == "python3 /skill/append_event.py --folder /f --participant server"


def test_the_scripts_have_the_names_of_the_skill() -> None:
    from acp_core.protocols.folder.schema import records

    names = {script.command: script.name for script in records.SCRIPTS}
    found = launch.allowed_commands("{script}", "/f", "a")
    assert [words.split()[0] for words in found] == [
        names[each] for each in ("append", "next", "wait", "validate")
    ]


SERVER = ToolServer(("/opt/acp", "mcp", "--folder", "/f"), {"ACP_STATE": "/s"}, ("next", "append"))


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_a_program_gets_its_participants_tools_by_name_and_no_others(name: str) -> None:
    values = Values("/f", "/w", "/d", prompt_file="/runs/1.prompt", commands=(OURS,), server=SERVER)
    preset = presets.bundled()[name]
    without = program.build(preset, values, "/bin/program")
    made = program.build(replace(preset, tools=True), values, "/bin/program")
    told = "\n".join([*made.argv, json.dumps(dict(made.env))])
    assert "/opt/acp" in told and "ACP_STATE" in told
    for tool in SERVER.tools:
        assert re.search(rf"\b(mcp__)?acp_+{tool}\b", told)
    assert not re.search(r"mcp__acp(?!__)|acp_+\*|trust", told)
    assert "mcp" not in "\n".join(without.argv).replace(OURS, "")


def test_tools_are_asked_for_only_where_they_can_be_passed_on() -> None:
    with pytest.raises(PresetError, match="acp cannot pass tools on"):
        presets.load({"codex": {"tools": True}})
    assert presets.load({"claude": {"tools": True}})["claude"].tools
