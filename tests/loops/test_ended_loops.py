"""Loops that are no more: nothing is said that only a living one does, and somebody is needed."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_core.agents.state import Phase
from acp_core.files import claims
from tests.agents.support import is_gone, wait_for
from tests.cli.support import Acp
from tests.loops.support import behave, command, make, start, state, wait_for_phase

_PROMISES = re.compile(
    r"resumes|retries|retry at|next try|may pass|unknown time|wait for the next|holds:|left\b"
)


def failing(folder: Path, tmp_path: Path) -> None:
    start(folder, "server", command(tmp_path, behave(tmp_path, "crash crash")), retries=0)
    wait_for_phase(folder, "server", Phase.GAVE_UP)


def limited(folder: Path, tmp_path: Path) -> None:
    start(folder, "server", command(tmp_path, behave(tmp_path, "limited")))
    wait_for_phase(folder, "server", Phase.PAUSING)


def pausing(folder: Path, tmp_path: Path) -> None:
    start(
        folder, "server", command(tmp_path, behave(tmp_path, "crash crash")), retries=5, pause=600.0
    )
    wait_for_phase(folder, "server", Phase.PAUSING)


def kill(folder: Path) -> None:
    pid = state(folder, "server").pid
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: is_gone(pid), "the loop to be gone")


@pytest.mark.parametrize(
    ("begin", "killed", "words"),
    [
        (failing, False, "failed with exit code 3; its loop was stopped"),
        pytest.param(
            limited,
            False,
            "has reached its usage limit; its loop was stopped",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            pausing, False, "failed with exit code 3; its loop was stopped", marks=pytest.mark.slow
        ),
        pytest.param(
            failing, True, "failed with exit code 3; its loop was killed", marks=pytest.mark.slow
        ),
        (limited, True, "loop was killed"),
        pytest.param(pausing, True, "loop was killed", marks=pytest.mark.slow),
    ],
)
def test_nothing_is_promised_for_a_loop_that_has_ended(
    tmp_path: Path, begin: Callable[[Path, Path], None], killed: bool, words: str
) -> None:
    folder, acp = make(tmp_path / "c"), Acp(tmp_path)
    begin(folder, tmp_path)
    if killed:
        kill(folder)
    else:
        assert acp("stop", str(folder), "server").returncode == 0
    wait_for(lambda: acp("why", str(folder)).returncode == 1, "why to say that somebody is needed")
    why = acp("why", str(folder)).stdout
    assert words in " ".join(why.split()), why
    (row,) = json.loads(acp("status", str(folder), "--json").stdout)["collaborations"]
    assert [need["action"] for need in row["needs"]] == ["relaunch"]
    assert "needs you" in acp("status", str(folder)).stdout
    shown = [
        why,
        acp("status", str(folder)).stdout,
        acp("show", str(folder)).stdout,
        acp("ps", "--all", str(folder)).stdout,
    ]
    assert [found for text in shown for found in _PROMISES.findall(text)] == [], shown
    assert "again in" not in shown[-1]  # elsewhere it stands in what the agent printed
    (loop,) = json.loads(acp("ps", "--all", str(folder), "--json").stdout)["loops"]
    assert (loop["alive"], loop["retry_at"], loop["limited"]) == (False, None, False)


@pytest.mark.slow
def test_ones_own_ended_loop_hides_no_loop_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I ran it and stopped; another account runs it now; I stop it, and it does stop."""
    folder, acp = make(tmp_path / "c"), Acp(tmp_path)
    hang = behave(tmp_path, "hang")
    start(folder, "server", command(tmp_path, hang))
    assert acp("stop", str(folder)).stdout == "server: stopped\n"
    mine = os.environ["ACP_STATE"]
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "another account's"))
    other = start(folder, "server", command(tmp_path, hang))
    claim = claims.of_participant("server")
    wait_for(lambda: claims.seen(folder, claim).child, "the program to be noted")
    monkeypatch.setenv("ACP_STATE", mine)
    assert "its loop" not in acp("why", str(folder)).stdout
    dry = acp("stop", str(folder), "--dry-run")
    assert f"server (process {other.pid})" in dry.stdout, dry
    ended = acp("stop", str(folder))
    assert (ended.returncode, ended.stdout) == (0, "server: stopped\n")
    assert is_gone(other.pid) and not claims.seen(folder, claim).held
