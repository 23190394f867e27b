"""What a cycle shows on the screen: its documents beside earlier versions, its panels, its findings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from acp_tui.app import AcpApp
from tests.protocols.cycle.making import PROGRESS, coordination, cycle, decision, task, write
from tests.tui.stage import shows


async def shown(pilot: Pilot[Any], text: str) -> None:
    await shows(pilot, text)


async def go_to(pilot: Pilot[Any], name: str) -> None:
    """Pick a document or a panel by its name."""
    await pilot.press("d")
    await pilot.pause()
    await pilot.press(*name, "enter")


@pytest.mark.slow
async def test_a_cycle_is_looked_at(tmp_path: Path) -> None:
    said = {"timestamp": "2026-03-02T18:12:00+08:00", "source": "vas", "target": "cd",
            "type": "bug_report", "content": "[red]Fix it[/red]"}  # fmt: skip
    cycle(
        tmp_path,
        plan={"tasks": [task("T1", "in_progress"), task("T2", "pending", "T1")]},
        coordination=coordination(feedback_log=[said], pending_decisions=[decision()]),
        completed_phases=["ra", "ra"],
    )
    write(
        tmp_path, f"{PROGRESS}/ra/requirements.md", "# Needs - v1.1.0\n- FR-1\n- FR-2 [b]new[/b]\n"
    )
    write(tmp_path, f"{PROGRESS}/ra/history/requirements-v1.0.0.md", "# Needs - v1.0.0\n- FR-1\n")
    app = AcpApp([str(tmp_path)])
    async with app.run_test(size=(120, 36)) as pilot:
        await shown(pilot, "no dependency")
        await shown(pilot, "A44")
        await go_to(pilot, "since")
        await shown(pilot, "ra/requirements.md since v1.0.0: +2 -1 lines")
        await shown(pilot, "+- FR-2 [b]new[/b]")
        await go_to(pilot, "Plan")
        await shown(pilot, "waits for T1")
        await go_to(pilot, "Feedback")
        await shown(pilot, "[red]Fix it[/red]")
        await go_to(pilot, "Decisions")
        await pilot.press("down")
        await shown(pilot, "enter: Decide")
        await go_to(pilot, "Versions")
        await shown(pilot, "changes since 1.0.0")
