"""Somebody writes a config.toml; acp takes it, or says in one line what is wrong with it."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import pytest

from acp_core.person import settings
from acp_core.person.settings import Settings, SettingsError


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path))
    return tmp_path / "config.toml"


def test_without_a_file_the_defaults_hold(config: Path) -> None:
    assert settings.path() == config
    assert settings.load() == Settings()
    assert settings.load(config.parent / "none" / "config.toml") == Settings()


def test_everything_can_be_set(config: Path) -> None:
    config.write_text(
        """
        theme = "nord"
        humans = ["ann"]
        utc = true
        paths = ["~/work", "/srv"]
        bell = false
        editor = "vim -R"
        [keys]
        help = "f1"
        """
    )
    assert settings.load() == Settings(
        theme="nord",
        humans=["ann"],
        utc=True,
        paths=["~/work", "/srv"],
        bell=False,
        editor="vim -R",
        keys={"help": "f1"},
    )


def test_every_setting_is_described() -> None:
    assert all(field.metadata["description"] for field in fields(Settings))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("theme = 3", "theme: expected a text in quotes"),
        ("utc = 'yes'", "utc: expected true or false"),
        ("humans = 'ann'", "humans: expected a list of texts"),
        ("keys = 'x'", "keys: expected a table of texts"),
        ("paths = ['~', 3]", "paths[1]: expected a text in quotes"),
        ("keys.help = 1", "keys.help: expected a text in quotes"),
        ("colour = 'red'", "colour: unknown setting (available: agents, bell, budgets, editor,"),
        ("permissions = 1", "permissions: expected a table"),
        ("permissions.polcy = 'ask'", "permissions.polcy: expected one of policy, rules"),
        (
            "permissions.policy = 'some'",
            "permissions.policy: expected one of ask, edits, all, none",
        ),
        *(
            (f"permissions.rules = [{{ {rule} }}]", f"permissions.rules[0]{what}")
            for rule, what in (
                ("verdict = 'allow'", ": expected kind, path or command"),
                ("verdict = 'may', kind = 'edit'", ".verdict: expected one of allow, reject, ask"),
                ("verdict = 'ask', path = 'site'", ".path: expected an absolute path"),
                ("verdict = 'ask', title = 'x'", ".title: expected one of verdict, kind,"),
                ("verdict = 'ask', kind = 3", ".kind: expected a text in quotes"),
                ("verdict = 'allow', kind = 'edit'", ": expected either path or command"),
                ("verdict = 'allow', command = 'acp *'", ".command: expected more words"),
                ("verdict = 'allow', command = '*'", ".command: expected more words"),
                ("verdict = 'allow', command = 'bash -c *'", ".command: expected more words"),
            )
        ),
        ("= 3", "not TOML: Invalid statement (at line 1, column 1)"),
        ("theme = 'a\x1b[2J'", "not TOML: Found invalid character '\\x1b'"),
        pytest.param("x = " + "[" * 5000, "not TOML: nested too deeply", id="deep"),
    ],
)
def test_a_mistake_is_one_clear_line_with_file_and_key(config: Path, text: str, what: str) -> None:
    config.write_text(text)
    with pytest.raises(SettingsError) as caught:
        settings.load()
    line = str(caught.value)
    assert line.startswith(f"{config}: {what}")
    assert "\n" not in line
    assert line.isprintable()


def test_a_key_cannot_smuggle_control_characters_into_the_line(config: Path) -> None:
    config.write_text('"a\\u001b]0;x\\u0007\\n" = 1')
    with pytest.raises(SettingsError) as caught:
        settings.load()
    assert str(caught.value).isprintable()


def test_what_is_no_readable_file_is_said(config: Path) -> None:
    config.write_bytes(b"theme = '\xff'")
    with pytest.raises(SettingsError, match="not UTF-8 text"):
        settings.load()
    config.unlink()
    os.mkfifo(config)
    with pytest.raises(SettingsError, match="not a regular file"):
        settings.load()
