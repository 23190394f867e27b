"""What a cycle's programs took is its own: other cycles of the same project are not charged."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from acp_core.agents import loop_directory
from tests.cli.support import Acp
from tests.protocols.cycle import conducting
from tests.protocols.cycle.conducting import AGENT, WHAT, done
from tests.support import paid

pytestmark = pytest.mark.usefixtures("nothing_is_left")

NONE = (None, None, None)


def run(root: Path, cycle: str, *words: str, **behaviour: list[str]) -> None:
    """Begin a cycle whose programs cost something, and wait until no orchestrator runs."""
    paid.settings(*shlex.split(AGENT))
    conducting.behave(root, **behaviour)
    done(root, "start", WHAT, "--cycle", cycle, "--agent", "paid", *words)
    conducting.wait_for_end(root)


def stats(root: Path) -> dict[str, Any]:
    acp = Acp(root.parent, {name: os.environ[name] for name in ("ACP_CONFIG", "ACP_STATE")})
    ended = acp("stats", str(root), "--json")
    assert ended.returncode == 0, ended.stderr
    (told,) = json.loads(ended.stdout)["collaborations"]
    return dict(told)


def taken(root: Path) -> tuple[object, object, object]:
    """Tokens in and out, and the cost, of the cycle that is shown."""
    told = stats(root)
    tokens = told["tokens"] or {"in": None, "out": None}
    return tokens["in"], tokens["out"], told["cost"]


def runs(number: int) -> tuple[int, int, float]:
    """What so many runs of a program take."""
    return number * 1_000, number * 100, number * paid.COST


def cycle_at(minute: int) -> str:
    return f"cycle-v1-20260302T18{minute:02}00-csvexprt"


@pytest.mark.slow
def test_a_deleted_cycle_is_not_charged_to_the_next_one(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    run(root, conducting.ID)
    assert taken(root) == runs(4)
    acts = stats(root)["human_acts"]
    shutil.rmtree(root)
    root.mkdir()
    time.sleep(
        1
    )  # a cycle notes when it began by the second: an act of the same one could be its own
    done(root, "start", WHAT, "--no-run")
    assert taken(root) == NONE
    assert stats(root)["human_acts"] == acts == 1
    paid.settings(*shlex.split(AGENT))
    done(root, "run", "--agent", "paid", "--foreground")
    assert taken(root) == runs(4)


@pytest.mark.slow
def test_each_cycle_of_a_project_keeps_its_own_costs(tmp_path: Path) -> None:
    for minute in (0, 1):
        run(tmp_path, cycle_at(minute))
        assert taken(tmp_path) == runs(4)
    done(tmp_path, "select", cycle_at(0))
    assert taken(tmp_path) == runs(4)


@pytest.mark.slow
def test_what_an_earlier_version_noted_counts_unless_the_cycle_began_later(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    run(root, conducting.ID, "--leave", cd=["ask user"])
    for file in loop_directory.root().glob("*/loop.json"):
        noted = json.loads(file.read_text())
        del noted["run_id"], noted["earlier"]
        file.write_text(json.dumps(noted))
    assert taken(root) == runs(3)
    done(root, "decide", "DEC-001", "1")
    conducting.wait_for_end(root)
    assert taken(root) == runs(5)
    shutil.rmtree(root)
    root.mkdir()
    done(root, "start", WHAT, "--no-run")
    assert taken(root) == NONE
