"""Which programs are on this machine is asked many times at once, and looked up once."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from acp_core.agents import presets
from acp_core.agents.presets import is_installed


def test_a_program_is_looked_up_once_for_many_questions_and_found_when_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[str] = []
    clock = [100.0]
    which = shutil.which

    def counted(name: str, path: str) -> str | None:
        searches.append(name)
        return which(name, path=path)

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(presets.shutil, "which", counted)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    assert not any(is_installed("lamplighter") for _ in range(50))
    assert searches == ["lamplighter"]
    program = tmp_path / "lamplighter"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    clock[0] += 1
    assert all(is_installed("lamplighter") for _ in range(50))
    monkeypatch.setenv("PATH", str(tmp_path / "elsewhere"))
    assert not is_installed("lamplighter")  # another PATH is another question
    assert not is_installed("")
    assert len(searches) == 3
