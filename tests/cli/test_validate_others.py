"""`acp validate` on what other protocols hold: nothing is called valid that nobody checked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acp_core.cli.validate import of_another
from acp_core.model import Verdict
from acp_core.protocols import registry
from tests.cli.support import Acp
from tests.support import toy


def test_another_distribution_s_protocol_is_checked_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acp = Acp(tmp_path, toy.register(monkeypatch, tmp_path / "installed"))
    folder = toy.make(tmp_path / "talk")
    assert acp("validate", "talk").stdout == "ACP validation passed\n"
    with (folder / toy.LOG).open("a") as log:
        log.write("no line of a log\n")
    ran = acp("validate", "talk", "--json")
    assert ran.returncode == 2
    assert json.loads(ran.stdout)["verdict"] == "invalid"


def test_a_protocol_without_rules_is_not_called_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toy.register(monkeypatch, tmp_path / "installed")
    folder = toy.make(tmp_path / "talk")
    opened = toy.open_toy

    def without_rules(*given: Any) -> Any:
        talk = opened(*given)
        read = talk.refresh
        talk.refresh = lambda now: replace(read(now), verdict=Verdict.UNKNOWN)  # type: ignore[method-assign]
        return talk

    monkeypatch.setattr(toy, "open_toy", without_rules)
    owner = next(each for each in registry.bundled() if each.name == "folder")
    assert of_another([str(folder)], owner) == 2
    assert capsys.readouterr().out.startswith("ACP validation: nothing to check; ")
    assert of_another([str(folder), "--json"], owner) == 2
    assert json.loads(capsys.readouterr().out)["verdict"] == "unknown"


def test_a_folder_of_no_protocol_is_left_to_the_usual_command(acp: Acp) -> None:
    (acp.home / "empty").mkdir()
    ran = acp("validate", "empty")
    assert ran.returncode == 2
    assert "nothing was checked" not in ran.stdout
