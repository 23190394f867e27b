"""What a run's programs took is its own, whatever stood in the same folder before."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Acp
from tests.protocols.workspaces.running import acp, prepare, program
from tests.support import paid


def dispatched(root: Path, beside: Path) -> None:
    """Carry out a run of two agents whose programs cost something."""
    prepare(root, "ann", "ben")
    paid.settings(*program(beside))
    ended = acp("dispatch", root, "--program", "paid")
    assert ended.code == 0, ended.text


def command(root: Path, *words: str) -> str:
    """What a command of acp prints."""
    acp = Acp(root.parent, {name: os.environ[name] for name in ("ACP_CONFIG", "ACP_STATE")})
    ended = acp(*words)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def stats(root: Path) -> dict[str, Any]:
    (told,) = json.loads(command(root, "stats", str(root), "--json"))["collaborations"]
    return dict(told)


@pytest.mark.slow
def test_a_deleted_run_is_not_charged_to_the_next_one(tmp_path: Path) -> None:
    root = tmp_path / "run"
    root.mkdir()
    dispatched(root, tmp_path / "beside")
    assert stats(root)["cost"] == 2 * paid.COST
    shutil.rmtree(root)
    root.mkdir()
    prepare(root, "ann", "cat")
    assert acp("draft", root).code == 2
    told = stats(root)
    assert (told["cost"], told["tokens"], told["retries"]) == (None, None, None)
    assert told["human_acts"] == 1
    ended = acp("dispatch", root, "--program", "paid")
    assert ended.code == 0, ended.text
    told = stats(root)
    assert (told["cost"], told["tokens"]) == (2 * paid.COST, {"in": 2_000, "out": 200})


@pytest.mark.slow
def test_a_run_whose_manifest_was_made_anew_keeps_its_costs(tmp_path: Path) -> None:
    root = tmp_path / "run"
    root.mkdir()
    dispatched(root, tmp_path / "beside")
    (root / "agent-workspaces/.coord/manifest.json").unlink()
    assert acp("repair", root).code == 0
    assert stats(root)["cost"] == 2 * paid.COST


def test_what_was_recorded_of_a_deleted_run_is_no_figure_of_the_next_one(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann")
    (root / "agent-workspaces/ann/status.json").write_text('{"status": "success"}')
    command(root, "record", "--once", str(root))
    assert stats(root)["findings_over_time"][0]["errors"] > 0
    shutil.rmtree(root)
    prepare(root, "ann")
    told = stats(root)
    assert (told["findings_over_time"], told["counts_over_time"]) == ([], [])
