"""A stand-in that is chosen by its preset's name, and the real commands that run and answer it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from acp_core.agents.live import answers
from acp_core.agents.live.answers import OpenRequest
from acp_core.agents.live.turn import Files, Held
from acp_core.agents.loop_directory import place
from acp_core.person import paths
from tests.agents.live.support import words
from tests.agents.live_agent import MODES
from tests.agents.support import ROOT, wait_for


def configure(
    folder: Path, command: str, *more: str, behaviour: str = "", name: str = "mine"
) -> None:
    """Let a preset's name mean the stand-in, whose work is a command; run once, it is that command."""
    folder.mkdir(parents=True, exist_ok=True)
    live = words(folder, "--command", command, *more, behaviour=behaviour)
    once = folder / "once"
    once.write_text(f"#!/bin/sh\nexec {command}\n")
    once.chmod(0o755)
    file = paths.config_folder() / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f"[presets.{name}]\nprogram = {json.dumps(str(once))}\nlive = {json.dumps(live)}\n"
        f"ask_mode = {json.dumps(MODES['claude'])}\n"
    )


def acp(*given: object) -> subprocess.CompletedProcess[str]:
    """A real command of acp, ended."""
    return subprocess.run(
        command(*given), env=environment(), capture_output=True, text=True, check=False
    )


def begin(*given: object) -> subprocess.Popen[str]:
    """A real command of acp, at work."""
    return subprocess.Popen(
        command(*given), env=environment(), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def command(*given: object) -> list[str]:
    return [sys.executable, "-m", "acp_core", *map(str, given)]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def request(folder: Path, asks: str = "", patience: float = 60.0) -> OpenRequest:
    """The request that waits for a person, whose command holds some words."""

    def found() -> list[OpenRequest]:
        waiting = answers.waiting(str(folder))
        return [each for each in waiting if asks in (each.request.command or "")]

    wait_for(found, f"a request for permission: {asks}", patience)
    return found()[0]


def decide(folder: Path, verdict: str, asks: str = "") -> OpenRequest:
    """Answer a request with `acp answer`."""
    opened = request(folder, asks)
    ended = acp("answer", folder, opened.id, verdict)
    assert ended.returncode == 0, ended.stderr
    return opened


def record() -> list[tuple[str, str]]:
    """How requests were answered, and the first word of what they asked for."""
    path = answers.root() / "answered.jsonl"
    lines: list[dict[str, Any]] = [json.loads(each) for each in path.read_text().splitlines()]
    return [(each["state"], each["command"].partition(" ")[0]) for each in lines]


def held(folder: Path, participant: str) -> Held:
    """The live session of a participant."""
    found = Files(place(str(folder), participant)).load()
    assert found is not None
    return found
