"""`acp doctor` says what acp runs on and what to do where something is not well."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from acp_core import __version__
from acp_core.cli import doctor
from acp_core.cli.doctor import Check, State, render
from acp_core.cli.output import Terminal
from tests.cli.support import Acp


def named(found: list[Check], name: str) -> Check:
    return next(check for check in found if check.name == name)


def test_a_whole_installation_is_well(acp: Acp) -> None:
    ran = acp("doctor")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"✓ ok      acp                {__version__}" in ran.stdout
    for heading in ("Versions", "Folders", "Terminal", "Files", "Programs", "Extras"):
        assert heading in ran.stdout.splitlines()
    assert str(acp.home / "state") in ran.stdout


def test_json_says_the_same(acp: Acp) -> None:
    told = json.loads(acp("doctor", "--json").stdout)
    assert (told["schema"], told["ok"]) == ("acp.doctor/1", True)
    first = told["checks"][0]
    assert first == {
        "group": "Versions", "name": "acp", "state": "ok", "value": __version__, "advice": "",
    }  # fmt: skip


def test_a_needed_library_that_is_missing_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from acp_core.cli.main import run

    monkeypatch.setattr(doctor, "NEEDED", ("click", "no-such-library"))
    assert run(["doctor"], lambda paths, settings: 0) == 1
    out = capsys.readouterr().out
    assert "✗ missing  no-such-library" in out
    assert "    → pip install no-such-library" in out


def test_every_extra_that_is_absent_says_what_it_adds_and_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "_version", lambda name: "")
    found = list(doctor.extras())
    assert [check.name for check in found] == list(doctor.EXTRAS)
    for check in found:
        assert check.state is State.OPTIONAL
        assert f"adds {doctor.ADDS[check.name]}; " in check.advice
        assert "pip install " in check.advice and f"'acp-tui[{check.name}]'" in check.advice
        assert f"pip install '.[{check.name}]'" in check.advice


def test_folders_that_cannot_be_made_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "file" / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path / "config"))
    found = list(doctor.folders())
    assert named(found, "state").state is State.WARN
    assert "in the way" in named(found, "state").advice
    assert named(found, "settings").value == f"{tmp_path}/config (made when it is needed)"
    assert not (tmp_path / "config").exists()


@pytest.mark.parametrize(
    ("kind", "state", "said"),
    [
        ("ext4", State.OK, ""),
        ("nfs4", State.WARN, "NFSv4, no local_lock"),
        ("9p", State.WARN, "locks do not work here"),
        ("fuse.sshfs", State.WARN, "locks do not work here"),
        ("", State.OK, ""),
    ],
)
def test_it_says_whether_locks_can_be_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, state: State, said: str
) -> None:
    monkeypatch.setattr(doctor.locked, "kind", lambda path, mounts: kind)
    check = named(list(doctor.watching([str(tmp_path)])), str(tmp_path))
    assert check.state is state
    assert said in check.advice


def test_a_path_that_is_not_there_is_told() -> None:
    assert named(list(doctor.watching(["nowhere"])), "nowhere").state is State.WARN


@pytest.mark.parametrize(
    ("environment", "value", "state"),
    [
        ({"NO_COLOR": "1", "TERM": "xterm-256color"}, "none (NO_COLOR)", State.OK),
        ({"COLORTERM": "truecolor", "TERM": "xterm"}, "16 million (COLORTERM)", State.OK),
        ({"TERM": "screen-256color"}, "256 (TERM)", State.OK),
        ({"TERM": "dumb"}, "none", State.OPTIONAL),
    ],
)
def test_it_says_which_colours_there_are(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], value: str, state: State
) -> None:
    for name in ("NO_COLOR", "COLORTERM", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, given in environment.items():
        monkeypatch.setenv(name, given)
    check = named(list(doctor.terminal_checks()), "colours")
    assert (check.value, check.state) == (value, state)


def test_an_editor_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "no-such-editor --wait")
    assert named(list(doctor.programs()), "editor").state is State.WARN
    monkeypatch.setenv("EDITOR", "sh -c")
    assert named(list(doctor.programs()), "editor").state is State.OK


def test_settings_that_cannot_be_used_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path))
    (tmp_path / "config.toml").write_text("theme = [")
    check = named(list(doctor.folders()), "config.toml")
    assert check.state is State.WARN
    assert "config.toml" in check.advice
    (tmp_path / "config.toml").write_text('editor = "sh -c"\n')
    assert named(list(doctor.programs()), "editor").value == "sh -c"
    assert all(check.name != "config.toml" for check in doctor.folders())


def test_text_of_the_environment_is_harmless() -> None:
    check = Check("Programs", "editor", State.WARN, "vi\x1b]0;title\x07", "set\x1b[2J it")
    lines = render([check], Terminal(width=80))
    assert "\x1b" not in "".join(lines)
    assert "vi␛]0;title␇" in lines[1]


@pytest.mark.parametrize(
    ("by", "command"),
    [("pip", "run pip install 'acp-tui[web]'"), ("pipx", "run pipx runpip acp-tui install 'acp-tui[web]'"),
     ("uv", f"run uv pip install --python {sys.executable} 'acp-tui[web]'")],
)  # fmt: skip
def test_an_extra_is_added_by_the_program_that_installed_acp(
    by: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_version", lambda name: "")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    if by == "pipx":
        (tmp_path / "pipx_metadata.json").touch()
    place = tmp_path / "acp_tui-0.2.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Name: acp-tui\nVersion: 0.2.0\n")
    (place / "INSTALLER").write_text(f"{by}\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert command in named(list(doctor.extras()), "web").advice
