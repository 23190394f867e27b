"""The skill and the tools where a program looks: shown before, and taken out again exactly."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest

from acp_core.model.errors import Refused
from acp_core.protocols.folder.skill.for_programs import PROGRAMS, insert, take_out
from tests.cli.support import Acp

VALUE = {
    "command": "/usr/bin/acp",
    "args": ["mcp", "--folder", 'a "b" ü'],
    "env": {"ACP_STATE": "/s"},
}
WRITTEN = [
    ("", False),
    ("{}", False),
    ("{}\n", False),
    ('{"mcpServers": {}}', False),
    ('{"mcpServers":{"other":{"command":"x"}}}', False),
    ('{\n\t"a": "mcpServers\\": {",\n\t"mcpServers": {\n\t\t"other": {}\n\t}\n}\n', False),
    ('{"nested": {"mcpServers": {"acp": 1}}, "n": [1e3, {"mcpServers": {}}]}', False),
    ("", True),
    ("# mine\nmodel = 'x'\n", True),
    ('[mcp_servers.other]\ncommand = "x"', True),
    ("[profiles.a]\nmodel = 'x' # mine\n\n", True),
]


@pytest.mark.parametrize(("text", "toml"), WRITTEN)
def test_an_entry_is_put_in_and_taken_out_exactly(text: str, toml: bool) -> None:
    section = "mcp_servers" if toml else "mcpServers"
    made = insert(text, section, "acp", VALUE, toml=toml)
    before = (tomllib.loads if toml else json.loads)(text or ("" if toml else "{}"))
    after = (tomllib.loads if toml else json.loads)(made.text)
    assert after[section].pop("acp") == VALUE
    assert after == {section: {}, **before}
    assert take_out(made.text, made.added, section, "acp", toml=toml) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"mcpServers": {"acp": {}}}', "remove it first"),
        ("// a comment\n{}", "add the server by hand"),
        ("[]", "hold no table"),
        ('{"mcpServers": []}', "is not a table"),
    ],
)
def test_settings_that_are_not_understood_stay_as_they_are(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        insert(text, "mcpServers", "acp", VALUE, toml=False)


def test_an_entry_that_somebody_changed_is_not_taken_out() -> None:
    made = insert('{"a": 1}', "mcpServers", "acp", VALUE, toml=False)
    changed = made.text.replace("/usr/bin/acp", "/home/me/acp")
    assert take_out(changed, made.added, "mcpServers", "acp", toml=False) is None
    kept = made.text.replace('"a": 1', '"a": 2')
    assert take_out(kept, made.added, "mcpServers", "acp", toml=False) == '{"a": 2}'


def tree(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.fixture
def mine(acp: Acp) -> Path:
    """A home folder in which a person has settings for every program, and a collaboration."""
    home = acp.home / "me"
    for name, text in {
        ".claude.json": '{\n  "numStartups": 3,\n  "mcpServers": {"mine": {"command": "x"}}\n}\n',
        ".codex/config.toml": '# mine\nmodel = "x"\n',
        ".config/opencode/opencode.json": '{"theme": "dark"}',
        ".gemini/settings.json": "{}",
        ".qwen/settings.json": '{"mcpServers": {}}',
    }.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    acp.env |= {"HOME": str(home)}
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "QWEN_HOME"):
        acp.env.pop(name, None)
    words = ["--participant", "server", "--objective", "Choose", "--completion", "Chosen"]
    assert acp("init", "--folder", "checkout", *words).returncode == 0
    return home


TOOLS = ("--collaboration", "checkout", "--participant", "server")


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_skill_and_tools_come_and_go_without_a_trace(acp: Acp, mine: Path, program: str) -> None:
    before = tree(mine)
    shown = acp("skill", "install", "--for", program, *TOOLS, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "SKILL.md" in shown.stdout and '"mcp"' in shown.stdout
    assert tree(mine) == before
    assert acp("skill", "install", "--for", program, *TOOLS).returncode == 2  # no terminal to ask
    assert tree(mine) == before
    assert acp("skill", "install", "--for", program, *TOOLS, "--yes").returncode == 0
    added = {os.path.relpath(each, mine) for each in set(tree(mine)) - set(before)}
    assert any(each.endswith("skills/agent-collaboration/SKILL.md") for each in added)
    again = acp("skill", "install", "--for", program, *TOOLS, "--yes")
    assert "has them already" in again.stdout
    assert acp("skill", "remove", "--for", program, "--yes").returncode == 0
    assert tree(mine) == before
    assert acp("skill", "remove", "--for", program, "--yes").returncode == 2


def test_what_a_person_changed_stays(acp: Acp, mine: Path) -> None:
    assert acp("skill", "install", "--for", "gemini", *TOOLS, "--yes").returncode == 0
    settings, skill = mine / ".gemini/settings.json", mine / ".gemini/skills/agent-collaboration"
    changed = settings.read_text().replace('"server"', '"reviewer"')
    settings.write_text(changed)
    (skill / "SKILL.md").write_text("mine")
    refused = acp("skill", "install", "--for", "gemini", *TOOLS, "--yes")
    assert refused.returncode == 2 and "changed since" in refused.stderr
    ran = acp("skill", "remove", "--for", "gemini", "--yes")
    assert ran.returncode == 0
    assert "SKILL.md stays: changed since" in ran.stdout
    assert "settings.json stays: the entry acp changed" in ran.stdout
    assert settings.read_text() == changed
    assert [each.name for each in skill.rglob("*") if each.is_file()] == ["SKILL.md"]


def test_a_program_that_wants_to_trust_the_folder_first_is_named_with_the_cure(
    acp: Acp, mine: Path, tmp_path: Path
) -> None:
    shown = acp("skill", "install", "--for", "gemini", *TOOLS, "--dry-run").stdout
    assert "Gemini CLI gives its model no MCP tools in a folder that you have not" in shown
    assert "run `gemini` in the folder where the agent works once" in " ".join(shown.split())
    project = tmp_path / "project"
    project.mkdir()
    words = ("skill", "install", "--for", "gemini", *TOOLS, "--project", str(project), "--dry-run")
    assert f"run `gemini` in {project} once" in " ".join(acp(*words).stdout.split())
    trusted = mine / ".gemini/trustedFolders.json"
    trusted.write_text(json.dumps({str(project): "TRUST_FOLDER"}))
    assert "trust" not in acp(*words).stdout
    assert "trust" not in acp("skill", "install", "--for", "qwen", *TOOLS, "--dry-run").stdout


def test_a_projects_tools_are_the_projects_own(acp: Acp, mine: Path, tmp_path: Path) -> None:
    before = tree(mine)
    project = tmp_path / "project"
    project.mkdir()
    words = ("--for", "claude", "--project", str(project))
    assert acp("skill", "install", *words, *TOOLS, "--yes").returncode == 0
    made = json.loads((project / ".mcp.json").read_text())["mcpServers"]["acp"]
    assert made["args"][-4:] == ["--folder", str(acp.home / "checkout"), "--participant", "server"]
    assert (project / ".claude/skills/agent-collaboration/SKILL.md").exists()
    assert tree(mine) == before
    assert acp("skill", "remove", *words, "--yes").returncode == 0
    assert tree(project) == {}
