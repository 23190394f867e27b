"""What a collaboration's programs took is its own, whatever stood in the same folder before."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acp_core.agents import presets, registry
from acp_core.cli.main import run as acp_main
from tests.loops.support import append, make, stand_in, start, wait_for_turns
from tests.support import paid


def paying(folder: Path) -> presets.Preset:
    """The stand-in, whose turns cost something."""
    paid.settings(stand_in(folder, "agent"))
    from acp_core.person.settings import load

    return presets.load(load().presets)["paid"]


def stats(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert acp_main(["stats", str(folder), "--json"], lambda paths, settings: 99) == 0
    (found,) = json.loads(capsys.readouterr().out)["collaborations"]
    return dict(found)


def proposed(folder: Path, preset: presets.Preset) -> None:
    """A new collaboration whose first turn was taken, by a loop that has ended since."""
    make(folder)
    start(folder, "server", preset)
    wait_for_turns(folder, "server", 1)
    registry.stop(str(folder), "server")


def began(folder: Path) -> str:
    """When the log says that the collaboration began: to the second."""
    first = (folder / "events.jsonl").read_text().splitlines()[0]
    return str(json.loads(first)["at"])


def begin_in_another_second(folder: Path, before: str) -> None:
    """The time of the beginning tells two collaborations of one place apart."""
    make(folder)
    while began(folder) == before:
        shutil.rmtree(folder)
        time.sleep(0.1)
        make(folder)


@pytest.mark.slow
def test_a_deleted_collaboration_is_not_charged_to_the_next_one_in_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, preset = tmp_path / "c", paying(tmp_path)
    proposed(folder, preset)
    assert stats(folder, capsys)["cost"] == paid.COST
    before = began(folder)
    shutil.rmtree(folder)
    begin_in_another_second(folder, before)
    told = stats(folder, capsys)
    assert (told["cost"], told["tokens"], told["retries"]) == (None, None, None)
    shutil.rmtree(folder)
    (Path(registry.runners()[0].place) / "turns.jsonl").unlink()  # of which the helper counts
    proposed(folder, preset)
    assert stats(folder, capsys)["cost"] == paid.COST


def test_a_sum_says_whose_cost_is_not_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, preset = make(tmp_path / "c"), paying(tmp_path)
    start(folder, "server", preset)
    wait_for_turns(folder, "server", 1)
    told = stats(folder, capsys)
    assert (told["cost"], "cost_unknown" in told) == (paid.COST, False)
    free = replace(preset, stream="codex")
    start(folder, "reader", free)  # its program reports no cost in this form
    wait_for_turns(folder, "reader", 1)
    append(folder, "reviewer", "review_submitted", 2)  # acp runs no agent of that participant
    told = stats(folder, capsys)
    assert (told["cost"], told["cost_unknown"]) == (paid.COST, ["reader", "reviewer"])
    assert acp_main(["stats", str(folder)], lambda paths, settings: 99) == 0
    assert "$0.25 (unknown: reader, reviewer)" in capsys.readouterr().out


def test_a_loop_that_is_started_again_goes_on_counting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, preset = tmp_path / "c", paying(tmp_path)
    proposed(folder, preset)
    start(folder, "server", preset)
    registry.stop(str(folder), "server")
    assert stats(folder, capsys)["cost"] == paid.COST
