"""Several commands at once on one run: each sees the other's work, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.protocols.governed import playing
from tests.protocols.governed.acting import YES, acted, state, told


def at_once(commands: list[list[str]]) -> list[int]:
    """Run commands in processes of their own, all at the same time; their exit codes."""
    running = [
        subprocess.Popen([sys.executable, "-m", "acp_core", "governed", *words],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for words in commands
    ]  # fmt: skip
    return [process.wait() for process in running]


def test_one_turn_is_given_out_although_three_ask_for_it(tmp_path: Path) -> None:
    root = playing.repository(tmp_path / "lamp")
    acted("init", root)
    codes = at_once([["step", str(root)]] * 3)
    assert sorted(codes) == [0, 2, 2]
    assert len(state(root)["active_turns"]) == 1
    assert [line["event_type"] for line in told(root, "events.jsonl")] == [
        "run_started", "turn_dispatched",
    ]  # fmt: skip


@pytest.mark.slow
def test_no_word_is_lost(tmp_path: Path) -> None:
    root = playing.repository(tmp_path / "lamp")
    acted("init", root)
    words = [f"word-{number}-said" for number in range(12)]
    assert set(at_once([["talk", str(root), "--text", word] for word in words])) == {0}
    talk = (root / "TALK.md").read_text(encoding="utf-8")
    assert all(talk.count(word) == 1 for word in words)


def test_a_gate_is_opened_once(tmp_path: Path) -> None:
    root = playing.repository(tmp_path / "lamp")
    line = playing.agent(tmp_path / "bin")
    acted("init", root, "--agent", f"pm={line}")
    acted("step", root)
    acted("accept-turn", root)
    codes = at_once([["approve-transition", str(root), *YES]] * 2)
    assert sorted(codes) == [0, 2]
    kinds = [line.get("type") for line in told(root, "decision-ledger.jsonl")]
    assert kinds.count("gate_approved") == 1
