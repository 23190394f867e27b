"""An orchestrator that is killed at any moment: the next one goes on, and nothing is done twice."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.support import ROOT
from tests.protocols.cycle import conducting
from tests.protocols.cycle.conducting import ID, done, progress, start, state

pytestmark = pytest.mark.usefixtures("nothing_is_left")

RUNS = ["1-ra", "1-ep", "1-cd", "1-ra-2", "1-cd-2", "1-vas", "2-cd", "2-vas"]


def check(root: Path) -> None:
    """The cycle ended as if nobody had been killed."""
    ended = state(root)
    assert ended["status"] == "completed", ended
    runs = [each.partition("@")[0] for each in conducting.runs(root)]
    assert runs == RUNS, "every run once, in order"
    kinds = Counter(each["type"] for each in ended["coordination"]["feedback_log"])
    assert kinds == {"clarification": 2, "bug_report": 1}
    assert [each["status"] for each in ended["coordination"]["blockers"]] == ["resolved"]
    assert [each["number"] for each in ended["iterations"]] == [1, 2]
    assert ended["test_results"]["failed_tests"] == []
    lines = (progress(root) / "coordination/timeline.md").read_text().splitlines()
    said = Counter(re.sub(r"^- \S+ ", "", line) for line in lines if line.startswith("- "))
    for what in ("iteration 2 begins", "cycle complete", "blocker BLK-001", "clarified BLK-001"):
        assert sum(n for line, n in said.items() if what in line) == 1, what
    for name in RUNS:
        assert (progress(root) / f"coordination/phase-results/{name}.txt").exists()
    copies = sorted(p.name for p in (progress(root) / "cd/history").iterdir())
    assert copies == ["implementation-v1.0.0.md", "issues-v1.0.0.md"], copies
    # What a kill left of a participant's claim goes when the claim is taken next.
    left = [path for path in root.rglob("*.acp-tmp") if path.parent.name != "loops"]
    assert not left
    rows = (progress(root) / "cd/changes.log").read_text().splitlines()
    assert len(rows) == 3
    assert all(json.loads(row) for row in rows)


def prepare(root: Path, **behaviour: list[str]) -> None:
    """A cycle that is begun, whose orchestrator does not run."""
    start(root, **behaviour)
    kill(root)


def kill(root: Path) -> bool:
    """Kill the orchestrator, without warning; whether there was one."""
    found = conducting.process.running(str(root))
    if found is None:
        return False
    try:
        os.kill(found.pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    while found.alive and conducting.alive(root):
        time.sleep(0.01)
    return True


@pytest.mark.slow
def test_killed_a_few_times_it_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    slow = ["sleep 0.6", "sleep 0.2"]
    prepare(tmp_path, ra=slow, ep=slow, cd=["ask ra", "buggy"], vas=slow)
    for pause in (0.3, 0.9, 1.4):
        done(tmp_path, "run")
        time.sleep(pause)
        kill(tmp_path)
    done(tmp_path, "run")
    conducting.wait_for_end(tmp_path)
    check(tmp_path)


def summed_up(root: Path) -> None:
    """RA took too long, was asked once to write down what is done, and the cycle went on."""
    ended = conducting.wait_for_end(root)
    assert ended["status"] == "completed", ended
    runs = [each.partition("@")[0] for each in conducting.runs(root)]
    assert runs == ["1-ra", "1-ra-2", "1-ep", "1-cd", "1-vas"], "every run once, in order"
    assert [each["phase"] for each in ended["phase_errors"]] == ["ra"]
    assert "# Finalize" in (root / "prompt-ra-2.txt").read_text()
    assert ended["coordination"]["pending_decisions"] == []
    timeline = (progress(root) / "coordination/timeline.md").read_text()
    assert timeline.count("to write down what is done") == 1


@pytest.mark.slow
def test_killed_while_an_agent_sums_up_it_waits_for_that_very_run(tmp_path: Path) -> None:
    start(tmp_path, "--timeout", "6", ra=["sleep 60", "sleep 3"])
    for _ in range(2):
        conducting.wait_for(lambda: "1-ra-2" in str(conducting.runs(tmp_path)), "it to sum up")
        assert kill(tmp_path)
        done(tmp_path, "run")
    summed_up(tmp_path)


@pytest.mark.slow
def test_killed_at_random_operations_it_asks_to_sum_up_once(tmp_path: Path) -> None:
    chance = random.Random(7)
    start(tmp_path, "--timeout", "6", ra=["sleep 60", "sleep 2"])
    kill(tmp_path)
    assert dies(tmp_path, lambda: chance.randrange(10, 60)) > 5
    summed_up(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_random_operations_it_repeats_nothing(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    prepare(tmp_path, cd=["ask ra", "buggy"])
    assert dies(tmp_path, lambda: chance.randrange(15, 110)) > 5
    check(tmp_path)


def dies(root: Path, count: Callable[[], int]) -> int:
    """Orchestrators one after the other, each killed at an operation, until one comes to the end.

    Returns how many were killed.
    """
    for died in range(250):
        command = [sys.executable, "-m", "tests.protocols.cycle.dying", str(root), ID, str(count())]
        ended: Any = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if ended.returncode == -signal.SIGKILL:
            continue
        assert ended.returncode == 0, ended.stderr
        return died
    raise AssertionError("none came to the end")
