"""The real agent programs, where they are installed: found, cut off from every network, and told which model to use.

``ACP_TESTS_PROGRAMS`` names a ``node_modules`` folder that holds them (`.ci/run` makes one, with the
versions of ``.ci/programs.txt``). Each is reached by a small script of its own name, which joins the network
of the model service, where there is nothing but loopback, and gives the program a home of its own.
No login of any account is in reach.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents.support import ROOT
from tests.support.dialects import MODEL
from tests.support.waiting import until

VARIABLE = "ACP_TESTS_PROGRAMS"
AGENTS = ("claude", "codex", "opencode", "gemini", "qwen")
_COMMANDS = {
    "claude": ("claude", "claude-agent-acp"),
    "codex": ("codex", "codex-acp"),
    "opencode": ("opencode",),
    "gemini": ("gemini",),
    "qwen": ("qwen",),
}
_KEY = "no-account"


class Programs:
    """The programs, and the model service that they talk to.

    Args:
        folder: an empty folder for their homes, and for what the model is asked for.
        installed: the ``node_modules`` folder.
    """

    def __init__(self, folder: Path, installed: Path) -> None:
        self.folder, self._installed = folder, installed
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        log = (folder / "service.log").open("w")
        self._service = subprocess.Popen(
            [sys.executable, "-m", "tests.support.model_service", str(folder)],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            until(self._listens, "the model service")
        except BaseException:
            self.close()
            raise
        self.port = int((folder / "port").read_text())
        for agent in AGENTS:
            self._add(agent)

    def _listens(self) -> bool:
        if self._service.poll() is not None:
            pytest.skip(
                f"no network of its own: {(self.folder / 'service.log').read_text()[-200:]}"
            )
        return (self.folder / "port").exists()

    def close(self) -> None:
        """End the model service."""
        self._service.kill()
        self._service.wait()

    @property
    def path(self) -> str:
        """The value of PATH with which the programs are found."""
        return f"{self.bin}:{os.environ['PATH']}"

    def more(self, *entries: tuple[str, list[list[object]]]) -> None:
        """Have the model do more than its prompts say: the steps of an entry for the first prompt with its text."""
        asked = [{"if": text, "steps": steps} for text, steps in entries]
        (self.folder / "more.json").write_text(json.dumps(asked))

    def requests(self) -> list[dict[str, object]]:
        """What the model service was asked, and what its model did."""
        lines = (self.folder / "requests").read_text().splitlines()
        return [json.loads(each) for each in lines]

    def _add(self, agent: str) -> None:
        home = self.folder / "homes" / agent
        home.mkdir(parents=True)
        env = {
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local/share"),
            "XDG_STATE_HOME": str(home / ".local/state"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            **getattr(self, f"_{agent}")(home),
        }
        kept = " ".join(shlex.quote(f"{name}={value}") for name, value in env.items())
        for name in _COMMANDS[agent]:
            script = self.bin / name
            own = f'PATH={shlex.quote(str(self._installed / ".bin"))}:"$PATH"'
            script.write_text(
                f"#!/bin/sh\nexec nsenter --net=/proc/{self._service.pid}/ns/net -- "
                f'env {own} {kept} {shlex.quote(str(self._installed / ".bin" / name))} "$@"\n'
            )
            script.chmod(0o755)

    @property
    def _url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _claude(self, home: Path) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": self._url,
            "ANTHROPIC_API_KEY": _KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }

    def _codex(self, home: Path) -> dict[str, str]:
        config = home / ".codex/config.toml"
        config.parent.mkdir()
        config.write_text(
            f'model = "{MODEL}"\nmodel_provider = "scripted"\n'
            f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{self._url}/v1"\n'
            'env_key = "SCRIPTED_KEY"\nwire_api = "responses"\n'
            # Else its sandbox makes an empty /tmp/.git while a command runs.
            "[sandbox_workspace_write]\nexclude_slash_tmp = true\n"
        )
        return {"SCRIPTED_KEY": _KEY}

    def _opencode(self, home: Path) -> dict[str, str]:
        config = home / ".config/opencode/opencode.json"
        config.parent.mkdir(parents=True)
        limit = {"context": 200_000, "output": 8_000}
        model = {
            "name": MODEL,
            "tool_call": True,
            "limit": limit,
            "cost": {"input": 1, "output": 2},
        }
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": f"{self._url}/v1", "apiKey": _KEY},
            "models": {MODEL: model},
        }
        whole = {"model": f"scripted/{MODEL}", "small_model": f"scripted/{MODEL}", "autoupdate": False, "share": "disabled", "provider": {"scripted": provider}}  # fmt: skip
        config.write_text(json.dumps(whole))
        return {}

    def _gemini(self, home: Path) -> dict[str, str]:
        settings = home / ".gemini/settings.json"
        settings.parent.mkdir()
        auth = {"auth": {"selectedType": "gemini-api-key"}}
        settings.write_text(json.dumps({"security": auth, "telemetry": {"enabled": False}}))
        return {"GEMINI_API_KEY": _KEY, "GOOGLE_GEMINI_BASE_URL": self._url}

    def _qwen(self, home: Path) -> dict[str, str]:
        settings = home / ".qwen/settings.json"
        settings.parent.mkdir()
        auth = {"auth": {"selectedType": "openai"}}
        settings.write_text(json.dumps({"security": auth, "telemetry": {"enabled": False}}))
        return {"OPENAI_BASE_URL": f"{self._url}/v1", "OPENAI_MODEL": MODEL, "OPENAI_API_KEY": _KEY}


def installed() -> Path | None:
    """The folder with the programs; None where they are not installed."""
    named = os.environ.get(VARIABLE, "")
    folder = Path(named)
    there = named and all((folder / ".bin" / each).exists() for group in _COMMANDS.values() for each in group)  # fmt: skip
    return folder if there else None
